"""Measures that are given as Python functions of the grades of a ranked list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .matching import new_items

# Takes the grades of a ranked list and those of the ideal list, and returns a score.
CustomMeasure = Callable[[np.ndarray, np.ndarray], float]


def custom_name(measure: CustomMeasure) -> str:
    """The name of a measure in reports: that of the function."""
    name = getattr(measure, "__name__", type(measure).__name__)
    if name == "<lambda>":
        raise ValueError("a measure needs a name: got a lambda. Write a def.")
    return str(name)


def is_error(measure: CustomMeasure) -> bool:
    """Whether smaller is better, which the function says by an attribute."""
    return not getattr(measure, "larger_is_better", True)


def custom_scores(
    measures: Sequence[CustomMeasure],
    ranking: Ranking,
    relevance: Relevance,
    queries: np.ndarray,
    lists: np.ndarray,
) -> np.ndarray:
    """Scores of some queries, whose lists have the given numbers, -1 for none."""
    numbers = new_items(ranking, relevance)
    scores = np.full((queries.size, len(measures)), np.nan)
    for row, query, number in zip(scores, queries, lists, strict=True):
        items = np.zeros(0, dtype=np.int64)
        if number >= 0:
            items = ranking.items[slice(*ranking.indptr[number : number + 2])]
        if numbers.size:
            items = numbers[items]
        grades = grade_lookup(relevance, query)
        ideal = ideal_grades(relevance, query)
        if ideal.size:
            ranked = grades[
                items
            ]  # an item that the judgments do not have is the last entry
            ranked = ranked[~np.isnan(ranked)]
            row[:] = [_score(measure, ranked, ideal) for measure in measures]
    return scores


def grade_lookup(relevance: Relevance, query: int) -> np.ndarray:
    """Grade of each item for a query, and of an unknown one; NaN for what leaves the list."""
    outside = 0.0 if relevance.unlisted_is_irrelevant else np.nan
    grades = np.full(relevance.n_items + 1, outside)
    items, listed = relevance._row(query)
    if relevance.unjudged == "irrelevant":
        listed = np.nan_to_num(listed)
    grades[items] = listed
    if relevance.query_items[query] >= 0:
        grades[relevance.query_items[query]] = np.nan
    return grades


def ideal_grades(relevance: Relevance, query: int) -> np.ndarray:
    """Positive grades of a query in descending order."""
    _, grades = relevance.judged(query)
    return -np.sort(-grades[grades > 0])


def _score(measure: CustomMeasure, ranked: np.ndarray, ideal: np.ndarray) -> float:
    score: Any = measure(ranked.copy(), ideal.copy())
    is_number = not np.ndim(score) and np.asarray(score).dtype.kind in "biuf"
    if not is_number or np.isinf(score):
        raise ValueError(
            f"a measure must return a finite number, or NaN to leave a query out: "
            f"{custom_name(measure)} returned {score!r}."
        )
    return float(score)
