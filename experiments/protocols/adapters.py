"""The query adapter that people use in practice: a trained linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankspace import BilinearMetric, Index, Relevance, evaluate

MEASURE = "ndcg-linear@10"
N_EPOCHS = 30
LEARNING_RATES = (0.001, 0.005)
BATCH_SIZE = 32


def adapter(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray, seed: int
) -> BilinearMetric:
    """A linear layer for queries, trained by Adam on an in-batch contrastive loss.

    Each query is to find its own document among those of its batch, by 20 times the cosine. The
    learning rate and the number of epochs are the best on held-out queries; the layer is then
    trained on all queries.
    """
    train, validation = split(relevance.n_queries, seed)
    part = relevance.take_queries(train)
    scores = {}
    for rate in LEARNING_RATES:
        layers = _train(X, part, queries[train], rate, seed)
        for epoch, layer in enumerate(layers):
            scores[rate, epoch] = score(X, layer, relevance, queries, validation)
    rate, epoch = max(scores, key=scores.__getitem__)
    return query_map(_train(X, relevance, queries, rate, seed)[epoch])


def _train(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray, rate: float, seed: int
) -> list[np.ndarray]:
    """The layer after each epoch."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    torch.manual_seed(seed)
    query_rows, document_rows = pairs(X, relevance, queries)
    Q = torch.tensor(query_rows, dtype=torch.float32)
    D = torch.tensor(document_rows, dtype=torch.float32)
    layer = torch.nn.Linear(Q.shape[1], Q.shape[1], bias=False)
    torch.nn.init.eye_(layer.weight)
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    layers = []
    for _ in range(N_EPOCHS):
        for batch in torch.randperm(len(Q)).split(BATCH_SIZE):
            logits = 20 * normalize(layer(Q[batch])) @ normalize(D[batch]).T
            loss = cross_entropy(logits, torch.arange(len(batch)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        layers.append(layer.weight.detach().numpy().astype(np.float64))
    return layers


def pairs(X: Any, relevance: Relevance, queries: Any) -> tuple[np.ndarray, np.ndarray]:
    """A row for each query and relevant document of it."""
    relevant = [relevance.relevant(q) for q in range(relevance.n_queries)]
    numbers = np.repeat(np.arange(len(relevant)), [items.size for items in relevant])
    return np.asarray(queries)[numbers], np.asarray(X)[np.concatenate(relevant)]


def split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of the queries to train on, and a fifth for validation."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n // 5 :]), np.sort(order[: n // 5])


def query_map(W: np.ndarray) -> BilinearMetric:
    """A metric that maps queries and leaves documents unchanged."""
    return BilinearMetric(W, np.eye(len(W)), similarity="cosine")


def score(
    X: np.ndarray,
    W: np.ndarray,
    relevance: Relevance,
    queries: np.ndarray,
    numbers: np.ndarray,
) -> float:
    """The measure of some queries under a map of the queries."""
    ranking = Index(X, query_map(W)).rank(queries[numbers], 10)
    return evaluate(ranking, relevance.take_queries(numbers), MEASURE).means[MEASURE]
