"""How good is a metric after so many seconds: FRML, MLR-MAP, LORETA and OASIS?

IsoLet, 6,238 training points in 170 principal components, which the 1,559 points of its test part
rank. Each learner is run anew with more and more triplets, or rounds; all else is at its defaults,
rank 30 where there is a rank. Needs the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from _table import publish
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from rankspace import FRML, LORETA, MLR, OASIS, Euclidean, Relevance
from rankspace.datasets import fetch_isolet

TRIPLETS = (3000, 10_000, 30_000, 100_000, 300_000)
RACERS: dict[str, tuple[Callable[[int], Any], tuple[int, ...]]] = {
    "Euclidean": (lambda effort: Euclidean(), (0,)),
    "FRML": (
        lambda effort: FRML(30, n_triplets=effort, check_every=3000, random_state=0),
        TRIPLETS,
    ),
    "FRML, gamma 25": (
        lambda effort: FRML(
            30, gamma=25, n_triplets=effort, check_every=3000, random_state=0
        ),
        TRIPLETS,
    ),
    "LORETA": (lambda effort: LORETA(30, n_triplets=effort, random_state=0), TRIPLETS),
    "OASIS": (lambda effort: OASIS(n_triplets=effort, random_state=0), TRIPLETS),
    "MLR-MAP": (lambda effort: MLR(measure="map", max_iter=effort), (2, 5, 10, 20, 40)),
}


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    isolet = fetch_isolet()
    train, test = (isolet.X[isolet.splits[name]] for name in ("train", "test"))
    labels, wanted = (isolet.labels[isolet.splits[name]] for name in ("train", "test"))
    pca = PCA(170, svd_solver="full").fit(train)
    items, queries = pca.transform(train), pca.transform(test)
    relevance = Relevance.from_labels(labels, query_labels=wanted)
    rows: list[list[Any]] = []
    for name, (build, efforts) in RACERS.items():
        build(efforts[0]).fit(items[:500], labels[:500])  # compiles
        for effort in efforts:
            start = time.perf_counter()
            model = build(effort).fit(items, labels)
            seconds = time.perf_counter() - start
            score = model.score(items, relevance, queries=queries)
            rows.append([name, effort or "", seconds, score])
            print(rows[-1], flush=True)
    publish(
        "MAP against seconds: IsoLet",
        ["learner", "triplets or rounds", "seconds", "MAP"],
        rows,
    )


if __name__ == "__main__":
    main()
