"""Top-k search by heaps over blocks of approximate distances, and exact distances of a few."""

import numpy as np

from ..compiled import kernel

CHUNK = 64  # entries compared with the threshold at once, in vector registers


@kernel
def sift(keys, items, key, item):
    """Replace the largest key of a max-heap by a smaller one."""
    at, size = 0, keys.size
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[at], items[at] = keys[child], items[child]
        at = child
    keys[at], items[at] = key, item


@kernel
def push_block(products, norms, first, query_items, keys, items):
    """Top-k update: keep the smallest ``norms[j] + products[q, j]`` of each query in its heap.

    products: (n_queries, n_block) of float; norms: (n_block,); ``first`` is the number of the
    block's first item; keys, items: (n_queries, n_candidates), heaps with the largest key first.
    """
    n_block = norms.size
    for q in range(products.shape[0]):
        row, heap, heap_items = products[q], keys[q], items[q]
        threshold = heap[0]
        for start in range(0, n_block, CHUNK):
            stop = min(start + CHUNK, n_block)
            below = False
            for j in range(start, stop):
                below |= norms[j] + row[j] < threshold
            if not below:
                continue
            for j in range(start, stop):
                key = norms[j] + row[j]
                if key < threshold and first + j != query_items[q]:
                    sift(heap, heap_items, key, first + j)
                    threshold = heap[0]


@kernel
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
