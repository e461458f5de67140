"""Few directions in which relevant items are near: losses over a linear map, starts, descent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from ...._engine.parallel.threads import single_threaded_blas, thread_map
from ....relevance.relevance import Relevance
from ..points import Points
from ..warp.starts import start_factor
from .pair_ratio import PairRatio

# Classes that can be collapsed let log F fall as fast as a ridge rises; log (F + FLOOR) ends.
FLOOR = 1e-6
REACHES = (
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
)  # root mean squared lengths of embedded points to start with
MOST_DIRECTIONS = (
    100  # principal directions in which a discriminant start is looked for
)
SHRINKAGE = 1e-2
AHEAD = 64  # blocks of rows that a thread multiplies before it waits for the others


class Loss(Protocol):
    """A function of a matrix of parameters."""

    def value_and_gradient(
        self, parameters: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""


class MapLoss:
    """``log (F + FLOOR)`` of points under a linear map, which is (n_components, n_features)."""

    def __init__(self, points: Points, relevance: Relevance) -> None:
        self.points, self.relevance = points, relevance
        self._ratio = PairRatio(points, relevance)

    def embed(self, A: np.ndarray) -> np.ndarray:
        """Points under the map, from their mean, in double precision."""
        F = A.T.astype(self.points.matrix.dtype)
        Z = np.concatenate(
            [*self._products(lambda rows, _: rows @ F)], dtype=np.float64
        )
        return Z - Z.mean(axis=0)

    def value_and_gradient(
        self, A: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""
        value, slopes = self._ratio.value_and_gradient(self.embed(A), queries)
        floored = np.logaddexp(value, np.log(FLOOR))
        slopes *= np.exp(value - floored)
        slopes = slopes.astype(self.points.matrix.dtype, copy=False)
        gradient = np.zeros(A.shape)
        for part in self._products(lambda rows, part: slopes[part].T @ rows):
            gradient += part
        return float(floored), gradient

    def _products(
        self, product: Callable[[Any, slice], np.ndarray]
    ) -> Iterator[np.ndarray]:
        """A product with each block of rows; sparse rows are one block.

        In threads of our own: those of BLAS spin on for a while, in the way of the pairs.
        """
        matrix = self.points.matrix
        if self.points.is_sparse:
            return iter([product(matrix, slice(None))])
        blocks = self.points.blocks
        return thread_map(lambda part: product(matrix[part], part), blocks, depth=AHEAD)


class RidgedLoss:
    """PARCA: the loss of a map plus ``ridge |A|_F^2``."""

    def __init__(self, loss: MapLoss, ridge: float) -> None:
        self.loss, self.ridge = loss, ridge

    def value_and_gradient(
        self, A: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""
        value, gradient = self.loss.value_and_gradient(A, queries)
        return value + self.ridge * float(np.sum(A * A)), gradient + 2 * self.ridge * A

    def at_best_length(
        self, directions: np.ndarray, queries: np.ndarray | None = None
    ) -> np.ndarray:
        """Directions in the length, of a few, at which the loss of all or some queries is least."""
        reach = np.sqrt(np.mean(np.sum(self.loss.embed(directions) ** 2, axis=1)))
        unit = directions / (reach or 1.0)
        return min(
            (t * unit for t in REACHES),
            key=lambda A: self.value_and_gradient(A, queries)[0],
        )


# ---------------------------------------------------------------------- starts


def start_of(
    name: str, points: Points, relevance: Relevance, m: int, seed: int
) -> np.ndarray:
    """Directions to start from, (m, n_features): "pca", "random" or "lda"."""
    items = points.matrix[: points.n_items]
    if name == "lda":
        return _discriminant(points, relevance, m, seed)
    return start_factor(items, m, name, 1.0, seed).T


def _discriminant(
    points: Points, relevance: Relevance, m: int, seed: int
) -> np.ndarray:
    """Directions of much variance beside that of queries and their relevant items.

    Fisher's, with queries and relevant items in the place of classes, among the leading principal
    directions.
    """
    items = points.matrix[: points.n_items]
    r = max(m, min(MOST_DIRECTIONS, *items.shape))
    basis = start_factor(items, r, "pca", 1.0, seed)
    Y = np.asarray(points.matrix @ basis.astype(items.dtype), dtype=np.float64)
    Y -= Y.mean(axis=0)
    within = _relevant_scatter(Y, points, relevance)
    total = np.cov(Y.T, bias=True).reshape(r, r)
    within += SHRINKAGE * np.trace(total) / r * np.eye(r)
    vectors = scipy.linalg.eigh(total, within, subset_by_index=(r - m, r - 1))[1]
    return (basis @ vectors[:, ::-1]).T


def _relevant_scatter(
    Y: np.ndarray, points: Points, relevance: Relevance
) -> np.ndarray:
    """Mean over queries of ``(q - x)(q - x)'`` over their relevant items, a query's own included.

    Rows of judgments are summed up once for all queries that share them.
    """
    n_rows, n_queries = relevance.indptr.size - 1, relevance.n_queries
    weights = relevance.weights / relevance.weights.sum()
    queries, items = Y[points.query_rows], Y[: points.n_items]
    grades = (relevance.grades >= relevance.min_relevant_grade).astype(np.float64)
    shape = (n_rows, relevance.n_items)
    table = scipy.sparse.csr_array(
        (grades, relevance.items, relevance.indptr), shape=shape
    )
    table = scipy.sparse.diags_array(1 / np.maximum(table.sum(axis=1), 1)) @ table
    of_rows = scipy.sparse.csr_array(
        (weights, (relevance.rows, np.arange(n_queries))), shape=(n_rows, n_queries)
    )
    cross = (of_rows @ queries).T @ (table @ items)
    of_items = table.T @ of_rows.sum(axis=1)
    squares = queries.T @ (weights[:, None] * queries) + items.T @ (
        of_items[:, None] * items
    )
    return squares - cross - cross.T


# ---------------------------------------------------------------------- descent


class Descent(NamedTuple):
    """Where a search ended, losses on the way, whether it stood still, and its steps."""

    parameters: np.ndarray
    loss: float
    losses: list[float]
    converged: bool
    n_steps: int


def descend(loss: Loss, start: np.ndarray, *, tol: float, max_iter: int) -> Descent:
    """L-BFGS until a step lowers the loss by less than ``tol``."""
    losses: list[float] = []

    def flat(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss.value_and_gradient(vector.reshape(start.shape))
        return value, gradient.ravel()

    def callback(intermediate_result: Any) -> None:
        losses.append(float(intermediate_result.fun))

    with single_threaded_blas():  # threads that BLAS starts for L-BFGS would spin on
        found = scipy.optimize.minimize(
            flat,
            start.ravel(),
            method="L-BFGS-B",
            jac=True,
            callback=callback,
            options={"maxiter": max_iter, "maxcor": 20, "ftol": tol, "gtol": 0.0},
        )
    converged = found.nit < max_iter
    return Descent(
        found.x.reshape(start.shape), float(found.fun), losses, converged, len(losses)
    )


def multi_start(
    starts: Mapping[str, np.ndarray],
    run: Callable[[np.ndarray, int], Descent],
    max_iter: int,
) -> tuple[str, Descent]:
    """Let every start go a tenth of the steps, and the best of them all the way; its name too."""
    if len(starts) == 1:
        (name,) = starts
        return name, run(starts[name], max_iter)
    first = -(-max_iter // 10)
    heats = {name: run(start, first) for name, start in starts.items()}
    best = min(heats, key=lambda name: heats[name].loss)
    heat = heats[best]
    if heat.converged or first == max_iter:
        return best, heat
    rest = run(heat.parameters, max_iter - first)
    return best, rest._replace(
        losses=heat.losses + rest.losses, n_steps=heat.n_steps + rest.n_steps
    )
