"""Sentence embeddings and judgments: what learned maps gain on held-out queries."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from rankspace import (
    Index,
    LinearMetric,
    Relevance,
    Report,
    compare,
    evaluate,
    tune,
)
from rankspace.datasets import Dataset
from rankspace.relevance.splits import Split, hold_out

from ..data import open_dataset
from ..methods import available, fit_estimator
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from . import adapters

MEASURES = {"NDCG@10": "ndcg-linear@10", "MAP": "map"}
DEPTH = 1000
HEADER = [
    "method",
    "NDCG@10",
    "p",
    "MAP",
    "seen: NDCG@10",
    "p",
    "new: NDCG@10",
    "p",
    "seconds",
]

# Values by query of a method, joined over the folds.
Values = Mapping[str, np.ndarray]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all collections that are at hand, one table for each."""
    sets, notes = available(
        recipe.content["datasets"], lambda data: open_dataset(data["name"])
    )
    methods, seed = recipe.content["methods"], recipe.options["seed"]
    tables = []
    for data in sets:
        n_repeats = data.get("repeats", 1)
        pieces = [
            (dict(data), method, fold, seed + repeat)
            for method, repeat, fold in itertools.product(
                methods, range(n_repeats), range(data.get("folds", 1))
            )
        ]
        results: dict[str, list[Any]] = {}
        for piece, result in zip(pieces, jobs.map(one_piece, pieces), strict=True):
            results.setdefault(piece[1]["label"], []).append(result)
        tables.append(_table(data["label"], results, n_repeats))
        notes.append(_choices(data["label"], results, n_repeats))
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any], method: Mapping[str, Any], fold: int, seed: int
) -> dict[str, Any]:
    """Learn without a fold of the queries, or on a published split, and evaluate the others."""
    dataset = _load(data["name"])
    train, test = _queries(dataset, data, fold, seed)
    X = np.asarray(dataset.X, dtype=np.float32)
    queries = np.asarray(dataset.queries, dtype=np.float32)
    assert dataset.relevance is not None
    split = hold_out(X, dataset.relevance, queries, train, test)
    _warm_up(json.dumps(method))
    start = time.perf_counter()
    metric, chosen = learn(method, X, split.relevance, split.queries, seed)
    seconds = time.perf_counter() - start
    ranking = Index(X, metric).rank(split.points, DEPTH)
    report = evaluate(ranking, split.judged, list(MEASURES.values()))
    values = {name: report.values[key].tolist() for name, key in MEASURES.items()}
    return {
        **values,
        "queries": test.tolist(),
        "seen": _seen(split),
        "seconds": seconds,
        "chosen": chosen,
    }


def _seen(split: Split) -> list[bool]:
    """Whether the training judgments name a relevant document of each held-out query."""
    train = split.relevance
    named = np.zeros(train.n_items, dtype=bool)
    named[train.items[train.grades >= train.min_relevant_grade]] = True
    held_out = range(split.judged.n_queries)
    return [bool(named[split.judged.relevant(query)].any()) for query in held_out]


def learn(
    method: Mapping[str, Any], X: Any, relevance: Any, queries: Any, seed: int
) -> tuple[Any, str]:
    """The metric of an estimator, of tune or of an adapter, and what tune has chosen."""
    name, fixed = method["estimator"], method.get("fixed", {})
    if name == "Euclidean":
        return LinearMetric.identity(X.shape[1]), ""
    trainable = relevance.trainable
    relevance = relevance.take_queries(trainable)
    queries = queries[trainable]
    if name == "tune":
        tuned = tune(X, relevance, queries=queries, random_state=seed, **fixed)
        return tuned.metric, tuned.report.chosen
    if name in ("ridge", "adapter"):
        return getattr(adapters, name)(X, relevance, queries, seed), ""
    return fit_estimator(name, fixed, X, relevance, queries).metric_, ""


@cache
def _warm_up(method: str) -> None:
    """Load and compile the code of a method before it is timed."""
    points = np.random.default_rng(0).normal(size=(300, 160)).astype(np.float32)
    relevance = Relevance.from_lists(np.arange(40).reshape(20, 2).tolist(), n_items=280)
    learn(json.loads(method), points[20:], relevance, points[:20], 0)


@lru_cache(maxsize=1)
def _load(name: str) -> Dataset:
    return open_dataset(name)


def _queries(
    dataset: Dataset, data: Mapping[str, Any], fold: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test queries: a fold, or the published split."""
    if "folds" not in data:
        return dataset.splits["train"], dataset.splits["test"]
    assert dataset.relevance is not None
    order = np.random.default_rng(seed).permutation(dataset.relevance.n_queries)
    test = order[fold :: data["folds"]]
    return np.setdiff1d(order, test), np.sort(test)


# ---------------------------------------------------------------------- tables and notes


def _table(label: str, results: Mapping[str, Sequence[Any]], n_repeats: int) -> Table:
    """A row for each method; the first one is the baseline of the tests."""
    baseline = _joined(next(iter(results.values())))
    rows = []
    for name, folds in results.items():
        seconds = float(np.mean([fold["seconds"] for fold in folds]))
        rows.append([name, *_cells(baseline, _joined(folds)), f"{seconds:,.1f}"])
    n_queries = np.unique(baseline["queries"]).size
    n_new = np.unique(baseline["queries"][~baseline["seen"]]).size
    title = (
        f"{label} ({n_queries:,} held-out queries, {n_new:,} with new documents only"
    )
    if n_repeats > 1:
        title += f" in some of {n_repeats} repeats of the cross-validation"
    return Table(f"{title})", HEADER, rows)


def _choices(label: str, results: Mapping[str, Sequence[Any]], n_repeats: int) -> str:
    """What tune chose in how many of the folds, and what it gained in each repeat."""
    chosen: Counter[str] = Counter()
    for folds in results.values():
        chosen.update(fold["chosen"] for fold in folds if fold["chosen"])
    names = [f"{name} ({n})" for name, n in chosen.most_common()]
    note = f"{label}: tune chose {', '.join(names) or 'nothing'}."
    tuned = [folds for folds in results.values() if folds[0]["chosen"]]
    if n_repeats == 1 or not tuned:
        return note
    baseline = next(iter(results.values()))
    n_folds = len(baseline) // n_repeats
    gains = []
    for first in range(0, len(baseline), n_folds):
        repeat = slice(first, first + n_folds)
        gains.append(_gain(_joined(baseline[repeat]), _joined(tuned[0][repeat])))
    return (
        f"{note} In the repeats of the cross-validation it gained {'; '.join(gains)}."
    )


def _gain(baseline: Values, values: Values) -> str:
    """The gain of a repeat, with the p-values of all queries and of those with new documents."""
    ratio = np.nanmean(values["NDCG@10"]) / np.nanmean(baseline["NDCG@10"])
    cells = _cells(baseline, values)
    return f"{100 * (ratio - 1):.1f} % (p {cells[1]}, new {cells[6]})"


def _joined(folds: Sequence[Any]) -> dict[str, np.ndarray]:
    dtypes = {**dict.fromkeys(MEASURES, float), "seen": bool, "queries": int}
    return {
        name: np.concatenate([np.asarray(fold[name], dtype=dtype) for fold in folds])
        for name, dtype in dtypes.items()
    }


def _cells(baseline: Values, values: Values) -> list[str]:
    """NDCG@10 and p-value of all, seen and new queries; MAP of all after the first pair."""
    seen = baseline["seen"]
    return [
        *_tested(baseline, values, np.ones(seen.size, dtype=bool)),
        f"{np.nanmean(values['MAP']):.4f}",
        *_tested(baseline, values, seen),
        *_tested(baseline, values, ~seen),
    ]


def _tested(baseline: Values, values: Values, mask: np.ndarray) -> tuple[str, str]:
    """Mean NDCG@10 of some queries, and the p-value of its difference from the baseline."""
    if not mask.any():
        return "–", "–"
    before = _query_means(baseline, "NDCG@10", mask)
    after = _query_means(values, "NDCG@10", mask)
    mean = f"{np.nanmean(after):.4f}"
    if (before == after).all():
        return mean, "–"
    p_value = compare(Report({"m": before}), Report({"m": after})).p_value["m"]
    return mean, f"{p_value:.3g}"


def _query_means(values: Values, measure: str, mask: np.ndarray) -> np.ndarray:
    """The mean of each query over the repeats: a repeat adds no queries."""
    _, number = np.unique(values["queries"][mask], return_inverse=True)
    return np.bincount(number, values[measure][mask]) / np.bincount(number)
