"""What each local metric weighs: one set of weights for all lists, or one for each."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from ...._engine.parallel.threads import for_each, single_threaded_blas, thread_map
from .lists import Lists

PART = 4096  # documents in a part of the work


class Descent(NamedTuple):
    """Options of WARP: the margin, the length of the first step, and the steps for each list."""

    margin: float
    step: float
    n_steps: int
    seed: int


def pair_weights(lists: Lists, k: int) -> np.ndarray:
    """What the pairs of each list weigh, beside the difference of their gains.

    A pair weighs the share of the best DCG@k that its gains differ by, and a list as the root of
    the number of its pairs; in all, the weights of the pairs add up to 1.
    """
    sizes, gains = np.diff(lists.indptr), lists.gains
    owner = np.repeat(np.arange(len(lists)), sizes)
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
    """How many pairs of each list have two gains; equal gains stand together."""
    new = np.concatenate(([True], (np.diff(owner) != 0) | (np.diff(gains) != 0)))
    starts = np.flatnonzero(new)
    runs = np.diff(np.concatenate((starts, [gains.size])))
    return (sizes**2 - np.bincount(owner[starts], runs**2, sizes.size)) / 2


def logistic_weights(
    columns: np.ndarray,
    lists: Lists,
    *,
    weight_reg: float,
    k: int,
    positive: int,
    max_iter: int,
) -> np.ndarray:
    """Weights of columns that minimise the logistic loss of pairs plus ``weight_reg / 2 |w|^2``.

    ``columns`` (n, p) belong to the documents of ``lists`` in their order, a larger sum is better;
    the first ``positive`` weights are kept from falling below 0.
    """
    from ...._engine.kernels.lists import pair_losses

    weights, gains = pair_weights(lists, k), lists.gains
    parts = _even_parts(lists)
    losses, slopes = np.empty(len(lists)), np.empty((len(parts), columns.shape[1]))
    flops = 4.0 * columns.size + 10.0 * float(np.sum(np.diff(lists.indptr) ** 2))

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        single = w.astype(columns.dtype)

        def work(number: int) -> None:
            part = parts[number]
            edges = lists.indptr[part.start : part.stop + 1]
            rows = slice(edges[0], edges[-1])
            scores = (columns[rows] @ single).astype(np.float64)
            pull = np.empty(scores.size)
            pair_losses(
                scores, gains[rows], edges - edges[0], weights[part], losses[part], pull
            )
            slopes[number] = pull.astype(columns.dtype) @ columns[rows]

        for_each(work, range(len(parts)), flops=flops)
        return float(losses.sum() + weight_reg / 2 * (w @ w)), slopes.sum(
            axis=0
        ) + weight_reg * w

    n = columns.shape[1]
    bounds = [(0, None)] * positive + [(None, None)] * (n - positive)
    with single_threaded_blas():
        found = minimize(
            objective,
            np.zeros(n),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_iter, "maxcor": 20},
        )
    return found.x


def _even_parts(lists: Lists) -> list[slice]:
    """Runs of lists of about as many documents each; they depend on nothing but the lists."""
    cuts = np.flatnonzero(np.diff(lists.indptr[:-1] // PART)) + 1
    edges = [0, *cuts.tolist(), len(lists)]
    return [slice(a, b) for a, b in pairwise(edges)]


def shared_warp(H: np.ndarray, lists: Lists, descent: Descent) -> np.ndarray:
    """One non-negative weight a metric, by WARP steps through all lists in shuffled rounds."""
    rng = np.random.default_rng(descent.seed)
    rounds = [rng.permutation(len(lists)) for _ in range(descent.n_steps)]
    return _descend(H, lists, np.concatenate(rounds), descent, descent.seed)


def each_warp(H: np.ndarray, lists: Lists, descent: Descent) -> np.ndarray:
    """Weights for each list by steps of its own, whatever the number of threads."""

    def work(q: int) -> np.ndarray:
        part = lists.part(q)
        own = Lists(
            np.array([0, part.stop - part.start]),
            lists.rows[part],
            lists.grades[part],
            lists.weights[q : q + 1],
        )
        seed = descent.seed + 7919 * (q + 1)
        return _descend(
            H[part], own, np.zeros(descent.n_steps, dtype=np.int64), descent, seed
        )

    return np.stack(list(thread_map(work, range(len(lists)), depth=16)))


def _descend(
    H: np.ndarray, lists: Lists, order: np.ndarray, descent: Descent, seed: int
) -> np.ndarray:
    from ...._engine.kernels.lists import warp_descent

    top, low = lists.ends()
    levels = np.concatenate(
        ([0.0], np.cumsum(1 / np.log2(np.arange(2, low.max() + 2))))
    )
    phi, mean = np.ones(H.shape[1]), np.zeros(H.shape[1])
    warp_descent(
        H,
        lists.indptr,
        top,
        low,
        order,
        phi,
        descent.margin,
        descent.step,
        levels,
        seed,
        mean,
    )
    return mean
