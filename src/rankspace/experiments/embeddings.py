"""Sentence embeddings and judgments: what learned maps are worth on queries held out."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from ..datasets import Dataset, open_dataset
from ..evaluation.measures import evaluate
from ..evaluation.report import Report, compare
from ..metrics.embedding import EmbeddingMetric, LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import hold_out
from ..search.index import Index
from ..tuning.cross_validation import seen_queries
from ..tuning.tuner import tune
from . import adapters
from ._methods import at_hand, fit_estimator
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

MEASURES = {"NDCG@10": "ndcg-linear@10", "MAP": "map"}
DEPTH = 1000


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all collections that are at hand, one table for each."""
    sets, notes = at_hand(recipe.content["datasets"])
    methods, seed = recipe.content["methods"], recipe.options["seed"]
    tables = []
    for data in sets:
        deals, folds = range(data.get("deals", 1)), range(data.get("folds", 1))
        pieces = [
            (dict(data), method, fold, seed + deal)
            for method, deal, fold in itertools.product(methods, deals, folds)
        ]
        results = jobs.map(one_piece, pieces)
        found: dict[str, list[Any]] = {}
        for piece, result in zip(pieces, results, strict=True):
            found.setdefault(piece[1]["label"], []).append(result)
        tables.append(_table(str(data["label"]), found, len(deals)))
        notes.append(_choices(str(data["label"]), found, len(deals)))
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


def one_piece(
    data: Mapping[str, Any], method: Mapping[str, Any], fold: int, seed: int
) -> dict[str, Any]:
    """Learn without a fold of the queries, or on a published part, and judge the others."""
    dataset = _load(data["name"])
    train, test = _queries(dataset, data, fold, seed)
    X, queries = (
        np.asarray(points, dtype=np.float32) for points in (dataset.X, dataset.queries)
    )
    assert dataset.relevance is not None
    split = hold_out(X, dataset.relevance, queries, train, test)
    _warm_up(json.dumps(method))
    begin = time.perf_counter()
    metric, chosen = learn(method, X, split.relevance, split.queries, seed)
    seconds = time.perf_counter() - begin
    ranking = Index(X, metric).rank(split.points, DEPTH)
    report = evaluate(ranking, split.judged, list(MEASURES.values()))
    values = {name: report.values[key].tolist() for name, key in MEASURES.items()}
    seen = seen_queries([split], [np.arange(len(test))], len(test))
    return {
        **values,
        "queries": test.tolist(),
        "seen": seen.tolist(),
        "seconds": seconds,
        "chosen": chosen,
    }


def learn(
    method: Mapping[str, Any], X: Any, relevance: Any, queries: Any, seed: int
) -> tuple[EmbeddingMetric, str]:
    """The metric of a method, an estimator by name or one of those here, and what was chosen."""
    kind = method["kind"]
    if kind == "raw":
        return LinearMetric.identity(X.shape[1]), ""
    taught = relevance.trainable
    relevance, queries = relevance.take_queries(taught), queries[taught]
    if kind == "tune":
        tuned = tune(
            X, relevance, queries=queries, random_state=seed, **method.get("fixed", {})
        )
        return tuned.metric, tuned.report.chosen
    if kind in ("ridge", "adapter"):
        return getattr(adapters, kind)(X, relevance, queries, seed), ""
    model = fit_estimator(kind, method.get("fixed", {}), X, relevance, queries)
    return cast(EmbeddingMetric, model.metric_), ""


@cache
def _warm_up(method: str) -> None:
    """Have a method loaded and compiled before it is timed."""
    points = np.random.default_rng(0).normal(size=(300, 160)).astype(np.float32)
    relevance = Relevance.from_lists(np.arange(40).reshape(20, 2).tolist(), n_items=280)
    learn(json.loads(method), points[20:], relevance, points[:20], 0)


@lru_cache(maxsize=1)
def _load(name: str) -> Dataset:
    return open_dataset(name)


def _queries(
    dataset: Dataset, data: Mapping[str, Any], fold: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    if "folds" not in data:
        return dataset.splits["train"], dataset.splits["test"]
    assert dataset.relevance is not None
    order = np.random.default_rng(seed).permutation(dataset.relevance.n_queries)
    test = order[fold :: data["folds"]]
    return np.setdiff1d(order, test), np.sort(test)


def _table(label: str, found: Mapping[str, Sequence[Any]], deals: int) -> Table:
    raw = _joined(next(iter(found.values())))
    rows = []
    for name, results in found.items():
        seconds = float(np.mean([result["seconds"] for result in results]))
        rows.append([name, *_cells(raw, _joined(results)), f"{seconds:,.1f}"])
    n, new = (
        np.unique(raw["queries"][who]).size for who in (raw["seen"] >= 0, ~raw["seen"])
    )
    title = f"{label} ({n:,} held-out queries, {new:,} with new documents only"
    title += f" in some of {deals} deals of the folds)" if deals > 1 else ")"
    header = [
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
    return Table(title, header, rows)


def _choices(label: str, found: Mapping[str, Sequence[Any]], deals: int) -> str:
    """What tune chose in how many of the folds, and what it gained with each deal of them."""
    chosen = Counter(
        result["chosen"] for results in found.values() for result in results
    )
    told = [f"{name} ({n})" for name, n in chosen.most_common() if name]
    note = f"{label}: tune chose {', '.join(told) or 'nothing'}."
    tuned = [results for results in found.values() if results[0]["chosen"]]
    if deals > 1 and tuned:
        raw, folds = next(iter(found.values())), len(tuned[0]) // deals
        gains = [
            _gain(
                _joined(raw[first : first + folds]),
                _joined(tuned[0][first : first + folds]),
            )
            for first in range(0, len(raw), folds)
        ]
        note += f" With the deals of the folds in turn it gained {'; '.join(gains)}."
    return note


def _gain(raw: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> str:
    """What a deal of the folds gained, with the p of all queries and of those with new items."""
    before, after = (np.nanmean(v["NDCG@10"]) for v in (raw, values))
    cells = _cells(raw, values)
    return f"{100 * (after / before - 1):.1f} % (p {cells[1]}, new {cells[6]})"


def _joined(results: Sequence[Any]) -> dict[str, np.ndarray]:
    kinds = {**dict.fromkeys(MEASURES, float), "seen": bool, "queries": int}
    return {
        name: np.concatenate(
            [np.asarray(result[name], dtype=kind) for result in results]
        )
        for name, kind in kinds.items()
    }


def _cells(
    raw: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]
) -> list[str]:
    everyone = np.ones(raw["seen"].size, dtype=bool)
    cells = []
    for who, with_map in (
        (everyone, True),
        (raw["seen"], False),
        (~raw["seen"], False),
    ):
        before, after = (_of_queries(v, "NDCG@10", who) for v in (raw, values))
        differs = who.any() and (before != after).any()
        p = (
            compare(Report({"m": before}), Report({"m": after})).p_value["m"]
            if differs
            else None
        )
        cells += [
            f"{np.nanmean(after):.4f}" if who.any() else "–",
            "–" if p is None else f"{p:.3g}",
        ]
        if with_map:
            cells.append(f"{np.nanmean(values['MAP']):.4f}")
    return cells


def _of_queries(
    values: Mapping[str, np.ndarray], measure: str, who: np.ndarray
) -> np.ndarray:
    """The mean of each query over the deals that count for it: deals are no new queries."""
    _, number = np.unique(values["queries"][who], return_inverse=True)
    return np.bincount(number, values[measure][who]) / np.bincount(number)
