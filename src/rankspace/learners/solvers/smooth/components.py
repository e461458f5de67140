"""PARCA's regularised loss of a linear map, its starts (PCA, LDA, random) and multi-start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.sparse

from ...._engine.parallel.threads import thread_map
from ....relevance.relevance import Relevance
from ..points import Points
from ..warp.starts import start_factor
from .lbfgs import Minimum
from .pair_loss import judgment_table
from .pair_ratio import PairRatio

# Where classes can be collapsed, log F falls faster than the regularisation rises.
FLOOR = 1e-6
START_LENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # root mean square of the embedded points
MAX_DIRECTIONS = 100  # principal directions searched for discriminant ones
SHRINKAGE = 1e-2
DEPTH = 64  # blocks of rows that a thread multiplies before it waits for the others


class Loss(Protocol):
    """A function of a matrix of parameters."""

    def value_and_gradient(
        self, parameters: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""


class MapLoss:
    """``log (F + FLOOR)`` of points under a linear map, which is (n_components, n_features)."""

    def __init__(self, points: Points, relevance: Relevance) -> None:
        self.points = points
        self.relevance = relevance
        self._ratio = PairRatio(points, relevance)

    def embed(self, A: np.ndarray) -> np.ndarray:
        """Points under the map, centred, in double precision."""
        map_ = A.T.astype(self.points.matrix.dtype)
        products = self._map_rows(lambda rows: self.points.matrix[rows] @ map_)
        Z = np.concatenate(list(products), dtype=np.float64)
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
        products = self._map_rows(
            lambda rows: slopes[rows].T @ self.points.matrix[rows]
        )
        for product in products:
            gradient += product
        return float(floored), gradient

    def _map_rows(self, product: Callable[[slice], np.ndarray]) -> Iterator[np.ndarray]:
        """A product with each block of rows; sparse rows are one block.

        In threads of our own: those of BLAS spin on for a while and delay the pairs.
        """
        if self.points.is_sparse:
            return iter([product(slice(None))])
        return thread_map(product, self.points.blocks, depth=DEPTH)


class RegularizedLoss:
    """PARCA: the loss of a map plus ``reg |A|_F^2``."""

    def __init__(self, loss: MapLoss, reg: float) -> None:
        self.loss = loss
        self.reg = reg

    def value_and_gradient(
        self, A: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""
        value, gradient = self.loss.value_and_gradient(A, queries)
        return value + self.reg * float(np.sum(A * A)), gradient + 2 * self.reg * A

    def rescale_start(
        self, directions: np.ndarray, queries: np.ndarray | None = None
    ) -> np.ndarray:
        """Directions at the length, of a few, where the loss of all or some queries is lowest."""
        length = np.sqrt(np.mean(np.sum(self.loss.embed(directions) ** 2, axis=1)))
        unit = directions / (length or 1.0)
        starts = [factor * unit for factor in START_LENGTHS]
        losses = [self.value_and_gradient(A, queries)[0] for A in starts]
        return starts[int(np.argmin(losses))]


# ---------------------------------------------------------------------- starts


def start_of(
    name: str, points: Points, relevance: Relevance, m: int, seed: int
) -> np.ndarray:
    """Directions to start from, (m, n_features): "pca", "random" or "lda"."""
    if name == "lda":
        return _discriminant(points, relevance, m, seed)
    return start_factor(points.matrix[: points.n_items], m, name, 1.0, seed).T


def _discriminant(
    points: Points, relevance: Relevance, m: int, seed: int
) -> np.ndarray:
    """Fisher's discriminant directions, with queries and relevant items in place of classes.

    They are searched among the leading principal directions.
    """
    items = points.matrix[: points.n_items]
    r = max(m, min(MAX_DIRECTIONS, *items.shape))
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
    """Mean over queries of the scatter ``(q - x)(q - x)'`` of their relevant items.

    A query that is an item counts among its own. Rows of judgments are summed up once for all
    queries that share them.
    """
    queries = Y[points.query_rows]
    items = Y[: points.n_items]
    is_relevant = relevance.grades >= relevance.min_relevant_grade
    table = judgment_table(relevance, is_relevant.astype(np.float64))
    table = scipy.sparse.diags_array(1 / np.maximum(table.sum(axis=1), 1)) @ table
    weights = relevance.weights / relevance.weights.sum()
    row_weights = scipy.sparse.csr_array(
        (weights, (relevance.rows, np.arange(weights.size))),
        shape=(table.shape[0], weights.size),
    )
    cross = (row_weights @ queries).T @ (table @ items)
    item_weights = table.T @ row_weights.sum(axis=1)
    squares = queries.T @ (weights[:, None] * queries)
    squares = squares + items.T @ (item_weights[:, None] * items)
    return squares - cross - cross.T


def multi_start(
    starts: Mapping[str, np.ndarray],
    run: Callable[..., Minimum],
    max_iter: int,
    first_tol: float,
) -> tuple[str, Minimum]:
    """Multi-start: a tenth of the steps from every start, all steps from the best of them.

    ``run(start, max_iter)`` minimises; the first steps stop at ``first_tol``. Returns the name of
    the best start too.
    """
    if len(starts) == 1:
        (name,) = starts
        return name, run(starts[name], max_iter)
    n_first = -(-max_iter // 10)
    minima = {
        name: run(start, n_first, tol=first_tol) for name, start in starts.items()
    }
    best = min(minima, key=lambda name: minima[name].loss)
    first = minima[best]
    if first.n_steps >= max_iter:
        return best, first
    rest = run(first.parameters, max_iter - first.n_steps)
    losses = first.losses + rest.losses
    n_steps = first.n_steps + rest.n_steps
    return best, rest._replace(losses=losses, n_steps=n_steps)
