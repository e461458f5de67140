"""Feature selection among noise: which features of noisy Wine a metric keeps, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rankspace import Index, Relevance, evaluate, knn_error
from rankspace.datasets import load_wine

from ..methods import fit_metric
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import PAIRED_NOTE, paired_table

# Options that a job depends on.
IN_JOBS = ("n_noise", "test_size")
HEADER = [
    "method",
    "MAP",
    "3-NN accuracy",
    "real features kept",
    "noise features kept",
    "MAP, authors' code",
    "3-NN accuracy, authors' code",
]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Mean over splits for each method."""
    options, methods = recipe.options, recipe.content["methods"]
    n_splits = options["n_splits"]
    pieces = [
        (method, split, {key: options[key] for key in IN_JOBS})
        for method in methods
        for split in range(n_splits)
    ]
    results = np.array(jobs.map(one_piece, pieces)).reshape(len(methods), n_splits, 4)
    rows = []
    for method, values in zip(methods, results, strict=True):
        published = recipe.content["published"].get(method["label"], ("–", "–"))
        rows.append((method["label"], *_cells(values, options["n_noise"]), *published))
    scores = {
        method["label"]: values[:, 0]
        for method, values in zip(methods, results, strict=True)
    }
    tables = [Table("Held-out wines", HEADER, rows)]
    against = options["against"]
    if against in scores and len(scores) > 1:
        overlap = options["test_size"] / (1 - options["test_size"])
        tables.append(paired_table(f"MAP, {n_splits} splits", scores, against, overlap))
    return Outcome(recipe, tables, [*recipe.content["notes"], PAIRED_NOTE])


def _cells(values: np.ndarray, n_noise: int) -> list[str]:
    means = values.mean(axis=0)
    errors = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return [
        f"{means[0]:.3f} ± {errors[0]:.3f}",
        f"{means[1]:.3f} ± {errors[1]:.3f}",
        f"{means[2]:.1f} of 13",
        f"{means[3]:.1f} of {n_noise}",
    ]


def one_piece(
    method: Mapping[str, Any], split: int, options: Mapping[str, Any]
) -> tuple[float, float, int, int]:
    """MAP and 3-NN accuracy on held-out wines, and how many features of each kind are kept."""
    X, y = noisy_wine(options["n_noise"], split)
    train, test, y_train, y_test = train_test_split(
        StandardScaler().fit_transform(X),
        y,
        test_size=options["test_size"],
        random_state=split,
    )
    metric = fit_metric(method["estimator"], method.get("fixed", {}), train, y_train)
    ranking = Index(train, metric).rank(test)
    relevance = Relevance.from_labels(y_train, query_labels=y_test)
    score = evaluate(ranking, relevance, "map").means["map"]
    accuracy = 1 - knn_error(ranking, y_train, 3, query_labels=y_test)
    used = (metric.components != 0).any(axis=0)
    return score, accuracy, int(used[:13].sum()), int(used[13:].sum())


def noisy_wine(n_noise: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Wine with columns of correlated noise, drawn as the authors' demonstration draws them."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n_noise, n_noise))
    values, vectors = np.linalg.eigh(G.T @ G)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    wine = load_wine()
    noise = rng.standard_normal((len(wine.X), n_noise)) @ root
    return np.hstack([wine.X, noise]), np.asarray(wine.labels)
