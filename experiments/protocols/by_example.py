"""Query by example on songs and spoken letters: scores of new queries, and training time."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rankspace.relevance.splits import hold_out, split_queries

from ..methods import fit_ranker, settings
from ..pictures import grouped_bars
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import PAIRED_NOTE, paired_table
from .counts import HELD_OUT, examples

MEASURES = "map ndcg@10"
HEADER = ["method", "MAP", "NDCG@10", "seconds", "mode", "paper's seconds"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A table for each problem with paired tests, and bars of all."""
    methods, seeds = recipe.content["methods"], range(recipe.options["n_seeds"])
    tables, names, notes = [], [], list(recipe.content["notes"])
    bars: dict[str, list[float]] = {method["label"]: [] for method in methods}
    for problem in recipe.content["problems"]:
        try:
            results = _results(problem, methods, seeds, jobs)
        except FileNotFoundError as error:
            notes.append(f"Left out: {problem['label']}. {error}")
            continue
        rows, scores = [], {}
        for method in methods:
            label = method["label"]
            published = recipe.content["paper_values"].get(label, "–")
            rows.append((label, *_cells(results[label]), published))
            scores[label] = np.array([result["map"] for result in results[label]])
            bars[label].append(scores[label].mean())
        tables.append(Table(problem["label"], HEADER, rows))
        against = recipe.options["against"]
        if len(seeds) > 1 and against in scores:
            title = f"{problem['label']}: MAP, {len(seeds)} splits"
            overlap = HELD_OUT / (1 - HELD_OUT)
            tables.append(paired_table(title, scores, against, overlap))
        names.append(problem["name"])
    picture = partial(grouped_bars, names, bars, "MAP")
    return Outcome(recipe, tables, [*notes, PAIRED_NOTE], {"map": picture})


def _results(
    problem: Mapping[str, Any],
    methods: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    jobs: Jobs,
) -> dict[str, list[Any]]:
    """The results of each method over the splits, with settings chosen in each anew."""
    places = [*itertools.product(methods, seeds)]
    tried = [
        (problem, method["estimator"], setting, seed)
        for method, seed in places
        for setting in settings(method, {})
        if len(settings(method, {})) > 1
    ]
    scores = iter(jobs.map(validation_score, tried))
    pieces, chosen = [], []
    for method, seed in places:
        grid = settings(method, {})
        best = 0
        if len(grid) > 1:
            best = int(np.argmax([next(scores) for _ in grid]))
        pieces.append((problem, method["estimator"], grid[best], seed))
        varied = method.get("grid", {})
        chosen.append(", ".join(f"{key} {grid[best][key]:g}" for key in varied))
    found: dict[str, list[Any]] = {method["label"]: [] for method in methods}
    for (method, _), setting, result in zip(
        places, chosen, jobs.map(one_piece, pieces), strict=True
    ):
        found[method["label"]].append({**result, "chosen": setting})
    return found


def _cells(results: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """MAP with its standard error over the splits, NDCG@10, seconds, and the usual setting."""
    scores = np.array([result["map"] for result in results])
    error = np.nan
    if scores.size > 1:
        error = scores.std(ddof=1) / scores.size**0.5
    ndcg = np.mean([result["ndcg@10"] for result in results])
    seconds = np.mean([result["seconds"] for result in results])
    mode = Counter(result["chosen"] for result in results).most_common(1)[0][0]
    return (
        f"{scores.mean():.3f} ± {error:.3f}",
        f"{ndcg:.3f}",
        f"{seconds:.2f}",
        mode or "–",
    )


def one_piece(
    problem: Mapping[str, Any], estimator: str, setting: Mapping[str, Any], seed: int
) -> dict[str, float]:
    """Measures of new queries, and CPU seconds of a fit."""
    data = examples(problem, seed)
    start = time.process_time()
    model = fit_ranker(estimator, setting, data.X, data.relevance)
    seconds = time.process_time() - start
    return {**data.report(model, MEASURES).means, "seconds": seconds}


def validation_score(
    problem: Mapping[str, Any], estimator: str, setting: Mapping[str, Any], seed: int
) -> float:
    """MAP on a held-out quarter of the training queries."""
    data = examples(problem, seed)
    n_queries = data.relevance.n_queries
    train, validation = split_queries(n_queries, 0.25, np.random.RandomState(seed))
    split = hold_out(data.X, data.relevance, None, train, validation)
    model = fit_ranker(estimator, setting, split.X, split.relevance)
    return model.score(split.X, split.judged, queries=split.points)
