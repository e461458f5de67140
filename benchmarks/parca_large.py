"""Do minibatch steps of PARCA reach the same loss as L-BFGS over all pairs, and how fast?

MNIST (pixels divided by 255), reg = 0.003 for both solvers, all other parameters at their
defaults. Each fit has its own process, whose peak memory includes Python, libraries and data.
Seconds are processor time on one thread. The loss is over all pairs, at the end; the ranking
error is of the first 2,000 test digits. With ``--checkpoint FILE`` an interrupted run resumes.
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
from _checkpoint import Checkpoint
from _table import publish

from rankspace import PARCA, Relevance, evaluate
from rankspace.datasets import open_dataset
from rankspace.learners.solvers.points import scaled_points
from rankspace.learners.solvers.scaling import Scaling
from rankspace.learners.solvers.smooth.components import MapLoss, RegularizedLoss
from rankspace.search.index import Index

REG = 0.003
RUNS = [
    ("mnist", 5000, "lbfgs", 512),
    ("mnist", 5000, "minibatch", 512),
    ("mnist", 10_000, "lbfgs", 512),
    ("mnist", 10_000, "minibatch", 512),
    ("mnist", 30_000, "minibatch", 512),
]


def prepare(folder: Path, name: str) -> None:
    """Write training rows in random order, and test rows, in single precision."""
    data = open_dataset(name)
    random = np.random.default_rng(0)
    train = random.permutation(data.splits["train"])
    test = data.splits["test"][:2000]
    for part, rows in (("train", train), ("test", test)):
        np.save(
            folder / f"{name}-{part}-X.npy", (data.X[rows] / 255).astype(np.float32)
        )
        np.save(folder / f"{name}-{part}-y.npy", np.asarray(data.labels)[rows])


def load(folder: Path, name: str, n: int | None = None) -> np.ndarray:
    """The first n rows of an array, or all of it."""
    return np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[:n])


def measure(folder: Path, name: str, n: int, solver: str, batch_size: int) -> None:
    """Print seconds, peak memory, loss and ranking error of one fit."""
    X = load(folder, f"{name}-train-X", n)
    y = load(folder, f"{name}-train-y", n)
    Q = load(folder, f"{name}-test-X")
    query_labels = load(folder, f"{name}-test-y")
    model = PARCA(reg=REG, solver=solver, batch_size=batch_size, random_state=0)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    relevance = Relevance.from_labels(y, query_labels=query_labels)
    ranking = Index(model.transform(X)).blocks(model.transform(Q))
    error = evaluate(ranking, relevance, "ranking-error").means["ranking-error"]
    print(json.dumps([seconds, peak, final_loss(model, X, y), error]))


def final_loss(model: PARCA, X: np.ndarray, y: np.ndarray) -> float:
    """The loss over all pairs."""
    relevance = Relevance.from_labels(y)
    loss = MapLoss(
        scaled_points(X, relevance, None, Scaling.of(X, rounded=True)), relevance
    )
    A = model.components_.astype(np.float64) * model.scale_
    return RegularizedLoss(loss, REG).value_and_gradient(A)[0]


def in_new_process(*arguments: Any) -> str:
    """The output of this script in a new process, which gives the peak memory of one fit."""
    command = [sys.executable, __file__, *map(str, arguments)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=one_thread
    ).stdout


def row(folder: Path, name: str, n: int, solver: str, batch_size: int) -> list[Any]:
    if not (folder / f"{name}-train-X.npy").exists():
        in_new_process("--prepare", folder, name)
    output = in_new_process("--one", folder, name, n, solver, batch_size)
    seconds, peak, loss, error = json.loads(output.splitlines()[-1])
    label = "L-BFGS, all pairs"
    if solver == "minibatch":
        label = f"minibatches of {batch_size} queries"
    columns = [name, n, label, seconds, round(peak), f"{loss:.4f}", f"{error:.4f}"]
    print(*columns, file=sys.stderr, flush=True)
    return columns


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        folder, name, n, solver, batch_size = sys.argv[2:]
        measure(Path(folder), name, int(n), solver, int(batch_size))
        return
    if sys.argv[1:2] == ["--prepare"]:
        prepare(Path(sys.argv[2]), sys.argv[3])
        return
    checkpoint = Checkpoint.from_arguments()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS:
            key = " ".join(map(str, run))
            rows.append(checkpoint.get(key, partial(row, Path(folder), *run)))
    header = [
        "data",
        "n",
        "solver",
        "seconds",
        "peak, MB",
        "loss",
        "held-out ranking error",
    ]
    publish("PARCA: minibatch steps and all pairs", header, rows)


if __name__ == "__main__":
    main()
