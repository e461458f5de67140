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
    settle_runs(distances.view(np.int64), mask, keys)
    return keys, mask


@kernel
def pack_singles(distances, bits, keys):
    """Keys of single-precision distances: their bits, in the order of integers, then the item."""
    for b in range(len(keys)):
        for i in range(keys.shape[1]):
            distances[b, i] += np.float32(0.0)
            key = np.int64(bits[b, i])
            key ^= (key >> 63) & 0x7FFFFFFF
            keys[b, i] = (key << INDEX_BITS) | i


@kernel
def in_order(bits):
    """The bits of a double as an integer in the order of doubles."""
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@kernel
def pack_doubles(distances, bits, mask, keys):
    """Keys of double-precision distances: their first bits, in the order of integers; the item."""
    for b in range(len(keys)):
        for i in range(keys.shape[1]):
            distances[b, i] += 0.0
            keys[b, i] = (in_order(bits[b, i]) & ~mask) | i


@kernel
def settle_runs(bits, mask, keys):
    """Sort runs of keys that differ in the item only by the full distance, then by the item."""
    rest = np.empty(keys.shape[1], dtype=np.int64)
    width = 0
    while mask >> width:
        width += 1
    for b in range(len(keys)):
        row = keys[b]
        n_equal = 0
        for i in range(1, row.size):
            n_equal += (row[i] ^ row[i - 1]) & ~mask == 0
        if n_equal:
            settle_row(bits[b], mask, width, row, rest)


@kernel
def settle_row(bits, mask, width, row, rest):
    """Sort the runs of one row."""
    first = 0
    for i in range(1, row.size + 1):
        if i < row.size and (row[i] ^ row[first]) & ~mask == 0:
            continue
        if i - first > 1:
            settle_run(bits, mask, width, row[first:i], rest)
        first = i


@kernel
def settle_run(bits, mask, width, run, rest):
    """Sort the keys of a run by the bits that were cut off, then by the item."""
    for i in range(run.size):
        item = run[i] & mask
        rest[i] = ((in_order(bits[item]) & mask) << width) | item
    shell_sort(rest[: run.size])
    for i in range(run.size):
        run[i] = (run[i] & ~mask) | (rest[i] & mask)


@kernel
def shell_sort(values):
    """Shell sort: values in order, as of ties, take one pass for each gap."""
    gap = 1
    while 3 * gap + 1 < values.size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value = values[i]
            at = i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3
