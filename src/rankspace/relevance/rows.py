"""Compressed sparse rows of judgments, and the input checks of `Relevance`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .joins import Side


class Rows(NamedTuple):
    """The row each query points at, and the judged items and grades of each row."""

    rows: np.ndarray
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray


def indptr_of(lengths: Any) -> np.ndarray:
    """Offsets of compressed rows with these lengths: each start, and the end of the last."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def gather_rows(
    starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of some rows put one after another, and the old places of their entries."""
    indptr = indptr_of(lengths)
    return indptr, np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])


def rows_from_labels(
    y: Any, query_labels: Any = None, unlabelled: Any = None
) -> tuple[Rows, np.ndarray]:
    """Judgments from class labels, and the mask of the rows of ``X`` that have a label.

    There is one row of judgments per class, shared by the queries of the class.
    """
    labels, labelled = labels_and_mask(y, "y", unlabelled)
    classes, codes = np.unique(labels, return_inverse=True)
    items = np.flatnonzero(labelled)
    rows = codes
    indptr, judged, grades = _rows_of_classes(codes, items, bool(labelled.all()))
    if query_labels is not None:
        wanted, known = labels_and_mask(query_labels, "query_labels", unlabelled)
        check_same_kind(classes, wanted, "y and query_labels")
        found = np.minimum(np.searchsorted(classes, wanted), classes.size - 1)
        # A class that no item has gets an empty row of its own.
        rows = np.full(known.size, classes.size)
        rows[known] = np.where(classes[found] == wanted, found, classes.size)
        indptr = np.append(indptr, indptr[-1])
    return Rows(rows, indptr, judged, grades), labelled


def _rows_of_classes(
    codes: np.ndarray, items: np.ndarray, all_labelled: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, items and grades of the row of each class."""
    n_classes = codes.max() + 1
    if all_labelled:
        # All others are irrelevant, which needs no entries.
        order = np.argsort(codes, kind="stable")
        return indptr_of(np.bincount(codes)), items[order], np.ones(items.size)
    grades = (codes == np.arange(n_classes)[:, None]).astype(float)
    indptr = np.arange(n_classes + 1) * items.size
    return indptr, np.tile(items, n_classes), grades.ravel()


def labels_and_mask(
    y: Any, name: str, unlabelled: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The labels of rows that have one, checked, and the mask of these rows.

    ``unlabelled`` marks rows without a label; NaN stands for any missing value.
    """
    labels = _one_column(y, name)
    labelled = np.ones(labels.size, dtype=bool)
    if unlabelled is not None:
        labelled = ~_is_marked(labels, unlabelled, name)
    if not labelled.any():
        raise ValueError(
            f"{name} must have a row with a label: got {labels.size} rows, all of them "
            f"unlabelled={unlabelled!r}."
        )
    rows = np.flatnonzero(labelled)
    return check_labels(labels[rows], name, rows), labelled


def _is_marked(labels: np.ndarray, unlabelled: Any, name: str) -> np.ndarray:
    """Mask of the rows whose label is ``unlabelled``."""
    missing = _missing(labels)
    marker = np.asarray([unlabelled])
    if _missing(marker)[0]:
        return missing
    if labels.dtype != object:
        check_same_kind(labels, marker, f"{name} and unlabelled")
    marked = np.zeros(labels.size, dtype=bool)
    marked[~missing] = labels[~missing] == unlabelled
    return marked


def check_same_kind(a: np.ndarray, b: np.ndarray, names: str) -> None:
    """Raise if text labels are compared with numbers, which are never equal."""
    if (a.dtype.kind in "US") != (b.dtype.kind in "US"):
        raise ValueError(
            f"{names} must both be text or both be numbers: got {a.dtype} and {b.dtype}."
        )


def check_labels(y: Any, name: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Class labels as a 1-d array: none missing, none continuous, and no ambiguous -1.

    ``rows`` are the numbers that error messages call them by.
    """
    labels = _one_column(y, name)
    missing = _missing(labels)
    if missing.any():
        at = np.flatnonzero(missing)[0]
        row = at if rows is None else rows[at]
        raise ValueError(
            f"{name} must not hold missing labels: got {labels[at]} at row {row}. Leave such rows "
            "out, or pass Relevance.from_labels(y, unlabelled=numpy.nan)."
        )
    if labels.dtype == object:
        # Objects that are all numbers become numbers, anything else becomes text.
        labels = np.array(labels.tolist())
    _check_discrete(labels, name)
    _check_minus_one(labels, name)
    return labels


def check_one_label(y: Any, name: str) -> None:
    """Raise if ``y`` has several columns."""
    shape = np.asarray(y).shape
    if len(shape) > 1 and shape[1:] != (1,):
        raise ValueError(
            f"{name} must have one label for each row: got shape {shape}. Of one-hot columns pass "
            f"{name}.argmax(axis=1); if rows have several labels, pass Relevance.from_lists."
        )


def _one_column(y: Any, name: str) -> np.ndarray:
    """Labels as a non-empty 1-d array."""
    check_no_table(y, name)
    check_one_label(y, name)
    labels = np.asarray(y)
    if labels.ndim == 0 or labels.size == 0:
        raise ValueError(
            f"{name} must be a non-empty 1-d array of labels: got shape {labels.shape}."
        )
    return labels.reshape(len(labels))


def _check_discrete(labels: np.ndarray, name: str) -> None:
    """Raise if labels are measurements, such as the target of a regression."""
    if labels.dtype.kind == "c":
        raise ValueError(f"{name} must hold class labels: got complex numbers.")
    if labels.dtype.kind != "f":
        return
    continuous = (labels != np.round(labels)) | np.isinf(labels)
    if continuous.any():
        raise ValueError(
            f"{name} must hold class labels, not continuous values: got {labels[continuous][0]}. "
            "Pass class labels or a Relevance, or bin the values, for example by numpy.digitize; "
            "grades of candidate lists need qid."
        )


def _check_minus_one(labels: np.ndarray, name: str) -> None:
    """Raise if -1 may be a class or mean that there is no label: it is a class beside 1 alone."""
    if labels.dtype.kind not in "ifUS":
        return
    minus_one: Any = -1
    one: tuple[Any, ...] = (1,)
    if labels.dtype.kind in "US":
        labels = labels.astype(str)
        minus_one = "-1"
        one = ("1", "+1")
    marked = labels == minus_one
    if not marked.any():
        return
    others = np.unique(labels[~marked])
    if not np.isin(others, one).all():
        raise ValueError(
            f"{name} must not leave open whether -1 is a class or marks rows without a label: got "
            f"-1 beside {_some(others)}. Pass Relevance.from_labels(y, unlabelled="
            f"{minus_one!r}) if these rows have no label, and give the class another name if it "
            "is one."
        )


def _some(values: np.ndarray, n: int = 3) -> str:
    """The first values of an array, for an error message."""
    shown = ", ".join(str(value) for value in values[:n])
    if values.size > n:
        shown += ", ..."
    return shown


def check_no_table(y: Any, name: str) -> None:
    """Raise if labels are a table of judgments, such as a dataframe or a mapping."""
    columns = getattr(y, "columns", None)
    if isinstance(y, Mapping) or (columns is not None and len(columns) > 1):
        raise ValueError(
            f"{name} must be one label for each row, or a Relevance: got a {type(y).__name__}. If "
            "it holds judgments of items for queries, pass Relevance.from_qrels of it, with "
            "query_ids and item_ids in the order of the rows."
        )


def _missing(labels: np.ndarray) -> np.ndarray:
    """Mask of missing labels: None, NaN, NaT or the NA of a dataframe."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype != object:
        return np.zeros(labels.size, dtype=bool)

    def missing(label: Any) -> bool:
        try:
            # NaN and NaT are unequal to themselves; the NA of pandas has no truth value.
            return label is None or bool(label != label)
        except TypeError:
            return True

    return np.array([missing(label) for label in labels])


def rows_from_groups(grades: Any, qid: Any) -> tuple[Rows, np.ndarray]:
    """Judgments from candidate lists: one row per query id, and the distinct ids."""
    grades = np.asarray(grades, dtype=float)
    qid = _group_values(qid)
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
    indptr = indptr_of(np.bincount(codes))
    return Rows(np.arange(names.size), indptr, order, grades[order]), names


def number_by_appearance(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Number distinct values by first appearance; return the numbers and the values as text."""
    values = _group_values(values)
    names, first, codes = np.unique(values, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    number = np.empty(names.size, dtype=np.int64)
    number[appearance] = np.arange(names.size)
    return number[codes], as_ids(names[appearance])


def _group_values(values: Any) -> np.ndarray:
    """Numbers or ids of groups as an array, in which text is not of fixed width."""
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if listed and any(isinstance(value, str) for value in values):
        return as_ids(values)
    return np.asarray(values)


def rows_from_triples(
    queries: np.ndarray,
    items: np.ndarray,
    grades: np.ndarray,
    n_queries: int,
    n_items: int,
    names: tuple[np.ndarray, np.ndarray] | None = None,
) -> Rows:
    """Judgments from (query, item, grade) triples in any order: one row per query.

    ``names``, of queries and of items, are what error messages call them by.
    """
    if not np.isfinite(grades).all():
        raise ValueError("grades must be finite: got NaN or infinity.")
    outside = (items < 0) | (items >= n_items)
    if outside.any():
        raise ValueError(
            f"items must be rows of X, from 0 to {n_items - 1}: got {items[outside].min()}. "
            "Pass n_items=... when X has more rows than there are queries."
        )
    order = np.lexsort((items, queries))
    queries, items, grades = queries[order], items[order], grades[order]
    first = np.ones(items.size, dtype=bool)
    first[1:] = (np.diff(queries) != 0) | (np.diff(items) != 0)
    conflicts = np.flatnonzero(~first[1:] & (np.diff(grades) != 0))
    if conflicts.size:
        at = conflicts[0]
        query, item = queries[at], items[at]
        if names is not None:
            query, item = names[0][query], names[1][item]
        raise ValueError(
            f"a pair must have one grade: query {query} and item {item} have {grades[at]:g} and "
            f"{grades[at + 1]:g}."
        )
    counts = np.bincount(queries[first], minlength=n_queries)
    indptr = indptr_of(counts)
    return Rows(np.arange(n_queries), indptr, items[first], grades[first])


def triples_from_lists(
    relevant: Sequence[Any], irrelevant: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(query, item, grade) triples from lists of relevant and of irrelevant items."""
    # The empty array keeps concatenate from failing where there are no queries.
    items, grades = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for default_grade, lists in ((1.0, relevant), (0.0, irrelevant)):
        for row in () if lists is None else lists:
            items.append(_indices(row))
            if isinstance(row, Mapping):
                grades.append(np.fromiter(row.values(), dtype=float))
            else:
                grades.append(np.full(items[-1].size, default_grade))
    sizes = [indices.size for indices in items[1:]]
    queries = np.arange(len(sizes)) % max(len(relevant), 1)
    return np.repeat(queries, sizes), np.concatenate(items), np.concatenate(grades)


def check_no_matrix(lists: Sequence[Any], n_items: int) -> None:
    """Raise if lists of row numbers are a matrix of 0 and 1, queries by items."""
    if n_items < 3 or not len(lists):
        return
    if all(len(row) == n_items and set(row) <= {0, 1} for row in lists):
        raise ValueError(
            "lists must hold row numbers of X: got a matrix of 0 and 1 with a column for each of "
            f"{n_items} items. Pass [numpy.flatnonzero(row) for row in matrix]."
        )


def _indices(row: Any) -> np.ndarray:
    """Item numbers of one list, or of the keys of a mapping."""
    indices = np.asarray(list(row))
    if indices.size and indices.dtype.kind not in "iu":
        raise ValueError(
            f"lists must hold row numbers of X: got {indices.flat[0].item()!r}."
        )
    return indices.astype(np.int64)


class Names:
    """Numbers for query ids or item ids: those given, else those the judgments mention."""

    def __init__(
        self, given: Iterable[Hashable] | None, seen: Iterable[str], kind: str
    ) -> None:
        self.kind = kind
        self.judged = list(dict.fromkeys(seen))
        names = self.judged
        if given is not None:
            names = [str(name) for name in given]
            check_ids(names, len(names), f"{kind}_ids")
        self.index = {name: i for i, name in enumerate(names)}
        self.array = as_ids(names)

    @property
    def sides(self) -> tuple[Side, Side]:
        """The ids that are judged, and those that have a number."""
        return Side("the judgments", self.judged), Side("the data", self.index)


def row_numbers(rows: Any, n: int) -> np.ndarray:
    """Row numbers from a slice, a mask or an array of indices."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    rows = np.asarray(rows)
    if rows.ndim != 1:
        raise TypeError(
            f"rows must be a slice, a mask or a 1-d array of indices: got shape {rows.shape}. "
            "Stratified splitters need single labels: pass them the labels instead of a Relevance."
        )
    if rows.dtype == bool:
        if rows.size != n:
            raise ValueError(f"a mask must have {n} entries: got {rows.size}.")
        return np.flatnonzero(rows)
    if rows.size and rows.dtype.kind not in "iu":
        raise IndexError(f"indices must be integers: got {rows.dtype}.")
    return np.arange(n)[rows.astype(np.int64)]


def take_or_none(array: np.ndarray | None, rows: Any) -> np.ndarray | None:
    """Some entries of an optional array, such as ids or weights."""
    return None if array is None else array[rows]


def check_ids(ids: Any, size: int, name: str) -> np.ndarray | None:
    """Ids as an array of unique strings, or None."""
    if ids is None:
        return None
    names = as_ids(ids)
    if names.shape != (size,):
        raise ValueError(f"{name} must have {size} entries: got shape {names.shape}.")
    if len(set(names.tolist())) != size:
        repeated = sorted(id for id, n in Counter(names.tolist()).items() if n > 1)
        others = f", and {len(repeated) - 1} others" if len(repeated) > 1 else ""
        raise ValueError(
            f"{name} must not repeat a name: got {repeated[0]!r} again{others}."
        )
    return names


def as_ids(ids: Any) -> np.ndarray:
    """Ids as an array of str objects: in an array of fixed width, one long id widens all."""
    if isinstance(ids, Sequence) and not isinstance(ids, str | bytes):
        array = _objects(ids)
    else:
        array = np.asarray(ids)
    if array.dtype != object:
        array = array.astype(str)
    names = array.ravel().tolist()
    if set(map(type, names)) - {str}:
        names = list(map(_text, names))
    return _objects(names).reshape(array.shape)


def places(wanted: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Index of each wanted name among the names, or -1."""
    place = {name: i for i, name in enumerate(names.tolist())}
    return np.array([place.get(name, -1) for name in wanted.tolist()], dtype=np.int64)


def _objects(values: Sequence[Any]) -> np.ndarray:
    """A 1-d array of objects, whatever the objects are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _text(name: Any) -> str:
    if np.ndim(name):
        raise ValueError(f"an id must be text or a number: got {name!r}.")
    return name.decode() if isinstance(name, bytes) else str(name)


def whole_numbers(values: Any, name: str) -> np.ndarray:
    """A 1-d array of integers."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} must be a 1-d array of whole numbers: got {numbers.dtype} of shape "
            f"{numbers.shape}."
        )
    return numbers.astype(np.int64, copy=False)


def check_range(numbers: np.ndarray, name: str, lowest: int, n: int) -> None:
    """Raise unless numbers lie from ``lowest`` to ``n - 1``."""
    if numbers.size and not lowest <= numbers.min() <= numbers.max() < n:
        raise ValueError(
            f"{name} must be numbers from {lowest} to {n - 1}: got {numbers.min()} to "
            f"{numbers.max()}. Number rows from 0."
        )


def check_offsets(indptr: np.ndarray, n_entries: int) -> None:
    """Raise unless offsets of compressed rows rise from 0 to the number of entries."""
    ends = indptr[[0, -1]].tolist() if indptr.size else []
    if ends != [0, n_entries] or (np.diff(indptr) < 0).any():
        shown = str(indptr.tolist())
        if indptr.size >= 10:
            shown = f"{indptr.size} numbers, the last {indptr[-1]}"
        raise ValueError(
            f"indptr must rise from 0 to the number of items, {n_entries}: got {shown}."
        )


def falls_within_rows(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Mask of the entries whose successor in the same row is smaller."""
    falls = values[1:] < values[:-1]
    # A new row may start lower than the last one ended.
    starts = indptr[(indptr > 0) & (indptr < values.size)]
    falls[starts - 1] = False
    return falls


def check_rows(rows: Any, indptr: Any, items: Any, grades: Any, n_items: int) -> Rows:
    """Compressed rows of judgments, copied and checked, so that kernels can trust them."""
    checked = Rows(
        whole_numbers(np.array(rows), "rows"),
        whole_numbers(np.array(indptr), "indptr"),
        whole_numbers(np.array(items), "items"),
        np.array(grades, dtype=np.float64),
    )
    check_offsets(checked.indptr, checked.items.size)
    check_range(checked.rows, "rows", 0, checked.indptr.size - 1)
    check_range(checked.items, "items", 0, n_items)
    # Equal neighbours fall too, once places are taken off.
    places = np.arange(checked.items.size)
    if falls_within_rows(checked.items - places, checked.indptr).any():
        raise ValueError(
            "items must ascend in each row, none twice: sort them, or build the relevance with "
            "Relevance.from_lists."
        )
    if checked.grades.shape != checked.items.shape:
        raise ValueError(
            f"grades must have one entry for each of {checked.items.size} items: got shape "
            f"{checked.grades.shape}."
        )
    if np.isinf(checked.grades).any():
        raise ValueError("grades must be finite, or NaN for unjudged: got infinity.")
    return checked


def check_one_list(items: np.ndarray) -> None:
    """Raise if a row of ``X`` is a candidate of two queries."""
    counts = np.bincount(items)
    if (counts > 1).any():
        raise ValueError(
            "items must be in one candidate list each, as every row of X is a candidate of one "
            f"query: got item {np.argmax(counts > 1)} in {counts.max()}. Repeat its row of X."
        )


def check_query_items(query_items: Any, n_queries: int, n_items: int) -> np.ndarray:
    """The row of ``X`` that each query is, or -1; copied."""
    numbers = whole_numbers(np.array(query_items), "query_items")
    if numbers.size != n_queries:
        raise ValueError(
            f"query_items must have one entry for each of {n_queries} queries: got {numbers.size}. "
            "Use -1 for queries that are not rows of X."
        )
    check_range(numbers, "query_items", -1, n_items)
    return numbers


def check_weights(weights: Any, n_queries: int) -> np.ndarray:
    """Query weights as an array, 1 each by default."""
    if weights is None:
        return np.ones(n_queries)
    weights = np.array(weights, dtype=float)
    if weights.shape != (n_queries,):
        raise ValueError(
            f"weights must have one entry for each of {n_queries} queries: got shape "
            f"{weights.shape}."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(
            f"weights must be finite and not negative: got {weights[bad][0]}."
        )
    return weights


def check_query_rows(query_rows: Any, n_queries: int, n_items: int) -> np.ndarray:
    """The row of ``X`` that each query is, -1 for separate queries."""
    if query_rows is None:
        return np.full(n_queries, -1)
    rows = np.asarray(query_rows)
    if rows.shape != (n_queries,) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"query_rows must hold a row of X for each of {n_queries} queries: got "
            f"{rows.dtype} of shape {rows.shape}."
        )
    if rows.size and not -1 <= rows.min() <= rows.max() < n_items:
        raise ValueError(
            f"query_rows must be between 0 and {n_items - 1}, or -1 for no row: got "
            f"{rows.min()} to {rows.max()}."
        )
    if np.bincount(rows[rows >= 0], minlength=1).max() > 1:
        raise ValueError("query_rows must not name a row of X twice.")
    return rows
