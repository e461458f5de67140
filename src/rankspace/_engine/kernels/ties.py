"""Expected measures of one list whose items at equal distance stand in random order.

Each takes ``(starts, sizes, counts, gains, ideal, n_irrelevant, k)``. An entry is a group of tied
items that holds something relevant: ``starts`` items stand before it, ``sizes`` in it, ``counts``
of them relevant, with ``gains`` of gain in all. The rest is as in `measures`. The formulas are
those of McSherry and Najork (2008).
"""

import math

import numpy as np
from numba import njit

from .measures import mlr_discount, standard_discount


@njit(cache=True, nogil=True)
def auc(starts, sizes, counts, gains, ideal, n_irrelevant, k):
    """Tied pairs count one half."""
    if n_irrelevant == 0:
        return np.nan
    before = 0
    misordered = 0.0
    for g in range(starts.size):
        tied = sizes[g] - counts[g]
        misordered += counts[g] * (starts[g] - before + tied / 2)
        before += counts[g]
    return 1.0 - misordered / (ideal.size * n_irrelevant)


@njit(cache=True, nogil=True)
def hits(starts, sizes, counts, k):
    """Expected number of relevant items within the first k."""
    total = 0.0
    for g in range(starts.size):
        inside = sizes[g] if k == 0 else min(max(k - starts[g], 0), sizes[g])
        total += counts[g] * inside / sizes[g]
    return total


@njit(cache=True, nogil=True)
def log_choose(n, k):
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@njit(cache=True, nogil=True)
def knn(starts, sizes, counts, gains, ideal, n_irrelevant, k):
    """Probability that more than half of the first k are relevant."""
    sure = 0
    for g in range(starts.size):
        if starts[g] + sizes[g] <= k:
            sure += counts[g]
            continue
        drawn = k - starts[g]
        if drawn <= 0:
            break
        tail = 0.0
        for x in range(max(0, drawn - sizes[g] + counts[g]), min(drawn, counts[g]) + 1):
            if 2 * (sure + x) > k:
                tail += math.exp(
                    log_choose(counts[g], x)
                    + log_choose(sizes[g] - counts[g], drawn - x)
                    - log_choose(sizes[g], drawn)
                )
        return tail
    return 1.0 if 2 * sure > k else 0.0


@njit(cache=True, nogil=True)
def average_precision(starts, sizes, counts, gains, ideal, n_irrelevant, k):
    """A place j of a group is relevant with one probability, and so is each place before it."""
    before = 0
    total = 0.0
    for g in range(starts.size):
        others = (counts[g] - 1) / (sizes[g] - 1) if sizes[g] > 1 else 0.0
        for j in range(sizes[g]):
            total += (
                counts[g] / sizes[g] * (before + 1 + j * others) / (starts[g] + j + 1)
            )
        before += counts[g]
    return total / ideal.size


@njit(cache=True, nogil=True)
def reciprocal_rank(starts, sizes, counts, gains, ideal, n_irrelevant, k):
    """Sum over the places of the first group of the chance that the first relevant one is there."""
    if starts.size == 0:
        return 0.0
    size, count = sizes[0], counts[0]
    none_yet = 1.0
    total = 0.0
    for j in range(size - count + 1):
        chance = none_yet * count / (size - j)
        total += chance / (starts[0] + j + 1)
        none_yet -= chance
    return total


@njit(cache=True, nogil=True)
def first_rank(starts, sizes, counts, gains, ideal, n_irrelevant, k):
    if starts.size == 0:
        return np.nan
    return starts[0] + (sizes[0] + 1) / (counts[0] + 1)


@njit(cache=True, nogil=True)
def discounted(starts, sizes, gains, k, standard):
    """Each place of a group carries the mean gain of the group."""
    total = 0.0
    for g in range(starts.size):
        discounts = 0.0
        for j in range(sizes[g]):
            position = starts[g] + j + 1
            if k and position > k:
                break
            discounts += (
                standard_discount(position) if standard else mlr_discount(position)
            )
        total += gains[g] / sizes[g] * discounts
    return total


@njit(cache=True, nogil=True)
def best_discounted(ideal, k, standard):
    total = 0.0
    for i in range(ideal.size if k == 0 else min(k, ideal.size)):
        total += (
            ideal[i] * standard_discount(i + 1) if standard else mlr_discount(i + 1)
        )
    return total


@njit(cache=True, nogil=True)
def expected_measure(code, starts, sizes, counts, gains, ideal, n_irrelevant, k):
    """Expected value of `measures.KERNELS[code]`."""
    if code == 0:
        return auc(starts, sizes, counts, gains, ideal, n_irrelevant, k)
    if code == 1:
        return 2.0 * (1.0 - auc(starts, sizes, counts, gains, ideal, n_irrelevant, k))
    if code == 2:
        return hits(starts, sizes, counts, k) / k
    if code == 3:
        return hits(starts, sizes, counts, k) / ideal.size
    if code == 4:
        return knn(starts, sizes, counts, gains, ideal, n_irrelevant, k)
    if code == 5:
        return average_precision(starts, sizes, counts, gains, ideal, n_irrelevant, k)
    if code == 6:
        return reciprocal_rank(starts, sizes, counts, gains, ideal, n_irrelevant, k)
    if code == 7:
        return first_rank(starts, sizes, counts, gains, ideal, n_irrelevant, k)
    if code == 8:
        return discounted(starts, sizes, gains, k, True) / best_discounted(
            ideal, k, True
        )
    return discounted(starts, sizes, counts, k, False) / best_discounted(
        ideal, k, False
    )
