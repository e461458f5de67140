"""What does a kernel add to MLR?

MAP of test rows that rank the training rows, mean and standard deviation over ten splits: 56 % of
the rows to fit, 19 % to choose the settings on, 25 % to test. `MLR` chooses C of 100, 1,000 and
10,000; `KernelMLR` with an RBF kernel and 40 landmarks chooses C of 1,000 and 10,000 and gamma of
0.1, 0.3 and 1 over twice the number of features. Both optimise AUC with tol=0.02 and 60 rounds at
most (balance: 0.05 and 30). Features are standardised on the training rows. Arguments: names of
sets.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from _sets import problem
from _table import publish
from _validation import Split, best_by_map, held_out_map, three_parts, with_error

from rankspace import MLR, Euclidean, KernelMLR

SETS = {"wine": 1000, "balance": 1000, "ionosphere": 1000, "WDBC": 1000, "digits": 400}
SHARES = (0.19, 0.25)
SPLITS = 10


def grids(name: str, n_features: int) -> dict[str, list[Any]]:
    """The learners, each with all its settings."""
    effort = {"measure": "auc", "tol": 0.02, "max_iter": 60}
    if name == "balance":
        effort |= {"tol": 0.05, "max_iter": 30}
    gammas = np.array([0.1, 0.3, 1.0]) / (2 * n_features)
    kernel = [
        KernelMLR(C, gamma=gamma, n_landmarks=40, random_state=0, **effort)
        for C in (1e3, 1e4)
        for gamma in gammas
    ]
    linear = [MLR(C, **effort) for C in (1e2, 1e3, 1e4)]
    return {"Euclidean": [Euclidean()], "MLR": linear, "KernelMLR": kernel}


def test_map(grid: list[Any], split: Split) -> float:
    """MAP of the test rows, for the settings that are best on the validation rows."""
    fitted = [model.fit(*split.train) for model in grid]
    best = best_by_map(fitted, split.train, split.validation)
    return held_out_map(best, split.train, split.test)


def column_of(name: str) -> dict[str, str]:
    """The cell of each learner for a set."""
    data = problem(name)
    X, y = data.X[: SETS[name]], data.y[: SETS[name]]
    splits = list(three_parts(X, y, data.steps, shares=SHARES, n=SPLITS))
    cells = {}
    for label, grid in grids(name, X.shape[1]).items():
        start = time.process_time()
        cells[label] = with_error([test_map(grid, split) for split in splits])
        seconds = time.process_time() - start
        print(name, label, cells[label], f"{seconds:.0f} s", flush=True)
    return cells


def main() -> None:
    warnings.simplefilter("ignore")  # fits that end at max_iter
    names = [name for name in sys.argv[1:] if name in SETS] or list(SETS)
    columns = [column_of(name) for name in names]
    rows = [
        [label, *(column[label] for column in columns)] for label in next(iter(columns))
    ]
    publish("Kernels: MAP of test rows", ["learner", *names], rows)


if __name__ == "__main__":
    main()
