"""Local metrics: the score on new queries against the number of metrics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from rankspace import LGMML, BaseRanker, Relevance, Report
from rankspace.datasets import Dataset
from rankspace.relevance.splits import hold_out, split_queries

from ..data import make_class_mixture, make_gaussian_mixture, open_dataset
from ..methods import report_of_ranker
from ..pictures import curves
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import PAIRED_NOTE, QUERIES_NOTE, paired_table, scores_of_queries

N_FOLDS = 5  # of published lists; seeds take turns through them
EXAMPLES = ("cal500", "isolet")
REAL = (*EXAMPLES, "fold", "splits")  # kinds of problems that are not drawn anew
HELD_OUT = 0.2  # of the rows of songs and spoken letters, as test queries


class Problem(NamedTuple):
    """Training rows and judgments, and test ones, with the vectors of separate test queries."""

    X: np.ndarray
    relevance: Relevance
    test_X: np.ndarray
    test_relevance: Relevance
    test_queries: np.ndarray | None = None

    def report(self, model: BaseRanker, measures: str) -> Report:
        """Scores of the test queries."""
        return report_of_ranker(
            model, self.test_X, self.test_relevance, self.test_queries, measures
        )


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method on each problem, a column for each number of metrics."""
    options, methods = recipe.options, recipe.content["methods"]
    counts, seeds = options["counts"], range(options["n_seeds"])
    rows, gains, pictures = [], [], {}
    notes = list(recipe.content["notes"])
    for problem in recipe.content["problems"]:
        pieces = [
            (problem, method["fixed"], count, seed)
            for method, count, seed in itertools.product(methods, counts, seeds)
        ]
        try:
            results = jobs.map(one_piece, pieces)
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        panel = {}
        runs = iter(results)
        for method in methods:
            name = f"{problem['label']}, {method['label']}"
            # For each number of metrics the scores of the queries, seed by seed.
            scores = {count: [np.array(next(runs)) for _ in seeds] for count in counts}
            values = {count: _means(part) for count, part in scores.items()}
            means = [part.mean() for part in values.values()]
            rows.append((name, problem["measure"], *(f"{v:.3f}" for v in means)))
            panel[method["label"]] = (counts, means)
            if "centres" in problem and len(seeds) > 1:
                gains.append(_gains(name, problem, values))
            elif problem["kind"] in REAL and len(seeds) > 1:
                gains.append(_against_one(name, problem, scores))
        view = {f"{problem['label']}: {problem['measure']}": panel}
        pictures[problem["name"]] = partial(curves, view, "local metrics", log_x=True)
    header = ["problem, method", "measure", *map(str, counts)]
    table = Table("Score by number of metrics", header, rows)
    if any(problem["kind"] in REAL for problem in recipe.content["problems"]):
        notes += [PAIRED_NOTE, QUERIES_NOTE]
    return Outcome(recipe, [table, *gains], notes, pictures)


def _gains(
    name: str, problem: Mapping[str, Any], values: Mapping[int, np.ndarray]
) -> Table:
    """Gains over one metric, each tested against that with a metric for each centre.

    Draws are new for each seed, so they are independent.
    """
    rows = {
        f"{count} metrics": scores - values[1]
        for count, scores in values.items()
        if count > 1
    }
    title = f"{name}: gain in {problem['measure']} over one metric"
    return paired_table(title, rows, f"{problem['centres']} metrics", 0.0)


def _against_one(
    name: str,
    problem: Mapping[str, Any],
    scores: Mapping[int, Sequence[np.ndarray]],
) -> Table:
    """Paired tests against one metric: over queries of test parts, or over splits."""
    unit, overlap = "queries", 0.0
    if problem["kind"] == "fold":
        values = {n: np.concatenate(part[:N_FOLDS]) for n, part in scores.items()}
    elif problem["kind"] == "splits":
        values = {n: np.mean(part, axis=0) for n, part in scores.items()}
    else:
        unit, overlap = "splits", HELD_OUT / (1 - HELD_OUT)
        values = {n: _means(part) for n, part in scores.items()}
    title = f"{name}: {problem['measure']}, {len(values[1]):,} {unit}"
    rows = {f"{n} metrics": row for n, row in values.items()}
    return paired_table(title, rows, "1 metrics", overlap)


def _means(scores: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([part.mean() for part in scores])


def one_piece(
    problem: Mapping[str, Any], fixed: Mapping[str, Any], count: int, seed: int
) -> list[float]:
    """The score of each new query."""
    data = load_problem(problem, seed)
    model = make_lgmml({"n_metrics": count, "random_state": seed, **fixed})
    model.fit(data.X, data.relevance)
    report = data.report(model, problem["measure"])
    return scores_of_queries(report, problem["measure"])


def make_lgmml(options: Mapping[str, Any]) -> LGMML:
    """LGMML, in the form of the paper if the option "paper" is set."""
    options = dict(options)
    if options.pop("paper", False):
        return LGMML.paper(**options)
    return LGMML(**options)


def load_problem(problem: Mapping[str, Any], seed: int) -> Problem:
    """New draws of a mixture, a published fold, or songs and spoken letters held out."""
    kind = problem["kind"]
    if kind == "mixture":
        drawn = make_gaussian_mixture(random_state=seed, **problem["options"])
        qid = np.asarray(drawn.qid)
        first = qid < np.median(qid)
        return _train_test(drawn, first, ~first)
    if kind == "classes":
        drawn = make_class_mixture(random_state=seed, **problem["options"])
        return _held_out(drawn.X, drawn, seed)
    if kind in EXAMPLES:
        return examples(problem, seed)
    dataset = open_dataset(problem["dataset"])
    splits = dataset.splits
    if kind == "fold":
        splits = dataset.fold(seed % N_FOLDS + 1)
    return _train_test(dataset, splits["train"], splits["test"])


def _train_test(
    dataset: Dataset, train_rows: np.ndarray, test_rows: np.ndarray
) -> Problem:
    train = dataset.part(train_rows)
    test = dataset.part(test_rows)
    assert train.relevance is not None
    assert test.relevance is not None
    return Problem(train.X, train.relevance, test.X, test.relevance)


def examples(problem: Mapping[str, Any], seed: int) -> Problem:
    """Query by example: a fifth of the rows is held out and ranks the others."""
    dataset = open_dataset(problem["kind"])
    if problem["kind"] == "isolet":
        order = np.random.default_rng(seed).permutation(len(dataset.X))
        dataset = dataset.part(np.sort(order[: problem["n_items"]]))
    X = dataset.X - dataset.X.mean(axis=0)
    X = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    if "n_components" in problem:
        X = PCA(problem["n_components"], random_state=0).fit_transform(X)
    return _held_out(X, dataset, seed)


def _held_out(X: np.ndarray, dataset: Dataset, seed: int) -> Problem:
    """Some of the rows rank the others."""
    assert dataset.relevance is not None
    n_queries = dataset.relevance.n_queries
    train, test = split_queries(n_queries, HELD_OUT, np.random.RandomState(seed))
    split = hold_out(X, dataset.relevance, None, train, test)
    return Problem(split.X, split.relevance, split.X, split.judged, split.points)
