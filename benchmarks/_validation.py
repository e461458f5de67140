"""Settings chosen on validation rows, which nothing was fitted to, and then judged on test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from rankspace import Relevance


class Part(NamedTuple):
    """Some rows of a set, and their labels."""

    X: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Rows to fit, to choose settings on, and to report."""

    train: Part
    validation: Part
    test: Part


def three_parts(
    X: np.ndarray,
    y: np.ndarray,
    steps: Pipeline,
    *,
    shares: tuple[float, float],
    n: int,
) -> Iterator[Split]:
    """Stratified random splits; ``shares`` are those of validation and test rows.

    The steps that prepare the rows are fitted to the training rows.
    """
    held_out, test_share = sum(shares), shares[1]
    for seed in range(n):
        train, rest = train_test_split(
            np.arange(len(y)), test_size=held_out, random_state=seed, stratify=y
        )
        validation, test = train_test_split(
            rest, test_size=test_share / held_out, random_state=seed, stratify=y[rest]
        )
        prepare = clone(steps).fit(X[train])
        parts = [Part(prepare.transform(X[r]), y[r]) for r in (train, validation, test)]
        yield Split(*parts)


def held_out_map(model: Any, items: Part, queries: Part) -> float:
    """MAP of rows that rank the training rows."""
    judged = Relevance.from_labels(items.y, query_labels=queries.y)
    return float(model.score(items.X, judged, queries=queries.X))


def best_by_map(models: Sequence[Any], items: Part, queries: Part) -> Any:
    """The fitted model with the highest MAP of validation rows."""
    scores = [held_out_map(model, items, queries) for model in models]
    return models[int(np.argmax(scores))]


def with_error(values: np.ndarray) -> str:
    """Mean and standard deviation over the splits."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"
