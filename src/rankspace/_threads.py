"""Work in threads: how many, and in which order its results come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def n_threads() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> Iterator[Result]:
    """Map in threads, a few parts at a time, in order, with matrix products on one thread each."""
    from threadpoolctl import threadpool_limits

    if len(parts) == 1:
        yield work(parts[0])
        return
    with ThreadPoolExecutor(n_threads()) as pool:
        for first in range(0, len(parts), n_threads()):
            # Not while the reader has its turn: the limit holds for the whole process.
            with threadpool_limits(1, "blas"):
                results = list(pool.map(work, parts[first : first + n_threads()]))
            yield from results
