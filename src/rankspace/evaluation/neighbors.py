"""k-nearest-neighbour classification: votes, errors, and leave-one-out evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..relevance.relevance import Relevance
from ..relevance.rows import check_labels, check_same_kind, indptr_of
from ..search.index import Embedding, Index
from ..search.ranking import Ranking
from .measures import evaluate
from .report import Report


def knn_error(
    ranking: Ranking, labels: Any, k: int, *, query_labels: Any = None
) -> float:
    """k-NN classification error: each query is classified by a vote of its ``k`` nearest items.

    A tie goes to the class with the smaller sum of distances, then to the smaller label.

    Parameters
    ----------
    ranking : Ranking
        Lists of at least ``k`` items.
    labels : array-like of shape (n_items,)
        Class of each item.
    k : int
        Number of voters.
    query_labels : array-like of shape (n_queries,), optional
        True class of each query; by default query ``i`` is item ``i``, and has no vote.

    Returns
    -------
    float
        Fraction of queries that are misclassified.

    Examples
    --------
    >>> from rankspace import Ranking, knn_error
    >>> ranking = Ranking.from_distances([[0.1, 0.2, 0.9]])
    >>> knn_error(ranking, ["a", "a", "b"], k=2, query_labels=["a"])
    0.0
    """
    labels = check_labels(labels, "labels")
    truth = labels
    if query_labels is not None:
        truth = check_labels(query_labels, "query_labels")
    check_same_kind(labels, truth, "labels and query_labels")
    if labels.shape != (ranking.n_items,) or truth.shape != (ranking.n_queries,):
        raise ValueError(
            f"labels must name the class of each of {ranking.n_items} items and query_labels that "
            f"of {ranking.n_queries} queries: got shapes {labels.shape} and {truth.shape}."
        )
    if query_labels is None:
        ranking = _without_own(ranking)
    return float(np.mean(_winners(ranking, labels, k) != truth))


def class_shares(
    ranking: Ranking, labels: Any, k: int, *, own_votes: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Class histogram of the ``k`` nearest neighbours of each query.

    Parameters
    ----------
    ranking : Ranking
        Lists of at least ``k`` items.
    labels : array-like of shape (n_items,)
        Class of each item.
    k : int
        Number of neighbours.
    own_votes : bool, default=True
        False if query ``i`` is item ``i``, and is not to count as its own neighbour.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        All classes, in order.
    shares : ndarray of shape (n_queries, n_classes)
        Share of each class; rows sum to 1.

    Examples
    --------
    >>> from rankspace import Ranking
    >>> from rankspace.evaluation.neighbors import class_shares
    >>> ranking = Ranking.from_distances([[0.1, 0.2, 0.9]])
    >>> class_shares(ranking, ["a", "b", "b"], k=2)
    (array(['a', 'b'], dtype='<U1'), array([[0.5, 0.5]]))
    """
    labels = check_labels(labels, "labels")
    if labels.shape != (ranking.n_items,):
        raise ValueError(
            f"labels must name the class of each of {ranking.n_items} items: got shape "
            f"{labels.shape}."
        )
    if not own_votes:
        ranking = _without_own(ranking)
    classes, votes, _ = _count(ranking, labels, k)
    return classes, votes / k


def leave_one_out(
    X: Any,
    y: Any,
    metric: Embedding | None = None,
    *,
    similarity: str | None = None,
    ks: Sequence[int] = (1, 3, 5, 7, 9, 11, 15, 21),
    measures: str = "auc map mrr",
) -> Report:
    """Leave-one-out evaluation of a metric: every row of ``X`` ranks all others, for a grid of k.

    For a metric learned from the same rows this is optimistic: it does not estimate the error on
    new data.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        Items.
    y : array-like of shape (n_items,)
        Their classes.
    metric : LinearMetric, BilinearMetric or AsymmetricMetric, optional
        The metric; by default the similarity of unmapped vectors.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What vectors are compared by; by default that of the metric, or "euclidean" without one.
    ks : sequence of int, default=(1, 3, 5, 7, 9, 11, 15, 21)
        For each of them ``knn-error@k``, ``p@k`` and ``ndcg-mlr@k`` are added.
    measures : str, default="auc map mrr"
        Measures that have no k.

    Returns
    -------
    Report

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace.evaluation.neighbors import leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> report = leave_one_out(X, y, ks=(1, 5))
    >>> round(report.means["knn-error@5"], 3)
    0.033
    """
    if not len(ks) or not all(1 <= k < len(y) for k in ks):
        raise ValueError(
            f"ks must be numbers of neighbours from 1 to {len(y) - 1}, one less than the items: "
            f"got {tuple(ks)}."
        )
    relevance = Relevance.from_labels(y)
    labels = check_labels(y, "y")
    index = Index(X, metric, similarity=similarity)
    queries = np.asarray(X)
    rows = np.arange(len(queries))
    names = " ".join([measures, *(f"p@{k} ndcg-mlr@{k}" for k in ks)])
    report = evaluate(index.blocks(queries, query_items=rows), relevance, names)
    ranking = index.rank(queries, max(ks), query_items=rows)
    errors = {}
    for k in ks:
        wrong = _winners(ranking, labels, k) != labels
        errors[f"knn-error@{k}"] = wrong.astype(float)
    return replace(
        report,
        values={**report.values, **errors},
        smaller_is_better=report.smaller_is_better | frozenset(errors),
    )


def _winners(ranking: Ranking, labels: np.ndarray, k: int) -> np.ndarray:
    """The class of each query by majority vote; ties go to the smaller sum of distances."""
    classes, votes, sums = _count(ranking, labels, k)
    return classes[np.lexsort((sums, -votes))[:, 0]]


def _count(
    ranking: Ranking, labels: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes, and for each query their votes among the first k and their sums of distances."""
    shortest = np.diff(ranking.indptr).min(initial=ranking.n_items)
    if ranking.n_queries == 0 or not 1 <= k <= shortest:
        raise ValueError(
            f"k must be from 1 to the length of the shortest list: got k={k} and {shortest} items."
        )
    at = ranking.indptr[:-1, None] + np.arange(k)
    nearest = ranking.items[at]
    repeats = np.diff(np.sort(nearest, axis=1), axis=1) == 0
    if repeats.any():
        query = ranking.query_id(int(np.flatnonzero(repeats.any(axis=1))[0]))
        raise ValueError(
            f"a list must not name an item twice: that of query {query!r} does."
        )
    classes, codes = np.unique(labels, return_inverse=True)
    voters = codes[nearest].ravel()
    queries = np.repeat(np.arange(ranking.n_queries), k)
    shape = (ranking.n_queries, classes.size)
    votes = np.zeros(shape, dtype=np.int64)
    sums = np.zeros(shape)
    np.add.at(votes, (queries, voters), 1)
    np.add.at(sums, (queries, voters), ranking.distances[at].ravel())
    return classes, votes, sums


def _without_own(ranking: Ranking) -> Ranking:
    """Remove item i from list i."""
    owner = np.repeat(np.arange(ranking.n_queries), np.diff(ranking.indptr))
    others = ranking.items != owner
    counts = np.bincount(owner[others], minlength=len(ranking))
    indptr = indptr_of(counts)
    return Ranking(
        indptr,
        ranking.items[others],
        ranking.distances[others],
        ranking.n_items,
        similarity=ranking.similarity,
    )
