"""Feature clusters by Logistic PARCA: words as topics, pixels as regions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from rankspace import Index, Relevance, evaluate
from rankspace.display import PixelClustersDisplay, TopicsDisplay

from ..methods import fit_estimator
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from .prepared import Prepared, available_sets, prepare, source
from .ratios import split_rows

HEADER = [
    "data",
    "clusters",
    "beta",
    "ranking error",
    "with beta = 0",
    "mean largest membership",
    "features of each cluster",
]
MAX_QUERIES = 2000


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Clusters of each data set at hand, as lists and pictures."""
    sets, notes = available_sets(recipe.content["datasets"])
    seed, n_listed = recipe.options["seed"], recipe.options["n_listed"]
    pieces = [
        (source(data), data["n_components"], data["ratio"], seed, n_listed)
        for data in sets
    ]
    rows, topics, pictures = [], [], {}
    for data, result in zip(sets, jobs.map(one_piece, pieces), strict=True):
        rows.append(_row(data, result))
        if "shape" not in data:
            topics.append(_topics(data["label"], result["topics"]))
        pictures[data["picture"]] = partial(_draw, data, result)
    summary = Table("Clusters, and what dividing the features costs", HEADER, rows)
    notes = [*recipe.content["notes"], *notes]
    return Outcome(recipe, [summary, *topics], notes, pictures)


def _row(data: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        data["label"],
        data["n_components"],
        f"{result['beta']:g}",
        *(f"{error:.3f}" for error in result["errors"]),
        f"{result['largest_membership']:.2f}",
        ", ".join(map(str, result["sizes"])),
    )


def _topics(label: str, topics: list[list[str]]) -> Table:
    rows = [(number, ", ".join(words)) for number, words in enumerate(topics, 1)]
    return Table(f"{label}: topics", ["topic", "words"], rows)


def one_piece(
    data: Mapping[str, Any], n_components: int, ratio: float, seed: int, n_listed: int
) -> dict[str, Any]:
    """Clusters at the chosen beta, and the error of held-out points there and at beta = 0."""
    whole = prepare(**data)
    rows, others = split_rows(whole.y, ratio, seed)
    fixed = {"n_components": n_components, "random_state": seed}
    X, y = whole.X[rows], whole.y[rows]
    model = fit_estimator("LogisticPARCA", {**fixed, "beta": "auto"}, X, y)
    divided = fit_estimator("LogisticPARCA", {**fixed, "beta": 0.0}, X, y)
    errors = [_error(m, whole, rows, others[:MAX_QUERIES]) for m in (model, divided)]
    sizes = np.bincount(model.cluster_of_feature_, minlength=n_components)
    return {
        "beta": model.beta_,
        "errors": errors,
        "largest_membership": float(model.membership_.max(axis=0).mean()),
        "sizes": sizes.tolist(),
        "topics": model.topics(whole.words, n_listed),
        "membership": np.round(model.membership_, 4).tolist(),
        "weights": np.round(np.sqrt(model.importance_.sum(axis=0)), 6).tolist(),
    }


def _error(model: Any, whole: Prepared, rows: np.ndarray, others: np.ndarray) -> float:
    relevance = Relevance.from_labels(whole.y[rows], query_labels=whole.y[others])
    index = Index(model.transform(whole.X[rows]))
    blocks = index.blocks(model.transform(whole.X[others]))
    return evaluate(blocks, relevance, "ranking-error").means["ranking-error"]


def _draw(data: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    if "shape" not in data:
        return TopicsDisplay(result["topics"], sizes=result["sizes"]).plot().figure_
    display = PixelClustersDisplay(
        result["membership"], tuple(data["shape"]), weights=result["weights"]
    )
    return display.plot().figure_
