"""Which learner ranks best as it comes, without any choice of parameters?

Small sets with class labels, at most 600 rows of each. Features are standardised on the training
half; those of images (digits, USPS, UMIST) are left unchanged. Learners have their defaults, and
`random_state=0` where it takes one. The other half are queries that rank the training half; the
number is MAP, the mean over three random halves. OASIS and LORETA rank by the similarity that they
learn. "Seconds" is the time of all fits, on one thread each. Without RANKSPACE_DATA, only sets
that come with the packages are used.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from experiments.data.images import fetch_umist
from rankspace import (
    FRML,
    GMML,
    ITML,
    LMNN,
    LORETA,
    MLCC,
    MLR,
    OASIS,
    PARCA,
    Euclidean,
    ListwiseMap,
    Relevance,
    RobustMLR,
    datasets,
)

ROWS = 600
SPLITS = 3
IMAGES = ("digits", "usps", "umist")


def learners() -> dict[str, Any]:
    """Every learner of class labels."""
    return {
        "Euclidean": Euclidean(),
        "MLR, MAP": MLR(),
        "MLR, AUC": MLR(measure="auc"),
        "RobustMLR": RobustMLR(),
        "FRML": FRML(random_state=0),
        "GMML": GMML(),
        "ListwiseMap": ListwiseMap(random_state=0),
        "PARCA, 2 dimensions": PARCA(random_state=0),
        "LMNN": LMNN(),
        "MLCC": MLCC(),
        "ITML": ITML(random_state=0),
        "OASIS": OASIS(random_state=0),
        "LORETA": LORETA(random_state=0),
    }


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of the sets at hand."""
    iris = load_iris()
    found = {"iris": (iris.data, iris.target)}
    load = {
        "wine": datasets.load_wine,
        "wdbc": datasets.load_wdbc,
        "balance": datasets.load_balance_scale,
        "digits": datasets.load_digits,
        "ionosphere": datasets.fetch_ionosphere,
        "usps": datasets.fetch_usps,
        "isolet": datasets.fetch_isolet,
        "umist": fetch_umist,
    }
    for name, loader in load.items():
        if loader.__name__.startswith("fetch_") and "RANKSPACE_DATA" not in os.environ:
            continue
        dataset = loader()
        rows = np.random.default_rng(0).permutation(len(dataset.labels))[:ROWS]
        found[name] = (np.asarray(dataset.X)[rows], dataset.labels[rows])
    return found


def held_out_map(
    learner: Any, name: str, X: np.ndarray, y: np.ndarray
) -> tuple[float, float]:
    """Mean MAP over the splits, and seconds of the fits."""
    warnings.simplefilter("ignore")  # learners that stop before they converged
    values, seconds = [], 0.0
    for seed in range(SPLITS):
        items, queries, labels, query_labels = train_test_split(
            X, y, test_size=0.5, random_state=seed, stratify=y
        )
        if name not in IMAGES:
            scaler = StandardScaler().fit(items)
            items, queries = scaler.transform(items), scaler.transform(queries)
        start = time.perf_counter()
        model = clone(learner).fit(items, labels)
        seconds += time.perf_counter() - start
        relevance = Relevance.from_labels(labels, query_labels=query_labels)
        values.append(model.score(items, relevance, queries=queries))
    return float(np.mean(values)), seconds


def main() -> None:
    problems = sets()
    cells = Parallel(n_jobs=os.cpu_count(), verbose=5)(
        delayed(held_out_map)(learner, name, X, y)
        for learner in learners().values()
        for name, (X, y) in problems.items()
    )
    table = np.array(cells).reshape(len(learners()), len(problems), 2)
    rows = [
        [label, *(f"{value:.3f}" for value in values), f"{seconds.sum():.1f}"]
        for label, (values, seconds) in zip(
            learners(), np.moveaxis(table, 2, 1), strict=True
        )
    ]
    title = "Learners as they come: MAP of held-out queries"
    publish(title, ["learner", *problems, "seconds"], rows)


if __name__ == "__main__":
    main()
