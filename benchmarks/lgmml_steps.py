"""What does each step from the paper's L-GMML to ours give?

Mean NDCG@10 over the test queries of the five folds of `lgmml.py`, with one seed and 50 metrics; no
setting is chosen here. Each row has all that the rows above it have, but the last, which has no
local metric at all.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _table import publish
from lgmml import Fold, folds_of

from rankspace import LGMML, Relevance
from rankspace._feature_scaling import FeatureScaling
from rankspace._solvers.lists import Lists
from rankspace._solvers.metric_weights import logistic_weights

PAPER = {"scaling": "l2", "kernel": "paper", "loss": "warp", "pooling": 0.0, "features": False,
         "n_components": 0}  # fmt: skip
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("paper's form, equal weights as in the authors' code", {**PAPER, "unseen": "ones"}),
    ("weights shared over queries, by WARP", {"unseen": "shared"}),
    ("logistic loss of all pairs, weights of any sign", {"loss": "logistic"}),
    ("normal scores of ranks for features", {"scaling": "rank-gauss"}),
    ("1 - exp(-d^2/2) for d exp(-d)", {"kernel": "rbf"}),
    ("half of each scatter from all lists", {"pooling": 0.5}),
    ("4 directions of each metric", {"n_components": 4}),
    ("features beside distances", {"features": True}),
    ("standard scores beside normal scores (as it comes)", {"scaling": "joined"}),
    ("200 metrics", {"n_metrics": 200}),
]
SETS = ("MQ2008", "OHSUMED", "MSLR sample")


def local_scores(folds: list[Fold], options: dict[str, Any]) -> float:
    found = []
    for fold in folds:
        model = LGMML(**{"n_metrics": 50, "random_state": 0, **options})
        model.fit(fold.train.X, fold.train.grades, qid=fold.train.qid)
        found.append(fold.test.judge(model.predict(fold.test.X))[2])
    return float(np.concatenate(found).mean())


def feature_scores(folds: list[Fold]) -> float:
    found = []
    for fold in folds:
        scaling = FeatureScaling.of(fold.train.X, "joined")
        relevance = Relevance.from_groups(fold.train.grades, fold.train.qid)
        lists = Lists.of(relevance.take_queries(relevance.trainable))
        columns = scaling.apply(fold.train.X)[lists.rows]
        w = logistic_weights(columns, lists, alpha=0.2, k=10, positive=0, max_iter=200)
        found.append(fold.test.judge(scaling.apply(fold.test.X) @ w)[2])
    return float(np.concatenate(found).mean())


def main() -> None:
    warnings.simplefilter("ignore")
    sets = [list(folds_of(name)) for name in SETS]
    options: dict[str, Any] = {}
    rows: list[list[Any]] = []
    for label, changes in STEPS:
        options |= changes
        rows.append([label, *(f"{local_scores(folds, options):.4f}" for folds in sets)])
        print(*rows[-1], sep=" | ", flush=True)
    rows.append(["features alone", *(f"{feature_scores(folds):.4f}" for folds in sets)])
    publish("LGMML: what each step gives", ["step", *SETS], rows)


if __name__ == "__main__":
    main()
