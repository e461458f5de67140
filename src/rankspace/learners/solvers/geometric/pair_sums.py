"""Scatter sums of all pairs, over blocks of points or of judgments; no pair is ever formed."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from ..scaling import approximate_mean
from .lists import even_runs

BLOCK = 4096  # points
FEW_ROWS = 1024  # of judgments, for which sums of their points are kept in every block
ENTRIES = 2**16  # judgments of a block


class CentredPoints(NamedTuple):
    """Items, then separate queries, centred at about the mean of the items in double precision.

    They are read block by block, so that they may lie in a file.
    """

    X: np.ndarray
    queries: np.ndarray | None
    centre: np.ndarray
    query_rows: np.ndarray

    @classmethod
    def of(
        cls, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> CentredPoints:
        """Items and queries; no difference of two points depends on the centre."""
        query_rows = relevance.query_items
        if queries is not None:
            query_rows = len(X) + np.arange(len(queries))
        return cls(X, queries, approximate_mean(X), query_rows)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.X)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.X) + (0 if self.queries is None else len(self.queries))

    def all(self) -> np.ndarray:
        """All points."""
        return self.take(np.arange(self.n))

    def between(self, first: int, last: int) -> np.ndarray:
        """A run of points, either all items or all queries."""
        n = self.n_items
        if first < n:
            return self._centred(self.X[first:last])
        assert self.queries is not None
        return self._centred(self.queries[first - n : last - n])

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Points of ascending numbers."""
        cut = int(np.searchsorted(numbers, self.n_items))
        items = self._centred(self.X[numbers[:cut]])
        if self.queries is None or cut == numbers.size:
            return items
        queries = self._centred(self.queries[numbers[cut:] - self.n_items])
        return np.concatenate((items, queries))

    def cut(self, first: int, last: int) -> Self:
        """A run of points, numbered from 0; which of them are queries is left out."""
        n = self.n_items
        queries = None
        if self.queries is not None:
            queries = self.queries[max(first - n, 0) : max(last - n, 0)]
        return self._replace(
            X=self.X[first : min(last, n)],
            queries=queries,
            query_rows=np.zeros(0, dtype=int),
        )

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Runs of points of a fixed size, first of items, then of queries."""
        blocks = []
        for start, end in ((0, self.n_items), (self.n_items, self.n)):
            for first in range(start, end, BLOCK):
                blocks.append((first, min(first + BLOCK, end)))
        return blocks

    def _centred(self, points: np.ndarray) -> np.ndarray:
        return np.subtract(points, self.centre, dtype=np.float64)


class PointStep(Step):
    """Weighted grams of points, and for each row of some tables the sum of its points."""

    def __init__(
        self,
        points: CentredPoints,
        counts: list[np.ndarray],
        tables: list[Any],
        first: int = 0,
    ) -> None:
        self.points = points
        self.counts = counts
        self.tables = tables
        self.first = first

    def restrict(self, blocks: list[tuple[int, int]]) -> PointStep:
        """The same over some blocks that follow each other."""
        first = blocks[0][0]
        rows = slice(first - self.first, blocks[-1][1] - self.first)
        counts = [count[rows] for count in self.counts]
        tables = [table[:, rows] for table in self.tables]
        return PointStep(self.points.cut(rows.start, rows.stop), counts, tables, first)

    def map_block(self, block: tuple[int, int], state: None) -> tuple[Any, ...]:
        """Sums over a run of points."""
        rows = slice(block[0] - self.first, block[1] - self.first)
        Z = self.points.between(rows.start, rows.stop)
        grams = tuple(_weighted_gram(Z, counts[rows]) for counts in self.counts)
        return grams, tuple(table[:, rows] @ Z for table in self.tables)


def _weighted_gram(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    rooted = points * np.sqrt(counts)[:, None]
    return rooted.T @ rooted


class RowStep(Step):
    """For each table of items, sums over rows of (weighted queries) x (listed items)."""

    def __init__(
        self, points: CentredPoints, query_weights: Any, tables: list[Any]
    ) -> None:
        self.points = points
        self.query_weights = query_weights
        self.tables = tables

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Runs of rows with about as many entries each."""
        sizes = sum(np.diff(table.indptr) for table in self.tables)
        return even_runs(np.cumsum(sizes), ENTRIES)

    def map_block(self, block: tuple[int, int], state: None) -> tuple[np.ndarray, ...]:
        """Sums over a run of rows."""
        rows = slice(*block)
        queries = self._row_sums(self.query_weights[rows])
        return tuple(queries.T @ self._row_sums(table[rows]) for table in self.tables)

    def _row_sums(self, table: Any) -> np.ndarray:
        """The weighted sum of the points of each row."""
        columns = np.unique(table.indices)
        sums = np.zeros((table.shape[0], self.points.centre.size))
        for start in range(0, columns.size, 2 * BLOCK):
            block = columns[start : start + 2 * BLOCK]
            sums += table[:, block] @ self.points.take(block)
        return sums


class PairSums(NamedTuple):
    """Grams with the given counts, and for each table the cross sums of queries and items."""

    grams: tuple[np.ndarray, ...]
    crosses: tuple[np.ndarray, ...]


def pair_sums(
    points: CentredPoints,
    counts: list[np.ndarray],
    query_weights: Any,
    tables: list[Any],
    *,
    over_all: bool,
) -> PairSums:
    """Sums over all points; ``query_weights`` and ``tables`` are rows of judgments by points.

    With ``over_all``, the last cross sum is that of all queries and all items.
    """
    few = query_weights.shape[0] <= FEW_ROWS
    columns = []
    if few:
        columns = [scipy.sparse.csc_array(table) for table in (query_weights, *tables)]
    if over_all:
        is_item = np.arange(points.n) < points.n_items
        columns.append(np.asarray(query_weights.sum(axis=0)).reshape(1, -1))
        columns.append(is_item.astype(float).reshape(1, -1))
    step = PointStep(points, counts, columns)
    grams, sums = current_backend().reduce(step, points.blocks)
    if few:
        crosses = tuple(sums[0].T @ items for items in sums[1 : len(tables) + 1])
    else:
        rows = RowStep(points, query_weights, tables)
        crosses = current_backend().reduce(rows, rows.blocks)
    if over_all:
        crosses = (*crosses, sums[-2].T @ sums[-1])
    return PairSums(grams, crosses)
