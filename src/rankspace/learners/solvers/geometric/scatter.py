"""Scatter of pairs: sums of ``(a - b)(a - b)'`` that never form the pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ....relevance.relevance import Relevance
from .pair_sums import Pairs, approximate_mean, pair_sums


class Scatter(NamedTuple):
    """Mean of ``(a - b)(a - b)'`` over similar pairs, and over dissimilar ones."""

    similar: np.ndarray
    dissimilar: np.ndarray


def centred(X: np.ndarray, relevance: Relevance, queries: np.ndarray | None) -> Pairs:
    """Items and queries from a point amid the items, which no difference of two points sees."""
    rows = (
        relevance.query_items if queries is None else len(X) + np.arange(len(queries))
    )
    return Pairs(X, queries, approximate_mean(X), rows)


def all_pairs(pairs: Pairs, relevance: Relevance) -> Scatter:
    """Scatter of every query with its relevant, and with its irrelevant items.

    For a set A of queries and B of items the sum is ``|B| A'A + |A| B'B - a b' - b a'``, with a and
    b the column sums, so it costs one product of the points with themselves for each kind of pair,
    however many pairs there are. A query among its own items adds nothing.
    """
    weights, background = relevance.weights, relevance.unlisted_is_irrelevant
    tables = [
        _listed(relevance, relevance.grades >= relevance.min_relevant_grade, pairs.n)
    ]
    if not background:
        tables.append(_listed(relevance, irrelevant_marks(relevance), pairs.n))
    counts = [_counts(pairs, relevance, table) for table in tables]
    if background:
        counts.append(_counts_over_all(pairs, weights))
    asked = scipy.sparse.csr_array(
        (weights, (relevance.rows, pairs.query_rows)),
        (relevance.indptr.size - 1, pairs.n),
    )
    grams, crosses = pair_sums(pairs, counts, asked, tables, over_all=background)
    first, second = (
        gram - cross - cross.T for gram, cross in zip(grams, crosses, strict=True)
    )
    if background:
        second = second - first
    n_similar, n_other = (
        weights @ relevance.n_relevant,
        weights @ relevance.n_irrelevant,
    )
    return Scatter(first / n_similar, second / n_other)


def irrelevant_marks(relevance: Relevance) -> np.ndarray:
    """Which judgments say that an item is irrelevant."""
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


def _counts(pairs: Pairs, relevance: Relevance, listed: Any) -> np.ndarray:
    """In how many pairs each point is, by weight."""
    weights, rows = relevance.weights, relevance.rows
    counts = listed.T @ np.bincount(rows, weights, listed.shape[0])
    np.add.at(counts, pairs.query_rows, weights * np.diff(listed.indptr)[rows])
    return counts


def _counts_over_all(pairs: Pairs, weights: np.ndarray) -> np.ndarray:
    counts = np.zeros(pairs.n)
    counts[: pairs.n_items] = weights.sum()
    np.add.at(counts, pairs.query_rows, weights * pairs.n_items)
    return counts


def sampled_pairs(
    pairs: Pairs, relevance: Relevance, n_pairs: int, rng: np.random.RandomState
) -> Scatter:
    """Scatter of so many pairs of each kind, drawn in proportion to the weights of the queries."""
    relevant = draw_pairs(relevance, n_pairs, True, rng)
    irrelevant, points = draw_pairs(relevance, n_pairs, False, rng), pairs.points
    first, second = (
        laplacian_sum(points, pairs.query_rows[queries], items) / n_pairs
        for queries, items in (relevant, irrelevant)
    )
    return Scatter(first, second)


def laplacian_sum(
    points: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Scatter of listed pairs as ``X'(Lambda X)``, Lambda the Laplacian of their graph."""
    n = len(points)
    edges = scipy.sparse.coo_array(
        (np.ones(first.size), (first, second)), (n, n)
    ).tocsr()
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
