"""MLR by other means: brute-force oracles, and semidefinite programs solved by Clarabel."""

import itertools

import cvxpy as cp
import numpy as np

from rankspace import Relevance
from rankspace._engine.kernels.measures import KERNELS
from rankspace.evaluation.measures import parse_measure


class Query:
    """One query: its relevant and irrelevant items, and every interleaving of them."""

    def __init__(self, point, pos, neg, measure):
        spec, k = parse_measure(measure)
        self.point, self.pos, self.neg = point, pos, neg
        n_pos, n_neg = len(pos), len(neg)
        rankings = itertools.combinations_with_replacement(range(n_neg + 1), n_pos)
        self.rankings = np.array(list(rankings))
        ones = np.ones(n_pos)

        def score(ranking):
            positions = np.arange(1, n_pos + 1) + ranking
            return KERNELS[spec.kernel](positions, ones, ones, n_neg, k)

        best = score(np.zeros(n_pos, dtype=np.int64))
        self.losses = np.array([best - score(ranking) for ranking in self.rankings])

    def psi(self, ranking):
        """psi(best) - psi(ranking), pair by pair: 2/(PN) for each that is misordered."""
        d = self.point.size
        total = np.zeros((d, d))
        for i, count in enumerate(ranking):
            for j in range(count):
                a, b = self.point - self.pos[i], self.point - self.neg[j]
                total += np.outer(b, b) - np.outer(a, a)
        return 2 * total / (len(self.pos) * len(self.neg))

    def most_violated(self, W):
        """The ranking of the largest violation; the lists are in the order of the metric."""
        near = {}
        for name in ("pos", "neg"):
            differences = self.point - getattr(self, name)
            distances = np.einsum("ij,jk,ik->i", differences, W, differences)
            order = np.argsort(distances)
            setattr(self, name, getattr(self, name)[order])
            near[name] = distances[order]
        sums = np.concatenate(([0], np.cumsum(near["neg"])))
        margins = (sums[self.rankings] - self.rankings * near["pos"]).sum(axis=1)
        values = self.losses - 2 * margins / (len(self.pos) * len(self.neg))
        worst = int(np.argmax(values))
        return values[worst], self.losses[worst], self.psi(self.rankings[worst])


def queries_of(X, relevance: Relevance, measure):
    """The trainable queries of a problem whose queries are rows."""
    return [
        Query(
            X[relevance.query_items[q]],
            X[relevance.relevant(q)],
            X[relevance.irrelevant(q)],
            measure,
        )
        for q in np.flatnonzero(relevance.trainable)
    ]


def objective(W, queries, C, regularizer):
    """The true objective, by brute force."""
    slack = np.mean([max(0.0, query.most_violated(W)[0]) for query in queries])
    return regularizer(W) + C * slack, slack


def solve(queries, d, C, regularizer, constraints=lambda W: [W >> 0], tol=1e-7):
    """Minimise ``regularizer(W) + C * mean slack`` by planes of each query, to a tolerance.

    A slack for each query: the mean of their maxima is the maximum of the mean. Returns the value,
    W, and the number of planes that are active at it.
    """
    planes, W_value = [], np.zeros((d, d))
    for _ in range(200):
        found = [query.most_violated(W_value) for query in queries]
        planes += [(q, delta, psi) for q, (_, delta, psi) in enumerate(found)]
        W, xi = (
            cp.Variable((d, d), symmetric=True),
            cp.Variable(len(queries), nonneg=True),
        )
        cuts = [
            xi[q] >= delta - cp.sum(cp.multiply(psi, W)) for q, delta, psi in planes
        ]
        problem = cp.Problem(
            cp.Minimize(regularizer(W) + C * cp.sum(xi) / len(queries)),
            cuts + constraints(W),
        )
        problem.solve(
            solver=cp.CLARABEL,
            tol_gap_abs=tol,
            tol_gap_rel=tol,
            tol_feas=tol,
            max_iter=500,
        )
        W_value = W.value
        true = np.mean([max(0.0, query.most_violated(W_value)[0]) for query in queries])
        if C * (true - np.mean(xi.value)) <= 1e-6 * max(1.0, abs(problem.value)):
            break
    active = sum(float(cut.dual_value) > 1e-6 * C for cut in cuts)
    return problem.value, W_value, active
