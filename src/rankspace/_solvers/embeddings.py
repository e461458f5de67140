"""Embedded points while the metric moves, and violators among them: three ways, by their cost.

For N points in d dimensions, rank m, and batches of b triplets with r differences, a step embeds

- only what is drawn: 2 b (2 + draws) d m flops;
- all points anew: 2 N d m;
- all points by their inner products with the differences: 2 N m (r + m), and N^2 numbers to keep.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .._threads import n_threads
from .factors import DenseFactor, GramFactor, Points, ScaledFactor
from .warp import Sampling

BLOCK = 2048  # rows of a product; fixed, so that threads do not change how it rounds
FIRST_WIDTH, MOST_WIDTH = 4, 256
SPARSE_COST = 8  # flops of a dense product in the time of one of a sparse


class Triplets(NamedTuple):
    """Queries, a relevant item and a violator (or -1) for each, and the number of draws."""

    queries: np.ndarray
    pos: np.ndarray
    neg: np.ndarray
    draws: np.ndarray


class Crew:
    """Threads that live as long as a fit."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(n_threads()) if n_threads() > 1 else None

    def each(self, work: Any, parts: list[Any]) -> None:
        """Do all parts; each writes where no other does."""
        if self._pool is None or len(parts) == 1:
            for part in parts:
                work(part)
        else:
            list(self._pool.map(work, parts))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


def _begin(sampling: Sampling, first: int, size: int) -> Triplets:
    """Queries and positives; no violators yet."""
    from .._kernels.warp import draw_positives

    queries = sampling.queries(first, size)
    pos, neg, draws = (np.full(size, fill) for fill in (-1, -1, 0))
    draw_positives(sampling.seed, first, queries, sampling.positives, pos)
    return Triplets(queries, pos, neg, draws)


class AllItems:
    """All points embedded at all times, anew or by their inner products."""

    def __init__(self, points: Points, F: np.ndarray, products: np.ndarray | None = None) -> None:
        self.points, self.products = points, products
        self.crew = Crew()
        n = points.matrix.shape[0]
        self._parts = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]
        self._work = 0
        self.factor: DenseFactor | GramFactor
        if products is None:
            self.factor = DenseFactor(points, F)
        else:
            self.factor = GramFactor(points, F, products)
        self.embedded = np.empty((n, F.shape[1]), dtype=points.matrix.dtype)
        self._embed_all(F)

    def _embed_all(self, F: np.ndarray) -> None:
        def work(part: slice) -> None:
            self.embedded[part] = self.points.embed(F, part)

        self.crew.each(work, self._parts)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.embedded[rows]

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from .._kernels.warp import find_violators

        batch = _begin(sampling, first, size)
        queries = self.embedded[self.points.query_rows[batch.queries]]
        items = self.embedded[: self.points.n_items]

        def work(part: slice) -> None:
            find_violators(
                sampling.seed, first + part.start, batch.queries[part], queries[part],
                batch.pos[part], items, sampling.negatives, sampling.most_draws, batch.neg[part],
                batch.draws[part],
            )  # fmt: skip

        # Waking a thread costs as much as some hundred draws.
        n_parts = n_threads() if self._work > 2000 else 1
        width = -(-size // n_parts)
        self.crew.each(work, [slice(start, start + width) for start in range(0, size, width)])
        self._work = int(batch.draws.sum())
        return batch

    def move(self, inner: np.ndarray, tail: np.ndarray, outer: np.ndarray) -> None:
        """Follow a step; ``outer = S tail``."""
        self.factor.move(inner, tail)
        if isinstance(self.factor, DenseFactor):
            self._embed_all(self.factor.matrix)
            return
        differences, dtype = self.factor.differences, self.embedded.dtype
        inner, outer = inner.astype(dtype), outer.astype(dtype)

        def work(part: slice) -> None:
            self.embedded[part] = self.embedded[part] @ inner + differences[:, part].T @ outer

        self.crew.each(work, self._parts)


class DrawnItems:
    """Points embedded when they are drawn, candidates of all triplets of a batch together."""

    def __init__(self, points: Points, F: np.ndarray) -> None:
        self.points = points
        self.crew = Crew()
        self.factor = (ScaledFactor if points.is_sparse else DenseFactor)(points, F)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        if isinstance(self.factor, ScaledFactor):
            return self.factor.embed(rows)
        return self.points.embed(self.factor.matrix, rows)

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from .._kernels.warp import draw_candidates, scan_candidates

        batch = _begin(sampling, first, size)
        queries = self.rows(self.points.query_rows[batch.queries])
        differences = (queries - self.rows(batch.pos)).astype(np.float64)
        limits = 1 + np.einsum("ij,ij->i", differences, differences)
        start, width, open_ = 0, FIRST_WIDTH, np.arange(size)
        while open_.size:
            candidates = np.empty((open_.size, width), dtype=np.int64)
            draw_candidates(
                sampling.seed, first, start, open_, batch.queries, sampling.negatives,
                sampling.most_draws, candidates,
            )  # fmt: skip
            embedded = self.rows(np.maximum(candidates, 0).ravel())
            scan_candidates(
                start, open_, queries, limits, candidates, embedded, batch.neg, batch.draws
            )
            start += width
            width = min(2 * width, MOST_WIDTH)
            more = sampling.most_draws[batch.queries] > start
            open_ = np.flatnonzero((batch.neg < 0) & more)
        return batch

    def move(self, inner: np.ndarray, tail: np.ndarray, outer: np.ndarray) -> None:
        """Follow a step; ``outer = S tail``."""
        self.factor.move(inner, tail)


def choose_way(points: Points, m: int, batch: int, draws: float, max_memory: int) -> str:
    """The cheapest way by flops: "drawn", "all" or "gram" (only if N^2 numbers fit the memory)."""
    n, d = points.matrix.shape
    cost = float(d)
    if points.is_sparse:
        cost = SPARSE_COST * max(points.matrix.nnz / n, 1.0)
    flops = {"drawn": batch * (2 + draws) * (cost * m + (m * m if points.is_sparse else 0))}
    if not points.is_sparse:
        flops["all"] = n * cost * m
        # The factor follows at O(d m (r + 2 m)) where it is kept, at no such cost by products.
        for way in flops:
            flops[way] += d * m * (2 * batch + 2 * m)
    if n * n * points.matrix.dtype.itemsize <= max_memory * 2**20:
        flops["gram"] = n * m * (2 * batch + m)
    return min(flops, key=flops.__getitem__)


def embeddings(points: Points, F: np.ndarray, way: str, products: Any) -> AllItems | DrawnItems:
    """Points embedded in one of the ways."""
    if way == "drawn":
        return DrawnItems(points, F)
    return AllItems(points, F, products if way == "gram" else None)


def inner_products(points: Points) -> np.ndarray:
    """All inner products of points, in blocks of rows so that a sparse matrix needs no more."""
    n = points.matrix.shape[0]
    products = np.empty((n, n), dtype=points.matrix.dtype)
    for start in range(0, n, BLOCK):
        rows = points.matrix[start : start + BLOCK] @ points.matrix.T
        products[start : start + BLOCK] = rows.toarray() if points.is_sparse else rows
    return products
