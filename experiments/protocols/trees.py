"""Learning to rank from candidate lists: local metrics beside gradient boosted trees."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from rankspace import Ranking, Relevance, evaluate
from rankspace.datasets import Dataset

from ..data import open_dataset
from ..methods import find_estimator
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from .counts import make_lgmml

Predict = Callable[[np.ndarray], np.ndarray]

MEASURES = ("ndcg@5", "ndcg@10", "ndcg@20")
HEADER = [
    "method",
    *(measure.upper() for measure in MEASURES),
    "fit, s",
    "score, us a document",
    "paper: NDCG@5",
    "NDCG@10",
    "NDCG@20",
    "fit, min",
    "score, 'ms' a document",
]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A table for each data set; the paper's values of MSLR-WEB10K beside ours."""
    methods, paper = recipe.content["methods"], recipe.content["paper_values"]
    tables, notes = [], list(recipe.content["notes"])
    for data in recipe.content["problems"]:
        n_folds = min(data["folds"], recipe.options["n_splits"])
        pieces = [
            (data["name"], method, fold)
            for method, fold in itertools.product(methods, range(n_folds))
        ]
        try:
            results = jobs.map(one_piece, pieces)
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
            continue
        means = np.reshape(results, (len(methods), n_folds, 5)).mean(axis=1)
        rows = []
        for method, values in zip(methods, means, strict=True):
            published = ["–"] * 5
            if data.get("published"):
                published = paper.get(method["label"], published)
            rows.append((method["label"], *_cells(values), *published))
        tables.append(Table(data["label"], HEADER, rows))
    return Outcome(recipe, tables, notes)


def _cells(values: np.ndarray) -> list[str]:
    scores = [f"{value:.4f}" for value in values[:3]]
    return [*scores, f"{values[3]:.2f}", f"{1e6 * values[4]:.1f}"]


def one_piece(name: str, method: Mapping[str, Any], fold: int) -> tuple[float, ...]:
    """Measures on the test part, CPU seconds of a fit, and of scoring a document."""
    dataset = open_dataset(name)
    splits = dataset.splits
    if "vali" not in splits:
        splits = dataset.fold(fold + 1)
    train = _by_query(dataset, splits["train"])
    vali = _by_query(dataset, splits["vali"])
    test = _by_query(dataset, splits["test"])
    start = time.process_time()
    predict = _fit(method["estimator"], train, vali, method.get("fixed", {}))
    fit_seconds = time.process_time() - start
    start = time.process_time()
    scores = predict(test.X.astype(np.float32))
    seconds_per_row = (time.process_time() - start) / len(test.X)
    relevance = Relevance.from_groups(test.grades, test.qid)
    report = evaluate(Ranking.from_groups(-scores, test.qid), relevance, MEASURES)
    return (*(report.means[m] for m in MEASURES), fit_seconds, seconds_per_row)


def _by_query(dataset: Dataset, rows: np.ndarray) -> Dataset:
    """Rows ordered by their query, as trees need them."""
    assert dataset.qid is not None
    return dataset.part(rows[np.argsort(dataset.qid[rows], kind="stable")])


def _fit(
    name: str, train: Dataset, vali: Dataset, options: Mapping[str, Any]
) -> Predict:
    """Fit LightGBM, LGMML, or any class with ``fit(X, grades, qid=)`` and ``predict(X)``."""
    if name == "LightGBM":
        return _fit_lightgbm(train, vali, options)
    if name == "LGMML":
        model = make_lgmml({"random_state": 0, **options})
    else:
        model = find_estimator(name)(**options)
    model.fit(train.X.astype(np.float32), train.grades, qid=train.qid)
    return model.predict


def _fit_lightgbm(train: Dataset, vali: Dataset, options: Mapping[str, Any]) -> Predict:
    """Regression of grades or lambdarank, with early stopping on the validation part."""
    import lightgbm

    ranks = options["objective"] == "lambdarank"
    parts = []
    for part in (train, vali):
        sizes = None
        if ranks:
            sizes = np.unique(np.asarray(part.qid), return_counts=True)[1]
        X = part.X.astype(np.float32)
        parts.append(lightgbm.Dataset(X, part.grades, group=sizes))
    metric: dict[str, Any] = {"metric": "l2"}
    if ranks:
        metric = {"metric": "ndcg", "eval_at": [10]}
    model = lightgbm.train(
        {**options, **metric, "num_threads": 1, "verbose": -1, "seed": 0},
        parts[0],
        5000,
        valid_sets=[parts[1]],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return partial(model.predict, num_threads=1)
