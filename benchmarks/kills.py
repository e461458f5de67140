"""Do fits resume from a checkpoint with bit-identical results after they are killed?

Each learner and option fits with a checkpoint in a process that is killed by SIGKILL at random
times and started again. A run that comes to its end must have the metric of an uninterrupted one,
bit for bit; then the next run begins, until 20 processes were killed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from _table import publish

from rankspace import FRML, MLR, GraphMLR, Relevance, RobustMLR
from rankspace.datasets import load_digits

KILLS = 20
BATCHES = {"batch_size": 40, "max_iter": 60, "random_state": 0}
STEPS = {"n_triplets": 60_000, "check_every": 500, "random_state": 0}
PAPER = {"solver": "paper", "step": 0.01, "validation_fraction": 0.0}
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
    "MLR, C='auto'": (MLR, {"C": "auto", "max_iter": 40}, "labels"),
    "MLR, blocks": (
        MLR,
        {"constraint": "blocks", "blocks": np.arange(64) // 8, "max_iter": 40},
        "labels",
    ),
    "MLR, majority vote": (MLR, {"measure": "knn-vote@5", "max_iter": 40}, "labels"),
    "MLR, weights": (MLR, {"max_iter": 40}, "weights"),
    "MLR, standardised": (MLR, {"scaling": "standard", "max_iter": 40}, "labels"),
    "GraphMLR": (GraphMLR, {"max_iter": 40}, "some labels"),
    "GraphMLR, batches": (GraphMLR, BATCHES, "some labels"),
    "FRML": (FRML, {"n_components": 20, **STEPS}, "labels"),
    "FRML, all features": (FRML, {"init": "identity", **STEPS}, "labels"),
    "FRML, given start": (FRML, {"init": np.eye(10, 64) + 0.01, **STEPS}, "labels"),
    "FRML, no validation": (FRML, {"validation_fraction": 0, **STEPS}, "labels"),
    "FRML, 3 shards": (FRML, {"n_components": 20, "n_shards": 3, **STEPS}, "labels"),
    "FRML, sparse": (FRML, {"n_components": 20, **STEPS}, "sparse"),
    "FRML, queries": (FRML, {"n_components": 20, **STEPS}, "queries"),
    "FRML, graph": (FRML, {"graph_reg": 0.1, **STEPS}, "some labels"),
    "FRML, graph, 3 shards": (
        FRML,
        {"graph_reg": 0.1, "n_shards": 3, **STEPS},
        "some labels",
    ),
    "FRML, weights": (FRML, {"n_components": 20, **STEPS}, "weights"),
    "FRML, validation set": (FRML, {"n_components": 20, **STEPS}, "validation"),
    "FRML, standardised": (FRML, {"scaling": "standard", **STEPS}, "labels"),
    "FRML, Frobenius": (FRML, {"regularizer": "frobenius", **STEPS}, "labels"),
    "FRML, paper": (FRML, {**PAPER, "n_components": 20, **STEPS}, "labels"),
    "FRML, as printed": (
        FRML,
        {**PAPER, "n_components": 20, **STEPS, "solver": "printed"},
        "labels",
    ),
}


def data_of(kind: str) -> tuple[Any, Any, dict[str, Any]]:
    """Digits as items with labels, and what else `fit` takes."""
    digits = load_digits()
    X = digits.X[:600]
    y: Any = digits.labels[:600]
    others: dict[str, Any] = {}
    if kind == "sparse":
        X = scipy.sparse.csr_array(X)
    if kind == "some labels":
        y = np.where(np.arange(600) % 3, y, -1)
        y = Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")
    if kind == "weights":
        others["sample_weight"] = 1.0 + np.arange(600) % 3
    if kind == "validation":
        others["X_val"] = digits.X[600:700]
        others["y_val"] = digits.labels[600:700]
    if kind == "queries":
        y = Relevance.from_labels(y, query_labels=digits.labels[600:700])
        others["queries"] = digits.X[600:700]
    return X, y, others


def fit(case: str, checkpoint: Path | None) -> np.ndarray:
    """The learned components."""
    warnings.simplefilter("ignore")
    learner, options, kind = CASES[case]
    X, y, others = data_of(kind)
    model = learner(**options, checkpoint=checkpoint).fit(X, y, **others)
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
    while kills < KILLS or path.exists() or not same:
        process = multiprocessing.get_context("fork").Process(
            target=fit, args=(case, path)
        )
        process.start()
        patience = rng.uniform(0.0, 0.9 * seconds) if kills < KILLS else None
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
    """Kill all cases, or some without publishing them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=[""], help="how names begin")
    begins = tuple(parser.parse_known_args()[0].cases)
    chosen = [case for case in CASES if case.startswith(begins)]
    rows = []
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(kill_and_resume(case, Path(folder)))
        print(*rows[-1], flush=True)
    if len(chosen) < len(CASES):
        return
    header = ["fit", "kills", "with a file", "finished runs", "bit-identical"]
    publish("Killed and resumed", header, rows)


if __name__ == "__main__":
    main()
