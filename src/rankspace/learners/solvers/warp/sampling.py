"""WARP sampling: the law of triplets, and the rank weights of violators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ....relevance.relevance import Relevance

# Entries of a table of irrelevant items at most; in larger ones they are found by bisection.
MOST_LISTED = 2**23
WEIGHTS = ("reciprocal", "reciprocal@k", "uniform", "precision@k", "ndcg")


def rank_weights(weights: str, size: int) -> np.ndarray:
    """``L(0), ..., L(size)``: what it costs to have so many irrelevant items too near.

    L(r) is the sum of alpha_1 .. alpha_r, with alpha_i = 1/i (reciprocal), 1 (uniform), both also
    only up to i = k, or the drop of the discount 1 / log2(i + 1) from one place to the next (ndcg).
    """
    name, _, cut = weights.partition("@")
    places = np.arange(1, size + 1, dtype=float)
    steps = np.ones(size)
    if name == "ndcg":
        steps = 1 / np.log2(places + 1) - 1 / np.log2(places + 2)
    elif name == "reciprocal":
        steps = 1 / places
    if cut:
        steps[int(cut) :] = 0
    return np.concatenate(([0.0], np.cumsum(steps)))


def check_weights(weights: Any) -> None:
    """Raise unless rank weights of this name exist."""
    name, _, cut = str(weights).partition("@")
    if cut.isdigit() and int(cut) > 0:
        name += "@k"
    if name not in WEIGHTS:
        raise ValueError(
            f"rank_weights must be one of {', '.join(WEIGHTS)}, with a number of at least 1 in the "
            f"place of k: got {weights!r}."
        )


@dataclass(frozen=True)
class Sampling:
    """The law of triplets: queries in turn, positives by gain, negatives until one violates.

    ``positives`` and ``negatives`` are the tables that the kernels of `_engine.kernels.warp` read.
    """

    positives: tuple[Any, ...]
    negatives: tuple[Any, ...]
    most_draws: np.ndarray
    levels: np.ndarray
    query_weights: np.ndarray
    seed: int

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.most_draws.size

    @property
    def n_negatives(self) -> np.ndarray:
        """Number of irrelevant items of each query."""
        return self.negatives[3]

    def queries(self, first: int, size: int) -> np.ndarray:
        """The queries of triplets ``first``, ``first + 1``, ...: one permutation after another."""
        n = self.n_queries
        epochs = range(first // n, (first + size - 1) // n + 1)
        order = np.concatenate([_order(self.seed, epoch, n) for epoch in epochs])
        start = first - epochs[0] * n
        return order[start : start + size]

    def violator_weights(
        self, queries: np.ndarray, neg: np.ndarray, draws: np.ndarray
    ) -> Any:
        """``L(rank) / L(n)`` for the rank that the number of draws lets expect; 0 without one."""
        n = self.n_negatives[queries]
        expected = self.levels[n // draws] / self.levels[n]
        return np.where(neg >= 0, expected, 0.0)


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, n: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n)


def sampling_of(
    relevance: Relevance, weights: str, gamma: float, seed: int, positives: Any = None
) -> Sampling:
    """The law of triplets for queries that have something relevant and something irrelevant."""
    n = relevance.n_irrelevant
    shares = relevance.weights
    if not shares.any():
        raise ValueError("weights of the queries to learn from must not all be 0.")
    most = np.maximum(n // gamma, 1)
    if weights == "uniform":
        # With equal rank weights, one draw estimates the loss without bias.
        most = np.ones(n.size)
    if positives is None:
        positives = positive_table(relevance)
    return Sampling(
        positives=positives,
        negatives=negative_table(relevance),
        most_draws=most.astype(np.int64),
        levels=rank_weights(weights, int(n.max())),
        query_weights=shares / shares.mean(),
        seed=seed,
    )


def positive_table(relevance: Relevance) -> tuple[Any, ...]:
    """Relevant items, with running sums of their gains 2^grade - 1 up to a factor."""
    kept = relevance.grades >= relevance.min_relevant_grade
    indptr, own = _compress(relevance, kept)
    grades = relevance.grades[kept]
    top = grades.max(initial=0.0)
    sums = _running_sums(np.exp2(grades - top) - np.exp2(-top), indptr)
    return relevance.rows, indptr, relevance.items[kept], sums, own


def negative_table(relevance: Relevance) -> tuple[Any, ...]:
    """Irrelevant items; all others where what is not judged is irrelevant and lists were long."""
    outside = relevance.unlisted_is_irrelevant
    relevant = relevance.grades >= relevance.min_relevant_grade
    if outside:
        listed = relevant
    elif relevance.unjudged == "irrelevant":
        listed = ~relevant
    else:  # NaN, not judged, is neither
        listed = relevance.grades < relevance.min_relevant_grade
    indptr, own = _compress(relevance, listed)
    items = relevance.items[listed]
    is_candidate = own >= 0
    if outside:
        is_candidate = (own < 0) & (relevance.query_items >= 0)
    if outside and (indptr.size - 1) * relevance.n_items <= MOST_LISTED:
        indptr, items = _complement(indptr, items, relevance.n_items)
        outside = False
    own_item = np.where(is_candidate, relevance.query_items, -1)
    return relevance.rows, indptr, items, relevance.n_irrelevant, own_item, outside


def _complement(
    indptr: np.ndarray, items: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """All items that a row lacks, for each row."""
    lacking = np.ones((indptr.size - 1, n), dtype=bool)
    lacking[np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), items] = False
    return np.concatenate(([0], np.cumsum(lacking.sum(axis=1)))), np.nonzero(lacking)[1]


def _compress(relevance: Relevance, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where rows of the kept judgments start, and where each query's own item stands in them."""
    before = np.concatenate(([0], np.cumsum(kept)))
    at = relevance._own_judgments
    has_own = (at >= 0) & np.append(kept, False)[at]
    return before[relevance.indptr], np.where(has_own, before[at], -1)


def _running_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Cumulative sums that start anew in each row."""
    sums = np.cumsum(values)
    starts = np.concatenate(([0.0], sums))[indptr[:-1]]
    return sums - np.repeat(starts, np.diff(indptr))


def nearest_positives(relevance: Relevance, Q: Any, X: Any, k: int) -> tuple[Any, ...]:
    """A table of the k relevant items nearest to each query, all alike."""
    squares = _squares(X)
    chosen = []
    for q in range(relevance.n_queries):
        items = relevance.relevant(q)
        if items.size > k:
            distances = squares[items] - 2 * _column(X[items] @ Q[[q]].T)
            items = np.sort(items[np.argpartition(distances, k)[:k]])
        chosen.append(items)
    indptr = np.concatenate(([0], np.cumsum([items.size for items in chosen])))
    items = np.concatenate(chosen)
    sums = _running_sums(np.ones(items.size), indptr)
    n = relevance.n_queries
    return np.arange(n), indptr, items, sums, np.full(n, -1)


def _squares(X: Any) -> np.ndarray:
    """Squared lengths of the rows of a dense or sparse matrix."""
    return _column((X * X).sum(axis=1))


def _column(values: Any) -> np.ndarray:
    """A dense or sparse column as a vector."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    return np.asarray(values).ravel()
