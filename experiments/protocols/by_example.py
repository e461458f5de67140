"""Query by example on songs and spoken letters: scores of new queries, and training time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from rankspace.relevance.splits import hold_out, split_queries

from ..methods import fit_ranker, settings
from ..pictures import grouped_bars
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from .counts import Problem, examples

MEASURES = "map ndcg@10"
HEADER = ["method", "MAP", "NDCG@10", "seconds", "paper's seconds"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A table for each problem, and bars of all."""
    methods, seeds = recipe.content["methods"], range(recipe.options["n_seeds"])
    tables, names, notes = [], [], list(recipe.content["notes"])
    bars: dict[str, list[float]] = {method["label"]: [] for method in methods}
    for problem in recipe.content["problems"]:
        pieces = [
            (problem, method, seed)
            for method, seed in itertools.product(methods, seeds)
        ]
        try:
            results = jobs.map(one_piece, pieces)
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        rows = []
        values_of_methods = np.reshape(results, (len(methods), len(seeds), 3))
        for method, values in zip(methods, values_of_methods, strict=True):
            published = recipe.content["paper_values"].get(method["label"], "–")
            rows.append((method["label"], *_cells(values), published))
            bars[method["label"]].append(values[:, 0].mean())
        tables.append(Table(problem["label"], HEADER, rows))
        names.append(problem["name"])
    picture = partial(grouped_bars, names, bars, "MAP")
    return Outcome(recipe, tables, notes, {"map": picture})


def _cells(values: np.ndarray) -> tuple[str, str, str]:
    """MAP with its standard error over the seeds, NDCG@10, and seconds."""
    score, ndcg, seconds = values.mean(axis=0)
    error = np.nan
    if len(values) > 1:
        error = values[:, 0].std(ddof=1) / len(values) ** 0.5
    return f"{score:.3f} ± {error:.3f}", f"{ndcg:.3f}", f"{seconds:.2f}"


def one_piece(
    problem: Mapping[str, Any], method: Mapping[str, Any], seed: int
) -> list[float]:
    """Measures of new queries, and CPU seconds of a fit with the chosen setting."""
    data = examples(problem, seed)
    setting = _choose(method, data, seed)
    start = time.process_time()
    model = fit_ranker(method["estimator"], setting, data.X, data.relevance)
    seconds = time.process_time() - start
    return [*data.scores(model, MEASURES).values(), seconds]


def _choose(method: Mapping[str, Any], data: Problem, seed: int) -> dict[str, Any]:
    """The setting of the best score on a held-out quarter of the training queries."""
    grid = settings(method, {})
    if len(grid) == 1:
        return grid[0]
    n_queries = data.relevance.n_queries
    train, validation = split_queries(n_queries, 0.25, np.random.RandomState(seed))
    split = hold_out(data.X, data.relevance, None, train, validation)
    scores = []
    for setting in grid:
        model = fit_ranker(method["estimator"], setting, split.X, split.relevance)
        scores.append(model.score(split.X, split.judged, queries=split.points))
    return grid[int(np.argmax(scores))]
