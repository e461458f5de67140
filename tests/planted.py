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


def hidden(seed=0, n_items=200, n_queries=90, d=6, informative=True):
    """Unit vectors whose relevant items are nearest under a map of the queries."""
    rng = np.random.default_rng(seed)
    X, Q = unit_length(rng.normal(size=(n_items, d))), rng.normal(size=(n_queries, d))
    Q = unit_length(Q)
    near = np.argsort(-(Q * np.linspace(2, 0.1, d)) @ X.T, axis=1)[:, :3]
    if not informative:
        near = np.array([rng.permutation(n_items)[:3] for _ in Q])
    return X, Relevance.from_lists(near, n_items=n_items), Q


def topics(seed=0, n_topics=40, d=12):
    """Each topic has one document, and queries that are shifted by a direction of its own.

    What a map learns about known topics misleads it about new ones.
    """
    rng = np.random.default_rng(seed)
    documents, shifts, others = unit_length(
        rng.normal(size=(3, 150, d)).reshape(-1, d)
    ).reshape(3, 150, d)
    topic = np.repeat(np.arange(n_topics), 4)
    noise = 0.25 * rng.normal(size=(topic.size, d))
    Q = unit_length(documents[topic] + 1.4 * shifts[topic] + noise)
    X = np.concatenate((documents[:n_topics], others))
    return X, Relevance.from_lists(topic[:, None], n_items=len(X)), Q
