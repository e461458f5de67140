"""Who is relevant to whom."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ._qrels import Judgment, judgments_of

Unjudged = Literal["irrelevant", "ignore"]
Background = Literal["irrelevant", "unjudged", "absent"]


@dataclass(frozen=True, eq=False)
class Relevance:
    """Judgments of items for queries: relevant with a grade, judged irrelevant, or unjudged.

    Build one with `from_labels`, `from_lists`, `from_qrels` or `from_groups`. A query points at a
    row of judged items, and queries may share a row: class labels cost one row a class, never a
    matrix of items by items. A query that is a row of ``X`` is left out of its own list; its
    duplicates are not.

    The object has the length of ``X`` and is indexed by rows of ``X``, so scikit-learn's splitters
    and searches take it in the place of ``y``. Subsets of queries come from `take_queries`.

    Parameters
    ----------
    n_items : int
        Number of rows of ``X``.
    rows : ndarray of shape (n_queries,)
        The row of judgments each query points at.
    indptr, items, grades : ndarray
        Rows of judgments in compressed form, items ascending in each row. The grade NaN marks a
        candidate that nobody judged.
    own_items : ndarray of shape (n_queries,)
        The row of ``X`` that each query is, or -1.
    background : {"irrelevant", "unjudged", "absent"}
        What an item outside the query's row is. "absent" items are no candidates of the query.
    unjudged : {"irrelevant", "ignore"}
        Whether unjudged items count as irrelevant or leave the list.
    relevant_from : float
        The smallest grade that counts as relevant where relevance is yes or no.
    weights : ndarray of shape (n_queries,)
        Weight of each query in means and in training.
    query_ids, item_ids : ndarray of str or None
        Names that come back in every `Ranking`.

    Examples
    --------
    >>> from rankspace import Relevance
    >>> relevance = Relevance.from_labels(["cat", "dog", "cat", "cat"])
    >>> relevance.relevant(0)
    array([2, 3])
    >>> relevance.n_relevant, relevance.n_irrelevant
    (array([2, 0, 2, 2]), array([1, 3, 1, 1]))
    """

    n_items: int
    rows: np.ndarray
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray
    own_items: np.ndarray
    background: Background
    unjudged: Unjudged
    relevant_from: float
    weights: np.ndarray
    query_ids: np.ndarray | None = None
    item_ids: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.unjudged not in ("irrelevant", "ignore"):
            raise ValueError(f"unjudged must be 'irrelevant' or 'ignore': got {self.unjudged!r}.")
        if not self.relevant_from > 0:
            raise ValueError(
                f"relevant_from must be a grade above 0: got {self.relevant_from!r}. "
                "Grade 0 means judged irrelevant."
            )
        for name, size in (("query_ids", self.n_queries), ("item_ids", self.n_items)):
            _check_ids(getattr(self, name), size, name)
        _check_weights(self.weights, self.n_queries)
        own = self.own_items[self.own_items >= 0]
        if np.bincount(own, minlength=1).max() > 1:
            raise ValueError("query_rows must not name a row of X twice.")

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_labels(
        cls, y: Any, *, query_labels: Any = None, unjudged: Unjudged = "irrelevant", **options: Any
    ) -> Relevance:
        """Items are relevant to a query of the same class.

        Parameters
        ----------
        y : array-like of shape (n_items,)
            Class of each item.
        query_labels : array-like of shape (n_queries,), optional
            Classes of separate queries. By default every row of ``X`` is a query.
        unjudged : {"irrelevant", "ignore"}, default="irrelevant"
            Stored; labels judge every pair, so nothing is unjudged here.
        **options
            ``relevant_from``, ``weights``, ``query_ids``, ``item_ids``; see `Relevance`.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> Relevance.from_labels([0, 0, 1], query_labels=[1]).relevant(0)
        array([2])
        """
        labels = _check_labels(y, "y")
        order = np.argsort(labels, kind="stable")
        in_order = labels[order]
        starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
        indptr = np.append(starts, labels.size)
        rows, own = np.empty_like(order), np.arange(labels.size)
        rows[order] = np.repeat(np.arange(starts.size), np.diff(indptr))
        if query_labels is not None:
            wanted, classes = _check_labels(query_labels, "query_labels"), in_order[starts]
            rows = np.minimum(np.searchsorted(classes, wanted), classes.size - 1)
            # A class that no item has gets an empty row of its own.
            rows = np.where(classes[rows] == wanted, rows, classes.size)
            indptr = np.append(indptr, indptr[-1])
            own = np.full(rows.size, -1)
        return cls._make(
            labels.size, rows, indptr, order, np.ones(labels.size), own,
            background="irrelevant", unjudged=unjudged, **options,
        )  # fmt: skip

    @classmethod
    def from_lists(
        cls,
        relevant: Sequence[Any],
        irrelevant: Sequence[Any] | None = None,
        *,
        n_items: int | None = None,
        query_rows: Any = None,
        unjudged: Unjudged = "irrelevant",
        **options: Any,
    ) -> Relevance:
        """Relevance from lists of item indices, one list a query.

        Relevance need not be symmetric or transitive.

        Parameters
        ----------
        relevant : sequence of n_queries sequences of int, or of mappings {int: grade}
            Relevant items of each query.
        irrelevant : sequence of n_queries sequences of int, optional
            Items judged irrelevant. All others are unjudged.
        n_items : int, optional
            Number of rows of ``X``. If it is left out, there is one list for each row of ``X``
            and the rows are the queries.
        query_rows : array-like of shape (n_queries,), optional
            The row of ``X`` that each query is. If it is left out and ``n_items`` is given, the
            queries are separate from ``X``.
        unjudged : {"irrelevant", "ignore"}, default="irrelevant"
            Whether unjudged items count as irrelevant or leave the list. Lists of irrelevant items
            matter only with "ignore".
        **options
            ``relevant_from``, ``weights``, ``query_ids``, ``item_ids``; see `Relevance`.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> follows = Relevance.from_lists([[1], [2], [1]])
        >>> follows.n_relevant
        array([1, 1, 1])
        """
        n_queries = len(relevant)
        if irrelevant is not None and len(irrelevant) != n_queries:
            raise ValueError(
                f"relevant and irrelevant must have one list for each query: got {n_queries} and "
                f"{len(irrelevant)} lists."
            )
        if n_items is None:
            n_items = n_queries
            query_rows = np.arange(n_queries) if query_rows is None else query_rows
        own = np.full(n_queries, -1) if query_rows is None else np.asarray(query_rows)
        if own.shape != (n_queries,) or (own >= n_items).any():
            raise ValueError(
                f"query_rows must name a row below {n_items} for each of {n_queries} queries: got "
                f"an array of shape {own.shape} with maximum {own.max(initial=-1)}."
            )
        judgments = list(_list_judgments(relevant, irrelevant))
        return cls._from_triples(
            judgments, n_queries, n_items, own, background="unjudged", unjudged=unjudged, **options
        )

    @classmethod
    def from_qrels(
        cls,
        qrels: Any,
        *,
        query_ids: Iterable[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        unknown: Literal["error", "drop"] = "error",
        query_rows: Any = None,
        unjudged: Unjudged = "irrelevant",
        **options: Any,
    ) -> Relevance:
        """Relevance from judgments by name, as retrieval collections publish them.

        Parameters
        ----------
        qrels : path, mapping or dataframe
            A TREC file (query, iteration, item, grade), a BEIR file (tab-separated with a header),
            either also gzipped; ``{query: {item: grade}}`` or ``{query: [items]}``; or a dataframe
            of any library whose columns name query, item and grade.
        query_ids, item_ids : iterable of str, optional
            Names of the queries, and of the rows of ``X``, in their order. By default those that
            the judgments name, in order of appearance.
        unknown : {"error", "drop"}, default="error"
            What to do with judgments of queries or items that are not among the given ids.
        query_rows : array-like of shape (n_queries,), optional
            The row of ``X`` that each query is, if queries are rows.
        unjudged : {"irrelevant", "ignore"}, default="irrelevant"
            Whether unjudged items count as irrelevant or leave the list.
        **options
            ``relevant_from``, ``weights``; see `Relevance`.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> relevance = Relevance.from_qrels({"q1": {"d1": 2, "d2": 0}}, item_ids=["d1", "d2", "d3"])
        >>> relevance.n_relevant, relevance.n_irrelevant
        (array([1]), array([2]))
        """
        judgments = judgments_of(qrels)
        queries = _Names(query_ids, (query for query, _, _ in judgments), "query")
        items = _Names(item_ids, (item for _, item, _ in judgments), "item")
        if unknown == "drop":
            judgments = [j for j in judgments if j[0] in queries.index and j[1] in items.index]
        elif unknown != "error":
            raise ValueError(f"unknown must be 'error' or 'drop': got {unknown!r}.")
        triples = [(queries.find(q), items.find(i), grade) for q, i, grade in judgments]
        n_queries = len(queries.index)
        own = np.full(n_queries, -1) if query_rows is None else np.asarray(query_rows)
        return cls._from_triples(
            triples, n_queries, len(items.index), own, background="unjudged", unjudged=unjudged,
            query_ids=queries.array, item_ids=items.array, **options,
        )  # fmt: skip

    @classmethod
    def from_groups(
        cls, grades: Any, qid: Any, *, unjudged: Unjudged = "irrelevant", **options: Any
    ) -> Relevance:
        """Relevance of candidate lists, as learning-to-rank files hold them.

        Every row of ``X`` is a candidate of one query, and the query has no vector of its own.

        Parameters
        ----------
        grades : array-like of shape (n_items,)
            Grade of each row for its query; NaN for a candidate that nobody judged.
        qid : array-like of shape (n_items,)
            The query of each row, in any order. Queries are numbered by first appearance.
        unjudged : {"irrelevant", "ignore"}, default="irrelevant"
            Whether unjudged candidates count as irrelevant or leave the list.
        **options
            ``relevant_from``, ``weights``, ``item_ids``; see `Relevance`.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> relevance = Relevance.from_groups([2, 0, 1, 0], qid=[7, 7, 9, 9])
        >>> relevance.query_ids, relevance.n_relevant
        (array(['7', '9'], dtype='<U21'), array([1, 1]))
        """
        grades = np.asarray(grades, dtype=float)
        qid = np.asarray(qid)
        if grades.ndim != 1 or grades.shape != qid.shape:
            raise ValueError(
                f"grades and qid must have one entry for each row of X: got shapes {grades.shape} "
                f"and {qid.shape}."
            )
        if grades.size == 0:
            raise ValueError("grades must not be empty: got 0 rows.")
        if np.isinf(grades).any():
            raise ValueError("grades must be finite, or NaN for unjudged: got infinity.")
        names, first, codes = np.unique(qid, return_index=True, return_inverse=True)
        appearance = np.argsort(first, kind="stable")
        rows_of_codes = np.empty(names.size, dtype=np.int64)
        rows_of_codes[appearance] = np.arange(names.size)
        codes = rows_of_codes[codes]
        order = np.argsort(codes, kind="stable")
        indptr = np.concatenate(([0], np.cumsum(np.bincount(codes))))
        return cls._make(
            grades.size, np.arange(names.size), indptr, order, grades[order],
            np.full(names.size, -1), background="absent", unjudged=unjudged,
            query_ids=names[appearance].astype(str), **options,
        )  # fmt: skip

    @classmethod
    def _from_triples(
        cls, triples: Iterable[tuple[int, int, float]], n_queries: int, n_items: int,
        own_items: np.ndarray, **options: Any,
    ) -> Relevance:  # fmt: skip
        table = np.array(list(triples), dtype=float).reshape(-1, 3)
        rows, items, grades = (
            table[:, 0].astype(np.int64),
            table[:, 1].astype(np.int64),
            table[:, 2],
        )
        if not np.isfinite(grades).all():
            raise ValueError("grades must be finite: got NaN or infinity.")
        if items.size and not 0 <= items.min() <= items.max() < n_items:
            bad = items[(items < 0) | (items >= n_items)][0]
            raise ValueError(
                f"items must be rows of X, from 0 to {n_items - 1}: got {bad}. "
                "Pass n_items=... when X has more rows than there are queries."
            )
        order = np.lexsort((items, rows))
        rows, items, grades = rows[order], items[order], grades[order]
        again = (np.diff(rows) == 0) & (np.diff(items) == 0)
        if (again & (np.diff(grades) != 0)).any():
            at = int(np.flatnonzero(again & (np.diff(grades) != 0))[0])
            raise ValueError(
                f"a pair must have one grade: query {rows[at]} and item {items[at]} have "
                f"{grades[at]:g} and {grades[at + 1]:g}."
            )
        keep = np.concatenate(([True], ~again)) if rows.size else np.zeros(0, dtype=bool)
        counts = np.bincount(rows[keep], minlength=n_queries)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        return cls._make(
            n_items, np.arange(n_queries), indptr, items[keep], grades[keep], own_items, **options
        )

    @classmethod
    def _make(
        cls, n_items: int, rows: np.ndarray, indptr: np.ndarray, items: np.ndarray,
        grades: np.ndarray, own_items: np.ndarray, *, background: Background, unjudged: Unjudged,
        relevant_from: float = 1.0, weights: Any = None, query_ids: Any = None,
        item_ids: Any = None,
    ) -> Relevance:  # fmt: skip
        weights = np.ones(rows.size) if weights is None else np.array(weights, dtype=float)
        arrays = [
            np.ascontiguousarray(rows, dtype=np.int64),
            np.ascontiguousarray(indptr, dtype=np.int64),
            np.ascontiguousarray(items, dtype=np.int64),
            np.ascontiguousarray(grades, dtype=np.float64),
            np.array(own_items, dtype=np.int64),
        ]
        for array in (*arrays, weights):
            array.flags.writeable = False
        return cls(
            int(n_items), *arrays, background, unjudged, float(relevant_from), weights,
            _as_ids(query_ids), _as_ids(item_ids),
        )  # fmt: skip

    # ------------------------------------------------------------------ sizes

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.rows.size

    @property
    def shape(self) -> tuple[int]:
        """``(n_items,)``, as scikit-learn expects of ``y``."""
        return (self.n_items,)

    def __len__(self) -> int:
        return self.n_items

    @property
    def queries_are_rows(self) -> bool:
        """Whether every query is a row of ``X``."""
        return self.n_queries > 0 and bool((self.own_items >= 0).all())

    @property
    def has_lists(self) -> bool:
        """Whether each query ranks candidates of its own, not all of ``X``."""
        return self.background == "absent"

    @property
    def counts_background(self) -> bool:
        """Whether items outside a query's row count as irrelevant."""
        return self.background == "irrelevant" or (
            self.background == "unjudged" and self.unjudged == "irrelevant"
        )

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant items of each query, itself left out."""
        return self._count(self.grades >= self.relevant_from)

    @cached_property
    def n_irrelevant(self) -> np.ndarray:
        """Number of items of each query that count as irrelevant, itself left out."""
        if self.counts_background:
            return self.n_items - (self.own_items >= 0) - self.n_relevant
        irrelevant = self.grades < self.relevant_from
        if self.unjudged == "irrelevant":
            irrelevant |= np.isnan(self.grades)
        return self._count(irrelevant)

    @property
    def trainable(self) -> np.ndarray:
        """Mask of the queries with something relevant and something irrelevant."""
        return (self.n_relevant > 0) & (self.n_irrelevant > 0)

    def _count(self, judged: np.ndarray) -> np.ndarray:
        """Count the marked judgments of each query, its own item left out."""
        before = np.concatenate(([0], np.cumsum(judged)))
        counts = np.diff(before[self.indptr])[self.rows]
        own = self._own_judgments
        return counts - np.where(own >= 0, np.append(judged, False)[own], False)

    @cached_property
    def _own_judgments(self) -> np.ndarray:
        """Where each query's own item stands in its row of judgments, or -1."""
        keys = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr)) * self.n_items
        keys += self.items
        wanted = self.rows * self.n_items + self.own_items
        at = np.searchsorted(keys, wanted)
        found = (self.own_items >= 0) & (at < keys.size)
        found[found] = keys[at[found]] == wanted[found]
        return np.where(found, at, -1)

    # ------------------------------------------------------------------ one query

    def judged(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Judged items of a query and their grades, itself left out."""
        row = self.rows[query]
        part = slice(self.indptr[row], self.indptr[row + 1])
        others = (self.items[part] != self.own_items[query]) & ~np.isnan(self.grades[part])
        return self.items[part][others], self.grades[part][others]

    def relevant(self, query: int) -> np.ndarray:
        """Relevant items of a query, ascending."""
        items, grades = self.judged(query)
        return items[grades >= self.relevant_from]

    def irrelevant(self, query: int) -> np.ndarray:
        """Items that count as irrelevant for a query, ascending. Costs O(n_items)."""
        counts = np.full(self.n_items, self.counts_background)
        row = self.rows[query]
        part = slice(self.indptr[row], self.indptr[row + 1])
        grades = self.grades[part]
        unjudged = np.isnan(grades) & (self.unjudged == "irrelevant")
        counts[self.items[part]] = (grades < self.relevant_from) | unjudged
        if self.own_items[query] >= 0:
            counts[self.own_items[query]] = False
        return np.flatnonzero(counts)

    # ------------------------------------------------------------------ parts

    def take_queries(self, queries: Any) -> Relevance:
        """Keep some queries, in the given order; the items stay.

        Parameters
        ----------
        queries : array-like of int or bool
            Which queries.

        Returns
        -------
        Relevance
        """
        picked = _row_numbers(queries, self.n_queries)
        used, rows = np.unique(self.rows[picked], return_inverse=True)
        counts = np.diff(self.indptr)[used]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        at = np.repeat(self.indptr[used] - indptr[:-1], counts) + np.arange(indptr[-1])
        return self._replace(
            rows=rows, indptr=indptr, items=self.items[at], grades=self.grades[at],
            own_items=self.own_items[picked], weights=self.weights[picked],
            query_ids=None if self.query_ids is None else self.query_ids[picked],
        )  # fmt: skip

    def __getitem__(self, rows: Any) -> Relevance:
        """Keep some rows of ``X``, as scikit-learn's splitters ask for.

        Queries that are rows go with their row, candidate lists shrink to the rows kept.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        picked = _row_numbers(rows, self.n_items)
        if self.has_lists:
            part, kept = self._take_items(picked), slice(None)
            lengths = np.diff(part.indptr)[part.rows]
            kept = np.flatnonzero(lengths > 0)
            return part.take_queries(kept)
        if not self.queries_are_rows:
            raise ValueError(
                "relevance with separate queries cannot be split by rows of X: the queries are no "
                "rows of X. Use rankspace.tune, which splits the queries, or take_queries."
            )
        query_of = np.full(self.n_items, -1)
        query_of[self.own_items] = np.arange(self.n_queries)
        queries = query_of[picked]
        own = np.flatnonzero(queries >= 0)
        # The own items are set anew: a row drawn twice is two queries.
        part = self.take_queries(queries[own])._take_items(picked)
        return part._replace(own_items=own)

    def _take_items(self, picked: np.ndarray) -> Relevance:
        shape = (self.indptr.size - 1, self.n_items)
        table = scipy.sparse.csr_array((self.grades, self.items, self.indptr), shape=shape)
        table = table[:, picked]
        table.sort_indices()
        return self._replace(
            n_items=picked.size, indptr=table.indptr, items=table.indices, grades=table.data,
            own_items=np.full(self.n_queries, -1),
            item_ids=None if self.item_ids is None else _unless_repeated(self.item_ids[picked]),
        )  # fmt: skip

    def _replace(self, **changes: Any) -> Relevance:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | changes
        return type(self)._make(**fields)

    def with_options(
        self, *, unjudged: Unjudged | None = None, relevant_from: float | None = None,
        weights: Any = None,
    ) -> Relevance:  # fmt: skip
        """The same judgments under another rule.

        Parameters
        ----------
        unjudged : {"irrelevant", "ignore"}, optional
            Whether unjudged items count as irrelevant or leave the list.
        relevant_from : float, optional
            The smallest grade that counts as relevant.
        weights : array-like of shape (n_queries,), optional
            Weight of each query.

        Returns
        -------
        Relevance
        """
        changes = {"unjudged": unjudged, "relevant_from": relevant_from, "weights": weights}
        return self._replace(**{name: v for name, v in changes.items() if v is not None})

    def __repr__(self) -> str:
        return (
            f"Relevance({self.n_queries} queries, {self.n_items} items, "
            f"{self.items.size} judgments, unjudged={self.unjudged!r})"
        )


class _Names:
    """Numbers for the names of queries or items."""

    def __init__(
        self, given: Iterable[Hashable] | None, seen: Iterable[Hashable], kind: str
    ) -> None:
        names = [str(name) for name in (dict.fromkeys(seen) if given is None else given)]
        self.index = {name: i for i, name in enumerate(names)}
        self.array = np.array(names, dtype=str)
        self.kind = kind
        if len(self.index) != len(names):
            raise ValueError(f"{kind}_ids must not repeat a name.")

    def find(self, name: str) -> int:
        if name not in self.index:
            raise ValueError(
                f"qrels must name known {self.kind} ids: got {name!r}, which is not among the "
                f"{len(self.index)} given. Pass unknown='drop' to leave such judgments out."
            )
        return self.index[name]


def _list_judgments(
    relevant: Sequence[Any], irrelevant: Sequence[Any] | None
) -> Iterable[Judgment]:
    for query, items in enumerate(relevant):
        graded = items.items() if isinstance(items, Mapping) else ((item, 1.0) for item in items)
        yield from ((query, item, grade) for item, grade in graded)
    for query, items in enumerate(irrelevant or ()):
        yield from ((query, item, 0.0) for item in items)


def _row_numbers(rows: Any, n: int) -> np.ndarray:
    """Turn a slice, a mask or an array of indices into row numbers."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    rows = np.asarray(rows)
    if rows.ndim != 1:
        raise TypeError(f"rows must be a slice, a mask or a 1-d array of indices: got {rows!r}.")
    if rows.dtype == bool:
        if rows.size != n:
            raise ValueError(f"a mask must have {n} entries: got {rows.size}.")
        return np.flatnonzero(rows)
    return np.arange(n)[rows.astype(np.int64)]


def _check_labels(y: Any, name: str) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(
            f"{name} must be a non-empty 1-d array of labels: got shape {labels.shape}."
        )
    missing = np.array([v is None or v != v for v in labels]) if labels.dtype == object else (
        np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(1, dtype=bool)
    )  # fmt: skip
    if missing.any():
        raise ValueError(
            f"{name} must not hold missing labels: got {labels[np.flatnonzero(missing)[0]]} at row "
            f"{np.flatnonzero(missing)[0]}. Leave such rows out, or name the judged ones with "
            "Relevance.from_lists."
        )
    return labels.astype(str) if labels.dtype == object else labels


def _as_ids(ids: Any) -> np.ndarray | None:
    return None if ids is None else np.asarray(ids).astype(str)


def _unless_repeated(ids: np.ndarray) -> np.ndarray | None:
    return ids if np.unique(ids).size == ids.size else None


def _check_ids(ids: np.ndarray | None, size: int, name: str) -> None:
    if ids is None:
        return
    if ids.shape != (size,):
        raise ValueError(f"{name} must have {size} entries: got shape {ids.shape}.")
    if np.unique(ids).size != size:
        raise ValueError(f"{name} must not repeat a name.")


def _check_weights(weights: np.ndarray, n_queries: int) -> None:
    if weights.shape != (n_queries,):
        raise ValueError(
            f"weights must have one entry for each of {n_queries} queries: got shape "
            f"{weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("weights must be finite and not negative.")
    if n_queries and weights.sum() == 0:
        raise ValueError("weights must not all be 0.")
