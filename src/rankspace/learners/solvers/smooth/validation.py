"""Settings tried on held-out queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....evaluation.measures import evaluate
from ....relevance.relevance import Relevance
from ....relevance.splits import Split, hold_out
from ....search.index import Index

N_FOLDS = 5
ENOUGH = 1000  # held-out queries, after which no further fold is used


class Trial(NamedTuple):
    """A setting, its mean error over held-out queries, and the standard error of that."""

    setting: float
    error: float
    standard_error: float


def folds(X: Any, relevance: Relevance, queries: Any, seed: int) -> list[Split]:
    """Parts of the queries held out of the others, as many as suffice; none if none can be."""
    n = relevance.n_queries
    order = np.random.default_rng(seed).permutation(n)
    splits: list[Split] = []
    n_judged = 0
    for part in np.array_split(order, N_FOLDS):
        if not part.size or part.size == n or n_judged >= ENOUGH:
            continue
        held_out = np.sort(part[:ENOUGH])
        split = hold_out(
            X, relevance, queries, np.sort(np.setdiff1d(order, part)), held_out
        )
        taught = split.relevance.trainable
        if taught.any() and split.judged.trainable.any():
            kept = None if split.queries is None else split.queries[taught]
            taught_relevance = split.relevance.take_queries(np.flatnonzero(taught))
            splits.append(split._replace(relevance=taught_relevance, queries=kept))
            n_judged += held_out.size
    return splits


def ranking_errors(split: Split, components: np.ndarray) -> np.ndarray:
    """Ranking errors of the held-out queries that have one; infinite under a map to zero."""
    if not components.any():
        return np.array([np.inf])
    items, points = (
        np.asarray(part @ components.T) for part in (split.X, split.points)
    )
    report = evaluate(Index(items).blocks(points), split.judged, "ranking-error")
    values = report.values["ranking-error"]
    return values[np.isfinite(values)]


def try_setting(
    setting: float, splits: list[Split], learn: Callable[[int, float], np.ndarray]
) -> Trial:
    """Learn components on each split by its number, and judge them by its held-out queries."""
    errors = [
        ranking_errors(split, learn(i, setting)) for i, split in enumerate(splits)
    ]
    values = np.concatenate(errors)
    if not np.isfinite(values).all():
        return Trial(setting, float("inf"), float("nan"))
    return Trial(
        setting, float(values.mean()), float(values.std() / np.sqrt(values.size))
    )
