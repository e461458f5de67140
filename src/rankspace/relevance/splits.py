"""Queries held out of training, to judge what is learned from the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .relevance import Relevance

FEWEST_QUERIES = 10  # that can tell a gain from chance


class Split(NamedTuple):
    """What is learned from, and the held-out queries that judge it over the same items.

    Queries that are rows of ``X`` leave it when they are held out, so nothing is learned from them.
    """

    X: Any
    relevance: Relevance
    queries: Any
    points: Any
    judged: Relevance
    rows: np.ndarray | None = None  # which items these are, if not all


def check_fraction(fraction: float) -> None:
    """Raise unless a part of the queries can be held out."""
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
    """Numbers of the queries to learn from, and of those held out."""
    check_fraction(fraction)
    order = random.permutation(n_queries)
    n_held_out = max(1, round(fraction * n_queries))
    n_held_out = n_held_out if most is None else min(n_held_out, most)
    if n_held_out == n_queries:
        raise ValueError(f"holding out queries needs at least 2: got {n_queries}.")
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def fold_queries(
    kept: np.ndarray, dev: Any, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places of the queries to learn from and to judge by, for each fold."""
    places = np.arange(kept.size)
    if dev is not None:
        held_out = np.isin(kept, np.asarray(dev, dtype=int))
        if not FEWEST_QUERIES <= held_out.sum() <= kept.size - FEWEST_QUERIES:
            raise ValueError(
                f"dev must name at least {FEWEST_QUERIES} queries with judgments and leave as many "
                f"to learn from: it names {held_out.sum()} of {kept.size}."
            )
        return [(places[~held_out], places[held_out])]
    if not 2 <= n_folds <= kept.size:
        raise ValueError(f"n_folds must lie between 2 and {kept.size}: got {n_folds}.")
    order = np.random.default_rng(seed).permutation(kept.size)
    tests = [np.sort(order[start::n_folds]) for start in range(n_folds)]
    return [(np.setdiff1d(places, test), test) for test in tests]


def hold_out(
    X: Any, relevance: Relevance, queries: Any, train: np.ndarray, held_out: np.ndarray
) -> Split:
    """Split items, judgments and queries by the numbers of the queries."""
    if queries is not None:
        taught, judged = relevance.take_queries(train), relevance.take_queries(held_out)
        return Split(X, taught, queries[train], queries[held_out], judged)
    no_query = np.setdiff1d(np.arange(relevance.n_items), relevance.query_items)
    rows = np.sort(np.concatenate((relevance.query_items[train], no_query)))
    judged = _over_items(relevance.take_queries(held_out), rows)
    return Split(
        X[rows], relevance[rows], None, X[relevance.query_items[held_out]], judged, rows
    )


def _over_items(relevance: Relevance, rows: np.ndarray) -> Relevance:
    """The same queries, as separate ones, over some of the items."""
    separate = replace(relevance, query_items=np.full(relevance.n_queries, -1))
    return separate._take_items(rows)


N_FOLDS = 5  # of cross-validation
ENOUGH_HELD_OUT = 1000  # queries, after which no further fold is made


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
