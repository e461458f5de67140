"""Relevant items taken out of rows of logits and put back as weights."""

from numba import njit

RELEVANT, IRRELEVANT = 2, 1


@njit(cache=True, nogil=True)
def take_relevant(
    logits, rows, query_items, indptr, items, kinds, others_count, nothing, near
):
    """Move logits of relevant items into lists, and leave ``nothing`` in their place.

    logits: (n_block, n_items). Query b points at row ``rows[b]`` of the judged ``items`` and is
    item ``query_items[b]`` or -1. Items that do not count become ``nothing`` too; so do, unless
    ``others_count``, all that no judgment names. near: (n_block, at least the longest list of
    relevant items), whose rest stays as it is.
    """
    for b in range(rows.size):
        row, first, last = logits[b], indptr[rows[b]], indptr[rows[b] + 1]
        at = 0
        for j in range(first, last):
            if kinds[j] == RELEVANT and items[j] != query_items[b]:
                near[b, at] = row[items[j]]
                at += 1
        if others_count:
            for j in range(first, last):
                if kinds[j] != IRRELEVANT:
                    row[items[j]] = nothing
        else:
            kept = row[items[first:last]]
            row[:] = nothing
            for j in range(first, last):
                if kinds[j] == IRRELEVANT:
                    row[items[j]] = kept[j - first]
        if query_items[b] >= 0:
            row[query_items[b]] = nothing


@njit(cache=True, nogil=True)
def put_relevant(weights, rows, query_items, indptr, items, kinds, near):
    """Put a list of weights for each query in the places of its relevant items."""
    for b in range(rows.size):
        at = 0
        for j in range(indptr[rows[b]], indptr[rows[b] + 1]):
            if kinds[j] == RELEVANT and items[j] != query_items[b]:
                weights[b, items[j]] = near[b, at]
                at += 1
