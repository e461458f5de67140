"""Matching users: learn on one interval of a matching service, evaluate on the next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from rankspace import Relevance
from rankspace.datasets import Dataset, make_matching

from ..data import fetch_speed_dating
from ..methods import fit_ranker, report_of_ranker, settings
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import QUERIES_NOTE, scores_of_queries, table_of_queries

MEASURES = ("auc", "map", "mrr")
HEADER = [
    "method",
    "AUC",
    "MAP",
    "MRR",
    "seconds",
    "rounds",
    "C",
    "paper's AUC",
    "MAP",
    "MRR",
    "seconds",
    "rounds",
]


class Interval(NamedTuple):
    """Users and their matches; events are given where users met at events."""

    X: np.ndarray
    relevance: Relevance
    events: np.ndarray | None = None

    @classmethod
    def of(cls, dataset: Dataset, events: np.ndarray | None = None) -> Interval:
        """Users and judgments of a data set, and the event of each user, if there are events."""
        assert dataset.relevance is not None
        return cls(dataset.X, dataset.relevance, events)

    def held_out(self, fraction: float, seed: int) -> tuple[Interval, Interval]:
        """Split off queries, or whole events where judgments are mutual."""
        rng = np.random.default_rng(seed)
        if self.events is None:
            order = rng.permutation(np.flatnonzero(self.relevance.trainable))
            n = round(fraction * order.size)
            return self.take_queries(order[n:]), self.take_queries(order[:n])
        events = rng.permutation(np.unique(self.events))
        mask = np.isin(self.events, events[: round(fraction * events.size)])
        return self.take_users(~mask), self.take_users(mask)

    def take_queries(self, queries: np.ndarray) -> Interval:
        """All users, but the judgments of some queries only."""
        relevance = self.relevance.take_queries(np.sort(queries))
        return self._replace(relevance=relevance)

    def take_users(self, mask: np.ndarray) -> Interval:
        """Some of the users."""
        rows = np.flatnonzero(mask)
        events = self.events
        if events is not None:
            events = events[rows]
        return Interval(self.X[rows], self.relevance[rows], events)

    def __str__(self) -> str:
        n_pairs = self.relevance.judged_lists().nnz
        return (
            f"{len(self.X):,} users, {self.relevance.trainable.sum():,} queries, "
            f"{n_pairs:,} judged pairs"
        )


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all problems, one table for each."""
    methods, paper = recipe.content["methods"], recipe.content["paper_values"]
    tables, notes = [], list(recipe.content["notes"])
    for problem in recipe.content["problems"]:
        pieces = [(problem["name"], method, dict(recipe.options)) for method in methods]
        try:
            results = jobs.map(one_piece, pieces)
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        rows = [
            (method["label"], *_cells(result), *map(str, paper[method["label"]]))
            for method, result in zip(methods, results, strict=True)
        ]
        title = f"{problem['label']} ({results[0]['size']})"
        tables.append(Table(title, HEADER, rows))
        scores = {
            method["label"]: np.array(result["queries"])
            for method, result in zip(methods, results, strict=True)
        }
        against = recipe.options["against"]
        tables += table_of_queries(f"{problem['label']}: MAP", scores, against)
    return Outcome(recipe, tables, [*notes, QUERIES_NOTE])


def _cells(result: Mapping[str, Any]) -> list[str]:
    scores = [f"{result[measure]:.3f}" for measure in MEASURES]
    seconds = f"{result['seconds']:,.0f}"
    return [*scores, seconds, str(result["rounds"]), result["chosen"]]


def one_piece(
    name: str, method: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Choose C on held-out queries of the first interval, fit on it, evaluate on the second."""
    if name == "matching":
        first, second = synthetic(options)
    else:
        first, second = speed_dating(options)
    setting = _choose(method, first, options)
    start = time.perf_counter()
    model = fit_ranker(method["estimator"], setting, first.X, first.relevance)
    seconds = time.perf_counter() - start
    chosen = "–"
    if "C" in setting:
        chosen = f"{setting['C']:g}"
    report = report_of_ranker(
        model, second.X, second.relevance, None, " ".join(MEASURES)
    )
    return {
        **report.means,
        "queries": scores_of_queries(report, "map"),
        "seconds": seconds,
        "rounds": getattr(model, "n_iter_", "–"),
        "chosen": chosen,
        "size": f"{first}; then {second}",
    }


def _choose(
    method: Mapping[str, Any], interval: Interval, options: Mapping[str, Any]
) -> dict[str, Any]:
    grid = settings(method, {})
    if len(grid) == 1:
        return grid[0]
    train, validation = interval.held_out(options["held_out"], options["seed"])
    scores = []
    for setting in grid:
        model = fit_ranker(method["estimator"], setting, train.X, train.relevance)
        scores.append(model.score(validation.X, validation.relevance))
    return grid[int(np.argmax(scores))]


def synthetic(options: Mapping[str, Any]) -> tuple[Interval, Interval]:
    """Two intervals of the paper's size that share one hidden metric."""
    rng = np.random.default_rng(options["seed"])
    n_features = options["n_features"]
    hidden = rng.standard_normal((n_features, options["n_hidden"]))
    hidden = hidden / np.sqrt(n_features)
    intervals = []
    for part in ("train", "test"):
        dataset = make_matching(
            options[f"{part}_users"],
            n_features=n_features,
            n_queries=options[f"{part}_queries"],
            hidden_map=hidden,
            noise=options["noise"],
            random_state=rng,
        )
        intervals.append(Interval.of(dataset))
    return intervals[0], intervals[1]


def speed_dating(options: Mapping[str, Any]) -> tuple[Interval, Interval]:
    """The first events and the later ones, on standardised answers."""
    dataset = fetch_speed_dating()
    waves = np.zeros(len(dataset.X), dtype=int)
    for name, rows in dataset.splits.items():
        waves[rows] = int(name.removeprefix("wave"))
    early = waves <= options["last_training_wave"]
    scaler = StandardScaler().fit(dataset.X[early])
    whole = Interval.of(dataset, waves)._replace(X=scaler.transform(dataset.X))
    return whole.take_users(early), whole.take_users(~early)
