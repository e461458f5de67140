"""The most violated ranking of each query, as weights of its items.

Misordering moves relevant item i by ``2 negs_above[i] / (PN)`` and irrelevant item j by minus
``2 (relevant items below it) / (PN)``; the weights of a query sum to 0.
"""

import numpy as np
from numba import njit

from .measures import measure
from .oracles import (
    auc_oracle,
    average_precision_oracle,
    knn_oracle,
    ndcg_oracle,
    precision_oracle,
    reciprocal_rank_oracle,
)

RELEVANT, IRRELEVANT, PASSED_OVER = 1, 0, -1


@njit(cache=True, nogil=True)
def oracle(code, pos, neg, k, discounts):
    """The oracle of `measures.KERNELS[code]`."""
    if code == 0:
        return auc_oracle(pos, neg, k, discounts)
    if code == 2:
        return precision_oracle(pos, neg, k, discounts)
    if code == 4:
        return knn_oracle(pos, neg, k, discounts)
    if code == 5:
        return average_precision_oracle(pos, neg, k, discounts)
    if code == 6:
        return reciprocal_rank_oracle(pos, neg, k, discounts)
    return ndcg_oracle(pos, neg, k, discounts)


@njit(cache=True, nogil=True)
def loss_of(code, negs_above, n_neg, k):
    """What the best list scores minus what this one does."""
    ones = np.ones(negs_above.size)
    positions = np.arange(1, negs_above.size + 1)
    best = measure(code, positions, ones, ones, n_neg, k)
    return best - measure(code, positions + negs_above, ones, ones, n_neg, k)


@njit(cache=True, nogil=True)
def violate(distances, flags, code, k, discounts, scale, weights):
    """Weights of one query's items, nearest first, and its loss, both times ``scale``.

    distances: squared and ascending, up to a constant; flags: what each item is.
    """
    n_pos = np.sum(flags == RELEVANT)
    n_neg = np.sum(flags == IRRELEVANT)
    pos, neg = np.empty(n_pos), np.empty(n_neg)
    p = n = 0
    for i in range(flags.size):
        if flags[i] == RELEVANT:
            pos[p] = -distances[i]
            p += 1
        elif flags[i] == IRRELEVANT:
            neg[n] = -distances[i]
            n += 1
    negs_above = oracle(code, pos, neg, k, discounts)
    unit = 2.0 * scale / (n_pos * n_neg)
    p = n = above = 0
    for i in range(flags.size):
        weights[i] = 0.0
        if flags[i] == RELEVANT:
            weights[i] = unit * negs_above[p]
            p += 1
        elif flags[i] == IRRELEVANT:
            while above < n_pos and negs_above[above] <= n:
                above += 1
            weights[i] = -unit * (n_pos - above)
            n += 1
    return scale * loss_of(code, negs_above, n_neg, k)


@njit(cache=True, nogil=True)
def violate_all(
    queries,
    order,
    distances,
    rows,
    indptr,
    row_items,
    row_grades,
    query_items,
    keep_unjudged,
    level,
    code,
    k,
    discounts,
    scales,
    weights,
):
    """Weights of all items for a block of queries; what is not judged is irrelevant.

    order, distances: (n_block, n_items), items from the nearest, and their squared distances.
    weights: (n_block, n_items), by item. Returns the sum of the losses.
    """
    n_items = order.shape[1]
    kind = np.zeros(n_items, dtype=np.int8)
    flags, sorted_weights = np.empty(n_items, dtype=np.int8), np.empty(n_items)
    total = 0.0
    for b in range(queries.size):
        q = queries[b]
        first, last = indptr[rows[q]], indptr[rows[q] + 1]
        for j in range(first, last):
            grade = row_grades[j]
            if np.isnan(grade):
                kind[row_items[j]] = IRRELEVANT if keep_unjudged else PASSED_OVER
            else:
                kind[row_items[j]] = RELEVANT if grade >= level else IRRELEVANT
        if query_items[q] >= 0:
            kind[query_items[q]] = PASSED_OVER
        for i in range(n_items):
            flags[i] = kind[order[b, i]]
        total += violate(
            distances[b], flags, code, k, discounts, scales[q], sorted_weights
        )
        for i in range(n_items):
            weights[b, order[b, i]] = sorted_weights[i]
        for j in range(first, last):
            kind[row_items[j]] = IRRELEVANT
        if query_items[q] >= 0:
            kind[query_items[q]] = IRRELEVANT
    return total


@njit(cache=True, nogil=True)
def violate_lists(
    queries, indptr, distances, flags, code, k, discounts, scales, weights
):
    """Weights of the judged items of a block of queries, each list nearest first."""
    total = 0.0
    for b in range(queries.size):
        part = slice(indptr[b], indptr[b + 1])
        total += violate(
            distances[part],
            flags[part],
            code,
            k,
            discounts,
            scales[queries[b]],
            weights[part],
        )
    return total
