"""Learning to rank from candidate lists: local metrics beside gradient boosted trees."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..datasets import Dataset, open_dataset
from ..evaluation.measures import evaluate
from ..learners.lgmml import LGMML
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

MEASURES = ("ndcg@5", "ndcg@10", "ndcg@20")
HEADER = [
    "method",
    *(m.upper() for m in MEASURES),
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
        folds = range(min(data["folds"], recipe.options["n_splits"]))
        pieces = [
            (data["name"], method, fold)
            for method, fold in itertools.product(methods, folds)
        ]
        try:
            found = np.array(jobs.map(one_piece, pieces)).reshape(
                len(methods), len(folds), 5
            )
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
            continue
        rows = []
        for method, values in zip(methods, found, strict=True):
            means = values.mean(axis=0)
            shown = [f"{v:.4f}" for v in means[:3]] + [
                f"{means[3]:.2f}",
                f"{1e6 * means[4]:.1f}",
            ]
            published = paper.get(method["label"]) if data.get("published") else None
            rows.append((method["label"], *shown, *(published or ["–"] * 5)))
        tables.append(Table(data["label"], HEADER, rows))
    return Outcome(recipe, tables, notes)


def one_piece(name: str, method: Mapping[str, Any], fold: int) -> tuple[float, ...]:
    """Measures on the test part, processor seconds of a fit, and of scoring a document."""
    dataset = open_dataset(name)
    parts = dataset.splits if "vali" in dataset.splits else dataset.fold(fold + 1)
    train, vali, test = (
        _sorted(dataset, parts[role]) for role in ("train", "vali", "test")
    )
    start = time.process_time()
    predict = LEARNERS[method["learner"]](train, vali, dict(method.get("fixed", {})))
    fit = time.process_time() - start
    start = time.process_time()
    scores = predict(test.X)
    score = (time.process_time() - start) / len(test.X)
    relevance = Relevance.from_groups(test.grades, test.qid)
    report = evaluate(Ranking.from_groups(-scores, test.qid), relevance, MEASURES)
    return (*(report.means[m] for m in MEASURES), fit, score)


def _sorted(dataset: Dataset, rows: np.ndarray) -> Dataset:
    """Rows of whole lists, as trees want them."""
    assert dataset.qid is not None
    return dataset.part(rows[np.argsort(dataset.qid[rows], kind="stable")])


def _sizes(part: Dataset) -> np.ndarray:
    return np.unique(np.asarray(part.qid), return_counts=True)[1]


Predict = Callable[[np.ndarray], np.ndarray]


def local_metrics(train: Dataset, vali: Dataset, options: dict[str, Any]) -> Predict:
    """LGMML, in the paper's form if it is asked for."""
    model = (LGMML.paper if options.pop("paper", False) else LGMML)(
        random_state=0, **options
    )
    model.fit(train.X.astype(np.float32), train.grades, qid=train.qid)
    return lambda X: model.predict(X.astype(np.float32))


def boosted(train: Dataset, vali: Dataset, options: dict[str, Any]) -> Predict:
    """LightGBM: as a regression of grades or by lambdarank, stopped by the validation part."""
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError(
            "trees need LightGBM: pip install 'rankspace[experiments]' first."
        ) from error
    ranks = options["objective"] == "lambdarank"
    data = [
        lightgbm.Dataset(
            part.X.astype(np.float32),
            part.grades,
            group=_sizes(part) if ranks else None,
        )
        for part in (train, vali)
    ]
    metric = {"metric": "ndcg", "eval_at": [10]} if ranks else {"metric": "l2"}
    model = lightgbm.train(
        {**options, **metric, "num_threads": 1, "verbose": -1, "seed": 0},
        data[0],
        5000,
        valid_sets=[data[1]],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return lambda X: np.asarray(model.predict(X.astype(np.float32), num_threads=1))


LEARNERS = {"local": local_metrics, "boosted": boosted}
