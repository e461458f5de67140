"""Online metric learning, one pair or triplet at a time: OASIS and ITML."""

import numpy as np

from ..compiled import kernel


@kernel
def oasis(Q, X, queries, pos, neg, C, M):
    """Passive-aggressive updates of the similarity q'Mx, in place; returns the violations.

    Q, X: queries and items; queries, pos, neg: triplets of row numbers; M: (d, d).
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


@kernel
def project_in_turn(inner, signs, gamma, duals, bounds):
    """Cyclic LogDet projections, in place; returns the sum of the changes of the duals.

    inner: (n, n) inner products of the differences of pairs; signs: 1 for pairs that are to be
    near, -1 for others; bounds: their slack distances.
    """
    n, change = signs.size, 0.0
    # The step that makes the distance equal to the slack distance, which moves with it.
    share = gamma / (gamma + 1.0)
    column = np.empty(n)
    for i in range(n):
        distance = inner[i, i]
        if distance <= 0.0:
            continue
        step = signs[i] * share * (1.0 / distance - 1.0 / bounds[i])
        alpha = min(duals[i], step)
        beta = signs[i] * alpha / (1.0 - signs[i] * alpha * distance)
        bounds[i] /= 1.0 + signs[i] * alpha * bounds[i] / gamma
        duals[i] -= alpha
        change += abs(alpha)
        for e in range(n):
            column[e] = inner[i, e]
        for e in range(n):
            scaled = beta * column[e]
            for f in range(n):
                inner[e, f] += scaled * column[f]
    return change
