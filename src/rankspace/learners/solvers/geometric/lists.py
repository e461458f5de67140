"""Candidate lists with grades, each sorted from its best document down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....evaluation.measures import gains_of
from ....relevance.relevance import Relevance


class Lists(NamedTuple):
    """Rows of documents, list after list, their grades falling in each, and the lists' weights."""

    indptr: np.ndarray
    rows: np.ndarray
    grades: np.ndarray
    weights: np.ndarray

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

    def part(self, q: int) -> slice:
        """Where a list stands."""
        return slice(self.indptr[q], self.indptr[q + 1])

    @property
    def gains(self) -> np.ndarray:
        """``2^grade - 1`` of each document."""
        return gains_of(self.grades)

    def take(self, lists: np.ndarray) -> Lists:
        """Some of the lists, in the given order."""
        sizes = np.diff(self.indptr)[lists]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        at = np.repeat(self.indptr[lists] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Lists(indptr, self.rows[at], self.grades[at], self.weights[lists])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How many documents of each list have its highest grade, and its lowest."""
        starts, lasts = self.indptr[:-1], self.indptr[1:] - 1
        owner = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        top = np.bincount(owner, self.grades == self.grades[starts][owner], len(self))
        low = np.bincount(owner, self.grades == self.grades[lasts][owner], len(self))
        return top.astype(np.int64), low.astype(np.int64)


def upper_counts(lists: Lists) -> np.ndarray:
    """How many documents of each list have grades of the upper half."""
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
    new = np.concatenate(([True], (np.diff(owner) != 0) | (np.diff(lists.grades) != 0)))
    starts = np.flatnonzero(new)  # of runs of one grade
    first = np.searchsorted(starts, lists.indptr)
    taken = np.maximum(1, np.diff(first) // 2)
    return np.append(starts, owner.size)[first[:-1] + taken] - lists.indptr[:-1]


def upper_levels(grades: np.ndarray) -> int:
    """How many documents of a sorted list have grades of the upper half, as 4 and 3 of 0 to 4."""
    levels = np.unique(grades)
    return int(np.sum(grades >= levels[-max(1, levels.size // 2)]))
