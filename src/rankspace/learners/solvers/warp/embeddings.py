"""Embedded points while the metric moves, and violators among them: three ways, by their cost.

For N points in d dimensions, rank m, and batches of b triplets with r differences, a step embeds

- only what is drawn: 2 b (2 + draws) d m flops;
- all points anew: 2 N d m;
- all points by their inner products with the differences: 2 N m (r + m), and N^2 numbers to keep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...._engine.parallel.threads import for_each
from .factors import DenseFactor, GramFactor, Points, ScaledFactor
from .sampling import Sampling

FIRST_WIDTH, MOST_WIDTH = 4, 256  # candidates of a triplet that are looked at in one go
SPARSE_COST = 8  # flops of a dense product in the time of one of a sparse
# Triplets whose items are looked through together, and distances held at a time by each thread.
# Fixed, so that threads do not change how they round.
MOST_TOGETHER, DISTANCES = 32, 2**20


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
    pos, neg, draws = (np.full(size, fill) for fill in (-1, -1, 0))
    draw_positives(sampling.seed, first, queries, sampling.positives, pos)
    return Triplets(queries, pos, neg, draws)


class AllItems:
    """All points embedded at all times, anew or by their inner products."""

    def __init__(self, points: Points, factor: DenseFactor | GramFactor) -> None:
        self.points, self.factor = points, factor
        self._embed()

    def _embed(self) -> None:
        if isinstance(self.factor, GramFactor):
            self.embedded = self.factor.embedded
            return
        F = self.factor.matrix
        self.embedded = np.empty(
            (self.points.n, F.shape[1]), dtype=self.points.matrix.dtype
        )

        def work(part: slice) -> None:
            self.embedded[part] = self.points.embed(F, part)

        flops = 2.0 * self.points.matrix.size * F.shape[1]
        for_each(work, self.points.blocks, flops=flops)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.embedded[rows]

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from ...._engine.kernels.warp import draw_some

        batch = _begin(sampling, first, size)
        queries = self.embedded[self.points.query_rows[batch.queries]]
        items, limits = self.embedded[: self.points.n_items], np.empty(size)
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
        self._look_through(
            sampling, first, batch, queries, limits, (batch.neg < 0) & more
        )
        return batch

    def _look_through(
        self,
        sampling: Sampling,
        first: int,
        batch: Triplets,
        queries: np.ndarray,
        limits: np.ndarray,
        waiting: np.ndarray,
    ) -> None:
        """Draw on where a few draws were in vain, with the distances of all items at hand."""
        from ...._engine.kernels.warp import draw_on

        items, triplets = self.embedded[: self.points.n_items], np.flatnonzero(waiting)
        if not triplets.size:
            return
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
        self.points, self.factor = points, factor

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
        start, width, waiting = 0, FIRST_WIDTH, np.arange(size)
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


def choose_way(
    points: Points, m: int, batch: int, draws: float, max_memory: int
) -> str:
    """The cheapest way by flops: "drawn", "all" or "gram" (only if N^2 numbers fit the memory).

    A factor of nearly full rank soon loses directions, and only the factor itself can follow that.
    """
    n, d = points.matrix.shape
    if points.is_sparse:
        row = SPARSE_COST * points.matrix.nnz / n
        flops = {"drawn": batch * (2 + draws) * (row + m) * m}
    else:
        follow = (
            d * m * (2 * batch + 5 * m)
        )  # of the factor, its Gram matrix and its step
        flops = {
            "drawn": batch * (2 + draws) * d * m + follow,
            "all": n * d * m + follow,
        }
    fits = n * n * points.matrix.dtype.itemsize <= max_memory * 2**20
    if fits and 2 * m <= d:
        flops["gram"] = n * m * (2 * batch + m)
    return min(flops, key=flops.__getitem__)
