"""Songs and letters that ask for their like: scores of new queries, and the time to learn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..display.plots import grouped_bars
from ..relevance.splits import hold_out, split_queries
from ._methods import fit_estimator, settings
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table
from .counts import examples

MEASURES = ("map", "ndcg@10")


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A table for each problem, and bars of all."""
    methods, seeds = recipe.content["methods"], range(recipe.options["n_seeds"])
    tables, names, notes = [], [], list(recipe.content["notes"])
    bars: dict[str, list[float]] = {m["label"]: [] for m in methods}
    for problem in recipe.content["problems"]:
        pieces = [
            (problem, method, seed)
            for method, seed in itertools.product(methods, seeds)
        ]
        try:
            found = np.array(jobs.map(one_piece, pieces)).reshape(
                len(methods), len(seeds), 3
            )
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        rows = []
        for method, values in zip(methods, found, strict=True):
            means = values.mean(axis=0)
            deviation = (
                values[:, 0].std(ddof=1) / len(seeds) ** 0.5
                if len(seeds) > 1
                else np.nan
            )
            scores = (
                f"{means[0]:.3f} ± {deviation:.3f}",
                f"{means[1]:.3f}",
                f"{means[2]:.2f}",
            )
            published = recipe.content["paper_values"].get(method["label"], "–")
            rows.append((method["label"], *scores, published))
            bars[method["label"]].append(means[0])
        tables.append(Table(problem["label"], HEADER, rows))
        names.append(problem["name"])
    picture = {"map": lambda: grouped_bars(names, bars, "MAP")}
    return Outcome(recipe, tables, notes, picture)


HEADER = ["method", "MAP", "NDCG@10", "seconds", "paper's seconds"]


def one_piece(
    problem: Mapping[str, Any], method: Mapping[str, Any], seed: int
) -> list[float]:
    """Measures of new queries, and seconds of a fit; settings chosen on held-out queries."""
    data = examples(problem, seed)
    every = settings(method, {})
    chosen = every[0]
    if len(every) > 1:
        parts = split_queries(
            data.relevance.n_queries, 0.25, np.random.RandomState(seed)
        )
        split = hold_out(data.X, data.relevance, None, *parts)
        scores = [
            fit_estimator(method["estimator"], setting, split.X, split.relevance).score(
                split.X, split.judged, queries=split.points
            )
            for setting in every
        ]
        chosen = every[int(np.argmax(scores))]
    start = time.process_time()
    model = fit_estimator(method["estimator"], chosen, data.X, data.relevance)
    seconds = time.process_time() - start
    return [*data.scores(model, " ".join(MEASURES)).values(), seconds]
