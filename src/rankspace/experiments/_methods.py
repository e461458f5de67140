"""Data sets at hand, methods by name, and every setting of their grids."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..datasets import open_dataset
from ..learners.base import BaseRanker
from ..metrics.embedding import LinearMetric


def at_hand(
    sets: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Data sets whose files are there, and a remark on each of the others."""
    kept, notes = [], []
    for data in sets:
        try:
            open_dataset(data["name"])
            kept.append(data)
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
    if not kept:
        raise FileNotFoundError(" ".join(notes))
    return kept, notes


def settings(
    method: Mapping[str, Any], data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Every combination of a method's grid, which a data set may change, with what is fixed."""
    grid = {**method.get("grid", {}), **data.get("grids", {}).get(method["label"], {})}
    combinations = itertools.product(*grid.values())
    return [
        {**method.get("fixed", {}), **dict(zip(grid, c, strict=True))}
        for c in combinations
    ]


def fit_metric(
    estimator: str, setting: Mapping[str, Any], X: Any, y: Any
) -> LinearMetric:
    """Learn a linear metric with an estimator of rankspace, or with scikit-learn's NCA."""
    if estimator == "NCA":
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        found = NeighborhoodComponentsAnalysis(random_state=0, **setting).fit(X, y)
        return LinearMetric(found.components_)
    metric = fit_estimator(estimator, setting, X, y).metric_
    if not isinstance(metric, LinearMetric):
        raise ValueError(f"{estimator} must learn a linear metric: got {metric!r}.")
    return metric


def fit_estimator(
    estimator: str, setting: Mapping[str, Any], X: Any, y: Any, queries: Any = None
) -> BaseRanker:
    """Fit an estimator of rankspace."""
    import rankspace

    with warnings.catch_warnings():
        # A zero metric or a search cut short shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return getattr(rankspace, estimator)(**setting).fit(X, y, queries=queries)
