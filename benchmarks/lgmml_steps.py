"""Ablation: what does each step from the paper's L-GMML to our default give?

Mean NDCG@10 over the test queries of the five folds of `lgmml.py`, with one seed and 50 metrics;
nothing is tuned here. Each row includes the steps of all rows above it, except the last, which
has no local metric. With ``--checkpoint FILE`` an interrupted run resumes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _checkpoint import Checkpoint
from _table import publish
from lgmml import Fold, folds_of

from rankspace import LGMML, Relevance
from rankspace.learners.solvers.geometric.lists import Lists
from rankspace.learners.solvers.geometric.metric_weights import logistic_weights
from rankspace.metrics.feature_scaling import FeatureScaling

PAPER = {
    "scaling": "l2",
    "kernel": "paper",
    "loss": "warp",
    "pooling": 0.0,
    "features": False,
    "n_components": 0,
    "n_directions": 0,
}
STEPS: list[tuple[str, dict[str, Any]]] = [
    (
        "paper's form, equal weights as in the authors' code",
        {**PAPER, "new_query_weights": "ones"},
    ),
    ("weights shared by all queries, by WARP", {"new_query_weights": "shared"}),
    ("logistic loss over all pairs, weights of any sign", {"loss": "logistic"}),
    ("rank-based normal scores of features", {"scaling": "rank-gauss"}),
    ("1 - exp(-d^2/2) instead of d exp(-d)", {"kernel": "rbf"}),
    ("half of each scatter from all lists", {"pooling": 0.5}),
    ("4 directions of each metric", {"n_components": 4}),
    ("features in addition to distances", {"features": True}),
    ("standard scores in addition to normal scores", {"scaling": "joined"}),
    ("metrics in 64 shared directions: the default", {"n_directions": 64}),
    ("200 metrics", {"n_metrics": 200}),
]
SETS = ("MQ2008", "OHSUMED", "MSLR sample")


def local_scores(options: dict[str, Any], folds: list[Fold]) -> float:
    """NDCG@10 of LGMML with these options."""
    scores = []
    for fold in folds:
        model = LGMML(**{"n_metrics": 50, "random_state": 0, **options})
        model.fit(fold.train.X, fold.train.grades, qid=fold.train.qid)
        scores.append(fold.test.judge(model.predict(fold.test.X))[2])
    return float(np.concatenate(scores).mean())


def feature_scores(folds: list[Fold]) -> float:
    """NDCG@10 of a linear model of the features, without local metrics."""
    scores = []
    for fold in folds:
        scaling = FeatureScaling.of(fold.train.X, "joined")
        relevance = Relevance.from_groups(fold.train.grades, fold.train.qid)
        lists = Lists.of(relevance.take_queries(relevance.trainable))
        columns = scaling.apply(fold.train.X)[lists.rows]
        w = logistic_weights(
            columns, lists, weight_reg=0.2, k=10, non_negative=False, max_iter=200
        )
        scores.append(fold.test.judge(scaling.apply(fold.test.X) @ w)[2])
    return float(np.concatenate(scores).mean())


def all_steps() -> list[tuple[str, Callable[[list[Fold]], float]]]:
    """Each step together with all steps before it."""
    steps: list[tuple[str, Callable[[list[Fold]], float]]] = []
    options: dict[str, Any] = {}
    for label, changes in STEPS:
        options = {**options, **changes}
        steps.append((label, partial(local_scores, options)))
    return [*steps, ("features only, no local metric", feature_scores)]


def main() -> None:
    warnings.simplefilter("ignore")
    checkpoint = Checkpoint.from_arguments()
    sets = {name: list(folds_of(name)) for name in SETS}
    rows: list[list[Any]] = []
    for label, score in all_steps():
        row = [label]
        for name, folds in sets.items():
            value = checkpoint.get(f"{label} | {name}", partial(score, folds))
            row.append(f"{value:.4f}")
        rows.append(row)
        print(*rows[-1], sep=" | ", flush=True)
    publish("LGMML: ablation", ["step", *SETS], rows)


if __name__ == "__main__":
    main()
