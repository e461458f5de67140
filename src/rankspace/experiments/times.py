"""How long methods take to learn from a share of each data set."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from ._recipe import Recipe
from ._run import Jobs, Outcome, Table
from .prepared import prepare
from .ratios import at_hand, core, learn, split_rows

FITS = 2  # of which the fastest counts: the first also loads code


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method, a column for each data set at hand."""
    sets, notes = at_hand(recipe.content["datasets"])
    methods, ratio = recipe.content["methods"], recipe.options["ratio"]
    seed = recipe.options["seed"]
    pairs = list(itertools.product(sets, methods))
    pieces = [(core(data), method, ratio, seed) for data, method in pairs]
    found = jobs.map(one_time, pieces)
    seconds = {
        (data["label"], method["label"]): result[0]
        for (data, method), result in zip(pairs, found, strict=True)
    }
    sizes = {
        data["label"]: result[1:]
        for (data, _), result in zip(pairs, found, strict=True)
    }
    heads = [f"{label} ({n} x {d:,})" for label, (n, d) in sizes.items()]
    rows = [
        (method["label"], *(_shown(seconds[label, method["label"]]) for label in sizes))
        for method in methods
    ]
    title = f"Seconds of processor time to learn from {100 * ratio:g} %"
    notes = [*recipe.content.get("notes", []), *notes]
    return Outcome(recipe, [Table(title, ["method", *heads], rows)], notes)


def one_time(
    data: Mapping[str, Any], method: Mapping[str, Any], ratio: float, seed: int
) -> list[float]:
    """Processor seconds of the fastest of some fits, and the shape of what was learned from."""
    whole = prepare(**data)
    rows = split_rows(whole.y, ratio, seed)[0]
    seconds = []
    for _ in range(FITS):
        start = time.process_time()
        learn(method, whole, rows, seed)
        seconds.append(time.process_time() - start)
    return [min(seconds), int(rows.size), int(whole.X.shape[1])]


def _shown(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.1f}"
