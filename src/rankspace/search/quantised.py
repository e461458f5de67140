"""Quantised vectors: what a search finds that stores half precision, 8-bit integers or bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .exact import as_vectors
from .index import Embedding, Index
from .ranking import Ranking

BITS = {"float32": 32, "float16": 16, "int8": 8, "binary": 1}  # of a number, by storage
OVERSAMPLING = 4  # candidates by bits for each item wanted, which are then rescored
LEVELS = 127  # of int8 on each side of 0


def bytes_per_vector(n_components: int, storage: str) -> int:
    """Bytes that a vector takes."""
    return -(-n_components * BITS[storage] // 8)


class TooLarge(ValueError):
    """Vectors have components that half precision cannot hold."""


class QuantisedMetric:
    """A metric whose items are stored with fewer bits.

    With "float16" and "int8", which has a scale for each dimension, distances are those of the
    stored items from queries in full precision. With "binary", items and queries are reduced to
    the signs of their components: the items that agree with most signs of the query, four for each
    one wanted, are rescored by their full vectors.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric.
    X : array-like of shape (n_items, n_features)
        The items, for the scales of int8.
    storage : {"float32", "float16", "int8", "binary"}
        What is stored.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import BilinearMetric
    >>> from rankspace.search import QuantisedMetric
    >>> X = np.array([[1.0, -0.3], [0.2, 0.9]])
    >>> metric = QuantisedMetric(BilinearMetric(np.eye(2), np.eye(2)), X, "int8")
    >>> metric.embed_items(X).round(3)
    array([[ 1.   , -0.298],
           [ 0.197,  0.9  ]])
    """

    def __init__(self, metric: Embedding, X: Any, storage: str) -> None:
        check_choice(storage, "storage", BITS)
        self.metric = metric
        self.storage = storage
        self.similarity = metric.similarity
        self.inner_product = metric.inner_product
        self.symmetric = metric.symmetric
        self.scales = np.ones(1)
        if storage == "int8":
            largest = np.abs(metric.embed_items(as_vectors(X, "X"))).max(axis=0)
            self.scales = np.where(largest > 0, largest, 1) / LEVELS

    def embed_items(self, X: Any) -> np.ndarray:
        """Stored items, in full precision again."""
        vectors = self.metric.embed_items(X)
        if self.storage == "float16":
            check_half(vectors)
            return vectors.astype(np.float16).astype(vectors.dtype)
        if self.storage == "int8":
            codes = np.rint(vectors / self.scales).clip(-LEVELS, LEVELS)
            return (codes * self.scales).astype(vectors.dtype)
        return vectors

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Vectors of queries, in full precision."""
        return self.metric.embed_queries(Q)

    def index(self, X: Any) -> Index:
        """A search index of items that are stored so."""
        if self.storage == "binary":
            return BinaryIndex(X, self)
        return Index(X, self)


def check_half(vectors: np.ndarray) -> None:
    """Raise if half precision cannot hold the vectors."""
    largest = float(np.abs(vectors).max(initial=0))
    if largest > float(np.finfo(np.float16).max):
        raise TooLarge(
            f"half precision needs components up to 65,504: got {largest:.3g}. Scale the vectors."
        )


class BinaryIndex(Index):
    """Search by signs of components, with candidates rescored by their vectors."""

    def rank(
        self,
        Q: Any = None,
        k: int | None = None,
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> Ranking:
        """Rank the items nearest by signs; without ``k`` all of them, by their vectors."""
        if Q is None or k is None or OVERSAMPLING * k >= self.n_items:
            return super().rank(Q, k, query_items=query_items, query_ids=query_ids)
        items = _signs(self._built().vectors)
        queries = _signs(self._embed_queries(as_vectors(Q, "Q")))
        found = Index(items, similarity="dot").rank(
            queries, OVERSAMPLING * k, query_items=query_items
        )
        ranking = self.rerank(Q, found, query_items=query_items, query_ids=query_ids)
        return ranking.top(k)


def _signs(vectors: np.ndarray) -> np.ndarray:
    """1 for positive components, else -1: their products count the signs that agree."""
    return np.where(vectors > 0, np.float32(1), np.float32(-1))
