"""What learned metrics are compared with."""

from __future__ import annotations

import numpy as np

from ._base import BaseRanker
from .metric import LinearMetric
from .relevance import Relevance


class Euclidean(BaseRanker):
    """Plain Euclidean distance: the metric before any learning.

    Fitting costs O(n_features^2) time and memory, for the identity matrix.

    Attributes
    ----------
    metric_ : LinearMetric
        The identity.
    components_ : ndarray of shape (n_features, n_features)
        The identity matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import Euclidean
    >>> X, y = load_iris(return_X_y=True)
    >>> round(Euclidean().fit(X, y).score(X, y), 3)
    0.881
    """

    def _learn(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        return LinearMetric.identity(X.shape[1])
