"""Stochastic descent of the WARP loss over metrics of fixed rank.

The loss of a triplet is ``(1 - reg) w [1 + d(x+) - d(x-)]_+ + reg d(x+)`` with w in [0, 1] the
weight of the violator; a step goes against the mean gradient of a batch. Its length is that of
"distance over gradients": the farthest that W has been from its start, over the root of the sum of
the squared gradient norms (Ivgi, Hinder and Carmon 2023). Both are known from matrices of size m.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...._engine.parallel.threads import single_threaded_blas
from .embeddings import AllItems, DrawnItems, Triplets, choose_way
from .factors import DenseFactor, GramFactor, Points, ProductTable, ScaledFactor
from .riemannian import DAMPING, relative_change, second_order
from .sampling import Sampling

# Relative change of W in one step, at most: beyond, a second-order retraction is no guide.
MOST_CHANGE = 0.5
FIRST_DISTANCE = 0.01  # of |W|, before the first step has been made


@dataclass
class Progress:
    """All that decides how a descent goes on; the rest is made of it anew at each stop."""

    F: np.ndarray
    start: np.ndarray
    n_triplets: int = 0
    distance: float = 0.0
    squares: float = 0.0
    multiplier: float = 1.0
    draws: float = 1.0


@dataclass
class Options:
    """How triplets become steps."""

    reg: float = 0.01
    regularizer: str = "pairs"
    batch_size: int = 32
    max_memory: int = 512


@dataclass
class Statistics:
    """What a stretch of descent has seen."""

    loss: float = 0.0
    draws: int = 0
    violators: int = 0
    length: float = 0.0
    way: str = ""

    def add(self, later: Statistics) -> Statistics:
        """This stretch and the one after it."""
        return Statistics(
            self.loss + later.loss,
            self.draws + later.draws,
            self.violators + later.violators,
            later.length,
            later.way,
        )


@dataclass
class Descent:
    """Goes on from a `Progress` for a number of triplets, and leaves it changed."""

    points: Points
    sampling: Sampling
    options: Options
    _table: ProductTable | None = field(default=None, repr=False)

    def run(self, progress: Progress, n_triplets: int) -> Statistics:
        """Draw so many triplets, in whole batches, and take their steps."""
        with single_threaded_blas():
            return self._run(progress, n_triplets)

    def _run(self, progress: Progress, n_triplets: int) -> Statistics:
        options = self.options
        way = choose_way(
            self.points,
            progress.F.shape[1],
            options.batch_size,
            progress.draws,
            options.max_memory,
        )
        space = self._space(progress, way)
        tally = self._go(progress, space, n_triplets)
        progress.F = space.factor.matrix
        tally.way = way
        return tally

    def _space(self, progress: Progress, way: str) -> AllItems | DrawnItems:
        points, F, start = self.points, progress.F, progress.start
        if way == "gram":
            if self._table is None:
                self._table = ProductTable.of(points, start)
            return AllItems(points, GramFactor(points, F, start, self._table))
        if points.is_sparse:
            return DrawnItems(points, ScaledFactor(points, F, start))
        factor = DenseFactor(points, F, start)
        return AllItems(points, factor) if way == "all" else DrawnItems(points, factor)

    def _go(
        self, progress: Progress, space: AllItems | DrawnItems, n_triplets: int
    ) -> Statistics:
        tally, size = Statistics(), self.options.batch_size
        start_norm = float(np.linalg.norm(progress.start.T @ progress.start))
        n_batches = -(-n_triplets // size)
        for _ in range(n_batches):
            batch = space.draw(self.sampling, progress.n_triplets, size)
            weights = self.sampling.violator_weights(
                batch.queries, batch.neg, batch.draws
            )
            tally.length = self._step(progress, space, batch, weights, start_norm)
            progress.n_triplets += size
            tally.draws += int(batch.draws.sum())
            tally.violators += int(np.sum(batch.neg >= 0))
            tally.loss += float(weights.sum())
        progress.draws = tally.draws / (n_batches * size)
        return tally

    def _step(
        self,
        progress: Progress,
        space: AllItems | DrawnItems,
        batch: Triplets,
        weights: np.ndarray,
        start_norm: float,
    ) -> float:
        left, right, c = self._gradient(batch, weights)
        gram, cross = space.factor.gram, space.factor.cross
        differences = (space.rows(left) - space.rows(right)).astype(
            np.float64, copy=False
        )
        A = relative_change(gram, differences.T, DAMPING)
        S = c[:, None] * A.T
        inside, own = A @ S, self._own_gradient(progress, len(A))
        pulled = space.factor.pull(left, right, S)
        progress.squares += squared_norm(gram, inside, own, pulled)
        progress.distance = max(progress.distance, distance(gram, cross, start_norm))
        inside = inside + np.diag(own)
        length = step_length(progress, start_norm, float(np.linalg.norm(inside)))
        inner, tail = second_order(-length * inside)
        tail *= -length
        space.move(inner + own[:, None] * tail, tail)
        return length

    def _gradient(
        self, batch: Triplets, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of points, and what their outer products weigh in the mean gradient."""
        reg = self.options.reg
        share = self.sampling.query_weights[batch.queries] / batch.queries.size
        hinge = share * (1 - reg) * weights
        pull = hinge + share * reg if self.options.regularizer == "pairs" else hinge
        found = batch.neg >= 0
        rows = self.points.query_rows[batch.queries]
        left = np.concatenate((rows, rows[found]))
        right = np.concatenate((batch.pos, batch.neg[found]))
        return left, right, np.concatenate((pull, -hinge[found]))

    def _own_gradient(self, progress: Progress, m: int) -> np.ndarray:
        """The diagonal of D, with ``F D F'`` an unbiased estimate of ``reg W``: a column each."""
        if self.options.regularizer != "frobenius":
            return np.zeros(m)
        from ...._engine.kernels.warp import draw_columns

        size = self.options.batch_size
        columns = np.empty(size, dtype=np.int64)
        draw_columns(self.sampling.seed, progress.n_triplets, m, columns)
        return self.options.reg * m * np.bincount(columns, minlength=m) / size


def distance(gram: np.ndarray, cross: np.ndarray, start_norm: float) -> float:
    """``|W - W0|`` from ``F'F``, ``F0'F`` and ``|W0|``."""
    square = np.vdot(gram, gram) - 2 * np.vdot(cross, cross) + start_norm**2
    return float(np.sqrt(max(square, 0.0)))


def step_length(progress: Progress, start_norm: float, change: float) -> float:
    """Distance over gradients, cut where a step would change W by too large a part of it."""
    farthest = max(progress.distance, FIRST_DISTANCE * start_norm)
    length = progress.multiplier * farthest / max(np.sqrt(progress.squares), 1e-300)
    return float(min(length, MOST_CHANGE / max(change, 1e-300)))


def squared_norm(
    G: np.ndarray, Q: np.ndarray, own: np.ndarray, pulled: np.ndarray
) -> float:
    """Squared norm of the gradient ``V C V' + F D F'`` projected on the tangent space.

    That is ``2 |Z P|^2 - |P Z P|^2`` with P the projection on the range of F, where
    ``Z P = (V S + F D) F'`` and ``P Z P = F (Q + D) F'``; G is ``F'F``, ``F' V S = G Q``, and D has
    the diagonal ``own``.
    """
    inside = Q @ G
    if own.any():
        mixed = inside * own
        pulled = pulled + mixed + mixed.T + own[:, None] * G * own
        inside = inside + own[:, None] * G
    return max(float(2 * np.vdot(pulled, G) - np.vdot(inside, inside.T)), 0.0)
