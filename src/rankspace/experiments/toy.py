"""The toy of the MLR paper: what matters is the vertical axis, what is large the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..datasets import make_mlr_toy
from ..display.plots import panels
from ..evaluation.measures import evaluate
from ..evaluation.neighbors import knn_error
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..search.index import Index
from ._methods import fit_metric
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

HEADER = ["method", "share of the vertical axis", "MAP", "k-NN error, %"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Learn on one sample, judge on another, and draw both spaces."""
    options = recipe.options
    train, test = (
        make_mlr_toy(options["n_samples"], random_state=options["seed"] + part)
        for part in (0, 1)
    )
    rows, views = [], {}
    for method in recipe.content["methods"]:
        metric = fit_metric(
            method["estimator"], method.get("fixed", {}), train.X, train.labels
        )
        rows.append((method["label"], *_judge(metric, train, test, options["votes"])))
        views[method["label"]] = _view(metric, test.X)
    return Outcome(
        recipe,
        [Table("Where the distance comes from, and what it is worth", HEADER, rows)],
        list(recipe.content["notes"]),
        {"toy": lambda: panels(views, test.labels)},
    )


def _judge(metric: Any, train: Any, test: Any, votes: int) -> tuple[float, float, str]:
    ranking = Index(train.X, metric).rank(test.X)
    relevance = Relevance.from_labels(train.labels, query_labels=test.labels)
    found = evaluate(ranking, relevance, "map").means["map"]
    error = knn_error(ranking, train.labels, votes, query_labels=test.labels)
    return vertical_share(metric, test.X), found, f"{100 * error:.1f}"


def vertical_share(metric: LinearMetric, X: np.ndarray) -> float:
    """Share of the mean squared distance that the vertical axis alone makes up."""
    spread = np.cov(X.T)
    return float(metric.matrix[1, 1] * spread[1, 1] / np.sum(metric.matrix * spread))


def _view(metric: LinearMetric, X: np.ndarray) -> np.ndarray:
    """The points as the metric sees them, axes kept as near to the old ones as may be."""
    values, vectors = np.linalg.eigh(metric.matrix)
    return X @ (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
