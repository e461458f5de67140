"""Who does the heavy steps: threads of this process, or the workers of a Dask cluster.

A learner says what a block of its data gives, `Step.local_step`, and asks the `current` backend for
the `total` over all blocks. It does not know which backend that is, and the answer does not depend
on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..text import PathLike
from .local import Step, Threads
from .sources import as_rows
from .sums import Tree, plus, shards_of, total_of

__all__ = ["Step", "Threads", "Tree", "as_rows", "current", "on", "plus", "shards_of", "total_of"]

_chosen: ContextVar[Any] = ContextVar("rankspace_backend", default=None)


def current() -> Any:
    """The backend that was chosen by `on`; threads otherwise."""
    return _chosen.get() or Threads()


@contextmanager
def on(
    where: Any, *, scratch: PathLike | None = None, shards: int = 4, retries: int = 5
) -> Iterator[Any]:
    """Do the heavy steps of all learners, searches and evaluations elsewhere.

    Answers do not depend on where: sums are taken over blocks of fixed size, in a fixed order.

    Parameters
    ----------
    where : dask.distributed.Client or str
        A Dask client, the address of a Dask scheduler such as ``"tcp://SCHEDULER:8786"`` (extra
        ``cluster``), ``"threads"`` (what happens without `on`), or ``"serial"``.
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
    >>> with rankspace.on("serial"):
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
            "on() takes a Dask client, the address of a scheduler such as 'tcp://SCHEDULER:8786', "
            f"'threads' or 'serial': got {where!r}."
        )
    from .dask import Dask

    return Dask(where, scratch=scratch, shards=shards, retries=retries)
