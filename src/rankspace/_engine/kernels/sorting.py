"""Rows of distances sorted with their items, packed into one integer each."""

import numpy as np

from ..compiled import kernel

INDEX_BITS = 32  # of a key of a single-precision distance


def sort_rows(distances: np.ndarray) -> tuple[np.ndarray, int]:
    """Sort each row, and return keys with the numbers of the items in the bits of a mask.

    Items at equal distance are in order of their numbers. ``distances`` is C-contiguous, without
    NaN; a negative zero becomes zero. A double and a number do not fit into 64 bits: the last bits
    of the double are cut off, and runs of equal cut keys sorted by the full distance.
    """
    keys = np.empty(distances.shape, dtype=np.int64)
    n_items = distances.shape[1]
    if distances.dtype == np.float32:
        pack_singles(distances, distances.view(np.int32), keys)
        keys.sort(axis=1)
        return keys, 2**INDEX_BITS - 1
    mask = 2 ** (n_items - 1).bit_length() - 1
    pack_doubles(distances, distances.view(np.int64), mask, keys)
    keys.sort(axis=1)
    settle_runs(distances, mask, keys)
    return keys, mask


@kernel
def pack_singles(distances, bits, keys):
    """Keys of single-precision distances: their bits, in the order of integers, then the item."""
    for b in range(len(keys)):
        for i in range(keys.shape[1]):
            distances[b, i] += np.float32(0.0)
            key = np.int64(bits[b, i])
            if key < 0:
                key ^= 0x7FFFFFFF
            keys[b, i] = (key << INDEX_BITS) | i


@kernel
def pack_doubles(distances, bits, mask, keys):
    """Keys of double-precision distances: their first bits, in the order of integers; the item."""
    for b in range(len(keys)):
        for i in range(keys.shape[1]):
            distances[b, i] += 0.0
            key = bits[b, i]
            if key < 0:
                key ^= 0x7FFFFFFFFFFFFFFF
            keys[b, i] = (key & ~mask) | i


@kernel
def settle_runs(distances, mask, keys):
    """Sort runs of keys that differ in the item only by the full distance, then by the item."""
    for b in range(len(keys)):
        row = keys[b]
        first = 0
        for i in range(1, row.size + 1):
            if i < row.size and (row[i] ^ row[first]) <= mask:
                continue
            if i - first > 1:
                sort_run(distances[b], mask, row[first:i])
            first = i


@kernel
def sort_run(distances, mask, run):
    """Shell sort of keys by distance, then item: runs in order, as of ties, take one pass."""
    gap = 1
    while 3 * gap + 1 < run.size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, run.size):
            key = run[i]
            distance = distances[key & mask]
            at = i
            while at >= gap:
                before = run[at - gap]
                other = distances[before & mask]
                if other < distance or (other == distance and before < key):
                    break
                run[at] = before
                at -= gap
            run[at] = key
        gap //= 3
