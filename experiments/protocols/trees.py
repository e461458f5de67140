"""Learning to rank from candidate lists: local metrics beside gradient boosted trees."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rankspace import LGMML, Ranking, Relevance, evaluate
from rankspace.datasets import Dataset
from rankspace.learners.solvers.geometric.lists import Lists, with_high
from rankspace.learners.solvers.geometric.metric_weights import (
    WarpOptions,
    per_list_warp,
)
from rankspace.metrics.local import AnchoredMetrics, kernel_values

from ..data import open_dataset
from ..methods import find_estimator, settings
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import paired_table
from .counts import make_lgmml

Predict = Callable[[np.ndarray], np.ndarray]

MEASURES = ("ndcg@5", "ndcg@10", "ndcg@20")
HEADER = [
    "method",
    *(measure.upper() for measure in MEASURES),
    "fit, s",
    "score, us a document",
    "mode",
    "paper: NDCG@5",
    "NDCG@10",
    "NDCG@20",
    "fit, min",
    "score, 'ms' a document",
]


LEAKED_HEADER = ["Phi(1), margin", *(measure.upper() for measure in MEASURES)]
N_TREES = 5000
PATIENCE = 100


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Tables for each data set; the paper's values of MSLR-WEB10K beside ours."""
    methods, paper = recipe.content["methods"], recipe.content["paper_values"]
    tables, notes = [], list(recipe.content["notes"])
    for data in recipe.content["problems"]:
        folds = range(min(data["folds"], recipe.options["n_splits"]))
        try:
            results = _results(data["name"], methods, folds, jobs)
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
            continue
        rows = []
        for label, found in results.items():
            published = ["–"] * 5
            if data.get("published"):
                published = paper.get(label, published)
            rows.append((label, *_cells(found), *published))
        tables.append(Table(data["label"], HEADER, rows))
        against = recipe.options["against"]
        if against in results:
            values = {label: _of_queries(found) for label, found in results.items()}
            title = f"{data['label']}: NDCG@10, {len(values[against])} test queries"
            tables.append(paired_table(title, values, against, 0.0))
        if data.get("leaked"):
            tables.append(_leaked_table(recipe, data, jobs))
    return Outcome(recipe, tables, notes)


def _results(
    name: str, methods: Sequence[Mapping[str, Any]], folds: Sequence[int], jobs: Jobs
) -> dict[str, list[Any]]:
    """The results of each method over the folds, with settings chosen in each anew."""
    places = [*itertools.product(methods, folds)]
    tried = [
        (name, method["estimator"], setting, fold)
        for method, fold in places
        for setting in settings(method, {})
        if "grid" in method
    ]
    scores = iter(jobs.map(validation_score, tried))
    pieces, chosen = [], []
    for method, fold in places:
        grid = settings(method, {})
        best = 0
        if "grid" in method:
            best = int(np.argmax([next(scores) for _ in grid]))
        pieces.append((name, method["estimator"], grid[best], fold))
        varied = {key: grid[best][key] for key in method.get("grid", {})}
        chosen.append(", ".join(f"{key} {value}" for key, value in varied.items()))
    found: dict[str, list[Any]] = {method["label"]: [] for method in methods}
    for (method, _), setting, result in zip(
        places, chosen, jobs.map(one_piece, pieces), strict=True
    ):
        found[method["label"]].append({**result, "chosen": setting})
    return found


def _cells(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Means over the folds, and the setting chosen most often."""
    scores = [f"{np.mean([r[m] for r in results]):.4f}" for m in MEASURES]
    seconds = np.mean([result["seconds"] for result in results])
    row_seconds = np.mean([result["seconds_per_row"] for result in results])
    mode = Counter(result["chosen"] for result in results).most_common(1)[0][0]
    return [*scores, f"{seconds:.2f}", f"{1e6 * row_seconds:.1f}", mode or "–"]


def _of_queries(results: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """NDCG@10 of the test queries of all folds that have relevant documents."""
    values = np.concatenate([result["queries"] for result in results])
    return values[~np.isnan(values)]


def _leaked_table(recipe: Recipe, data: Mapping[str, Any], jobs: Jobs) -> Table:
    """The paper's form with weights fitted to each test query's own labels."""
    starts, margins = recipe.options["leaked_starts"], recipe.options["leaked_margins"]
    pairs = [*itertools.product(starts, margins)]
    pieces = [(data["name"], start, margin) for start, margin in pairs]
    rows = [
        (f"{start:g}, {margin:g}", *(f"{result[m]:.4f}" for m in MEASURES))
        for (start, margin), result in zip(
            pairs, jobs.map(leaked_piece, pieces), strict=True
        )
    ]
    title = f"{data['label']}, labels of the test query leaked: L-GMML, paper's form"
    return Table(title, LEAKED_HEADER, rows)


# ---------------------------------------------------------------------- one piece


def one_piece(
    name: str, estimator: str, setting: Mapping[str, Any], fold: int
) -> dict[str, Any]:
    """Measures on the test part, CPU seconds of a fit, and of scoring a document."""
    train, vali, test = _parts(name, fold)
    start = time.process_time()
    predict = _fit(estimator, train, vali, setting)
    seconds = time.process_time() - start
    start = time.process_time()
    scores = predict(test.X.astype(np.float32))
    seconds_per_row = (time.process_time() - start) / len(test.X)
    report = _judge(scores, test)
    return {
        **report.means,
        "queries": np.round(report.values["ndcg@10"], 5).tolist(),
        "seconds": seconds,
        "seconds_per_row": seconds_per_row,
    }


def validation_score(
    name: str, estimator: str, setting: Mapping[str, Any], fold: int
) -> float:
    """NDCG@10 on the validation part."""
    train, vali, _ = _parts(name, fold)
    predict = _fit(estimator, train, vali, setting)
    return _judge(predict(vali.X.astype(np.float32)), vali).means["ndcg@10"]


def leaked_piece(name: str, start: float, margin: float) -> dict[str, float]:
    """The paper's form if a query's weights may be learned from its own test labels.

    Metrics are those of the training part. This is no result of the method: it shows what such a
    mistake would score.
    """
    train, _, test = _parts(name, 0)
    model = LGMML.paper(random_state=0, init_weight=start, margin=margin)
    model.fit(train.X.astype(np.float32), train.grades, qid=train.qid)
    metric = model.metric_
    Z = metric.scaling.apply(test.X.astype(np.float32))
    stacked = AnchoredMetrics.of(metric.factors, metric.anchors, Z.dtype)
    relevance = Relevance.from_groups(test.grades, test.qid)
    lists = with_high(Lists.of(relevance), model.high)
    H = kernel_values(stacked, Z, model.kernel)
    options = WarpOptions(margin, model.step, model.n_steps, 0, start)
    weights = per_list_warp(H[lists.rows], lists, options)
    scores = np.zeros(len(Z))
    for q, own in enumerate(weights):
        rows = lists.rows[lists.rows_of(q)]
        scores[rows] = -H[rows] @ own
    return _judge(scores, test).means


def _judge(scores: np.ndarray, part: Dataset) -> Any:
    relevance = Relevance.from_groups(part.grades, part.qid)
    return evaluate(Ranking.from_groups(-scores, part.qid), relevance, MEASURES)


def _parts(name: str, fold: int) -> tuple[Dataset, Dataset, Dataset]:
    """Training, validation and test part, each ordered by query, as trees need it."""
    dataset = open_dataset(name)
    splits = dataset.splits
    if "train" not in splits:
        splits = dataset.fold(fold + 1)
    if "vali" not in splits:
        # A fifth of the training queries.
        assert dataset.qid is not None
        qid = dataset.qid[splits["train"]]
        queries = np.random.default_rng(0).permutation(np.unique(qid))
        held_out = np.isin(qid, queries[: queries.size // 5])
        rows = splits["train"]
        splits = {**splits, "train": rows[~held_out], "vali": rows[held_out]}
    train, vali, test = (
        _by_query(dataset, splits[p]) for p in ("train", "vali", "test")
    )
    return train, vali, test


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
    """Regression of grades or lambdarank, stopped early on the validation part.

    With "n_trees" it has so many trees.
    """
    import lightgbm

    ranks = options["objective"] == "lambdarank"
    options = dict(options)
    n_trees = options.pop("n_trees", None)
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
    stop = []
    if n_trees is None:
        stop = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    model = lightgbm.train(
        {**options, **metric, "num_threads": 1, "verbose": -1, "seed": 0},
        parts[0],
        n_trees or N_TREES,
        valid_sets=[parts[1]],
        callbacks=stop,
    )
    return partial(model.predict, num_threads=1)
