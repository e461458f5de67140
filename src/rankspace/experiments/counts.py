"""What more local metrics give: the score on new queries against their number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from ..datasets import (
    Dataset,
    fetch_cal500,
    fetch_isolet,
    make_gaussian_mixture,
    open_dataset,
)
from ..display.plots import curves
from ..learners.base import BaseRanker
from ..learners.lgmml import LGMML
from ..relevance.relevance import Relevance
from ..relevance.splits import hold_out, split_queries
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table


class Problem(NamedTuple):
    """Rows and judgments to learn from, and to judge by, with the vectors of judged queries."""

    X: np.ndarray
    relevance: Relevance
    judged_X: np.ndarray
    judged: Relevance
    points: np.ndarray | None = None

    def scores(self, model: BaseRanker, measures: str) -> dict[str, float]:
        """Means over the judged queries."""
        found = model._evaluate(
            self.judged_X, self.judged, None, self.points, None, measures
        )
        return found.means


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method on each problem, a column for each number of metrics."""
    options, methods = recipe.options, recipe.content["methods"]
    counts, seeds = options["counts"], range(options["n_seeds"])
    rows, pictures, notes = [], {}, list(recipe.content["notes"])
    for problem in recipe.content["problems"]:
        pieces = [
            (problem, method["fixed"], count, seed)
            for method, count, seed in itertools.product(methods, counts, seeds)
        ]
        try:
            found = np.array(jobs.map(one_piece, pieces)).reshape(
                len(methods), len(counts), -1
            )
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        lines = {
            m["label"]: f.mean(axis=1) for m, f in zip(methods, found, strict=True)
        }
        for label, values in lines.items():
            shown = [f"{v:.3f}" for v in values]
            rows.append((f"{problem['label']}, {label}", problem["measure"], *shown))
        pictures[problem["name"]] = _picture(counts, lines, problem)
    header = ["problem, method", "measure", *(f"{count}" for count in counts)]
    return Outcome(
        recipe, [Table("Score by number of metrics", header, rows)], notes, pictures
    )


def _picture(
    counts: list[int], lines: Mapping[str, Any], problem: Mapping[str, Any]
) -> Any:
    title = f"{problem['label']}: {problem['measure']}"
    view = {name: (counts, values) for name, values in lines.items()}
    return lambda: curves({title: view}, "local metrics", log_x=True)


def one_piece(
    problem: Mapping[str, Any], fixed: Mapping[str, Any], count: int, seed: int
) -> float:
    """The mean over new queries."""
    data = problem_of(problem, seed)
    options = dict(fixed)
    make = LGMML.paper if options.pop("paper", False) else LGMML
    model = make(count, random_state=seed, **options).fit(data.X, data.relevance)
    return data.scores(model, problem["measure"])[problem["measure"]]


def problem_of(problem: Mapping[str, Any], seed: int) -> Problem:
    """New draws of a mixture, a published fold, or songs and spoken letters held out."""
    kind = problem["kind"]
    if kind == "mixture":
        drawn = make_gaussian_mixture(random_state=seed, **problem["options"])
        assert drawn.qid is not None
        first = drawn.qid < np.median(drawn.qid)
        return _lists(
            drawn, {"train": np.flatnonzero(first), "test": np.flatnonzero(~first)}
        )
    if kind == "fold":
        dataset = open_dataset(problem["dataset"])
        return _lists(dataset, dataset.fold(seed % 5 + 1))
    if kind == "splits":
        dataset = open_dataset(problem["dataset"])
        return _lists(dataset, dataset.splits)
    return examples(problem, seed)


def _lists(dataset: Dataset, rows: Mapping[str, np.ndarray]) -> Problem:
    train, test = (dataset.part(rows[name]) for name in ("train", "test"))
    assert train.relevance is not None
    assert test.relevance is not None
    return Problem(train.X, train.relevance, test.X, test.relevance)


def examples(problem: Mapping[str, Any], seed: int) -> Problem:
    """Queries that are rows: a fifth is held out and ranks the others."""
    dataset = (
        fetch_cal500() if problem["kind"] == "cal500" else _some_letters(problem, seed)
    )
    X = dataset.X - dataset.X.mean(axis=0)
    X = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    if "n_components" in problem:
        X = PCA(problem["n_components"], random_state=0).fit_transform(X)
    assert dataset.relevance is not None
    chosen = split_queries(
        dataset.relevance.n_queries, 0.2, np.random.RandomState(seed)
    )
    split = hold_out(X, dataset.relevance, None, *chosen)
    return Problem(split.X, split.relevance, split.X, split.judged, split.points)


def _some_letters(problem: Mapping[str, Any], seed: int) -> Dataset:
    isolet = fetch_isolet()
    rows = np.random.default_rng(seed).permutation(len(isolet.X))[: problem["n_items"]]
    return isolet.part(np.sort(rows))
