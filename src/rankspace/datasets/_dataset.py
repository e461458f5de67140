"""`Dataset`: the vectors, relevance judgments and splits of one data set."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .._engine.tables import as_html
from ..relevance.relevance import Relevance
from ..relevance.rows import check_range, row_numbers, whole_numbers

ITEM_FIELDS = ("X", "labels", "qid", "grades", "texts")
QUERY_FIELDS = ("queries", "query_texts")


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set, ready for ``estimator.fit(dataset.X, dataset.relevance)``.

    Parameters
    ----------
    name : str
        Its name.
    X : ndarray or sparse matrix of shape (n_items, n_features), or None
        Rows to search. None if the set is text without vectors.
    relevance : Relevance or None
        Relevance judgments.
    labels : ndarray of shape (n_items,), optional
        Class labels, if the relevance comes from classes.
    queries : ndarray of shape (n_queries, n_features), optional
        Vectors of queries that are not rows of ``X``.
    qid, grades : ndarray of shape (n_items,), optional
        Query id and relevance grade of each row, if the rows are candidate lists.
    splits : dict of ndarray
        Row numbers of ``X`` by the name of the split; of the queries, if these are separate.
    texts, query_texts : list of str, optional
        The text of each item and of each separate query.
    feature_names : list of str, optional
        Names of the columns of ``X``.
    description : str
        What the set is and how it was prepared.
    n_unjudged : int, default=0
        Number of queries that were left out, as they have no judgment.

    Examples
    --------
    >>> from rankspace.datasets import load_wine
    >>> dataset = load_wine()
    >>> dataset
    Dataset('wine', 178 items x 13 features, 178 queries)
    >>> dataset.part(range(20))
    Dataset('wine', 20 items x 13 features, 20 queries)
    """

    name: str
    X: Any = None
    relevance: Relevance | None = None
    labels: np.ndarray | None = None
    queries: Any = None
    qid: np.ndarray | None = None
    grades: np.ndarray | None = None
    splits: dict[str, np.ndarray] = field(default_factory=dict)
    texts: list[str] | None = None
    query_texts: list[str] | None = None
    feature_names: list[str] | None = None
    description: str = ""
    n_unjudged: int = 0

    def __post_init__(self) -> None:
        self._check_lengths(ITEM_FIELDS, "items")
        self._check_lengths(QUERY_FIELDS, "queries")
        for name, rows in self.splits.items():
            if self._size:
                _check_rows(rows, self._size, f"split {name!r} of {self.name}")

    def _check_lengths(self, names: tuple[str, ...], what: str) -> int:
        """The common length of some fields and the relevance; raises if they disagree."""
        sizes = {name: _length(getattr(self, name)) for name in names}
        if self.relevance is not None:
            sizes["relevance"] = getattr(self.relevance, f"n_{what}")
        known = {name: size for name, size in sizes.items() if size is not None}
        if len(set(known.values())) > 1:
            shown = ", ".join(f"{name} of {size}" for name, size in known.items())
            raise ValueError(
                f"a data set must have one entry for each of its {what}: got {shown}."
            )
        return max(known.values(), default=0)

    @property
    def _size(self) -> int:
        """Number of rows that splits can name: queries, if separate, or items; 0 if unknown."""
        if self.has_queries:
            return self._check_lengths(QUERY_FIELDS, "queries")
        return self._check_lengths(ITEM_FIELDS, "items")

    @property
    def has_queries(self) -> bool:
        """Whether the queries are separate from the rows of ``X``."""
        return self.queries is not None or self.query_texts is not None

    def part(self, which: Any) -> Dataset:
        """Restrict the data set to a split.

        Parameters
        ----------
        which : str or array-like of int or bool
            Name of a split, or row numbers or a mask of ``X`` (of the queries, if these are
            separate: then all items stay).

        Returns
        -------
        Dataset
            Without splits of its own.
        """
        rows = self._rows_of(which)
        names = QUERY_FIELDS if self.has_queries else ITEM_FIELDS
        taken = {name: _take(getattr(self, name), rows) for name in names}
        relevance = self.relevance
        if relevance is not None and self.has_queries:
            relevance = relevance.take_queries(rows)
        elif relevance is not None:
            relevance = relevance[rows]
        return replace(self, relevance=relevance, splits={}, **taken)

    def fold(self, number: int) -> dict[str, np.ndarray]:
        """Rows of a published fold.

        Parameters
        ----------
        number : int
            From 1. Of the parts S1 to S5, fold 1 trains on S1, S2, S3, validates on S4 and tests on
            S5; each further fold shifts by one.

        Returns
        -------
        dict of ndarray
            Rows of "train", "vali" and "test", for `part`.
        """
        n_folds = self._n_folds
        if not 1 <= number <= n_folds:
            raise ValueError(
                f"number must be a fold of {self.name}, from 1 to {n_folds}: got {number}. "
                f"The splits are {', '.join(self.splits) or 'none'}."
            )
        if "S1" not in self.splits:
            return {
                role: self.splits[f"fold{number}.{role}"]
                for role in ("train", "vali", "test")
            }
        parts = [self.splits[f"S{(number - 1 + shift) % 5 + 1}"] for shift in range(5)]
        return {"train": np.concatenate(parts[:3]), "vali": parts[3], "test": parts[4]}

    @property
    def _n_folds(self) -> int:
        return len([s for s in self.splits if re.fullmatch(r"S\d|fold\d\.test", s)])

    def _rows_of(self, which: Any) -> np.ndarray:
        if not isinstance(which, str):
            return _check_rows(which, self._size, "which")
        if which not in self.splits:
            raise ValueError(
                f"which must be a split of {self.name}, one of {', '.join(self.splits) or 'none'}: "
                f"got {which!r}. Pass row numbers for a part of your own."
            )
        return self.splits[which]

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        if self.X is not None:
            parts.append(f"{self.X.shape[0]} items x {self.X.shape[1]} features")
        elif self.texts is not None:
            parts.append(f"{len(self.texts)} texts")
        if self.relevance is not None:
            parts.append(f"{self.relevance.n_queries} queries")
        return f"Dataset({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """What the data set has."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        hidden = ("name", "description", "n_unjudged")
        rows = [
            (name, _describe(value))
            for name, value in values.items()
            if name not in hidden and value is not None and _describe(value)
        ]
        return as_html(["field", ""], rows, before=[repr(self), self.description])


def _describe(value: Any) -> str:
    """The size of a field, in a few words."""
    if isinstance(value, Relevance):
        return repr(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} ({len(rows):,})" for name, rows in value.items())
    shape = getattr(value, "shape", None) or (len(value),)
    return " x ".join(f"{size:,}" for size in shape)


def labelled(name: str, X: Any, labels: np.ndarray, **fields: Any) -> Dataset:
    """A data set with class labels: items are relevant to those of the same class."""
    return Dataset(name, X, Relevance.from_labels(labels), labels=labels, **fields)


def consecutive(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Splits of consecutive rows, given their sizes."""
    splits = {}
    start = 0
    for name, size in sizes.items():
        splits[name] = np.arange(start, start + size)
        start += size
    return splits


def _check_rows(rows: Any, size: int, name: str) -> np.ndarray:
    """Row numbers from numbers or a mask, checked."""
    picked = np.asarray(rows)
    if picked.dtype == bool:
        return row_numbers(picked, size)
    numbers = whole_numbers(picked, name)
    check_range(numbers, name, 0, size)
    return numbers


def _length(values: Any) -> int | None:
    if values is None:
        return None
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def _take(values: Any, rows: np.ndarray) -> Any:
    if values is None:
        return None
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return values[rows]
