"""Do fits resume from a checkpoint with bit-identical results after they are killed?

Each learner and option fits with a checkpoint in a process that is killed by SIGKILL at random
times and started again. A run that comes to its end must have the metric of an uninterrupted one,
bit for bit; then the next run begins, until 20 processes were killed.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from _table import publish

from rankspace import FRML, MLR, Relevance, RobustMLR
from rankspace.datasets import load_digits

KILLS = 20
BATCHES = {"batch_size": 40, "max_iter": 60, "random_state": 0}
STEPS = {"n_triplets": 60_000, "check_every": 500, "random_state": 0}
CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "MLR": (MLR, {"measure": "auc"}, "labels"),
    "MLR, map, diagonal": (MLR, {"constraint": "diagonal", "max_iter": 40}, "labels"),
    "MLR, Frobenius, prior": (
        MLR,
        {"regularizer": "frobenius", "prior": np.eye(64) / 64, "max_iter": 40},
        "labels",
    ),
    "MLR, batches": (MLR, BATCHES, "labels"),
    "MLR, batches, AUC": (MLR, {"measure": "auc", **BATCHES}, "labels"),
    "MLR, queries": (MLR, {"max_iter": 40}, "queries"),
    "MLR, queries, batches": (MLR, BATCHES, "queries"),
    "RobustMLR": (RobustMLR, {"measure": "auc", "max_iter": 20}, "labels"),
    "RobustMLR, batches": (RobustMLR, {**BATCHES, "max_iter": 30}, "labels"),
    "FRML": (FRML, {"n_components": 20, **STEPS}, "labels"),
    "FRML, all features": (FRML, {"init": "identity", **STEPS}, "labels"),
    "FRML, given start": (FRML, {"init": np.eye(10, 64) + 0.01, **STEPS}, "labels"),
    "FRML, no validation": (FRML, {"validation_fraction": 0, **STEPS}, "labels"),
    "FRML, 3 shards": (FRML, {"n_components": 20, "n_shards": 3, **STEPS}, "labels"),
    "FRML, sparse": (FRML, {"n_components": 20, **STEPS}, "sparse"),
    "FRML, queries": (FRML, {"n_components": 20, **STEPS}, "queries"),
}


def data_of(kind: str) -> tuple[Any, Any, Any]:
    """Digits as items with labels, as a sparse matrix, or with separate queries."""
    digits = load_digits()
    X = digits.X[:600]
    y = digits.labels[:600]
    if kind == "sparse":
        return scipy.sparse.csr_array(X), y, None
    if kind == "labels":
        return X, y, None
    queries = digits.X[600:700]
    relevance = Relevance.from_labels(y, query_labels=digits.labels[600:700])
    return X, relevance, queries


def fit(case: str, checkpoint: Path | None) -> np.ndarray:
    """The learned components."""
    warnings.simplefilter("ignore")
    learner, options, kind = CASES[case]
    X, y, queries = data_of(kind)
    model = learner(**options, checkpoint=checkpoint).fit(X, y, queries=queries)
    return model.components_


def kill_and_resume(case: str, folder: Path) -> list[Any]:
    """Kills, kills that left a file to resume from, and runs that ended the same."""
    started = time.perf_counter()
    whole = fit(case, None)
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(0)
    path = folder / "run.safetensors"
    kills = 0
    resumable = 0
    same = []
    while kills < KILLS or path.exists():
        process = multiprocessing.get_context("fork").Process(
            target=fit, args=(case, path)
        )
        process.start()
        patience = rng.uniform(0.0, seconds / 2) if kills < KILLS else None
        process.join(patience)
        if process.is_alive():
            process.kill()
            process.join()
            kills += 1
            resumable += path.exists()
            continue
        same.append(np.array_equal(fit(case, path), whole))
        path.unlink()
    return [case, kills, resumable, len(same), sum(same)]


def main() -> None:
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(kill_and_resume(case, Path(folder)))
        print(*rows[-1], flush=True)
    header = ["fit", "kills", "with a file", "finished runs", "bit-identical"]
    publish("Killed and resumed", header, rows)


if __name__ == "__main__":
    main()
