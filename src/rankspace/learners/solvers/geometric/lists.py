"""Candidate lists with graded documents, each sorted by falling grade."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from ....evaluation.measures import gains_of
from ....relevance.relevance import Relevance
from ....relevance.rows import take_or_none


class Lists(NamedTuple):
    """Candidate lists: rows and falling grades of documents, list after list, and list weights."""

    indptr: np.ndarray
    rows: np.ndarray
    grades: np.ndarray
    weights: np.ndarray
    n_high: np.ndarray | None = (
        None  # first documents that are alike, if not the usual ones
    )

    @classmethod
    def of(cls, relevance: Relevance) -> Lists:
        """The judged documents of each query that has two grades at least."""
        table = relevance.judged_lists()
        owner = np.repeat(np.arange(relevance.n_queries), np.diff(table.indptr))
        order = np.lexsort((table.indices, -table.data, owner))
        return cls(
            table.indptr.astype(np.int64),
            table.indices[order].astype(np.int64),
            table.data[order],
            relevance.weights,
        )

    def __len__(self) -> int:
        return self.indptr.size - 1

    def rows_of(self, q: int) -> slice:
        """The entries of a list."""
        return slice(self.indptr[q], self.indptr[q + 1])

    @property
    def owner(self) -> np.ndarray:
        """The list of each document."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def gains(self) -> np.ndarray:
        """``2^grade - 1`` of each document."""
        return gains_of(self.grades)

    def take(self, lists: np.ndarray) -> Lists:
        """Some of the lists, in the given order."""
        sizes = np.diff(self.indptr)[lists]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        shifts = np.repeat(self.indptr[lists] - indptr[:-1], sizes)
        entries = shifts + np.arange(indptr[-1])
        n_high = take_or_none(self.n_high, lists)
        return Lists(
            indptr,
            self.rows[entries],
            self.grades[entries],
            self.weights[lists],
            n_high,
        )

    def renumbered(self) -> Lists:
        """The same lists of documents that are rows 0, 1, 2 and so on."""
        return Lists(self.indptr, np.arange(self.rows.size), *self[2:])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How many documents of each list have its highest grade, and its lowest."""
        highest = self.grades[self.indptr[:-1]][self.owner]
        lowest = self.grades[self.indptr[1:] - 1][self.owner]
        n_top = np.bincount(self.owner, self.grades == highest, len(self))
        n_low = np.bincount(self.owner, self.grades == lowest, len(self))
        return n_top.astype(np.int64), n_low.astype(np.int64)


def with_high(lists: Lists, high: str | float) -> Lists:
    """The same lists, with other documents that count as alike.

    ``high`` is "upper", "highest" or a grade; a list without that grade has its highest, and its
    lowest grade never counts as high.
    """
    if high == "upper":
        return lists
    n_top, n_low = lists.ends()
    if high == "highest":
        return Lists(*lists[:4], n_top)
    n_high = np.bincount(lists.owner, lists.grades >= high, len(lists)).astype(np.int64)
    n_high = np.clip(n_high, n_top, np.diff(lists.indptr) - n_low)
    return Lists(*lists[:4], n_high)


def high_counts(lists: Lists) -> np.ndarray:
    """How many of the first documents of each list are alike: D+ of the paper."""
    return upper_counts(lists) if lists.n_high is None else lists.n_high


def upper_counts(lists: Lists) -> np.ndarray:
    """How many documents of each list have grades of the upper half, as 4 and 3 of 0 to 4."""
    starts = run_starts(lists.owner, lists.grades)
    first = np.searchsorted(starts, lists.indptr)
    n_upper = np.maximum(1, np.diff(first) // 2)
    ends = np.append(starts, lists.rows.size)[first[:-1] + n_upper]
    return ends - lists.indptr[:-1]


def run_starts(owner: np.ndarray, grades: np.ndarray) -> np.ndarray:
    """Where runs of equal grades (or gains) in a list start."""
    changes = (np.diff(owner) != 0) | (np.diff(grades) != 0)
    return np.flatnonzero(np.concatenate(([True], changes)))


def even_runs(positions: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Runs of rows with about ``size`` entries each, given where each row starts or ends."""
    cuts = np.flatnonzero(np.diff(positions // size)) + 1
    return list(itertools.pairwise([0, *cuts.tolist(), positions.size]))
