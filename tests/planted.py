"""Queries whose relevant items are the nearest in half of the features."""

import numpy as np

from rankspace import Relevance


def nearest(Q, X, weights, k=5):
    """The k nearest items of each query under weighted Euclidean distance."""
    distances = (((Q[:, None] - X) * weights) ** 2).sum(axis=2)
    return np.argsort(distances, axis=1)[:, :k]


def planted(seed=0, n_items=300, n_queries=60, informative=True):
    """Items, judgments and queries; judgments are random if not informative."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(n_items, 6)), rng.normal(size=(n_queries, 6))
    lists = nearest(Q, X, np.repeat([2.0, 0.1], 3))
    if not informative:
        lists = np.array([rng.permutation(n_items)[:5] for _ in range(n_queries)])
    return X, Relevance.from_lists(lists.tolist(), n_items=n_items), Q


def unit_length(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)
