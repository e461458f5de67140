"""Vectors and judgments of `tune`, checked, and their baseline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice
from .._engine.similarity import check_no_zeros
from .._engine.vectors import as_rows
from ..evaluation.held_out import Judge, Score, orientation
from ..evaluation.measures import measure_names
from ..learners.hard_negatives import has_equal_norms
from ..relevance.relevance import Relevance
from ..relevance.splits import FEWEST_QUERIES, Split, hold_out
from ..search.exact import as_vectors
from ..search.index import Index

# Queries that answer one question, and rows of labelled data that are learned from: with more, no
# interval that matters is narrower, and a step costs the square of the rows.
MAX_QUERIES = 3000


@dataclass(frozen=True, eq=False)
class TuningData:
    """Checked vectors and judgments, and what they are compared by and measured with.

    Parameters
    ----------
    X, queries : array-like
        Vectors of items and of queries; None for queries that are items.
    relevance : Relevance
        Judgments of these queries, each with something relevant and something irrelevant.
    similarity, measure : str
        What the search compares by, and the measure to improve.
    query_numbers : ndarray of int
        Numbers of these queries among all that were passed.
    n_passed : int
        How many were passed.
    """

    X: Any
    relevance: Relevance
    queries: Any
    similarity: str
    measure: str
    query_numbers: np.ndarray
    n_passed: int
    _indexes: dict[str, Index] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_indexes": {}}

    def index(self, similarity: str | None = None) -> Index:
        """The index of unchanged vectors, which all parts of the data share."""
        name = similarity or self.similarity
        if name not in self._indexes:
            self._indexes[name] = Index(self.X, similarity=name)
        return self._indexes[name]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.relevance.n_queries

    @property
    def distinct_queries(self) -> np.ndarray:
        """A number for each query; queries with equal vectors have the same one."""
        points = self.queries
        if points is None:
            points = self.X[self.relevance.query_items]
        numbers: dict[int, int] = {}
        found = [
            numbers.setdefault(hash(row.tobytes()), len(numbers)) for row in points
        ]
        return np.array(found, dtype=np.int64)

    def take(self, queries: np.ndarray) -> TuningData:
        """The data of some queries, over the same items."""
        vectors = None if self.queries is None else self.queries[queries]
        return replace(
            self,
            relevance=self.relevance.take_queries(queries),
            queries=vectors,
            query_numbers=self.query_numbers[queries],
        )

    def without(self, queries: np.ndarray) -> TuningData:
        """The data without some queries, given as a mask; those that are rows leave the items."""
        kept = np.flatnonzero(~queries)
        if self.queries is not None or not queries.any():
            return self.take(kept)
        split = hold_out(self.X, self.relevance, None, kept, np.flatnonzero(queries))
        by_row = kept[np.argsort(self.relevance.query_items[kept])]
        return replace(
            self,
            X=split.X,
            relevance=split.relevance,
            query_numbers=self.query_numbers[by_row],
            _indexes={},
        )

    @property
    def baseline_queries(self) -> np.ndarray:
        """Queries whose baseline is measured before anything is learned."""
        n = min(self.n_queries, MAX_QUERIES)
        return np.linspace(0, self.n_queries - 1, n).astype(int)

    def baseline(self, similarity: str | None = None) -> Score:
        """Score of unchanged vectors, on a sample of the queries."""
        part = self.take(self.baseline_queries)
        points = part.queries
        if points is None:
            points = self.X[part.relevance.query_items]
        split = Split(self.X, part.relevance, None, points, part.relevance)
        name = similarity or self.similarity
        return Judge(split, name, self.measure, self.index(name)).baseline()

    def baseline_mean(self, similarity: str | None = None) -> float:
        """Mean of the measure with unchanged vectors, on that sample."""
        values = self.baseline(similarity).values
        return orientation(self.measure) * float(np.nanmean(values))


def check_data(
    X: Any,
    relevance: Any,
    queries: Any,
    similarity: str | None,
    measure: str,
    item_ids: Any,
    query_ids: Any,
) -> TuningData:
    """Check vectors and judgments, and keep the queries that can be evaluated."""
    X = as_vectors(as_rows(X), "X")
    if queries is not None:
        queries = as_vectors(as_rows(queries, "queries"), "queries")
    relevance = _as_relevance(relevance, X, queries, item_ids, query_ids)
    _check_shapes(X, relevance, queries)
    names = measure_names(measure)
    if len(names) != 1:
        raise ValueError(f"measure must be one measure: got {measure!r}.")
    if similarity is not None:
        check_choice(similarity, "similarity", SIMILARITIES)
    numbers = np.flatnonzero(relevance.trainable)
    if numbers.size < FEWEST_QUERIES:
        raise ValueError(
            f"tune needs at least {FEWEST_QUERIES} queries with a relevant and an irrelevant item: "
            f"got {numbers.size}. Judge more queries."
        )
    by_default = "euclidean" if queries is None else "cosine"
    similarity_used = similarity or by_default
    if similarity_used == "cosine":
        check_no_zeros(X, "X")
        if queries is not None:
            check_no_zeros(queries, "queries")
    n_passed = relevance.n_queries
    everything = np.arange(n_passed)
    data = TuningData(
        X, relevance, queries, similarity_used, names[0], everything, n_passed
    ).take(numbers)
    n_distinct = int(data.distinct_queries.max()) + 1
    if n_distinct < FEWEST_QUERIES:
        raise ValueError(
            f"tune needs at least {FEWEST_QUERIES} queries whose vectors differ: got {n_distinct} "
            f"among {numbers.size} queries. Judge more queries."
        )
    if similarity is None:
        _warn_of_lengths(data)
    return data


def _as_relevance(
    relevance: Any, X: Any, queries: Any, item_ids: Any, query_ids: Any
) -> Relevance:
    """Judgments from a Relevance, class labels, lists of relevant rows, or judgments by id."""
    if isinstance(relevance, Relevance):
        return relevance
    if isinstance(relevance, Mapping) or hasattr(relevance, "columns"):
        if item_ids is None or query_ids is None:
            raise ValueError(
                "judgments by id need item_ids and query_ids, the ids of the rows of X and of "
                "queries: got none. Judgments by row number are lists of relevant rows."
            )
        return Relevance.from_qrels(relevance, item_ids=item_ids, query_ids=query_ids)
    if queries is not None:
        if not all(np.ndim(row) == 1 or isinstance(row, Mapping) for row in relevance):
            raise ValueError(
                "with separate queries, relevance must be a Relevance or a list of the relevant "
                "rows of X for each query: got one value for each."
            )
        return Relevance.from_lists(relevance, n_items=len(X))
    return Relevance.from_labels(relevance)


def _check_shapes(X: Any, relevance: Relevance, queries: Any) -> None:
    if relevance.has_candidate_lists:
        raise ValueError(
            "tune needs queries with vectors: candidate lists (from_groups) have none. Use LGMML."
        )
    if relevance.n_items != len(X):
        raise ValueError(
            f"relevance must have one item for each row of X: got {relevance.n_items} items and "
            f"{len(X)} rows."
        )
    if np.ptp(relevance.weights):
        raise ValueError(
            "tune counts every query alike: got weights from "
            f"{relevance.weights.min():g} to {relevance.weights.max():g}. Pass "
            "dataclasses.replace(relevance, weights=None)."
        )
    if queries is None and not relevance.queries_are_rows:
        raise ValueError(
            f"relevance has {relevance.n_queries} queries that are not rows of X. Pass their "
            "vectors as queries=...."
        )
    if queries is not None and queries.shape != (relevance.n_queries, X.shape[1]):
        raise ValueError(
            "queries must have one row for each query of relevance and the columns of X, so shape "
            f"{(relevance.n_queries, X.shape[1])}: got {queries.shape}."
        )


def _warn_of_lengths(data: TuningData) -> None:
    """Warn if the similarity was not named and vectors differ in length, so that it matters."""
    other = "euclidean" if data.similarity == "cosine" else "cosine"
    if has_equal_norms(data.X):
        return
    if data.queries is None and other == "cosine":
        return  # labelled data are compared by distance unless the cosine is asked for
    warnings.warn(
        f"the vectors differ in length and similarity was not given, so {data.similarity} is used: "
        f"unchanged vectors have {data.measure} {data.baseline_mean():.3f} by {data.similarity} "
        f"and {data.baseline_mean(other):.3f} by {other}. Pass the similarity that your search "
        "uses.",
        UserWarning,
        stacklevel=4,
    )
