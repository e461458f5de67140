"""What does gamma save, and what does it cost?

Draws a triplet and in all, seconds to learn, and MAP of the test part, on a quarter of digits and
on IsoLet in 170 principal components (3,000 points to learn on, its published test part); all else
is at its defaults. Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

import time
from typing import Any

from _table import publish
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from rankspace import FRML, Relevance
from rankspace.datasets import fetch_isolet, load_digits


def digits() -> Any:
    whole = load_digits()
    return train_test_split(whole.X, whole.labels, test_size=0.25, random_state=0)


def isolet() -> Any:
    whole = fetch_isolet()
    train, test = whole.splits["train"][::2][:3000], whole.splits["test"]
    pca = PCA(170, svd_solver="full").fit(whole.X[train])
    X, Q = pca.transform(whole.X[train]), pca.transform(whole.X[test])
    return X, Q, whole.labels[train], whole.labels[test]


def rows_of(name: str, parts: Any) -> list[list[Any]]:
    items, queries, labels, query_labels = parts
    relevance = Relevance.from_labels(labels, query_labels=query_labels)
    rows: list[list[Any]] = []
    for gamma in (1, 10, 25):
        start = time.perf_counter()
        model = FRML(20, gamma=gamma, random_state=0).fit(items, labels)
        seconds = time.perf_counter() - start
        ends = [0, *(row["n_triplets"] for row in model.history_)]
        draws = sum(
            row["draws"] * (row["n_triplets"] - before)
            for row, before in zip(model.history_, ends, strict=False)
        )
        score = model.score(items, relevance, queries=queries)
        first = rows[0][4] if rows else draws
        mean = draws / model.n_iter_
        rows.append(
            [name, gamma, model.n_iter_, mean, draws, draws / first, seconds, score]
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    FRML(2, n_triplets=100).fit(
        [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [0, 0, 1, 1]
    )
    rows = [*rows_of("digits", digits()), *rows_of("IsoLet", isolet())]
    header = [
        "data", "gamma", "triplets", "draws a triplet", "draws", "of those at gamma 1", "seconds",
        "MAP",
    ]  # fmt: skip
    publish("FRML: draws against gamma", header, rows)


if __name__ == "__main__":
    main()
