"""What does FRML lose when shards of the queries descend at once and take their mean?

Digits, 1,257 to learn from and 540 to judge by, every held-out digit ranking those learned from;
rank 16, 40,000 triplets in all whatever the number of shards, the mean of four seeds and its
standard error. "without turning": the same with the mean of the factors as they are, which a
rotation of each may spoil.
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
    found = np.array([map_of(n_shards, seed) for seed in SEEDS])
    error = found.std(ddof=1) / np.sqrt(found.size)
    change = "–" if alone is None else f"{(found - alone).mean():+.4f}"
    return [
        name,
        n_shards,
        float(found.mean().round(4)),
        float(error.round(4)),
        change,
    ], found


def main() -> None:
    first, alone = row("FRML", 1, None)
    rows = [first, *(row("FRML", n, alone)[0] for n in (2, 4, 8))]
    turned, sharded_descent.turned = sharded_descent.turned, lambda F, towards: F
    rows.append(row("without turning", 8, alone)[0])
    sharded_descent.turned = turned
    publish("FRML on shards", ["", "shards", "MAP", "standard error", "change"], rows)


if __name__ == "__main__":
    main()
