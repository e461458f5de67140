"""The toy of the MLR paper: the vertical axis tells the classes apart, the other is large noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankspace import Index, LinearMetric, Relevance, evaluate, knn_error
from rankspace.display import SpaceDisplay

from ..data import make_mlr_toy
from ..methods import fit_metric
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import QUERIES_NOTE, scores_of_queries, table_of_queries

HEADER = ["method", "share of the vertical axis", "MAP", "k-NN error, %"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Learn on one sample, evaluate on another, and draw the points under each metric."""
    n, seed = recipe.options["n_samples"], recipe.options["seed"]
    train = make_mlr_toy(n, random_state=seed)
    test = make_mlr_toy(n, random_state=seed + 1)
    rows, views, scores = [], {}, {}
    for method in recipe.content["methods"]:
        label, fixed = method["label"], method.get("fixed", {})
        metric = fit_metric(method["estimator"], fixed, train.X, train.labels)
        ranking = Index(train.X, metric).rank(test.X)
        relevance = Relevance.from_labels(train.labels, query_labels=test.labels)
        report = evaluate(ranking, relevance, "map")
        votes = recipe.options["votes"]
        error = knn_error(ranking, train.labels, votes, query_labels=test.labels)
        share = vertical_share(metric, test.X)
        rows.append((label, share, report.means["map"], f"{100 * error:.1f}"))
        scores[label] = np.array(scores_of_queries(report, "map"))
        views[label] = _view(metric, test.X)
    title = "Where the distance comes from, and what it is worth"
    display = SpaceDisplay(views, test.labels)
    return Outcome(
        recipe,
        [
            Table(title, HEADER, rows),
            *table_of_queries("MAP", scores, recipe.options["against"]),
        ],
        [*recipe.content["notes"], QUERIES_NOTE],
        {"toy": lambda: display.plot().figure_},
    )


def vertical_share(metric: LinearMetric, X: np.ndarray) -> float:
    """Fraction of the mean squared distance that the vertical axis alone contributes."""
    spread = np.cov(X.T)
    return float(metric.matrix[1, 1] * spread[1, 1] / np.sum(metric.matrix * spread))


def _view(metric: LinearMetric, X: np.ndarray) -> Any:
    """The points mapped by the square root of the matrix, which turns the axes least."""
    values, vectors = np.linalg.eigh(metric.matrix)
    return X @ (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
