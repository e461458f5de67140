"""Relevance judgments: which items are relevant to which queries, and how much."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Self, get_args

import numpy as np

from .._engine.checks import check_count
from .._engine.tables import as_html
from .clicks import grades_of_clicks
from .constraints import rows_from_pairs, rows_from_triplets
from .joins import check_numbering, join_error, row_names, stray_ids
from .qrels import Judgment, judgments_of
from .rows import (
    Names,
    Rows,
    check_ids,
    check_no_matrix,
    check_one_list,
    check_query_items,
    check_query_rows,
    check_rows,
    check_weights,
    gather_rows,
    indptr_of,
    row_numbers,
    rows_from_groups,
    rows_from_labels,
    rows_from_triples,
    take_or_none,
    triples_from_lists,
)

logger = logging.getLogger("rankspace")

Unjudged = Literal["irrelevant", "ignore"]
Background = Literal["irrelevant", "unjudged", "absent"]
BACKGROUNDS = get_args(Background)


@dataclass(frozen=True, eq=False)
class Relevance:
    """Relevance judgments of items for queries: a grade, judged irrelevant, or unjudged.

    Build one with `from_labels`, `from_lists`, `from_qrels`, `from_clicks`, `from_groups`,
    `from_pairs` or `from_triplets`. A query points at a row of judged items, and queries may share
    a row: class labels cost one row a class, never a matrix of items by items. A query that is a
    row of ``X`` is left out of its own list; its duplicates are not.

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
    known_by_name : tuple of str
        Which of "query" and "item" are known by id only: `from_qrels` found their ids in the
        judgments, in an order that is not that of any rows. They are joined by id, never by
        position.
    teacher : str, optional
        The ranker that these judgments come from, if not from people: see `from_ranking`. Reports
        then say that they measure agreement with the teacher.
    n_items_is_open : bool
        Whether `from_lists` was not told ``n_items``, so that the data decide; see `for_items`.

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
    query_items: np.ndarray
    background: Background
    unjudged: Unjudged = "irrelevant"
    min_relevant_grade: float = 1.0
    weights: Any = None
    query_ids: Any = None
    item_ids: Any = None
    known_by_name: tuple[str, ...] = ()
    teacher: str | None = None
    n_items_is_open: bool = False

    def __post_init__(self) -> None:
        if self.unjudged not in ("irrelevant", "ignore"):
            raise ValueError(
                f"unjudged must be 'irrelevant' or 'ignore': got {self.unjudged!r}."
            )
        if not 0 < self.min_relevant_grade < np.inf:
            raise ValueError(
                f"min_relevant_grade must be a finite grade above 0: got "
                f"{self.min_relevant_grade!r}. "
                "Grade 0 means judged irrelevant."
            )
        if self.background not in BACKGROUNDS:
            raise ValueError(
                f"background must be one of {', '.join(BACKGROUNDS)}: got {self.background!r}."
            )
        if not isinstance(self.n_items, Integral) or self.n_items < 0:
            raise ValueError(
                f"n_items must be the number of rows of X: got {self.n_items!r}."
            )
        rows = check_rows(self.rows, self.indptr, self.items, self.grades, self.n_items)
        n_queries = rows.rows.size
        if self.background == "absent":
            check_one_list(rows.items)
        checked = {
            **rows._asdict(),
            "query_items": check_query_items(self.query_items, n_queries, self.n_items),
            "weights": check_weights(self.weights, n_queries),
            "query_ids": check_ids(self.query_ids, n_queries, "query_ids"),
            "item_ids": check_ids(self.item_ids, self.n_items, "item_ids"),
        }
        self._set(checked)

    def _set(self, values: Mapping[str, Any]) -> None:
        """Store fields, their arrays made read-only."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _with(self, **changes: Any) -> Self:
        """A copy with other fields, not checked again: a subset of valid rows is valid."""
        copy = object.__new__(type(self))
        copy._set({field.name: getattr(self, field.name) for field in fields(self)})
        copy._set(changes)
        return copy

    # ------------------------------------------------------------------ constructors

    @classmethod
    def _build(
        cls,
        n_items: int,
        rows: Rows,
        query_rows: Any,
        background: Background,
        *options: Any,
    ) -> Relevance:
        """Check what must hold of a whole relevance but not of its subsets, then construct."""
        query_items = check_query_rows(query_rows, rows.rows.size, n_items)
        relevance = cls(n_items, *rows, query_items, background, *options)
        if relevance.n_queries and not relevance.weights.any():
            raise ValueError("weights must not all be 0.")
        return relevance

    @classmethod
    def from_labels(
        cls,
        y: Any,
        *,
        query_labels: Any = None,
        unlabelled: Any = None,
        unjudged: Unjudged = "irrelevant",
        min_relevant_grade: float = 1.0,
        weights: Any = None,
        query_ids: Any = None,
        item_ids: Any = None,
    ) -> Relevance:
        """Relevance from class labels: items are relevant to queries of their class.

        Parameters
        ----------
        y : array-like of shape (n_items,)
            Class of each item.
        query_labels : array-like of shape (n_queries,), optional
            Classes of separate queries. By default every row of ``X`` with a label is a query.
        unlabelled : label, optional
            What ``y`` holds in rows without a label, such as -1; NaN stands for any missing value.
            These rows are no queries, and as items they are unjudged. Each class then costs a row
            of all labelled items. By default every row has a label, and -1 is only allowed as one
            of the two classes -1 and 1.
        unjudged : {"irrelevant", "ignore"}, default="irrelevant"
            Whether rows without a label count as irrelevant or leave the list.
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
        >>> Relevance.from_labels([0, 0, 1, 1, -1], unlabelled=-1).n_queries
        4
        """
        rows, labelled = rows_from_labels(y, query_labels, unlabelled)
        query_rows = None
        if query_labels is None:
            query_rows = np.flatnonzero(labelled)
        background: Background = "irrelevant" if labelled.all() else "unjudged"
        options = (unjudged, min_relevant_grade, weights, query_ids, item_ids)
        return cls._build(labelled.size, rows, query_rows, background, *options)

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
        """Relevance from lists of item indices, one list per query.

        Relevance need not be symmetric or transitive.

        Parameters
        ----------
        relevant : sequence of n_queries sequences of int, or of mappings {int: grade}
            Relevant items of each query.
        irrelevant : sequence of n_queries sequences of int, optional
            Items judged irrelevant. All others are unjudged.
        n_items : int, optional
            Number of rows of ``X``. If it is left out, estimators, `tune` and `evaluate` take it
            from their data: with separate queries there is one list for each of these, otherwise
            one for each row of ``X``. `evaluate` of a `Ranking` needs it if row i answers query i.
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
        is_open = n_items is None and query_rows is None and item_ids is None
        if n_items is None:
            n_items = n_queries
            if query_rows is None:
                query_rows = np.arange(n_queries)
        check_no_matrix(relevant, n_items)
        triples = triples_from_lists(relevant, irrelevant)
        if is_open and triples[1].max(initial=-1) >= n_items:
            # So the queries are no rows of X.
            n_items = int(triples[1].max()) + 1
            query_rows = None
        rows = rows_from_triples(*triples, n_queries, n_items)
        options = (unjudged, min_relevant_grade, weights, query_ids, item_ids)
        relevance = cls._build(n_items, rows, query_rows, "unjudged", *options)
        return relevance._with(n_items_is_open=is_open)

    def for_items(self, n_items: int, separate_queries: bool) -> Relevance:
        """The relevance for this number of items, if `from_lists` was not told it."""
        n_listed = int(self.items.max(initial=-1)) + 1
        if not self.n_items_is_open or n_listed > n_items:
            return self
        if not separate_queries:
            return self._with(n_items_is_open=False)
        query_items = np.full(self.n_queries, -1)
        return self._with(
            n_items=n_items, query_items=query_items, n_items_is_open=False
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
        """Relevance from qrels: judgments by query id and item id, as TREC and BEIR have them.

        Parameters
        ----------
        qrels : path, mapping or dataframe
            A TREC file (query, iteration, item, grade), or a table separated by tabs or commas
            with a header that names query, item and grade, as BEIR has it, either also gzipped;
            ``{query: {item: grade}}`` or ``{query: [items]}``; or a dataframe of any library whose
            columns name query, item and grade.
        query_ids, item_ids : iterable of str, optional
            Names of the queries, and of the rows of ``X``, in their order. By default those that
            the judgments name, in order of appearance: such queries or items are joined by id only,
            and refused where vectors or rankings without ids would be joined by position.
        unknown : {"error", "drop"}, default="error"
            What to do with judgments of queries or items that are not among the given ids. The
            error says how many match, and the likely cause; "drop" leaves such judgments out, and
            logs how many.
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
        if unknown not in ("error", "drop"):
            raise ValueError(f"unknown must be 'error' or 'drop': got {unknown!r}.")
        judgments = judgments_of(qrels)
        given = {"query": query_ids, "item": item_ids}
        known_by_name = tuple(kind for kind, ids in given.items() if ids is None)
        if query_ids is None and isinstance(qrels, Mapping):
            query_ids = qrels.keys()
        queries = Names(query_ids, (query for query, _, _ in judgments), "query")
        items = Names(item_ids, (item for _, item, _ in judgments), "item")
        judgments = _known_judgments(judgments, queries, items, unknown)
        rows = rows_from_triples(
            np.array([queries.index[q] for q, _, _ in judgments], dtype=np.int64),
            np.array([items.index[i] for _, i, _ in judgments], dtype=np.int64),
            np.array([grade for _, _, grade in judgments], dtype=float),
            queries.array.size,
            items.array.size,
            (queries.array, items.array),
        )
        names = (queries.array, items.array, known_by_name)
        options = (unjudged, min_relevant_grade, weights, *names)
        return cls._build(items.array.size, rows, query_rows, "unjudged", *options)

    @classmethod
    def from_clicks(
        cls,
        log: Any,
        *,
        query_ids: Iterable[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        unknown: Literal["error", "drop"] = "error",
        min_impressions: int = 1,
        propensities: Any = None,
        since: Any = None,
        until: Any = None,
        min_relevant_grade: float = 1.0,
        weights: Any = None,
    ) -> Relevance:
        """Relevance from a click log: clicks are grades, and what was not shown is ignored.

        Parameters
        ----------
        log : path or dataframe
            A row for each time that a document was shown: columns of the query, the document, its
            position from 1, and whether it was clicked (0 or 1), perhaps also the time. A CSV file
            with a header, also gzipped, a parquet file, or a dataframe of any library.
        query_ids, item_ids, unknown
            See `from_qrels`.
        min_impressions : int, default=1
            Documents that were shown for a query less often are left out.
        propensities : array-like, optional
            The probability that a user looks at each position, from the first on. Each click then
            counts one over that of its position (inverse-propensity weighting). By default, each
            click counts 1.
        since, until : date, datetime, str or float, optional
            Only what was shown from ``since`` on and before ``until``: dates, ISO 8601 texts, or
            numbers if the times are. The later part of a log validates what the earlier one taught.
        min_relevant_grade, weights
            See `Relevance`.

        Returns
        -------
        Relevance
            With ``unjudged="ignore"``: a document that was shown without a click has grade 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankspace import Relevance
        >>> log = pd.DataFrame(
        ...     [("q", "a", 1, 1), ("q", "b", 2, 0), ("q", "a", 1, 1), ("q", "c", 2, 1)],
        ...     columns=["query", "document", "position", "clicked"],
        ... )
        >>> Relevance.from_clicks(log, item_ids=["a", "b", "c", "d"]).judged(0)
        (array([0, 1, 2]), array([2., 0., 1.]))
        >>> Relevance.from_clicks(log, propensities=[1.0, 0.5]).judged(0)[1]
        array([2., 0., 2.])
        """
        grades = grades_of_clicks(log, min_impressions, propensities, since, until)
        return cls.from_qrels(
            grades,
            query_ids=query_ids,
            item_ids=item_ids,
            unknown=unknown,
            unjudged="ignore",
            min_relevant_grade=min_relevant_grade,
            weights=weights,
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
        """Relevance from candidate lists, as in learning-to-rank files (LETOR, SVMlight).

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
        (array(['7', '9'], dtype=object), array([1, 1]))
        """
        rows, names = rows_from_groups(grades, qid)
        options = (unjudged, min_relevant_grade, weights, names, item_ids)
        return cls._build(rows.items.size, rows, None, "absent", *options)

    @classmethod
    def from_ranking(
        cls,
        ranking: Any,
        k: int = 10,
        *,
        teacher: Any = "a ranking",
        query_ids: Any = None,
        item_ids: Any = None,
    ) -> Relevance:
        """Relevance by a teacher: the first items of a ranking count as relevant.

        For a start without judgments: a reranker or a fused ranking teaches a map. What is measured
        with these judgments is agreement with the teacher, and reports say so. Whether results are
        better takes judgments by people.

        Parameters
        ----------
        ranking : Ranking
            The teacher's lists.
        k : int, default=10
            How many of the first items of each list are relevant. All others count as irrelevant.
        teacher : str, default="a ranking"
            Name of the teacher.
        query_ids, item_ids : array-like of str, optional
            Ids of all queries and of the rows of ``X``, in order; by default those of the ranking.
            Queries without a list have nothing relevant.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Ranking, Relevance
        >>> ranking = Ranking.from_run({"q": {"b": 3.0, "a": 2.0, "c": 1.0}})
        >>> taught = Relevance.from_ranking(ranking, 2, item_ids=["a", "b", "c", "d"])
        >>> taught.relevant(0), taught.teacher
        (array([0, 1]), 'a ranking')
        """
        check_count(k, "k")
        if not (isinstance(teacher, str) and teacher.strip()):
            raise ValueError(f"teacher must be a name: got {teacher!r}.")
        if not hasattr(ranking, "on_ids"):
            raise ValueError(
                f"ranking must be a Ranking: got {type(ranking).__name__}. Read scores by id with "
                "Ranking.from_run; grades are judgments for from_qrels."
            )
        if query_ids is not None or item_ids is not None:
            ranking = ranking.on_ids(
                _own_names(query_ids, ranking.query_ids, ranking.n_queries),
                _own_names(item_ids, ranking.item_ids, ranking.n_items),
            )
        first = ranking.top(k)
        if not first.items.size:
            raise ValueError("ranking must list an item for some query: got none.")
        lists = [items for items, _ in first]
        relevance = cls.from_lists(
            lists,
            n_items=first.n_items,
            query_ids=first.query_ids,
            item_ids=first.item_ids,
        )
        return relevance._with(teacher=teacher)

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        y: Any,
        n_items: int,
        *,
        symmetric: bool = True,
        unjudged: Unjudged = "ignore",
        weights: Any = None,
        item_ids: Any = None,
    ) -> Relevance:
        """Relevance from similar and dissimilar pairs of rows of ``X``.

        Each row in a pair is a query. A query learns to rank the rows similar to it before those
        dissimilar to it, so one that has only one kind is skipped in training.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2)
            Row numbers of ``X``.
        y : array-like of shape (n_pairs,)
            1 for a similar pair, -1 for a dissimilar one.
        n_items : int
            Number of rows of ``X``.
        symmetric : bool, default=True
            Whether the second row of a pair is a query too, with the first as its item.
        unjudged : {"irrelevant", "ignore"}, default="ignore"
            Whether rows that are in no pair with a query count as irrelevant or leave the list.
        weights : array-like of shape (n_queries,), optional
            Weight of each query; queries are the rows in a pair, in ascending order.
        item_ids : array-like of shape (n_items,), optional
            Names of the rows.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> relevance = Relevance.from_pairs([[0, 1], [0, 2]], [1, -1], n_items=4)
        >>> relevance.relevant(0), relevance.irrelevant(0)
        (array([1]), array([2]))
        """
        rows, query_items = rows_from_pairs(pairs, y, n_items, symmetric)
        options = (unjudged, 1.0, weights, None, item_ids)
        return cls._build(n_items, rows, query_items, "unjudged", *options)

    @classmethod
    def from_triplets(
        cls,
        triplets: Any,
        n_items: int,
        *,
        weights: Any = None,
        item_ids: Any = None,
    ) -> Relevance:
        """Relevance from triplets: row a of ``X`` is nearer to row b than to row c.

        Each triplet is a query of its own with two candidates, b and c, and says nothing about
        other rows. So triplets may contradict each other, as answers of people do. The share of
        triplets in the right order is ``auc``. Split triplets by `take_queries`, not by rows.

        Parameters
        ----------
        triplets : array-like of shape (n_triplets, 3)
            Row numbers (a, b, c) of ``X``.
        n_items : int
            Number of rows of ``X``.
        weights : array-like of shape (n_triplets,), optional
            Weight of each triplet.
        item_ids : array-like of shape (n_items,), optional
            Names of the rows.

        Returns
        -------
        Relevance

        Examples
        --------
        >>> from rankspace import Relevance
        >>> relevance = Relevance.from_triplets([[0, 1, 2], [0, 2, 3]], n_items=4)
        >>> relevance.relevant(1), relevance.irrelevant(1)
        (array([2]), array([3]))
        """
        rows, query_items = rows_from_triplets(triplets, n_items)
        options = ("ignore", 1.0, weights, None, item_ids)
        relevance = cls._build(n_items, rows, None, "unjudged", *options)
        # Other constructors refuse a row that is two queries, as it cannot be split by rows.
        return relevance._with(query_items=query_items)

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
    def has_classes(self) -> bool:
        """Whether the judgments are class labels: queries share rows, and no two rows an item.

        Queries that were taken twice share rows, too.
        """
        if self.indptr.size - 1 >= self.n_queries:
            return False
        relevant = self.items[self.grades >= self.min_relevant_grade]
        return np.unique(relevant).size == relevant.size

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
            others = self.n_items - (self.query_items >= 0) - self.n_relevant
            if self.unjudged == "ignore":
                others = others - self._count(np.isnan(self.grades))
            return _frozen(others)
        irrelevant = self.grades < self.min_relevant_grade
        if self.unjudged == "irrelevant":
            irrelevant |= np.isnan(self.grades)
        return self._count(irrelevant)

    @cached_property
    def positive_grades(self) -> tuple[np.ndarray, np.ndarray]:
        """Positive grades of each row of judgments in descending order: indptr and grades."""
        positive = self.grades > 0
        indptr = indptr_of(positive)[self.indptr]
        grades = self.grades[positive]
        if grades.size and (grades != grades[0]).any():
            rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
            grades = grades[np.lexsort((-grades, rows))]
        return _frozen(indptr), _frozen(grades)

    @property
    def trainable(self) -> np.ndarray:
        """Mask of the queries with something relevant and something irrelevant."""
        return (self.n_relevant > 0) & (self.n_irrelevant > 0)

    def _count(self, mask: np.ndarray) -> np.ndarray:
        """Number of judgments of each query in the mask, its own item left out."""
        n_before = indptr_of(mask)
        counts = np.diff(n_before[self.indptr])[self.rows]
        # The entry appended last is the one that -1, no own judgment, points at.
        return _frozen(counts - np.append(mask, False)[self._own_judgments])

    @cached_property
    def _own_judgments(self) -> np.ndarray:
        """The judgment that each query's row holds of the query itself, or -1."""
        owners = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        # Rows and their items ascend, so these keys are sorted.
        keys = owners * self.n_items + self.items
        wanted = self.rows * self.n_items + self.query_items
        at = np.searchsorted(keys, wanted)
        exists = (self.query_items >= 0) & (at < keys.size)
        exists[exists] = keys[at[exists]] == wanted[exists]
        return np.where(exists, at, -1)

    @property
    def is_own_relevant(self) -> np.ndarray:
        """Mask of the queries that are judged relevant to themselves, which counts nowhere."""
        own = self._own_judgments
        grades = np.append(self.grades, np.nan)[own]
        return grades >= self.min_relevant_grade

    # ------------------------------------------------------------------ one query

    def _row(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        row = self.rows[query]
        entries = slice(self.indptr[row], self.indptr[row + 1])
        return self.items[entries], self.grades[entries]

    def judged(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Judged items of a query and their grades, itself left out."""
        items, grades = self._row(query)
        others = (items != self.query_items[query]) & ~np.isnan(grades)
        return items[others], grades[others]

    def relevant(self, query: int) -> np.ndarray:
        """Relevant items of a query, ascending."""
        items, grades = self.judged(query)
        return items[grades >= self.min_relevant_grade]

    def irrelevant(self, query: int) -> np.ndarray:
        """Items that count as irrelevant for a query, ascending. Costs O(n_items)."""
        items, grades = self._row(query)
        unjudged = np.isnan(grades) & (self.unjudged == "irrelevant")
        irrelevant = np.full(self.n_items, self.unlisted_is_irrelevant)
        irrelevant[items] = (grades < self.min_relevant_grade) | unjudged
        if self.query_items[query] >= 0:
            irrelevant[self.query_items[query]] = False
        return np.flatnonzero(irrelevant)

    def judged_lists(self) -> Any:
        """Grades of the judged items of each query, itself left out, as a sparse matrix."""
        import scipy.sparse

        listed = ~np.isnan(self.grades) | (self.unjudged == "irrelevant")
        grades = np.nan_to_num(self.grades[listed], nan=0.0)
        indptr = indptr_of(listed)[self.indptr]
        shape = (indptr.size - 1, self.n_items)
        table = scipy.sparse.csr_array((grades, self.items[listed], indptr), shape)
        table = table[self.rows]
        owner = np.repeat(np.arange(self.n_queries), np.diff(table.indptr))
        others = table.indices != self.query_items[owner]
        counts = np.bincount(owner[others], minlength=self.n_queries)
        indptr = indptr_of(counts)
        content = (table.data[others], table.indices[others], indptr)
        return scipy.sparse.csr_array(content, table.shape)

    # ------------------------------------------------------------------ subsets

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
        used, rows = np.unique(self.rows[picked], return_inverse=True)
        indptr, at = gather_rows(self.indptr[used], np.diff(self.indptr)[used])
        return self._with(
            rows=rows,
            indptr=indptr,
            items=self.items[at],
            grades=self.grades[at],
            query_items=self.query_items[picked],
            weights=self.weights[picked],
            query_ids=_take_ids(self.query_ids, picked),
        )

    def __getitem__(self, rows: Any) -> Self:
        """Keep some rows of ``X``, for the splitters of scikit-learn.

        Queries that are rows go with their row, candidate lists shrink to the rows kept.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        picked = row_numbers(rows, self.n_items)
        if self.has_candidate_lists:
            subset = self._take_items(picked)
            return subset.take_queries(np.diff(subset.indptr)[subset.rows] > 0)
        if not self.queries_are_rows:
            raise ValueError(
                "relevance with separate queries cannot be split by rows of X, because the "
                "queries are not rows of X. Use rankspace.tune, which splits the queries, or "
                "take_queries."
            )
        query_of = np.full(self.n_items, -1)
        query_of[self.query_items] = np.arange(self.n_queries)
        if np.sum(query_of >= 0) < self.n_queries:
            raise ValueError(
                "relevance that repeats a query cannot be split by rows of X."
            )
        queries = query_of[picked]
        query_items = np.flatnonzero(queries >= 0)
        subset = self.take_queries(queries[query_items])._take_items(picked)
        return subset._with(query_items=query_items)

    def _ignoring(self, items: np.ndarray) -> Self:
        """The judgments without those of some items, given as a mask.

        For a query that judged such an item it is neither relevant nor irrelevant, but leaves the
        list. For other queries nothing changes.
        """
        if not items[self.items].any():
            return self
        background = self.background
        grades = self.grades
        if self.unlisted_is_irrelevant:
            background = "irrelevant"
        if self.unjudged == "irrelevant":
            grades = np.nan_to_num(grades)
        grades = np.where(items[self.items], np.nan, grades)
        return self._with(grades=grades, background=background, unjudged="ignore")

    def _as_separate(self) -> Self:
        """The same queries as if none of them were a row of ``X``."""
        return self._with(query_items=np.full(self.n_queries, -1))

    def _take_items(self, picked: np.ndarray) -> Self:
        """Keep some items. The caller sets ``query_items``, which still has the old numbers."""
        import scipy.sparse

        shape = (self.indptr.size - 1, self.n_items)
        table = scipy.sparse.csr_array((self.grades, self.items, self.indptr), shape)
        table = table[:, picked]
        table.sort_indices()
        return self._with(
            n_items=picked.size,
            indptr=table.indptr.astype(np.int64),
            items=table.indices.astype(np.int64),
            grades=table.data,
            item_ids=_take_ids(self.item_ids, picked),
        )

    def __repr__(self) -> str:
        return (
            f"Relevance({self.n_queries} queries, {self.n_items} items, "
            f"{self.items.size} judgments, unjudged={self.unjudged!r})"
        )

    def _repr_html_(self) -> str:
        """How many items are relevant and irrelevant to a query."""
        counts = {"relevant": self.n_relevant, "irrelevant": self.n_irrelevant}
        rows = [
            (name, int(n.min()), float(np.median(n)), int(n.max()))
            for name, n in counts.items()
            if n.size
        ]
        header = ["items for a query", "least", "median", "most"]
        return as_html(header, rows, before=[repr(self)])


def _known_judgments(
    judgments: list[Judgment], queries: Names, items: Names, unknown: str
) -> list[Judgment]:
    """The judgments of known queries and items; the others are an error unless dropped."""
    known = [
        judgment
        for judgment in judgments
        if judgment[0] in queries.index and judgment[1] in items.index
    ]
    n_dropped = len(judgments) - len(known)
    if not n_dropped:
        return judgments
    stray = {names.kind: stray_ids(*names.sides) for names in (queries, items)}
    for names in (queries, items):
        check_numbering(names.kind, *names.sides)
        if stray[names.kind] and (unknown == "error" or not known):
            raise join_error(names.kind, *names.sides)
    logger.warning(
        "%d of %d judgments are left out: %d of the queries and %d of the items that they name "
        "are not in the data.",
        n_dropped,
        len(judgments),
        len(stray["query"]),
        len(stray["item"]),
    )
    return known


def _own_names(ids: Any, own: np.ndarray | None, n: int) -> Any:
    """The given ids, else those of a ranking, else row numbers."""
    if ids is not None:
        return ids
    return row_names(n) if own is None else own


def query_weights(sample_weight: Any, relevance: Relevance) -> np.ndarray:
    """Query weights from scikit-learn's sample weights, which belong to rows of ``X``."""
    weights = np.asarray(sample_weight, dtype=float)
    if not (relevance.has_candidate_lists or relevance.queries_are_rows):
        return weights
    if weights.shape != (relevance.n_items,):
        raise ValueError(
            f"sample_weight must have one entry for each of {relevance.n_items} rows of X: got "
            f"shape {weights.shape}."
        )
    if relevance.has_candidate_lists:
        first_candidates = relevance.items[relevance.indptr[:-1]]
        return weights[first_candidates[relevance.rows]]
    return weights[relevance.query_items]


def list_of_row(relevance: Relevance) -> np.ndarray:
    """The query id of the candidate list that each row of ``X`` belongs to."""
    ids = np.empty(relevance.n_items, dtype=relevance.query_ids.dtype)
    lengths = np.diff(relevance.indptr)
    list_ids = relevance.query_ids[np.argsort(relevance.rows)]
    ids[relevance.items] = list_ids.repeat(lengths)
    return ids


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _take_ids(ids: np.ndarray | None, picked: np.ndarray) -> np.ndarray | None:
    """Ids of the picked entries; None if an entry was picked twice, as ids are unique."""
    if np.unique(picked).size < picked.size:
        return None
    return take_or_none(ids, picked)
