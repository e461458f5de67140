"""Does tune find a planted metric in large data, and how often does it ship one that means nothing?

Permuted: judgments assigned to the wrong queries, which should be kept unchanged: 1,000 vectors
of 32 features and 100 queries whose ten nearest items under a hidden metric are relevant, and
Cranfield (225 queries, if the data folder is there). "Shipped" counts the sets with another
decision than "keep". Documents that several queries ask for are popular even when the queries are
permuted, so on Cranfield there can be something to gain.
Planted: ten items for each of 10,000 topics, which show in 64 hidden directions of 768, while all
others are random. 2,000 queries ask for one topic each, and 500 fresh ones for the same topics
("known") or for topics that tune never saw ("new"). "Share of gain" is the gain in NDCG@10 over
unchanged vectors on these, relative to that of the hidden metric, a distance in the hidden
directions. By distance tune maps both sides, as the hidden metric does; by cosine it maps the
queries only, which cannot bring the hidden parts of items to the same length. "Nearest" is harder:
random vectors, whose ten nearest items under a hidden metric are relevant; it weighs 64 directions
three times as much as the others. Peak memory is
that of the whole process, the data included; the process of each row is a new one. `--items 10000
--queries 300` is a small problem, `--permuted 0` and `--items 0` leave out a part.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed

from rankspace import Index, LinearMetric, Relevance, evaluate, tune
from rankspace.datasets import open_dataset

MEASURE = "ndcg-linear@10"
N_HIDDEN = 64
N_TEST = 500
PER_TOPIC = 10


def unit(points: np.ndarray) -> np.ndarray:
    """Rows of unit length."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


class Topics:
    """Vectors of topics that show in a few hidden directions."""

    def __init__(self, n_topics: int, d: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        basis = np.linalg.qr(self.rng.standard_normal((d, d)))[0]
        self.basis = basis.astype(np.float32)
        self.centres = self.rng.standard_normal((n_topics, N_HIDDEN), dtype=np.float32)

    @property
    def ideal(self) -> LinearMetric:
        """The metric that uses the hidden directions only."""
        return LinearMetric(self.basis[:, :N_HIDDEN].T.copy())

    def draw(self, topics: np.ndarray) -> np.ndarray:
        """A vector of each of these topics, drawn in parts that need little memory."""
        parts = np.array_split(topics, 1 + topics.size // 10_000)
        return np.vstack([self._part(part) for part in parts])

    def _part(self, topics: np.ndarray) -> np.ndarray:
        n_random = len(self.basis) - N_HIDDEN
        noise = self.rng.standard_normal((topics.size, N_HIDDEN), dtype=np.float32)
        rest = self.rng.standard_normal((topics.size, n_random), dtype=np.float32)
        hidden = self.centres[topics] + 0.3 * noise
        return unit(np.hstack([hidden, rest]) @ self.basis.T)


def of_topics(topics: np.ndarray, n_items: int) -> Relevance:
    """Queries for topics, whose items are consecutive."""
    relevant = PER_TOPIC * topics[:, None] + np.arange(PER_TOPIC)
    return Relevance.from_lists(relevant, n_items=n_items)


def score(X: np.ndarray, metric: Any, Q: np.ndarray, relevance: Relevance) -> float:
    """Mean of the measure."""
    return evaluate(Index(X, metric).rank(Q, 10), relevance, MEASURE).means[MEASURE]


def topic_rows(
    n_items: int, n_queries: int, d: int, similarity: str
) -> list[list[Any]]:
    """The share of the gain that tune finds, for known and for new topics."""
    n_topics = n_items // PER_TOPIC
    topics = Topics(n_topics, d, 0)
    X = topics.draw(np.repeat(np.arange(n_topics), PER_TOPIC))
    asked = np.arange(n_queries)
    Q = topics.draw(asked)
    learned = Learned(X, Q, of_topics(asked, n_items), topics.ideal, similarity)
    rows = []
    unseen = np.arange(n_queries, n_topics)
    for name, pool in (("known", asked), ("new", unseen)):
        chosen = topics.rng.choice(pool, min(N_TEST, pool.size), replace=False)
        points, relevance = topics.draw(chosen), of_topics(chosen, n_items)
        by = {"euclidean": "distance"}.get(similarity, similarity)
        label = f"planted, {n_items:,} x {d}, {n_queries:,} queries, by {by}, {name}"
        rows.append(learned.row(label, points, relevance))
    return rows


def nearest_rows(
    n_items: int, n_queries: int, d: int, similarity: str
) -> list[list[Any]]:
    """The share of the gain of a hidden metric that tune finds."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n_items + n_queries + N_TEST, d), dtype=np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    X, Q = points[:n_items], points[n_items:]
    hidden = three_times(N_HIDDEN, d, rng)
    relevance = nearest(X, Q, hidden)
    asked = np.arange(n_queries)
    fresh = np.arange(n_queries, n_queries + N_TEST)
    learned = Learned(X, Q[asked], relevance.take_queries(asked), hidden, similarity)
    label = f"nearest, {n_items:,} x {d}, {n_queries:,} queries, by distance"
    return [learned.row(label, Q[fresh], relevance.take_queries(fresh))]


def three_times(n: int, d: int, rng: np.random.Generator) -> LinearMetric:
    """A metric that weighs some random directions three times as much as all others."""
    basis = np.linalg.qr(rng.standard_normal((d, n)))[0]
    return LinearMetric((np.eye(d) + 2 * basis @ basis.T).astype(np.float32))


def nearest(X: np.ndarray, Q: np.ndarray, metric: LinearMetric) -> Relevance:
    """The ten nearest items are relevant."""
    lists = [items for items, _ in Index(X, metric).rank(Q, 10)]
    return Relevance.from_lists(lists, n_items=len(X))


class Learned:
    """What tune learns, how long it takes, and how much memory."""

    def __init__(
        self,
        X: np.ndarray,
        Q: np.ndarray,
        relevance: Relevance,
        hidden: LinearMetric,
        similarity: str,
    ) -> None:
        self.X, self.hidden = X, hidden
        start = time.perf_counter()
        self.tuned = tune(
            X, relevance, queries=Q, similarity=similarity, random_state=0
        )
        self.seconds = time.perf_counter() - start
        self.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(self.tuned, flush=True)

    def row(self, label: str, Q: np.ndarray, relevance: Relevance) -> list[Any]:
        """A row of the table, with the scores of fresh queries."""
        metrics = (None, self.tuned.metric, self.hidden)
        before, after, ideal = (score(self.X, m, Q, relevance) for m in metrics)
        share = (after - before) / (ideal - before)
        scores = [before, after, ideal, share]
        return [label, self.tuned.decision, *scores, self.seconds, self.peak]


def synthetic(seed: int) -> tuple[np.ndarray, np.ndarray, Relevance]:
    """Vectors and queries whose ten nearest items under a hidden metric are relevant."""
    rng = np.random.default_rng(seed)
    X = unit(rng.standard_normal((1000, 32)).astype(np.float32))
    Q = unit(rng.standard_normal((100, 32)).astype(np.float32))
    return X, Q, nearest(X, Q, three_times(4, 32, rng))


def cranfield(seed: int) -> tuple[np.ndarray, np.ndarray, Relevance]:
    """The collection, the same for each seed."""
    data = open_dataset("cranfield")
    assert data.relevance is not None
    X, Q = np.asarray(data.X), np.asarray(data.queries)
    return X.astype(np.float32), Q.astype(np.float32), data.relevance


def permuted_row(name: str, n_sets: int) -> list[Any]:
    """How many sets of permuted judgments are shipped."""
    jobs = (delayed(permuted_set)(name, seed) for seed in range(n_sets))
    runs = Parallel(n_jobs=-1)(jobs)
    n_shipped = sum(improved for improved, _ in runs)
    seconds = float(np.mean([seconds for _, seconds in runs]))
    label = f"permuted, {name}"
    return [label, f"shipped {n_shipped} of {n_sets}", "", "", "", "", seconds, ""]


def permuted_set(name: str, seed: int) -> tuple[bool, float]:
    """Whether one set of permuted judgments is shipped, and after how many seconds."""
    X, Q, relevance = {"synthetic": synthetic, "Cranfield": cranfield}[name](seed)
    order = np.random.default_rng(seed).permutation(relevance.n_queries)
    permuted = relevance.take_queries(order)
    start = time.perf_counter()
    tuned = tune(X, permuted, queries=Q, similarity="cosine", random_state=seed)
    seconds = time.perf_counter() - start
    print(name, seed, tuned.decision, flush=True)
    return tuned.improved, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--permuted", type=int, default=100, help="sets of each kind")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows: list[list[Any]] = []
    if options.items:
        parts = [
            (topic_rows, "euclidean"),
            (topic_rows, "cosine"),
            (nearest_rows, "euclidean"),
        ]
        for part, similarity in parts:
            sizes = (options.items, options.queries, options.features)
            # The peak of a new process is its own.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                rows += pool.submit(part, *sizes, similarity).result()
    if options.permuted:
        rows.append(permuted_row("synthetic", options.permuted))
        try:
            rows.append(permuted_row("Cranfield", options.permuted))
        except FileNotFoundError as error:
            print(error)
    header = [
        "data",
        "decision",
        "unchanged",
        "tuned",
        "hidden metric",
        "share of gain",
        "seconds",
        "peak GiB",
    ]
    publish("tune: planted and permuted judgments", header, rows)


if __name__ == "__main__":
    main()
