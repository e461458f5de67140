"""How many documents per second does LGMML score, compared with LightGBM (table 5 of the paper)?

20,000 documents of 136 features in single precision, on one thread, including the scaling of
features. "Time / products" compares with the matrix product with all factors alone. The paper
reports 158 "ms" per document for 500 full metrics on MSLR, and 92 for 5,000 trees.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
from _table import publish

from rankspace import LocalMetric
from rankspace._engine.parallel.threads import single_threaded_blas
from rankspace.metrics.feature_scaling import FeatureScaling

N, D = 20_000, 136
# Feature scaling, number of metrics, and rank of each; 0 for full rank.
MODELS = [
    ("joined", 50, 4),
    ("rank-gauss", 50, 4),
    ("rank-gauss", 500, 1),
    ("rank-gauss", 500, 4),
    ("joined", 500, 4),
    ("standard", 500, 4),
    ("l2", 500, 0),
]


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of the fastest of three calls, after a warm-up."""
    call()
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def local_row(X: np.ndarray, kind: str, m: int, r: int) -> list[Any]:
    rng = np.random.default_rng(0)
    scaling = FeatureScaling.of(X, kind)
    d = scaling.n_scaled
    factors = (rng.normal(size=(m, r or d, d)) / d).astype(np.float32)
    anchors = rng.normal(size=(m, d)).astype(np.float32)
    weights = rng.normal(size=m).astype(np.float32)
    metric = LocalMetric(
        factors, weights, anchors=anchors, linear=rng.normal(size=d), scaling=scaling
    )
    rows = X
    step = 1024
    if not r:  # full rank: fewer documents, to save time
        rows = X[:1000]
        step = 64
    Z = scaling.apply(rows)
    stacked = np.ascontiguousarray(factors.reshape(-1, d).T)

    def multiply() -> None:
        for start in range(0, len(Z), step):
            Z[start : start + step] @ stacked

    score = seconds(lambda: metric.scores(rows)) / len(rows)
    products = seconds(multiply) / len(rows)
    label = f"LGMML, {m} metrics of rank {r or d}, {kind}"
    return [label, 1e6 * score, round(1 / score), score / products]


def tree_row(X: np.ndarray, n_trees: int) -> list[Any]:
    grades = np.random.default_rng(0).integers(0, 5, 5000)
    data = lightgbm.Dataset(X[:5000], grades, group=[100] * 50)
    options = {
        "objective": "lambdarank",
        "num_leaves": 31,
        "verbose": -1,
        "num_threads": 1,
    }
    model = lightgbm.train(options, data, n_trees)
    score = seconds(lambda: model.predict(X, num_threads=1)) / len(X)
    label = f"LightGBM, {n_trees:,} trees of 31 leaves"
    return [label, 1e6 * score, round(1 / score), ""]


def main() -> None:
    X = np.random.default_rng(0).lognormal(size=(N, D)).astype(np.float32)
    with single_threaded_blas():
        rows = [local_row(X, *model) for model in MODELS]
    rows += [tree_row(X, n) for n in (100, 500, 5000)]
    header = ["model", "us per document", "documents/s", "time / products"]
    publish("LGMML: documents per second", header, rows)


if __name__ == "__main__":
    main()
