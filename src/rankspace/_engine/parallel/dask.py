"""Backend that runs steps on the workers of a Dask cluster, and survives lost workers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from ..files import PathLike, temporary_folder
from ..optional import require
from .sums import Step, shards_of, total_of
from .threads import single_threaded_blas
from .transport import Payload

# Data go to the workers once, so a large graph is no mistake.
NO_SIZE_WARNING = {"distributed.admin.large-graph-warning-threshold": "1TB"}
SMALL = 2**17  # bytes of a state that is sent along with every task
FAN_IN = 8  # branches of the tree that one task adds up
CONNECTING = 10.0  # seconds to wait for a scheduler
PATIENCE = 60.0  # seconds to wait for a worker when none is left


class ClusterLost(ConnectionError):
    """The scheduler or all workers of a Dask cluster are lost.

    Examples
    --------
    >>> from rankspace._engine.parallel.dask import ClusterLost
    >>> raise ClusterLost("the scheduler is lost")
    Traceback (most recent call last):
    rankspace._engine.parallel.dask.ClusterLost: the scheduler is lost
    """


class Dask:
    """Backend that runs steps on a Dask cluster; see `rankspace.use_backend`.

    A step is sent to the workers once, whole or restricted to a shard each, and stays there until
    it is garbage collected here. The scheduler keeps what it was sent, so that it can replace what
    a lost worker held; data in files are sent by name only. Each round sends its state to all
    workers; one task per shard adds up its blocks, and further tasks add up shards, in the same
    tree as in a single process.
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
        distributed = require("distributed", extra="cluster")
        self.client = where
        self._owns_client = isinstance(where, str)
        if self._owns_client:
            self.client = _connect(where)
        if not isinstance(self.client, distributed.Client):
            raise ValueError(
                "use_backend() takes a Dask client, the address of a scheduler, 'threads' or "
                f"'serial': got {type(where).__name__}."
            )
        self.shards = shards
        self.retries = retries
        self.n_rounds = 0
        self._scratch = scratch
        # For each step the futures of its copies on the workers, by shard; None for a shared one.
        self._placed: WeakKeyDictionary[Step, dict[Any, Any]] = WeakKeyDictionary()

    @property
    def dashboard(self) -> str:
        """A link to the Dask dashboard."""
        return str(self.client.dashboard_link)

    @property
    def n_processes(self) -> int:
        """Number of worker processes."""
        return len(self.client.nthreads())

    @property
    def n_busy(self) -> int:
        """Number of workers that are running a task."""
        return sum(map(bool, self.client.processing().values()))

    @property
    def n_workers(self) -> int:
        """Number of threads of all workers."""
        return max(1, sum(self.client.nthreads().values()))

    @property
    def scratch(self) -> Path:
        """A folder that all workers can read."""
        if self._scratch is None:
            return temporary_folder()
        folder = Path(self._scratch)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def close(self) -> None:
        """Release what the workers hold."""
        self._placed.clear()
        if self._owns_client:
            self.client.close()

    # ------------------------------------------------------------------ map and reduce

    def reduce(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Any:
        """The sum of ``map_block`` over all blocks."""

        def attempt() -> Any:
            shards = shards_of(blocks, self._n_shards)
            nodes = self._submit_shards(_sum_shard, step, shards, state)
            while len(nodes) > 1:
                branches = range(0, len(nodes), FAN_IN)
                nodes = [
                    self._submit(_sum_nodes, *nodes[i : i + FAN_IN]) for i in branches
                ]
            return nodes[0].result()

        return self._retry(attempt, step)

    def map(
        self,
        step: Step,
        blocks: Sequence[Any],
        state: Any = None,
        *,
        max_in_flight: int | None = None,
    ) -> Iterator[Any]:
        """The result of each block, in order."""
        shards = shards_of(blocks, self._n_shards)
        # Not all at once: results must not pile up on workers while the reader is slow.
        width = 2 * self._n_shards
        for first in range(0, len(shards), width):
            batch = shards[first : first + width]
            for results in self._map_shards(step, batch, state):
                yield from results

    def _map_shards(self, step: Step, shards: Sequence[Any], state: Any) -> list[Any]:
        def attempt() -> list[Any]:
            tasks = self._submit_shards(_map_shard, step, shards, state)
            return self.client.gather(tasks)

        return self._retry(attempt, step)

    @property
    def _n_shards(self) -> int:
        return self.shards * self.n_workers

    def _submit_shards(
        self, work: Callable[..., Any], step: Step, shards: Sequence[Any], state: Any
    ) -> list[Any]:
        """One task for each shard."""
        self.n_rounds += 1
        # Unique among all processes whose rounds a worker may prepare.
        round_id = uuid4().hex
        payload: Any = Payload(state)
        if payload.nbytes > SMALL:
            payload = self._hold(payload)
        steps = self._place(step, shards)
        # Dask expects a task to take as long as others of its name did: if all had the same name,
        # it would put long tasks that follow short ones on one worker.
        name = f"{type(step).__name__}_{type(state).__name__}"
        tasks = []
        for placed, shard in zip(steps, shards, strict=True):
            key = f"{name}-{uuid4().hex}"
            tasks.append(
                self._submit(work, placed, payload, list(shard), round_id, key=key)
            )
        return tasks

    def _submit(self, work: Any, *arguments: Any, key: str | None = None) -> Any:
        return self.client.submit(work, *arguments, key=key, pure=False)

    def _hold(self, payload: Payload) -> Any:
        """Place an object on a worker; unlike scattered data, it is replaced if that is lost."""
        import dask

        with dask.config.set(NO_SIZE_WARNING):
            return self._submit(_identity, payload)

    def _place(self, step: Step, shards: Sequence[Any]) -> list[Any]:
        """For each shard the future of its step on the workers, sent if it is not there."""
        placed = self._placed.setdefault(step, {})
        if step.is_shared:
            if None not in placed:
                placed[None] = self._hold(Payload(step))
            return [placed[None]] * len(shards)
        futures = []
        for shard in shards:
            key = pickle.dumps(shard)
            if key not in placed:
                placed[key] = self._hold(Payload(step.restrict(shard)))
            futures.append(placed[key])
        return futures

    # ------------------------------------------------------------------ lost workers

    def _retry(self, attempt: Callable[[], Any], step: Step) -> Any:
        """Run a computation again if it failed because data were lost with a worker."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        lost = (CancelledError, FutureCancelledError, KilledWorker, OSError)
        n_failures = 0
        while True:
            try:
                self._check_alive()
                return attempt()
            except (ClusterLost, FileNotFoundError):
                raise
            except lost as error:
                n_failures += 1
                self._placed.pop(step, None)
                self._check_alive(error)
                if n_failures > self.retries:
                    raise ClusterLost(
                        f"a step failed {n_failures} times because its workers were lost: "
                        f"{error}. See their logs; they may lack memory."
                    ) from error

    def _check_alive(self, cause: BaseException | None = None) -> None:
        """Raise unless the scheduler responds and has a worker."""
        lost = ClusterLost(
            f"the Dask scheduler at {self._address} is lost. Restart it and fit again: a learner "
            "with checkpoint=... resumes from its last round."
        )
        if self.client.status != "running":
            raise lost from cause
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterLost(
                f"the Dask scheduler at {self._address} has no workers: none came within "
                f"{PATIENCE:g} s."
            ) from error
        except (OSError, ValueError, RuntimeError) as error:
            raise lost from (cause or error)

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(getattr(scheduler, "address", "of this client"))


def _connect(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout=CONNECTING)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterLost(
            f"no Dask scheduler responds at {address}: {error}."
        ) from error


# ---------------------------------------------------------------------- on the workers


def _identity(payload: Payload) -> Payload:
    return payload


def _sum_nodes(*nodes: Any) -> Any:
    return total_of(nodes)


def _sum_shard(
    step: Payload, state: Payload, shard: Sequence[Any], round_id: str
) -> Any:
    return total_of(_results(step, state, shard, round_id))


def _map_shard(
    step: Payload, state: Payload, shard: Sequence[Any], round_id: str
) -> list[Any]:
    return list(_results(step, state, shard, round_id))


def _results(step: Payload, state: Payload, shard: Any, round_id: str) -> Iterator[Any]:
    # The process may be the user's own, which needs its threads back.
    with single_threaded_blas():
        prepared = _prepare(step.content, state.content, round_id)
        for block in shard:
            yield step.content.map_block(block, prepared)


_prepare_lock = threading.Lock()
_prepared: dict[str, Any] = {}


def _prepare(step: Step, state: Any, round_id: str) -> Any:
    """What all blocks of a round share, computed once by each worker."""
    if not step.is_shared:
        return step.prepare(state)
    with _prepare_lock:
        if round_id not in _prepared:
            _prepared.clear()
            _prepared[round_id] = step.prepare(state)
        return _prepared[round_id]
