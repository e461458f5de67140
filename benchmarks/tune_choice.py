"""What does the caution of tune cost with few queries, and what does it save?

Samples of the training queries of SciFact and NFCorpus: some to learn from, 500 others as test
queries, six draws each. Gains in NDCG@10 over the unmapped vectors: of `tune`, which keeps the
vectors unless there is a significant improvement ("changed" says how often there was), and of a
listwise map that is always used, by `sides`; then the same for queries whose relevant documents
are all new. The candidates and rules of `tune` were chosen on other draws of these queries.
Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import publish
from tune import is_identity

from rankspace import Index, ListwiseMap, evaluate, tune
from rankspace.datasets import open_dataset
from rankspace.relevance.splits import Split, hold_out
from rankspace.tuning.trials import seen_queries

MEASURE = "ndcg-linear@10"
SIDES = ("separate", "query", "shared")


def drawn(name: str, n: int, seed: int) -> Split:
    """A random split of the training queries into training and test queries."""
    data = open_dataset(name)
    assert data.relevance is not None
    X = np.asarray(data.X, dtype=np.float32)
    queries = np.asarray(data.queries, dtype=np.float32)
    pool = data.splits["train"][data.relevance.trainable[data.splits["train"]]]
    order = np.random.default_rng(seed).permutation(pool)
    train, test = np.sort(order[:n]), np.sort(order[n : n + 500])
    return hold_out(X, data.relevance, queries, train, test)


def gains(split: Split, seed: int) -> tuple[np.ndarray, bool]:
    """Mean gains of tune and of each map, on all and on new-document queries; did tune change?"""
    tuned = tune(split.X, split.relevance, queries=split.queries, random_state=seed)
    maps = [ListwiseMap(sides=side, gain="linear") for side in SIDES]
    fitted = [
        model.fit(split.X, split.relevance, queries=split.queries) for model in maps
    ]
    new = ~seen_queries([split], [np.arange(len(split.points))], len(split.points))

    def values(metric: Any) -> np.ndarray:
        ranking = Index(split.X, metric).rank(split.points, 10)
        return evaluate(ranking, split.judged, MEASURE).values[MEASURE]

    baseline = values(None)
    rows = []
    for metric in (tuned.metric, *[model.metric_ for model in fitted]):
        differences = values(metric) - baseline
        on_new = np.mean(differences[new]) if new.any() else 0.0
        rows.append([np.mean(differences), on_new])
    return np.array(rows), not is_identity(tuned.metric)


def main() -> None:
    rows: list[list[Any]] = []
    for name in ("scifact", "nfcorpus"):
        for n in (100, 200, 300):
            draws = [gains(drawn(name, n, 5000 + seed), seed) for seed in range(6)]
            mean = np.mean([gain for gain, _ in draws], axis=0)
            n_changed = sum(changed for _, changed in draws)
            label = f"{n_changed} of {len(draws)}"
            rows.append([name, n, label, *mean[:, 0].tolist(), *mean[:, 1].tolist()])
            print(rows[-1], flush=True)
    header = [
        "data",
        "queries",
        "changed",
        "tune",
        *SIDES,
        "new: tune",
        *(f"new: {s}" for s in SIDES),
    ]
    publish("tune: gains with few queries", header, rows)


if __name__ == "__main__":
    main()
