"""Base class of learners of a linear (Mahalanobis) metric, which are also transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.similarity import unit_rows
from ..metrics.embedding import LinearMetric
from .base import FLOATS, BaseRanker, read_rows


class LinearRanker(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseRanker):
    """Base class of estimators that learn a `LinearMetric`: ``transform`` and pair distances.

    A subclass implements ``_fit_metric`` as for `BaseRanker` and returns a `LinearMetric`.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        The map L of the metric.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import LinearRanker, LinearMetric
    >>> class Scaled(LinearRanker):
    ...     '''Distance in units of the standard deviation of each feature.'''
    ...     def _fit_metric(self, X, relevance, queries):
    ...         import numpy as np
    ...         return LinearMetric(np.diag(1 / X.std(axis=0)))
    >>> X, y = load_iris(return_X_y=True)
    >>> round(Scaled().fit(X, y).score(X, y), 3)
    0.824
    """

    def _store_metric(self, metric: Any) -> None:
        super()._store_metric(metric)
        self.components_ = metric.components
        self._n_features_out = len(metric.components)

    def transform(self, X: Any) -> np.ndarray:
        """Transform points by the learned linear map: Euclidean distances become learned ones.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Points; float32 input gives float32 output.

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        check_is_fitted(self)
        accepted = {"dtype": FLOATS, "accept_sparse": self._accepts_sparse}
        X = validate_data(self, read_rows(self, X), reset=False, **accepted)
        return self.metric_.transform(X)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """The matrix ``W = L'L`` of the learned metric.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self.metric_.matrix

    def get_metric(self) -> Callable[..., float]:
        """The learned distance as a function of two points.

        Returns
        -------
        callable
            Takes two vectors, as required by ``KNeighborsClassifier(metric=...)``, and optionally
            ``squared=True`` for the squared distance.
        """
        check_is_fitted(self)
        return _Distance(self.metric_)

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Learned distance between the two points of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            Pairs of points.

        Returns
        -------
        ndarray of shape (n_pairs,)
        """
        check_is_fitted(self)
        pairs = np.asarray(pairs)
        if pairs.ndim != 3 or pairs.shape[1:] != (2, self.n_features_in_):
            raise ValueError(
                f"pairs must have shape (n_pairs, 2, {self.n_features_in_}): got {pairs.shape}."
            )
        return self.metric_.pair_distances(pairs[:, 0], pairs[:, 1])

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Negative learned distance of each pair: larger means more similar.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            Pairs of points.

        Returns
        -------
        ndarray of shape (n_pairs,)
        """
        return -self.pair_distance(pairs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Distance:
    """Distance of two points after a linear map; unlike a closure, it can be pickled."""

    def __init__(self, metric: LinearMetric) -> None:
        self.components = metric.components
        self.similarity = metric.similarity

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        u, v = np.asarray(u), np.asarray(v)
        if self.similarity == "cosine":
            u, v = unit_rows(np.stack((u, v)), "the pair")
        distance = math.hypot(*self.components @ (u - v))
        return distance**2 if squared else distance
