"""Drawing WARP violators among embedded points: three strategies, chosen by their cost.

For N points in d dimensions, rank m, and batches of b triplets with r differences, a step embeds

- "drawn": only the points that are drawn, 2 b (2 + draws) d m flops;
- "gram": all points from their inner products, 2 N m (r + m) flops and memory for N^2 numbers;
- "lazy": the differences of its triplets, 2 r d m flops, and all points from time to time, 2 N d m.

"Lazy" draws among embeddings that are stale: those by a factor F0 of some steps ago. They are used
while ``|F - F0| <= staleness |F|`` in the Frobenius norm, so that a distance ``|F'(x - z)|`` errs
by at most ``staleness |F| |x - z|``. Only the choice of a violator and its number of draws depend
on them: a step takes the triplet with its distances by F, and none that does not violate the margin
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...._engine.parallel.threads import for_each
from ..points import Points
from .factors import DenseFactor, GramFactor, ScaledFactor
from .sampling import Sampling

if TYPE_CHECKING:
    from ...._engine.kernels.warp import Triplets

# Candidates of a triplet that are drawn together: first, and largest, number.
FIRST_WIDTH = 4
MAX_WIDTH = 256
SPARSE_COST = 8  # time of a flop in a sparse product, relative to a dense one
# Both sizes are fixed, so that threads do not change how products round.
SEARCH_SIZE = 32  # triplets whose distances from all items are computed together
MAX_DISTANCES = 2**20  # in the memory of a thread
EXPECTED_AGE = (
    8  # steps until all points are embedded anew, for the choice of a strategy
)


def draw_pairs(sampling: Sampling, first: int, size: int) -> Triplets:
    """Triplets with queries and relevant items, but no violators yet."""
    from ...._engine.kernels.warp import Triplets, draw_positives

    queries = sampling.queries(first, size)
    pos = np.full(size, -1)
    draw_positives(sampling.seed, first, queries, sampling.positives, pos)
    return Triplets(queries, pos, neg=np.full(size, -1), draws=np.zeros(size, int))


def unfinished(batch: Triplets, sampling: Sampling, n_draws: Any) -> np.ndarray:
    """Numbers of the triplets that have no violator after so many draws, and may draw more."""
    may_draw = sampling.negatives.max_draws[batch.queries] > n_draws
    return np.flatnonzero((batch.neg < 0) & may_draw)


class AllItems:
    """Strategy "gram": the embeddings of all points are kept up to date."""

    factor: DenseFactor | GramFactor

    def __init__(self, points: Points, factor: GramFactor) -> None:
        self.points = points
        self.factor = factor
        self.embedded = factor.embedded

    def differences(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Embedded differences of points."""
        return self.embedded[left] - self.embedded[right]

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from ...._engine.kernels.warp import draw_violators

        batch = draw_pairs(sampling, first, size)
        queries = self.embedded[self.points.query_rows[batch.queries]]
        items = self.embedded[: self.points.n_items]
        limits = np.empty(size)
        draw_violators(
            sampling.seed, first, batch, queries, items, sampling.negatives, limits
        )
        triplets = unfinished(batch, sampling, batch.draws)
        if triplets.size:
            self._search_all(sampling, first, batch, queries, limits, triplets)
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
        """Search all items for violators of the triplets whose first draws found none."""
        from ...._engine.kernels.warp import search_violators

        items = self.embedded[: self.points.n_items]
        squares = np.einsum("ij,ij->i", items, items)
        limits = limits - np.einsum("ij,ij->i", queries, queries)

        def work(chunk: np.ndarray) -> None:
            search_violators(
                sampling.seed,
                first,
                chunk,
                batch,
                (-2 * queries[chunk]) @ items.T,
                squares,
                limits,
                sampling.negatives,
            )

        width = max(1, min(SEARCH_SIZE, MAX_DISTANCES // len(items)))
        chunks = [triplets[i : i + width] for i in range(0, triplets.size, width)]
        for_each(work, chunks, flops=2.0 * items.size * triplets.size)

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """Take a step: move the factor, and the embeddings of all points with it."""
        self.factor.move(inner, tail)


class LazyItems(AllItems):
    """Strategy "lazy": all points are embedded anew once the factor has moved too far."""

    def __init__(self, points: Points, factor: DenseFactor, staleness: float) -> None:
        self.points = points
        self.factor = factor
        self.staleness = staleness
        # Violators are only chosen by them: single precision will do.
        self.embedded = np.empty((points.n, factor.matrix.shape[1]), np.float32)
        self._embed()

    def _embed(self) -> None:
        self.embedded_by = self.factor.matrix

        def work(rows: slice) -> None:
            self.embedded[rows] = self.points.embed(self.embedded_by, rows)

        flops = 2.0 * self.points.matrix.size * self.embedded.shape[1]
        for_each(work, self.points.blocks, flops=flops)

    def differences(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Differences of points, embedded by the factor as it is now."""
        return self.factor.embedded_differences(left, right)

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """Take a step: move the factor, and embed all points if it has moved too far."""
        self.factor.move(inner, tail)
        F = self.factor.matrix
        if norm(F - self.embedded_by) > self.staleness * norm(F):
            self._embed()


def norm(matrix: np.ndarray) -> float:
    """Frobenius norm."""
    return float(np.sqrt(np.vdot(matrix, matrix)))


class DrawnItems:
    """Strategy "drawn": points are embedded when drawn, those of a batch in one product."""

    def __init__(self, points: Points, factor: DenseFactor | ScaledFactor) -> None:
        self.points = points
        self.factor = factor

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.factor.rows(rows)

    def differences(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Embedded differences of points."""
        return self.factor.embedded_differences(left, right)

    def draw(self, sampling: Sampling, first: int, size: int) -> Triplets:
        """Triplets with their violators."""
        from ...._engine.kernels.warp import draw_candidates, scan_candidates

        seed = sampling.seed
        negatives = sampling.negatives
        batch = draw_pairs(sampling, first, size)
        queries = self.rows(self.points.query_rows[batch.queries])
        differences = (queries - self.rows(batch.pos)).astype(np.float64)
        limits = 1 + np.einsum("ij,ij->i", differences, differences)
        start = 0
        width = FIRST_WIDTH
        triplets = np.arange(size)
        while triplets.size:
            drawn = np.empty((triplets.size, width), dtype=np.int64)
            draw_candidates(
                seed, first, start, triplets, batch.queries, negatives, drawn
            )
            embedded = self.rows(np.maximum(drawn, 0).ravel())
            scan_candidates(start, triplets, batch, queries, limits, drawn, embedded)
            start += width
            width = min(2 * width, MAX_WIDTH)
            triplets = unfinished(batch, sampling, start)
        return batch

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """Take a step: move the factor."""
        self.factor.move(inner, tail)


def choose_strategy(points: Points, m: int, draws: float, options: Any) -> str:
    """The strategy with the fewest flops: "drawn", "all" or "gram" (if N^2 numbers fit in memory).

    A factor of nearly full rank soon loses directions, which "gram" cannot follow.
    """
    n, d = points.matrix.shape
    batch = options.batch_size
    n_drawn = batch * (2 + draws)
    if points.is_sparse:
        row = SPARSE_COST * points.matrix.nnz / n
        flops = {"drawn": n_drawn * (row + m) * m}
    else:
        # Updates of the factor, its Gram matrix and its step.
        update = d * m * (4 * batch + 5 * m)
        lazy = n * d * m / EXPECTED_AGE
        flops = {"drawn": n_drawn * d * m + update, "lazy": lazy + update}
    fits = n * n * points.matrix.dtype.itemsize <= options.max_memory * 2**20
    if fits and 2 * m <= d:
        flops["gram"] = n * m * (2 * batch + m)
    return min(flops, key=flops.__getitem__)
