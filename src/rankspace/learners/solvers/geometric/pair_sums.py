"""Scatter of all pairs as sums over blocks of points, or of judgments; no pair is ever formed."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from ...._engine.parallel import Step, current_backend

BLOCK = 4096  # points
FEW_ROWS = 1024  # of judgments, for which sums of their points are kept in every block
ENTRIES = 2**16  # judgments of a block
CENTRING = 4096  # points whose mean all are taken from


class Pairs(NamedTuple):
    """Items, and after them separate queries, from a point amid them, in double precision.

    They are read block by block, so that they may lie in a file.
    """

    X: np.ndarray
    separate: np.ndarray | None
    centre: np.ndarray
    query_rows: np.ndarray

    @property
    def n_items(self) -> int:
        """Points that are items."""
        return len(self.X)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.X) + (0 if self.separate is None else len(self.separate))

    @property
    def points(self) -> np.ndarray:
        """All of them."""
        parts = (self.X,) if self.separate is None else (self.X, self.separate)
        return np.concatenate([self._centred(part) for part in parts])

    def between(self, first: int, last: int) -> np.ndarray:
        """A run of them that does not go over from items to queries."""
        n = self.n_items
        if first < n:
            return self._centred(self.X[first:last])
        assert self.separate is not None
        return self._centred(self.separate[first - n : last - n])

    def some(self, which: np.ndarray) -> np.ndarray:
        """Those of ascending numbers."""
        cut = int(np.searchsorted(which, self.n_items))
        items = self._centred(self.X[which[:cut]])
        if self.separate is None or cut == which.size:
            return items
        return np.concatenate(
            (items, self._centred(self.separate[which[cut:] - self.n_items]))
        )

    def cut(self, first: int, last: int) -> Self:
        """A run of them, numbered from 0."""
        n = self.n_items
        rest = None
        if self.separate is not None:
            rest = self.separate[max(first - n, 0) : max(last - n, 0)]
        return self._replace(X=self.X[first : min(last, n)], separate=rest)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Runs of points of a fixed size."""
        runs = [(0, self.n_items), (self.n_items, self.n)]
        return [
            (a, min(a + BLOCK, end))
            for start, end in runs
            for a in range(start, end, BLOCK)
        ]

    def _centred(self, points: np.ndarray) -> np.ndarray:
        return np.subtract(points, self.centre, dtype=np.float64)


def approximate_mean(X: np.ndarray) -> np.ndarray:
    """The mean of a few thousand rows spread over all."""
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), CENTRING)).astype(int))
    return X[rows].mean(axis=0, dtype=np.float64)


class PointStep(Step):
    """Weighted grams of points, and sums of the points that each row of some tables names."""

    def __init__(
        self, pairs: Pairs, counts: list[np.ndarray], tables: list[Any], first: int = 0
    ) -> None:
        self.pairs, self.counts, self.tables, self.first = pairs, counts, tables, first

    def restrict(self, blocks: list[tuple[int, int]]) -> PointStep:
        """The same over some blocks that follow each other."""
        a, b = blocks[0][0], blocks[-1][1]
        at = slice(a - self.first, b - self.first)
        counts, tables = [c[at] for c in self.counts], [t[:, at] for t in self.tables]
        pairs = self.pairs.cut(at.start, at.stop)._replace(
            query_rows=np.zeros(0, dtype=int)
        )
        return PointStep(pairs, counts, tables, a)

    def map_block(self, block: tuple[int, int], state: None) -> tuple[Any, ...]:
        """Sums over a run of points."""
        a, b = block[0] - self.first, block[1] - self.first
        Z = self.pairs.between(a, b)
        grams = tuple(_weighted_gram(Z, counts[a:b]) for counts in self.counts)
        return grams, tuple(table[:, a:b] @ Z for table in self.tables)


def _weighted_gram(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    rooted = points * np.sqrt(counts)[:, None]
    return rooted.T @ rooted


class RowStep(Step):
    """For each of some tables, the sum over rows of (asked points) x (listed points)."""

    def __init__(self, pairs: Pairs, asked: Any, tables: list[Any]) -> None:
        self.pairs, self.asked, self.tables = pairs, asked, tables

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Runs of rows with about as many entries each."""
        ends = np.cumsum(sum(np.diff(table.indptr) for table in self.tables))
        cuts = np.flatnonzero(np.diff(ends // ENTRIES)) + 1
        edges = [0, *cuts.tolist(), ends.size]
        return list(itertools.pairwise(edges))

    def map_block(self, block: tuple[int, int], state: None) -> tuple[np.ndarray, ...]:
        """Sums over a run of rows."""
        asked = self._points_of(self.asked[block[0] : block[1]])
        return tuple(
            asked.T @ self._points_of(t[block[0] : block[1]]) for t in self.tables
        )

    def _points_of(self, table: Any) -> np.ndarray:
        columns = np.unique(table.indices)
        found = np.zeros((table.shape[0], self.pairs.centre.size))
        for at in range(0, columns.size, 2 * BLOCK):
            some = columns[at : at + 2 * BLOCK]
            found += table[:, some] @ self.pairs.some(some)
        return found


class PairSums(NamedTuple):
    """Grams with the given counts, and for each table the cross sums of asked and listed points."""

    grams: tuple[np.ndarray, ...]
    crosses: tuple[np.ndarray, ...]


def pair_sums(
    pairs: Pairs,
    counts: list[np.ndarray],
    asked: Any,
    tables: list[Any],
    *,
    over_all: bool,
) -> PairSums:
    """Sums over all points; ``asked`` and ``tables`` are rows of judgments by points.

    With ``over_all``, the last cross is that of everything asked and all items.
    """
    few, n = asked.shape[0] <= FEW_ROWS, pairs.n
    columns = [scipy.sparse.csc_array(t) for t in (asked, *tables)] if few else []
    if over_all:
        is_item = (np.arange(n) < pairs.n_items).astype(float)
        columns += [np.asarray(asked.sum(axis=0)).reshape(1, n), is_item.reshape(1, n)]
    grams, listed = current_backend().reduce(
        PointStep(pairs, counts, columns), pairs.blocks
    )
    if few:
        crosses = tuple(listed[0].T @ other for other in listed[1 : len(tables) + 1])
    else:
        step = RowStep(pairs, asked, tables)
        crosses = current_backend().reduce(step, step.blocks)
    if over_all:
        crosses = (*crosses, listed[-2].T @ listed[-1])
    return PairSums(grams, crosses)
