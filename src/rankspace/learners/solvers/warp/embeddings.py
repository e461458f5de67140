"""Drawing violators among embedded points: three strategies, chosen by their cost.

For N points in d dimensions, rank m, and batches of b triplets with r differences, a step embeds

- only what is drawn: 2 b (2 + draws) d m flops;
- all points anew: 2 N d m;
- all points by their inner products with the differences: 2 N m (r + m), and N^2 numbers to keep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._engine.parallel.threads import for_each
from ..points import Points
from .factors import DenseFactor, GramFactor, ScaledFactor
from .sampling import Sampling

# Candidates of a triplet that are drawn together, at first and at most.
FIRST_WIDTH = 4
MOST_WIDTH = 256
SPARSE_COST = 8  # flops of a dense product in the time of one of a sparse
# Both are fixed, so that threads do not change how products round.
MOST_TOGETHER = 32  # triplets whose distances from all items are computed together
DISTANCES = 2**20  # held at a time by each thread


class Triplets(NamedTuple):
    """Queries, a relevant item and a violator (or -1) for each, and the number of draws."""

    queries: np.ndarray
    pos: np.ndarray
    neg: np.ndarray
    draws: np.ndarray


def _begin(sampling: Sampling, first: int, size: int) -> Triplets:
    """Queries and positives; no violators yet."""
    from ...._engine.kernels.warp import draw_positives

    queries = sampling.queries(first, size)
    pos = np.full(size, -1)
    draw_positives(sampling.seed, first, queries, sampling.positives, pos)
    return Triplets(queries, pos, neg=np.full(size, -1), draws=np.zeros(size, int))


class AllItems:
    """All points embedded at all times, anew or by their inner products."""

    def __init__(self, points: Points, factor: DenseFactor | GramFactor) -> None:
        self.points = points
        self.factor = factor
        self._embed()

    def _embed(self) -> None:
        if isinstance(self.factor, GramFactor):
            self.embedded = self.factor.embedded
            return
        F = self.factor.matrix
        matrix = self.points.matrix
        self.embedded = np.empty((self.points.n, F.shape[1]), dtype=matrix.dtype)

        def work(part: slice) -> None:
            self.embedded[part] = self.points.embed(F, part)

        flops = 2.0 * matrix.size * F.shape[1]
        for_each(work, self.points.blocks, flops=flops)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.embedded[rows]

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from ...._engine.kernels.warp import draw_some

        batch = _begin(sampling, first, size)
        queries = self.embedded[self.points.query_rows[batch.queries]]
        items = self.embedded[: self.points.n_items]
        limits = np.empty(size)
        draw_some(
            sampling.seed,
            first,
            batch.queries,
            queries,
            batch.pos,
            items,
            sampling.negatives,
            sampling.most_draws,
            limits,
            batch.neg,
            batch.draws,
        )
        more = sampling.most_draws[batch.queries] > batch.draws
        waiting = np.flatnonzero((batch.neg < 0) & more)
        if waiting.size:
            self._search_all(sampling, first, batch, queries, limits, waiting)
        return batch

    def _search_all(
        self,
        sampling: Sampling,
        first: int,
        batch: Triplets,
        queries: np.ndarray,
        limits: np.ndarray,
        triplets: np.ndarray,
    ) -> None:
        """Draw on, with the distances of all items, where the first draws found no violator."""
        from ...._engine.kernels.warp import draw_on

        items = self.embedded[: self.points.n_items]
        squares = np.einsum("ij,ij->i", items, items)
        limits = limits - np.einsum("ij,ij->i", queries, queries)

        def work(part: np.ndarray) -> None:
            products = (-2 * queries[part]) @ items.T
            draw_on(
                sampling.seed,
                first,
                part,
                batch.queries,
                products,
                squares,
                limits,
                sampling.negatives,
                sampling.most_draws,
                batch.neg,
                batch.draws,
            )

        width = max(1, min(MOST_TOGETHER, DISTANCES // len(items)))
        parts = [triplets[i : i + width] for i in range(0, triplets.size, width)]
        for_each(work, parts, flops=2.0 * items.size * triplets.size)

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """Follow a step."""
        self.factor.move(inner, tail)
        self._embed()


class DrawnItems:
    """Points embedded when they are drawn, candidates of all triplets of a batch together."""

    def __init__(self, points: Points, factor: DenseFactor | ScaledFactor) -> None:
        self.points = points
        self.factor = factor

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.factor.rows(rows)

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from ...._engine.kernels.warp import draw_candidates, scan_candidates

        batch = _begin(sampling, first, size)
        queries = self.rows(self.points.query_rows[batch.queries])
        differences = (queries - self.rows(batch.pos)).astype(np.float64)
        limits = 1 + np.einsum("ij,ij->i", differences, differences)
        start = 0
        width = FIRST_WIDTH
        waiting = np.arange(size)
        while waiting.size:
            candidates = np.empty((waiting.size, width), dtype=np.int64)
            draw_candidates(
                sampling.seed,
                first,
                start,
                waiting,
                batch.queries,
                sampling.negatives,
                sampling.most_draws,
                candidates,
            )
            embedded = self.rows(np.maximum(candidates, 0).ravel())
            scan_candidates(
                start,
                waiting,
                queries,
                limits,
                candidates,
                embedded,
                batch.neg,
                batch.draws,
            )
            start += width
            width = min(2 * width, MOST_WIDTH)
            more = sampling.most_draws[batch.queries] > start
            waiting = np.flatnonzero((batch.neg < 0) & more)
        return batch

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """Follow a step."""
        self.factor.move(inner, tail)


def choose_strategy(points: Points, m: int, draws: float, options: Any) -> str:
    """The cheapest strategy by flops: "drawn", "all" or "gram" (if N^2 numbers fit the memory).

    A factor of nearly full rank soon loses directions, and only the factor itself can follow that.
    """
    n, d = points.matrix.shape
    batch = options.batch_size
    n_drawn = batch * (2 + draws)
    if points.is_sparse:
        row = SPARSE_COST * points.matrix.nnz / n
        flops = {"drawn": n_drawn * (row + m) * m}
    else:
        # Updates of the factor, its Gram matrix and its step.
        follow = d * m * (2 * batch + 5 * m)
        flops = {"drawn": n_drawn * d * m + follow, "all": n * d * m + follow}
    fits = n * n * points.matrix.dtype.itemsize <= options.max_memory * 2**20
    if fits and 2 * m <= d:
        flops["gram"] = n * m * (2 * batch + m)
    return min(flops, key=flops.__getitem__)
