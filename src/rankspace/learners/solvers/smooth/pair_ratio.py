"""How much nearer relevant items are than irrelevant ones, and its gradient (PARCA).

With squared distances ``a`` of embedded points, a query has the ratio

    F_q = mean of exp(a_qj) over its relevant items j  times  mean of exp(-a_qk) over the others k,

and the loss is the log of the weighted mean of all F_q. Nothing above 0 is ever exponentiated. With
sigma and tau, the softmax of a_qj and of -a_qk, and p_q the share of F_q in their sum, the
derivative by a_qx is ``p_q (sigma_qx - tau_qx)``: a graph with weights of both signs, whose
Laplacian times the embedded points is the gradient by them. So an evaluation costs O(n^2 K) for the
pairs and two products with the data, and no difference of two points is ever formed.
"""

from __future__ import annotations

import numpy as np

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from ..points import Points
from .pair_loss import judged_states

MOST_PARTS, PAIRS = (
    32,
    2**20,
)  # parts that sums are taken in, whatever the number of threads
BLOCK_BYTES, FEWEST = (
    2**21,
    8,
)  # of distances: more leave the cache, fewer are all overhead
TINY = 1e-100  # a sum of exponentials below this has lost digits
NOTHING = -700.0  # its exponential is 1e-304, found faster than one that is 0

# Rows of the queries, items that they are, and the rows of judged items, as kernels take them.
Judgments = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class PairRatio(Step):
    """The loss of embedded points, over all queries or some of them.

    Parameters
    ----------
    points : Points
        Items and queries.
    relevance : Relevance
        Who is relevant to whom; every query has something relevant and something irrelevant.
    """

    def __init__(self, points: Points, relevance: Relevance) -> None:
        self.query_rows, self.n_items, self.relevance = (
            points.query_rows,
            points.n_items,
            relevance,
        )
        self._judged = judged_states(relevance)
        self._log_pairs = np.log(relevance.n_relevant) + np.log(relevance.n_irrelevant)
        self._size = max(FEWEST, BLOCK_BYTES // (8 * points.n_items))

    def value_and_gradient(
        self, Z: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss of embedded points (n_points, K), and its gradient by them.

        ``queries`` are the numbers of those that count, all by default.
        """
        queries = np.arange(self.relevance.n_queries) if queries is None else queries
        queries = queries[self.relevance.weights[queries] > 0]
        n_parts = min(
            MOST_PARTS,
            -(-queries.size * self.n_items // PAIRS),
            -(-queries.size // FEWEST),
        )
        total = current_backend().reduce(self, np.array_split(queries, n_parts), Z)
        shares = np.exp(np.concatenate(total.logs) - total.top) / total.total
        gradient, n = np.zeros_like(Z), self.n_items
        pull = total.pull.T / total.total
        gradient[:n] = 2 * (pull[:, -1:] * Z[:n] - pull[:, :-1])
        gradient[self.query_rows[queries]] -= (
            2 * shares[:, None] * np.concatenate(total.directions)
        )
        mean = (
            total.top
            + np.log(total.total)
            - np.log(self.relevance.weights[queries].sum())
        )
        return float(mean), gradient

    def prepare(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Embedded items, and two factors of the negative squared distances of points and items."""
        items, norms = Z[: self.n_items], np.einsum("ij,ij->i", Z, Z)
        left = np.column_stack((norms, Z, np.ones(len(Z))))
        right = np.vstack((-np.ones(len(items)), 2 * items.T, -norms[: len(items)]))
        return items, left, right

    def map_block(
        self, queries: np.ndarray, state: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> _Sum:
        """Sums over some of the queries."""
        items, left, right = state
        left, n = left[self.query_rows[queries]], self.n_items
        found = _Sum(n, items.shape[1])
        # One buffer for all blocks: threads that ask for memory wait for each other.
        buffer = np.empty((min(self._size, queries.size), n))
        for at in range(0, queries.size, self._size):
            block, own = queries[at : at + self._size], left[at : at + self._size]
            weights = np.matmul(own, right, out=buffer[: block.size])
            logs, units = self._softmax(weights, own, right, block)
            logs += np.log(self.relevance.weights[block])
            shares = found.add_logs(logs)
            found.pull += (own[:, 1:] * (shares / units)[:, None]).T @ weights
            found.directions.append(weights @ items / units[:, None])
        return found

    def _softmax(
        self, logits: np.ndarray, left: np.ndarray, right: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log of each F_q, and units of sigma - tau, which replace ``left @ right`` in place."""
        from ...._engine.kernels.ratio import put_relevant

        near = self._take_relevant(logits, block, NOTHING)
        tau = np.exp(logits, out=logits)
        sums, shifts = tau.sum(axis=1), np.zeros(block.size)
        if (
            sums.min() < TINY
        ):  # far from everything irrelevant: its exponentials are lost
            far = np.flatnonzero(sums < TINY)
            again = left[far] @ right
            self._take_relevant(again, block[far], -np.inf)
            shifts[far] = again.max(axis=1)
            tau[far] = np.exp(again - shifts[far, None])
            sums[far] = tau[far].sum(axis=1)
        farthest = near.max(axis=1)
        sigma = np.exp(near - farthest[:, None], out=near)
        sums_near = sigma.sum(axis=1)
        logs = (
            farthest
            + np.log(sums_near)
            + shifts
            + np.log(sums)
            - self._log_pairs[block]
        )
        sigma *= -(sums / sums_near)[:, None]
        put_relevant(tau, *self._judgments(block), sigma)
        return logs, -sums

    def _take_relevant(
        self, logits: np.ndarray, block: np.ndarray, rest: float
    ) -> np.ndarray:
        """Squared distances of relevant items; ``rest`` replaces their negatives in a block."""
        from ...._engine.kernels.ratio import take_relevant

        counts = self.relevance.n_relevant[block]
        near = np.full((block.size, counts.max()), np.inf)
        others_count = self.relevance.unlisted_is_irrelevant
        take_relevant(logits, *self._judgments(block), others_count, rest, near)
        return np.negative(near, out=near)

    def _judgments(self, block: np.ndarray) -> Judgments:
        return (
            self.relevance.rows[block],
            self.relevance.query_items[block],
            self._judged.indptr,
            self._judged.indices,
            self._judged.data,
        )


class _Sum:
    """Sums over queries in units of ``exp(top)``, the largest term so far."""

    def __init__(self, n_items: int, n_components: int) -> None:
        self.top, self.total = -np.inf, 0.0
        self.pull = np.zeros((n_components + 1, n_items))
        self.directions: list[np.ndarray] = []
        self.logs: list[np.ndarray] = []

    def add_logs(self, logs: np.ndarray) -> np.ndarray:
        """Take in terms by their logs; returns them in the unit that the sums have now."""
        self._raise(logs.max())
        shares = np.exp(logs - self.top)
        self.total += shares.sum()
        self.logs.append(logs)
        return shares

    def add(self, other: _Sum) -> None:
        """Take in another sum."""
        self._raise(other.top)
        unit = np.exp(other.top - self.top)
        self.total += unit * other.total
        self.pull += unit * other.pull
        self.directions += other.directions
        self.logs += other.logs

    def _raise(self, top: float) -> None:
        if top > self.top:
            shrink = np.exp(self.top - top)
            self.top = top
            self.total *= shrink
            self.pull *= shrink

    def plus(self, other: _Sum) -> _Sum:
        """The sums of this and of what comes after it."""
        both = _Sum(self.pull.shape[1], len(self.pull) - 1)
        both.add(self)
        both.add(other)
        return both
