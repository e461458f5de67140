"""Where heavy steps run: threads of this process, or the workers of a Dask cluster.

A learner says what a block of its data gives, `Step.map_block`, and asks the `current_backend` to
`reduce` over all blocks. It does not know which backend that is, and the answer does not depend on
it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ..text import PathLike
from .scratch import temporary_folder
from .steps import Step, prepare
from .sums import total_of
from .threads import n_threads, single_threaded_blas, team

AHEAD = 4  # blocks for each thread that are done before their turn


class Threads:
    """Blocks in threads of this process; with one thread, one after the other.

    Parameters
    ----------
    n : int, optional
        Threads at most; by default the cores this process may use.
    """

    remote = False

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    @property
    def n_workers(self) -> int:
        """How many blocks can be worked on at once."""
        return n_threads() if self.n is None else self.n

    def reduce(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Any:
        """The sum of ``map_block`` over all blocks, at most ``max_in_flight`` of them held."""
        return total_of(self.map(step, blocks, state, max_in_flight=max_in_flight))

    def map(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Iterator[Any]:
        """What each block gives, in their order."""
        n = min(self.n_workers, len(blocks), max_in_flight or len(blocks))
        ahead = min(AHEAD * n, max_in_flight or AHEAD * n)
        # One thread a product, whoever asks: products round otherwise with several.
        with single_threaded_blas():
            ready = prepare(step, state)
            if n <= 1:
                for block in blocks:
                    yield step.map_block(block, ready)
            else:
                yield from _windowed(
                    lambda block: step.map_block(block, ready), blocks, n, ahead
                )


def _windowed(
    work: Callable[[Any], Any], blocks: Sequence[Any], n: int, ahead: int
) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    with team(n) as pool:
        try:
            for block in blocks:
                if len(waiting) >= max(n, ahead):
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, block))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


_chosen: ContextVar[Any] = ContextVar("rankspace_backend", default=None)


def current_backend() -> Any:
    """The backend that was chosen by `use_backend`; threads otherwise."""
    return _chosen.get() or Threads()


def scratch_folder() -> Path:
    """A folder that this process and all workers see."""
    backend = current_backend()
    return backend.scratch if backend.remote else temporary_folder()


@contextmanager
def use_backend(
    where: Any, *, scratch: PathLike | None = None, shards: int = 4, retries: int = 5
) -> Iterator[Any]:
    """Do the heavy steps of all learners, searches and evaluations elsewhere.

    Answers do not depend on where: sums are taken over blocks of fixed size, in a fixed order.

    Parameters
    ----------
    where : dask.distributed.Client or str
        A Dask client, the address of a Dask scheduler such as ``"tcp://SCHEDULER:8786"`` (extra
        ``cluster``), ``"threads"`` (what happens without `use_backend`), or ``"serial"``.
    scratch : path, optional
        A folder that this process and all workers see, which data that are not in one file are
        written to; a new temporary one by default.
    shards : int, default=4
        Shards for each thread of the workers. More of them even out workers of unlike speed.
    retries : int, default=5
        How often a step is begun anew after its data were lost.

    Yields
    ------
    backend
        With ``dashboard``, a link to watch a Dask cluster by.

    Notes
    -----
    On a cluster, data go to the workers once; each round the state of the learner (such as a metric
    of d x d numbers) goes down, and sums come up along a tree. What a worker held when it was lost
    is made anew elsewhere, so a lost worker costs time and nothing else.

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
        if hasattr(backend, "close"):
            backend.close()


def _backend(where: Any, scratch: PathLike | None, shards: int, retries: int) -> Any:
    local = {"threads": None, "serial": 1}
    if isinstance(where, str) and where in local:
        return Threads(local[where])
    if isinstance(where, str) and ":" not in where:
        raise ValueError(
            "use_backend() takes a Dask client, the address of a scheduler such as 'tcp://SCHEDULER:8786', "
            f"'threads' or 'serial': got {where!r}."
        )
    from .dask import Dask

    return Dask(where, scratch=scratch, shards=shards, retries=retries)
