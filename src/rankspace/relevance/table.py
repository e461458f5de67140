"""A table of judgments: sizes, single queries, and parts of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from .rows import check_ids, check_weights, row_numbers

Unjudged = Literal["irrelevant", "ignore"]
Background = Literal["irrelevant", "unjudged", "absent"]


@dataclass(frozen=True, eq=False)
class JudgmentTable:
    """Rows of judgments and the queries that point at them; see `Relevance`."""

    n_items: int
    rows: np.ndarray
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray
    query_items: np.ndarray
    background: Background
    unjudged: Unjudged = "irrelevant"
    min_relevant_grade: float = 1.0
    weights: Any = None
    query_ids: Any = None
    item_ids: Any = None

    def __post_init__(self) -> None:
        if self.unjudged not in ("irrelevant", "ignore"):
            raise ValueError(
                f"unjudged must be 'irrelevant' or 'ignore': got {self.unjudged!r}."
            )
        if not self.min_relevant_grade > 0:
            raise ValueError(
                f"min_relevant_grade must be a grade above 0: got {self.min_relevant_grade!r}. "
                "Grade 0 means judged irrelevant."
            )
        self._freeze("weights", check_weights(self.weights, self.n_queries))
        self._freeze(
            "query_ids", check_ids(self.query_ids, self.n_queries, "query_ids")
        )
        self._freeze("item_ids", check_ids(self.item_ids, self.n_items, "item_ids"))
        for name in ("rows", "indptr", "items", "query_items"):
            self._freeze(name, np.array(getattr(self, name), dtype=np.int64))
        self._freeze("grades", np.array(self.grades, dtype=np.float64))

    def _freeze(self, name: str, array: np.ndarray | None) -> None:
        if array is not None:
            array.flags.writeable = False
        object.__setattr__(self, name, array)

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
        return bool((self.query_items >= 0).all())

    @property
    def has_candidate_lists(self) -> bool:
        """Whether each query ranks candidates of its own, not all of ``X``."""
        return self.background == "absent"

    @property
    def unlisted_is_irrelevant(self) -> bool:
        """Whether items outside a query's row count as irrelevant."""
        return self.background == "irrelevant" or (
            self.background == "unjudged" and self.unjudged == "irrelevant"
        )

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant items of each query, itself left out."""
        return self._count(self.grades >= self.min_relevant_grade)

    @cached_property
    def n_positive(self) -> np.ndarray:
        """Number of items of each query with a grade above 0, itself left out."""
        return self._count(self.grades > 0)

    @cached_property
    def n_irrelevant(self) -> np.ndarray:
        """Number of items of each query that count as irrelevant, itself left out."""
        if self.unlisted_is_irrelevant:
            return _frozen(self.n_items - (self.query_items >= 0) - self.n_relevant)
        irrelevant = self.grades < self.min_relevant_grade
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
        return _frozen(
            counts - np.where(own >= 0, np.append(judged, False)[own], False)
        )

    @cached_property
    def _own_judgments(self) -> np.ndarray:
        """Where each query's own item stands in its row of judgments, or -1."""
        keys = (
            np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
            * self.n_items
        )
        keys += self.items
        wanted = self.rows * self.n_items + self.query_items
        at = np.searchsorted(keys, wanted)
        found = (self.query_items >= 0) & (at < keys.size)
        found[found] = keys[at[found]] == wanted[found]
        return np.where(found, at, -1)

    # ------------------------------------------------------------------ one query

    def judged(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Judged items of a query and their grades, itself left out."""
        row = self.rows[query]
        part = slice(self.indptr[row], self.indptr[row + 1])
        others = (self.items[part] != self.query_items[query]) & ~np.isnan(
            self.grades[part]
        )
        return self.items[part][others], self.grades[part][others]

    def relevant(self, query: int) -> np.ndarray:
        """Relevant items of a query, ascending."""
        items, grades = self.judged(query)
        return items[grades >= self.min_relevant_grade]

    def irrelevant(self, query: int) -> np.ndarray:
        """Items that count as irrelevant for a query, ascending. Costs O(n_items)."""
        counts = np.full(self.n_items, self.unlisted_is_irrelevant)
        row = self.rows[query]
        part = slice(self.indptr[row], self.indptr[row + 1])
        grades = self.grades[part]
        unjudged = np.isnan(grades) & (self.unjudged == "irrelevant")
        counts[self.items[part]] = (grades < self.min_relevant_grade) | unjudged
        if self.query_items[query] >= 0:
            counts[self.query_items[query]] = False
        return np.flatnonzero(counts)

    def judged_lists(self) -> Any:
        """Judged items of each query, itself left out, as a sparse table of their grades."""
        kept = ~np.isnan(self.grades) | (self.unjudged == "irrelevant")
        grades = np.where(np.isnan(self.grades), 0.0, self.grades)[kept]
        indptr = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        shape = (indptr.size - 1, self.n_items)
        import scipy.sparse

        table = scipy.sparse.csr_array((grades, self.items[kept], indptr), shape=shape)[
            self.rows
        ]
        owner = np.repeat(np.arange(self.n_queries), np.diff(table.indptr))
        others = table.indices != self.query_items[owner]
        counts = np.bincount(owner[others], minlength=self.n_queries)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        parts = (table.data[others], table.indices[others], indptr)
        return scipy.sparse.csr_array(parts, shape=table.shape)

    # ------------------------------------------------------------------ parts

    def take_queries(self, queries: Any) -> Self:
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
        return self._pick(picked, self.query_items[picked])

    def _pick(self, queries: np.ndarray, query_items: np.ndarray) -> Self:
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
            query_items=query_items,
            weights=self.weights[queries],
            query_ids=_unless_repeated(self.query_ids, queries),
        )

    def __getitem__(self, rows: Any) -> Self:
        """Keep some rows of ``X``, as scikit-learn's splitters ask for.

        Queries that are rows go with their row, candidate lists shrink to the rows kept.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        picked = row_numbers(rows, self.n_items)
        if self.has_candidate_lists:
            part = self._take_items(picked)
            return part.take_queries(np.diff(part.indptr)[part.rows] > 0)
        if not self.queries_are_rows:
            raise ValueError(
                "relevance with separate queries cannot be split by rows of X: the queries are no "
                "rows of X. Use rankspace.tune, which splits the queries, or take_queries."
            )
        query_of = np.full(self.n_items, -1)
        query_of[self.query_items] = np.arange(self.n_queries)
        queries = query_of[picked]
        own = np.flatnonzero(queries >= 0)
        if np.sum(query_of >= 0) < self.n_queries:
            raise ValueError(
                "relevance that repeats a query cannot be split by rows of X."
            )
        separate = self._pick(queries[own], np.full(own.size, -1))
        return replace(separate._take_items(picked), query_items=own)

    def _take_items(self, picked: np.ndarray) -> Self:
        shape = (self.indptr.size - 1, self.n_items)
        import scipy.sparse

        table = scipy.sparse.csr_array(
            (self.grades, self.items, self.indptr), shape=shape
        )
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
