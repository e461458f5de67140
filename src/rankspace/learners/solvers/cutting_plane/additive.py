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
    rows: np.ndarray,
    judged: Any,
    scales: np.ndarray,
) -> float:
    """Weights of all items in place of ``rows``, their distances; ``order`` is from the nearest."""
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
        distances = rows[b, order[b]]
        total += _violate(measure, distances, kinds, scales[query], row)
        rows[b, order[b]] = row
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
    """Weights of the judged items of a block of queries, each list nearest first."""
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
    from ...._engine.kernels.violations import (
        IRRELEVANT,
        RELEVANT,
        new_memory,
        violate_additive,
    )

    n_pos, n_neg = ((kinds == kind).sum() for kind in (RELEVANT, IRRELEVANT))
    rewards = reward_table(measure, int(n_pos), int(n_neg))
    memory = new_memory(kinds.size)
    return float(violate_additive(distances, kinds, rewards, scale, memory, weights))
