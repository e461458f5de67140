"""Synthetic data with a known hidden metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._engine.checks import check_finite
from ..relevance.relevance import Relevance
from ._dataset import Dataset

MAX_MATCHES = 4
MAX_OTHERS = 12
MAX_SHOWN = MAX_MATCHES + MAX_OTHERS


def make_matching(
    n_users: int = 1000,
    *,
    n_features: int = 56,
    n_hidden: int = 8,
    noise: float = 0.5,
    n_queries: int | None = None,
    hidden_map: Any = None,
    random_state: Any = None,
) -> Dataset:
    """Synthetic matching service: users with a few successful and unsuccessful matches each.

    Each user was shown 7 to 16 others. Of these, 2 to 4 were matches: the nearest under a hidden
    linear metric, up to noise. The 5 to 12 others were not, and all pairs that never met are
    unjudged and ignored. Time and memory grow in proportion to ``n_users``.

    Parameters
    ----------
    n_users : int, default=1000
        Number of users, at least 32.
    n_features : int, default=56
        Features of a user, standard normal.
    n_hidden : int, default=8
        Rank of the hidden metric.
    noise : float, default=0.5
        Standard deviation of what is added to the hidden squared distances, in units of their
        own standard deviation.
    n_queries : int, optional
        How many users, drawn at random, are queries; the others are items only. All by default.
    hidden_map : array-like of shape (n_features, n_hidden), optional
        The map under which users match; drawn at random by default. Two data sets with the same
        map are two intervals of one service.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Dataset
        Every user is an item.

    References
    ----------
    McFee and Lanckriet. Metric learning to rank. ICML 2010 (the eHarmony experiment).

    Examples
    --------
    >>> from rankspace.datasets import make_matching
    >>> dataset = make_matching(100, random_state=0)
    >>> int(dataset.relevance.n_relevant.min()), int(dataset.relevance.n_irrelevant.min())
    (2, 5)
    """
    _check_count("n_users", n_users, 2 * MAX_SHOWN)
    _check_count("n_features", n_features, 1)
    _check_count("n_hidden", n_hidden, 1)
    check_finite({"noise": noise, "hidden_map": hidden_map})
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_users, n_features))
    if hidden_map is None:
        hidden_map = rng.standard_normal((n_features, n_hidden)) / math.sqrt(n_features)
    hidden = X @ _check_map(hidden_map, n_features)
    queries = np.arange(n_users)
    if n_queries is not None:
        _check_count("n_queries", n_queries, 1)
        queries = np.sort(rng.permutation(n_users)[:n_queries])
    shown = _draw_others(queries, n_users, MAX_SHOWN, rng)
    gaps = np.stack(
        [((hidden[queries] - hidden[row]) ** 2).sum(axis=1) for row in shown.T], axis=1
    )
    gaps += noise * gaps.std() * rng.standard_normal(gaps.shape)
    shown = np.take_along_axis(shown, np.argsort(gaps, axis=1, kind="stable"), axis=1)
    return Dataset(
        "matching",
        X,
        _match_relevance(shown, queries, n_users, rng),
        description="Users and the outcomes of a few meetings each; others never met.",
    )


def _check_map(hidden_map: Any, n_features: int) -> np.ndarray:
    array = np.asarray(hidden_map, dtype=float)
    if array.ndim != 2 or len(array) != n_features:
        raise ValueError(
            f"hidden_map must have {n_features} rows: got shape {array.shape}."
        )
    return array


def _draw_others(
    users: np.ndarray, n: int, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw k distinct others of n for some users; rows with a repeat are drawn again."""
    drawn = np.empty((users.size, k), dtype=np.int64)
    pending = np.arange(users.size)
    while pending.size:
        numbers = rng.integers(0, n - 1, (pending.size, k))
        drawn[pending] = numbers + (numbers >= users[pending][:, None])
        repeats = (np.diff(np.sort(numbers, axis=1), axis=1) == 0).any(axis=1)
        pending = pending[repeats]
    return drawn


def _match_relevance(
    shown: np.ndarray, users: np.ndarray, n_users: int, rng: np.random.Generator
) -> Relevance:
    """Judge the first 2 to 4 columns of each row matches, and the last 5 to 12 not."""
    n = shown.shape[0]
    n_matches = rng.integers(2, MAX_MATCHES + 1, (n, 1))
    n_others = rng.integers(5, MAX_OTHERS + 1, (n, 1))
    column = np.arange(MAX_SHOWN)
    met = (column < n_matches) | (column >= MAX_SHOWN - n_others)
    order = np.argsort(np.where(met, shown, n_users), axis=1, kind="stable")
    matched = np.take_along_axis(
        np.broadcast_to(column < n_matches, shown.shape), order, axis=1
    )
    met = np.take_along_axis(met, order, axis=1)
    shown = np.take_along_axis(shown, order, axis=1)
    indptr = np.concatenate(([0], np.cumsum(met.sum(axis=1))))
    return Relevance(
        n_users,
        np.arange(n),
        indptr,
        shown[met],
        matched[met],
        users,
        "unjudged",
        unjudged="ignore",
    )


def _check_count(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}: got {value}.")
