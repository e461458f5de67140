"""Losses over candidate lists: pairs weighed by gain, and WARP steps on the weights of metrics."""

import numpy as np
from numba import njit

from .warp import uniform

CHUNK = 16  # factors multiplied before a logarithm is taken
WIDEST = (
    40.0  # scores farther apart are left to exact pairs: exp(40)^16 is still a number
)


@njit(cache=True, nogil=True)
def pair_losses(scores, gains, indptr, weights, losses, gradient):
    """Logistic loss of the pairs of each list, and its gradient.

    A pair of documents of unlike gain weighs the difference of the gains times ``weights`` of its
    list. ``scores``, ``gains``, ``gradient`` (n,) float64; ``indptr`` (n_lists + 1,) int64;
    ``weights`` and ``losses`` (n_lists,) float64. Gains fall within each list.
    """
    for q in range(indptr.size - 1):
        own = slice(indptr[q], indptr[q + 1])
        gradient[own] = 0.0
        total = 0.0
        if indptr[q + 1] - indptr[q] > 1:
            low, high = scores[own].min(), scores[own].max()
            if high - low < WIDEST:
                raised = np.exp(scores[own] - (low + high) / 2)
                total = level_losses(raised, gains[own], gradient[own])
            else:
                total = exact_losses(scores[own], gains[own], gradient[own])
        losses[q] = weights[q] * total
        gradient[own] *= weights[q]


@njit(cache=True, nogil=True)
def level_losses(raised, gains, gradient):
    """Loss of the pairs of one list from the exponentials of its scores, and its gradient.

    The loss of document i against all of one lower gain is the logarithm of the product of
    ``1 + raised[j] / raised[i]``: no exponential a pair, and few logarithms.
    """
    n, total, low = raised.size, 0.0, 0
    for i in range(n):
        while low < n and gains[low] == gains[i]:
            low += 1
        scale, first = 1 / raised[i], low
        while first < n:
            last = first + 1
            while last < n and gains[last] == gains[first]:
                last += 1
            loss, share = one_against(
                scale, raised[first:last], gains[i] - gains[first], gradient[first:last]
            )
            total += loss
            gradient[i] -= share
            first = last
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp"})
def one_against(scale, raised, gap, gradient):
    """Loss and pull of one document against others of one gain, ``gap`` below its own."""
    loss, share = 0.0, 0.0
    for start in range(0, raised.size, CHUNK):
        product = 1.0
        for j in range(start, min(start + CHUNK, raised.size)):
            ratio = scale * raised[j]
            product *= 1 + ratio
            pull = gap * (ratio / (1 + ratio))
            gradient[j] += pull
            share += pull
        loss += np.log(product)
    return gap * loss, share


@njit(cache=True, nogil=True)
def exact_losses(scores, gains, gradient):
    """Loss of the pairs of one list whatever its scores, pair by pair, and its gradient."""
    total = 0.0
    for i in range(scores.size):
        for j in range(i + 1, scores.size):
            gap = gains[i] - gains[j]
            if gap > 0:
                z = scores[i] - scores[j]
                e = np.exp(-abs(z))
                total += gap * (np.log1p(e) + max(-z, 0.0))
                pull = gap * (e / (1 + e) if z > 0 else 1 / (1 + e))
                gradient[i] -= pull
                gradient[j] += pull
    return total


@njit(cache=True, nogil=True)
def weighted_sum(H, row, phi):
    """Inner product of a row with the weights, in one order whatever the machine."""
    total = 0.0
    for r in range(phi.size):
        total += H[row, r] * phi[r]
    return total


@njit(cache=True, nogil=True)
def warp_step(H, first, n_top, n_low, last, phi, margin, length, levels, seed, step):
    """One WARP step of one list: a top document, and low ones drawn until one violates.

    Rows ``first .. first + n_top - 1`` of H hold the documents of the top grade, the last ``n_low``
    before ``last`` those of the lowest. The score is minus the weighted sum, so the sum of a
    violator is less than ``margin`` above that of the top document. Returns 1 if there was one.
    """
    top = first + np.int64(uniform(seed, step, 0) * n_top)
    own = weighted_sum(H, top, phi)
    for draw in range(1, n_low + 1):
        low = last - 1 - np.int64(uniform(seed, step, draw) * n_low)
        if weighted_sum(H, low, phi) - own < margin:
            pull = length * levels[n_low // draw] / levels[n_low]
            for r in range(phi.size):
                phi[r] = max(0.0, phi[r] - pull * (H[top, r] - H[low, r]))
            return 1
    return 0


@njit(cache=True, nogil=True)
def warp_descent(H, indptr, n_top, n_low, order, phi, margin, step, levels, seed, mean):
    """Steps through the lists in the given order; ``mean`` gets the mean weights of the last half.

    The length of step t of T is ``step * (1 - t / T)``. Returns how many steps met a violator.
    """
    violators = 0
    mean[:] = 0.0
    for t in range(order.size):
        q = order[t]
        length = step * (1 - t / order.size)
        violators += warp_step(
            H,
            indptr[q],
            n_top[q],
            n_low[q],
            indptr[q + 1],
            phi,
            margin,
            length,
            levels,
            seed,
            t,
        )
        if 2 * t >= order.size:
            for r in range(phi.size):
                mean[r] += phi[r]
    mean /= max(1, order.size - (order.size + 1) // 2)
    return violators
