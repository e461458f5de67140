"""What does gamma save, and what does it cost?

Draws a triplet and in all, seconds to learn, and MAP of a held-out quarter, all else at its
defaults. Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

import time
from typing import Any

from _table import publish
from frml_steps import SETS, sample
from sklearn.model_selection import train_test_split

from rankspace import FRML, Relevance


def rows_of(name: str) -> list[list[Any]]:
    X, y = sample(name)
    parts = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    items, queries, labels, query_labels = parts
    relevance = Relevance.from_labels(labels, query_labels=query_labels)
    rows: list[list[Any]] = []
    for gamma in (1, 10, 25):
        start = time.perf_counter()
        model = FRML(SETS[name][2], gamma=gamma, random_state=0).fit(items, labels)
        seconds = time.perf_counter() - start
        every = model.history_[0]["n_triplets"]
        draws = sum(row["draws"] for row in model.history_) * every
        score = model.score(items, relevance, queries=queries)
        mean = draws / model.n_iter_
        first = rows[0][4] if rows else draws
        rows.append([name, gamma, model.n_iter_, mean, draws, draws / first, seconds, score])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    rows = [row for name in ("digits", "IsoLet") for row in rows_of(name)]
    header = [
        "data", "gamma", "triplets", "draws a triplet", "draws", "of those at gamma 1", "seconds",
        "MAP",
    ]  # fmt: skip
    publish("FRML: draws against gamma", header, rows)


if __name__ == "__main__":
    main()
