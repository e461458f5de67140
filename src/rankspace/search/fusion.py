"""Fusion of rankings: a weighted sum of scores, or reciprocal ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._engine.checks import check_choice
from ..relevance.rows import gather_rows, indptr_of

NORMALISATIONS = ("none", "minmax", "zscore")
DEPTH = 100  # first items of each list that take part, by default
RANK_OFFSET = 60.0  # of reciprocal rank fusion, as published


class Lists(Protocol):
    """Ranked lists of many queries."""

    @property
    def indptr(self) -> np.ndarray:
        """Offsets of the lists."""

    @property
    def items(self) -> np.ndarray:
        """Items of all lists."""

    @property
    def distances(self) -> np.ndarray:
        """Their distances, never decreasing within a list."""


@dataclass(frozen=True, eq=False)
class FusionTable:
    """The items that any of several rankings lists for a query, with a score from each ranking.

    Parameters
    ----------
    indptr, items : ndarray
        The items of each query, in the order of their numbers.
    columns : ndarray of shape (n_rankings, n_entries)
        Normalised scores. An item that a ranking does not list has the score of an absent one.
    """

    indptr: np.ndarray
    items: np.ndarray
    columns: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The query of each entry."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def sums(self, weights: Any) -> np.ndarray:
        """Weighted sums of the scores; weights for all queries, or a column for each query."""
        total = np.zeros(self.items.size)
        owners = self.owners
        for column, weight in zip(self.columns, weights, strict=True):
            each = np.broadcast_to(weight, (self.indptr.size - 1,))
            total += each[owners] * column
        return total

    def ranked(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Items by descending sum, equal ones by number, and minus their sums as distances."""
        order = np.lexsort((self.items, -sums, self.owners))
        return self.items[order], 0.0 - sums[order]


def fusion_table(
    rankings: Sequence[Lists], n_items: int, normalise: Sequence[str], k: int
) -> FusionTable:
    """Scores of the first ``k`` items of each ranking, normalised list by list."""
    n_queries = rankings[0].indptr.size - 1
    parts = []
    for ranking, how in zip(rankings, normalise, strict=True):
        owners, items, scores = _first(ranking, k)
        values, absent = _normalised(scores, owners, n_queries, how)
        parts.append((owners * n_items + items, values, absent))
    keys = np.unique(np.concatenate([key for key, _, _ in parts]))
    owners = keys // n_items
    columns = np.empty((len(parts), keys.size))
    for column, (key, values, absent) in zip(columns, parts, strict=True):
        column[:] = absent[owners]
        column[np.searchsorted(keys, key)] = values
    indptr = indptr_of(np.bincount(owners, minlength=n_queries))
    return FusionTable(indptr, keys % n_items, columns)


def reciprocal_ranks(rankings: Sequence[Lists], n_items: int, k: int) -> FusionTable:
    """The same items with 1 / (60 + rank) from each ranking that lists them, else 0."""
    table = fusion_table(rankings, n_items, ["none"] * len(rankings), k)
    keys = table.owners * n_items + table.items
    columns = np.zeros(table.columns.shape)
    for column, ranking in zip(columns, rankings, strict=True):
        owners, items, _ = _first(ranking, k)
        starts = indptr_of(np.bincount(owners, minlength=table.indptr.size - 1))
        ranks = 1 + np.arange(items.size) - starts[owners]
        column[np.searchsorted(keys, owners * n_items + items)] = 1 / (
            RANK_OFFSET + ranks
        )
    return FusionTable(table.indptr, table.items, columns)


def _first(ranking: Lists, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, item and score of the first ``k`` entries of each list."""
    lengths = np.minimum(np.diff(ranking.indptr), k)
    _, entries = gather_rows(ranking.indptr[:-1], lengths)
    owners = np.repeat(np.arange(lengths.size), lengths)
    scores = -ranking.distances[entries]
    if not np.isfinite(scores).all():
        raise ValueError("scores of rankings to fuse must be finite: got infinity.")
    items = ranking.items[entries]
    order = np.lexsort((items, owners))
    again = (np.diff(items[order]) == 0) & (np.diff(owners[order]) == 0)
    if again.any():
        item = int(items[order][1:][again][0])
        raise ValueError(f"a ranking to fuse must list an item once: got {item} twice.")
    return owners, items, scores


def _normalised(
    scores: np.ndarray, owners: np.ndarray, n_queries: int, how: str
) -> tuple[np.ndarray, np.ndarray]:
    """Normalised scores, and the score of an absent item for each query.

    Absent items have 0, or the lowest listed score if that is negative. So a list without entries
    contributes nothing.
    """
    low = np.full(n_queries, np.inf)
    np.minimum.at(low, owners, scores)
    if how == "minmax":
        high = np.full(n_queries, -np.inf)
        np.maximum.at(high, owners, scores)
        spread = (high - low)[owners]
        # Equal scores tell items apart from absent ones only.
        values = np.full(scores.size, 0.5)
        np.divide(scores - low[owners], spread, out=values, where=spread > 0)
        return values, np.zeros(n_queries)
    values = scores
    if how == "zscore":
        values = _standardised(scores, owners, n_queries)
    lowest = np.zeros(n_queries)
    np.minimum.at(lowest, owners, values)
    return values, lowest


def _standardised(scores: np.ndarray, owners: np.ndarray, n_queries: int) -> np.ndarray:
    """Scores with mean 0 and variance 1 in each list; 0 if all are equal."""
    counts = np.bincount(owners, minlength=n_queries).clip(min=1)
    means = np.bincount(owners, scores, n_queries) / counts
    centred = scores - means[owners]
    deviations = np.sqrt(np.bincount(owners, centred**2, n_queries) / counts)[owners]
    # The mean of equal scores may be off by rounding.
    varied = deviations > 1e-12 * np.abs(scores)
    values = np.zeros(scores.size)
    np.divide(centred, deviations, out=values, where=varied)
    return values


# ---------------------------------------------------------------------- options


def normalisations(
    normalise: str | Mapping[str, str], names: Sequence[str]
) -> list[str]:
    """The normalisation of each ranking, from one for all or from one by name."""
    if isinstance(normalise, str):
        normalise = dict.fromkeys(names, normalise)
    for name in names:
        if name not in normalise:
            raise ValueError(
                f"normalise must be one of {', '.join(NORMALISATIONS)}, or name one for each "
                f"ranking: {name!r} has none."
            )
        check_choice(normalise[name], f"normalise of {name!r}", NORMALISATIONS)
    return [normalise[name] for name in names]


def fusion_weights(weights: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """The weight of each ranking, checked."""
    if set(weights) != set(names):
        raise ValueError(
            f"weights must have one for each ranking, {', '.join(names)}: got "
            f"{', '.join(weights) or 'none'}."
        )
    found = [float(weights[name]) for name in names]
    for name, weight in zip(names, found, strict=True):
        if not 0 <= weight < np.inf:
            raise ValueError(
                f"weights must be at least 0: got {weight:g} for {name!r}."
            )
    return found
