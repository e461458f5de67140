"""Who is relevant to whom."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ._judgments import (
    Names,
    Rows,
    check_ids,
    check_weights,
    row_numbers,
    rows_of_groups,
    rows_of_labels,
    rows_of_triples,
    triples_of_lists,
)
from ._qrels import judgments_of

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
    and searches take it in the place of ``y``. Subsets of queries come from `take_queries`, the
    same judgments under another rule from ``dataclasses.replace(relevance, unjudged="ignore")``.

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
    unjudged: Unjudged = "irrelevant"
    relevant_from: float = 1.0
    weights: Any = None
    query_ids: Any = None
    item_ids: Any = None

    def __post_init__(self) -> None:
        if self.unjudged not in ("irrelevant", "ignore"):
            raise ValueError(f"unjudged must be 'irrelevant' or 'ignore': got {self.unjudged!r}.")
        if not self.relevant_from > 0:
            raise ValueError(
                f"relevant_from must be a grade above 0: got {self.relevant_from!r}. "
                "Grade 0 means judged irrelevant."
            )
        self._freeze("weights", check_weights(self.weights, self.n_queries))
        self._freeze("query_ids", check_ids(self.query_ids, self.n_queries, "query_ids"))
        self._freeze("item_ids", check_ids(self.item_ids, self.n_items, "item_ids"))
        for name in ("rows", "indptr", "items", "own_items"):
            self._freeze(name, np.array(getattr(self, name), dtype=np.int64))
        self._freeze("grades", np.array(self.grades, dtype=np.float64))

    @classmethod
    def _build(
        cls, n_items: int, rows: Rows, own_items: Any, background: Background, **options: Any
    ) -> Relevance:
        """What constructors ask beyond the class: parts may lack weight or repeat a query."""
        own = np.full(rows.rows.size, -1) if own_items is None else np.asarray(own_items)
        if own.shape != rows.rows.shape or own.dtype.kind not in "iu":
            raise ValueError(
                f"query_rows must name a row of X for each of {rows.rows.size} queries: got "
                f"{own.dtype} of shape {own.shape}."
            )
        if own.size and not -1 <= own.min() <= own.max() < n_items:
            raise ValueError(
                f"query_rows must lie from 0 to {n_items - 1}, or be -1 for no row: got "
                f"{own.min()} to {own.max()}."
            )
        if np.bincount(own[own >= 0], minlength=1).max() > 1:
            raise ValueError("query_rows must not name a row of X twice.")
        relevance = cls(n_items, *rows, own, background, **options)
        if relevance.n_queries and not relevance.weights.any():
            raise ValueError("weights must not all be 0.")
        return relevance

    def _freeze(self, name: str, array: np.ndarray | None) -> None:
        if array is not None:
            array.flags.writeable = False
        object.__setattr__(self, name, array)

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
        rows = rows_of_labels(y, query_labels)
        own = np.arange(rows.items.size) if query_labels is None else None
        return cls._build(rows.items.size, rows, own, "irrelevant", unjudged=unjudged, **options)

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
        rows = rows_of_triples(*triples_of_lists(relevant, irrelevant), n_queries, n_items)
        return cls._build(n_items, rows, query_rows, "unjudged", unjudged=unjudged, **options)

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
        >>> qrels = {"q1": {"d1": 2, "d2": 0}}
        >>> relevance = Relevance.from_qrels(qrels, item_ids=["d1", "d2", "d3"])
        >>> relevance.n_relevant, relevance.n_irrelevant
        (array([1]), array([2]))
        """
        judgments = judgments_of(qrels)
        if query_ids is None and isinstance(qrels, Mapping):
            query_ids = qrels.keys()
        queries = Names(query_ids, (query for query, _, _ in judgments), "query")
        items = Names(item_ids, (item for _, item, _ in judgments), "item")
        if unknown == "drop":
            judgments = [j for j in judgments if j[0] in queries.index and j[1] in items.index]
        elif unknown != "error":
            raise ValueError(f"unknown must be 'error' or 'drop': got {unknown!r}.")
        rows = rows_of_triples(
            np.array([queries.find(query) for query, _, _ in judgments], dtype=np.int64),
            np.array([items.find(item) for _, item, _ in judgments], dtype=np.int64),
            np.array([grade for _, _, grade in judgments], dtype=float),
            queries.array.size,
            items.array.size,
            (queries.array, items.array),
        )
        options |= {"query_ids": queries.array, "item_ids": items.array, "unjudged": unjudged}
        return cls._build(items.array.size, rows, query_rows, "unjudged", **options)

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
        rows, names = rows_of_groups(grades, qid)
        return cls._build(
            rows.items.size, rows, None, "absent", unjudged=unjudged, query_ids=names, **options
        )

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
        return bool((self.own_items >= 0).all())

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
    def n_positive(self) -> np.ndarray:
        """Number of items of each query with a grade above 0, itself left out."""
        return self._count(self.grades > 0)

    @cached_property
    def n_irrelevant(self) -> np.ndarray:
        """Number of items of each query that count as irrelevant, itself left out."""
        if self.counts_background:
            return _frozen(self.n_items - (self.own_items >= 0) - self.n_relevant)
        irrelevant = self.grades < self.relevant_from
        if self.unjudged == "irrelevant":
            irrelevant |= np.isnan(self.grades)
        return self._count(irrelevant)

    @cached_property
    def positive_grades(self) -> tuple[np.ndarray, np.ndarray]:
        """Grades above 0 of each row of judgments from the best down: where rows start, grades."""
        positive = self.grades > 0
        indptr = np.concatenate(([0], np.cumsum(positive)))[self.indptr]
        grades = self.grades[positive]
        if grades.size and (grades != grades[0]).any():
            rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
            grades = grades[np.lexsort((-grades, rows))]
        return _frozen(indptr), _frozen(grades)

    @property
    def trainable(self) -> np.ndarray:
        """Mask of the queries with something relevant and something irrelevant."""
        return (self.n_relevant > 0) & (self.n_irrelevant > 0)

    def _count(self, judged: np.ndarray) -> np.ndarray:
        """Count the marked judgments of each query, its own item left out."""
        before = np.concatenate(([0], np.cumsum(judged)))
        counts = np.diff(before[self.indptr])[self.rows]
        own = self._own_judgments
        return _frozen(counts - np.where(own >= 0, np.append(judged, False)[own], False))

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
        picked = row_numbers(queries, self.n_queries)
        return self._pick(picked, self.own_items[picked])

    def _pick(self, queries: np.ndarray, own_items: np.ndarray) -> Relevance:
        used, rows = np.unique(self.rows[queries], return_inverse=True)
        counts = np.diff(self.indptr)[used]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        at = np.repeat(self.indptr[used] - indptr[:-1], counts) + np.arange(indptr[-1])
        return replace(
            self,
            rows=rows,
            indptr=indptr,
            items=self.items[at],
            grades=self.grades[at],
            own_items=own_items,
            weights=self.weights[queries],
            query_ids=_unless_repeated(self.query_ids, queries),
        )

    def __getitem__(self, rows: Any) -> Relevance:
        """Keep some rows of ``X``, as scikit-learn's splitters ask for.

        Queries that are rows go with their row, candidate lists shrink to the rows kept.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        picked = row_numbers(rows, self.n_items)
        if self.has_lists:
            part = self._take_items(picked)
            return part.take_queries(np.diff(part.indptr)[part.rows] > 0)
        if not self.queries_are_rows:
            raise ValueError(
                "relevance with separate queries cannot be split by rows of X: the queries are no "
                "rows of X. Use rankspace.tune, which splits the queries, or take_queries."
            )
        query_of = np.full(self.n_items, -1)
        query_of[self.own_items] = np.arange(self.n_queries)
        queries = query_of[picked]
        own = np.flatnonzero(queries >= 0)
        if np.sum(query_of >= 0) < self.n_queries:
            raise ValueError("relevance that repeats a query cannot be split by rows of X.")
        separate = self._pick(queries[own], np.full(own.size, -1))
        return replace(separate._take_items(picked), own_items=own)

    def _take_items(self, picked: np.ndarray) -> Relevance:
        shape = (self.indptr.size - 1, self.n_items)
        table = scipy.sparse.csr_array((self.grades, self.items, self.indptr), shape=shape)
        table = table[:, picked]
        table.sort_indices()
        return replace(
            self,
            n_items=picked.size,
            indptr=table.indptr,
            items=table.indices,
            grades=table.data,
            item_ids=_unless_repeated(self.item_ids, picked),
        )

    def __repr__(self) -> str:
        return (
            f"Relevance({self.n_queries} queries, {self.n_items} items, "
            f"{self.items.size} judgments, unjudged={self.unjudged!r})"
        )


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _unless_repeated(ids: np.ndarray | None, picked: np.ndarray) -> np.ndarray | None:
    """Names of what was picked; none if something was picked twice."""
    return None if ids is None or np.unique(picked).size < picked.size else ids[picked]
