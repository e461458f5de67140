"""Ranking measures of one list, from the positions of its relevant items.

Each takes ``(positions, gains, ideal, n_irrelevant, k)``:

- positions: int64, ascending and 1-based, of the relevant items that were listed;
- gains: float64, the gain of each of them;
- ideal: float64, gains of all relevant items in descending order, listed or not, at least one;
- n_irrelevant: how many irrelevant items there are;
- k: the cut-off, 0 for none.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def auc(positions, gains, ideal, n_irrelevant, k):
    """Share of (relevant, irrelevant) pairs in the right order; NaN if there are none."""
    if n_irrelevant == 0:
        return np.nan
    misordered = 0
    for i in range(positions.size):
        misordered += positions[i] - i - 1
    return 1.0 - misordered / (ideal.size * n_irrelevant)


@njit(cache=True, nogil=True)
def ranking_error(positions, gains, ideal, n_irrelevant, k):
    """Share of misordered pairs over the one half that a random order has."""
    return 2.0 * (1.0 - auc(positions, gains, ideal, n_irrelevant, k))


@njit(cache=True, nogil=True)
def hits(positions, k):
    """Number of relevant items within the first k."""
    count = 0
    while count < positions.size and (k == 0 or positions[count] <= k):
        count += 1
    return count


@njit(cache=True, nogil=True)
def precision(positions, gains, ideal, n_irrelevant, k):
    """Relevant items among the first k, over k."""
    return hits(positions, k) / k


@njit(cache=True, nogil=True)
def recall(positions, gains, ideal, n_irrelevant, k):
    """Relevant items among the first k, over all relevant ones."""
    return hits(positions, k) / ideal.size


@njit(cache=True, nogil=True)
def knn(positions, gains, ideal, n_irrelevant, k):
    """1 if more than half of the first k are relevant."""
    return 1.0 if 2 * hits(positions, k) > k else 0.0


@njit(cache=True, nogil=True)
def average_precision(positions, gains, ideal, n_irrelevant, k):
    """Mean over all relevant items of the precision at their position."""
    total = 0.0
    for i in range(positions.size):
        total += (i + 1) / positions[i]
    return total / ideal.size


@njit(cache=True, nogil=True)
def reciprocal_rank(positions, gains, ideal, n_irrelevant, k):
    """1 over the position of the first relevant item, 0 if none is listed."""
    return 1.0 / positions[0] if positions.size else 0.0


@njit(cache=True, nogil=True)
def first_rank(positions, gains, ideal, n_irrelevant, k):
    """Position of the first relevant item."""
    return float(positions[0]) if positions.size else np.nan


@njit(cache=True, nogil=True)
def standard_discount(position):
    """1 / log2(1 + position)."""
    return 1.0 / np.log2(position + 1.0)


@njit(cache=True, nogil=True)
def mlr_discount(position):
    """The discount of the MLR paper: 1, 1, then 1 / log2(position)."""
    return 1.0 if position < 2 else 1.0 / np.log2(position)


@njit(cache=True, nogil=True)
def discounted(positions, gains, k, standard):
    """Sum of discounted gains within the first k."""
    total = 0.0
    for i in range(hits(positions, k)):
        position = positions[i]
        total += gains[i] * (
            standard_discount(position) if standard else mlr_discount(position)
        )
    return total


@njit(cache=True, nogil=True)
def ndcg(positions, gains, ideal, n_irrelevant, k):
    """Discounted gain of the first k over that of the best list."""
    best = np.arange(1, ideal.size + 1)
    return discounted(positions, gains, k, True) / discounted(best, ideal, k, True)


@njit(cache=True, nogil=True)
def ndcg_mlr(positions, gains, ideal, n_irrelevant, k):
    """Binary NDCG with the discount of the MLR paper."""
    best = np.arange(1, ideal.size + 1)
    return discounted(positions, gains, k, False) / discounted(best, ideal, k, False)


# Numba caches no function that takes another one, so kernels are called by their place in KERNELS.
KERNELS = (
    auc,
    ranking_error,
    precision,
    recall,
    knn,
    average_precision,
    reciprocal_rank,
    first_rank,
    ndcg,
    ndcg_mlr,
)


@njit(cache=True, nogil=True)
def measure(code, positions, gains, ideal, n_irrelevant, k):
    """Value of KERNELS[code]."""
    if code == 0:
        return auc(positions, gains, ideal, n_irrelevant, k)
    if code == 1:
        return ranking_error(positions, gains, ideal, n_irrelevant, k)
    if code == 2:
        return precision(positions, gains, ideal, n_irrelevant, k)
    if code == 3:
        return recall(positions, gains, ideal, n_irrelevant, k)
    if code == 4:
        return knn(positions, gains, ideal, n_irrelevant, k)
    if code == 5:
        return average_precision(positions, gains, ideal, n_irrelevant, k)
    if code == 6:
        return reciprocal_rank(positions, gains, ideal, n_irrelevant, k)
    if code == 7:
        return first_rank(positions, gains, ideal, n_irrelevant, k)
    if code == 8:
        return ndcg(positions, gains, ideal, n_irrelevant, k)
    return ndcg_mlr(positions, gains, ideal, n_irrelevant, k)
