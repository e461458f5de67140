"""Train and held-out queries: one split for validation, or folds for cross-validation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .relevance import Relevance

FEWEST_QUERIES = 10  # fewer cannot show a significant improvement
N_FOLDS = 5  # of cross-validation
ENOUGH_HELD_OUT = 1000  # queries, after which no further fold is made


class Split(NamedTuple):
    """Training data, and held-out queries for evaluation over the same items.

    Held-out queries that are rows of ``X`` are removed from the items too, so that nothing is
    learned from them.
    """

    X: Any  # training items
    relevance: Relevance  # training judgments
    queries: Any  # vectors of the training queries, None if they are rows of X
    points: Any  # vectors of the held-out queries
    judged: Relevance  # held-out judgments, over the training items
    rows: np.ndarray | None = None  # numbers of the training items, None for all


def check_fraction(fraction: float) -> None:
    """Raise unless the fraction of held-out queries is between 0 and 1."""
    if not 0 < fraction < 1:
        raise ValueError(
            f"validation_fraction must lie between 0 and 1: got {fraction}."
        )


def split_queries(
    n_queries: int,
    fraction: float,
    random: np.random.RandomState,
    most: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Random split into training and held-out queries, at most ``most`` of them held out."""
    check_fraction(fraction)
    order = random.permutation(n_queries)
    n_held_out = max(1, round(fraction * n_queries))
    if most is not None:
        n_held_out = min(n_held_out, most)
    if n_held_out == n_queries:
        raise ValueError(f"holding out queries needs at least 2: got {n_queries}.")
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def fold_queries(
    queries: np.ndarray, dev: Any, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cross-validation folds: positions of the training and the held-out queries of each.

    With ``dev`` there is a single fold, which holds these queries out.
    """
    positions = np.arange(queries.size)
    if dev is not None:
        held_out = np.isin(queries, np.asarray(dev, dtype=int))
        if not FEWEST_QUERIES <= held_out.sum() <= queries.size - FEWEST_QUERIES:
            raise ValueError(
                f"dev must name at least {FEWEST_QUERIES} queries with judgments and leave as many "
                f"for training: it names {held_out.sum()} of {queries.size}."
            )
        return [(positions[~held_out], positions[held_out])]
    if not 2 <= n_folds <= queries.size:
        raise ValueError(
            f"n_folds must lie between 2 and {queries.size}: got {n_folds}."
        )
    order = np.random.default_rng(seed).permutation(queries.size)
    tests = [np.sort(order[start::n_folds]) for start in range(n_folds)]
    return [(np.setdiff1d(positions, test), test) for test in tests]


def hold_out(
    X: Any, relevance: Relevance, queries: Any, train: np.ndarray, held_out: np.ndarray
) -> Split:
    """Split items, judgments and queries into training and held-out ones by query number."""
    judged = relevance.take_queries(held_out)
    if queries is not None:
        taught = relevance.take_queries(train)
        return Split(X, taught, queries[train], queries[held_out], judged)
    no_query = np.setdiff1d(np.arange(relevance.n_items), relevance.query_items)
    rows = np.sort(np.concatenate((relevance.query_items[train], no_query)))
    points = X[relevance.query_items[held_out]]
    judged = judged._as_separate()._take_items(rows)
    return Split(X[rows], relevance[rows], None, points, judged, rows)


def cross_validation_splits(
    X: Any, relevance: Relevance, queries: Any, seed: int
) -> list[Split]:
    """Folds for cross-validation over queries that can be learned from; none if too few."""
    n = relevance.n_queries
    order = np.random.default_rng(seed).permutation(n)
    splits: list[Split] = []
    n_held_out = 0
    for fold in np.array_split(order, N_FOLDS):
        if not fold.size or fold.size == n or n_held_out >= ENOUGH_HELD_OUT:
            continue
        held_out = np.sort(fold[:ENOUGH_HELD_OUT])
        train = np.sort(np.setdiff1d(order, fold))
        split = hold_out(X, relevance, queries, train, held_out)
        trainable = np.flatnonzero(split.relevance.trainable)
        if trainable.size and split.judged.trainable.any():
            splits.append(_take_training_queries(split, trainable))
            n_held_out += held_out.size
    return splits


def _take_training_queries(split: Split, numbers: np.ndarray) -> Split:
    """The same split with some of its training queries."""
    queries = split.queries
    if queries is not None:
        queries = queries[numbers]
    relevance = split.relevance.take_queries(numbers)
    return split._replace(relevance=relevance, queries=queries)
