"""How long learning takes as features get more."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._engine.parallel.threads import single_threaded_blas
from ..display.plots import curves
from ._methods import fit_estimator
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method, a column for each number of features."""
    options, methods = recipe.options, recipe.content["methods"]
    sizes = options["dimensions"]
    pairs = [
        (m, d) for m, d in itertools.product(methods, sizes) if d <= m.get("last", d)
    ]
    pieces = [(method, d, dict(options)) for method, d in pairs]
    found = {
        (method["label"], d): seconds
        for (method, d), seconds in zip(pairs, jobs.map(one_piece, pieces), strict=True)
    }
    lines = {
        m["label"]: [found.get((m["label"], d), np.nan) for d in sizes] for m in methods
    }
    rows = [(label, *map(_shown, values)) for label, values in lines.items()]
    header = ["method", *(f"d = {d:,}" for d in sizes)]
    view = {"seconds": {name: (sizes, values) for name, values in lines.items()}}
    picture = {
        "seconds": lambda: curves(view, "features", log=("seconds",), log_x=True)
    }
    tables = [Table("Seconds to learn, on one thread", header, rows)]
    return Outcome(recipe, tables, list(recipe.content["notes"]), picture)


def one_piece(
    method: Mapping[str, Any], n_features: int, options: Mapping[str, Any]
) -> float:
    """Processor seconds of the better of two fits on Gaussian classes."""
    rng = np.random.default_rng(options["seed"])
    y = rng.integers(0, options["n_classes"], options["n_items"])
    X = (
        rng.normal(size=(y.size, n_features))
        + rng.normal(size=(y.max() + 1, n_features))[y]
    )
    seconds = []
    for _ in range(2):
        start = time.process_time()
        with single_threaded_blas():
            fit_estimator(method["estimator"], method.get("fixed", {}), X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def _shown(seconds: float) -> str:
    return f"{seconds:.3g}" if np.isfinite(seconds) else "–"
