"""Scatter sums of all pairs, over blocks of points or of judgments; no pair is ever formed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...._engine.parallel import Step, current_backend
from ..points import Points, slice_rows
from ..scaling import row_slices
from .lists import even_runs

COLUMNS = 8192  # points that are read together
FEW_ROWS = 1024  # of judgments, for which sums of their points are kept in every block
ENTRIES = 2**16  # judgments of a block


class PointStep(Step):
    """Weighted grams of points, and for each row of some tables the sum of its points."""

    def __init__(
        self,
        matrix: Any,
        counts: list[np.ndarray],
        tables: list[Any],
        first: int = 0,
    ) -> None:
        self.matrix = matrix
        self.counts = counts
        self.tables = tables
        self.first = first

    def restrict(self, blocks: list[slice]) -> PointStep:
        """The same over some blocks that follow each other."""
        first = blocks[0].start
        rows = slice(first - self.first, blocks[-1].stop - self.first)
        counts = [count[rows] for count in self.counts]
        tables = [table[:, rows] for table in self.tables]
        return PointStep(slice_rows(self.matrix, rows), counts, tables, first)

    def map_block(self, block: slice, state: None) -> tuple[Any, ...]:
        """Sums over a run of points."""
        rows = slice(block.start - self.first, block.stop - self.first)
        Z = self.matrix[rows]
        grams = tuple(_weighted_gram(Z, counts[rows]) for counts in self.counts)
        return grams, tuple(table[:, rows] @ Z for table in self.tables)


def _weighted_gram(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    rooted = points * np.sqrt(counts)[:, None]
    return rooted.T @ rooted


class RowStep(Step):
    """For each table of items, sums over rows of (weighted queries) x (listed items)."""

    def __init__(self, matrix: Any, query_weights: Any, tables: list[Any]) -> None:
        self.matrix = matrix
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
        sums = np.zeros((table.shape[0], self.matrix.shape[1]))
        for start in range(0, columns.size, COLUMNS):
            block = columns[start : start + COLUMNS]
            sums += table[:, block] @ self.matrix[block]
        return sums


class PairSums(NamedTuple):
    """Grams with the given counts, and for each table the cross sums of queries and items."""

    grams: tuple[np.ndarray, ...]
    crosses: tuple[np.ndarray, ...]


def pair_sums(
    points: Points,
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
    step = PointStep(points.matrix, counts, columns)
    grams, sums = current_backend().reduce(step, row_slices(points.n))
    if few:
        crosses = tuple(sums[0].T @ items for items in sums[1 : len(tables) + 1])
    else:
        rows = RowStep(points.matrix, query_weights, tables)
        crosses = current_backend().reduce(rows, rows.blocks)
    if over_all:
        crosses = (*crosses, sums[-2].T @ sums[-1])
    return PairSums(grams, crosses)
