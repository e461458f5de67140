"""FRML as one would write it who only wants it right: loops, whole matrices, the same draws."""

import numpy as np

MASK = 2**64 - 1


def scramble(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform(seed, triplet, draw):
    """The random number in [0, 1) of a draw."""
    odd = 0x9E3779B97F4A7C15
    z = scramble((seed + odd * triplet) & MASK)
    return (scramble((z + odd * draw) & MASK) >> 11) * 2.0**-53


def draw_positive(relevance, q, u):
    """A relevant item, in proportion to its gain 2^grade - 1."""
    items, grades = relevance.judged(q)
    kept = grades >= relevance.min_relevant_grade
    shares = np.cumsum(2.0 ** grades[kept] - 1)
    return items[kept][np.searchsorted(shares / shares[-1], u, side="right")]


def alphas(weights, n):
    i = np.arange(1, n + 1)
    name, _, cut = weights.partition("@")
    steps = {
        "reciprocal": 1 / i,
        "uniform": np.ones(n),
        "precision": np.ones(n),
        "ndcg": 1 / np.log2(i + 1) - 1 / np.log2(i + 2),
    }[name]
    return np.where(i <= int(cut), steps, 0) if cut else steps


def retract(W, F, Z):
    """Lemma 3.2 done right: V W^+ V' by whole matrices; a factor of it in the basis of F."""
    P = F @ np.linalg.pinv(F)
    inverse = np.linalg.pinv(W, hermitian=True, rcond=1e-13)
    inside = P @ Z @ P
    across = Z @ P + P @ Z - 2 * inside
    V = (
        W
        + inside / 2
        + across
        - inside @ inverse @ inside / 8
        - across @ inverse @ inside / 2
    )
    return V @ inverse @ V.T, V @ np.linalg.pinv(F).T


def tangent(F, Z):
    """The projection of a symmetric matrix on the tangent space."""
    P = F @ np.linalg.pinv(F)
    return Z @ P + P @ Z - P @ Z @ P


def damped(W, F, Z):
    """The retraction of a step Z, with the inverse of W + t I in the place of that of W."""
    P = F @ np.linalg.pinv(F)
    inverse = np.linalg.inv(W + np.linalg.norm(P @ Z @ P) * np.eye(len(W)))
    inside = F.T @ inverse @ Z @ inverse @ F
    half = np.eye(F.shape[1]) - inside / 2
    return F @ (half + 0.375 * inside @ inside) + Z @ inverse @ F @ half


class PlainFRML:
    """The whole descent, one triplet and one draw at a time; queries are rows of X."""

    def __init__(
        self,
        X,
        relevance,
        F,
        *,
        seed,
        weights="reciprocal",
        gamma=1,
        reg=0.01,
        regularizer="pairs",
        batch_size=32,
        step=2.0,
        graph_reg=0.0,
        edges=(),
    ):
        self.X, self.relevance, self.F, self.start = X, relevance, F.copy(), F.copy()
        self.seed, self.weights, self.gamma, self.reg = seed, weights, gamma, reg
        self.regularizer, self.batch_size, self.step = regularizer, batch_size, step
        self.graph_reg, self.edges = graph_reg, edges
        self.n_triplets, self.distance, self.squares, self.n_draws = 0, 0.0, 0.0, 0

    def query(self, triplet):
        n = self.relevance.n_queries
        order = np.random.default_rng([self.seed, triplet // n]).permutation(n)
        return order[triplet % n]

    def edge(self, triplet):
        """The difference of the ends of a random edge."""
        a, b = self.edges[int(uniform(self.seed, triplet, 1) * len(self.edges))]
        return self.X[a] - self.X[b]

    def squared_distance(self, a, b):
        mapped = self.F.T @ (self.X[a] - self.X[b])
        return mapped @ mapped

    def find_violator(self, triplet, q, limit):
        """Draw with replacement; no more than floor(n / gamma) times, and at least once."""
        irrelevant = self.relevance.irrelevant(q)
        n = irrelevant.size
        most = 1 if self.weights == "uniform" else max(1, int(n // self.gamma))
        for j in range(most):
            item = irrelevant[int(uniform(self.seed, triplet, 2 + j) * n)]
            self.n_draws += 1
            if self.squared_distance(q, item) < limit:
                alpha = alphas(self.weights, n)
                return item, alpha[: n // (j + 1)].sum() / alpha.sum()
        return None, 0.0

    def gradient(self):
        """The mean gradient of a batch, a whole matrix."""
        d, m = self.F.shape
        total = np.zeros((d, d))
        for triplet in range(self.n_triplets, self.n_triplets + self.batch_size):
            q = self.query(triplet)
            pos = draw_positive(self.relevance, q, uniform(self.seed, triplet, 0))
            near = self.X[q] - self.X[pos]
            neg, weight = self.find_violator(
                triplet, q, 1 + self.squared_distance(q, pos)
            )
            if neg is not None:
                far = self.X[q] - self.X[neg]
                total += (
                    (1 - self.reg)
                    * weight
                    * (np.outer(near, near) - np.outer(far, far))
                )
            if self.graph_reg:
                edge = self.edge(triplet)
                total += self.graph_reg * np.outer(edge, edge)
            if self.regularizer == "pairs":
                total += self.reg * np.outer(near, near)
            else:
                column = self.F[:, int(uniform(self.seed, triplet, 1) * m)]
                total += self.reg * m * np.outer(column, column)
        return total / self.batch_size

    def take_step(self):
        Z = self.gradient()
        W, W0 = self.F @ self.F.T, self.start @ self.start.T
        self.squares += np.sum(tangent(self.F, Z) ** 2)
        self.distance = max(self.distance, np.linalg.norm(W - W0))
        length = (
            self.step
            * max(self.distance, 0.01 * np.linalg.norm(W0))
            / np.sqrt(self.squares)
        )
        self.F = damped(W, self.F, -length * Z)
        self.n_triplets += self.batch_size

    def run(self, n_triplets):
        while self.n_triplets < n_triplets:
            self.take_step()
        return self.F


class FactoredFRML(PlainFRML):
    """The same with tall matrices only: what one would run without the library."""

    def gradient_terms(self):
        """Differences and coefficients of the mean gradient ``V C V'``."""
        V, c = [], []
        for triplet in range(self.n_triplets, self.n_triplets + self.batch_size):
            q = self.query(triplet)
            pos = draw_positive(self.relevance, q, uniform(self.seed, triplet, 0))
            neg, weight = self.find_violator(
                triplet, q, 1 + self.squared_distance(q, pos)
            )
            V.append(self.X[q] - self.X[pos])
            c.append((1 - self.reg) * weight + self.reg)
            if neg is not None:
                V.append(self.X[q] - self.X[neg])
                c.append(-(1 - self.reg) * weight)
            if self.graph_reg:
                V.append(self.edge(triplet))
                c.append(self.graph_reg)
        return np.array(V).T, np.array(c) / self.batch_size

    def take_step(self):
        V, c = self.gradient_terms()
        F, start = self.F, self.start
        G = F.T @ F
        A = np.linalg.solve(G, F.T @ V)
        H = V @ (c[:, None] * A.T)
        Q = (A * c) @ A.T
        self.squares += 2 * np.sum((H.T @ H) * G) - np.sum((Q @ G) * (Q @ G).T)
        start_norm = np.linalg.norm(start.T @ start)
        square = np.sum(G**2) - 2 * np.sum((start.T @ F) ** 2) + start_norm**2
        self.distance = max(self.distance, np.sqrt(max(square, 0)))
        length = (
            self.step * max(self.distance, 0.01 * start_norm) / np.sqrt(self.squares)
        )
        inside = length * np.sqrt(np.trace(Q @ G @ Q @ G))
        identity = np.eye(len(Q))
        A = np.linalg.solve(G + inside * identity, F.T @ V)
        H = -length * V @ (c[:, None] * A.T)
        Q = -length * (A * c) @ A.T
        self.F = F @ (identity - Q / 2 + 0.375 * Q @ Q) + H @ (identity - Q / 2)
        self.n_triplets += self.batch_size
