"""Losses over candidate lists: logistic loss of pairs, and WARP steps on weights of metrics."""

from typing import Any, NamedTuple

import numpy as np

from ..compiled import kernel
from .warp import uniform

CHUNK = 16  # factors multiplied before a logarithm is taken
MAX_SPREAD = 40.0  # of scores for products of exponentials: exp(40)^16 is still finite


class ListEnds(NamedTuple):
    """Where each list starts, and its numbers of documents of the top and of the lowest grade.

    Documents of list q are rows ``indptr[q]`` to ``indptr[q + 1]``: the first ``n_top[q]`` have
    its top grade, the last ``n_low[q]`` its lowest.
    """

    indptr: Any
    n_top: Any
    n_low: Any


class WarpSettings(NamedTuple):
    """Settings of WARP: margin, first learning rate, rank weights by rank, and seed."""

    margin: float
    step: float
    rank_weights: Any
    seed: int


@kernel
def pair_losses(scores, gains, indptr, weights, losses, gradient):
    """Logistic loss of the pairs of each list, and its gradient.

    A pair of documents of unlike gain weighs the difference of the gains times ``weights`` of its
    list. ``scores``, ``gains``, ``gradient`` (n,) float64; ``indptr`` (n_lists + 1,) int64;
    ``weights`` and ``losses`` (n_lists,) float64. Gains fall within each list.
    """
    for q in range(indptr.size - 1):
        rows = slice(indptr[q], indptr[q + 1])
        gradient[rows] = 0.0
        total = 0.0
        if indptr[q + 1] - indptr[q] > 1:
            low = scores[rows].min()
            high = scores[rows].max()
            if high - low < MAX_SPREAD:
                exponentials = np.exp(scores[rows] - (low + high) / 2)
                total = level_losses(exponentials, gains[rows], gradient[rows])
            else:
                total = exact_losses(scores[rows], gains[rows], gradient[rows])
        losses[q] = weights[q] * total
        # A loop, since an assignment of slices takes seconds to compile.
        for i in range(indptr[q], indptr[q + 1]):
            gradient[i] *= weights[q]


@kernel
def level_losses(exponentials, gains, gradient):
    """Logistic loss of the pairs of one list from exponentials of its scores, and its gradient.

    The loss of document i against all of one lower gain is the logarithm of the product of
    ``1 + exponentials[j] / exponentials[i]``: no exponential for a pair, and few logarithms.
    """
    n = exponentials.size
    total = 0.0
    low = 0
    for i in range(n):
        while low < n and gains[low] == gains[i]:
            low += 1
        scale = 1 / exponentials[i]
        first = low
        while first < n:
            last = first + 1
            while last < n and gains[last] == gains[first]:
                last += 1
            level = slice(first, last)
            gap = gains[i] - gains[first]
            loss, slope = one_against(scale, exponentials[level], gap, gradient[level])
            total += loss
            gradient[i] -= slope
            first = last
    return total


@kernel(fastmath={"reassoc", "contract", "arcp"})
def one_against(scale, exponentials, gap, gradient):
    """Loss and slope of one document against others of one gain, lower by ``gap``."""
    loss = 0.0
    total_slope = 0.0
    for start in range(0, exponentials.size, CHUNK):
        product = 1.0
        for j in range(start, min(start + CHUNK, exponentials.size)):
            ratio = scale * exponentials[j]
            product *= 1 + ratio
            slope = gap * (ratio / (1 + ratio))
            gradient[j] += slope
            total_slope += slope
        loss += np.log(product)
    return gap * loss, total_slope


@kernel
def exact_losses(scores, gains, gradient):
    """Logistic loss of the pairs of one list for any scores, pair by pair, and its gradient."""
    total = 0.0
    for i in range(scores.size):
        for j in range(i + 1, scores.size):
            gap = gains[i] - gains[j]
            if gap > 0:
                z = scores[i] - scores[j]
                e = np.exp(-abs(z))
                total += gap * (np.log1p(e) + max(-z, 0.0))
                slope = gap * (e / (1 + e) if z > 0 else 1 / (1 + e))
                gradient[i] -= slope
                gradient[j] += slope
    return total


@kernel
def weighted_sum(H, row, weights):
    """Inner product of a row with the weights, in one order whatever the machine."""
    total = 0.0
    for r in range(weights.size):
        total += H[row, r] * weights[r]
    return total


@kernel
def warp_step(H, lists, q, weights, settings, learning_rate, step):
    """One WARP step of list q: a top document, and low ones drawn until one violates the margin.

    H: (n_documents, n_metrics). The score is minus the weighted sum, so the sum of a violator is
    less than ``margin`` above that of the top document. ``weights`` are updated in place and stay
    non-negative. Returns 1 if there was a violator.
    """
    n_low = lists.n_low[q]
    rank_weights = settings.rank_weights
    drawn = np.int64(uniform(settings.seed, step, 0) * lists.n_top[q])
    top = lists.indptr[q] + drawn
    top_sum = weighted_sum(H, top, weights)
    for draw in range(1, n_low + 1):
        drawn = np.int64(uniform(settings.seed, step, draw) * n_low)
        low = lists.indptr[q + 1] - 1 - drawn
        if weighted_sum(H, low, weights) - top_sum < settings.margin:
            length = learning_rate * rank_weights[n_low // draw] / rank_weights[n_low]
            for r in range(weights.size):
                weights[r] = max(0.0, weights[r] - length * (H[top, r] - H[low, r]))
            return 1
    return 0


@kernel
def warp_descent(H, lists, order, weights, settings, mean):
    """WARP steps through the lists in the given order; ``mean`` averages the last half of them.

    The learning rate of step t of T is ``settings.step * (1 - t / T)``. Returns how many steps met
    a violator.
    """
    n_steps = order.size
    violators = 0
    mean[:] = 0.0
    for t in range(n_steps):
        rate = settings.step * (1 - t / n_steps)
        violators += warp_step(H, lists, order[t], weights, settings, rate, t)
        if 2 * t >= n_steps:
            for r in range(weights.size):
                mean[r] += weights[r]
    mean /= max(1, n_steps - (n_steps + 1) // 2)
    return violators
