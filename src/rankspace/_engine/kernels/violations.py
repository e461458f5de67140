"""Most violated rankings: the separation oracle applied to queries, as weights of their items.

Misordering moves relevant item i by ``2 negs_above[i] / (PN)`` and irrelevant item j by minus
``2 (relevant items below it) / (PN)``; the weights of a query sum to 0.
"""

from typing import NamedTuple

import numpy as np

from ..compiled import kernel
from .measures import measure
from .oracles import (
    additive_oracle,
    auc_oracle,
    average_precision_oracle,
    knn_oracle,
    ndcg_oracle,
    precision_oracle,
    reciprocal_rank_oracle,
)

# What an item is to a query.
RELEVANT = 1
IRRELEVANT = 0
IGNORED = -1


class Oracle(NamedTuple):
    """A separation oracle: code of its measure, cut-off (0 for none), discounts of positions."""

    code: int
    k: int
    discounts: np.ndarray


class JudgedRows(NamedTuple):
    """Judgments of all queries, in compressed rows."""

    rows: np.ndarray  # of each query
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray  # NaN where not judged
    query_items: np.ndarray  # the item that a query is, or -1
    unjudged_counts: bool  # whether items without a grade are irrelevant, or ignored
    min_relevant_grade: float


@kernel
def run_oracle(code, pos, neg, k, discounts):
    """The separation oracle of `measures.KERNELS[code]`."""
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


@kernel
def loss_of(code, negs_above, n_neg, k):
    """Loss of a ranking: the measure of the best ranking minus the measure of this one."""
    ones = np.ones(negs_above.size)
    positions = np.arange(1, negs_above.size + 1)
    best = measure(code, positions, ones, ones, n_neg, k)
    return best - measure(code, positions + negs_above, ones, ones, n_neg, k)


@kernel
def scores_of(distances, kinds, kind, n):
    """Scores, minus the distances, of the n items of a kind."""
    scores = np.empty(n)
    at = 0
    for i in range(kinds.size):
        if kinds[i] == kind:
            scores[at] = -distances[i]
            at += 1
    return scores


@kernel
def weigh_items(kinds, negs_above, n_neg, scale, weights):
    """Weights of one query's items, nearest first, under a ranking."""
    n_pos = negs_above.size
    unit = 2.0 * scale / (n_pos * n_neg)
    p = 0
    n = 0
    pos_above = 0
    for i in range(kinds.size):
        weights[i] = 0.0
        if kinds[i] == RELEVANT:
            weights[i] = unit * negs_above[p]
            p += 1
        elif kinds[i] == IRRELEVANT:
            while pos_above < n_pos and negs_above[pos_above] <= n:
                pos_above += 1
            weights[i] = -unit * (n_pos - pos_above)
            n += 1


@kernel
def violate(distances, kinds, oracle, scale, weights):
    """Weights of one query's items, nearest first, and its loss, both times ``scale``.

    distances: squared and ascending, up to a constant; kinds: what each item is.
    """
    n_pos = np.sum(kinds == RELEVANT)
    n_neg = np.sum(kinds == IRRELEVANT)
    pos = scores_of(distances, kinds, RELEVANT, n_pos)
    neg = scores_of(distances, kinds, IRRELEVANT, n_neg)
    negs_above = run_oracle(oracle.code, pos, neg, oracle.k, oracle.discounts)
    weigh_items(kinds, negs_above, n_neg, scale, weights)
    return scale * loss_of(oracle.code, negs_above, n_neg, oracle.k)


@kernel
def violate_additive(distances, kinds, rewards, scale, weights):
    """The same for a measure that is a sum over the relevant items; see `additive_oracle`."""
    pos = scores_of(distances, kinds, RELEVANT, rewards.shape[0])
    neg = scores_of(distances, kinds, IRRELEVANT, rewards.shape[1] - 1)
    negs_above = additive_oracle(pos, neg, rewards)
    weigh_items(kinds, negs_above, neg.size, scale, weights)
    loss = 0.0
    for i in range(pos.size):
        loss += rewards[i, 0] - rewards[i, negs_above[i]]
    return scale * loss


@kernel
def mark_judged(q, judged, kind_of):
    """Write what the judged items of a query are; all others keep their kind."""
    row = judged.rows[q]
    for j in range(judged.indptr[row], judged.indptr[row + 1]):
        kind = IRRELEVANT
        if judged.grades[j] >= judged.min_relevant_grade:
            kind = RELEVANT
        elif np.isnan(judged.grades[j]) and not judged.unjudged_counts:
            kind = IGNORED
        kind_of[judged.items[j]] = kind
    if judged.query_items[q] >= 0:
        kind_of[judged.query_items[q]] = IGNORED


@kernel
def unmark_judged(q, judged, kind_of):
    """Let the judged items of a query, and the query itself, be irrelevant again."""
    row = judged.rows[q]
    for j in range(judged.indptr[row], judged.indptr[row + 1]):
        kind_of[judged.items[j]] = IRRELEVANT
    if judged.query_items[q] >= 0:
        kind_of[judged.query_items[q]] = IRRELEVANT


@kernel
def violate_all(queries, order, distances, judged, oracle, scales, weights):
    """Weights of all items for a block of queries; items without a judgment are irrelevant.

    order, distances: (n_block, n_items), items from the nearest, and their squared distances.
    weights: (n_block, n_items), by item. Returns the sum of the losses.
    """
    n_items = order.shape[1]
    kind_of = np.full(n_items, IRRELEVANT, dtype=np.int8)
    sorted_weights = np.empty(n_items)
    total = 0.0
    for b in range(queries.size):
        q = queries[b]
        mark_judged(q, judged, kind_of)
        kinds = kind_of[order[b]]
        total += violate(distances[b], kinds, oracle, scales[q], sorted_weights)
        for i in range(n_items):
            weights[b, order[b, i]] = sorted_weights[i]
        unmark_judged(q, judged, kind_of)
    return total


@kernel
def violate_lists(queries, indptr, distances, kinds, oracle, scales, weights):
    """Weights of the judged items of a block of queries, each list nearest first."""
    total = 0.0
    for b in range(queries.size):
        row = slice(indptr[b], indptr[b + 1])
        scale = scales[queries[b]]
        total += violate(distances[row], kinds[row], oracle, scale, weights[row])
    return total
