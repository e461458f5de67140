"""What does MLR(C="auto") cost, and how far is its metric from that of the best C?

The 13 sets of `defaults.py`, one 3-fold cross-validation: test MAP and processor seconds of fits on
the training folds, on one thread. "Best" is the best C of 1, 10, ..., 10^6 by test MAP, which is
only reported. "Cost" is the time of a fit with C="auto" over that of a fit at the best C. Goals:
MAP not more than 0.01 below the best; a median cost of at most 3, and none over 6. "Gap" is the
largest of the certificates at the chosen C, of which 0.01 is the tolerance. Arguments: names of
sets.
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
from sklearn.model_selection import StratifiedKFold

from rankspace import MLR, Relevance

N_FOLDS = 3
FOLDS = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
CS = tuple(10.0**power for power in range(7))
VALUES = ("auto", *CS)


def cell(data: str, C: Any, fold: int) -> tuple[float, float, float, float]:
    """Test MAP, seconds, the C used and the gap of one fit; the least seconds of two fits."""
    warnings.simplefilter("ignore")  # fits that stop before they converged
    rows = problem(data)
    train, test = list(FOLDS.split(rows.X, rows.y))[fold]
    items = rows.steps.fit_transform(rows.X[train])
    queries = rows.steps.transform(rows.X[test])
    MLR(10.0, max_iter=2).fit(items, rows.y[train])  # compiles
    seconds = []
    for _ in range(2):
        start = time.process_time()
        model = MLR(C).fit(items, rows.y[train])
        seconds.append(time.process_time() - start)
    judged = Relevance.from_labels(rows.y[train], query_labels=rows.y[test])
    score = model.score(items, judged, queries=queries)
    return score, min(seconds), model.C_, float(model.gap_)


def set_row(data: str, results: np.ndarray) -> list[Any]:
    """One line of the table; results: (values of C, folds, 4)."""
    scores, seconds = results[:, :, 0].mean(axis=1), results[:, :, 1].mean(axis=1)
    best = 1 + int(np.argmax(scores[1:]))
    chosen = ", ".join(f"{C:g}" for C in results[0, :, 2])
    gap = float(results[0, :, 3].max())
    found = [chosen, CS[best - 1], round(scores[0], 4), round(scores[best], 4)]
    difference = f"{scores[0] - scores[best]:+.4f}"
    times = [float(seconds[0]), float(seconds[best]), float(seconds[0] / seconds[best])]
    return [data, *found, difference, *times, gap]


def main() -> None:
    names = [name for name in sys.argv[1:] if name in SETS] or SETS
    cells = Parallel(n_jobs=len(os.sched_getaffinity(0)), verbose=1)(
        delayed(cell)(data, C, fold)
        for data in names
        for C in VALUES
        for fold in range(N_FOLDS)
    )
    results = np.array(cells).reshape(len(names), len(VALUES), N_FOLDS, 4)
    rows = [set_row(data, found) for data, found in zip(names, results, strict=True)]
    cost = float(np.median([row[8] for row in rows]))
    rows.append(["median", "", "", "", "", "", "", "", cost, ""])
    header = ["data", "chosen", "best", "MAP, chosen", "MAP, best", "difference"]
    header += ["seconds, chosen", "seconds, best", "cost", "gap"]
    publish("MLR: C chosen on held-out queries", header, rows)


if __name__ == "__main__":
    main()
