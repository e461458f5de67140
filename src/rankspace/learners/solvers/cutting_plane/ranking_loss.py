"""The structural SVM loss of MLR: most violated rankings of all queries, summed into a plane.

A round sums `RankingLoss.map_block` over blocks of queries, and `RankingLoss.update` turns the sum
into a plane. Blocks depend only on the data and the metric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...._engine.parallel import Step, current_backend
from ...._engine.parallel.threads import thread_map
from ....evaluation.measures import MEASURES, parse_measure
from ....relevance.relevance import Relevance
from ..points import Points, in_blocks, is_loaded, slice_rows, streams, whole
from ..scaling import row_slices
from .additive import (
    AdditiveMeasure,
    violate_all_additive,
    violate_lists_additive,
)

MIN_PAIRS = 10_000  # judged pairs in a block
MAX_BLOCKS = 64  # in a round
PAIR_BYTES = 40  # working memory for a pair of a query and an item
BLOCKS_IN_MEMORY = 4


class Sums(NamedTuple):
    """Sums over a block: ``Q' A X``, the column sums of ``A``, and the sum of the losses."""

    cross: np.ndarray
    columns: np.ndarray
    loss: float


class Round(NamedTuple):
    """Embedded items (None if streamed), their squared lengths, the linear map, query weights."""

    items: np.ndarray | None
    squares: np.ndarray
    components: np.ndarray
    scales: np.ndarray


class Plane(NamedTuple):
    """A cutting plane: mean feature difference and mean loss of the most violated rankings."""

    psi: np.ndarray
    delta: float


def oracle_measures() -> list[str]:
    """Names of the measures whose kernel has a separation oracle; NDCG in its exponential form."""
    from ...._engine.kernels.oracles import ORACLES

    return [
        name
        for name, measure in MEASURES.items()
        if measure.kernel in ORACLES and measure.gain != "linear"
    ]


def discounts_of(kernel: str, size: int) -> np.ndarray:
    """Discounts of positions 1, 2, ...: of the MLR paper for ``ndcg_mlr``, else the standard."""
    positions = np.arange(1, size + 1, dtype=float)
    if kernel == "ndcg_mlr":
        return 1 / np.log2(np.maximum(positions, 2))
    return 1 / np.log2(positions + 1)


class RankingLoss(Step):
    """Structural SVM loss of rankings of ``X`` under a measure.

    Parameters
    ----------
    points : Points
        Items and queries, scaled; dense, in memory or not.
    relevance : Relevance
        Relevance of items to queries.
    measure : str or AdditiveMeasure
        A measure with a separation oracle, or a function; see `additive`.
    queries : ndarray of int
        Queries to learn from, with relevant and irrelevant items.
    max_memory : int
        Working memory of a round in MiB.
    """

    def __init__(
        self,
        points: Points,
        relevance: Relevance,
        measure: str | AdditiveMeasure,
        queries: np.ndarray,
        max_memory: int,
    ) -> None:
        self.X = points.items
        self.Q = points.queries
        self.relevance = relevance
        self.queries = queries
        self.max_memory = max_memory
        self.additive = None if isinstance(measure, str) else measure
        self.oracle = self._oracle(measure) if isinstance(measure, str) else None
        self._lists = None
        if not relevance.unlisted_is_irrelevant:
            self._lists = relevance.judged_lists()
        self._gram = WeightedGram(self.X)

    def _oracle(self, measure: str) -> Any:
        from ...._engine.kernels.violations import Oracle

        spec, cut = parse_measure(measure)
        n_judged = self.relevance.n_relevant + self.relevance.n_irrelevant
        longest = int(n_judged[self.queries].max())
        discounts = discounts_of(spec.kernel, longest + 1)
        self.kernel = spec.kernel
        return Oracle(cut, discounts)

    def __getstate__(self) -> dict[str, Any]:
        # A separate step: each worker of a cluster gets only the rows that it needs.
        return {**vars(self), "_gram": None}

    # ------------------------------------------------------------------ the round

    def plane(self, components: np.ndarray, queries: np.ndarray | None = None) -> Plane:
        """The plane of the most violated rankings under a metric, for all queries or some."""
        queries = self.queries if queries is None else queries
        weights = self.relevance.weights[queries]
        scales = np.zeros(self.relevance.n_queries)
        scales[queries] = weights / weights.sum()
        blocks = self.blocks(queries)
        max_in_flight = max(1, self._entries // max(1, self._largest(blocks)))
        sums = current_backend().reduce(
            self, blocks, (components, scales), max_in_flight=max_in_flight
        )
        return self.update(sums)

    @property
    def _entries(self) -> int:
        """Number of pairs of a query and an item that fit in memory."""
        return self.max_memory * 2**20 // PAIR_BYTES

    def _largest(self, blocks: list[np.ndarray]) -> int:
        if self._lists is None:
            return blocks[0].size * len(self.X)
        lengths = np.diff(self._lists.indptr)
        return max(int(lengths[block].sum()) for block in blocks)

    def blocks(self, queries: np.ndarray) -> list[np.ndarray]:
        """Blocks of queries that fit in memory; they do not depend on the number of workers."""
        entries = self._entries
        if not streams(self.X, self.max_memory):
            entries //= BLOCKS_IN_MEMORY
        if self._lists is None:
            size = max(1, min(256, entries // len(self.X)))
            return [
                queries[start : start + size] for start in range(0, queries.size, size)
            ]
        ends = np.cumsum(np.diff(self._lists.indptr)[queries])
        share = -(-int(ends[-1]) // MAX_BLOCKS)
        ends //= max(1, min(entries, max(share, MIN_PAIRS)))
        return np.split(queries, np.flatnonzero(np.diff(ends)) + 1)

    def prepare(self, state: Any) -> Any:
        """The state that all blocks of a round share, with the embedded items."""
        components, scales = state
        if streams(self.X, self.max_memory):
            return Round(None, _squares(self.X, components), components, scales)
        items = in_blocks(whole(self.X), components)
        return Round(items, np.einsum("ij,ij->i", items, items), components, scales)

    def map_block(self, block: Any, state: Any) -> Any:
        """Sums over the most violated rankings of a block of queries."""
        queries = self.Q[block] @ state.components.T.astype(self.Q.dtype)
        if self._lists is None:
            return self._all_items(block, queries, state)
        return self._judged_items(block, queries, state)

    def update(self, sums: Sums) -> Plane:
        """The plane from the sums over all blocks.

        With weights A that sum to 0 for each query, the sum over q and x of
        ``-A[q, x] (q - x)(q - x)'`` is ``Q'AX + X'A'Q - X' diag(column sums of A) X``.
        """
        gram = current_backend().reduce(
            self._gram, row_slices(len(self.X)), sums.columns
        )
        return Plane(sums.cross + sums.cross.T - gram, float(sums.loss))

    # ------------------------------------------------------------------ blocks

    def _all_items(self, block: np.ndarray, queries: np.ndarray, state: Round) -> Sums:
        from ...._engine.kernels.violations import JudgedRows

        relevance = self.relevance
        judged = JudgedRows(
            relevance.rows,
            relevance.indptr,
            relevance.items,
            relevance.grades,
            relevance.query_items,
            relevance.unjudged == "irrelevant",
            relevance.min_relevant_grade,
        )
        # Distances become weights in place: new pages cost as much as a product.
        rows = np.ascontiguousarray(self._distances(queries, state))
        loss = self._violate(block, rows, judged, state.scales)
        return self._sums(block, rows, loss)

    def _violate(
        self, block: np.ndarray, rows: np.ndarray, judged: Any, scales: np.ndarray
    ) -> float:
        """Weights of the most violated rankings in place of distances; the sum of the losses."""
        from ...._engine.kernels.sorting import sort_rows
        from ...._engine.kernels.violations import VIOLATIONS, new_memory

        keys, mask = sort_rows(rows)
        if self.additive is not None:
            return violate_all_additive(
                self.additive, block, keys & mask, rows, judged, scales
            )
        memory = new_memory(len(self.X))
        find = VIOLATIONS[self.kernel].of_all_items
        return float(find(block, keys, mask, rows, judged, self.oracle, scales, memory))

    def _distances(self, queries: np.ndarray, state: Round) -> np.ndarray:
        """Squared distances of each query from all items, up to a constant of the query."""
        if state.items is None:
            distances = np.empty((len(queries), len(self.X)), dtype=queries.dtype)
            directions = queries @ state.components.astype(queries.dtype)
            for rows in row_slices(len(self.X)):
                distances[:, rows] = directions @ self.X.streamed(rows).T
        else:
            distances = queries @ state.items.T
        distances *= -2
        distances += state.squares
        return distances

    def _sums(self, block: np.ndarray, weights: Any, loss: float) -> Sums:
        cross = (self.Q[block].T @ _products(weights, self.X)).astype(np.float64)
        return Sums(cross, np.asarray(weights.sum(axis=0, dtype=float)), loss)

    def _judged_items(
        self, block: np.ndarray, queries: np.ndarray, state: Round
    ) -> Sums:
        from ...._engine.kernels.violations import VIOLATIONS, new_memory

        assert self._lists is not None
        lists = self._lists[block]
        owner = np.repeat(np.arange(block.size), np.diff(lists.indptr))
        distances = self._pair_distances(queries, state, owner, lists.indices)
        order = np.lexsort((distances, owner))
        relevant = lists.data[order] >= self.relevance.min_relevant_grade
        weights = np.empty(owner.size)
        kinds = relevant.astype(np.int8)
        ends = lists.indptr.astype(np.int64)
        ordered = distances[order]
        if self.additive is not None:
            loss = violate_lists_additive(
                self.additive, block, ends, ordered, kinds, state.scales, weights
            )
        else:
            memory = new_memory(int(np.diff(ends).max()))
            find = VIOLATIONS[self.kernel].of_lists
            loss = find(
                block, ends, ordered, kinds, self.oracle, state.scales, memory, weights
            )
        content = (weights, lists.indices[order], lists.indptr)
        shape = (block.size, len(self.X))
        return self._sums(block, scipy.sparse.csr_array(content, shape=shape), loss)

    def _pair_distances(
        self,
        queries: np.ndarray,
        state: Round,
        owner: np.ndarray,
        listed: np.ndarray,
    ) -> np.ndarray:
        """Squared distance of each listed item from its query, ``queries[owner]``."""
        from ...._engine.kernels.topk import exact_pairs

        distances = np.empty(owner.size)
        items = state.items
        if items is None:
            needed, listed = np.unique(listed, return_inverse=True)
            items = self.X[needed] @ state.components.T.astype(self.X.dtype)
        exact_pairs(queries, items, owner, listed, False, distances)
        return distances


class WeightedGram(Step):
    """``X' diag(weights) X`` as a sum over blocks of rows."""

    def __init__(self, X: Any, first: int = 0) -> None:
        self.X = X
        self.first = first

    def restrict(self, blocks: list[slice]) -> WeightedGram:
        """The same step with only the rows of some consecutive blocks."""
        first = blocks[0].start
        rows = slice(first - self.first, blocks[-1].stop - self.first)
        return WeightedGram(slice_rows(self.X, rows), first)

    def map_block(self, block: slice, columns: np.ndarray) -> np.ndarray:
        """The sum over a block of rows."""
        weights = columns[block]
        rows = self.X[block.start - self.first + np.flatnonzero(weights)]
        weights = weights[weights != 0].astype(rows.dtype)
        return (rows.T @ (weights[:, None] * rows)).astype(np.float64)


class LinearRankingLoss(RankingLoss):
    """SVM-MAP: the same loss with features ``q - x``, so that items are ranked by ``w'x``.

    The term ``w'q`` is the same for all items, so only the judgments of a query matter.
    """

    def update(self, sums: Sums) -> Plane:
        """The sum over q and x of ``A[q, x] (q - x)`` is ``-X'(column sums)``."""
        return Plane(-(sums.columns @ whole(self.X)), float(sums.loss))

    def _distances(self, queries: np.ndarray, state: Round) -> np.ndarray:
        assert state.items is not None
        return np.repeat(state.items.T, len(queries), axis=0)

    def _pair_distances(
        self,
        queries: np.ndarray,
        state: Round,
        owner: np.ndarray,
        listed: np.ndarray,
    ) -> np.ndarray:
        assert state.items is not None
        return state.items[listed, 0].astype(float)

    def _sums(self, block: np.ndarray, weights: Any, loss: float) -> Sums:
        return Sums(
            np.zeros((0, 0)), np.asarray(weights.sum(axis=0, dtype=float)), loss
        )


def _squares(X: Any, components: np.ndarray) -> np.ndarray:
    """Squared lengths of all embedded items, computed block by block."""
    squares = np.empty(len(X), dtype=X.dtype)
    map_ = components.T.astype(X.dtype)

    def work(rows: slice) -> None:
        items = X.streamed(rows) @ map_
        squares[rows] = np.einsum("ij,ij->i", items, items)

    for _ in thread_map(work, row_slices(len(X)), depth=8):
        pass
    return squares


def _products(weights: Any, X: Any) -> np.ndarray:
    """Weights, dense or sparse, times items."""
    if is_loaded(X):
        return weights @ whole(X)
    if scipy.sparse.issparse(weights):
        used = np.unique(weights.indices)
        return weights[:, used] @ X[used]
    products = np.zeros((len(weights), X.shape[1]))
    for rows in row_slices(len(X)):
        products += weights[:, rows] @ X.streamed(rows)
    return products
