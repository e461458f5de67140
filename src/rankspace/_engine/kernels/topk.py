"""Top-k search by buffers over blocks of approximate distances, and exact distances of a few."""

import numpy as np

from ..compiled import kernel

CHUNK = 32  # entries compared with the threshold at once, in vector registers


@kernel
def push_block(products, norms, first, query_items, thresholds, keys, items, sizes):
    """Append the items whose key ``norms[j] + products[q, j]`` is below the query's threshold.

    products: (n_queries, n_block) of float; norms: (n_block,); ``first`` is the number of the
    block's first item. keys, items: (n_queries, capacity), buffers with room for the whole block
    behind the ``sizes`` entries in use, which is infinite.
    """
    n_block = norms.size
    for q in range(products.shape[0]):
        row, own, threshold = products[q], query_items[q] - first, thresholds[q]
        buffer, numbers, size = keys[q], items[q], sizes[q]
        for start in range(0, n_block, CHUNK):
            chunk = slice(start, min(start + CHUNK, n_block))
            if not any_below(row[chunk], norms[chunk], threshold):
                continue
            for j in range(chunk.start, chunk.stop):
                key = norms[j] + row[j]
                # Written in any case, and kept by counting it: a jump would be guessed wrongly.
                buffer[size] = key
                numbers[size] = first + j
                size += (key < threshold) & (j != own)
        buffer[size : size + 1] = np.inf
        sizes[q] = size


@kernel
def any_below(products, norms, threshold):
    """Whether any key of a chunk is below the threshold, without a jump for each."""
    below = False
    for j in range(products.size):
        below |= norms[j] + products[j] < threshold
    return below


@kernel
def keep_smallest(thresholds, n_kept, keys, items, sizes):
    """Cut buffers to their ``n_kept`` smallest keys, the largest of which is the threshold.

    The entries stay in order; of those at the threshold the first are kept. What is behind the
    entries in use is infinite, before and after.
    """
    for q in range(keys.shape[0]):
        if sizes[q] <= n_kept:
            continue
        threshold, n_below = thresholds[q], 0
        for e in range(sizes[q]):
            n_below += keys[q, e] < threshold
        n_equal, size = n_kept - n_below, 0
        for e in range(sizes[q]):
            key, item = keys[q, e], items[q, e]
            keys[q, size], items[q, size] = key, item
            at_threshold = key == threshold
            size += (key < threshold) | (at_threshold & (n_equal > 0))
            n_equal -= at_threshold
        keys[q, size : sizes[q]] = np.inf
        sizes[q] = size


# Sums in any order run in vector registers.
@kernel(fastmath={"reassoc"})
def exact_distance(a, b, inner):
    """Squared Euclidean distance, or minus the inner product, summed in double precision."""
    total = 0.0
    if inner:
        for f in range(a.size):
            total -= np.float64(a[f]) * np.float64(b[f])
    else:
        for f in range(a.size):
            difference = np.float64(a[f]) - np.float64(b[f])
            total += difference * difference
    return total


@kernel
def exact_distances(queries, corpus, items, inner, distances):
    """Exact distances of candidates (n_queries, n_candidates); infinite for the item -1."""
    for q in range(items.shape[0]):
        for c in range(items.shape[1]):
            if items[q, c] < 0:
                distances[q, c] = np.inf
            else:
                distances[q, c] = exact_distance(queries[q], corpus[items[q, c]], inner)


@kernel
def exact_pairs(queries, corpus, owner, items, inner, distances):
    """Exact distance of each pair of a query, ``owner``, and an item."""
    for e in range(items.size):
        distances[e] = exact_distance(queries[owner[e]], corpus[items[e]], inner)


@kernel
def settle_ties(queries, corpus, order, keys, tolerance, inner, touched):
    """Settle ties: give runs of nearly equal keys their exact distances, and mark their rows.

    order, keys: (n_queries, n_items), items by approximate key, and their keys. Keys are off by at
    most half of ``tolerance``, so items of different runs are in order already.
    """
    for q in range(order.shape[0]):
        key = keys[q]
        near_last = False
        for j in range(key.size):
            near_next = j + 1 < key.size and key[j + 1] - key[j] <= tolerance[q]
            if near_last or near_next:
                key[j] = exact_distance(queries[q], corpus[order[q, j]], inner)
                touched[q] = True
            near_last = near_next
