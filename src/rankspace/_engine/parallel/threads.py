"""Work in threads: how many, and in which order its results come."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")
_here = threading.local()


def n_threads() -> int:
    """Cores that this process may use; ``OMP_NUM_THREADS`` lowers it, as it does for BLAS.

    1 in a thread of `team`, whose fellows have the other cores.
    """
    if getattr(_here, "in_team", False):
        return 1
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores or 1, int(wanted))) if wanted.isdigit() else cores or 1


def team(n: int) -> ThreadPoolExecutor:
    """Threads that start none themselves."""
    return ThreadPoolExecutor(n, initializer=setattr, initargs=(_here, "in_team", True))


@cache
def _standing_team(n: int) -> ThreadPoolExecutor:
    """Threads that wait for work: new ones share a core for the first milliseconds."""
    return team(n)


if hasattr(os, "register_at_fork"):  # threads stay behind
    os.register_at_fork(after_in_child=_standing_team.cache_clear)


@cache
def _blas() -> Any:
    """The BLAS libraries of this process; finding them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (brings a library of its own)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def single_threaded_blas() -> Any:
    """A context in which every matrix product keeps to the thread that asks for it."""
    return _blas().limit(limits=1)


def thread_map(
    work: Callable[[Part], Result], parts: Sequence[Part], *, depth: int = 1
) -> Iterator[Result]:
    """Map in threads, in order, with matrix products on one thread each.

    So many parts for each thread are done before the reader gets the first: threads wait for each
    other less often the more there are, and as many results are held.
    """
    if len(parts) == 1 or n_threads() == 1:
        yield from map(work, parts)
        return
    pool, batch = _standing_team(n_threads()), depth * n_threads()
    for first in range(0, len(parts), batch):
        # Not while the reader has its turn: the limit holds for the whole process.
        with single_threaded_blas():
            results = _all_done(
                [pool.submit(work, part) for part in parts[first : first + batch]]
            )
        yield from results


def _all_done(futures: Sequence[Future[Result]]) -> list[Result]:
    """All results; if there is an error, only when nothing of the work goes on."""
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        wait(futures)
        raise


WORTH_THREADS = (
    5e7  # flops of a round of work, below which handing it over takes longer
)


class LazyPool:
    """Threads that stay for many rounds of work; none are started while all rounds are small."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def each(
        self, work: Callable[[Part], None], parts: Sequence[Part], flops: float
    ) -> None:
        """Do all parts; each must write where no other does."""
        if flops < WORTH_THREADS or len(parts) == 1 or n_threads() == 1:
            for part in parts:
                work(part)
            return
        if self._pool is None:
            self._pool = team(n_threads())
        list(self._pool.map(work, parts))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
