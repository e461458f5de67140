"""Most violated rankings for the error of k-nearest-neighbour classification by majority vote.

A ranking is an error if, of its first k items, some other class has at least as many as the class
of the query. The loss depends on which irrelevant items are among the first k, not on how many
only, so counts of irrelevant items above the relevant ones do not determine it.

Let a of the first k items be relevant. A ranking loses, against the order of the scores,
``2 |pos[i] - neg[j]|`` for each pair in the other order (times 1/(PN)). If the first k are given,
the best ranking sorts them, and the rest, by score, so only pairs across the cut cost anything, and

    cost = sum over the a relevant items i and all j of 2 (neg[j] - pos[i])_+ - sum of gain_a(j)

where the last sum is over the irrelevant items j of the first k, and gain_a(j) rises with the score
of j. For the same reason the relevant items are the a best. So if class c is to have b of the first
k, the best choice is its b best items and the best k - a - b others. With b = max(a, 1), the fewest
that make an error, k candidates for each class contain the most violated error; without an error,
the order of the scores is best.
"""

import numpy as np

from ..compiled import kernel
from .oracles import running_sums
from .violations import IRRELEVANT, RELEVANT, mark_judged, unmark_judged


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
def gain_of(a, score, above, pos_sums):
    """What an irrelevant item among the first k gains, if the a best relevant items are there.

    above: how many relevant items score at least as much.
    """
    if above < a:
        return 2.0 * ((a - above) * score - (pos_sums[a] - pos_sums[above]))
    return -2.0 * ((pos_sums[above] - pos_sums[a]) - (above - a) * score)


@kernel
def costs_of_relevant(pos, neg):
    """What it costs at most that the best 0, 1, 2, ... relevant items are among the first k."""
    costs = np.zeros(pos.size + 1)
    n_above = 0
    total = 0.0
    for i in range(pos.size):
        while n_above < neg.size and neg[n_above] > pos[i]:
            total += neg[n_above]
            n_above += 1
        costs[i + 1] = costs[i] + 2.0 * (total - n_above * pos[i])
    return costs


@kernel
def relevant_above(pos, neg):
    """For each irrelevant item, how many relevant ones score at least as much."""
    counts = np.empty(neg.size, np.int64)
    i = 0
    for j in range(neg.size):
        while i < pos.size and pos[i] >= neg[j]:
            i += 1
        counts[j] = i
    return counts


@kernel
def best_of_classes(classes, n_classes, k):
    """Ranks of the k best irrelevant items of each class, and how many (at most k) there are."""
    held = np.zeros(n_classes, np.int64)
    best = np.empty((n_classes, k), np.int64)
    for j in range(classes.size):
        c = classes[j]
        if held[c] < k:
            best[c, held[c]] = j
            held[c] += 1
    return best, held


@kernel
def fill_first(forced, size, n_neg):
    """Ranks of some irrelevant items and of the best others, ``size`` in all."""
    chosen = np.empty(size, np.int64)
    # A loop, since an assignment of slices takes seconds to compile.
    for i in range(forced.size):
        chosen[i] = forced[i]
    at = forced.size
    f = 0
    for j in range(n_neg):
        if at == size:
            break
        if f < forced.size and forced[f] == j:
            f += 1
        else:
            chosen[at] = j
            at += 1
    return chosen


@kernel
def most_violated_error(pos, neg, classes, n_classes, k):
    """The error of largest violation: number of relevant items and ranks of the irrelevant ones.

    Also returns its cost times PN; infinity if no ranking is an error.
    """
    best_cost = np.inf
    best_a = 0
    chosen = np.empty(0, np.int64)
    best, held = best_of_classes(classes, n_classes, k)
    above = relevant_above(pos, neg)
    pos_sums = np.empty(pos.size + 1)
    running_sums(pos, pos_sums)
    costs = costs_of_relevant(pos, neg)
    for a in range(max(0, k - neg.size), min(k, pos.size) + 1):
        b = max(a, 1)
        if a + b > k:
            break
        for c in range(n_classes):
            if held[c] < b:
                continue
            first = fill_first(best[c, :b], k - a, neg.size)
            cost = costs[a]
            for j in first:
                cost -= gain_of(a, neg[j], above[j], pos_sums)
            if cost < best_cost:
                best_cost = cost
                best_a = a
                chosen = first
    return best_cost, best_a, chosen


@kernel
def can_be_right(n_pos, held, k):
    """Whether the class of the query has most of the first k if all its items come first."""
    others = 0
    for count in held:
        others += min(count, n_pos - 1)
    return others >= k - n_pos


@kernel
def weigh(kinds, in_first, n_pos, unit, weights):
    """Weights of items, nearest first, in the ranking with some items first."""
    rel_above, irr_above = 0, 0
    for part in (True, False):
        for i in range(kinds.size):
            if in_first[i] != part:
                continue
            if kinds[i] == RELEVANT:
                weights[i] = unit * irr_above
                rel_above += 1
            elif kinds[i] == IRRELEVANT:
                weights[i] = -unit * (n_pos - rel_above)
                irr_above += 1
            else:
                weights[i] = 0.0


@kernel
def violate_vote(distances, kinds, classes, n_classes, k, scale, weights):
    """Weights of one query's items, nearest first, and its loss, both times ``scale``.

    distances: squared and ascending, up to a constant; kinds: what each item is; classes: of each.
    """
    n_pos = np.sum(kinds == RELEVANT)
    n_neg = np.sum(kinds == IRRELEVANT)
    pos = scores_of(distances, kinds, RELEVANT, n_pos)
    neg = scores_of(distances, kinds, IRRELEVANT, n_neg)
    neg_classes = classes[kinds == IRRELEVANT]
    k = min(k, n_pos + n_neg)
    cost, a, chosen = most_violated_error(pos, neg, neg_classes, n_classes, k)
    _, held = best_of_classes(neg_classes, n_classes, k)
    in_first = np.zeros(kinds.size, np.bool_)
    loss = 0.0
    if can_be_right(n_pos, held, k) and cost <= n_pos * n_neg:
        loss = 1.0
        in_first[np.flatnonzero(kinds == RELEVANT)[:a]] = True
        in_first[np.flatnonzero(kinds == IRRELEVANT)[chosen]] = True
    weigh(kinds, in_first, n_pos, 2.0 * scale / (n_pos * n_neg), weights)
    return scale * loss


@kernel
def violate_votes(queries, order, distances, judged, classes, k, scales, weights):
    """Weights of all items for a block of queries; items without a judgment are irrelevant.

    order, distances: (n_block, n_items), items from the nearest, and their squared distances;
    classes: of each item; weights: (n_block, n_items), by item. Returns the sum of the losses.
    """
    n_items = order.shape[1]
    n_classes = classes.max() + 1
    kind_of = np.full(n_items, IRRELEVANT, dtype=np.int8)
    sorted_weights = np.empty(n_items)
    total = 0.0
    for b in range(queries.size):
        q = queries[b]
        mark_judged(q, judged, kind_of)
        kinds = kind_of[order[b]]
        ranked = classes[order[b]]
        total += violate_vote(
            distances[b], kinds, ranked, n_classes, k, scales[q], sorted_weights
        )
        for i in range(n_items):
            weights[b, order[b, i]] = sorted_weights[i]
        unmark_judged(q, judged, kind_of)
    return total
