"""Separation oracles: the ranking that violates the margin most, one for each measure.

Each takes ``(pos, neg, k, discounts)`` and returns ``negs_above``: for each relevant item, from the
best down, how many irrelevant ones stand above it in the ranking that maximises

    loss + 1/(PN) * sum over pairs of y_ij (pos[i] - neg[j]),

where y_ij = 1 if relevant item i stands above irrelevant item j, else -1.

- pos, neg: float64, scores of the P relevant and N irrelevant items, each in descending order;
- k: the cut-off, 0 for none;
- discounts: float64, the discount of positions 1, 2, ..., P + N (only NDCG reads it).

The loss is the measure of the best ranking minus the measure of this one. Relevant items keep
their order, and so do irrelevant ones, so the counts determine the ranking. Of two equally good
rankings, the oracles return the one with irrelevant items farther up.

Moving an irrelevant item j above a relevant item i costs 2 (pos[i] - neg[j]) / (PN) of the sum. So
without a loss, the best place of relevant item i is below the irrelevant ones with at least its
score.
"""

import numpy as np

from ..compiled import kernel


@kernel
def negs_at_least(pos, neg):
    """For each relevant item, how many irrelevant ones score at least as much."""
    counts = np.empty(pos.size, dtype=np.int64)
    j = 0
    for i in range(pos.size):
        while j < neg.size and neg[j] >= pos[i]:
            j += 1
        counts[i] = j
    return counts


@kernel
def auc_oracle(pos, neg, k, discounts):
    """AUC oracle: a misordered pair adds 1/(PN) to the loss, so it pays up to a gap of 1/2."""
    negs_above = np.empty(pos.size, dtype=np.int64)
    j = 0
    for i in range(pos.size):
        while j < neg.size and pos[i] - neg[j] <= 0.5:
            j += 1
        negs_above[i] = j
    return negs_above


@kernel
def running_sums(values):
    """Sums of the first 0, 1, 2, ... values."""
    sums = np.empty(values.size + 1)
    sums[0] = 0.0
    for i in range(values.size):
        sums[i + 1] = sums[i] + values[i]
    return sums


@kernel
def cost_of(first, last, g, pos_sums, neg_sums, free_sums):
    """What it costs that relevant items first..last-1 stand below g irrelevant ones each.

    Times PN, against where they stand best: each loses 2 (g pos[i] - sum of the g best negatives),
    which ``free_sums`` holds at its best.
    """
    if last <= first:
        return 0.0
    forced = g * (pos_sums[last] - pos_sums[first]) - (last - first) * neg_sums[g]
    return 2.0 * (forced - (free_sums[last] - free_sums[first]))


@kernel
def free_costs(pos, counts, neg_sums):
    """Running sums of ``counts[i] pos[i] - (sum of the counts[i] best negatives)``."""
    sums = np.empty(pos.size + 1)
    sums[0] = 0.0
    for i in range(pos.size):
        sums[i + 1] = sums[i] + counts[i] * pos[i] - neg_sums[counts[i]]
    return sums


@kernel
def place_by_hits(pos, neg, k, majority):
    """Best ranking for a loss that depends on the number of relevant items in the first k.

    With a of them there, k - a irrelevant items bound the first a from above and the others from
    below; else each stands where it is best.
    """
    n_pos, n_neg = pos.size, neg.size
    counts = negs_at_least(pos, neg)
    pos_sums, neg_sums = running_sums(pos), running_sums(neg)
    free_sums = free_costs(pos, counts, neg_sums)
    best, best_hits = -np.inf, min(k, n_pos)
    for a in range(max(0, k - n_neg), min(k, n_pos) + 1):
        g = min(k - a, n_neg)
        over = np.searchsorted(counts, g, side="right")
        under = np.searchsorted(counts, g, side="left")
        cost = cost_of(over, a, g, pos_sums, neg_sums, free_sums)
        if k - a <= n_neg:
            cost += cost_of(a, under, g, pos_sums, neg_sums, free_sums)
        score = a / k
        if majority:
            score = 1.0 if 2 * a > k else 0.0
        value = -score - cost / (n_pos * n_neg)
        if value > best:
            best, best_hits = value, a
    g = min(k - best_hits, n_neg)
    for i in range(n_pos):
        counts[i] = min(counts[i], g) if i < best_hits else max(counts[i], g)
    return counts


@kernel
def precision_oracle(pos, neg, k, discounts):
    """Precision at k oracle: the loss is the fraction of the first k that is lost."""
    if k >= pos.size + neg.size:
        return negs_at_least(pos, neg)
    return place_by_hits(pos, neg, k, False)


@kernel
def knn_oracle(pos, neg, k, discounts):
    """k-nearest-neighbour oracle: the loss is 1 if the majority of the first k is lost."""
    if k >= pos.size + neg.size:
        return negs_at_least(pos, neg)
    return place_by_hits(pos, neg, k, True)


@kernel
def reciprocal_rank_oracle(pos, neg, k, discounts):
    """Reciprocal rank oracle: tries every number g of irrelevant items above the first relevant.

    Going from g to g + 1 moves one irrelevant item above the first relevant one and above those
    whose best place is higher.
    """
    counts = negs_at_least(pos, neg)
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
    return counts


@kernel
def fill_slots(pos, neg, discounts, first_neg, first_slot, slots):
    """Best slot of each irrelevant item, where best slots do not decrease down the list.

    Slot i: above relevant items i, i + 1, ... (from 0); slot P: below all. The gain of lifting
    item j over relevant item i is that of a position lost, from i + j to i + j + 1, minus its cost.
    For average precision (no discounts) that is (i+1) / ((i+j+2)(i+j+1) P). The middle item is
    placed by one scan of the slots it may have, then those above and below it in what is left.
    """
    n_pos, n_neg = pos.size, neg.size
    scale = 2.0 / (n_pos * n_neg)
    stack = np.empty((128, 4), dtype=np.int64)
    stack[0] = (first_neg, n_neg, first_slot, n_pos)
    depth = 1
    while depth:
        depth -= 1
        start, stop, low, high = stack[depth]
        if start >= stop:
            continue
        if low == high:
            slots[start:stop] = low
            continue
        j = (start + stop) // 2
        total, best, slot = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            if discounts.size:
                gain = discounts[i + j] - discounts[i + j + 1]
            else:
                gain = (i + 1) / ((i + j + 2.0) * (i + j + 1.0) * n_pos)
            total += gain - scale * (pos[i] - neg[j])
            if total >= best:
                best, slot = total, i
        slots[j] = slot
        stack[depth] = (start, j, low, slot)
        stack[depth + 1] = (j + 1, stop, slot, high)
        depth += 2


@kernel
def count_slots(slots, n_pos):
    """Turn slots of irrelevant items into counts above the relevant ones."""
    negs_above = np.zeros(n_pos + 1, dtype=np.int64)
    for slot in slots:
        negs_above[slot] += 1
    for i in range(1, n_pos):
        negs_above[i] += negs_above[i - 1]
    return negs_above[:n_pos]


@kernel
def average_precision_oracle(pos, neg, k, discounts):
    """Average precision oracle, in near-linear time by divide and conquer."""
    slots = np.empty(neg.size, dtype=np.int64)
    fill_slots(pos, neg, discounts[:0], 0, 0, slots)
    return count_slots(slots, pos.size)


@kernel
def value_of(negs_above, pos, neg, k, discounts, best):
    """Objective of a ranking under an NDCG, up to what all rankings share."""
    scale = 2.0 / (pos.size * neg.size)
    total, lifted, j = 0.0, 0.0, 0
    for i in range(pos.size):
        while j < negs_above[i]:
            lifted += neg[j]
            j += 1
        total -= scale * (negs_above[i] * pos[i] - lifted)
        position = i + negs_above[i]
        if k == 0 or position < k:
            total -= discounts[position] / best
    return total


@kernel
def ndcg_whole(pos, neg, discounts, best):
    """NDCG over the whole list, for a discount that is convex from the second position on.

    Only the pair of the first relevant and the first irrelevant item sees the first two positions.
    So either no irrelevant item stands above the first relevant one, or the first one does; in both
    cases the best slots of the others do not decrease.
    """
    scaled = discounts / best
    slots = np.empty(neg.size, dtype=np.int64)
    fill_slots(pos, neg, scaled, 0, 1, slots)
    below = count_slots(slots, pos.size)
    slots[0] = 0
    fill_slots(pos, neg, scaled, 1, 0, slots)
    above = count_slots(slots, pos.size)
    if value_of(above, pos, neg, 0, discounts, best) >= value_of(
        below, pos, neg, 0, discounts, best
    ):
        return above
    return below


@kernel
def fill_table(pos, neg_sums, k, discounts, best, table):
    """Best value of the first i + 1 relevant items with at most g irrelevant above the last."""
    n_neg = neg_sums.size - 1
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
def ndcg_top(pos, neg, k, discounts, best):
    """NDCG of the first k: a table over them, and below them items where they stand best."""
    n_pos, n_neg = pos.size, neg.size
    counts = negs_at_least(pos, neg)
    pos_sums, neg_sums = running_sums(pos), running_sums(neg)
    free_sums = free_costs(pos, counts, neg_sums)
    top = min(k, n_pos)
    table = np.full((top, min(k, n_neg) + 1), -np.inf)
    fill_table(pos, neg_sums, k, discounts, best, table)
    scale = 1.0 / (n_pos * n_neg)
    best_value, hits = -np.inf, top
    for a in range(max(0, k - n_neg), top + 1):
        g = k - a
        under = np.searchsorted(counts, g, side="left")
        # What the items below the first k lose at least, as the table counts it, and then more.
        value = -2.0 * scale * (free_sums[n_pos] - free_sums[a])
        value -= scale * cost_of(a, under, g, pos_sums, neg_sums, free_sums)
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
    return counts


@kernel
def ndcg_oracle(pos, neg, k, discounts):
    """NDCG oracle for the standard discount and the MLR paper's, with or without a cut-off."""
    best = 0.0
    for i in range(min(k, pos.size) if k else pos.size):
        best += discounts[i]
    if k == 0 or k >= pos.size + neg.size:
        return ndcg_whole(pos, neg, discounts, best)
    return ndcg_top(pos, neg, k, discounts, best)


@kernel
def additive_oracle(pos, neg, rewards):
    """Oracle of any measure that is a sum over the relevant items, by dynamic programming.

    rewards: (n_pos, n_neg + 1), what relevant item i adds with g irrelevant items above it.
    """
    n_pos, n_neg = rewards.shape[0], rewards.shape[1] - 1
    neg_sums = running_sums(neg)
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
