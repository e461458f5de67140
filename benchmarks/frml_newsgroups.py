"""Can FRML learn from sparse text without making it dense?

20 Newsgroups by date: 11,314 messages as tf-idf vectors of 50,000 words, rank 50, all other
parameters at their defaults. 2,000 messages of the test part are the queries, the training part
is the corpus. Peak memory is that of the whole process, including texts and vectorizer. Needs
the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from _table import publish
from sklearn.feature_extraction.text import TfidfVectorizer

from experiments.data import fetch_twenty_newsgroups
from rankspace import FRML, Index, Ranking, Relevance, evaluate


def peak() -> float:
    """Peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def cosine_map(items: Any, queries: Any, relevance: Relevance) -> float:
    """MAP of the raw unit-length vectors under cosine similarity, in blocks."""

    def blocks() -> Any:
        for start in range(0, queries.shape[0], 250):
            distances = -(queries[start : start + 250] @ items.T).toarray()
            order = np.argsort(distances, axis=1, kind="stable")
            sizes = np.arange(len(order) + 1) * order.shape[1]
            ascending = np.take_along_axis(distances, order, axis=1)
            yield Ranking(sizes, order.ravel(), ascending.ravel(), items.shape[0])

    return evaluate(blocks(), relevance, "map").means["map"]


def main() -> None:
    news = fetch_twenty_newsgroups(vectors=False)
    assert news.texts is not None
    assert news.labels is not None
    train = news.splits["train"]
    test = np.random.default_rng(0).choice(news.splits["test"], 2000, replace=False)
    vectorizer = TfidfVectorizer(
        max_features=50_000, sublinear_tf=True, dtype=np.float32
    )
    X = vectorizer.fit_transform([news.texts[i] for i in train])
    Q = vectorizer.transform([news.texts[i] for i in test])
    relevance = Relevance.from_labels(
        news.labels[train], query_labels=news.labels[test]
    )
    before = peak()
    start = time.perf_counter()
    model = FRML(50, random_state=0).fit(X, news.labels[train])
    seconds = time.perf_counter() - start
    after = peak()
    blocks = Index(model.transform(X)).blocks(model.transform(Q))
    learned = evaluate(blocks, relevance, "map").means["map"]
    rows = [
        ["raw tf-idf, cosine", cosine_map(X, Q, relevance), "", "", "", before],
        [
            "FRML, rank 50",
            learned,
            seconds,
            model.n_iter_,
            model.history_[-1]["strategy"],
            after,
        ],
    ]
    header = ["vectors", "MAP", "training seconds", "triplets", "strategy", "peak GiB"]
    publish(f"FRML on {X.shape[0]:,} x {X.shape[1]:,} sparse vectors", header, rows)


if __name__ == "__main__":
    main()
