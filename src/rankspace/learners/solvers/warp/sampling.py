"""WARP sampling: how triplets are drawn, and the rank weights of violators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ....relevance.relevance import Relevance
from ..points import Points

if TYPE_CHECKING:
    from ...._engine.kernels.warp import Negatives, Positives

# Largest table of irrelevant items; a larger one lists the others, and is searched by bisection.
MAX_LISTED = 2**23
WEIGHTS = ("reciprocal", "reciprocal@k", "uniform", "precision@k", "ndcg")


def rank_weights(weights: str, size: int) -> np.ndarray:
    """WARP rank weights ``L(0), ..., L(size)``: the cost of so many irrelevant items too near.

    L(r) is the sum of alpha_1 .. alpha_r. alpha_i is 1/i (reciprocal), 1 (uniform and precision) or
    the drop of the discount 1 / log2(i + 1) from one rank to the next (ndcg), and 0 from i > k.
    """
    name, _, cut = weights.partition("@")
    ranks = np.arange(1, size + 1, dtype=float)
    steps = np.ones(size)
    if name == "ndcg":
        steps = 1 / np.log2(ranks + 1) - 1 / np.log2(ranks + 2)
    elif name == "reciprocal":
        steps = 1 / ranks
    if cut:
        steps[int(cut) :] = 0
    return np.concatenate(([0.0], np.cumsum(steps)))


def check_weights(weights: Any) -> None:
    """Raise an error unless there are rank weights of this name."""
    name, _, cut = str(weights).partition("@")
    if cut.isdigit() and int(cut) > 0:
        name += "@k"
    if name not in WEIGHTS:
        raise ValueError(
            f"rank_weights must be one of {', '.join(WEIGHTS)}, where k is a positive integer: got "
            f"{weights!r}."
        )


@dataclass(frozen=True)
class Sampling:
    """WARP sampling: queries in turn, positives by gain, negatives until one violates."""

    positives: Positives
    negatives: Negatives
    rank_weights: np.ndarray
    query_weights: np.ndarray
    seed: int

    def queries(self, first: int, size: int) -> np.ndarray:
        """The queries of triplets ``first``, ``first + 1``, ...: one permutation an epoch."""
        n = self.query_weights.size
        epochs = range(first // n, (first + size - 1) // n + 1)
        order = np.concatenate([_order(self.seed, epoch, n) for epoch in epochs])
        start = first - epochs[0] * n
        return order[start : start + size]

    def violator_weights(
        self, queries: np.ndarray, neg: np.ndarray, draws: np.ndarray
    ) -> Any:
        """``L(rank) / L(n)`` at the rank expected from the number of draws; 0 without violator."""
        n = self.negatives.counts[queries]
        expected = self.rank_weights[n // draws] / self.rank_weights[n]
        return np.where(neg >= 0, expected, 0.0)


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, n: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n)


def sampling_of(
    relevance: Relevance, weights: str, gamma: float, seed: int, positives: Any = None
) -> Sampling:
    """WARP sampling for queries that have something relevant and something irrelevant."""
    n = relevance.n_irrelevant
    shares = relevance.weights
    if not shares.any():
        raise ValueError("weights of the queries to learn from must not all be 0.")
    max_draws = np.maximum(n // gamma, 1)
    if weights == "uniform":
        # With equal rank weights, one draw estimates the loss without bias.
        max_draws = np.ones(n.size)
    if positives is None:
        positives = positive_table(relevance)
    return Sampling(
        positives=positives,
        negatives=negative_table(relevance, max_draws.astype(np.int64)),
        rank_weights=rank_weights(weights, int(n.max())),
        query_weights=shares / shares.mean(),
        seed=seed,
    )


def positive_table(relevance: Relevance) -> Positives:
    """Relevant items, with running sums of their gains 2^grade - 1 up to a factor."""
    from ...._engine.kernels.warp import Positives

    relevant = relevance.grades >= relevance.min_relevant_grade
    indptr, own_places = _compress(relevance, relevant)
    grades = relevance.grades[relevant]
    top = grades.max(initial=0.0)
    sums = _running_sums(np.exp2(grades - top) - np.exp2(-top), indptr)
    items = relevance.items[relevant]
    return Positives(relevance.rows, indptr, items, sums, own_places)


def negative_table(relevance: Relevance, max_draws: np.ndarray) -> Negatives:
    """Irrelevant items, or all others where that makes the table much shorter."""
    from ...._engine.kernels.warp import Negatives

    excluded = relevance.unlisted_is_irrelevant
    relevant = relevance.grades >= relevance.min_relevant_grade
    if excluded:
        listed = relevant
    elif relevance.unjudged == "irrelevant":
        listed = ~relevant
    else:  # NaN, not judged, is neither
        listed = relevance.grades < relevance.min_relevant_grade
    indptr, own_places = _compress(relevance, listed)
    items = relevance.items[listed]
    includes_own = own_places >= 0
    if excluded:
        includes_own = (own_places < 0) & (relevance.query_items >= 0)
    if excluded and (indptr.size - 1) * relevance.n_items <= MAX_LISTED:
        indptr, items = _complement(indptr, items, relevance.n_items)
        excluded = False
    query_items = np.where(includes_own, relevance.query_items, -1)
    counts = relevance.n_irrelevant
    return Negatives(
        relevance.rows, indptr, items, counts, query_items, excluded, max_draws
    )


def _complement(
    indptr: np.ndarray, items: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """All items that a row lacks, for each row."""
    n_rows = indptr.size - 1
    lacks = np.ones((n_rows, n), dtype=bool)
    lacks[np.repeat(np.arange(n_rows), np.diff(indptr)), items] = False
    return _starts(lacks.sum(axis=1)), np.nonzero(lacks)[1]


def _compress(
    relevance: Relevance, selected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Row starts of the selected judgments, and the place of each query's own item in them."""
    before = _starts(selected)
    own = relevance._own_judgments
    has_own = (own >= 0) & np.append(selected, False)[own]
    return before[relevance.indptr], np.where(has_own, before[own], -1)


def _starts(lengths: Any) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(lengths)))


def _running_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Cumulative sums that start anew in each row."""
    sums = np.cumsum(values)
    starts = np.concatenate(([0.0], sums))[indptr[:-1]]
    return sums - np.repeat(starts, np.diff(indptr))


def nearest_positives(relevance: Relevance, points: Points, k: int) -> Positives:
    """Target neighbours: the k relevant items nearest to each query, all with equal gain."""
    from ...._engine.kernels.warp import Positives

    X = points.items
    Q = points.matrix[points.query_rows]
    squares = _vector((X * X).sum(axis=1))
    targets = []
    for q in range(relevance.n_queries):
        items = relevance.relevant(q)
        if items.size > k:
            distances = squares[items] - 2 * _vector(X[items] @ Q[[q]].T)
            items = np.sort(items[np.argpartition(distances, k)[:k]])
        targets.append(items)
    indptr = _starts([items.size for items in targets])
    items = np.concatenate(targets)
    sums = _running_sums(np.ones(items.size), indptr)
    n = relevance.n_queries
    return Positives(np.arange(n), indptr, items, sums, np.full(n, -1))


def _vector(values: Any) -> np.ndarray:
    """A dense or sparse column as a vector."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    return np.asarray(values).ravel()
