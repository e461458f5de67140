"""Weights of local metrics, by L-BFGS on a logistic loss or by WARP steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize

from ...._engine.parallel.threads import for_each, single_threaded_blas, thread_map
from ..smooth.lbfgs import minimize_lbfgs
from .lists import Lists, even_runs, run_starts

RUN = 4096  # documents in a run of lists
MEMORY = 20  # of L-BFGS
TOL = 1e-9  # of L-BFGS; losses lie between 0 and 1


class WarpOptions(NamedTuple):
    """Options of WARP: margin, first learning rate, steps for each list, seed, first weight."""

    margin: float
    step: float
    n_steps: int
    seed: int
    start: float = 1.0


def pair_weights(lists: Lists, k: int) -> np.ndarray:
    """Weights of the pairs of each list, which multiply the difference of their gains.

    A pair weighs the share of the ideal DCG@k that its gains differ by, and a list as the root of
    the number of its pairs; all weights of pairs add up to 1.
    """
    sizes = np.diff(lists.indptr)
    gains = lists.gains
    owner = lists.owner
    place = np.arange(gains.size) - lists.indptr[owner]
    # In a falling list the gain at place i is added n - 1 - i times, and taken off i times.
    gaps = np.bincount(owner, gains * (sizes[owner] - 1 - 2 * place), len(lists))
    discounted = gains / np.log2(place + 2)
    ideal = np.bincount(owner, np.where(place < k, discounted, 0.0), len(lists))
    n_pairs = _unlike_pairs(owner, gains, sizes)
    weights = np.zeros(len(lists))
    some = n_pairs > 0
    weights[some] = lists.weights[some] / (ideal[some] * np.sqrt(n_pairs[some]))
    return weights / (weights @ gaps)


def _unlike_pairs(
    owner: np.ndarray, gains: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """How many pairs of each list differ in gain; equal gains stand together."""
    starts = run_starts(owner, gains)
    runs = np.diff(np.append(starts, gains.size))
    return (sizes**2 - np.bincount(owner[starts], runs**2, sizes.size)) / 2


class PairLogistic:
    """Logistic loss of the pairs of candidate lists plus ``weight_reg / 2 |w|^2``.

    ``columns`` (n, p) belong to the documents of ``lists`` in their order; a larger weighted sum is
    a better score.
    """

    def __init__(
        self, columns: np.ndarray, lists: Lists, weight_reg: float, k: int
    ) -> None:
        self.columns = columns
        self.lists = lists
        self.weight_reg = weight_reg
        self.gains = lists.gains
        self.weights = pair_weights(lists, k)
        # Runs of lists depend on nothing but the lists, so that sums round the same.
        self.runs = even_runs(lists.indptr[:-1], RUN)
        self.losses = np.empty(len(lists))
        self.slopes = np.empty((len(self.runs), columns.shape[1]))
        n_pairs = float(np.sum(np.diff(lists.indptr) ** 2))
        self.flops = 4.0 * columns.size + 10.0 * n_pairs

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss of weights, and its gradient."""
        # Products of one precision are much faster than mixed ones.
        cast = w.astype(self.columns.dtype)

        def work(number: int) -> None:
            self._store_run(number, cast)

        for_each(work, range(len(self.runs)), flops=self.flops)
        value = self.losses.sum() + self.weight_reg / 2 * (w @ w)
        return float(value), self.slopes.sum(axis=0) + self.weight_reg * w

    def _store_run(self, number: int, w: np.ndarray) -> None:
        """Store the losses of the lists of a run, and the sum of their slopes."""
        from ...._engine.kernels.lists import pair_losses

        first, last = self.runs[number]
        edges = self.lists.indptr[first : last + 1]
        rows = slice(edges[0], edges[-1])
        scores = (self.columns[rows] @ w).astype(np.float64)
        slopes = np.empty(scores.size)
        pair_losses(
            scores,
            self.gains[rows],
            edges - edges[0],
            self.weights[first:last],
            self.losses[first:last],
            slopes,
        )
        self.slopes[number] = slopes.astype(w.dtype) @ self.columns[rows]


def logistic_weights(
    columns: np.ndarray,
    lists: Lists,
    *,
    weight_reg: float,
    k: int,
    non_negative: bool,
    max_iter: int,
) -> np.ndarray:
    """Weights of columns that minimise the logistic loss of pairs by L-BFGS."""
    loss = PairLogistic(columns, lists, weight_reg, k)
    start = np.zeros(columns.shape[1])
    if non_negative:
        return _minimize_bounded(loss, start, max_iter)
    minimum = minimize_lbfgs(
        loss.value_and_gradient, start, tol=TOL, max_iter=max_iter, memory=MEMORY
    )
    return minimum.parameters


def _minimize_bounded(
    loss: PairLogistic, start: np.ndarray, max_iter: int
) -> np.ndarray:
    """SciPy's L-BFGS-B, for weights that must not fall below 0."""
    with single_threaded_blas():
        result = scipy.optimize.minimize(
            loss.value_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * start.size,
            options={"maxiter": max_iter, "maxcor": MEMORY},
        )
    return result.x


def shared_warp(H: np.ndarray, lists: Lists, options: WarpOptions) -> np.ndarray:
    """Non-negative weights of metrics, by WARP steps through all lists in shuffled rounds."""
    rng = np.random.default_rng(options.seed)
    rounds = [rng.permutation(len(lists)) for _ in range(options.n_steps)]
    return _warp(H, lists, np.concatenate(rounds), options)


def per_list_warp(H: np.ndarray, lists: Lists, options: WarpOptions) -> np.ndarray:
    """Non-negative weights for each list by its own WARP steps, whatever the number of threads."""
    order = np.zeros(options.n_steps, dtype=np.int64)

    def learn(q: int) -> np.ndarray:
        seed = options.seed + 7919 * (q + 1)
        one = lists.take(np.array([q]))
        return _warp(H[lists.rows_of(q)], one, order, options._replace(seed=seed))

    return np.stack(list(thread_map(learn, range(len(lists)), depth=16)))


def _warp(
    H: np.ndarray, lists: Lists, order: np.ndarray, options: WarpOptions
) -> np.ndarray:
    """Mean weights of the last half of WARP steps through the lists in the given order."""
    from ...._engine.kernels.lists import ListEnds, WarpSettings, warp_descent

    n_top, n_low = lists.ends()
    by_rank = 1 / np.log2(np.arange(2, n_low.max() + 2))
    rank_weights = np.concatenate(([0.0], np.cumsum(by_rank)))
    weights = np.full(H.shape[1], options.start)
    mean = np.zeros(H.shape[1])
    ends = ListEnds(lists.indptr, n_top, n_low)
    settings = WarpSettings(options.margin, options.step, rank_weights, options.seed)
    warp_descent(H, ends, order, weights, settings, mean)
    return mean
