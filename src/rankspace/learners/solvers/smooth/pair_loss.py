"""Losses of squared distances, query by query, minimised over a linear map by L-BFGS.

A loss enters through its derivative by each distance only: with ``A[q, x]`` that derivative, the
gradient by W is the sum of ``A[q, x] (q - x)(q - x)'``, four matrix products a block of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.special import xlogy

from ...._engine.parallel.threads import n_threads, single_threaded_blas, thread_map
from ....evaluation.measures import gains_of
from ....relevance.relevance import Relevance
from .lbfgs import lbfgs_steps

RELEVANT, IRRELEVANT, LEFT_OUT = 2, 1, 0
BLOCK, ITEM_BLOCK = (
    256,
    512,
)  # queries and items: small enough for all threads to have some
GAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exponential": gains_of,
    "linear": lambda grades: grades,
    "binary": np.ones_like,
}

# Distances, states and query numbers of a block give its losses and derivatives, both weighted.
RowLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Minimum(NamedTuple):
    """Where a search ended, and the loss after each step."""

    components: np.ndarray
    loss: float
    losses: list[float]
    converged: bool


class Minimised:
    """A loss with a value and a gradient, to be gone down from a map."""

    def value_and_gradient(
        self, L: np.ndarray, of_rows: Any
    ) -> tuple[float, np.ndarray]:
        """The loss under a map, and its gradient by the map."""
        raise NotImplementedError

    def minimise(
        self,
        of_rows: Any,
        start: np.ndarray,
        *,
        tol: float,
        max_iter: int,
        reg: float = 0.0,
        floor: float = 1.0,
    ) -> Minimum:
        """Go down from a map until two steps lower the loss by no more than a share ``tol`` each.

        Losses below ``floor`` count as that much. With ``reg``, so many times the squared distance
        from the start is added to the loss, and the first step that is tried makes that 1/4 at
        most, and is no longer than the start.
        """
        unit = min(1 / (2 * np.sqrt(reg)), float(np.linalg.norm(start))) if reg else 1.0

        def function(steps: np.ndarray) -> tuple[float, np.ndarray]:
            away = unit * steps
            value, gradient = self.value_and_gradient(start + away, of_rows)
            gradient += 2 * reg * away
            gradient *= unit
            return value + reg * float(np.vdot(away, away)), gradient

        losses: list[float] = []
        small = 0  # steps in a row: one alone may come before larger ones
        with (
            single_threaded_blas()
        ):  # threads of products in between keep ours from their cores
            for point in lbfgs_steps(function, np.zeros(start.shape)):
                losses.append(point.value)
                fell = losses[-2] - losses[-1] if len(losses) > 1 else np.inf
                small = small + 1 if fell <= tol * max(abs(losses[-1]), floor) else 0
                if small == 2 or len(losses) > max_iter:
                    break
        # A search that finds nothing lower ends at a kink of the loss, as good as any.
        converged = small == 2 or len(losses) <= max_iter
        return Minimum(start + unit * point.x, losses[-1], losses[1:], converged)


class PairLoss(Minimised):
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
        self.X, self.Q, self.relevance, self.max_memory = X, Q, relevance, max_memory
        self.weights = relevance.weights / relevance.weights.sum()
        self._judged = judged_states(relevance)
        entries = max_memory * 2**20 // (64 * n_threads())
        self.blocks = _pairs_of_blocks(
            relevance.n_queries, max(1, min(BLOCK, entries // len(X)))
        )
        self.item_blocks = [
            slice(block[0], block[-1] + 1)
            for block in _pairs_of_blocks(len(X), ITEM_BLOCK)
        ]

    def thinned(self, n_queries: int) -> Self:
        """The loss of so many queries at most, spread evenly over all."""
        n = self.relevance.n_queries
        chosen = np.unique(np.linspace(0, n - 1, min(n, n_queries)).round().astype(int))
        part = self.relevance.take_queries(chosen)
        return type(self)(self.X, self.Q[chosen], part, self.max_memory)

    def states(self, block: np.ndarray) -> np.ndarray:
        """What each item is to each query of a block: `RELEVANT`, `IRRELEVANT` or `LEFT_OUT`."""
        default = IRRELEVANT if self.relevance.unlisted_is_irrelevant else LEFT_OUT
        states = np.full((block.size, len(self.X)), default, dtype=np.int8)
        table = self._judged[self.relevance.rows[block]]
        states[
            np.repeat(np.arange(block.size), np.diff(table.indptr)), table.indices
        ] = table.data
        own = self.relevance.query_items[block]
        states[own >= 0, own[own >= 0]] = LEFT_OUT
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
        """The same under the identity."""
        return self.distances(block, self.X, self.Q)

    def value_and_gradient(
        self, L: np.ndarray, of_rows: RowLoss
    ) -> tuple[float, np.ndarray]:
        """The loss under ``W = L'L``, and its gradient by L."""
        map_ = L.T.astype(self.X.dtype, copy=False)
        items, queries = self._items_under(map_), self.Q @ map_

        def of_block(block: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            distances = self.distances(block, items, queries)
            losses, slopes = of_rows(distances, self.states(block), block)
            slopes *= self.weights[block, None]
            near = slopes @ self.X - slopes.sum(axis=1)[:, None] / 2 * self.Q[block]
            losses = self.weights[block] @ losses
            return float(losses), self.Q[block].T @ near, slopes.sum(axis=0)

        value, cross, columns = 0.0, np.zeros((L.shape[1],) * 2), np.zeros(len(self.X))
        for part in thread_map(of_block, self.blocks, depth=4):
            value += part[0]
            cross += part[1]
            columns += part[2]
        gradient = (self._scatter(columns) - cross - cross.T).astype(self.X.dtype)
        return value, (2 * L.astype(self.X.dtype) @ gradient).astype(float)

    def _items_under(self, map_: np.ndarray) -> np.ndarray:
        """All items under a map."""
        return np.concatenate(
            list(
                thread_map(lambda part: self.X[part] @ map_, self.item_blocks, depth=4)
            )
        )

    def _scatter(self, weights: np.ndarray) -> np.ndarray:
        """The sum over items of a weight times the outer product of the item with itself."""
        weights = weights.astype(self.X.dtype)[:, None]

        def of_block(part: slice) -> np.ndarray:
            return (weights[part] * self.X[part]).T @ self.X[part]

        total = np.zeros((self.X.shape[1],) * 2)
        for part in thread_map(of_block, self.item_blocks, depth=4):
            total += part
        return total


def _pairs_of_blocks(n: int, size: int) -> list[np.ndarray]:
    """Numbers in an even number of blocks of about one size, so that no thread is left over."""
    return np.array_split(np.arange(n), min(n, 2 * -(-n // (2 * size))))


class QueryLoss(PairLoss):
    """The same for a map of the queries alone: minus twice inner products stand for distances.

    For items of equal length these are squared distances up to what each query has in common.
    """

    def unmapped(self, block: np.ndarray) -> np.ndarray:
        """What stands for distances under the identity."""
        return (-2 * self.Q[block]) @ self.X.T

    def value_and_gradient(
        self, L: np.ndarray, of_rows: RowLoss
    ) -> tuple[float, np.ndarray]:
        """The loss of the queries mapped by L, and its gradient by L."""
        queries = self.Q @ L.T.astype(self.X.dtype, copy=False)

        def of_block(block: np.ndarray) -> tuple[float, np.ndarray]:
            products = (-2 * queries[block]) @ self.X.T
            losses, slopes = of_rows(products, self.states(block), block)
            slopes *= self.weights[block, None]
            return float(self.weights[block] @ losses), (slopes @ self.X).T @ self.Q[
                block
            ]

        value, gradient = 0.0, np.zeros(L.shape)
        for part in thread_map(of_block, self.blocks, depth=4):
            value += part[0]
            gradient -= part[1]
        gradient *= 2
        return value, gradient


class Grouped(Minimised):
    """The mean over groups of queries, each with items of its own, weighted as the queries are."""

    def __init__(self, losses: Sequence[PairLoss]) -> None:
        self.losses = losses
        weights = np.array([loss.relevance.weights.sum() for loss in losses])
        self.shares = weights / weights.sum()

    def value_and_gradient(
        self, L: np.ndarray, of_rows: Sequence[RowLoss]
    ) -> tuple[float, np.ndarray]:
        """The loss under a map, with a row loss for each group, and its gradient."""
        value, gradient = 0.0, np.zeros(L.shape)
        for share, loss, of_group in zip(
            self.shares, self.losses, of_rows, strict=True
        ):
            part = loss.value_and_gradient(L, of_group)
            value += share * part[0]
            gradient += share * part[1]
        return value, gradient


def judged_states(relevance: Relevance) -> scipy.sparse.csr_array:
    """States of the items that rows of judgments name."""
    unjudged = IRRELEVANT if relevance.unjudged == "irrelevant" else LEFT_OUT
    states = np.where(
        relevance.grades >= relevance.min_relevant_grade, RELEVANT, IRRELEVANT
    )
    states = np.where(np.isnan(relevance.grades), unjudged, states).astype(np.int8)
    shape = (relevance.indptr.size - 1, relevance.n_items)
    return scipy.sparse.csr_array(
        (states, relevance.items, relevance.indptr), shape=shape
    )


# ---------------------------------------------------------------------- three losses


class LargeMargin:
    """LMNN: targets are pulled near, and irrelevant items pushed a margin of 1 behind each.

    Targets are the relevant items that are nearest at first.
    """

    def __init__(self, loss: PairLoss, n_targets: int, push: float) -> None:
        self.push = push
        self.targets = np.concatenate(
            [_nearest_relevant(loss, block, n_targets) for block in loss.blocks]
        )

    def __call__(
        self, distances: np.ndarray, states: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        losses, slopes = np.zeros(block.size), np.zeros_like(distances)
        irrelevant = states == IRRELEVANT
        for target in self.targets[block].T:
            rows = np.flatnonzero(target >= 0)
            near = distances[rows, target[rows]]
            margins = (1 + near)[:, None] - distances[rows]
            active = irrelevant[rows] & (margins > 0)
            losses[rows] += (1 - self.push) * near
            losses[rows] += self.push * np.where(active, margins, 0).sum(axis=1)
            slopes[rows] -= self.push * active
            slopes[rows, target[rows]] += (1 - self.push) + self.push * active.sum(
                axis=1
            )
        return losses, slopes


def _nearest_relevant(loss: PairLoss, block: np.ndarray, k: int) -> np.ndarray:
    """The k nearest relevant items of each query, filled up with -1."""
    distances = loss.distances(block, loss.X, loss.Q)
    distances[loss.states(block) != RELEVANT] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.where(
        np.isfinite(np.take_along_axis(distances, order, axis=1)), order, -1
    )


def collapse(
    distances: np.ndarray, states: np.ndarray, block: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """MLCC: how far softmax neighbours are from being any relevant item with equal chance.

    The divergence of the two distributions but for its constant, the entropy of the second.
    """
    logarithms, chances = softmax_neighbours(distances, states)
    ideal = (states == RELEVANT) / np.count_nonzero(states == RELEVANT, axis=1)[:, None]
    return (ideal * distances).sum(axis=1) + logarithms, ideal - chances


def softmax_neighbours(
    distances: np.ndarray, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``log sum exp(-distance)`` of each query, and the chance of each item that takes part."""
    chances = np.where(states == LEFT_OUT, -np.inf, -distances)
    highest = chances.max(axis=1, keepdims=True)
    chances = np.exp(np.subtract(chances, highest, out=chances), out=chances)
    totals = chances.sum(axis=1, keepdims=True)
    chances /= totals
    return (highest + np.log(totals))[:, 0], chances


class Listwise:
    """The divergence of softmax neighbours from the relevant items, drawn by gain.

    The mean over temperatures, if there are several. Items may count with a weight each, given by
    its logarithm, as if there were so many of them.
    """

    def __init__(
        self,
        relevance: Relevance,
        temperatures: Sequence[float],
        gain: str = "exponential",
        log_weights: np.ndarray | None = None,
    ) -> None:
        self.relevance, self.temperatures = relevance, temperatures
        self.log_weights = log_weights
        kept = relevance.grades >= relevance.min_relevant_grade
        gains = np.where(kept, GAINS[gain](np.where(kept, relevance.grades, 0.0)), 0.0)
        shape = (relevance.indptr.size - 1, relevance.n_items)
        self._gains = scipy.sparse.csr_array(
            (gains, relevance.items, relevance.indptr), shape
        )

    def __call__(
        self, distances: np.ndarray, states: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        table = self._gains[self.relevance.rows[block]]
        rows, items = (
            np.repeat(np.arange(block.size), np.diff(table.indptr)),
            table.indices,
        )
        gains = np.where(states[rows, items] == RELEVANT, table.data, 0.0)
        shares = gains / np.bincount(rows, gains, block.size)[rows]
        near = np.bincount(rows, shares * distances[rows, items], block.size)
        if (states == LEFT_OUT).any():
            distances = np.where(states == LEFT_OUT, np.inf, distances)
        lowest = distances.min(axis=1)
        above = np.subtract(lowest[:, None], distances, dtype=distances.dtype)
        entropy = np.bincount(rows, xlogy(shares, shares), block.size)
        losses, slopes = entropy, np.zeros_like(distances)
        for temperature in self.temperatures:
            chances = np.multiply(above, 1 / temperature, dtype=above.dtype)
            highest = self._weigh(chances)
            np.exp(chances, out=chances)
            totals, share = chances.sum(axis=1), len(self.temperatures) * temperature
            losses += (np.log(totals) + highest) / len(self.temperatures)
            losses += (near - lowest) / share
            chances /= (-share * totals)[:, None].astype(chances.dtype)
            slopes += chances
        slopes[rows, items] += shares * np.mean(np.reciprocal(self.temperatures))
        return losses, slopes

    def _weigh(self, exponents: np.ndarray) -> Any:
        """Add the weights, take the highest of each row from it, and give that back."""
        if self.log_weights is None:
            return 0.0
        exponents += self.log_weights.astype(exponents.dtype)
        highest = exponents.max(axis=1)
        exponents -= highest[:, None]
        return highest
