"""Who is relevant to whom."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .qrels import judgments_of
from .rows import (
    Names,
    Rows,
    rows_of_groups,
    rows_of_labels,
    rows_of_triples,
    triples_of_lists,
)
from .table import Background, JudgmentTable, Unjudged


class Relevance(JudgmentTable):
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
    query_items : ndarray of shape (n_queries,)
        The row of ``X`` that each query is, or -1.
    background : {"irrelevant", "unjudged", "absent"}
        What an item outside the query's row is. "absent" items are no candidates of the query.
    unjudged : {"irrelevant", "ignore"}
        Whether unjudged items count as irrelevant or leave the list.
    min_relevant_grade : float
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

    @classmethod
    def _build(
        cls,
        n_items: int,
        rows: Rows,
        query_items: Any,
        background: Background,
        **options: Any,
    ) -> Relevance:
        """What constructors ask beyond the class: parts may lack weight or repeat a query."""
        own = (
            np.full(rows.rows.size, -1)
            if query_items is None
            else np.asarray(query_items)
        )
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

    @classmethod
    def from_labels(
        cls,
        y: Any,
        *,
        query_labels: Any = None,
        unjudged: Unjudged = "irrelevant",
        min_relevant_grade: float = 1.0,
        weights: Any = None,
        query_ids: Any = None,
        item_ids: Any = None,
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
        min_relevant_grade, weights, query_ids, item_ids
            See `Relevance`.

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
        return cls._build(
            rows.items.size,
            rows,
            own,
            "irrelevant",
            unjudged=unjudged,
            min_relevant_grade=min_relevant_grade,
            weights=weights,
            query_ids=query_ids,
            item_ids=item_ids,
        )

    @classmethod
    def from_lists(
        cls,
        relevant: Sequence[Any],
        irrelevant: Sequence[Any] | None = None,
        *,
        n_items: int | None = None,
        query_rows: Any = None,
        unjudged: Unjudged = "irrelevant",
        min_relevant_grade: float = 1.0,
        weights: Any = None,
        query_ids: Any = None,
        item_ids: Any = None,
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
        min_relevant_grade, weights, query_ids, item_ids
            See `Relevance`.

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
        rows = rows_of_triples(
            *triples_of_lists(relevant, irrelevant), n_queries, n_items
        )
        return cls._build(
            n_items,
            rows,
            query_rows,
            "unjudged",
            unjudged=unjudged,
            min_relevant_grade=min_relevant_grade,
            weights=weights,
            query_ids=query_ids,
            item_ids=item_ids,
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
        min_relevant_grade: float = 1.0,
        weights: Any = None,
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
        min_relevant_grade, weights
            See `Relevance`.

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
            judgments = [
                j for j in judgments if j[0] in queries.index and j[1] in items.index
            ]
        elif unknown != "error":
            raise ValueError(f"unknown must be 'error' or 'drop': got {unknown!r}.")
        rows = rows_of_triples(
            np.array(
                [queries.find(query) for query, _, _ in judgments], dtype=np.int64
            ),
            np.array([items.find(item) for _, item, _ in judgments], dtype=np.int64),
            np.array([grade for _, _, grade in judgments], dtype=float),
            queries.array.size,
            items.array.size,
            (queries.array, items.array),
        )
        return cls._build(
            items.array.size,
            rows,
            query_rows,
            "unjudged",
            unjudged=unjudged,
            min_relevant_grade=min_relevant_grade,
            weights=weights,
            query_ids=queries.array,
            item_ids=items.array,
        )

    @classmethod
    def from_groups(
        cls,
        grades: Any,
        qid: Any,
        *,
        unjudged: Unjudged = "irrelevant",
        min_relevant_grade: float = 1.0,
        weights: Any = None,
        item_ids: Any = None,
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
        min_relevant_grade, weights, item_ids
            See `Relevance`.

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
            rows.items.size,
            rows,
            None,
            "absent",
            unjudged=unjudged,
            min_relevant_grade=min_relevant_grade,
            weights=weights,
            query_ids=names,
            item_ids=item_ids,
        )
