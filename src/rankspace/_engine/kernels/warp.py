"""WARP sampling of triplets: a relevant item, and irrelevant ones until one violates the margin.

Every random number is a function of (seed, number of the triplet, number of the draw). So a triplet
does not depend on the thread that draws it, or on how many candidates are drawn at once.
"""

from typing import NamedTuple

import numpy as np

from ..compiled import kernel

# Numbers of the draws of a triplet: the relevant item, a column, then the irrelevant items.
POSITIVE = 0
COLUMN = 1
FIRST_NEGATIVE = 2
ODD = np.uint64(0x9E3779B97F4A7C15)
# Random draws before all items are searched: one for so many items, but at least so many.
ITEMS_PER_DRAW = 64
MIN_DRAWS = 4
# A random draw takes the time of so many items of a search, which is left out if it costs more.
SEARCHED_PER_DRAW = 8
# Draws that are made together: the memory that they need is read at the same time.
DRAWN_TOGETHER = 16


class Positives(NamedTuple):
    """Relevant items of all queries, in compressed rows."""

    rows: np.ndarray  # of each query
    indptr: np.ndarray
    items: np.ndarray
    sums: np.ndarray  # running sums of the gains of a row
    own_places: np.ndarray  # where a query's own item is in the table, or -1


class Negatives(NamedTuple):
    """Irrelevant items of all queries, in compressed rows."""

    rows: np.ndarray  # of each query
    indptr: np.ndarray
    items: np.ndarray  # ascending in a row
    counts: np.ndarray  # irrelevant items of each query
    query_items: np.ndarray  # a query's own item where the table includes it, or -1
    excluded: bool  # whether the rows list what is not irrelevant instead
    max_draws: np.ndarray  # for a triplet of each query


class Triplets(NamedTuple):
    """A batch of triplets; the draws fill in everything but the queries."""

    queries: np.ndarray
    pos: np.ndarray  # the relevant item
    neg: np.ndarray  # the violator, or -1
    draws: np.ndarray  # number of irrelevant items drawn


@kernel
def scramble(z):
    """A bijection of 64-bit integers that spreads every bit over all (Stafford's mix 13)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def stream(seed, triplet):
    """The numbers of a triplet: all its draws come from this one."""
    return scramble(np.uint64(seed) + ODD * np.uint64(triplet))


@kernel
def uniform_of(numbers, draw):
    """The random number in [0, 1) of a draw, from the numbers of its triplet."""
    z = scramble(numbers + ODD * np.uint64(draw))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def uniform(seed, triplet, draw):
    """The random number in [0, 1) of a draw."""
    return uniform_of(stream(seed, triplet), draw)


@kernel
def item_outside(excluded, first, last, k):
    """The k-th item, from 0, that is not among the ascending excluded[first:last]."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if excluded[middle] - (middle - first) > k:
            high = middle
        else:
            low = middle + 1
    return k + low - first


@kernel
def draw_items(numbers, start, q, negatives, out):
    """Draws ``start``, ``start + 1``, ... of a triplet: irrelevant items, with equal probability.

    ``numbers`` are those of the triplet. Arrays are taken out of the tuple once, because that costs
    more than a draw.
    """
    items = negatives.items
    row = negatives.rows[q]
    first, last = negatives.indptr[row], negatives.indptr[row + 1]
    count = negatives.counts[q]
    own = negatives.query_items[q]
    for j in range(out.size):
        u = uniform_of(numbers, FIRST_NEGATIVE + start + j)
        k = min(np.int64(u * count), count - 1)
        if negatives.excluded:
            item = item_outside(items, first, last, k)
            if 0 <= own <= item:
                item = item_outside(items, first, last, k + 1)
        else:
            item = items[first + k]
            if 0 <= own <= item:
                item = items[first + k + 1]
        out[j] = item


@kernel
def draw_positive(u, q, positives):
    """A relevant item of a query, with probability in proportion to its gain."""
    sums = positives.sums
    first = positives.indptr[positives.rows[q]]
    last = positives.indptr[positives.rows[q] + 1]
    own = positives.own_places[q]
    before = 0.0
    gain = 0.0
    if own > first:
        before = sums[own - 1]
    if own >= 0:
        gain = sums[own] - before
    wanted = u * (sums[last - 1] - gain)
    if own >= 0 and wanted >= before:
        wanted += gain
    place = first + np.searchsorted(sums[first:last], wanted, side="right")
    place = min(place, last - 1)
    if place == own:  # by rounding only
        place = place - 1 if place > first else place + 1
    return positives.items[place]


@kernel
def draw_positives(seed, first, queries, positives, out):
    """Draw the relevant item of each triplet."""
    for t in range(queries.size):
        u = uniform(seed, first + t, POSITIVE)
        out[t] = draw_positive(u, queries[t], positives)


@kernel
def draw_columns(seed, first, n_columns, out):
    """Draw a column of the factor for each triplet, all with equal probability."""
    for t in range(out.size):
        u = uniform(seed, first + t, COLUMN)
        out[t] = np.int64(u * n_columns)


@kernel
def draw_candidates(seed, first, start, triplets, queries, negatives, out):
    """Draws ``start``, ``start + 1``, ... of some triplets; -1 beyond the maximum."""
    for row in range(triplets.size):
        t = triplets[row]
        q = queries[t]
        n_draws = max(min(out.shape[1], negatives.max_draws[q] - start), 0)
        out[row, n_draws:] = -1
        draw_items(stream(seed, first + t), start, q, negatives, out[row, :n_draws])


@kernel(fastmath={"reassoc", "contract"})
def squared_distance(a, B, row, limit):
    """Squared distance of a vector from a row of B; may end early once it is above the limit."""
    total = 0.0
    f = 0
    while f + 8 <= a.size:
        for i in range(8):
            difference = a[f + i] - B[row, f + i]
            total += difference * difference
        if total > limit:
            return total
        f += 8
    while f < a.size:
        difference = a[f] - B[row, f]
        total += difference * difference
        f += 1
    return total


@kernel
def draw_violators(seed, first, batch, Q, X, negatives, limits):
    """Draw irrelevant items until one is less than 1 farther away than the relevant one.

    batch: `Triplets` with their relevant items; Q: (n_triplets, m), embedded queries; X: (n_items,
    m), embedded items. Writes the violators and the numbers of draws to the batch, and the distance
    below which an item violates to ``limits``. Stops after a sixty-fourth of the items where all
    draws would cost more than a search of all items, see `search_violators`.
    """
    few = max(X.shape[0] // ITEMS_PER_DRAW, MIN_DRAWS)
    affordable = X.shape[0] // SEARCHED_PER_DRAW
    drawn = np.empty(DRAWN_TOGETHER, dtype=np.int64)
    for t in range(batch.queries.size):
        q = batch.queries[t]
        query = Q[t]
        numbers = stream(seed, first + t)
        limit = 1.0 + squared_distance(query, X, batch.pos[t], np.inf)
        limits[t] = limit
        batch.neg[t] = -1
        n_draws = negatives.max_draws[q]
        if n_draws > affordable:
            n_draws = min(n_draws, few)
        start = 0
        while start < n_draws and batch.neg[t] < 0:
            items = drawn[: min(DRAWN_TOGETHER, n_draws - start)]
            draw_items(numbers, start, q, negatives, items)
            for j in range(items.size):
                batch.draws[t] = start + j + 1
                if squared_distance(query, X, items[j], limit) < limit:
                    batch.neg[t] = items[j]
                    break
            start += items.size


@kernel
def list_violators(q, products, squares, limit, negatives, out):
    """List the irrelevant items nearer than the limit, ascending; returns their number.

    Distances, less the squared length of the query, are ``products + squares``.
    """
    items = negatives.items
    first = negatives.indptr[negatives.rows[q]]
    last = negatives.indptr[negatives.rows[q] + 1]
    n_violators = 0
    at = first
    for i in range(squares.size if negatives.excluded else last - first):
        item = i if negatives.excluded else items[first + i]
        near = products[item] + squares[item] < limit
        if not near or item == negatives.query_items[q]:
            continue
        if negatives.excluded:
            while at < last and items[at] < item:
                at += 1
            if at < last and items[at] == item:
                continue
        out[n_violators] = item
        n_violators += 1
    return n_violators


@kernel
def draws_until(u, share):
    """Number of draws with replacement until one hits what makes up this share of all."""
    if share >= 1.0:
        return 1.0
    return 1.0 + np.floor(np.log1p(-u) / np.log1p(-share))


@kernel
def search_violators(
    seed, first, triplets, batch, products, squares, limits, negatives
):
    """Violators of triplets whose first draws found none, from the distances of all items.

    products: (n_triplets, n_items), -2 times the inner products; squares: squared lengths of the
    items; limits: of the distances less the squared length of the query. The remaining number of
    draws is geometric and all violators are equally likely, as if one went on drawing.
    """
    violators = np.empty(squares.size, dtype=np.int64)
    for row in range(triplets.size):
        t = triplets[row]
        q = batch.queries[t]
        n_violators = list_violators(
            q, products[row], squares, limits[t], negatives, violators
        )
        drawn = batch.draws[t]
        batch.draws[t] = negatives.max_draws[q]
        if n_violators == 0:
            continue
        u = uniform(seed, first + t, FIRST_NEGATIVE + drawn)
        more = draws_until(u, n_violators / negatives.counts[q])
        if drawn + more <= negatives.max_draws[q]:
            u = uniform(seed, first + t, FIRST_NEGATIVE + drawn + 1)
            batch.neg[t] = violators[np.int64(u * n_violators)]
            batch.draws[t] = drawn + np.int64(more)


@kernel
def scan_candidates(start, triplets, batch, Q, limits, candidates, embedded):
    """Find the first violator among the candidates of some triplets.

    candidates: (n, width), -1 where there is none; embedded: (n * width, m). Triplets without a
    violator keep -1.
    """
    width = candidates.shape[1]
    for row in range(triplets.size):
        t = triplets[row]
        for j in range(width):
            if candidates[row, j] < 0:
                break
            batch.draws[t] = start + j + 1
            at = row * width + j
            if squared_distance(Q[t], embedded, at, limits[t]) < limits[t]:
                batch.neg[t] = candidates[row, j]
                break
