"""Candidates of a search: the items of the smallest approximate keys, by products in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._engine.parallel.threads import n_threads, ordered_map

# With 256 queries, a block of products stays in the second-level cache.
ITEM_BLOCK = 1024
PRODUCTS = 256 * ITEM_BLOCK
# Numbers in the vectors that one thread reads in about the time it takes to start another.
WORTH_THREADS = 2**20


def over_fetched(k: int) -> int:
    """Number of candidates to re-score exactly for the k nearest."""
    return k + 10 + k // 8


def n_collected(k: int) -> int:
    """Number of items to collect before the candidates among them are selected."""
    return 2 * over_fetched(k) + ITEM_BLOCK


class Candidates:
    """Buffers of the items with the smallest approximate keys, for each query, by item number."""

    def __init__(
        self, n_kept: int, keys: np.ndarray, items: np.ndarray, sizes: np.ndarray
    ) -> None:
        self.n_kept = n_kept
        self.keys = keys  # infinite behind the entries in use
        self.items = items
        self.sizes = sizes
        self.thresholds = np.full(len(keys), np.inf, dtype=keys.dtype)

    def push(
        self, products: np.ndarray, norms: np.ndarray, first: int, own: np.ndarray
    ) -> None:
        """Collect the items of a block whose keys, norm plus product, are below the thresholds."""
        from .._engine.kernels.topk import push_block

        if self.sizes.max(initial=0) + len(norms) > self.keys.shape[1]:
            self.cut()
        buffers = self.thresholds, self.keys, self.items, self.sizes
        push_block(products, norms, first, own, *buffers)

    def cut(self) -> None:
        """Keep the smallest keys, and lower the thresholds to the largest of these."""
        from .._engine.kernels.topk import keep_smallest

        size = int(self.sizes.max(initial=0))
        if size < self.n_kept:
            return
        last = self.n_kept - 1
        smallest = np.partition(self.keys[:, :size], last, axis=1)
        self.thresholds = smallest[:, last].copy()
        keep_smallest(self.thresholds, self.n_kept, self.keys, self.items, self.sizes)


def propose(
    queries: np.ndarray,
    items: Any,
    norms: np.ndarray,
    own: np.ndarray,
    n_kept: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates by number: the items of the smallest keys ``norms + queries @ items.T``.

    Also the largest of these keys. A list of fewer candidates ends in -1. Threads that have no
    queries share the items.

    items : array of shape (n_items, n_features), or what gives such an array for a slice
    own : the item that each query is, or -1
    """
    n = n_threads() if norms.size * queries.shape[1] > WORTH_THREADS else 1
    size = -(-norms.size // n)
    starts = range(0, norms.size, size)

    def collect(start: int) -> Candidates:
        rows = range(start, min(start + size, norms.size))
        return _collect(queries, items, norms, own, n_kept, rows)

    found = _joined(list(ordered_map(collect, starts, n, max_in_flight=n)))
    numbers = found.items[:, :n_kept]
    numbers[np.arange(n_kept) >= found.sizes[:, None]] = -1
    return numbers, found.thresholds.astype(np.float64)


def _collect(
    queries: np.ndarray,
    items: Any,
    norms: np.ndarray,
    own: np.ndarray,
    n_kept: int,
    rows: range,
) -> Candidates:
    """The candidates among some items.

    Items below a threshold are collected; a full buffer is cut to the candidates so far, the last
    of which is the next threshold.
    """
    # With few queries the blocks are larger, so that calls take little of the time.
    n_fitting = PRODUCTS // max(1, len(queries))
    n_block = min(16 * ITEM_BLOCK, max(ITEM_BLOCK, n_fitting))
    shape = (len(queries), 2 * n_kept + n_block)
    found = Candidates(
        n_kept,
        np.full(shape, np.inf, dtype=queries.dtype),
        np.empty(shape, dtype=np.intp),
        np.zeros(len(queries), dtype=np.intp),
    )
    products = np.empty(len(queries) * n_block, dtype=queries.dtype)
    for start in rows[::n_block]:
        part = slice(start, min(start + n_block, rows.stop))
        block = items[part]
        out = products[: len(queries) * len(block)].reshape(-1, len(block))
        np.matmul(queries, block.T, out=out)
        found.push(out, norms[part], start, own)
    found.cut()
    return found


def _joined(parts: Sequence[Candidates]) -> Candidates:
    """The candidates among all items, of those among parts of them in order."""
    if len(parts) == 1:
        return parts[0]
    n_kept = parts[0].n_kept
    shape = (len(parts[0].sizes), n_kept * len(parts))
    found = Candidates(
        n_kept,
        np.full(shape, np.inf, dtype=parts[0].keys.dtype),
        np.empty(shape, dtype=np.intp),
        np.zeros(shape[0], dtype=np.intp),
    )
    for part in parts:
        for q in range(len(part.sizes)):
            size = part.sizes[q]
            used = slice(found.sizes[q], found.sizes[q] + size)
            found.keys[q, used] = part.keys[q, :size]
            found.items[q, used] = part.items[q, :size]
            found.sizes[q] += size
    found.cut()
    return found
