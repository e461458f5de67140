"""Scatter matrices of pairs: sums of ``(a - b)(a - b)'`` that never form the pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ....relevance.relevance import Relevance
from ..points import Points
from .pair_sums import pair_sums


class Scatter(NamedTuple):
    """Mean of ``(a - b)(a - b)'`` over similar pairs, and over dissimilar ones."""

    similar: np.ndarray
    dissimilar: np.ndarray

    def along(self, directions: np.ndarray) -> Scatter:
        """The scatter of points projected on some directions."""
        return Scatter(
            directions @ self.similar @ directions.T,
            directions @ self.dissimilar @ directions.T,
        )


def all_pairs(points: Points, relevance: Relevance) -> Scatter:
    """Scatter of every query with its relevant, and with its irrelevant items.

    For a set A of queries and B of items the sum is ``|B| A'A + |A| B'B - a b' - b a'``, with a and
    b the column sums, so it costs one product of the points with themselves for each kind of pair,
    however many pairs there are. A query among its own items adds nothing.
    """
    weights = relevance.weights
    over_all = relevance.unlisted_is_irrelevant
    is_relevant = relevance.grades >= relevance.min_relevant_grade
    tables = [_listed(relevance, is_relevant, points.n)]
    if not over_all:
        tables.append(_listed(relevance, irrelevant_marks(relevance), points.n))
    counts = [_counts(points, relevance, table) for table in tables]
    if over_all:
        counts.append(_counts_over_all(points, weights))
    query_weights = scipy.sparse.csr_array(
        (weights, (relevance.rows, points.query_rows)), tables[0].shape
    )
    grams, crosses = pair_sums(points, counts, query_weights, tables, over_all=over_all)
    similar = grams[0] - crosses[0] - crosses[0].T
    dissimilar = grams[1] - crosses[1] - crosses[1].T
    if over_all:
        dissimilar = dissimilar - similar
    n_similar = weights @ relevance.n_relevant
    n_dissimilar = weights @ relevance.n_irrelevant
    return Scatter(similar / n_similar, dissimilar / n_dissimilar)


def irrelevant_marks(relevance: Relevance) -> np.ndarray:
    """Whether each judgment says that an item is irrelevant."""
    marks = relevance.grades < relevance.min_relevant_grade
    if relevance.unjudged == "irrelevant":
        marks |= np.isnan(relevance.grades)
    return marks


def _listed(relevance: Relevance, marks: np.ndarray, n_points: int) -> Any:
    """Rows of judgments by points, with a one where an item is marked."""
    indptr = np.concatenate(([0], np.cumsum(marks)))[relevance.indptr]
    shape = (indptr.size - 1, n_points)
    return scipy.sparse.csr_array(
        (np.ones(indptr[-1]), relevance.items[marks], indptr), shape
    )


def _counts(points: Points, relevance: Relevance, listed: Any) -> np.ndarray:
    """Weighted number of listed pairs of each point."""
    weights = relevance.weights
    rows = relevance.rows
    counts = listed.T @ np.bincount(rows, weights, listed.shape[0])
    np.add.at(counts, points.query_rows, weights * np.diff(listed.indptr)[rows])
    return counts


def _counts_over_all(points: Points, weights: np.ndarray) -> np.ndarray:
    """Weighted number of pairs of each point, with all queries and items paired."""
    counts = np.zeros(points.n)
    counts[: points.n_items] = weights.sum()
    np.add.at(counts, points.query_rows, weights * points.n_items)
    return counts


def sampled_pairs(
    points: Points,
    relevance: Relevance,
    n_pairs: int,
    rng: np.random.RandomState,
) -> Scatter:
    """Scatter of ``n_pairs`` random pairs of each kind, drawn by the weights of the queries."""
    Z = points.matrix[:]
    scatters = []
    for relevant in (True, False):
        queries, items = draw_pairs(relevance, n_pairs, relevant, rng)
        scatters.append(laplacian_sum(Z, points.query_rows[queries], items) / n_pairs)
    return Scatter(*scatters)


def laplacian_sum(
    points: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Scatter of listed pairs as ``X'(Lambda X)``, Lambda the Laplacian of their graph."""
    n = len(points)
    edges = scipy.sparse.coo_array((np.ones(first.size), (first, second)), (n, n))
    edges = edges.tocsr()
    edges = edges + edges.T
    laplacian = scipy.sparse.diags_array(edges.sum(axis=1)) - edges
    scatter = points.T @ (laplacian @ points)
    return (scatter + scatter.T) / 2  # rounding made the two halves differ


def draw_pairs(
    relevance: Relevance, n_pairs: int, relevant: bool, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs of query and item numbers, uniform over pairs up to query weights."""
    counts = relevance.n_relevant if relevant else relevance.n_irrelevant
    items_of = relevance.relevant if relevant else relevance.irrelevant
    cumulative = np.cumsum(relevance.weights * counts)
    draws = rng.uniform(0, cumulative[-1], n_pairs)
    queries = np.searchsorted(cumulative, draws, side="right")
    items = np.empty(n_pairs, dtype=np.int64)
    order = np.argsort(queries, kind="stable")
    drawn_queries, starts = np.unique(queries[order], return_index=True)
    pairs_of_query = np.split(order, starts[1:])
    for query, pairs in zip(drawn_queries, pairs_of_query, strict=True):
        choice = items_of(query)
        items[pairs] = choice[rng.randint(choice.size, size=pairs.size)]
    return queries, items


def given_pairs(
    differences: np.ndarray, similar: np.ndarray, weights: np.ndarray
) -> Scatter:
    """Weighted scatter of pairs given by their differences."""
    return Scatter(
        _mean_scatter(differences[similar], weights[similar]),
        _mean_scatter(differences[~similar], weights[~similar]),
    )


def _mean_scatter(differences: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = weights.sum()
    if total == 0:
        raise ValueError(
            "sample_weight must be above 0 for a similar and for a dissimilar pair: all of one "
            "kind are 0."
        )
    return (weights[:, None] * differences).T @ differences / total
