"""Training time of each method on a fraction of each data set."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from .prepared import available_sets, prepare, source
from .ratios import learn, split_rows

N_FITS = 2  # of which the fastest counts: the first also loads code


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method, a column for each data set at hand."""
    sets, notes = available_sets(recipe.content["datasets"])
    methods = recipe.content["methods"]
    ratio, seed = recipe.options["ratio"], recipe.options["seed"]
    pairs = list(itertools.product(sets, methods))
    pieces = [(source(data), method, ratio, seed) for data, method in pairs]
    heads: dict[str, str] = {}
    rows: dict[str, list[str]] = {method["label"]: [] for method in methods}
    for (data, method), result in zip(pairs, jobs.map(one_time, pieces), strict=True):
        seconds, n_rows, n_features = result
        heads[data["label"]] = f"{data['label']} ({n_rows} x {n_features:,})"
        rows[method["label"]].append(_shown(seconds))
    table = Table(
        f"Seconds of processor time to learn from {100 * ratio:g} %",
        ["method", *heads.values()],
        [(label, *cells) for label, cells in rows.items()],
    )
    return Outcome(recipe, [table], [*recipe.content.get("notes", []), *notes])


def one_time(
    data: Mapping[str, Any], method: Mapping[str, Any], ratio: float, seed: int
) -> list[float]:
    """CPU seconds of the fastest of some fits, and the shape of the training data."""
    whole = prepare(**data)
    rows = split_rows(whole.y, ratio, seed)[0]
    seconds = []
    for _ in range(N_FITS):
        start = time.process_time()
        learn(method, whole, rows, seed)
        seconds.append(time.process_time() - start)
    return [min(seconds), int(rows.size), int(whole.X.shape[1])]


def _shown(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds:.3f}"
    return f"{seconds:.1f}"
