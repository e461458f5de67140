"""Clusters of features by Logistic PARCA: words as topics, pixels as regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..display.plots import PixelClustersDisplay, TopicsDisplay
from ..evaluation.measures import evaluate
from ..relevance.relevance import Relevance
from ..search.index import Index
from ._methods import fit_estimator
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table
from .prepared import prepare
from .ratios import at_hand, core, split_rows

HEADER = [
    "data",
    "clusters",
    "beta",
    "ranking error",
    "with beta = 0",
    "mean largest membership",
    "features of each cluster",
]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Clusters of each data set at hand, as lists and pictures."""
    sets, notes = at_hand(recipe.content["datasets"])
    pieces = [
        (
            core(d),
            d["n_components"],
            d["ratio"],
            recipe.options["seed"],
            recipe.options["n_listed"],
        )
        for d in sets
    ]
    found = jobs.map(one_piece, pieces)
    rows, topics, pictures = [], [], {}
    for data, result in zip(sets, found, strict=True):
        errors = [f"{error:.3f}" for error in result["errors"]]
        clusters = [f"{result['sharpness']:.2f}", ", ".join(map(str, result["sizes"]))]
        rows.append(
            (
                data["label"],
                data["n_components"],
                f"{result['beta']:g}",
                *errors,
                *clusters,
            )
        )
        if "shape" not in data:
            listed = [
                (k + 1, ", ".join(words)) for k, words in enumerate(result["topics"])
            ]
            topics.append(Table(f"{data['label']}: topics", ["topic", "words"], listed))
        pictures[data["picture"]] = _picture(data, result)
    summary = Table("Clusters, and what dividing the features costs", HEADER, rows)
    return Outcome(
        recipe, [summary, *topics], [*recipe.content["notes"], *notes], pictures
    )


def one_piece(
    data: Mapping[str, Any], n_components: int, ratio: float, seed: int, n_listed: int
) -> dict[str, Any]:
    """Clusters at the chosen beta, and the error of held-out points there and at beta = 0."""
    whole = prepare(**data)
    rows, others = split_rows(whole.y, ratio, seed)
    others = others[:2000]
    relevance = Relevance.from_labels(whole.y[rows], query_labels=whole.y[others])
    models: list[Any] = [
        fit_estimator(
            "LogisticPARCA",
            {"n_components": n_components, "beta": beta, "random_state": seed},
            whole.X[rows],
            whole.y[rows],
        )
        for beta in ("auto", 0.0)
    ]
    errors = [
        evaluate(
            Index(m.transform(whole.X[rows])).blocks(m.transform(whole.X[others])),
            relevance,
            "ranking-error",
        ).means["ranking-error"]
        for m in models
    ]
    model = models[0]
    return {
        "beta": model.beta_,
        "errors": errors,
        "sharpness": float(model.membership_.max(axis=0).mean()),
        "sizes": np.bincount(
            model.cluster_of_feature_, minlength=n_components
        ).tolist(),
        "topics": model.topics(whole.words, n_listed),
        "membership": np.round(model.membership_, 4).tolist(),
        "weights": np.round(np.sqrt(model.importance_.sum(axis=0)), 6).tolist(),
    }


def _picture(data: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    if "shape" not in data:
        return lambda: (
            TopicsDisplay(result["topics"], sizes=result["sizes"]).plot().figure_
        )
    shares, weights = result["membership"], result["weights"]
    shape = tuple(data["shape"])
    return lambda: PixelClustersDisplay(shares, shape, weights=weights).plot().figure_
