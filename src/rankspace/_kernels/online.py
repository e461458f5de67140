"""Metrics learned from one pair or triplet after another."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def oasis(Q, X, queries, pos, neg, C, M):
    """Passive-aggressive updates of the similarity q'Mx, in place; returns how many violated.

    Q, X: queries and items; queries, pos, neg: a triplet in each place; M: (d, d).
    """
    d = M.shape[0]
    difference, n_violators = np.empty(d), 0
    for t in range(queries.size):
        query = Q[queries[t]]
        squares = similarity = 0.0
        for f in range(d):
            difference[f] = X[pos[t], f] - X[neg[t], f]
            squares += difference[f] ** 2
        for e in range(d):
            row = 0.0
            for f in range(d):
                row += M[e, f] * difference[f]
            similarity += query[e] * row
        size = squares * np.sum(query**2)
        if similarity < 1.0 and size > 0.0:
            n_violators += 1
            length = min(C, (1.0 - similarity) / size)
            for e in range(d):
                for f in range(d):
                    M[e, f] += length * query[e] * difference[f]
    return n_violators


@njit(cache=True, nogil=True)
def itml_round(V, similar, gamma, duals, bounds, A):
    """Project on each constraint in turn, in place; returns the sum of the changes of the duals.

    V: (n, d) differences of pairs; similar: whether they are to be near; bounds: their slack
    distances.
    """
    d, change = A.shape[0], 0.0
    mapped = np.empty(d)
    for i in range(V.shape[0]):
        distance = 0.0
        for e in range(d):
            mapped[e] = 0.0
            for f in range(d):
                mapped[e] += A[e, f] * V[i, f]
            distance += mapped[e] * V[i, e]
        if distance <= 0.0:
            continue
        sign = 1.0 if similar[i] else -1.0
        alpha = min(duals[i], sign / 2.0 * (1.0 / distance - gamma / bounds[i]))
        beta = sign * alpha / (1.0 - sign * alpha * distance)
        bounds[i] = gamma * bounds[i] / (gamma + sign * alpha * bounds[i])
        duals[i] -= alpha
        change += abs(alpha)
        for e in range(d):
            for f in range(d):
                A[e, f] += beta * mapped[e] * mapped[f]
    return change
