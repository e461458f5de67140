"""Does FRML need its step size tuned?

MAP of held-out queries (a quarter of each set, never seen in training) for the default step times
powers of 2, all else at its defaults; mean of three splits for the two small sets. "Below the best"
is how far the default is from the best of the row. Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import publish
from sklearn.model_selection import train_test_split

from rankspace import FRML, Relevance
from rankspace.datasets import (
    fetch_covertype,
    fetch_imagenet_frml,
    fetch_isolet,
    fetch_mnist,
    load_digits,
    load_wine,
)

DEFAULT = FRML().step
POWERS = (-6, -4, -2, 0, 2, 4, 6)
SETS = {
    "wine": (load_wine, None, 10, 3),
    "digits": (load_digits, None, 20, 1),
    "IsoLet": (fetch_isolet, 1500, 30, 1),
    "imagenet-frml": (fetch_imagenet_frml, None, 20, 3),
    "covertype": (fetch_covertype, 2500, 30, 1),
    "MNIST": (fetch_mnist, 1500, 30, 1),
}


def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels; wine and covertype in units of their standard deviations."""
    load, n, _, _ = SETS[name]
    data = load()
    rows = np.random.default_rng(0).permutation(len(data.labels))[:n]
    X = np.asarray(data.X[rows], dtype=float)
    if name in ("wine", "covertype"):
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return X, data.labels[rows]


def score(X: np.ndarray, y: np.ndarray, m: int, step: float, split: int) -> float:
    parts = train_test_split(X, y, test_size=0.25, random_state=split, stratify=y)
    items, queries, labels, query_labels = parts
    model = FRML(m, step=step, random_state=split).fit(items, labels)
    relevance = Relevance.from_labels(labels, query_labels=query_labels)
    return model.score(items, relevance, queries=queries)


def row(name: str) -> list[Any]:
    X, y = sample(name)
    _, _, m, n_splits = SETS[name]
    scores = [
        float(np.mean([score(X, y, m, DEFAULT * 2.0**power, s) for s in range(n_splits)]))
        for power in POWERS
    ]
    below = max(scores) - scores[POWERS.index(0)]
    print(name, np.round(scores, 4), flush=True)
    return [f"{name}, {len(X):,} x {X.shape[1]}, rank {m}", *scores, below]


def main() -> None:
    header = ["data", *(f"2^{power}" for power in POWERS), "below the best"]
    publish("FRML: MAP by step size", header, [row(name) for name in SETS])


if __name__ == "__main__":
    main()
