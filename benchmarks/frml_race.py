"""How good is a metric after a given training time: FRML, MLR-MAP, LORETA and OASIS?

IsoLet in 170 principal components: 6,238 training points are the corpus, the 1,559 points of the
test part are the queries. Each learner is run again with more and more triplets or rounds. All
other parameters have their defaults, with rank 30 where the learner has a rank. MLR-MAP is there
at its default C, and at the C that the recipe mlr-table-2 chose on held-out training points. Needs
the data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from _table import publish
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from rankspace import FRML, LORETA, MLR, OASIS, Euclidean, Relevance
from rankspace.datasets import fetch_isolet

TRIPLETS = (3000, 10_000, 30_000, 100_000, 300_000)
ROUNDS = (2, 5, 10, 20, 40)
FRML_OPTIONS = {"check_every": 3000, "random_state": 0}
# The learner, the parameter that sets its training time, and the values of that parameter.
LEARNERS: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "FRML": (FRML(30, **FRML_OPTIONS), "n_triplets", TRIPLETS),
    "FRML, gamma 25": (FRML(30, gamma=25, **FRML_OPTIONS), "n_triplets", TRIPLETS),
    "LORETA": (LORETA(30, random_state=0), "n_triplets", TRIPLETS),
    "OASIS": (OASIS(random_state=0), "n_triplets", TRIPLETS),
    "MLR-MAP": (MLR(measure="map"), "max_iter", ROUNDS),
    "MLR-MAP, C 100,000": (MLR(100_000.0, measure="map"), "max_iter", ROUNDS),
}


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    isolet = fetch_isolet()
    train = isolet.part("train")
    test = isolet.part("test")
    pca = PCA(170, svd_solver="full").fit(train.X)
    items = pca.transform(train.X)
    queries = pca.transform(test.X)
    relevance = Relevance.from_labels(train.labels, query_labels=test.labels)
    rows: list[list[Any]] = []

    def add_row(name: str, model: Any, effort: Any) -> None:
        start = time.perf_counter()
        model.fit(items, train.labels)
        seconds = time.perf_counter() - start
        score = model.score(items, relevance, queries=queries)
        rows.append([name, effort, seconds, score])
        print(rows[-1], flush=True)

    add_row("Euclidean", Euclidean(), "")
    for name, (model, parameter, efforts) in LEARNERS.items():
        model.set_params(**{parameter: efforts[0]})
        model.fit(items[:500], train.labels[:500])  # compiles
        for effort in efforts:
            add_row(name, model.set_params(**{parameter: effort}), effort)
    header = ["learner", "triplets or rounds", "seconds", "MAP"]
    publish("MAP by training time: IsoLet", header, rows)


if __name__ == "__main__":
    main()
