"""Scatter of pairs: sums of ``(a - b)(a - b)'`` that never form the pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ..relevance import Relevance


class Scatter(NamedTuple):
    """Mean of ``(a - b)(a - b)'`` over similar pairs, and over dissimilar ones."""

    similar: np.ndarray
    dissimilar: np.ndarray


class Pairs(NamedTuple):
    """Points, centred, in double precision, and which of them are queries and which items."""

    points: np.ndarray
    query_rows: np.ndarray
    n_items: int

    @property
    def items(self) -> np.ndarray:
        """The points that are items."""
        return self.points[: self.n_items]

    @property
    def queries(self) -> np.ndarray:
        """The points that are queries."""
        return self.points[self.query_rows]


def centred(X: np.ndarray, relevance: Relevance, queries: np.ndarray | None) -> Pairs:
    """Items and queries from the mean of the items, which no difference of two points sees."""
    n, mean = len(X), X.mean(axis=0, dtype=np.float64)
    items = np.subtract(X, mean, dtype=np.float64)
    if queries is None:
        return Pairs(items, relevance.own_items, n)
    points = np.concatenate((items, np.subtract(queries, mean, dtype=np.float64)))
    return Pairs(points, n + np.arange(len(queries)), n)


def all_pairs(pairs: Pairs, relevance: Relevance) -> Scatter:
    """Scatter of every query with its relevant, and with its irrelevant items.

    For a set A of queries and B of items the sum is ``|B| A'A + |A| B'B - a b' - b a'``, with a and
    b the column sums, so it costs one product of the points with themselves for each kind of pair,
    however many pairs there are. A query among its own items adds nothing.
    """
    weights, n_relevant = relevance.weights, relevance.n_relevant
    relevant = _listed(relevance, relevance.grades >= relevance.relevant_from)
    similar = _list_sum(pairs, relevance, relevant)
    if relevance.counts_background:
        other = _sum_over_all(pairs, weights) - similar
    else:
        other = _list_sum(pairs, relevance, _listed(relevance, irrelevant_marks(relevance)))
    n_similar, n_other = weights @ n_relevant, weights @ relevance.n_irrelevant
    return Scatter(similar / n_similar, other / n_other)


def irrelevant_marks(relevance: Relevance) -> np.ndarray:
    """Which judgments say that an item is irrelevant."""
    marks = relevance.grades < relevance.relevant_from
    if relevance.unjudged == "irrelevant":
        marks |= np.isnan(relevance.grades)
    return marks


def _listed(relevance: Relevance, marks: np.ndarray) -> Any:
    """Rows of judgments by items, with a one where it is marked."""
    indptr = np.concatenate(([0], np.cumsum(marks)))[relevance.indptr]
    shape = (indptr.size - 1, relevance.n_items)
    return scipy.sparse.csr_array((np.ones(indptr[-1]), relevance.items[marks], indptr), shape)


def _list_sum(pairs: Pairs, relevance: Relevance, listed: Any) -> np.ndarray:
    weights, rows, n_rows = relevance.weights, relevance.rows, listed.shape[0]
    counts = np.zeros(len(pairs.points))
    counts[: pairs.n_items] = listed.T @ np.bincount(rows, weights, n_rows)
    np.add.at(counts, pairs.query_rows, weights * np.diff(listed.indptr)[rows])
    shape = (n_rows, len(pairs.points))
    asked = scipy.sparse.csr_array((weights, (rows, pairs.query_rows)), shape) @ pairs.points
    cross = asked.T @ (listed @ pairs.items)
    return _weighted_gram(pairs.points, counts) - cross - cross.T


def _sum_over_all(pairs: Pairs, weights: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(pairs.points))
    counts[: pairs.n_items] = weights.sum()
    np.add.at(counts, pairs.query_rows, weights * pairs.n_items)
    cross = np.outer(weights @ pairs.queries, pairs.items.sum(axis=0))
    return _weighted_gram(pairs.points, counts) - cross - cross.T


def _weighted_gram(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    rooted = points * np.sqrt(counts)[:, None]
    return rooted.T @ rooted


def sampled_pairs(
    pairs: Pairs, relevance: Relevance, n_pairs: int, rng: np.random.RandomState
) -> Scatter:
    """Scatter of so many pairs of each kind, drawn in proportion to the weights of the queries."""
    relevant = draw_pairs(relevance, n_pairs, True, rng)
    irrelevant = draw_pairs(relevance, n_pairs, False, rng)
    first, second = (
        laplacian_sum(pairs.points, pairs.query_rows[queries], items) / n_pairs
        for queries, items in (relevant, irrelevant)
    )
    return Scatter(first, second)


def laplacian_sum(points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Scatter of listed pairs as ``X'(Lambda X)``, Lambda the Laplacian of their graph."""
    n = len(points)
    edges = scipy.sparse.coo_array((np.ones(first.size), (first, second)), (n, n)).tocsr()
    edges = edges + edges.T
    laplacian = scipy.sparse.diags_array(edges.sum(axis=1)) - edges
    found = points.T @ (laplacian @ points)
    return (found + found.T) / 2  # rounding made the two halves differ


def draw_pairs(
    relevance: Relevance, n_pairs: int, relevant: bool, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of queries and of items, a pair each, uniform over pairs but for query weights."""
    counts = relevance.n_relevant if relevant else relevance.n_irrelevant
    share = np.cumsum(relevance.weights * counts)
    queries = np.searchsorted(share, rng.uniform(0, share[-1], n_pairs), side="right")
    items = np.empty(n_pairs, dtype=np.int64)
    order = np.argsort(queries, kind="stable")
    asked, starts = np.unique(queries[order], return_index=True)
    for query, drawn in zip(asked, np.split(order, starts[1:]), strict=True):
        choice = relevance.relevant(query) if relevant else relevance.irrelevant(query)
        items[drawn] = choice[rng.randint(choice.size, size=drawn.size)]
    return queries, items


def given_pairs(differences: np.ndarray, similar: np.ndarray) -> Scatter:
    """Scatter of pairs whose differences are at hand."""
    parts = (differences[similar], differences[~similar])
    first, second = (part.T @ part / len(part) for part in parts)
    return Scatter(first, second)
