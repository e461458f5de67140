"""What people put in front of an index today: a linear adapter of the queries, and regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..evaluation.measures import evaluate
from ..metrics.embedding import BilinearMetric
from ..relevance.relevance import Relevance
from ..search.index import Index

MEASURE = "ndcg-linear@10"
EPOCHS, RATES = 30, (0.001, 0.005)


def ridge(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray, seed: int
) -> BilinearMetric:
    """Regression of relevant documents on their queries; the penalty by held-out queries."""
    penalties = (0.1, 1.0, 10.0, 100.0)

    def learn(part: Relevance, points: np.ndarray, penalty: float) -> np.ndarray:
        Q, D = pairs(X, part, points)
        return np.linalg.solve(Q.T @ Q + penalty * np.eye(Q.shape[1]), Q.T @ D).T

    train, held_out = halves(relevance.n_queries, seed)
    scores = [
        score(
            X,
            learn(relevance.take_queries(train), queries[train], penalty),
            relevance,
            queries,
            held_out,
        )
        for penalty in penalties
    ]
    best = penalties[int(np.argmax(scores))]
    return query_map(learn(relevance, queries, best))


def adapter(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray, seed: int
) -> BilinearMetric:
    """A linear layer for queries, trained by Adam on an in-batch contrastive loss.

    Each query is to find its own document among those of its batch, by cosine times 20. Rate and
    number of epochs are those of the best held-out queries; all queries are then learned from.
    """
    train, held_out = halves(relevance.n_queries, seed)
    part, points = relevance.take_queries(train), queries[train]
    scores = {
        (rate, number): score(X, layer, relevance, queries, held_out)
        for rate in RATES
        for number, layer in enumerate(_epochs(X, part, points, rate, seed))
    }
    rate, number = max(scores, key=scores.__getitem__)
    return query_map(_epochs(X, relevance, queries, rate, seed)[number])


def _epochs(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray, rate: float, seed: int
) -> list[np.ndarray]:
    """The layer after each epoch."""
    import torch

    torch.manual_seed(seed)
    Q, D = (
        torch.tensor(points, dtype=torch.float32)
        for points in pairs(X, relevance, queries)
    )
    layer = torch.nn.Linear(Q.shape[1], Q.shape[1], bias=False)
    torch.nn.init.eye_(layer.weight)
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    found = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(Q)).split(32):
            mapped = torch.nn.functional.normalize(layer(Q[batch]))
            similar = 20 * mapped @ torch.nn.functional.normalize(D[batch]).T
            loss = torch.nn.functional.cross_entropy(similar, torch.arange(len(batch)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found.append(layer.weight.detach().numpy().astype(np.float64))
    return found


def pairs(X: Any, relevance: Relevance, queries: Any) -> tuple[np.ndarray, np.ndarray]:
    """A row for each query and relevant document of it."""
    relevant = [relevance.relevant(q) for q in range(relevance.n_queries)]
    numbers = np.repeat(np.arange(len(relevant)), [items.size for items in relevant])
    return np.asarray(queries)[numbers], np.asarray(X)[np.concatenate(relevant)]


def halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of the queries, and the others."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n // 5 :]), np.sort(order[: n // 5])


def query_map(W: np.ndarray) -> BilinearMetric:
    """Queries mapped, documents as they are."""
    return BilinearMetric(W, np.eye(len(W)))


def score(
    X: np.ndarray,
    W: np.ndarray,
    relevance: Relevance,
    queries: np.ndarray,
    who: np.ndarray,
) -> float:
    """The measure of some queries under a map of the queries."""
    ranking = Index(X, query_map(W)).rank(queries[who], 10)
    return evaluate(ranking, relevance.take_queries(who), MEASURE).means[MEASURE]
