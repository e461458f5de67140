"""Losses of squared distances (LMNN, MLCC, listwise softmax), minimised over a linear map.

A loss enters through its derivative by each distance only: with ``A[q, x]`` that derivative, the
gradient by W is the sum of ``A[q, x] (q - x)(q - x)'``, four matrix products a block of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.special import xlogy

from ...._engine.parallel.threads import thread_map
from ....evaluation.measures import gains_of
from ....relevance.relevance import Relevance
from .lbfgs import Curvature, Function, Minimum, Point, minimize_lbfgs

RELEVANT, IRRELEVANT, LEFT_OUT = 2, 1, 0
# Queries and items of a block: few enough for every thread to get a block.
BLOCK = 256
ITEM_BLOCK = 512
# Blocks of so many threads fit in memory. Fixed, so that threads do not change how sums round.
MAX_THREADS = 16
GAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exponential": gains_of,
    "linear": lambda grades: grades,
    "binary": np.ones_like,
}

# From distances, states and query numbers of a block to its losses and their derivatives.
RowLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class SmoothLoss:
    """A loss of a linear map, to be minimised by L-BFGS."""

    def value_and_gradient(
        self, L: np.ndarray, row_loss: Any
    ) -> tuple[float, np.ndarray]:
        """The loss under a map, and its gradient by the map."""
        raise NotImplementedError

    def minimise(
        self,
        row_loss: Any,
        start: np.ndarray,
        *,
        tol: float,
        max_iter: int,
        reg: float = 0.0,
        floor: float = 1.0,
    ) -> Minimum:
        """Minimise the loss plus ``reg`` times the squared distance from the start by L-BFGS.

        It stops when two steps in a row lower the loss by no more than a fraction ``tol`` each,
        where losses below ``floor`` count as ``floor``.
        """
        unit = first_unit(start, reg)
        minimum = minimize_lbfgs(
            self._objective(row_loss, start, unit, reg),
            np.zeros(start.shape),
            tol=tol,
            max_iter=max_iter,
            floor=floor,
        )
        return minimum._replace(parameters=start + unit * minimum.parameters)

    def path(
        self,
        row_loss: Any,
        start: np.ndarray,
        regs: Sequence[float],
        *,
        tol: float,
        max_iter: int,
    ) -> Iterator[np.ndarray]:
        """Minimise for each ``reg``, from the last minimum and with the curvature met so far.

        A search ends as in `minimise`.
        """
        unit = first_unit(start, regs[0])
        origin: np.ndarray | Point = np.zeros(start.shape)
        history: Sequence[Curvature] = ()
        for number, reg in enumerate(regs):
            minimum = minimize_lbfgs(
                self._objective(row_loss, start, unit, reg),
                origin,
                tol=tol,
                max_iter=max_iter,
                floor=0.0,
                history=history,
            )
            yield start + unit * minimum.parameters
            # The next loss differs by a known function, so nothing has to be evaluated anew.
            following = regs[min(number + 1, len(regs) - 1)]
            added = (following - reg) * unit**2
            assert minimum.gradient is not None
            end = Point(minimum.parameters, minimum.loss, minimum.gradient)
            origin = end.steeper(added)
            history = [curvature.steeper(added) for curvature in minimum.history]

    def _objective(
        self, row_loss: Any, start: np.ndarray, unit: float, reg: float
    ) -> Function:
        """The regularised loss as a function of the way from the start, in some unit."""

        def objective(steps: np.ndarray) -> tuple[float, np.ndarray]:
            away = unit * steps
            value, gradient = self.value_and_gradient(start + away, row_loss)
            gradient += 2 * reg * away
            gradient *= unit
            return value + reg * float(np.vdot(away, away)), gradient

        return objective


def first_unit(start: np.ndarray, reg: float) -> float:
    """A unit in which the first step tried costs at most 1/4, and is no longer than the start."""
    if not reg:
        return 1.0
    return min(1 / (2 * np.sqrt(reg)), float(np.linalg.norm(start)))


class PairLoss(SmoothLoss):
    """Mean over queries of a loss of the squared distances to all items.

    Parameters
    ----------
    X, Q : ndarray of shape (n_items, n_features) and (n_queries, n_features)
        Items and queries, centred.
    relevance : Relevance
        Who is relevant to whom.
    max_memory : int
        Working memory in MiB.
    """

    def __init__(
        self, X: np.ndarray, Q: np.ndarray, relevance: Relevance, max_memory: int
    ) -> None:
        self.X = X
        self.Q = Q
        self.relevance = relevance
        self.max_memory = max_memory
        self.weights = relevance.weights / relevance.weights.sum()
        self._judged = judged_states(relevance)
        n_entries = max_memory * 2**20 // (64 * MAX_THREADS)
        block_size = max(1, min(BLOCK, n_entries // len(X)))
        self.blocks = _even_blocks(relevance.n_queries, block_size)
        item_blocks = _even_blocks(len(X), ITEM_BLOCK)
        self.item_blocks = [slice(block[0], block[-1] + 1) for block in item_blocks]

    def subsample(self, n_queries: int) -> Self:
        """The loss of at most this many queries, spread evenly over all."""
        n = self.relevance.n_queries
        chosen = np.unique(np.linspace(0, n - 1, min(n, n_queries)).round().astype(int))
        relevance = self.relevance.take_queries(chosen)
        return type(self)(self.X, self.Q[chosen], relevance, self.max_memory)

    def states(self, block: np.ndarray) -> np.ndarray:
        """`RELEVANT`, `IRRELEVANT` or `LEFT_OUT` for each query of a block and each item."""
        states = np.empty((block.size, len(self.X)), dtype=np.int8)
        states[:] = IRRELEVANT if self.relevance.unlisted_is_irrelevant else LEFT_OUT
        judged = self._judged[self.relevance.rows[block]]
        states[_row_numbers(judged), judged.indices] = judged.data
        items = self.relevance.query_items[block]
        is_item = items >= 0
        states[is_item, items[is_item]] = LEFT_OUT
        return states

    def distances(
        self, block: np.ndarray, items: np.ndarray, queries: np.ndarray
    ) -> np.ndarray:
        """Squared distances of a block of queries from all items."""
        distances = queries[block] @ items.T
        distances *= -2
        distances += np.einsum("ij,ij->i", items, items)
        distances += np.einsum("ij,ij->i", queries[block], queries[block])[:, None]
        return np.maximum(distances, 0, out=distances)

    def unmapped(self, block: np.ndarray) -> np.ndarray:
        """Squared distances of a block of queries from all items without a map."""
        return self.distances(block, self.X, self.Q)

    def value_and_gradient(
        self, L: np.ndarray, row_loss: RowLoss
    ) -> tuple[float, np.ndarray]:
        """The loss under ``W = L'L``, and its gradient by L."""
        map_ = L.T.astype(self.X.dtype, copy=False)
        items = self._mapped_items(map_)
        queries = self.Q @ map_

        def block_sums(block: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            distances = self.distances(block, items, queries)
            loss, slopes = self._weighted(row_loss, distances, block)
            near = slopes @ self.X - slopes.sum(axis=1)[:, None] / 2 * self.Q[block]
            return loss, self.Q[block].T @ near, slopes.sum(axis=0)

        value = 0.0
        cross = np.zeros((L.shape[1], L.shape[1]))
        columns = np.zeros(len(self.X))
        sums = thread_map(block_sums, self.blocks, depth=4)
        for block_loss, block_cross, block_columns in sums:
            value += block_loss
            cross += block_cross
            columns += block_columns
        gradient = (self._scatter(columns) - cross - cross.T).astype(self.X.dtype)
        return value, (2 * L.astype(self.X.dtype) @ gradient).astype(float)

    def _weighted(
        self, row_loss: RowLoss, distances: np.ndarray, block: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The weighted loss of a block of queries, and its derivatives by the distances."""
        losses, slopes = row_loss(distances, self.states(block), block)
        slopes *= self.weights[block, None]
        return float(self.weights[block] @ losses), slopes

    def _mapped_items(self, map_: np.ndarray) -> np.ndarray:
        """All items under a map."""

        def product(rows: slice) -> np.ndarray:
            return self.X[rows] @ map_

        return np.concatenate(list(thread_map(product, self.item_blocks, depth=4)))

    def _scatter(self, weights: np.ndarray) -> np.ndarray:
        """The sum over items of a weight times the outer product of the item with itself."""
        weights = weights.astype(self.X.dtype)[:, None]

        def product(rows: slice) -> np.ndarray:
            return (weights[rows] * self.X[rows]).T @ self.X[rows]

        total = np.zeros((self.X.shape[1], self.X.shape[1]))
        for scatter in thread_map(product, self.item_blocks, depth=4):
            total += scatter
        return total


def _even_blocks(n: int, size: int) -> list[np.ndarray]:
    """Numbers in an even number of blocks of about equal size, so that two threads are busy."""
    return np.array_split(np.arange(n), min(n, 2 * -(-n // (2 * size))))


def _row_numbers(table: scipy.sparse.csr_array) -> np.ndarray:
    """The row of each stored entry."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


class QueryLoss(PairLoss):
    """The loss of a map of the queries only: minus twice inner products stand for distances.

    For equal-norm items these are squared distances up to a constant for each query.
    """

    def unmapped(self, block: np.ndarray) -> np.ndarray:
        """Minus twice the inner products of a block of queries with all items, without a map."""
        return (-2 * self.Q[block]) @ self.X.T

    def value_and_gradient(
        self, L: np.ndarray, row_loss: RowLoss
    ) -> tuple[float, np.ndarray]:
        """The loss of the queries mapped by L, and its gradient by L."""
        queries = self.Q @ L.T.astype(self.X.dtype, copy=False)

        def block_sums(block: np.ndarray) -> tuple[float, np.ndarray]:
            products = (-2 * queries[block]) @ self.X.T
            loss, slopes = self._weighted(row_loss, products, block)
            return loss, (slopes @ self.X).T @ self.Q[block]

        value = 0.0
        gradient = np.zeros(L.shape)
        for block_loss, block_gradient in thread_map(block_sums, self.blocks, depth=4):
            value += block_loss
            gradient -= block_gradient
        gradient *= 2
        return value, gradient


class Grouped(SmoothLoss):
    """The mean loss over groups of queries with items of their own, weighted by the queries."""

    def __init__(self, losses: Sequence[PairLoss]) -> None:
        self.losses = losses
        weights = np.array([loss.relevance.weights.sum() for loss in losses])
        self.shares = weights / weights.sum()

    def value_and_gradient(
        self, L: np.ndarray, row_loss: Sequence[RowLoss]
    ) -> tuple[float, np.ndarray]:
        """The loss under a map, with a row loss for each group, and its gradient."""
        value = 0.0
        gradient = np.zeros(L.shape)
        groups = zip(self.shares, self.losses, row_loss, strict=True)
        for share, loss, group_row_loss in groups:
            group_value, group_gradient = loss.value_and_gradient(L, group_row_loss)
            value += share * group_value
            gradient += share * group_gradient
        return value, gradient


def judged_states(relevance: Relevance) -> scipy.sparse.csr_array:
    """States of the judged items, for each row of judgments."""
    is_relevant = relevance.grades >= relevance.min_relevant_grade
    states = np.where(is_relevant, RELEVANT, IRRELEVANT)
    unjudged = IRRELEVANT if relevance.unjudged == "irrelevant" else LEFT_OUT
    states[np.isnan(relevance.grades)] = unjudged
    return judgment_table(relevance, states.astype(np.int8))


def judgment_table(relevance: Relevance, values: np.ndarray) -> scipy.sparse.csr_array:
    """A value for each judgment, as rows of judgments by items."""
    shape = (relevance.indptr.size - 1, relevance.n_items)
    return scipy.sparse.csr_array((values, relevance.items, relevance.indptr), shape)


# ---------------------------------------------------------------------- row losses


class LargeMargin:
    """LMNN: pull target neighbours near and push irrelevant items a margin of 1 behind each.

    Targets are the relevant items that are nearest before learning.
    """

    def __init__(self, loss: PairLoss, n_targets: int, push: float) -> None:
        self.push = push
        targets = [_nearest_relevant(loss, block, n_targets) for block in loss.blocks]
        self.targets = np.concatenate(targets)

    def __call__(
        self, distances: np.ndarray, states: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        losses = np.zeros(block.size)
        slopes = np.zeros_like(distances)
        irrelevant = states == IRRELEVANT
        pull = 1 - self.push
        for target in self.targets[block].T:
            rows = np.flatnonzero(target >= 0)
            items = target[rows]
            near = distances[rows, items]
            margins = (1 + near)[:, None] - distances[rows]
            active = irrelevant[rows] & (margins > 0)
            losses[rows] += pull * near
            losses[rows] += self.push * np.where(active, margins, 0).sum(axis=1)
            slopes[rows] -= self.push * active
            slopes[rows, items] += pull + self.push * active.sum(axis=1)
        return losses, slopes


def _nearest_relevant(loss: PairLoss, block: np.ndarray, k: int) -> np.ndarray:
    """The k nearest relevant items of each query, filled up with -1."""
    distances = loss.distances(block, loss.X, loss.Q)
    distances[loss.states(block) != RELEVANT] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    is_relevant = np.isfinite(np.take_along_axis(distances, order, axis=1))
    return np.where(is_relevant, order, -1)


def collapse(
    distances: np.ndarray, states: np.ndarray, block: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """MLCC: divergence of softmax neighbours from a uniform choice of relevant items.

    Its constant, the entropy of the uniform choice, is left out.
    """
    log_totals, probabilities = softmax_neighbours(distances, states)
    relevant = states == RELEVANT
    ideal = relevant / np.count_nonzero(relevant, axis=1)[:, None]
    return (ideal * distances).sum(axis=1) + log_totals, ideal - probabilities


def softmax_neighbours(
    distances: np.ndarray, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``log sum exp(-distance)`` of each query, and the softmax probability of each item."""
    logits = np.where(states == LEFT_OUT, -np.inf, -distances)
    highest = logits.max(axis=1, keepdims=True)
    logits -= highest
    probabilities = np.exp(logits, out=logits)
    totals = probabilities.sum(axis=1, keepdims=True)
    probabilities /= totals
    return (highest + np.log(totals))[:, 0], probabilities


class Listwise:
    """Listwise softmax loss: divergence of softmax neighbours from the relevant items by gain.

    With several temperatures, the mean of their losses. The weight of an item, given by its
    logarithm, counts it as that many items.
    """

    def __init__(
        self,
        relevance: Relevance,
        temperatures: Sequence[float],
        gain: str = "exponential",
        log_weights: np.ndarray | None = None,
    ) -> None:
        self.relevance = relevance
        self.temperatures = temperatures
        self.log_weights = log_weights
        is_relevant = relevance.grades >= relevance.min_relevant_grade
        gains = GAINS[gain](np.where(is_relevant, relevance.grades, 0.0))
        self._gains = judgment_table(relevance, np.where(is_relevant, gains, 0.0))

    def __call__(
        self, distances: np.ndarray, states: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        table = self._gains[self.relevance.rows[block]]
        rows = _row_numbers(table)
        items = table.indices
        gains = np.where(states[rows, items] == RELEVANT, table.data, 0.0)
        shares = gains / np.bincount(rows, gains, block.size)[rows]
        near = np.bincount(rows, shares * distances[rows, items], block.size)
        if (states == LEFT_OUT).any():
            distances = np.where(states == LEFT_OUT, np.inf, distances)
        lowest = distances.min(axis=1)
        above = np.subtract(lowest[:, None], distances, dtype=distances.dtype)
        losses = np.bincount(rows, xlogy(shares, shares), block.size)
        slopes = np.zeros_like(distances)
        n = len(self.temperatures)
        for temperature in self.temperatures:
            logits = np.multiply(above, 1 / temperature, dtype=above.dtype)
            highest = self._add_log_weights(logits)
            exponentials = np.exp(logits, out=logits)
            totals = exponentials.sum(axis=1)
            losses += (np.log(totals) + highest) / n
            losses += (near - lowest) / (n * temperature)
            scale = -(n * temperature) * totals
            exponentials /= scale[:, None].astype(exponentials.dtype)
            slopes += exponentials
        slopes[rows, items] += shares * np.mean(np.reciprocal(self.temperatures))
        return losses, slopes

    def _add_log_weights(self, logits: np.ndarray) -> Any:
        """Add the weights in place, subtract the highest of each row, and return it."""
        if self.log_weights is None:
            return 0.0
        logits += self.log_weights.astype(logits.dtype)
        highest = logits.max(axis=1)
        logits -= highest[:, None]
        return highest
