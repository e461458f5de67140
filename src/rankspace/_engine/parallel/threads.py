"""Thread pools: how many threads to use, and a map over them whose results come in order."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar

from .. import OMP_NUM_THREADS
from .interruption import check_interruption

Part = TypeVar("Part")
Result = TypeVar("Result")
_here = threading.local()


def n_threads() -> int:
    """Number of threads to use: the cores of this process, at most ``OMP_NUM_THREADS``.

    The variable is read when rankspace is imported: a Dask LocalCluster sets it to 1 for its
    workers, and leaves it so in the process that started them.

    In a thread of a pool it is 1: the other threads of the pool have the other cores.
    """
    if _in_pool():
        return 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if OMP_NUM_THREADS.isdigit():
        return max(1, min(cores, int(OMP_NUM_THREADS)))
    return cores


def _in_pool() -> bool:
    return getattr(_here, "in_pool", False)


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    """A thread pool that stays: new threads share a core for their first milliseconds."""
    return ThreadPoolExecutor(n, initializer=setattr, initargs=(_here, "in_pool", True))


if hasattr(os, "register_at_fork"):  # a forked process does not inherit threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


class _SharedLimit:
    """Single-threaded BLAS for the whole process, while any caller is inside.

    The first caller to enter sets the number of threads, and the last one to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                _obey_any_thread()
                self._limit = _blas().shared.limit(limits=1)
            self._n_inside += 1
            _here.n_inside = self._n_inside_here + 1

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._n_inside -= 1
            _here.n_inside = self._n_inside_here - 1
            if self._n_inside == 0:
                self._restore()

    def after_fork(self) -> None:
        """Keep only what the forking thread holds: the other threads do not exist here."""
        self._lock = threading.Lock()
        was_limited = self._n_inside > 0
        self._n_inside = self._n_inside_here
        if was_limited and self._n_inside == 0:
            self._restore()

    @property
    def _n_inside_here(self) -> int:
        return getattr(_here, "n_inside", 0)

    def _restore(self) -> None:
        _obey_any_thread()
        self._limit.restore_original_limits()
        _obey_any_thread()


_shared_limit = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared_limit.after_fork)


class _Blas(NamedTuple):
    """BLAS libraries by what their number of threads holds for: the process, or one thread."""

    shared: Any
    own: Any


@cache
def _blas() -> _Blas:
    """The BLAS libraries of this process; finding them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (brings a library of its own)
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController().select(user_api="blas")
    shared: list[str] = []
    own: list[str] = []
    for library in controller.info():
        paths = own if library.get("threading_layer") == "openmp" else shared
        paths.append(library["filepath"])
    return _Blas(controller.select(filepath=shared), controller.select(filepath=own))


def _obey_any_thread() -> None:
    """Let this thread set the number of BLAS threads; threadpoolctl 3.8 obeys the first only."""
    import threadpoolctl

    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """A context in which every matrix product runs on the calling thread only.

    Several threads may be inside at the same time: the last one to leave restores the number of
    threads that the first one found.
    """
    with _shared_limit, _blas().own.limit(limits=1):
        yield


def ordered_map(
    work: Callable[[Part], Result],
    parts: Iterable[Part],
    n: int,
    *,
    max_in_flight: int,
) -> Iterator[Result]:
    """Map over ``n`` threads; results come in order, at most ``max_in_flight`` ahead of the reader.

    When it ends, by an error too, none of the work is still running. It does not limit BLAS.
    """
    # Threads of a pool must not wait for others of the same pool.
    if n == 1 or _in_pool():
        yield from _one_by_one(work, parts)
        return
    futures: deque[Future[Result]] = deque()
    try:
        for part in parts:
            check_interruption()
            if len(futures) >= max_in_flight:
                yield futures.popleft().result()
            futures.append(_pool(n).submit(work, part))
        while futures:
            yield futures.popleft().result()
    finally:
        for future in futures:
            future.cancel()
        wait(futures)


def _one_by_one(
    work: Callable[[Part], Result], parts: Iterable[Part]
) -> Iterator[Result]:
    """Map in this thread."""
    for part in parts:
        check_interruption()
        yield work(part)


def thread_map(
    work: Callable[[Part], Result], parts: Sequence[Part], *, depth: int = 1
) -> Iterator[Result]:
    """Map over threads in order, with single-threaded matrix products.

    The parts are done in batches of ``depth`` per thread, before the reader gets the first result
    of the batch. The deeper, the less often threads wait for each other, and the more results are
    held.
    """
    if _in_pool():
        yield from _one_by_one(work, parts)
        return
    n = n_threads() if len(parts) > 1 else 1
    size = depth * n
    for first in range(0, len(parts), size):
        batch = parts[first : first + size]
        # Not while the reader has its turn: the limit holds for the whole process. Also with one
        # thread: products of several threads are rounded otherwise.
        with single_threaded_blas():
            results = list(ordered_map(work, batch, n, max_in_flight=size))
        yield from results


# Below so many flops, handing work to other threads takes longer than doing it.
WORTH_THREADS = 5e7


def for_each(
    work: Callable[[Part], None], parts: Sequence[Part], *, flops: float
) -> None:
    """Do all parts, in threads if together they cost enough flops; does not limit BLAS.

    Each part must write where no other does.
    """
    n = n_threads() if flops >= WORTH_THREADS and len(parts) > 1 else 1
    for _ in ordered_map(work, parts, n, max_in_flight=len(parts)):
        pass
