"""PARCA's loss: the log of a mean ratio over pairs of relevant and irrelevant items.

With squared distances ``a`` of embedded points, a query has the ratio

    F_q = mean of exp(a_qj) over its relevant items j  times  mean of exp(-a_qk) over the others k,

and the loss is the log of the weighted mean of all F_q. Nothing above 0 is exponentiated. With
sigma and tau, the softmax of a_qj and of -a_qk, and p_q the share of F_q in their sum, the
derivative by a_qx is ``p_q (sigma_qx - tau_qx)``: a graph with weights of both signs, whose
Laplacian times the embedded points is the gradient by them. So an evaluation costs O(n^2 K) for the
pairs and two products with the data, and no difference of two points is formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from ..points import Points
from .pair_loss import judged_states

if TYPE_CHECKING:
    from ...._engine.kernels.ratio import JudgedItems

# Sums are taken in as many blocks whatever the number of threads, so that they round the same.
MAX_BLOCKS = 32
PAIRS = 2**20  # of a block of sums
BLOCK_BYTES = 2**21  # of distances: more leave the cache
FEWEST = 8  # queries of a block: fewer are all overhead
TINY = 1e-100  # a sum of exponentials below this has lost digits
LOWEST = -700.0  # its exponential is 1e-304, found faster than one that is 0


class PairRatio(Step):
    """PARCA's loss of embedded points, over all queries or some of them.

    Parameters
    ----------
    points : Points
        Items and queries.
    relevance : Relevance
        Who is relevant to whom; every query has something relevant and something irrelevant.
    """

    def __init__(self, points: Points, relevance: Relevance) -> None:
        self.query_rows = points.query_rows
        self.n_items = points.n_items
        self.relevance = relevance
        self._judged = judged_states(relevance)
        self._log_pairs = np.log(relevance.n_relevant) + np.log(relevance.n_irrelevant)
        self._block_size = max(FEWEST, BLOCK_BYTES // (8 * points.n_items))

    def value_and_gradient(
        self, Z: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss of embedded points (n_points, K), and its gradient by them.

        ``queries`` are the numbers of those that count, all by default.
        """
        if queries is None:
            queries = np.arange(self.relevance.n_queries)
        queries = queries[self.relevance.weights[queries] > 0]
        sums = current_backend().reduce(self, self._blocks(queries), Z)
        shares = np.exp(np.concatenate(sums.logs) - sums.top) / sums.total
        attraction = sums.attraction.T / sums.total
        items = Z[: self.n_items]
        gradient = np.zeros_like(Z)
        gradient[: self.n_items] = 2 * (attraction[:, -1:] * items - attraction[:, :-1])
        gradient[self.query_rows[queries]] -= (
            2 * shares[:, None] * np.concatenate(sums.directions)
        )
        log_weight = np.log(self.relevance.weights[queries].sum())
        return float(sums.top + np.log(sums.total) - log_weight), gradient

    def _blocks(self, queries: np.ndarray) -> list[np.ndarray]:
        n_by_pairs = -(-queries.size * self.n_items // PAIRS)
        n_by_queries = -(-queries.size // FEWEST)
        return np.array_split(queries, min(MAX_BLOCKS, n_by_pairs, n_by_queries))

    def prepare(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Embedded items, and two factors of the negative squared distances of points and items."""
        items = Z[: self.n_items]
        norms = np.einsum("ij,ij->i", Z, Z)
        left = np.column_stack((norms, Z, np.ones(len(Z))))
        right = np.vstack((-np.ones(len(items)), 2 * items.T, -norms[: len(items)]))
        return items, left, right

    def map_block(
        self, queries: np.ndarray, state: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> _Sums:
        """Sums over some of the queries."""
        items, left, right = state
        left = left[self.query_rows[queries]]
        sums = _Sums(self.n_items, items.shape[1])
        # One buffer for all blocks: threads that ask for memory wait for each other.
        buffer = np.empty((min(self._block_size, queries.size), self.n_items))
        for start in range(0, queries.size, self._block_size):
            block = queries[start : start + self._block_size]
            block_left = left[start : start + self._block_size]
            weights = np.matmul(block_left, right, out=buffer[: block.size])
            logs, units = self._softmax(weights, block_left, right, block)
            logs += np.log(self.relevance.weights[block])
            shares = sums.add_logs(logs)
            sums.attraction += (
                block_left[:, 1:] * (shares / units)[:, None]
            ).T @ weights
            sums.directions.append(weights @ items / units[:, None])
        return sums

    def _softmax(
        self, logits: np.ndarray, left: np.ndarray, right: np.ndarray, block: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log of each F_q, and units of sigma - tau, which replace ``left @ right`` in place."""
        from ...._engine.kernels.ratio import put_relevant

        near = self._take_relevant(logits, block, LOWEST)
        tau = np.exp(logits, out=logits)
        sums = tau.sum(axis=1)
        shifts = np.zeros(block.size)
        far = np.flatnonzero(sums < TINY)
        if far.size:
            # Far from everything irrelevant: shift the exponents so that none is lost.
            far_logits = left[far] @ right
            self._take_relevant(far_logits, block[far], -np.inf)
            shifts[far] = far_logits.max(axis=1)
            tau[far] = np.exp(far_logits - shifts[far, None])
            sums[far] = tau[far].sum(axis=1)
        farthest = near.max(axis=1)
        sigma = np.exp(near - farthest[:, None], out=near)
        sums_near = sigma.sum(axis=1)
        log_numerator = farthest + np.log(sums_near) + shifts + np.log(sums)
        sigma *= -(sums / sums_near)[:, None]
        put_relevant(tau, self._judged_items(block), sigma)
        return log_numerator - self._log_pairs[block], -sums

    def _take_relevant(
        self, logits: np.ndarray, block: np.ndarray, rest: float
    ) -> np.ndarray:
        """Squared distances of relevant items; ``rest`` replaces their negatives in a block."""
        from ...._engine.kernels.ratio import take_relevant

        counts = self.relevance.n_relevant[block]
        near = np.full((block.size, counts.max()), np.inf)
        unlisted_count = self.relevance.unlisted_is_irrelevant
        take_relevant(logits, self._judged_items(block), unlisted_count, rest, near)
        return np.negative(near, out=near)

    def _judged_items(self, block: np.ndarray) -> JudgedItems:
        from ...._engine.kernels.ratio import JudgedItems

        return JudgedItems(
            self.relevance.rows[block],
            self.relevance.query_items[block],
            self._judged.indptr,
            self._judged.indices,
            self._judged.data,
        )


class _Sums:
    """Sums over queries in units of ``exp(top)``, the largest term so far.

    ``total`` is the sum of all F_q, ``attraction`` (K + 1, n_items) that of the weighted queries
    and their weights for each item; ``directions`` and ``logs`` hold a row for each query.
    """

    def __init__(self, n_items: int, n_components: int) -> None:
        self.top = -np.inf
        self.total = 0.0
        self.attraction = np.zeros((n_components + 1, n_items))
        self.directions: list[np.ndarray] = []
        self.logs: list[np.ndarray] = []

    def add_logs(self, logs: np.ndarray) -> np.ndarray:
        """Add terms given by their logs; returns them in the current unit."""
        self._raise(logs.max())
        shares = np.exp(logs - self.top)
        self.total += shares.sum()
        self.logs.append(logs)
        return shares

    def add(self, other: _Sums) -> None:
        """Add other sums in place."""
        self._raise(other.top)
        unit = np.exp(other.top - self.top)
        self.total += unit * other.total
        self.attraction += unit * other.attraction
        self.directions += other.directions
        self.logs += other.logs

    def _raise(self, top: float) -> None:
        if top > self.top:
            shrink = np.exp(self.top - top)
            self.top = top
            self.total *= shrink
            self.attraction *= shrink

    def plus(self, other: _Sums) -> _Sums:
        """These sums and then the others, as new sums."""
        both = _Sums(self.attraction.shape[1], len(self.attraction) - 1)
        both.add(self)
        both.add(other)
        return both
