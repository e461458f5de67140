"""Who suits whom: learn on one interval of a matching service, judge on the next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from ..datasets import Dataset, fetch_speed_dating, make_matching
from ..relevance.relevance import Relevance
from ._methods import fit_estimator, settings
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

MEASURES = ("auc", "map", "mrr")


class Interval(NamedTuple):
    """Users, and who matched whom."""

    X: np.ndarray
    relevance: Relevance
    events: np.ndarray | None = None

    @classmethod
    def of(cls, dataset: Dataset, events: np.ndarray | None = None) -> Interval:
        """Users and judgments of a data set, and at which event each user was, if they were."""
        assert dataset.relevance is not None
        return cls(dataset.X, dataset.relevance, events)

    def held_out(self, share: float, seed: int) -> tuple[Interval, Interval]:
        """Without some queries, and these; or without some events, where judgments are mutual."""
        rng = np.random.default_rng(seed)
        if self.events is None:
            order = rng.permutation(np.flatnonzero(self.relevance.trainable))
            n = round(share * order.size)
            first, second = (
                self._replace(relevance=self.relevance.take_queries(np.sort(part)))
                for part in (order[n:], order[:n])
            )
            return first, second
        events = rng.permutation(np.unique(self.events))
        mask = np.isin(self.events, events[: round(share * events.size)])
        return self.rows(np.flatnonzero(~mask)), self.rows(np.flatnonzero(mask))

    def rows(self, rows: np.ndarray) -> Interval:
        """Some of the users."""
        events = None if self.events is None else self.events[rows]
        return Interval(self.X[rows], self.relevance[rows], events)


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all problems, one table for each."""
    methods, paper = recipe.content["methods"], recipe.content["paper_values"]
    tables, notes = [], list(recipe.content["notes"])
    for problem in recipe.content["problems"]:
        pieces = [(problem["name"], method, dict(recipe.options)) for method in methods]
        try:
            found = jobs.map(one_piece, pieces)
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        rows = [
            (
                method["label"],
                *(f"{result[m]:.3f}" for m in MEASURES),
                f"{result['seconds']:,.0f}",
                str(result["rounds"]),
                result["chosen"],
                *map(str, paper[method["label"]]),
            )
            for method, result in zip(methods, found, strict=True)
        ]
        tables.append(Table(f"{problem['label']} ({found[0]['size']})", HEADER, rows))
    return Outcome(recipe, tables, notes)


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


def one_piece(
    name: str, method: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Choose C on held-out queries of the first interval, fit on all of it, judge the second."""
    first, second = (synthetic if name == "matching" else speed_dating)(options)
    every = settings(method, {})
    chosen = every[0]
    if len(every) > 1:
        kept, other = first.held_out(options["held_out"], options["seed"])
        scores = [
            fit_estimator(method["estimator"], setting, *kept[:2]).score(*other[:2])
            for setting in every
        ]
        chosen = every[int(np.argmax(scores))]
    begin = time.perf_counter()
    model = fit_estimator(method["estimator"], chosen, *first[:2])
    seconds = time.perf_counter() - begin
    report = model._evaluate(
        second.X, second.relevance, None, None, None, " ".join(MEASURES)
    )
    return {
        **report.means,
        "seconds": seconds,
        "rounds": getattr(model, "n_iter_", "–"),
        "chosen": f"{chosen['C']:g}" if "C" in chosen else "–",
        "size": _size(first, second),
    }


def _size(first: Interval, second: Interval) -> str:
    return "; then ".join(
        f"{len(part.X):,} users, {part.relevance.trainable.sum():,} queries, "
        f"{part.relevance.judged_lists().nnz:,} judged pairs"
        for part in (first, second)
    )


def synthetic(options: Mapping[str, Any]) -> tuple[Interval, Interval]:
    """Two intervals of the paper's size, with one hidden metric."""
    rng = np.random.default_rng(options["seed"])
    d = options["n_features"]
    hidden = rng.standard_normal((d, options["n_hidden"])) / np.sqrt(d)
    first, second = (
        make_matching(
            options[f"{part}_users"],
            n_features=d,
            n_queries=options[f"{part}_queries"],
            hidden_map=hidden,
            noise=options["noise"],
            random_state=rng,
        )
        for part in ("train", "test")
    )
    return Interval.of(first), Interval.of(second)


def speed_dating(options: Mapping[str, Any]) -> tuple[Interval, Interval]:
    """The first events, and the later ones, on standardised answers."""
    dataset = fetch_speed_dating()
    waves = np.zeros(len(dataset.X), dtype=int)
    for name, rows in dataset.splits.items():
        waves[rows] = int(name.removeprefix("wave"))
    early = waves <= options["last_training_wave"]
    scaler = StandardScaler().fit(dataset.X[early])
    whole = Interval.of(dataset, waves)._replace(X=scaler.transform(dataset.X))
    return whole.rows(np.flatnonzero(early)), whole.rows(np.flatnonzero(~early))
