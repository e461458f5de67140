"""Riemannian SGD on the WARP loss over metrics of fixed rank.

The loss of a triplet is ``(1 - reg) w [1 + d(x+) - d(x-)]_+ + reg d(x+)`` with w in [0, 1] the
weight of the violator; a step goes against the mean gradient of a batch. With a graph over the
items, each triplet brings a random edge (x, z) and adds ``graph_reg d(x, z)``, which estimates the
mean over all edges without bias. The learning rate is
"distance over gradients": the farthest that W has been from its start, over the root of the sum of
the squared gradient norms (Ivgi, Hinder and Carmon 2023). Both are known from matrices of size m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...._engine.parallel import check_interruption
from ...._engine.parallel.threads import single_threaded_blas
from ..points import Points
from .embeddings import AllItems, DrawnItems, LazyItems, choose_strategy
from .factors import DenseFactor, GramFactor, ProductTable, ScaledFactor
from .riemannian import damping, keep_rank, lift, second_order, solve
from .sampling import Sampling

if TYPE_CHECKING:
    from ...._engine.kernels.warp import Triplets

FIRST_DISTANCE = 0.01  # distance before the first step, as a share of |W|


@dataclass
class Progress:
    """State of the descent: all that decides the next step."""

    F: np.ndarray
    start: np.ndarray
    n_triplets: int = 0
    distance: float = 0.0
    squares: float = 0.0
    multiplier: float = 1.0
    draws: float = 1.0


@dataclass
class Options:
    """Options of a step: regularisation, batch size and memory, and the weight of edges.

    ``staleness`` is how far the factor may move, relative to its norm, before all points are
    embedded anew for the draws; see `embeddings`.
    """

    reg: float = 0.01
    regularizer: str = "pairs"
    batch_size: int = 32
    max_memory: int = 512
    graph_reg: float = 0.0
    staleness: float = 0.1


@dataclass
class Statistics:
    """Statistics of some triplets: loss, draws, violators, last step length, strategy."""

    loss: float = 0.0
    draws: int = 0
    violators: int = 0
    length: float = 0.0
    strategy: str = ""

    def add(self, later: Statistics) -> Statistics:
        """Statistics of these triplets and of later ones."""
        return Statistics(
            self.loss + later.loss,
            self.draws + later.draws,
            self.violators + later.violators,
            later.length,
            later.strategy,
        )


def no_edges() -> np.ndarray:
    """A graph without edges."""
    return np.empty((0, 2), dtype=np.int64)


@dataclass
class Descent:
    """Riemannian SGD: takes steps for a number of triplets, updating a `Progress` in place.

    The rows of ``edges`` are pairs of items that are to stay near each other.
    """

    points: Points
    sampling: Sampling
    options: Options
    edges: np.ndarray = field(default_factory=no_edges)
    _table: ProductTable | None = field(default=None, repr=False)

    def run(self, progress: Progress, n_triplets: int) -> Statistics:
        """Draw a number of triplets, in whole batches, and take a step for each batch."""
        with single_threaded_blas():
            return self._run(progress, n_triplets)

    def _run(self, progress: Progress, n_triplets: int) -> Statistics:
        rank = progress.F.shape[1]
        strategy = choose_strategy(self.points, rank, progress.draws, self.options)
        space = self._space(progress, strategy)
        statistics = self._take_steps(progress, space, n_triplets)
        progress.F = keep_rank(space.factor.matrix)
        statistics.strategy = strategy
        return statistics

    def _space(self, progress: Progress, strategy: str) -> AllItems | DrawnItems:
        points = self.points
        F = progress.F
        start = progress.start
        if strategy == "gram":
            if self._table is None:
                self._table = ProductTable.of(points, start)
            return AllItems(points, GramFactor(points, F, start, self._table))
        if points.is_sparse:
            return DrawnItems(points, ScaledFactor(points, F, start))
        if strategy == "lazy":
            factor = DenseFactor(points, F, start)
            return LazyItems(points, factor, self.options.staleness)
        return DrawnItems(points, DenseFactor(points, F, start))

    def _take_steps(
        self, progress: Progress, space: AllItems | DrawnItems, n_triplets: int
    ) -> Statistics:
        statistics = Statistics()
        size = self.options.batch_size
        start_norm = float(np.linalg.norm(progress.start.T @ progress.start))
        n_batches = -(-n_triplets // size)
        for _ in range(n_batches):
            check_interruption()
            batch = space.draw(self.sampling, progress.n_triplets, size)
            weights = self.sampling.violator_weights(
                batch.queries, batch.neg, batch.draws
            )
            statistics.length = self._step(progress, space, batch, weights, start_norm)
            progress.n_triplets += size
            statistics.draws += int(batch.draws.sum())
            statistics.violators += int(np.sum(batch.neg >= 0))
            statistics.loss += float(weights.sum())
        progress.draws = statistics.draws / (n_batches * size)
        return statistics

    def _step(
        self,
        progress: Progress,
        space: AllItems | DrawnItems,
        batch: Triplets,
        weights: np.ndarray,
        start_norm: float,
    ) -> float:
        left, right, c, differences = self._gradient(progress, space, batch, weights)
        factor = space.factor
        gram = factor.gram
        lifted = lift(gram)
        A = solve(lifted, differences.T.astype(np.float64, copy=False))
        S = c[:, None] * A.T
        diagonal = self._norm_gradient(progress, len(A))
        moved = factor.prepare(left, right, S)
        gradient = Gradient(lifted, A @ S, diagonal, moved)
        travelled = distance(gram, factor.cross, start_norm)
        length = step_length(progress, gradient.norm, travelled, start_norm)
        space.move(*gradient.retraction(length))
        return length

    def _gradient(
        self,
        progress: Progress,
        space: AllItems | DrawnItems,
        batch: Triplets,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The mean gradient: pairs of points, weights of the squares of their differences, and
        these differences, embedded.

        Triplets that were drawn among stale embeddings and do not violate get weight 0.
        """
        violated = batch.neg >= 0
        rows = self.points.query_rows[batch.queries]
        edges = self._edges(progress, batch.queries.size)
        left = np.concatenate((rows, rows[violated], edges[:, 0]))
        right = np.concatenate((batch.pos, batch.neg[violated], edges[:, 1]))
        differences = space.differences(left, right)
        weights[violated] *= _still_violated(differences, violated)
        share = self.sampling.query_weights[batch.queries] / batch.queries.size
        hinge = share * (1 - self.options.reg) * weights
        attraction = hinge
        if self.options.regularizer == "pairs":
            attraction = hinge + share * self.options.reg
        together = np.full(len(edges), self.options.graph_reg / batch.queries.size)
        c = np.concatenate((attraction, -hinge[violated], together))
        return left, right, c, differences

    def _edges(self, progress: Progress, size: int) -> np.ndarray:
        """A random edge for each triplet."""
        if self.options.graph_reg == 0 or not len(self.edges):
            return self.edges[:0]
        return self.edges[self._drawn(progress, len(self.edges), size)]

    def _drawn(self, progress: Progress, n: int, size: int) -> np.ndarray:
        """For each triplet of a batch, one of n numbers."""
        from ...._engine.kernels.warp import draw_columns

        numbers = np.empty(size, dtype=np.int64)
        draw_columns(self.sampling.seed, progress.n_triplets, n, numbers)
        return numbers

    def _norm_gradient(self, progress: Progress, m: int) -> np.ndarray:
        """The diagonal of D, where ``F D F'`` is an unbiased estimate of the gradient ``reg W``."""
        if self.options.regularizer != "frobenius":
            return np.zeros(m)
        size = self.options.batch_size
        columns = self._drawn(progress, m, size)
        return self.options.reg * m * np.bincount(columns, minlength=m) / size


def _still_violated(differences: np.ndarray, violated: np.ndarray) -> np.ndarray:
    """Whether each violator is less than 1 farther away than the relevant item.

    ``differences`` are those of all queries and relevant items, then of queries and violators.
    """
    squares = np.einsum("ij,ij->i", differences, differences)
    near = squares[: violated.size][violated]
    far = squares[violated.size : violated.size + near.size]
    return far < 1 + near


def distance(gram: np.ndarray, cross: np.ndarray, start_norm: float) -> float:
    """The distance ``|W - W0|`` from the start, from ``F'F``, ``F0'F`` and ``|W0|``."""
    square = np.vdot(gram, gram) - 2 * np.vdot(cross, cross) + start_norm**2
    return float(np.sqrt(max(square, 0.0)))


def step_length(
    progress: Progress, gradient_norm: float, travelled: float, start_norm: float
) -> float:
    """The learning rate by distance over gradients; ``progress`` keeps both."""
    progress.squares += gradient_norm**2
    progress.distance = max(progress.distance, travelled)
    farthest = max(progress.distance, FIRST_DISTANCE * start_norm)
    return float(
        progress.multiplier * farthest / max(np.sqrt(progress.squares), 1e-300)
    )


class Gradient:
    """The gradient ``V C V' + F D F'`` on the tangent space at W, known by m x m matrices.

    That is ``Z P + P Z - P Z P`` with P the projection on the range of F, where ``Z P = (V S + F D)
    F'`` and ``P Z P = F (Q + D) F'``; G is ``F'F``, ``F' V S = G Q``, and D has the given diagonal.
    """

    def __init__(
        self, G: np.ndarray, Q: np.ndarray, diagonal: np.ndarray, moved: np.ndarray
    ) -> None:
        self.G = G
        self.inside = Q + np.diag(diagonal)
        self.diagonal = diagonal
        self.norm = float(np.sqrt(squared_norm(G, Q, diagonal, moved)))

    def retraction(self, length: float) -> tuple[np.ndarray, np.ndarray]:
        """The damped step against the gradient, as coefficients of F and of ``V S``."""
        step = -length * self.inside
        D = damping(self.G, step)
        inner, tail = second_order(D @ step @ D.T)
        tail = -length * (D.T @ tail)
        return inner + self.diagonal[:, None] * tail, tail


def squared_norm(
    G: np.ndarray, Q: np.ndarray, diagonal: np.ndarray, moved: np.ndarray
) -> float:
    """Squared norm of a gradient on the tangent space: ``2 |Z P|^2 - |P Z P|^2``."""
    inside = Q @ G
    if diagonal.any():
        mixed = inside * diagonal
        scaled = diagonal[:, None] * G
        moved = moved + mixed + mixed.T + scaled * diagonal
        inside = inside + scaled
    return max(float(2 * np.vdot(moved, G) - np.vdot(inside, inside.T)), 0.0)
