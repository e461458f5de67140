"""PARCA in plain loops."""

import numpy as np
from scipy.special import logsumexp


def log_ratio(Q, X, relevance, numbers=None):
    """Log of the weighted mean of F_q over queries, pair by pair."""
    numbers = range(relevance.n_queries) if numbers is None else numbers
    logs, weights = [], []
    for q in numbers:
        relevant = set(relevance.relevant(q))
        irrelevant = set(relevance.irrelevant(q))
        assert relevance.query_items[q] not in relevant | irrelevant
        pairs = [
            np.sum((Q[q] - X[j]) ** 2) - np.sum((Q[q] - X[k]) ** 2)
            for j in relevant
            for k in irrelevant
        ]
        logs.append(logsumexp(pairs) - np.log(len(pairs)))
        weights.append(relevance.weights[q])
    return logsumexp(logs, b=np.array(weights) / np.sum(weights))


def slopes(function, at, step=1e-6):
    """Gradient of a function of a matrix by finite differences."""
    gradient = np.empty_like(at)
    for place in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[place] = step
        gradient[place] = (function(at + shift) - function(at - shift)) / (2 * step)
    return gradient


def entropy(B):
    """Mean over features of the entropy of their shares in the components, 1 if all are equal."""
    A = 1 / (1 + np.exp(-B))
    total = 0.0
    for d in range(A.shape[1]):
        shares = A[:, d] / sum(A[:, d])
        total -= sum(p * np.log(p) for p in shares)
    return total / A.shape[1] / np.log(len(A))
