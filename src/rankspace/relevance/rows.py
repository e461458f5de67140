"""Judgments as compressed rows: what stands behind the constructors of `Relevance`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Rows(NamedTuple):
    """The row each query points at, and the judged items and grades of each row."""

    rows: np.ndarray
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray


def rows_of_labels(y: Any, query_labels: Any = None) -> Rows:
    """One row a class, shared by all queries of the class."""
    labels = check_labels(y, "y")
    order = np.argsort(labels, kind="stable")
    in_order = labels[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    indptr = np.append(starts, labels.size)
    rows = np.empty_like(order)
    rows[order] = np.repeat(np.arange(starts.size), np.diff(indptr))
    if query_labels is not None:
        wanted, classes = check_labels(query_labels, "query_labels"), in_order[starts]
        check_same_kind(classes, wanted, "y and query_labels")
        rows = np.minimum(np.searchsorted(classes, wanted), classes.size - 1)
        # A class that no item has gets an empty row of its own.
        rows = np.where(classes[rows] == wanted, rows, classes.size)
        indptr = np.append(indptr, indptr[-1])
    return Rows(rows, indptr, order, np.ones(labels.size))


def check_same_kind(a: np.ndarray, b: np.ndarray, names: str) -> None:
    """Text and numbers are never equal, so comparing them is a mistake."""
    if (a.dtype.kind in "US") != (b.dtype.kind in "US"):
        raise ValueError(f"{names} must be of one kind: got {a.dtype} and {b.dtype}.")


def check_labels(y: Any, name: str) -> np.ndarray:
    """Labels as a 1-d array without missing values."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(
            f"{name} must be a non-empty 1-d array of labels: got shape {labels.shape}."
        )
    missing = _missing(labels)
    if missing.any():
        at = np.flatnonzero(missing)[0]
        raise ValueError(
            f"{name} must not hold missing labels: got {labels[at]} at row {at}. Leave such rows "
            "out, or name the judged ones with Relevance.from_lists."
        )
    # Objects that are all numbers become numbers, anything else becomes text.
    return np.array(labels.tolist()) if labels.dtype == object else labels


def _missing(labels: np.ndarray) -> np.ndarray:
    """Which labels are None, NaN, NaT or the NA of a dataframe, all unequal to themselves."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype != object:
        return np.zeros(1, dtype=bool)

    def missing(label: Any) -> bool:
        try:
            return label is None or bool(label != label)
        except TypeError:
            return True

    return np.array([missing(label) for label in labels])


def rows_of_groups(grades: Any, qid: Any) -> tuple[Rows, np.ndarray]:
    """One row a candidate list, in order of first appearance, and the names of the lists."""
    grades, qid = np.asarray(grades, dtype=float), np.asarray(qid)
    if grades.ndim != 1 or grades.shape != qid.shape:
        raise ValueError(
            f"grades and qid must have one entry for each row of X: got shapes {grades.shape} and "
            f"{qid.shape}."
        )
    if grades.size == 0:
        raise ValueError("grades must not be empty: got 0 rows.")
    if np.isinf(grades).any():
        raise ValueError("grades must be finite, or NaN for unjudged: got infinity.")
    codes, names = number_by_appearance(qid)
    order = np.argsort(codes, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(codes))))
    return Rows(np.arange(names.size), indptr, order, grades[order]), names


def number_by_appearance(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Number distinct values by first appearance; the numbers, and the values as text."""
    names, first, codes = np.unique(values, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    number = np.empty(names.size, dtype=np.int64)
    number[appearance] = np.arange(names.size)
    return number[codes], names[appearance].astype(str)


def rows_of_triples(
    queries: np.ndarray,
    items: np.ndarray,
    grades: np.ndarray,
    n_queries: int,
    n_items: int,
    names: tuple[np.ndarray, np.ndarray] | None = None,
) -> Rows:
    """One row a query, from queries, items and grades in any order; errors speak in names."""
    order = np.lexsort((items, queries))
    queries, items, grades = queries[order], items[order], grades[order]
    if not np.isfinite(grades).all():
        raise ValueError("grades must be finite: got NaN or infinity.")
    strange = (items < 0) | (items >= n_items)
    if strange.any():
        raise ValueError(
            f"items must be rows of X, from 0 to {n_items - 1}: got {items[strange][0]}. "
            "Pass n_items=... when X has more rows than there are queries."
        )
    again = (np.diff(queries) == 0) & (np.diff(items) == 0)
    for at in np.flatnonzero(again & (np.diff(grades) != 0))[:1]:
        query, item = (
            (queries[at], items[at])
            if names is None
            else (names[0][queries[at]], names[1][items[at]])
        )
        raise ValueError(
            f"a pair must have one grade: query {query} and item {item} have {grades[at]:g} and "
            f"{grades[at + 1]:g}."
        )
    keep = np.ones(items.size, dtype=bool)
    keep[1:] = ~again
    indptr = np.concatenate(
        ([0], np.cumsum(np.bincount(queries[keep], minlength=n_queries)))
    )
    return Rows(np.arange(n_queries), indptr, items[keep], grades[keep])


def triples_of_lists(
    relevant: Sequence[Any], irrelevant: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, items and grades of lists of relevant and of irrelevant items."""
    rows = [*relevant, *(irrelevant if irrelevant is not None else ())]
    items = [_indices(row) for row in rows]
    grades = [
        np.fromiter(row.values(), dtype=float)
        if isinstance(row, Mapping)
        else np.full(indices.size, float(number < len(relevant)))
        for number, (row, indices) in enumerate(zip(rows, items, strict=True))
    ]
    queries = np.arange(len(rows)) % max(len(relevant), 1)
    return (
        np.repeat(queries, [indices.size for indices in items]),
        np.concatenate([np.zeros(0, dtype=np.int64), *items]),
        np.concatenate([np.zeros(0), *grades]),
    )


def _indices(row: Any) -> np.ndarray:
    """Item numbers of one list, or of the keys of a mapping."""
    indices = np.asarray(list(row))
    if indices.size and indices.dtype.kind not in "iu":
        raise ValueError(
            f"lists must hold numbers of rows of X: got {indices.flat[0].item()!r}."
        )
    return indices.astype(np.int64)


class Names:
    """Numbers for the names of queries or items."""

    def __init__(
        self, given: Iterable[Hashable] | None, seen: Iterable[Hashable], kind: str
    ) -> None:
        names = [
            str(name) for name in (dict.fromkeys(seen) if given is None else given)
        ]
        self.index = {name: i for i, name in enumerate(names)}
        self.array = np.array(names, dtype=str)
        self.kind = kind

    def find(self, name: str) -> int:
        """The number of a name."""
        if name not in self.index:
            raise ValueError(
                f"qrels must name known {self.kind} ids: got {name!r}, which is not among the "
                f"{len(self.index)} given. Pass unknown='drop' to leave such judgments out."
            )
        return self.index[name]


def row_numbers(rows: Any, n: int) -> np.ndarray:
    """Turn a slice, a mask or an array of indices into row numbers."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    rows = np.asarray(rows)
    if rows.ndim != 1:
        raise TypeError(
            f"rows must be a slice, a mask or a 1-d array of indices: got {rows!r}. Splitters that "
            "look at single labels, as stratified ones do, take the labels in place of a Relevance."
        )
    if rows.dtype == bool:
        if rows.size != n:
            raise ValueError(f"a mask must have {n} entries: got {rows.size}.")
        return np.flatnonzero(rows)
    if rows.size and rows.dtype.kind not in "iu":
        raise IndexError(f"indices must be integers: got {rows.dtype}.")
    return np.arange(n)[rows.astype(np.int64)]


def check_ids(ids: Any, size: int, name: str) -> np.ndarray | None:
    """Names as an array of distinct texts."""
    if ids is None:
        return None
    names = np.asarray(ids).astype(str)
    if names.shape != (size,):
        raise ValueError(f"{name} must have {size} entries: got shape {names.shape}.")
    found, counts = np.unique(names, return_counts=True)
    if found.size != size:
        twice = found[counts > 1]
        more = f", and {twice.size - 1} others" if twice.size > 1 else ""
        raise ValueError(
            f"{name} must not repeat a name: got {str(twice[0])!r} again{more}."
        )
    return names


def check_weights(weights: Any, n_queries: int) -> np.ndarray:
    """Weights of queries, 1 each by default."""
    weights = np.ones(n_queries) if weights is None else np.array(weights, dtype=float)
    if weights.shape != (n_queries,):
        raise ValueError(
            f"weights must have one entry for each of {n_queries} queries: got shape "
            f"{weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("weights must be finite and not negative.")
    return weights
