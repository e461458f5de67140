"""Most violated rankings: the separation oracle applied to queries, as weights of their items.

Misordering moves relevant item i by ``2 negs_above[i] / (PN)`` and irrelevant item j by minus
``2 (relevant items below it) / (PN)``; the weights of a query sum to 0.
"""

from typing import Any, NamedTuple

import numpy as np

from ..compiled import kernel
from . import measures
from .oracles import ORACLES, Work, additive_oracle, new_work

# What an item is to a query.
RELEVANT = 1
IRRELEVANT = 0
IGNORED = -1


class Oracle(NamedTuple):
    """Settings of a separation oracle: cut-off (0 for none), discounts of positions."""

    k: int
    discounts: Any


class JudgedRows(NamedTuple):
    """Judgments of all queries, in compressed rows."""

    rows: Any  # of each query
    indptr: Any
    items: Any
    grades: Any  # NaN where not judged
    query_items: Any  # the item that a query is, or -1
    unjudged_counts: bool  # whether items without a grade are irrelevant, or ignored
    min_relevant_grade: float


class Memory(NamedTuple):
    """Working memory for lists of at most so many items."""

    pos: Any  # scores of the relevant items
    neg: Any
    pos_at: Any  # and where in the row these are
    neg_at: Any
    negs_above: Any
    positions: Any
    ones: Any
    kind_of: Any  # of each item; all are irrelevant between queries
    work: Work


def new_memory(n_items: int) -> Memory:
    """Working memory for lists of at most so many items."""
    # Without branches, an item is written to both sides, the last one behind the end.
    n = n_items + 1
    return Memory(
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.ones(n),
        np.full(n, IRRELEVANT, np.int8),
        new_work(n),
    )


class Violations(NamedTuple):
    """Kernels that find the most violated rankings under one measure."""

    of_all_items: Any
    of_lists: Any


@kernel
def split_keys(keys, mask, distances, kind_of, memory):
    """Split a row of sorted keys into relevant and irrelevant items, and count these."""
    pos, neg, pos_at, neg_at = memory.pos, memory.neg, memory.pos_at, memory.neg_at
    n_pos = 0
    n_neg = 0
    for i in range(keys.size):
        item = keys[i] & mask
        score = -np.float64(distances[item])
        pos[n_pos] = score
        neg[n_neg] = score
        pos_at[n_pos] = item
        neg_at[n_neg] = item
        n_pos += kind_of[item] == RELEVANT
        n_neg += kind_of[item] == IRRELEVANT
    return n_pos, n_neg


@kernel
def split_list(distances, kinds, memory):
    """Split a list, nearest first, into relevant and irrelevant items, and count these."""
    pos, neg, pos_at, neg_at = memory.pos, memory.neg, memory.pos_at, memory.neg_at
    n_pos = 0
    n_neg = 0
    for i in range(kinds.size):
        pos[n_pos] = neg[n_neg] = -np.float64(distances[i])
        pos_at[n_pos] = neg_at[n_neg] = i
        n_pos += kinds[i] == RELEVANT
        n_neg += kinds[i] == IRRELEVANT
    return n_pos, n_neg


@kernel
def put_weights(memory, n_pos, n_neg, scale, weights):
    """Write the weights of a row: irrelevant items weigh by the relevant ones below them."""
    unit = 2.0 * scale / (n_pos * n_neg)
    negs_above = memory.negs_above
    for i in range(weights.size):
        weights[i] = 0.0
    for p in range(n_pos):
        weights[memory.pos_at[p]] = unit * negs_above[p]
    pos_above = 0
    for n in range(n_neg):
        while pos_above < n_pos and negs_above[pos_above] <= n:
            pos_above += 1
        weights[memory.neg_at[n]] = -unit * (n_pos - pos_above)


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
def violate_additive(distances, kinds, rewards, scale, memory, weights):
    """Weights and loss of one query for a sum over the relevant items; see `additive_oracle`.

    distances: squared and ascending, up to a constant; kinds: what each item is.
    """
    n_pos, n_neg = split_list(distances, kinds, memory)
    negs_above = additive_oracle(memory.pos[:n_pos], memory.neg[:n_neg], rewards)
    loss = 0.0
    for i in range(n_pos):
        memory.negs_above[i] = negs_above[i]
        loss += rewards[i, 0] - rewards[i, negs_above[i]]
    put_weights(memory, n_pos, n_neg, scale, weights)
    return scale * loss


def violations_of(oracle: Any, measure: Any) -> Violations:
    """Kernels for an oracle and its measure."""

    @kernel
    def violate(n_pos, n_neg, settings, scale, memory, weights):
        """Weights of one query's items and its loss, both times ``scale``, once they are split.

        The loss is the measure of the best ranking minus the measure of this one.
        """
        negs_above = memory.negs_above[:n_pos]
        positions = memory.positions[:n_pos]
        ones = memory.ones[:n_pos]
        k = settings.k
        pos, neg = memory.pos[:n_pos], memory.neg[:n_neg]
        oracle(pos, neg, k, settings.discounts, memory.work, negs_above)
        put_weights(memory, n_pos, n_neg, scale, weights)
        for i in range(n_pos):
            positions[i] = i + 1
        best = measure(positions, ones, ones, n_neg, k)
        for i in range(n_pos):
            positions[i] += negs_above[i]
        return scale * (best - measure(positions, ones, ones, n_neg, k))

    @kernel
    def of_all_items(queries, keys, mask, rows, judged, settings, scales, memory):
        """Weights of all items for a block of queries; items without a judgment are irrelevant.

        keys: (n_block, n_items), sorted, with the numbers of the items in the bits of ``mask``;
        rows: (n_block, n_items), squared distances up to a constant, which become the weights.
        Returns the sum of the losses.
        """
        total = 0.0
        for b in range(queries.size):
            q = queries[b]
            mark_judged(q, judged, memory.kind_of)
            n_pos, n_neg = split_keys(keys[b], mask, rows[b], memory.kind_of, memory)
            total += violate(n_pos, n_neg, settings, scales[q], memory, rows[b])
            unmark_judged(q, judged, memory.kind_of)
        return total

    @kernel
    def of_lists(queries, indptr, distances, kinds, settings, scales, memory, weights):
        """Weights of the judged items of a block of queries, each list nearest first."""
        total = 0.0
        for b in range(queries.size):
            row = slice(indptr[b], indptr[b + 1])
            n_pos, n_neg = split_list(distances[row], kinds[row], memory)
            scale = scales[queries[b]]
            total += violate(n_pos, n_neg, settings, scale, memory, weights[row])
        return total

    return Violations(of_all_items, of_lists)


# By the name of the measure's kernel. None is compiled before its first call.
VIOLATIONS = {
    name: violations_of(oracle, measures.KERNELS[name])
    for name, oracle in ORACLES.items()
}
