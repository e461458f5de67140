"""Does a learner at its defaults rank better than Euclidean distance, and than LDA, NCA and LMNN?

Three times 3-fold cross-validation on 13 sets of labelled rows, 1,000 at most. Every learner has
its defaults, and `random_state=0` where it takes one; LDA and NCA are those of scikit-learn. Rows
of the test fold rank those of the training folds: MAP, and the error of 5 nearest neighbours
("error"), each with half a 95 % interval. Intervals and p-values (two-sided, against Euclidean,
from MAP) allow for training folds that overlap (Nadeau and Bengio 2003); "p (Holm)" corrects them
for the learners of a set. "Verdict" is "below" or "above" where this is at most 0.05. PARCA has two
dimensions by default, for pictures; the row "PARCA, 10 dimensions" is beside it. "Seconds" is the
processor time of a fit on one thread. Arguments: names of sets.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import numpy as np
from _sets import SETS, problem
from _table import publish
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from experiments.tables import estimate, holm
from rankspace import (
    FRML,
    GMML,
    ITML,
    LGMML,
    LMNN,
    MLCC,
    MLR,
    PARCA,
    Euclidean,
    Index,
    ListwiseMap,
    Relevance,
    RobustMLR,
    evaluate,
    knn_error,
)

FOLDS = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
TEST_TO_TRAIN = 0.5
NEIGHBORS = 5
ALPHA = 0.05
LEARNERS: dict[str, Any] = {
    "Euclidean": Euclidean(),
    "LDA": LinearDiscriminantAnalysis(),
    "NCA": NeighborhoodComponentsAnalysis(random_state=0),
    "LMNN": LMNN(),
    "MLR": MLR(),
    "MLR, C auto": MLR("auto"),
    "RobustMLR": RobustMLR(),
    "FRML": FRML(random_state=0),
    "GMML": GMML(),
    "LGMML": LGMML(random_state=0),
    "PARCA": PARCA(random_state=0),
    "PARCA, 10 dimensions": PARCA(10, random_state=0),
    "ListwiseMap": ListwiseMap(random_state=0),
    "MLCC": MLCC(),
    "ITML": ITML(random_state=0),
}


def ranking_of(model: Any, items: np.ndarray, queries: np.ndarray) -> Any:
    """The ranking of all items for each query."""
    if hasattr(model, "rank"):
        return model.rank(queries, items)
    return Index(model.transform(items)).rank(model.transform(queries))


def cell(name: str, data: str, fold: int) -> tuple[float, float, float]:
    """MAP, error of nearest neighbours and seconds of a fit of one learner on one fold."""
    warnings.simplefilter("ignore")  # learners that stop before they converged
    rows = problem(data)
    train, test = list(FOLDS.split(rows.X, rows.y))[fold]
    items = rows.steps.fit_transform(rows.X[train])
    queries = rows.steps.transform(rows.X[test])
    labels, truth = rows.y[train], rows.y[test]
    model = clone(LEARNERS[name])
    if name == "PARCA, 10 dimensions":
        model.set_params(n_components=min(10, items.shape[1]))
    start = time.process_time()
    model.fit(items, labels)
    seconds = time.process_time() - start
    ranking = ranking_of(model, items, queries)
    relevance = Relevance.from_labels(labels, query_labels=truth)
    score = evaluate(ranking, relevance, "map").means["map"]
    error = knn_error(ranking, labels, NEIGHBORS, query_labels=truth)
    return score, error, seconds


def with_interval(values: np.ndarray) -> str:
    """Mean over the folds, and half a 95 % interval."""
    found = estimate(values, TEST_TO_TRAIN)
    return f"{found.mean:.3f} ± {found.high - found.mean:.3f}"


def verdict(gain: float, p: float) -> str:
    """Whether a learner is significantly better or worse than Euclidean distance."""
    if p > ALPHA:
        return ""
    return "above" if gain > 0 else "below"


def set_rows(data: str, results: dict[str, np.ndarray]) -> list[list[Any]]:
    """Rows of one set; p-values are corrected for its learners."""
    plain = results["Euclidean"][:, 0]
    others = [name for name in results if name != "Euclidean"]
    gaps = {name: results[name][:, 0] - plain for name in others}
    gains = {name: estimate(gaps[name], TEST_TO_TRAIN) for name in others}
    corrected = dict(zip(others, holm([gains[name].p for name in others]), strict=True))
    rows = []
    for name, values in results.items():
        tested = ["", "", ""]
        if name in gains:
            mean, p = gains[name].mean, corrected[name]
            tested = [f"{mean:+.3f}", f"{p:.2g}", verdict(mean, p)]
        scores = [with_interval(values[:, column]) for column in (0, 1)]
        rows.append([data, name, *scores, *tested, float(np.mean(values[:, 2]))])
    return rows


def main() -> None:
    names = [name for name in sys.argv[1:] if name in SETS] or SETS
    n_folds = FOLDS.get_n_splits()
    cells = Parallel(n_jobs=len(os.sched_getaffinity(0)), verbose=1)(
        delayed(cell)(name, data, fold)
        for data in names
        for name in LEARNERS
        for fold in range(n_folds)
    )
    values = np.array(cells).reshape(len(names), len(LEARNERS), n_folds, 3)
    rows = []
    for data, results in zip(names, values, strict=True):
        rows += set_rows(data, dict(zip(LEARNERS, results, strict=True)))
    header = ["data", "learner", "MAP", "error", "gain", "p (Holm)", "verdict"]
    title = "Learners at their defaults on 13 sets: MAP and nearest-neighbour error"
    publish(title, [*header, "seconds"], rows)


if __name__ == "__main__":
    main()
