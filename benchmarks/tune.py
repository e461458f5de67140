"""Does tune find a planted metric in large data, and how many false positives does it have?

Planted: 100,000 unit vectors of 768 features, ten for each of 10,000 topics. The topic shows in
64 hidden directions; all others are random. 2,000 queries ask for one topic each. "Share of
gain" is the gain in NDCG@10 over the unmapped vectors (the baseline), on 500 queries of topics
that tune never saw, relative to the gain of the metric that uses the hidden directions only.
Permuted: 50 sets of 1,000 vectors of 32 features and 100 queries, whose ten nearest items under
a hidden metric are relevant, but assigned to the wrong queries; tune must return the identity.
Peak memory is that of the whole process.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from _table import publish

from rankspace import Index, LinearMetric, Relevance, evaluate, tune

MEASURE = "ndcg-linear@10"


def unit(points: np.ndarray) -> np.ndarray:
    """Rows of unit length."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def topics(
    n_topics: int, d: int, n_queries: int, n_hidden: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Relevance, LinearMetric]:
    """Ten vectors for each topic, queries for the first topics, and the ideal metric."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    centres = rng.standard_normal((n_topics, n_hidden), dtype=np.float32)

    def draw(topic: np.ndarray) -> np.ndarray:
        noise = rng.standard_normal((topic.size, n_hidden), dtype=np.float32)
        rest = rng.standard_normal((topic.size, d - n_hidden), dtype=np.float32)
        return unit(np.hstack([centres[topic] + 0.3 * noise, rest]) @ basis.T)

    X = draw(np.repeat(np.arange(n_topics), 10))
    Q = draw(np.arange(n_queries))
    relevant = np.arange(10 * n_queries).reshape(-1, 10)
    relevance = Relevance.from_lists(relevant, n_items=len(X))
    return X, Q, relevance, LinearMetric(basis[:, :n_hidden].T.copy())


def nearest(
    n: int, d: int, n_queries: int, n_strong: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Relevance]:
    """Unit vectors and queries; the ten nearest items under a hidden metric are relevant."""
    rng = np.random.default_rng(seed)
    X = unit(rng.standard_normal((n, d)).astype(np.float32))
    Q = unit(rng.standard_normal((n_queries, d)).astype(np.float32))
    basis = np.linalg.qr(rng.standard_normal((d, n_strong)))[0]
    hidden = LinearMetric((np.eye(d) + 2 * basis @ basis.T).astype(np.float32))
    near = Index(X, hidden).rank(Q, 10)
    return X, Q, Relevance.from_lists([items for items, _ in near], n_items=n)


def is_identity(metric: Any) -> bool:
    """Whether tune found no significant improvement."""
    if not isinstance(metric, LinearMetric):
        return False
    return np.array_equal(metric.components, np.eye(metric.components.shape[1]))


def score(X: np.ndarray, metric: Any, Q: np.ndarray, relevance: Relevance) -> float:
    return evaluate(Index(X, metric).rank(Q, 10), relevance, MEASURE).means[MEASURE]


def large_row() -> list[Any]:
    X, Q, relevance, hidden = topics(10_000, 768, 2500, 64, 0)
    train = relevance.take_queries(np.arange(2000))
    test = relevance.take_queries(np.arange(2000, 2500))
    start = time.perf_counter()
    tuned = tune(X, train, queries=Q[:2000], budget=540, random_state=0)
    seconds = time.perf_counter() - start
    print(tuned, flush=True)
    identity = LinearMetric(np.eye(768, dtype=np.float32))
    baseline = score(X, identity, Q[2000:], test)
    learned = score(X, tuned.metric, Q[2000:], test)
    ideal = score(X, hidden, Q[2000:], test)
    share = (learned - baseline) / (ideal - baseline)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return ["planted", baseline, learned, ideal, share, seconds, peak, ""]


def permuted_row(n_sets: int) -> list[Any]:
    n_identity = 0
    start = time.perf_counter()
    for seed in range(n_sets):
        X, Q, relevance = nearest(1000, 32, 100, 4, seed)
        order = np.random.default_rng(seed).permutation(100)
        tuned = tune(X, relevance.take_queries(order), queries=Q, random_state=seed)
        n_identity += is_identity(tuned.metric)
        print(seed, tuned.report.chosen, flush=True)
    seconds = (time.perf_counter() - start) / n_sets
    label = f"permuted, {n_sets} sets"
    return [label, "", "", "", "", seconds, "", n_identity / n_sets]


def main() -> None:
    rows = [permuted_row(50), large_row()]
    header = [
        "data",
        "baseline",
        "tuned",
        "hidden metric",
        "share of gain",
        "seconds",
        "peak GiB",
        "identity",
    ]
    publish("tune: planted and permuted judgments", header, rows)


if __name__ == "__main__":
    main()
