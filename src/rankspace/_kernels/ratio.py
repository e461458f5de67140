"""Relevant items taken out of rows of distances and put back as weights."""

from numba import njit

RELEVANT, IRRELEVANT = 2, 1
FAR = 1e300  # the exponential of minus this is 0


@njit(cache=True, nogil=True)
def take_relevant(distances, rows, own_items, indptr, items, kinds, others_count, near, n_near):
    """Move distances to relevant items into lists, and leave `FAR` in their place.

    distances: (n_block, n_items). Query b points at row ``rows[b]`` of the judged ``items`` and is
    item ``own_items[b]`` or -1. Items that count as nothing become `FAR` too; so do, unless
    ``others_count``, all that no judgment names. near: (n_block, at least the longest list of
    relevant items); n_near: their number, one a query.
    """
    for b in range(rows.size):
        row, first, last = distances[b], indptr[rows[b]], indptr[rows[b] + 1]
        n_near[b] = 0
        for j in range(first, last):
            if kinds[j] == RELEVANT and items[j] != own_items[b]:
                near[b, n_near[b]] = row[items[j]]
                n_near[b] += 1
        if others_count:
            for j in range(first, last):
                if kinds[j] != IRRELEVANT:
                    row[items[j]] = FAR
        else:
            kept = row[items[first:last]]
            row[:] = FAR
            for j in range(first, last):
                if kinds[j] == IRRELEVANT:
                    row[items[j]] = kept[j - first]
        if own_items[b] >= 0:
            row[own_items[b]] = FAR


@njit(cache=True, nogil=True)
def put_relevant(weights, rows, own_items, indptr, items, kinds, near):
    """Put a list of weights for each query in the places of its relevant items."""
    for b in range(rows.size):
        at = 0
        for j in range(indptr[rows[b]], indptr[rows[b] + 1]):
            if kinds[j] == RELEVANT and items[j] != own_items[b]:
                weights[b, items[j]] = near[b, at]
                at += 1
