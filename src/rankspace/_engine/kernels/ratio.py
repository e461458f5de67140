"""Relevant items of a pairwise loss: their logits taken out of rows, their weights put back."""

from typing import Any, NamedTuple

from ..compiled import kernel

RELEVANT, IRRELEVANT = 2, 1


class JudgedItems(NamedTuple):
    """Judged items of a block of queries.

    Query b points at row ``rows[b]`` of judgments, entries ``indptr[row]`` to ``indptr[row + 1]``
    of ``items`` and ``states``, and is item ``query_items[b]`` or -1.
    """

    rows: Any
    query_items: Any
    indptr: Any
    items: Any
    states: Any


@kernel
def take_relevant(logits, judged, unlisted_count, nothing, near):
    """Move logits of relevant items into lists, and leave ``nothing`` in their place.

    logits: (n_block, n_items). Items that do not count become ``nothing`` too; so do, unless
    ``unlisted_count``, all that no judgment names. near: (n_block, at least the longest list of
    relevant items); the rest of a row is not written.
    """
    items = judged.items
    states = judged.states
    for b in range(judged.rows.size):
        row = logits[b]
        query_item = judged.query_items[b]
        first = judged.indptr[judged.rows[b]]
        last = judged.indptr[judged.rows[b] + 1]
        place = 0
        for j in range(first, last):
            if states[j] == RELEVANT and items[j] != query_item:
                near[b, place] = row[items[j]]
                place += 1
        if unlisted_count:
            for j in range(first, last):
                if states[j] != IRRELEVANT:
                    row[items[j]] = nothing
        else:
            listed = row[items[first:last]]
            row[:] = nothing
            for j in range(first, last):
                if states[j] == IRRELEVANT:
                    row[items[j]] = listed[j - first]
        if query_item >= 0:
            row[query_item] = nothing


@kernel
def put_relevant(weights, judged, near):
    """Put a list of weights for each query in the places of its relevant items."""
    items = judged.items
    for b in range(judged.rows.size):
        place = 0
        row = judged.rows[b]
        for j in range(judged.indptr[row], judged.indptr[row + 1]):
            if judged.states[j] == RELEVANT and items[j] != judged.query_items[b]:
                weights[b, items[j]] = near[b, place]
                place += 1
