"""Work on the workers of a Dask cluster."""

from __future__ import annotations

import itertools
import pickle
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..text import PathLike
from .scratch import temporary_folder
from .steps import Step, prepare
from .sums import shards_of, total_of
from .threads import single_threaded_blas
from .transport import Payload

SMALL = 2**17  # bytes of a state that goes to every shard by itself
FAN_IN = 8  # branches of the tree that one task adds up
CONNECTING = 10.0  # seconds to wait for a scheduler
PATIENCE = 60.0  # seconds to wait for a worker when all are gone
_rounds = itertools.count()


class ClusterLost(ConnectionError):
    """The scheduler or all workers of a cluster are gone.

    Examples
    --------
    >>> from rankspace._engine.parallel.dask import ClusterLost
    >>> raise ClusterLost("the scheduler is gone")
    Traceback (most recent call last):
    rankspace._engine.parallel.dask.ClusterLost: the scheduler is gone
    """


class Dask:
    """Steps on the workers of a cluster; see `rankspace.use_backend`.

    A step goes to the workers once, or in parts with ``part``, and stays until it is forgotten
    here. The scheduler keeps what it was sent, so that a lost worker's share can be made anew; data
    in files are sent by name only. Each round its state goes to all workers, a task for each shard
    adds up its blocks, and further tasks add up shards, as in the tree of a single process.
    """

    remote = True

    def __init__(
        self,
        where: Any,
        *,
        scratch: PathLike | None = None,
        shards: int = 4,
        retries: int = 5,
    ) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError(
                "a cluster needs the package distributed: pip install 'rankspace[cluster]'."
            ) from error
        self._own = isinstance(where, str)
        self.client = _connected(where) if self._own else where
        if not isinstance(self.client, Client):
            raise ValueError(
                "use_backend() takes a Dask client, the address of a scheduler, 'threads' or 'serial': got "
                f"{type(where).__name__}."
            )
        self.shards, self.retries, self.n_rounds = shards, retries, 0
        self._scratch = None if scratch is None else Path(scratch)
        self._held: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def dashboard(self) -> str:
        """A link to watch the cluster by."""
        return str(self.client.dashboard_link)

    @property
    def n_processes(self) -> int:
        """Worker processes that the cluster has now."""
        return len(self.client.nthreads())

    @property
    def n_busy(self) -> int:
        """Workers that have something to do."""
        return sum(map(bool, self.client.processing().values()))

    @property
    def n_workers(self) -> int:
        """Threads of all workers."""
        return max(1, sum(self.client.nthreads().values()))

    @property
    def scratch(self) -> Path:
        """A folder that all workers see."""
        if self._scratch is None:
            return temporary_folder()
        self._scratch.mkdir(parents=True, exist_ok=True)
        return self._scratch

    def close(self) -> None:
        """Forget what the workers hold."""
        self._held.clear()
        if self._own:
            self.client.close()

    # ------------------------------------------------------------------ the protocol

    def reduce(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Any:
        """The sum of ``map_block`` over all blocks."""
        return self._tried(lambda: self._total(step, blocks, state), step)

    def map(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Iterator[Any]:
        """What each block gives, in their order."""
        shards = shards_of(blocks, self._n_shards)
        # Not all at once: results must not pile up on workers while the reader is slow.
        width = 2 * self._n_shards
        for first in range(0, len(shards), width):
            part = shards[first : first + width]
            found = self._tried(lambda part=part: self._each(step, part, state), step)
            for results in found:
                yield from results

    @property
    def _n_shards(self) -> int:
        return self.shards * self.n_workers

    def _total(self, step: Step, blocks: Sequence[Any], state: Any) -> Any:
        nodes = self._tasks(step, shards_of(blocks, self._n_shards), state, _sum_shard)
        while len(nodes) > 1:
            nodes = [
                self._submit(total_of_all, *nodes[i : i + FAN_IN])
                for i in range(0, len(nodes), FAN_IN)
            ]
        return nodes[0].result()

    def _each(self, step: Step, shards: Sequence[Any], state: Any) -> list[Any]:
        return self.client.gather(self._tasks(step, shards, state, _each_of_shard))

    def _tasks(
        self, step: Step, shards: Sequence[Any], state: Any, work: Any
    ) -> list[Any]:
        number, sent = next(_rounds), Payload(state)
        self.n_rounds += 1
        if sent.nbytes > SMALL:
            sent = self._hold(sent)
        held = self._place(step, shards)
        # Dask expects a task to take as long as others of its name did: were all called the same,
        # long ones would be put on one worker after short ones.
        name = f"{type(step).__name__}_{type(state).__name__}"
        return [
            self._submit(
                work, mine, sent, list(shard), number, key=f"{name}-{uuid4().hex}"
            )
            for mine, shard in zip(held, shards, strict=True)
        ]

    def _submit(self, work: Any, *arguments: Any, key: str | None = None) -> Any:
        return self.client.submit(work, *arguments, key=key, pure=False)

    def _hold(self, parcel: Payload) -> Any:
        """Have workers hold something; unlike scattered data, it is there again if one is lost."""
        import dask

        with dask.config.set(
            {"distributed.admin.large-graph-warning-threshold": "1TB"}
        ):
            return self._submit(_hold, parcel)

    def _place(self, step: Any, shards: Sequence[Any]) -> list[Any]:
        """The step for all workers, or its part for each shard on one of them."""
        held = self._held.setdefault(step, {})
        if not hasattr(step, "part"):
            if None not in held:
                held[None] = self._hold(Payload(step))
            return [held[None]] * len(shards)
        keys = [pickle.dumps(shard) for shard in shards]
        for key, shard in zip(keys, shards, strict=True):
            if key not in held:
                held[key] = self._hold(Payload(step.part(shard)))
        return [held[key] for key in keys]

    # ------------------------------------------------------------------ losses

    def _tried(self, work: Any, step: Any) -> Any:
        """Begin anew what failed because data went down with a worker."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        for attempt in range(self.retries + 1):
            try:
                self._check()
                return work()
            except ClusterLost:
                raise
            except (
                CancelledError,
                FutureCancelledError,
                KilledWorker,
                OSError,
            ) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                self._held.pop(step, None)
                self._check(error)
                if attempt == self.retries:
                    raise ClusterLost(
                        f"a step was lost {attempt + 1} times with the workers it ran on: {error}. "
                        "See their logs; they may lack memory."
                    ) from error
        raise AssertionError

    def _check(self, cause: BaseException | None = None) -> None:
        """Raise unless the scheduler answers and has a worker."""
        gone = ClusterLost(
            f"the Dask scheduler at {self._address} is gone. Start it again, and fit again: a "
            "learner with checkpoint=... goes on from its last round."
        )
        if self.client.status != "running":
            raise gone from cause
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterLost(
                f"no worker is left at the Dask scheduler {self._address}: none came in "
                f"{PATIENCE:g} s."
            ) from error
        except (OSError, ValueError, RuntimeError) as error:
            raise gone from (cause or error)

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(getattr(scheduler, "address", "of this client"))


def _connected(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout=CONNECTING)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterLost(
            f"no Dask scheduler answers at {address}: {error}."
        ) from error


# ---------------------------------------------------------------------- on the workers

_open_lock = threading.Lock()
_open_round: dict[int, Any] = {}


def _hold(parcel: Payload) -> Payload:
    return parcel


def _sum_shard(step: Payload, state: Payload, shard: Sequence[Any], number: int) -> Any:
    return total_of(_shard(step, state, shard, number))


def _each_of_shard(
    step: Payload, state: Payload, shard: Sequence[Any], number: int
) -> list[Any]:
    return list(_shard(step, state, shard, number))


def _shard(
    step: Payload, state: Payload, shard: Sequence[Any], number: int
) -> Iterator[Any]:
    work: Any = step.content
    with one_thread_a_product():
        ready = _ready(work, state.content, number)
        for block in shard:
            yield work.map_block(block, ready)


def _ready(work: Any, state: Any, number: int) -> Any:
    """What all blocks of a round share, made once by each worker."""
    if hasattr(work, "part"):
        return prepare(work, state)
    with _open_lock:
        if number not in _open_round:
            _open_round.clear()
            _open_round[number] = prepare(work, state)
        return _open_round[number]


def total_of_all(*parts: Any) -> Any:
    """The sum of several shards."""
    return total_of(parts)


_working: list[Any] = []
_working_lock = threading.Lock()


@contextmanager
def one_thread_a_product() -> Iterator[None]:
    """While any shard of this process is at work: products round otherwise with several threads.

    The process may be the user's own, whose products get their threads back afterwards.
    """
    with _working_lock:
        if not _working:
            _working.append(single_threaded_blas())
            _working[0].__enter__()
        _working.append(None)
    try:
        yield
    finally:
        with _working_lock:
            _working.pop()
            if len(_working) == 1:
                _working.pop().__exit__(None, None, None)
