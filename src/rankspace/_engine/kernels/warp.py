"""Triplets by weighted approximate ranking: positives, and negatives drawn until one violates.

Every random number is a function of (seed, number of the triplet, number of the draw). So a triplet
does not depend on who draws it, when, or how many candidates are looked at in one go.
"""

import numpy as np
from numba import njit

POSITIVE, COLUMN = 0, 1  # numbers of the draws that are no negatives
FIRST_NEGATIVE = 2
FEWEST_DRAWS, LOOKS_PER_DRAW = 4, 64  # random ones, before all items are looked through


@njit(cache=True, nogil=True)
def scramble(z):
    """A bijection of 64-bit integers that spreads every bit over all (Stafford's mix 13)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def uniform(seed, triplet, draw):
    """The random number in [0, 1) of a draw."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    z = scramble(np.uint64(seed) + odd * np.uint64(triplet))
    z = scramble(z + odd * np.uint64(draw))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def irrelevant_of(q, negatives):
    """Where the row of a query starts and ends, its number of irrelevant items, and its own.

    negatives: (rows, indptr, items, counts, own, outside): the row of each query in a compressed
    table, of the irrelevant items or, if ``outside``, of all others; how many are irrelevant; and
    the query's own item where the table makes it one of them, else -1.
    """
    rows, indptr, _, counts, own, _ = negatives
    return indptr[rows[q]], indptr[rows[q] + 1], counts[q], own[q]


@njit(cache=True, nogil=True)
def draw_negative(u, items, outside, first, last, count, own):
    """An irrelevant item, each as likely, of the query that `irrelevant_of` describes."""
    k = min(np.int64(u * count), count - 1)
    item = item_outside(items, first, last, k) if outside else items[first + k]
    if own >= 0 and item >= own:
        item = (
            item_outside(items, first, last, k + 1) if outside else items[first + k + 1]
        )
    return item


@njit(cache=True, nogil=True)
def draw_positive(u, q, positives):
    """A relevant item of a query, in proportion to its gain.

    positives: (rows, indptr, items, sums, own): as above, with the running sums of the gains in
    each row, and the place of the query's own item in the table, or -1.
    """
    rows, indptr, items, sums, own = positives
    first, last = indptr[rows[q]], indptr[rows[q] + 1]
    at, total, before, gain = own[q], sums[last - 1], 0.0, 0.0
    if at >= 0:
        before = sums[at - 1] if at > first else 0.0
        gain = sums[at] - before
    wanted = u * (total - gain)
    if at >= 0 and wanted >= before:
        wanted += gain
    place = first + np.searchsorted(sums[first:last], wanted, side="right")
    place = min(place, last - 1)
    if place == at:  # by rounding only
        place = place - 1 if place > first else place + 1
    return items[place]


@njit(cache=True, nogil=True)
def draw_positives(seed, first, queries, positives, out):
    """The relevant item of each triplet."""
    for t in range(queries.size):
        out[t] = draw_positive(
            uniform(seed, first + t, POSITIVE), queries[t], positives
        )


@njit(cache=True, nogil=True)
def draw_columns(seed, first, n_columns, out):
    """A column of the factor for each triplet, each as likely."""
    for t in range(out.size):
        out[t] = np.int64(uniform(seed, first + t, COLUMN) * n_columns)


@njit(cache=True, nogil=True)
def draw_candidates(seed, first, start, triplets, queries, negatives, most_draws, out):
    """Draws ``start``, ``start + 1``, ... of some triplets; -1 past the last one allowed."""
    items, outside = negatives[2], negatives[5]
    for row in range(triplets.size):
        t = triplets[row]
        q = queries[t]
        begin, end, count, own = irrelevant_of(q, negatives)
        for j in range(out.shape[1]):
            out[row, j] = -1
            if start + j < most_draws[q]:
                u = uniform(seed, first + t, FIRST_NEGATIVE + start + j)
                out[row, j] = draw_negative(u, items, outside, begin, end, count, own)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def squared_distance(a, B, row, limit):
    """Squared distance of a vector from a row; any number above the limit if it is above that."""
    total, f = 0.0, 0
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


@njit(cache=True, nogil=True)
def draw_some(
    seed, first, queries, Q, pos, X, negatives, most_draws, limits, neg, draws
):
    """Draw irrelevant items until one is less than 1 farther than the relevant one.

    Q: (n_triplets, m) embedded queries; X: (n_items, m) embedded items; pos: the relevant item of
    each triplet. Writes the distance that must be kept, the violator or -1, and the number of
    draws, at most a sixty-fourth of the items: looking through all is no dearer, see `draw_on`.
    """
    items, outside = negatives[2], negatives[5]
    few = max(X.shape[0] // LOOKS_PER_DRAW, FEWEST_DRAWS)
    for t in range(queries.size):
        limits[t] = 1.0 + squared_distance(Q[t], X, pos[t], np.inf)
        begin, end, count, own = irrelevant_of(queries[t], negatives)
        neg[t] = -1
        for j in range(min(most_draws[queries[t]], few)):
            u = uniform(seed, first + t, FIRST_NEGATIVE + j)
            item = draw_negative(u, items, outside, begin, end, count, own)
            draws[t] = j + 1
            if squared_distance(Q[t], X, item, limits[t]) < limits[t]:
                neg[t] = item
                break


@njit(cache=True, nogil=True)
def list_violators(q, products, squares, limit, negatives, found):
    """Write the irrelevant items nearer than the limit, ascending; returns how many there are.

    Distances, less the square of the query, are ``products + squares``.
    """
    items, outside = negatives[2], negatives[5]
    first, last, _, own = irrelevant_of(q, negatives)
    n_found, at = 0, first
    for i in range(squares.size if outside else last - first):
        item = i if outside else items[first + i]
        if not products[item] + squares[item] < limit or item == own:
            continue
        if outside:
            while at < last and items[at] < item:
                at += 1
            if at < last and items[at] == item:
                continue
        found[n_found] = item
        n_found += 1
    return n_found


@njit(cache=True, nogil=True)
def draws_until(u, share):
    """How many draws with replacement it takes to hit what has this share of all."""
    if share >= 1.0:
        return 1.0
    return 1.0 + np.floor(np.log1p(-u) / np.log1p(-share))


@njit(cache=True, nogil=True)
def draw_on(
    seed,
    first,
    triplets,
    queries,
    products,
    squares,
    limits,
    negatives,
    most_draws,
    neg,
    draws,
):
    """Violators of triplets that have drawn in vain, from the distances of all items.

    products: (triplets, items), -2 times the inner products; squares: squared lengths of the items;
    limits: of the distances less the squared length of the query. What is left of the number of
    draws is geometric, and each violator as likely, so the law is that of drawing on.
    """
    found = np.empty(squares.size, dtype=np.int64)
    for row in range(triplets.size):
        t = triplets[row]
        q = queries[t]
        n_violators = list_violators(
            q, products[row], squares, limits[t], negatives, found
        )
        drawn, draws[t] = draws[t], most_draws[q]
        if n_violators == 0:
            continue
        u = uniform(seed, first + t, FIRST_NEGATIVE + drawn)
        more = draws_until(u, n_violators / irrelevant_of(q, negatives)[2])
        if drawn + more <= most_draws[q]:
            u = uniform(seed, first + t, FIRST_NEGATIVE + drawn + 1)
            neg[t], draws[t] = found[np.int64(u * n_violators)], drawn + np.int64(more)


@njit(cache=True, nogil=True)
def scan_candidates(start, triplets, Q, limits, candidates, C, neg, draws):
    """Find the first violator among candidates of some triplets, embedded one after the other.

    candidates: (n, width), -1 where there is none; C: (n * width, m). Triplets that are left
    without one keep -1.
    """
    for row in range(triplets.size):
        t = triplets[row]
        for j in range(candidates.shape[1]):
            if candidates[row, j] < 0:
                break
            draws[t] = start + j + 1
            at = row * candidates.shape[1] + j
            if squared_distance(Q[t], C, at, limits[t]) < limits[t]:
                neg[t] = candidates[row, j]
                break
