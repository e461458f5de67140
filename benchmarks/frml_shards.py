"""How much MAP does FRML lose when it trains on shards of the queries in parallel?

Digits: 1,257 training images are the corpus, 540 held-out images the queries. Rank 16, and
40,000 triplets in total for any number of shards, which are averaged; the mean of four seeds and
its standard error. "Without alignment" averages the factors without the rotation (orthogonal
Procrustes) that aligns them first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import publish
from sklearn.model_selection import train_test_split

from rankspace import FRML, Index, Relevance, evaluate
from rankspace.datasets import load_digits
from rankspace.learners.solvers.warp import sharded as sharded_descent

SEEDS = range(4)


def map_of(n_shards: int, seed: int) -> float:
    dataset = load_digits()
    X, Q, y, labels = train_test_split(
        dataset.X,
        dataset.labels,
        test_size=540,
        random_state=seed,
        stratify=dataset.labels,
    )
    model = FRML(
        16, n_shards=n_shards, n_triplets=40_000, check_every=5000, random_state=seed
    )
    relevance = Relevance.from_labels(y, query_labels=labels)
    blocks = Index(X, model.fit(X, y).metric_).blocks(Q)
    return evaluate(blocks, relevance, "map").means["map"]


def row(
    name: str, n_shards: int, alone: np.ndarray | None
) -> tuple[list[Any], np.ndarray]:
    scores = np.array([map_of(n_shards, seed) for seed in SEEDS])
    mean = float(scores.mean().round(4))
    error = scores.std(ddof=1) / np.sqrt(scores.size)
    change = "–"
    if alone is not None:
        change = f"{(scores - alone).mean():+.4f}"
    return [name, n_shards, mean, float(error.round(4)), change], scores


def main() -> None:
    first, alone = row("FRML", 1, None)
    rows = [first, *(row("FRML", n, alone)[0] for n in (2, 4, 8))]
    turned, sharded_descent.turned = sharded_descent.turned, lambda F, towards: F
    rows.append(row("without alignment", 8, alone)[0])
    sharded_descent.turned = turned
    publish("FRML on shards", ["", "shards", "MAP", "standard error", "change"], rows)


if __name__ == "__main__":
    main()
