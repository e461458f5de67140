"""Does the learning rate of FRML need tuning?

MAP of test queries for the default `step` times powers of 2, with all other parameters at their
defaults, on the data sets of the recipe frml-table-1 and on 2,000 covertype points, at rank 20;
the mean over folds where the set has folds. "Below the best" is the distance of the default from
the best of its row, and "error" the standard error over folds of the default's MAP. Needs the
data folder (RANKSPACE_DATA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed

from experiments import load_recipe
from experiments.protocols.retrieval import job_fields, n_folds, one_piece
from rankspace import FRML

DEFAULT, RANK = FRML().step, 20
POWERS = (-6, -4, -2, 0, 2, 4, 6)
OPTIONS = {"validation": 0.2, "seed": 0}
COVERTYPE = {
    "label": "covertype",
    "name": "covertype",
    "sample": 2000,
    "equal_classes": True,
    "folds": 5,
    "standardise": True,
}


def score(data: dict[str, Any], power: int, fold: int) -> float:
    setting = {"step": DEFAULT * 2.0**power, "random_state": fold}
    return float(
        one_piece(job_fields(data), "FRML", [setting], RANK, fold, OPTIONS)["map"]
    )


def main() -> None:
    sets = [*load_recipe("frml-table-1").content["datasets"], COVERTYPE]
    rows = []
    for data in sets:
        folds = range(n_folds(data))
        calls = [
            delayed(score)(data, power, fold) for power in POWERS for fold in folds
        ]
        scores = np.reshape(Parallel(n_jobs=2)(calls), (len(POWERS), len(folds)))
        means = scores.mean(axis=1)
        default = scores[POWERS.index(0)]
        error: Any = ""
        if len(default) > 1:
            error = float(default.std(ddof=1) / len(default) ** 0.5)
        below = float(means.max() - default.mean())
        rows.append([data["label"], *map(float, means), below, error])
        print(rows[-1], flush=True)
    header = ["data", *(f"2^{power}" for power in POWERS), "below the best", "error"]
    publish("FRML: MAP by learning rate", header, rows)


if __name__ == "__main__":
    main()
