"""One round of MLR: the most violated rankings of all queries, summed into one plane.

A round is a sum over blocks of queries, `RankingLoss.local_step`, and one `RankingLoss.update` of
what the blocks give; blocks depend on nothing but the data and the metric.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._threads import in_threads, n_threads
from ..measures import parse_measure
from ..relevance import Relevance

LEAST_PAIRS = 10_000  # fewer are not worth a thread
ORACLE_MEASURES = ("auc", "p", "knn", "map", "mrr", "ndcg", "ndcg-mlr")


class Sums(NamedTuple):
    """What a block gives: ``Q' A X``, the column sums of ``A``, and the sum of the losses."""

    cross: np.ndarray
    columns: np.ndarray
    loss: float


class Plane(NamedTuple):
    """Mean loss and mean feature difference of the most violated rankings."""

    psi: np.ndarray
    delta: float


def discounts_of(kernel: str, size: int) -> np.ndarray:
    """Discounts of positions 1, 2, ...: of the MLR paper for ``ndcg_mlr``, else the standard."""
    positions = np.arange(1, size + 1, dtype=float)
    if kernel == "ndcg_mlr":
        return 1 / np.log2(np.maximum(positions, 2))
    return 1 / np.log2(positions + 1)


class RankingLoss:
    """The loss of rankings of ``X`` under a measure, for queries that can teach something.

    Parameters
    ----------
    X, Q : ndarray of shape (n_items, n_features) and (n_queries, n_features)
        Items and queries, centred and scaled.
    relevance : Relevance
        Who is relevant to whom.
    measure : str
        A measure with an oracle.
    queries : ndarray of int
        The queries to learn from.
    max_memory : int
        Working memory of a round in MiB.
    """

    def __init__(
        self, X: np.ndarray, Q: np.ndarray, relevance: Relevance, measure: str,
        queries: np.ndarray, max_memory: int,
    ) -> None:  # fmt: skip
        from .._kernels.measures import KERNELS

        spec, self.cut = parse_measure(measure)
        names = [kernel.py_func.__name__ for kernel in KERNELS]
        self.X, self.Q, self.relevance = X, Q, relevance
        self.code = names.index(spec.kernel)
        self.queries = queries
        self.max_memory = max_memory
        longest = int((relevance.n_relevant + relevance.n_irrelevant)[queries].max())
        self.discounts = discounts_of(spec.kernel, longest + 1)
        self.in_full = relevance.counts_background
        self._lists = None if self.in_full else relevance.judged_lists()

    # ------------------------------------------------------------------ the round

    def plane(self, components: np.ndarray, queries: np.ndarray | None = None) -> Plane:
        """The most violated rankings under a metric, of all queries or of some."""
        queries = self.queries if queries is None else queries
        weights = self.relevance.weights[queries]
        scales = np.zeros(self.relevance.n_queries)
        scales[queries] = weights / weights.sum()
        state = (self._embed(self.X, components), self._embed(self.Q, components), scales)
        blocks = self.blocks(queries)
        return self.update(in_threads(lambda block: self.local_step(block, state), blocks, ahead=8))

    def blocks(self, queries: np.ndarray) -> list[np.ndarray]:
        """Queries in parts whose work fits the memory."""
        entries = self.max_memory * 2**20 // (40 * n_threads())
        if self.in_full:
            size = max(1, min(256, entries // len(self.X)))
            return [queries[start : start + size] for start in range(0, queries.size, size)]
        assert self._lists is not None
        ends = np.cumsum(np.diff(self._lists.indptr)[queries])
        share = -(-int(ends[-1]) // (4 * n_threads()))
        ends //= max(1, min(entries, max(share, LEAST_PAIRS)))
        return np.split(queries, np.flatnonzero(np.diff(ends)) + 1)

    def local_step(self, block: np.ndarray, state: tuple[np.ndarray, ...]) -> Sums:
        """Rank for each query of a block, violate, and sum up."""
        return (self._all_items if self.in_full else self._judged_items)(block, *state)

    def update(self, parts: Iterable[Sums]) -> Plane:
        """Add up blocks, in their order, and close the sum.

        With weights A that sum to 0 for each query, the sum over q and x of
        ``-A[q, x] (q - x)(q - x)'`` is ``Q'AX + X'A'Q - X' diag(column sums of A) X``.
        """
        d = self.X.shape[1]
        cross, columns, loss = np.zeros((d, d)), np.zeros(len(self.X)), 0.0
        for part in parts:
            cross += part.cross
            columns += part.columns
            loss += part.loss
        own = self.X.T @ (columns.astype(self.X.dtype)[:, None] * self.X)
        return Plane(cross + cross.T - own, float(loss))

    def _embed(self, points: np.ndarray, components: np.ndarray) -> np.ndarray:
        return points @ components.T.astype(points.dtype)

    # ------------------------------------------------------------------ blocks

    def _all_items(
        self, block: np.ndarray, items: np.ndarray, queries: np.ndarray, scales: np.ndarray
    ) -> Sums:
        from .._kernels.violations import violate_all

        relevance = self.relevance
        distances = self._distances(queries[block], items)
        order = np.argsort(distances, axis=1)
        weights = np.empty_like(distances)
        loss = violate_all(
            block, order, np.take_along_axis(distances, order, axis=1), relevance.rows,
            relevance.indptr, relevance.items, relevance.grades, relevance.own_items,
            relevance.unjudged == "irrelevant", relevance.relevant_from, self.code, self.cut,
            self.discounts, scales, weights,
        )  # fmt: skip
        return self._sums(block, weights, loss)

    def _distances(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Squared distances of each query from all items, less what does not change their order."""
        distances = queries @ items.T
        distances *= -2
        distances += np.einsum("ij,ij->i", items, items)
        return distances

    def _sums(self, block: np.ndarray, weights: Any, loss: float) -> Sums:
        return Sums(self.Q[block].T @ (weights @ self.X), weights.sum(axis=0, dtype=float), loss)

    def _judged_items(
        self, block: np.ndarray, items: np.ndarray, queries: np.ndarray, scales: np.ndarray
    ) -> Sums:
        from .._kernels.violations import violate_lists

        assert self._lists is not None
        lists = self._lists[block]
        owner = np.repeat(np.arange(block.size), np.diff(lists.indptr))
        distances, weights = np.empty(owner.size), np.empty(owner.size)
        self._pair_distances(queries[block], items, owner, lists.indices, distances)
        order = np.lexsort((distances, owner))
        flags = (lists.data[order] >= self.relevance.relevant_from).astype(np.int8)
        loss = violate_lists(
            block, lists.indptr.astype(np.int64), distances[order], flags, self.code, self.cut,
            self.discounts, scales, weights,
        )  # fmt: skip
        shape = (block.size, len(self.X))
        table = scipy.sparse.csr_array((weights, lists.indices[order], lists.indptr), shape=shape)
        return self._sums(block, table, loss)

    def _pair_distances(
        self, queries: np.ndarray, items: np.ndarray, owner: np.ndarray, which: np.ndarray,
        out: np.ndarray,
    ) -> None:  # fmt: skip
        from .._kernels.topk import exact_pairs

        exact_pairs(queries, items, owner, which, False, out)


class LinearRankingLoss(RankingLoss):
    """The same loss with items ranked by ``w'x``, smallest first: features are ``q - x``.

    The part ``w'q`` is the same for all items, so the query does not count but through its
    judgments.
    """

    def update(self, parts: Iterable[Sums]) -> Plane:
        """Add up blocks; the sum over q and x of ``A[q, x] (q - x)`` is ``-X'(column sums)``."""
        columns, loss = np.zeros(len(self.X)), 0.0
        for part in parts:
            columns += part.columns
            loss += part.loss
        return Plane(-(columns @ self.X), float(loss))

    def _distances(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.repeat(items.T, len(queries), axis=0)

    def _pair_distances(
        self, queries: np.ndarray, items: np.ndarray, owner: np.ndarray, which: np.ndarray,
        out: np.ndarray,
    ) -> None:  # fmt: skip
        out[:] = items[which, 0]

    def _sums(self, block: np.ndarray, weights: Any, loss: float) -> Sums:
        return Sums(np.zeros((0, 0)), weights.sum(axis=0, dtype=float), loss)
