"""How many draws does gamma save, and what does it cost in MAP?

Draws per triplet and in total, training time, and MAP of the test queries, on digits (a quarter
held out) and on IsoLet in 170 principal components (3,000 training points, the published test
part). All other parameters have their defaults. Needs the data folder (RANKSPACE_DATA).
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
    data = load_digits()
    return train_test_split(data.X, data.labels, test_size=0.25, random_state=0)


def isolet() -> Any:
    data = fetch_isolet()
    train = data.splits["train"][::2][:3000]
    test = data.splits["test"]
    pca = PCA(170, svd_solver="full").fit(data.X[train])
    X = pca.transform(data.X[train])
    Q = pca.transform(data.X[test])
    return X, Q, data.labels[train], data.labels[test]


def total_draws(model: FRML) -> float:
    """Draws of a fit; its history has the mean since the check before."""
    draws = 0.0
    before = 0
    for row in model.history_:
        draws += row["draws"] * (row["n_triplets"] - before)
        before = row["n_triplets"]
    return draws


def rows_of(name: str, parts: Any) -> list[list[Any]]:
    items, queries, labels, query_labels = parts
    relevance = Relevance.from_labels(labels, query_labels=query_labels)
    rows: list[list[Any]] = []
    for gamma in (1, 10, 25):
        start = time.perf_counter()
        model = FRML(20, gamma=gamma, random_state=0).fit(items, labels)
        seconds = time.perf_counter() - start
        draws = total_draws(model)
        score = model.score(items, relevance, queries=queries)
        first = rows[0][4] if rows else draws
        mean = draws / model.n_iter_
        rows.append(
            [name, gamma, model.n_iter_, mean, draws, draws / first, seconds, score]
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    points = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    FRML(2, n_triplets=100).fit(points, [0, 0, 1, 1])  # compiles
    rows = [*rows_of("digits", digits()), *rows_of("IsoLet", isolet())]
    header = [
        "data",
        "gamma",
        "triplets",
        "draws per triplet",
        "draws",
        "relative to gamma 1",
        "seconds",
        "MAP",
    ]
    publish("FRML: draws by gamma", header, rows)


if __name__ == "__main__":
    main()
