"""Separation oracles: the ranking that violates the margin most, one for each measure.

Each takes ``(pos, neg, k, discounts, work, negs_above)`` and writes ``negs_above``: for each
relevant item, from the best down, how many irrelevant ones stand above it in the ranking that
maximises

    loss + 1/(PN) * sum over pairs of y_ij (pos[i] - neg[j]),

where y_ij = 1 if relevant item i stands above irrelevant item j, else -1.

- pos, neg: float64, scores of the P relevant and N irrelevant items, each in descending order;
- k: the cut-off, 0 for none;
- discounts: float64, the discount of positions 1, 2, ..., P + N (only NDCG reads it);
- work: working memory, see `Work`.

The loss is the measure of the best ranking minus the measure of this one. Relevant items keep
their order, and so do irrelevant ones, so the counts determine the ranking. Of two equally good
rankings, the oracles return the one with irrelevant items farther up.

Moving an irrelevant item j above a relevant item i costs 2 (pos[i] - neg[j]) / (PN) of the sum. So
without a loss, the best place of relevant item i is below the irrelevant ones with at least its
score.
"""

from typing import Any, NamedTuple

import numpy as np

from ..compiled import kernel


class Work(NamedTuple):
    """Working memory for lists of at most so many items."""

    slots: Any  # (n,) of int64: the best slot of each irrelevant item
    counts: Any  # (n,) of int64: a second ranking
    sums: Any  # (3, n + 1) of float64: running sums
    stack: Any  # (128, 4) of int64: what is left to divide, at most 2 log2(n) parts


def new_work(n_items: int) -> Work:
    """Working memory for lists of at most so many items."""
    return Work(
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty((3, n_items + 1)),
        np.empty((128, 4), np.int64),
    )


@kernel
def negs_at_least(pos, neg, counts):
    """For each relevant item, how many irrelevant ones score at least as much."""
    j = 0
    for i in range(pos.size):
        while j < neg.size and neg[j] >= pos[i]:
            j += 1
        counts[i] = j


@kernel
def auc_oracle(pos, neg, k, discounts, work, negs_above):
    """AUC oracle: a misordered pair adds 1/(PN) to the loss, so it pays up to a gap of 1/2."""
    j = 0
    for i in range(pos.size):
        while j < neg.size and pos[i] - neg[j] <= 0.5:
            j += 1
        negs_above[i] = j


@kernel
def running_sums(values, sums):
    """Sums of the first 0, 1, 2, ... values."""
    sums[0] = 0.0
    for i in range(values.size):
        sums[i + 1] = sums[i] + values[i]


@kernel
def first_at_least(counts, least, n):
    """How many of the first n ascending counts are below ``least``: binary search."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if counts[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def cost_of(first, last, g, sums):
    """What it costs that relevant items first..last-1 stand below g irrelevant ones each.

    Times PN, against where they stand best: each loses 2 (g pos[i] - sum of the g best negatives).
    ``sums``: running sums of ``pos``, of ``neg``, and of what each loses where it stands best.
    """
    if last <= first:
        return 0.0
    forced = g * (sums[0, last] - sums[0, first]) - (last - first) * sums[1, g]
    return 2.0 * (forced - (sums[2, last] - sums[2, first]))


@kernel
def free_costs(pos, counts, neg_sums, sums):
    """Running sums of ``counts[i] pos[i] - (sum of the counts[i] best negatives)``."""
    sums[0] = 0.0
    for i in range(pos.size):
        sums[i + 1] = sums[i] + counts[i] * pos[i] - neg_sums[counts[i]]


@kernel
def place_freely(pos, neg, work, counts):
    """Where each relevant item stands best without a loss, and the running sums of `cost_of`."""
    negs_at_least(pos, neg, counts)
    running_sums(pos, work.sums[0])
    running_sums(neg, work.sums[1])
    free_costs(pos, counts, work.sums[1], work.sums[2])


@kernel
def place_by_hits(pos, neg, k, majority, work, counts):
    """Best ranking for a loss that depends on the number of relevant items in the first k.

    With a of them there, k - a irrelevant items bound the first a from above and the others from
    below; else each stands where it is best.
    """
    n_pos, n_neg = pos.size, neg.size
    if k >= n_pos + n_neg:
        negs_at_least(pos, neg, counts)
        return
    place_freely(pos, neg, work, counts)
    best, best_hits = -np.inf, min(k, n_pos)
    for a in range(max(0, k - n_neg), min(k, n_pos) + 1):
        g = min(k - a, n_neg)
        over = first_at_least(counts, g + 1, n_pos)
        under = first_at_least(counts, g, n_pos)
        cost = cost_of(over, a, g, work.sums)
        if k - a <= n_neg:
            cost += cost_of(a, under, g, work.sums)
        score = a / k
        if majority:
            score = 1.0 if 2 * a > k else 0.0
        value = -score - cost / (n_pos * n_neg)
        if value > best:
            best, best_hits = value, a
    g = min(k - best_hits, n_neg)
    for i in range(n_pos):
        counts[i] = min(counts[i], g) if i < best_hits else max(counts[i], g)


@kernel
def precision_oracle(pos, neg, k, discounts, work, negs_above):
    """Precision at k oracle: the loss is the fraction of the first k that is lost."""
    place_by_hits(pos, neg, k, False, work, negs_above)


@kernel
def knn_oracle(pos, neg, k, discounts, work, negs_above):
    """k-nearest-neighbour oracle: the loss is 1 if the majority of the first k is lost."""
    place_by_hits(pos, neg, k, True, work, negs_above)


@kernel
def reciprocal_rank_oracle(pos, neg, k, discounts, work, counts):
    """Reciprocal rank oracle: tries every number g of irrelevant items above the first relevant.

    Going from g to g + 1 moves one irrelevant item above the first relevant one and above those
    whose best place is higher.
    """
    negs_at_least(pos, neg, counts)
    n_pos, n_neg = pos.size, neg.size
    best, best_g = 0.0, 0
    value = 0.0
    lifted, lifted_sum = 1, pos[0]
    for g in range(n_neg):
        while lifted < n_pos and counts[lifted] <= g:
            lifted_sum += pos[lifted]
            lifted += 1
        value += 2.0 * (lifted * neg[g] - lifted_sum) / (n_pos * n_neg)
        value += 1.0 / (g + 1) - 1.0 / (g + 2)
        if value >= best:
            best, best_g = value, g + 1
    counts[0] = best_g
    for i in range(1, n_pos):
        counts[i] = max(counts[i], best_g)


@kernel
def push(stack, depth, start, stop, low, high):
    """Write what is left to divide at a place of the stack."""
    stack[depth, 0] = start
    stack[depth, 1] = stop
    stack[depth, 2] = low
    stack[depth, 3] = high


@kernel
def largest_gain(discounts, best, n_pos, j, first):
    """A bound on the gain of lifting item j over any relevant item from ``first`` on."""
    if discounts is None:
        return 0.25 / (j * n_pos) if j > 0 else 0.5 / n_pos
    t = first + j
    gain = discounts[t] - discounts[t + 1]
    # The discount of the MLR paper is convex from the second position only.
    if t == 0 and discounts.size > 2:
        gain = max(gain, discounts[1] - discounts[2])
    return gain / best


@kernel
def fill_slots(pos, neg, discounts, best, first_neg, first_slot, work):
    """Best slot of each irrelevant item, where best slots do not decrease down the list.

    Slot i: above relevant items i, i + 1, ... (from 0); slot P: below all. The gain of lifting
    item j over relevant item i is that of a position lost, from i + j to i + j + 1, minus its cost.
    With discounts it is their difference over ``best``; for average precision (None) it is
    (i+1) / ((i+j+2)(i+j+1) P), which rises up to i = j. The middle item is placed by one scan of
    the slots it may have, from the lowest up to where the cost, which only rises, is above all
    gains; then those above and below it are placed in what is left.
    """
    n_pos, n_neg = pos.size, neg.size
    scale = 2.0 / (n_pos * n_neg)
    slots, stack = work.slots, work.stack
    push(stack, 0, first_neg, n_neg, first_slot, n_pos)
    depth = 1
    while depth:
        depth -= 1
        start, stop, low, high = stack[depth]
        if start >= stop:
            continue
        if low == high:
            for j in range(start, stop):
                slots[j] = low
            continue
        j = (start + stop) // 2
        largest = largest_gain(discounts, best, n_pos, j, low)
        total, highest, slot = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            cost = scale * (pos[i] - neg[j])
            if discounts is not None:
                gain = (discounts[i + j] - discounts[i + j + 1]) / best
                over = cost > largest
            else:
                gain = (i + 1) / ((i + j + 2.0) * (i + j + 1.0) * n_pos)
                over = cost > gain and (i < j or cost > largest)
            total += gain - cost
            if total >= highest:
                highest, slot = total, i
            if over:
                break
        slots[j] = slot
        push(stack, depth, start, j, low, slot)
        push(stack, depth + 1, j + 1, stop, slot, high)
        depth += 2


@kernel
def count_slots(slots, n_neg, n_pos, negs_above):
    """Turn slots of irrelevant items into counts above the relevant ones."""
    for i in range(n_pos):
        negs_above[i] = 0
    for j in range(n_neg):
        if slots[j] < n_pos:
            negs_above[slots[j]] += 1
    for i in range(1, n_pos):
        negs_above[i] += negs_above[i - 1]


@kernel
def average_precision_oracle(pos, neg, k, discounts, work, negs_above):
    """Average precision oracle, in near-linear time by divide and conquer."""
    fill_slots(pos, neg, None, 1.0, 0, 0, work)
    count_slots(work.slots, neg.size, pos.size, negs_above)


@kernel
def value_of(negs_above, pos, neg, discounts, best):
    """Objective of a ranking under an NDCG, up to what all rankings share."""
    scale = 2.0 / (pos.size * neg.size)
    total, lifted, j = 0.0, 0.0, 0
    for i in range(pos.size):
        while j < negs_above[i]:
            lifted += neg[j]
            j += 1
        total -= scale * (negs_above[i] * pos[i] - lifted)
        total -= discounts[i + negs_above[i]] / best
    return total


@kernel
def ndcg_whole(pos, neg, discounts, best, work, negs_above):
    """NDCG over the whole list, for a discount that is convex from the second position on.

    Only the pair of the first relevant and the first irrelevant item sees the first two positions.
    So either no irrelevant item stands above the first relevant one, or the first one does; in both
    cases the best slots of the others do not decrease.
    """
    n_pos, n_neg = pos.size, neg.size
    above = work.counts
    fill_slots(pos, neg, discounts, best, 0, 1, work)
    count_slots(work.slots, n_neg, n_pos, negs_above)
    work.slots[0] = 0
    fill_slots(pos, neg, discounts, best, 1, 0, work)
    count_slots(work.slots, n_neg, n_pos, above)
    value = value_of(negs_above, pos, neg, discounts, best)
    if value_of(above, pos, neg, discounts, best) >= value:
        for i in range(n_pos):
            negs_above[i] = above[i]


@kernel
def fill_table(pos, n_neg, neg_sums, k, discounts, best, table):
    """Best value of the first i + 1 relevant items with at most g irrelevant above the last."""
    scale = 2.0 / (pos.size * n_neg)
    for i in range(table.shape[0]):
        running = -np.inf
        for g in range(min(k - i - 1, n_neg) + 1):
            value = -scale * (g * pos[i] - neg_sums[g]) - discounts[i + g] / best
            if i > 0:
                value += table[i - 1, g]
            running = max(running, value)
            table[i, g] = running


@kernel
def ndcg_top(pos, neg, k, discounts, best, work, counts):
    """NDCG of the first k: a table over them, and below them items where they stand best."""
    n_pos, n_neg = pos.size, neg.size
    place_freely(pos, neg, work, counts)
    free_sums = work.sums[2]
    top = min(k, n_pos)
    table = np.empty((top, min(k, n_neg) + 1))
    fill_table(pos, n_neg, work.sums[1], k, discounts, best, table)
    scale = 1.0 / (n_pos * n_neg)
    best_value, hits = -np.inf, top
    for a in range(max(0, k - n_neg), top + 1):
        g = k - a
        under = first_at_least(counts, g, n_pos)
        # What the items below the first k lose at least, as the table counts it, and then more.
        value = -2.0 * scale * (free_sums[n_pos] - free_sums[a])
        value -= scale * cost_of(a, under, g, work.sums)
        if a > 0:
            value += table[a - 1, g]
        if value > best_value:
            best_value, hits = value, a
    for i in range(hits, n_pos):
        counts[i] = max(counts[i], k - hits)
    g = k - hits
    for i in range(hits - 1, -1, -1):
        while g > 0 and table[i, g - 1] == table[i, g]:
            g -= 1
        counts[i] = g


@kernel
def ndcg_oracle(pos, neg, k, discounts, work, negs_above):
    """NDCG oracle for the standard discount and the MLR paper's, with or without a cut-off."""
    best = 0.0
    for i in range(min(k, pos.size) if k else pos.size):
        best += discounts[i]
    if k == 0 or k >= pos.size + neg.size:
        ndcg_whole(pos, neg, discounts, best, work, negs_above)
    else:
        ndcg_top(pos, neg, k, discounts, best, work, negs_above)


@kernel
def additive_oracle(pos, neg, rewards):
    """Oracle of any measure that is a sum over the relevant items, by dynamic programming.

    rewards: (n_pos, n_neg + 1), what relevant item i adds with g irrelevant items above it.
    """
    n_pos, n_neg = rewards.shape[0], rewards.shape[1] - 1
    neg_sums = np.empty(n_neg + 1)
    running_sums(neg, neg_sums)
    # Of rankings of the first items whose last one has at most g above: the best, and its number.
    best = np.zeros(n_neg + 1)
    number = np.empty((n_pos, n_neg + 1), dtype=np.int64)
    for i in range(n_pos):
        top = -np.inf
        for g in range(n_neg + 1):
            pairs = pos[i] * (n_neg - 2 * g) + 2 * neg_sums[g] - neg_sums[n_neg]
            value = best[g] + pairs / (n_pos * n_neg) - rewards[i, g]
            number[i, g] = number[i, g - 1] if g > 0 else 0
            if value >= top:  # of equally good rankings, the worse
                top = value
                number[i, g] = g
            best[g] = top
    negs_above = np.empty(n_pos, dtype=np.int64)
    g = n_neg
    for i in range(n_pos - 1, -1, -1):
        g = number[i, g]
        negs_above[i] = g
    return negs_above


ORACLES = {
    "auc": auc_oracle,
    "precision": precision_oracle,
    "knn": knn_oracle,
    "average_precision": average_precision_oracle,
    "reciprocal_rank": reciprocal_rank_oracle,
    "ndcg": ndcg_oracle,
    "ndcg_mlr": ndcg_oracle,
}


def most_violated(name: str, pos: Any, neg: Any, k: int, discounts: Any) -> np.ndarray:
    """``negs_above`` of one query, by the name of the oracle."""
    negs_above = np.empty(pos.size, np.int64)
    work = new_work(pos.size + neg.size)
    ORACLES[name](pos, neg, k, discounts, work, negs_above)
    return negs_above
