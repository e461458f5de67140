"""What is the overhead of a cluster, and how long would a fit take on a large one?

The first two rows fit MLR to 8,000 items (16 rounds), first with two threads of one process,
then with two single-threaded worker processes of a `LocalCluster`, configured as the guide says.
Each is the faster of two fits, run in alternation; "difference" is how much longer the workers
take. The third row is the overhead: one round of a problem with 200 items, whose own work takes
almost no time.

Then the cost model. A round costs ``(a q n + b q n d) / p + c q n`` for q queries and n items of
d features on p = min(workers, cores) workers, plus an overhead; c is the cost of memory traffic,
which the cores of one machine share. All four parameters are fitted to rounds on 1 and 2
workers. The prediction for 4 workers on the same two cores is compared with the measured time.
"MB sent" is the state (the map and the query weights) for each worker, "MB returned" the sums of
one shard.

The last rows are predictions for one core per worker, 10^9 queries with 1,000 candidates each, d
= 256, shards of whole blocks, and a reduction tree that adds eight branches per task. The
reduction is simulated message by message, with the overhead of one task and the bandwidth
measured here; the network of a real cluster may be slower.
"""

from __future__ import annotations

import heapq
import os
import time
import warnings
from typing import Any

import dask
import numpy as np
from _table import publish
from distributed import Client, LocalCluster

import rankspace
from rankspace import MLR, Relevance
from rankspace._engine.parallel import use_backend
from rankspace._engine.parallel.dask import FAN_IN
from rankspace.learners.solvers.cutting_plane.ranking_loss import RankingLoss
from rankspace.learners.solvers.points import lazy_points
from rankspace.learners.solvers.scaling import Scaling

HEADER = [
    "what",
    "rows",
    "d",
    "workers",
    "seconds",
    "predicted",
    "difference",
    "MB sent",
    "MB returned",
]
NONE = "–"
SIZES = [(2000, 32), (2000, 128), (4000, 32), (4000, 128), (6000, 64)]
CORES = len(os.sched_getaffinity(0))
FIT = (8000, 64, 16)  # items, features, rounds


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, d)) + 2 / np.sqrt(d) * rng.normal(size=(10, d))[y], y


def cluster(n_workers: int) -> LocalCluster:
    environment = {
        "OMP_NUM_THREADS": "1",
        "MALLOC_TRIM_THRESHOLD_": str(
            2**30
        ),  # workers keep freed memory: see the guide
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
    }
    with dask.config.set({"distributed.nanny.pre-spawn-environ": environment}):
        return LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
        )


def fit_seconds(where: Any) -> float:
    n, d, rounds = FIT
    X, y = problem(n, d)
    with warnings.catch_warnings(), use_backend(where):
        warnings.simplefilter("ignore")
        MLR(max_iter=1).fit(X[:500], y[:500])  # loads the kernels
        begin = time.perf_counter()
        MLR(C=1e4, tol=1e-6, max_iter=rounds).fit(X, y)
        return time.perf_counter() - begin


def both_seconds() -> tuple[float, float]:
    """Seconds of a fit with two threads, and with two worker processes."""
    before = dict(os.environ)
    threads = fit_seconds("threads")
    with cluster(2) as workers, Client(workers) as client:
        client.wait_for_workers(2)
        processes = fit_seconds(client)
    os.environ.clear()  # Dask sets OMP_NUM_THREADS=1 in this process too
    os.environ.update(before)
    return threads, processes


def loss_of(n: int, d: int) -> RankingLoss:
    X, y = problem(n, d)
    relevance = Relevance.from_labels(y)
    points = lazy_points(X, relevance, None, Scaling.of(X))
    return RankingLoss(points, relevance, "map", np.arange(n), 512)


def round_seconds(loss: RankingLoss, d: int, repeats: int) -> float:
    """Seconds of the fastest round, after a first one that sends the data."""
    L = 3 * np.eye(d)
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        loss.plane(L)
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def rounds_on(n_workers: int) -> tuple[list[float], float, float]:
    """Seconds of a round of each size, of an almost empty round, and per byte returned."""
    with cluster(n_workers) as workers, Client(workers) as client, use_backend(client):
        client.wait_for_workers(n_workers)
        # The first call makes every worker load the kernels.
        round_seconds(loss_of(*SIZES[0]), SIZES[0][1], 10)
        seconds = [round_seconds(loss_of(n, d), d, 10) for n, d in SIZES]
        small = round_seconds(loss_of(200, 8), 8, 20)
        return seconds, small, byte_seconds(client)


def byte_seconds(client: Client) -> float:
    """Seconds per byte of a result sent back from a worker."""
    times = []
    for _ in range(5):
        future = client.submit(np.ones, 2**22, pure=False)
        client.submit(len, future).result()
        begin = time.perf_counter()
        future.result()
        times.append(time.perf_counter() - begin)
    return min(times) / 2**25


def megabytes(n: int, d: int) -> tuple[float, float]:
    """MB of the state sent to a worker, and of the sums returned by a shard."""
    return 8 * (d * d + n) / 1e6, 8 * (d * d + n) / 1e6


def columns(n: float, d: float, workers: int) -> list[float]:
    """The terms of the cost model, one for each parameter."""
    p = min(workers, CORES)
    return [n * n / p, n * n * d / p, n * n, 1.0]


def simulated(workers: int, rows: float, candidates: float, d: int, cost: Any) -> float:
    """Seconds of a round with candidate lists: the slowest shard, and the reduction tree."""
    (per_pair, per_product, in_memory, _), task, byte = cost
    shards = 4 * workers
    work = (per_pair + in_memory + per_product * d) * rows * candidates / shards
    rng = np.random.default_rng(0)
    sums = 8 * d * d
    free = [0.0] * workers
    heapq.heapify(free)
    ready = []
    # A worker takes the next shard when it is free; speeds differ by 10 %.
    for _ in range(shards):
        done = heapq.heappop(free) + work * rng.normal(1, 0.1) + task
        heapq.heappush(free, done)
        ready.append(done)
    # Workers pass the state on to each other.
    broadcast = sums * byte * np.log2(max(2, workers))
    while len(ready) > 1:
        groups = [ready[i : i + FAN_IN] for i in range(0, len(ready), FAN_IN)]
        ready = [max(group) + task + sums * byte * len(group) for group in groups]
    return broadcast + ready[0]


def main() -> None:
    n, d, rounds = FIT
    timings = [both_seconds() for _ in range(2)]
    threads = min(seconds for seconds, _ in timings)
    processes = min(seconds for _, seconds in timings)
    label = f"MLR, {rounds} rounds, 2 threads"
    rows: list[list[Any]] = [[label, n, d, NONE, threads, NONE, NONE, NONE, NONE]]
    label = f"MLR, {rounds} rounds, Dask"
    difference = f"{processes / threads - 1:+.1%}"
    rows.append([label, n, d, 2, processes, NONE, difference, *megabytes(n, d)])
    measured = {w: rounds_on(w) for w in (1, 2, 4)}
    with rankspace.use_backend("threads"):
        here = round_seconds(loss_of(200, 8), 8, 20)
    overhead = float(np.mean([measured[w][1] - here for w in (1, 2)]))
    label = "overhead of a round, Dask"
    rows.append([label, 200, 8, 2, overhead, NONE, NONE, *megabytes(200, 8)])
    design = np.array([columns(*size, w) for w in (1, 2) for size in SIZES])
    seconds = np.array([t for w in (1, 2) for t in measured[w][0]])
    fitted, *_ = np.linalg.lstsq(
        design / seconds[:, None], np.ones(seconds.size), rcond=None
    )
    for w in (1, 2, 4):
        for size, t in zip(SIZES, measured[w][0], strict=True):
            expected = float(np.dot(columns(*size, w), fitted))
            label = "one round, predicted" if w == 4 else "one round, fitted"
            error = f"{expected / t - 1:+.1%}"
            rows.append([label, *size, w, t, expected, error, *megabytes(*size)])
    cost = (fitted, overhead / 10, float(np.mean([measured[w][2] for w in (1, 2)])))
    sums = 8 * 256 * 256 / 1e6
    for w in (10, 100, 1000):
        expected = simulated(w, 1e9, 1e3, 256, cost)
        label = "one round, simulated"
        rows.append([label, 10**9, 256, w, NONE, expected, NONE, sums, sums])
    publish("Clusters: two workers against two threads, and a cost model", HEADER, rows)


if __name__ == "__main__":
    main()
