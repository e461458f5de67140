"""Measures given as functions: sums over the relevant items, for which one oracle serves all."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

# Takes the numbers of relevant and irrelevant items of a list. Returns, for each relevant item from
# the top, what it adds to the measure with 0, 1, ... irrelevant items above it.
AdditiveMeasure = Callable[[int, int], Any]


@lru_cache(maxsize=32)
def reward_table(measure: AdditiveMeasure, n_pos: int, n_neg: int) -> np.ndarray:
    """What each relevant item adds, checked: (n_pos, n_neg + 1)."""
    table = np.array(measure(n_pos, n_neg), dtype=float)
    if table.shape != (n_pos, n_neg + 1):
        raise ValueError(
            f"measure must return one row for each relevant item and one column for each number "
            f"of irrelevant items above it: for {n_pos} and {n_neg} items expected shape "
            f"({n_pos}, {n_neg + 1}), got {table.shape}."
        )
    if not np.isfinite(table).all() or (np.diff(table, axis=1) > 1e-12).any():
        raise ValueError(
            "measure must return finite numbers that do not grow with the number of irrelevant "
            "items above: the best list has none. Return minus an error."
        )
    return table


def violate_all_additive(
    measure: AdditiveMeasure,
    queries: np.ndarray,
    order: np.ndarray,
    distances: np.ndarray,
    judged: Any,
    scales: np.ndarray,
    weights: np.ndarray,
) -> float:
    """`violate_all` for a measure that is given as a function."""
    from ...._engine.kernels.violations import (
        IRRELEVANT,
        mark_judged,
        unmark_judged,
    )

    kind_of = np.full(order.shape[1], IRRELEVANT, dtype=np.int8)
    total = 0.0
    for b, query in enumerate(queries):
        mark_judged(query, judged, kind_of)
        row = np.empty(order.shape[1])
        kinds = kind_of[order[b]]
        total += _violate(measure, distances[b], kinds, scales[query], row)
        weights[b, order[b]] = row
        unmark_judged(query, judged, kind_of)
    return total


def violate_lists_additive(
    measure: AdditiveMeasure,
    queries: np.ndarray,
    indptr: np.ndarray,
    distances: np.ndarray,
    kinds: np.ndarray,
    scales: np.ndarray,
    weights: np.ndarray,
) -> float:
    """`violate_lists` for a measure that is given as a function."""
    total = 0.0
    for b, query in enumerate(queries):
        row = slice(indptr[b], indptr[b + 1])
        scale = scales[query]
        total += _violate(measure, distances[row], kinds[row], scale, weights[row])
    return total


def _violate(
    measure: AdditiveMeasure,
    distances: np.ndarray,
    kinds: np.ndarray,
    scale: float,
    weights: np.ndarray,
) -> float:
    from ...._engine.kernels.violations import IRRELEVANT, RELEVANT, violate_additive

    n_pos, n_neg = ((kinds == kind).sum() for kind in (RELEVANT, IRRELEVANT))
    rewards = reward_table(measure, int(n_pos), int(n_neg))
    return float(violate_additive(distances, kinds, rewards, scale, weights))
