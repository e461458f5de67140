"""Does tune find a planted metric in large data, and does it ever sell noise?

Planted: 100,000 unit vectors of 768 features, ten to each of 10,000 topics, which say what they are
about in 64 hidden directions and differ at random in all others; 2,000 queries want a topic each.
"Won" is the gain in NDCG@10 over the vectors as they are on 500 queries of topics that tune never
saw, as a share of the gain of the metric that looks at the hidden directions alone. Permuted: 50
sets of 1,000 vectors of 32 features and 100 queries, whose ten nearest items under a hidden metric
are relevant, but dealt to the wrong queries; the answer must be the identity. Peak memory is that
of the whole process.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from _table import publish

from rankspace import Index, LinearMetric, Relevance, evaluate, tune

MEASURE = "ndcg-linear@10"


def topics(
    n_topics: int, d: int, n_queries: int, n_hidden: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Relevance, LinearMetric]:
    """Ten vectors to each topic, queries for the first topics, and the metric that sees topics."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    centres = rng.standard_normal((n_topics, n_hidden), dtype=np.float32)

    def draw(topic: np.ndarray) -> np.ndarray:
        own = centres[topic] + 0.3 * rng.standard_normal(
            (topic.size, n_hidden), dtype=np.float32
        )
        rest = rng.standard_normal((topic.size, d - n_hidden), dtype=np.float32)
        points = np.hstack([own, rest]) @ basis.T
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    X, Q = draw(np.repeat(np.arange(n_topics), 10)), draw(np.arange(n_queries))
    relevant = np.arange(10 * n_queries).reshape(-1, 10)
    relevance = Relevance.from_lists(relevant, n_items=len(X))
    return X, Q, relevance, LinearMetric(basis[:, :n_hidden].T.copy())


def nearest(
    n: int, d: int, n_queries: int, n_strong: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Relevance]:
    """Unit vectors, queries among them, and who is near under a hidden metric."""
    rng = np.random.default_rng(seed)
    X, Q = (
        points / np.linalg.norm(points, axis=1, keepdims=True)
        for points in (
            rng.standard_normal((size, d)).astype(np.float32) for size in (n, n_queries)
        )
    )
    basis = np.linalg.qr(rng.standard_normal((d, n_strong)))[0]
    hidden = LinearMetric((np.eye(d) + 2 * basis @ basis.T).astype(np.float32))
    near = Index(X, hidden).rank(Q, 10)
    return X, Q, Relevance.from_lists([items for items, _ in near], n_items=n)


def score(X: np.ndarray, metric: Any, Q: np.ndarray, relevance: Relevance) -> float:
    return evaluate(Index(X, metric).rank(Q, 10), relevance, MEASURE).means[MEASURE]


def large_row() -> list[Any]:
    X, Q, relevance, hidden = topics(10_000, 768, 2500, 64, 0)
    taught, judged = relevance.take_queries(np.arange(2000)), relevance.take_queries(
        np.arange(2000, 2500)
    )  # fmt: skip
    start = time.perf_counter()
    tuned = tune(X, taught, queries=Q[:2000], budget=540, random_state=0)
    seconds = time.perf_counter() - start
    print(tuned, flush=True)
    identity = LinearMetric(np.eye(768, dtype=np.float32))
    raw, found, best = (
        score(X, metric, Q[2000:], judged)
        for metric in (identity, tuned.metric, hidden)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        "planted",
        raw,
        found,
        best,
        (found - raw) / (best - raw),
        seconds,
        peak,
        "",
    ]


def permuted_row(n_sets: int) -> list[Any]:
    kept, start = 0, time.perf_counter()
    for seed in range(n_sets):
        X, Q, relevance = nearest(1000, 32, 100, 4, seed)
        order = np.random.default_rng(seed).permutation(100)
        tuned = tune(X, relevance.take_queries(order), queries=Q, random_state=seed)
        kept += tuned.report.chosen == "unchanged"
        print(seed, tuned.report.chosen, flush=True)
    seconds = (time.perf_counter() - start) / n_sets
    return [f"permuted, {n_sets} sets", "", "", "", "", seconds, "", kept / n_sets]


def main() -> None:
    rows = [permuted_row(50), large_row()]
    header = [
        "data", "as they are", "tuned", "hidden", "won", "seconds", "peak GiB", "identity",
    ]  # fmt: skip
    publish("tune: planted and permuted judgments", header, rows)


if __name__ == "__main__":
    main()
