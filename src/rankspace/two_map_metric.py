"""A distance between queries and items that are mapped each in their own way."""

from __future__ import annotations

from typing import Any

import numpy as np

from .metric import BilinearMetric


class TwoMapMetric(BilinearMetric):
    """Euclidean distance of mapped queries from mapped items: ``d(q, x) = |A q + a - B x|``.

    Parameters
    ----------
    left : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    right : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    offset : array-like of shape (n_components,), optional
        What is added to every mapped query, ``a``; zero by default.
    parameters : mapping, optional
        How it was learned, as JSON can hold it; stored with the metric.

    Examples
    --------
    >>> from rankspace import TwoMapMetric
    >>> metric = TwoMapMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.5]])
    array([[1. , 0.5]])
    """

    kind = "two-map"
    inner = False

    def distances(self, Q: Any, X: Any) -> np.ndarray:
        """Distances of each query from each item.

        Parameters
        ----------
        Q, X : array-like of shape (n_queries, n_query_features) and (n_items, n_features)
            Queries and items.

        Returns
        -------
        ndarray of shape (n_queries, n_items)
        """
        from scipy.spatial.distance import cdist

        queries, items = self.embed_queries(Q), self.embed_items(X)
        return cdist(queries, items).astype(np.result_type(queries, items), copy=False)
