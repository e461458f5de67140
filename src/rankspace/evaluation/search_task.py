"""Search tasks: checked vectors and judgments, a similarity and a measure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice
from .._engine.fields import check_same_columns, column_names
from .._engine.similarity import check_no_zeros
from .._engine.vectors import has_equal_norms
from ..relevance.inputs import (
    as_relevance,
    check_items,
    check_queries_are_rows,
    check_query_vectors,
    check_stored_order,
    is_by_id,
    row_ids,
)
from ..relevance.relevance import Relevance
from ..relevance.rows import check_range, row_numbers, whole_numbers
from ..relevance.splits import FEWEST_QUERIES, Split, hold_out, only_trainable
from ..search.exact import as_vectors
from ..search.index import Index
from .held_out import TOP, Judge, Score, orientation
from .measures import measure_names

# Queries that answer one question: with more, no interval that matters is narrower.
MAX_QUERIES = 3000


@dataclass(frozen=True, eq=False)
class SearchTask:
    """Vectors and judgments, and what a search compares by and is measured with.

    Parameters
    ----------
    X, queries : array-like
        Vectors of items and of queries; None for queries that are items.
    relevance : Relevance
        Judgments of these queries, each with something relevant and something irrelevant.
    similarity, measure : str
        What the search compares by, and the measure to improve.
    depth : int
        How many of the first items of each held-out query are kept.
    """

    X: Any
    relevance: Relevance
    queries: Any
    similarity: str
    measure: str
    depth: int = TOP
    _indexes: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_indexes": {}}

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.relevance.n_queries

    @property
    def points(self) -> Any:
        """Vectors of the queries, also of those that are items."""
        if self.queries is None:
            return self.X[self.relevance.query_items]
        return self.queries

    @property
    def distinct_queries(self) -> np.ndarray:
        """A number for each query; queries with equal vectors have the same one."""
        numbers: dict[int, int] = {}
        found = []
        for row in self.points:
            found.append(numbers.setdefault(hash(row.tobytes()), len(numbers)))
        return np.array(found, dtype=np.int64)

    def index(self) -> Index:
        """The index of unchanged vectors, which all parts of the data share."""
        if self.similarity not in self._indexes:
            index = Index(self.X, similarity=self.similarity)
            self._indexes[self.similarity] = index
        found: Index = self._indexes[self.similarity]  # or a search of a live index
        return found

    def take(self, queries: np.ndarray) -> SearchTask:
        """The task with some queries, over the same items."""
        vectors = None if self.queries is None else self.queries[queries]
        relevance = self.relevance.take_queries(queries)
        return replace(self, relevance=relevance, queries=vectors)

    def without(self, queries: np.ndarray) -> SearchTask:
        """The task without some queries, given as a mask; those that are rows leave the items.

        Other queries may have nothing relevant left then, and leave too.
        """
        kept = np.flatnonzero(~queries)
        if self.queries is not None or not queries.any():
            return self.take(kept)
        split = hold_out(self.X, self.relevance, None, kept, np.flatnonzero(queries))
        relevance = only_trainable(split).relevance
        return replace(self, X=split.X, relevance=relevance, _indexes={})

    @property
    def sample(self) -> np.ndarray:
        """Queries whose baseline is measured before anything is learned."""
        n = min(self.n_queries, MAX_QUERIES)
        return np.linspace(0, self.n_queries - 1, n).astype(int)

    def baseline(self) -> Score:
        """Score of unchanged vectors, on the sample of the queries."""
        part = self.take(self.sample)
        split = Split(self.X, part.relevance, None, part.points, part.relevance)
        return Judge(split, self.similarity, self.measure, self.index()).baseline()

    def baseline_mean(self) -> float:
        """Mean of the measure with unchanged vectors, on that sample."""
        return orientation(self.measure) * float(np.nanmean(self.baseline().values))


def check_task(
    X: Any,
    relevance: Any,
    queries: Any = None,
    similarity: str | None = None,
    measure: str = "ndcg-linear@10",
    item_ids: Any = None,
    query_ids: Any = None,
) -> tuple[SearchTask, np.ndarray]:
    """The task of the queries that can be evaluated, and a mask of them among all passed."""
    if is_by_id(relevance):
        item_ids = row_ids(X, item_ids, "item")
        query_ids = row_ids(queries, query_ids, "query")
    check_stored_order(relevance, X, queries)
    check_same_columns(column_names(X), column_names(queries), "queries")
    X = as_vectors(X, "X")
    if queries is not None:
        queries = as_vectors(queries, "queries")
    separate = queries is not None
    relevance = as_relevance(relevance, len(X), separate, item_ids, query_ids)
    check_judged_vectors(relevance, X, queries)
    names = measure_names(measure)
    if len(names) != 1:
        raise ValueError(f"measure must be one measure: got {measure!r}.")
    is_judged = relevance.trainable
    used = _check_similarity(similarity, X, queries)
    task = SearchTask(X, relevance, queries, used, names[0])
    task = task.take(np.flatnonzero(is_judged))
    check_enough(task)
    if similarity is None:
        _warn_of_lengths(task)
    return task, is_judged


def check_judged_vectors(relevance: Relevance, X: Any, queries: Any) -> None:
    """Raise unless the judgments are of these vectors, and all queries count alike."""
    if relevance.has_candidate_lists:
        raise ValueError(
            "queries must have vectors: candidate lists (from_groups) have none. Use LGMML."
        )
    check_items(relevance, X)
    if np.ptp(relevance.weights):
        raise ValueError(
            "every query counts alike here: got weights from "
            f"{relevance.weights.min():g} to {relevance.weights.max():g}. Pass "
            "dataclasses.replace(relevance, weights=None)."
        )
    if queries is None:
        check_queries_are_rows(relevance, "Pass their vectors as queries=....")
    else:
        check_query_vectors(relevance, queries, X.shape[1])


def _check_similarity(similarity: str | None, X: Any, queries: Any) -> str:
    """The similarity, by default the cosine with separate queries, else Euclidean distance."""
    if similarity is None:
        similarity = "euclidean" if queries is None else "cosine"
    check_choice(similarity, "similarity", SIMILARITIES)
    if similarity == "cosine":
        check_no_zeros(X, "X")
        if queries is not None:
            check_no_zeros(queries, "queries")
    return similarity


def check_enough(task: SearchTask) -> None:
    """Raise if there are too few queries to show anything."""
    if task.n_queries < FEWEST_QUERIES:
        raise ValueError(
            f"it takes at least {FEWEST_QUERIES} queries with a relevant and an irrelevant item: "
            f"got {task.n_queries}. Judge more queries."
        )
    n_distinct = np.unique(task.distinct_queries).size
    if n_distinct < FEWEST_QUERIES:
        raise ValueError(
            f"it takes at least {FEWEST_QUERIES} queries whose vectors differ: got {n_distinct} "
            f"among {task.n_queries} queries. Judge more queries."
        )


def _warn_of_lengths(task: SearchTask) -> None:
    """Warn if vectors differ in length, so that the similarity that was not named matters."""
    # Labelled data are compared by distance unless the cosine is asked for.
    if task.queries is None or has_equal_norms(task.X):
        return
    other = replace(task, similarity="euclidean")
    warnings.warn(
        f"the vectors differ in length and similarity was not given, so {task.similarity} is used: "
        f"unchanged vectors have {task.measure} {task.baseline_mean():.3f} by {task.similarity} "
        f"and {other.baseline_mean():.3f} by {other.similarity}. Pass the similarity that your "
        "search uses.",
        UserWarning,
        stacklevel=5,  # who calls tune
    )


def check_dev(dev: Any, task: SearchTask, is_judged: np.ndarray) -> np.ndarray:
    """Mask of the task's queries to judge on; ``dev`` names them among all that were passed."""
    on_dev = np.zeros(is_judged.size, dtype=bool)
    if dev is None:
        return on_dev[is_judged]
    dev = np.asarray(dev)
    if dev.dtype == bool:
        dev = row_numbers(dev, is_judged.size)
    dev = whole_numbers(dev, "dev")
    check_range(dev, "dev", 0, is_judged.size)
    on_dev[dev] = True
    on_dev = on_dev[is_judged]
    n_dev = int(on_dev.sum())
    n_left = task.without(on_dev).n_queries
    if min(n_dev, n_left) < FEWEST_QUERIES:
        raise ValueError(
            f"dev must name at least {FEWEST_QUERIES} queries with judgments and leave as many to "
            f"learn from: it names {n_dev} of {task.n_queries} (of {is_judged.size} passed) and "
            f"leaves {n_left}."
        )
    return on_dev
