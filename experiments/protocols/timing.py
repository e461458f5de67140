"""Training time against the number of features."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..methods import fit_estimator
from ..pictures import curves
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """A row for each method, a column for each number of features."""
    options, methods = recipe.options, recipe.content["methods"]
    sizes = options["dimensions"]
    pairs = [
        (method, n_features)
        for method, n_features in itertools.product(methods, sizes)
        if n_features <= method.get("last", n_features)
    ]
    pieces = [(method, n_features, dict(options)) for method, n_features in pairs]
    lines = {method["label"]: [np.nan] * len(sizes) for method in methods}
    for (method, n), seconds in zip(pairs, jobs.map(one_piece, pieces), strict=True):
        lines[method["label"]][sizes.index(n)] = seconds
    rows = [(label, *map(_shown, values)) for label, values in lines.items()]
    header = ["method", *(f"d = {n:,}" for n in sizes)]
    panel = {label: (sizes, values) for label, values in lines.items()}
    draw = partial(curves, {"seconds": panel}, "features", log=("seconds",), log_x=True)
    tables = [Table("Seconds to learn, on one thread", header, rows)]
    return Outcome(recipe, tables, list(recipe.content["notes"]), {"seconds": draw})


def one_piece(
    method: Mapping[str, Any], n_features: int, options: Mapping[str, Any]
) -> float:
    """CPU seconds of the faster of two fits on Gaussian classes."""
    rng = np.random.default_rng(options["seed"])
    y = rng.integers(0, options["n_classes"], options["n_items"])
    noise = rng.normal(size=(y.size, n_features))
    X = noise + rng.normal(size=(y.max() + 1, n_features))[y]
    seconds = []
    for _ in range(2):
        start = time.process_time()
        with threadpool_limits(1, "blas"):
            fit_estimator(method["estimator"], method.get("fixed", {}), X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def _shown(seconds: float) -> str:
    if np.isnan(seconds):
        return "–"
    return f"{seconds:.3g}"
