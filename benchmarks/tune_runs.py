"""Does tune use runs that mean nothing, and how long does BM25 take?

Permuted: the documents of a run are shuffled, so that it should not be used. "Cranfield" is a BM25
run of its texts, shuffled anew for each set, beside the map that tune learns from all 225 queries.
"Synthetic" are 200 unit vectors of 6 features and 90 queries with three relevant documents each,
which are nearest under a hidden map, drawn anew for each set; the run ranks relevant documents
high, but is shuffled. "Used" counts the sets where the run is used, "covers 0" those where the
interval of its weight does. BM25: short documents of 60 words from a Zipf distribution, 1,000
queries of 8 words, with tokenisation, stemming and search.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from _table import publish

from rankspace import Ranking, Relevance, rank_bm25, tune
from rankspace.datasets import open_dataset
from rankspace.evaluation.runs import check_fusion, check_runs
from rankspace.evaluation.search_task import check_task
from rankspace.learners.families import families
from rankspace.tuning.signals import fuse_runs
from rankspace.tuning.trials import Deadline, Trials, best_result

N_WORDS = 50_000  # of the vocabulary


def shuffled(run: Ranking, n_items: int, seed: int) -> Ranking:
    """The same lists with other documents."""
    order = np.random.default_rng(seed).permutation(n_items)
    return replace(run, items=order[run.items])


def cranfield_row(n_sets: int) -> list[Any]:
    """Shuffled BM25 runs beside one map."""
    start = time.perf_counter()
    data = open_dataset("cranfield")
    assert data.relevance is not None
    X, Q = (np.asarray(V, dtype=np.float32) for V in (data.X, data.queries))
    task, is_judged = check_task(X, data.relevance, Q, "cosine", "ndcg-linear@10")
    task = check_fusion(task, "minmax")
    nobody = np.zeros(task.n_queries, dtype=bool)
    deadline = Deadline(None)
    trials = Trials(task, nobody, "both", 0.01, 5, 0, deadline, lambda *step: None)
    family = families(None, task.similarity, task.measure, True, 0)
    best = best_result(trials.run(family), "both")
    assert best is not None
    assert data.texts is not None
    assert data.query_texts is not None
    bm25 = rank_bm25(data.texts, data.query_texts)
    n_used = n_covering = 0
    for seed in range(n_sets):
        run = shuffled(bm25, len(X), seed)
        fused = fuse_runs(
            trials, best, check_runs({"run": run}, task, is_judged), "minmax"
        )
        n_used += "run" in fused.weights
        n_covering += fused.rows[-1].weight_low == 0
    return _row("permuted, Cranfield", n_sets, n_used, n_covering, start)


def synthetic_row(n_sets: int) -> list[Any]:
    """Shuffled runs, each with data and a map of its own."""
    start = time.perf_counter()
    n_used = n_covering = 0
    for seed in range(n_sets):
        X, Q, relevance, scores = synthetic(seed)
        run = shuffled(Ranking.from_distances(-scores).top(100), len(X), seed)
        tuned = tune(
            X,
            relevance,
            queries=Q,
            similarity="cosine",
            runs={"run": run},
            random_state=seed,
        )
        n_used += "run" in tuned.weights
        n_covering += tuned.report.signals[-1].weight_low == 0
    return _row("permuted, synthetic", n_sets, n_used, n_covering, start)


def synthetic(seed: int) -> tuple[np.ndarray, np.ndarray, Relevance, np.ndarray]:
    """Vectors, queries, judgments, and scores that are higher for relevant documents."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(200, 6)), rng.normal(size=(90, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Q /= np.linalg.norm(Q, axis=1, keepdims=True)
    near = np.argsort(-(Q * np.linspace(2, 0.1, 6)) @ X.T, axis=1)[:, :3]
    scores = rng.normal(size=(90, 200))
    np.put_along_axis(scores, near, 2 + rng.normal(size=near.shape), axis=1)
    return X, Q, Relevance.from_lists(near, n_items=200), scores


def _row(
    what: str, n_sets: int, n_used: int, n_covering: int, start: float
) -> list[Any]:
    seconds = (time.perf_counter() - start) / n_sets
    return [what, n_sets, n_used, n_covering, seconds]


def bm25_row(n_documents: int) -> list[Any]:
    """Seconds of BM25 for random texts."""
    rng = np.random.default_rng(0)
    texts = random_texts(rng, n_documents, 60)
    queries = random_texts(rng, 1000, 8)
    start = time.perf_counter()
    rank_bm25(texts, queries, k=100)
    seconds = time.perf_counter() - start
    return [f"BM25, {n_documents:,} documents", "", "", "", seconds]


def random_texts(rng: np.random.Generator, n: int, length: int) -> list[str]:
    """Texts of words by Zipf's law."""
    words = np.minimum(rng.zipf(1.2, size=(n, length)), N_WORDS)
    return [" ".join(f"word{number}" for number in row) for row in words.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=50, help="permuted sets of a kind")
    parser.add_argument("--documents", type=int, default=100_000, help="of BM25")
    options, _ = parser.parse_known_args()
    rows = []
    if options.documents:
        rows.append(bm25_row(options.documents))
    if options.sets:
        rows.append(cranfield_row(options.sets))
        rows.append(synthetic_row(options.sets))
    header = ["what", "sets", "used", "covers 0", "seconds a set"]
    publish("tune: runs that mean nothing, and BM25", header, rows)


if __name__ == "__main__":
    main()
