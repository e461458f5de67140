"""Expected measures of one list in which tied items, at equal distance, are in random order.

Each takes ``(groups, ideal, n_irrelevant, k)``, the last three as in `measures`. The formulas are
those of McSherry and Najork (2008).
"""

import math
from typing import NamedTuple

import numpy as np

from ..compiled import kernel
from .measures import discount, ideal_dcg


class TieGroups(NamedTuple):
    """Groups of tied items that hold something relevant, nearest first."""

    starts: np.ndarray  # number of items before the group
    sizes: np.ndarray
    counts: np.ndarray  # number of its relevant items
    gains: np.ndarray  # sum of their gains


@kernel
def auc(groups, ideal, n_irrelevant, k):
    """Expected AUC: tied pairs count one half."""
    if n_irrelevant == 0:
        return np.nan
    starts, sizes, counts, _ = groups
    before = 0
    misordered = 0.0
    for g in range(starts.size):
        tied = sizes[g] - counts[g]
        misordered += counts[g] * (starts[g] - before + tied / 2)
        before += counts[g]
    return 1.0 - misordered / (ideal.size * n_irrelevant)


@kernel
def ranking_error(groups, ideal, n_irrelevant, k):
    """Expected share of misordered pairs, divided by the share of a random order, one half."""
    return 2.0 * (1.0 - auc(groups, ideal, n_irrelevant, k))


@kernel
def hits(groups, k):
    """Expected number of relevant items within the first k."""
    starts, sizes, counts, _ = groups
    total = 0.0
    for g in range(starts.size):
        inside = sizes[g]
        if k:
            inside = min(max(k - starts[g], 0), sizes[g])
        total += counts[g] * inside / sizes[g]
    return total


@kernel
def precision(groups, ideal, n_irrelevant, k):
    """Expected precision at k."""
    return hits(groups, k) / k


@kernel
def recall(groups, ideal, n_irrelevant, k):
    """Expected recall at k."""
    return hits(groups, k) / ideal.size


@kernel
def log_choose(n, k):
    """Logarithm of the binomial coefficient."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@kernel
def knn(groups, ideal, n_irrelevant, k):
    """Expected k-NN accuracy: probability that more than half of the first k are relevant.

    The group that the cut-off divides contributes a hypergeometric number of relevant items.
    """
    starts, sizes, counts, _ = groups
    certain = 0
    for g in range(starts.size):
        if starts[g] + sizes[g] <= k:
            certain += counts[g]
            continue
        drawn = k - starts[g]
        if drawn <= 0:
            break
        tail = 0.0
        for x in range(max(0, drawn - sizes[g] + counts[g]), min(drawn, counts[g]) + 1):
            if 2 * (certain + x) > k:
                tail += math.exp(
                    log_choose(counts[g], x)
                    + log_choose(sizes[g] - counts[g], drawn - x)
                    - log_choose(sizes[g], drawn)
                )
        return tail
    return 1.0 if 2 * certain > k else 0.0


@kernel
def average_precision(groups, ideal, n_irrelevant, k):
    """Expected average precision: all positions of a group are relevant with equal probability."""
    starts, sizes, counts, _ = groups
    before = 0
    total = 0.0
    for g in range(starts.size):
        # Probability that another position of the group is relevant, given that one is.
        others = 0.0
        if sizes[g] > 1:
            others = (counts[g] - 1) / (sizes[g] - 1)
        for j in range(sizes[g]):
            total += (
                counts[g] / sizes[g] * (before + 1 + j * others) / (starts[g] + j + 1)
            )
        before += counts[g]
    return total / ideal.size


@kernel
def reciprocal_rank(groups, ideal, n_irrelevant, k):
    """Expected reciprocal rank: the first relevant item is in the first group."""
    if groups.starts.size == 0:
        return 0.0
    size, count = groups.sizes[0], groups.counts[0]
    none_yet = 1.0
    total = 0.0
    for j in range(size - count + 1):
        chance = none_yet * count / (size - j)
        total += chance / (groups.starts[0] + j + 1)
        none_yet -= chance
    return total


@kernel
def first_rank(groups, ideal, n_irrelevant, k):
    """Expected rank of the first relevant item, NaN if none is listed."""
    if groups.starts.size == 0:
        return np.nan
    return groups.starts[0] + (groups.sizes[0] + 1) / (groups.counts[0] + 1)


@kernel
def dcg(groups, k, shift):
    """Expected DCG: each position of a group has the mean gain of the group."""
    total = 0.0
    for g in range(groups.starts.size):
        discounts = 0.0
        for j in range(groups.sizes[g]):
            position = groups.starts[g] + j + 1
            if k and position > k:
                break
            discounts += discount(position, shift)
        total += groups.gains[g] / groups.sizes[g] * discounts
    return total


@kernel
def ndcg(groups, ideal, n_irrelevant, k):
    """Expected NDCG with the usual discount."""
    return dcg(groups, k, 1) / ideal_dcg(ideal, k, 1)


@kernel
def ndcg_mlr(groups, ideal, n_irrelevant, k):
    """Expected NDCG with the discount of the MLR paper."""
    return dcg(groups, k, 0) / ideal_dcg(ideal, k, 0)


KERNELS = {
    "auc": auc,
    "ranking_error": ranking_error,
    "precision": precision,
    "recall": recall,
    "knn": knn,
    "average_precision": average_precision,
    "reciprocal_rank": reciprocal_rank,
    "first_rank": first_rank,
    "ndcg": ndcg,
    "ndcg_mlr": ndcg_mlr,
}
