"""Do stochastic steps of PARCA, over some of the queries, end where all pairs do, and at what cost?

MNIST (pixels over 255), one ridge, 0.003, for both solvers, all else at its defaults. Each fit has
a process of its own, whose peak memory counts everything: Python, libraries, data. Seconds are of
the processor, on one thread. The loss is that of all pairs at the end, the ranking error of the
first 2,000 test digits. With ``--keep FILE`` a stop is no loss.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _kept import Kept
from _table import publish

from rankspace import PARCA, Relevance, evaluate
from rankspace.datasets import open_dataset
from rankspace.learners.solvers.smooth.components import MapLoss, RegularizedLoss
from rankspace.learners.solvers.warp.scaling import Scaling, scaled_points
from rankspace.search.index import Index

RIDGE = 0.003
RUNS = [
    ("mnist", 5000, "lbfgs", 512),
    ("mnist", 5000, "minibatch", 512),
    ("mnist", 10_000, "lbfgs", 512),
    ("mnist", 10_000, "minibatch", 512),
    ("mnist", 30_000, "minibatch", 512),
]


def prepare(folder: Path, name: str) -> None:
    """Rows to learn from in random order, and others, as single precision."""
    data = open_dataset(name)
    random = np.random.default_rng(0)
    train, test = random.permutation(data.splits["train"]), data.splits["test"][:2000]
    for part, rows in (("train", train), ("test", test)):
        np.save(
            folder / f"{name}-{part}-X.npy", (data.X[rows] / 255).astype(np.float32)
        )
        np.save(folder / f"{name}-{part}-y.npy", np.asarray(data.labels)[rows])


def measure(folder: Path, name: str, n: int, solver: str, batch_size: int) -> None:
    """Print seconds, peak memory, loss and ranking error of one fit."""
    X, y, Q, wanted = (
        np.load(folder / f"{name}-{part}.npy", mmap_mode="r")
        for part in ("train-X", "train-y", "test-X", "test-y")
    )
    X, y = np.array(X[:n]), np.array(y[:n])
    start = time.process_time()
    model = PARCA(reg=RIDGE, solver=solver, batch_size=batch_size, random_state=0).fit(
        X, y
    )
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    relevance = Relevance.from_labels(y, query_labels=wanted)
    ranking = Index(model.transform(X)).blocks(model.transform(Q))
    error = evaluate(ranking, relevance, "ranking-error").means["ranking-error"]
    print(json.dumps([seconds, peak, final_loss(model, X, y), error]))


def final_loss(model: PARCA, X: np.ndarray, y: np.ndarray) -> float:
    """The loss of all pairs."""
    relevance = Relevance.from_labels(y)
    loss = MapLoss(scaled_points(X, relevance, None, Scaling.of(X)), relevance)
    A = model.components_.astype(np.float64) * model.scale_
    return RegularizedLoss(loss, RIDGE).value_and_gradient(A)[0]


def apart(*arguments: Any) -> str:
    """What this script prints in a process of its own; this one stays small, as peaks count it."""
    command = [sys.executable, __file__, *map(str, arguments)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=one_thread
    ).stdout


def row(folder: Path, name: str, n: int, solver: str, batch_size: int) -> list[Any]:
    told = apart("--one", folder, name, n, solver, batch_size)
    seconds, peak, loss, error = json.loads(told.splitlines()[-1])
    how = "all pairs" if solver == "lbfgs" else f"{batch_size} queries a step"
    shown = [name, n, how, seconds, round(peak), f"{loss:.4f}", f"{error:.4f}"]
    print(*shown, file=sys.stderr, flush=True)
    return shown


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        folder, name, n, solver, batch_size = sys.argv[2:]
        measure(Path(folder), name, int(n), solver, int(batch_size))
        return
    if sys.argv[1:2] == ["--prepare"]:
        prepare(Path(sys.argv[2]), sys.argv[3])
        return
    kept, prepared = Kept.from_arguments(), set()
    with tempfile.TemporaryDirectory() as home:

        def made(name: str, *how: Any) -> list[Any]:
            if name not in prepared:
                apart("--prepare", home, name)
                prepared.add(name)
            return row(Path(home), name, *how)

        rows = [kept.get(" ".join(map(str, run)), partial(made, *run)) for run in RUNS]
    header = [
        "data",
        "n",
        "steps over",
        "seconds",
        "peak, MB",
        "loss",
        "held-out ranking error",
    ]
    publish("PARCA: stochastic steps against all pairs", header, rows)


if __name__ == "__main__":
    main()
