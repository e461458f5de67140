"""Estimators by name or dotted path, the grid of their settings, and the data sets at hand."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from rankspace import BaseRanker, LinearMetric, Report


def available(
    sets: Sequence[Mapping[str, Any]], load: Callable[[Mapping[str, Any]], Any]
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Data sets whose files are there, and a note on each of the others."""
    loaded, notes = [], []
    for data in sets:
        try:
            load(data)
            loaded.append(data)
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
    if not loaded:
        raise FileNotFoundError(" ".join(notes))
    return loaded, notes


def settings(
    method: Mapping[str, Any], data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Parameter grid of a method: all combinations, together with the fixed parameters.

    A data set may replace parts of the grid.
    """
    grid = {**method.get("grid", {}), **data.get("grids", {}).get(method["label"], {})}
    fixed = method.get("fixed", {})
    return [
        {**fixed, **dict(zip(grid, values, strict=True))}
        for values in itertools.product(*grid.values())
    ]


def find_estimator(name: str) -> Any:
    """Import an estimator class: a name of rankspace, or a dotted path.

    Examples
    --------
    >>> from experiments.methods import find_estimator
    >>> find_estimator("MLR")
    <class 'rankspace.learners.mlr.MLR'>
    >>> find_estimator("sklearn.decomposition.PCA")
    <class 'sklearn.decomposition._pca.PCA'>
    """
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module or "rankspace"), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            "estimator must be a class of rankspace, or the dotted path of a class that can be "
            f"imported: got {name!r} ({error}). Install its package, or put its "
            "folder on PYTHONPATH."
        ) from error


def fit_estimator(
    name: str, setting: Mapping[str, Any], X: Any, y: Any, queries: Any = None
) -> Any:
    """Fit an estimator. Queries are passed only if they are separate from the items."""
    estimator = find_estimator(name)(**setting)
    with warnings.catch_warnings():
        # A zero metric or a search cut short shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if queries is None:
            return estimator.fit(X, y)
        return estimator.fit(X, y, queries=queries)


def fit_ranker(name: str, setting: Mapping[str, Any], X: Any, y: Any) -> BaseRanker:
    """Fit an estimator that ranks and scores queries itself."""
    model = fit_estimator(name, setting, X, y)
    if not isinstance(model, BaseRanker):
        raise ValueError(
            f"estimator must be a subclass of rankspace.BaseRanker in this protocol: got {name}. "
            "Derive it from BaseRanker, or use a protocol that takes any class."
        )
    return model


def fit_metric(name: str, setting: Mapping[str, Any], X: Any, y: Any) -> LinearMetric:
    """Learn a linear metric: the estimator's ``metric_``, or else its ``components_``."""
    model = fit_estimator(name, setting, X, y)
    if hasattr(model, "metric_"):
        metric = model.metric_
    elif hasattr(model, "components_"):
        metric = LinearMetric(model.components_)
    else:
        metric = None
    if not isinstance(metric, LinearMetric):
        raise ValueError(
            f"estimator must learn a linear metric, as metric_ or components_: got {metric!r} from "
            f"{name}. Use a protocol for other metrics."
        )
    return metric


def evaluate_ranker(
    model: BaseRanker, X: Any, relevance: Any, queries: Any, measures: str
) -> dict[str, float]:
    """Mean of each measure over the queries of a fitted estimator."""
    return report_of_ranker(model, X, relevance, queries, measures).means


def report_of_ranker(
    model: BaseRanker, X: Any, relevance: Any, queries: Any, measures: str
) -> Report:
    """The report of a fitted estimator, which has the scores of each query."""
    return model._evaluate(X, relevance, None, queries, None, measures)
