"""Backends for parallel computation: threads of this process, or the workers of a Dask cluster.

A learner defines what one block of its data gives, `Step.map_block`, and the `current_backend`
computes the sum over all blocks with `reduce`. The learner does not know which backend that is, and
the result does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ..files import PathLike, temporary_folder
from .sums import Step, total_of
from .threads import n_threads, ordered_map, single_threaded_blas

DEPTH = 4  # blocks per thread that may be done before the reader takes them


class Threads:
    """Backend that runs blocks in threads of this process; with one thread, one by one.

    Parameters
    ----------
    n : int, optional
        Number of threads; by default the cores this process may use.
    """

    remote = False

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    @property
    def n_workers(self) -> int:
        """How many blocks can run at the same time."""
        if self.n is None:
            return n_threads()
        return self.n

    def reduce(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Any:
        """The sum of ``map_block`` over all blocks; see `map`."""
        return total_of(self.map(step, blocks, state, max_in_flight=max_in_flight))

    def map(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Iterator[Any]:
        """The result of each block, in order, at most ``max_in_flight`` of them held."""
        n = self.n_workers
        most = min(DEPTH * n, max_in_flight or len(blocks), len(blocks))
        if most <= 1:
            n = 1
        # Also with one thread: products of several threads are rounded otherwise. The limit holds
        # for the whole process, so not while the reader has its turn.
        with single_threaded_blas():
            shared = step.prepare(state)

        def work(block: Any) -> Any:
            with single_threaded_blas():
                return step.map_block(block, shared)

        yield from ordered_map(work, blocks, n, max_in_flight=most)

    def close(self) -> None:
        """Nothing to release: the threads stay for other work."""


_chosen: ContextVar[Any] = ContextVar("rankspace_backend", default=None)


def current_backend() -> Any:
    """The backend chosen by `use_backend`; threads by default."""
    return _chosen.get() or Threads()


def scratch_folder() -> Path:
    """A folder for temporary files that this process and all workers can read."""
    backend = current_backend()
    if backend.remote:
        return backend.scratch
    return temporary_folder()


@contextmanager
def use_backend(
    where: Any, *, scratch: PathLike | None = None, shards: int = 4, retries: int = 5
) -> Iterator[Any]:
    """Choose where learners, searches and evaluations run: in threads or on a Dask cluster.

    Results do not depend on the backend: sums are taken over blocks of fixed size, in a fixed
    order.

    Parameters
    ----------
    where : dask.distributed.Client or str
        A Dask client, the address of a Dask scheduler such as ``"tcp://SCHEDULER:8786"`` (install
        the extra ``cluster``), ``"threads"`` (the default without `use_backend`) or ``"serial"``
        (one thread).
    scratch : path, optional
        A folder that this process and all workers can read. Data that are not in one file are
        written to it. By default a new temporary folder.
    shards : int, default=4
        Shards per worker thread. With more shards, fast workers take over work from slow ones.
    retries : int, default=5
        How often a step is retried after its data were lost with a worker.

    Yields
    ------
    backend
        On a cluster, ``backend.dashboard`` is a link to the Dask dashboard.

    Notes
    -----
    On a cluster, data are sent to the workers once. Each round sends the state of the learner (such
    as a metric of d x d numbers) to the workers and adds up their sums along a tree. What a lost
    worker held is computed again elsewhere, so losing a worker costs only time.

    Examples
    --------
    >>> import rankspace
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> with rankspace.use_backend("serial"):
    ...     model = rankspace.GMML().fit(X, y)
    """
    backend = _backend(where, scratch, shards, retries)
    token = _chosen.set(backend)
    try:
        yield backend
    finally:
        _chosen.reset(token)
        backend.close()


def _backend(where: Any, scratch: PathLike | None, shards: int, retries: int) -> Any:
    if where == "threads":
        return Threads()
    if where == "serial":
        return Threads(1)
    if isinstance(where, str) and ":" not in where:
        raise ValueError(
            "use_backend() takes a Dask client, the address of a scheduler such as "
            f"'tcp://SCHEDULER:8786', 'threads' or 'serial': got {where!r}."
        )
    from .dask import Dask

    return Dask(where, scratch=scratch, shards=shards, retries=retries)
