"""Ranking measures of one list (AUC, MAP, NDCG, ...) from the positions of its relevant items.

Each takes ``(positions, gains, ideal, n_irrelevant, k)``:

- positions: int64, ascending and 1-based, of the relevant items that were listed;
- gains: float64, the gain of each of them;
- ideal: float64, gains of all relevant items in descending order, listed or not, at least one;
- n_irrelevant: how many irrelevant items there are;
- k: the cut-off, 0 for none.
"""

import numpy as np

from ..compiled import kernel


@kernel
def auc(positions, gains, ideal, n_irrelevant, k):
    """AUC: share of (relevant, irrelevant) pairs in the right order; NaN if there are none."""
    if n_irrelevant == 0:
        return np.nan
    misordered = 0
    for i in range(positions.size):
        misordered += positions[i] - i - 1
    return 1.0 - misordered / (ideal.size * n_irrelevant)


@kernel
def ranking_error(positions, gains, ideal, n_irrelevant, k):
    """Share of misordered pairs, divided by the share of a random order, one half."""
    return 2.0 * (1.0 - auc(positions, gains, ideal, n_irrelevant, k))


@kernel
def hits(positions, k):
    """Number of relevant items within the first k."""
    count = 0
    while count < positions.size and (k == 0 or positions[count] <= k):
        count += 1
    return count


@kernel
def precision(positions, gains, ideal, n_irrelevant, k):
    """Precision at k: relevant items among the first k, over k."""
    return hits(positions, k) / k


@kernel
def recall(positions, gains, ideal, n_irrelevant, k):
    """Recall at k: relevant items among the first k, over all relevant ones."""
    return hits(positions, k) / ideal.size


@kernel
def knn(positions, gains, ideal, n_irrelevant, k):
    """k-NN accuracy: 1 if more than half of the first k are relevant."""
    return 1.0 if 2 * hits(positions, k) > k else 0.0


@kernel
def average_precision(positions, gains, ideal, n_irrelevant, k):
    """Average precision: mean over all relevant items of the precision at their position."""
    total = 0.0
    for i in range(positions.size):
        total += (i + 1) / positions[i]
    return total / ideal.size


@kernel
def reciprocal_rank(positions, gains, ideal, n_irrelevant, k):
    """Reciprocal rank of the first relevant item, 0 if none is listed."""
    return 1.0 / positions[0] if positions.size else 0.0


@kernel
def first_rank(positions, gains, ideal, n_irrelevant, k):
    """Rank of the first relevant item, NaN if none is listed."""
    return float(positions[0]) if positions.size else np.nan


@kernel
def discount(position, shift):
    """Discount of a position: 1 / log2(position + shift), at most 1.

    The usual one of NDCG has shift 1; that of the MLR paper, 1, 1, 1 / log2(3), ..., has shift 0.
    """
    return 1.0 / np.log2(max(position + shift, 2.0))


@kernel
def dcg(positions, gains, k, shift):
    """Discounted cumulative gain (DCG) of the first k."""
    total = 0.0
    for i in range(hits(positions, k)):
        total += gains[i] * discount(positions[i], shift)
    return total


@kernel
def ideal_dcg(ideal, k, shift):
    """DCG of the first k of the ideal list."""
    total = 0.0
    for i in range(min(k, ideal.size) if k else ideal.size):
        total += ideal[i] * discount(i + 1, shift)
    return total


@kernel
def ndcg(positions, gains, ideal, n_irrelevant, k):
    """Normalised DCG: DCG of the first k over that of the ideal list."""
    return dcg(positions, gains, k, 1) / ideal_dcg(ideal, k, 1)


@kernel
def ndcg_mlr(positions, gains, ideal, n_irrelevant, k):
    """Binary NDCG with the discount of the MLR paper."""
    return dcg(positions, gains, k, 0) / ideal_dcg(ideal, k, 0)


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
