"""How many documents a second does LGMML score, beside LightGBM (the paper's table 5)?

20,000 documents of 136 features in single precision, on one thread; scaling of features is part of
the time. "Over products" is the time over that of the matrix product with all factors alone. The
paper has 158 "ms" a document for 500 full metrics on MSLR, and 92 for 5,000 trees.
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


def seconds(call: Callable[[], Any]) -> float:
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
    few = X if r else X[:1000]
    Z, stacked = scaling.apply(few), np.ascontiguousarray(factors.reshape(-1, d).T)
    whole = seconds(lambda: metric.scores(few)) / len(few)
    step = 1024 if r else 64
    products = seconds(
        lambda: [Z[i : i + step] @ stacked for i in range(0, len(few), step)]
    )
    products /= len(few)
    label = f"LGMML, {m} metrics of rank {r or d}, {kind}"
    return [label, 1e6 * whole, round(1 / whole), whole / products]


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
    whole = seconds(lambda: model.predict(X, num_threads=1)) / len(X)
    return [
        f"LightGBM, {n_trees:,} trees of 31 leaves",
        1e6 * whole,
        round(1 / whole),
        "",
    ]


def main() -> None:
    X = np.random.default_rng(0).lognormal(size=(N, D)).astype(np.float32)
    with single_threaded_blas():
        rows = [
            local_row(X, kind, m, r)
            for kind, m, r in [
                ("joined", 50, 4), ("rank-gauss", 50, 4), ("rank-gauss", 500, 1),
                ("rank-gauss", 500, 4), ("joined", 500, 4), ("standard", 500, 4), ("l2", 500, 0),
            ]
        ]  # fmt: skip
    rows += [tree_row(X, n) for n in (100, 500, 5000)]
    header = ["model", "us a document", "documents/s", "over products"]
    publish("LGMML: documents a second", header, rows)


if __name__ == "__main__":
    main()
