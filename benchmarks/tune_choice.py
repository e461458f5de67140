"""What does tune's caution cost, and what does it save, when queries are few?

Parts of the training queries of SciFact and NFCorpus: some to learn from, 500 others to judge, six
draws each. Gains in NDCG@10 over the vectors as they are: of `tune`, which keeps the vectors unless
something is better beyond chance ("moved" is how often it was), and of one listwise map taken
always; then the same for queries with new documents only. What `tune` tries and how it chooses was
settled on other draws of these queries. Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import publish

from rankspace import Index, ListwiseMap, evaluate, tune
from rankspace.datasets import open_dataset
from rankspace.relevance.splits import Split, hold_out
from rankspace.tuning.cross_validation import seen_queries

MEASURE = "ndcg-linear@10"
SIDES = ("separate", "query", "shared")


def drawn(name: str, n: int, seed: int) -> Split:
    """Some training queries to learn from, and others to judge."""
    data = open_dataset(name)
    assert data.relevance is not None
    X, queries = (
        np.asarray(points, dtype=np.float32) for points in (data.X, data.queries)
    )
    pool = data.splits["train"][data.relevance.trainable[data.splits["train"]]]
    order = np.random.default_rng(seed).permutation(pool)
    train, test = np.sort(order[:n]), np.sort(order[n : n + 500])
    return hold_out(X, data.relevance, queries, train, test)


def gains(split: Split, seed: int) -> tuple[np.ndarray, bool]:
    """Of tune and of each map: the gain of all held-out queries, and of those with new items."""
    tuned = tune(split.X, split.relevance, queries=split.queries, random_state=seed)
    maps = [ListwiseMap(sides=side, gain="linear") for side in SIDES]
    fitted = [
        model.fit(split.X, split.relevance, queries=split.queries) for model in maps
    ]
    new = ~seen_queries([split], [np.arange(len(split.points))], len(split.points))
    values = [
        evaluate(Index(split.X, metric).rank(split.points, 10), split.judged, MEASURE)
        for metric in (None, tuned.metric, *(model.metric_ for model in fitted))
    ]
    differences = [v.values[MEASURE] - values[0].values[MEASURE] for v in values[1:]]
    rows = [[np.mean(d), np.mean(d[new]) if new.any() else 0.0] for d in differences]
    return np.array(rows), tuned.report.chosen != "unchanged"


def main() -> None:
    rows: list[list[Any]] = []
    for name in ("scifact", "nfcorpus"):
        for n in (100, 200, 300):
            found = [gains(drawn(name, n, 5000 + seed), seed) for seed in range(6)]
            mean = np.mean([gain for gain, _ in found], axis=0)
            moved = f"{sum(moved for _, moved in found)} of {len(found)}"
            rows.append([name, n, moved, *mean[:, 0].tolist(), *mean[:, 1].tolist()])
            print(rows[-1], flush=True)
    header = [
        "data",
        "queries",
        "moved",
        "tune",
        *SIDES,
        "new: tune",
        *(f"new: {s}" for s in SIDES),
    ]
    publish("tune: what choosing is worth", header, rows)


if __name__ == "__main__":
    main()
