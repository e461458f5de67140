"""Does FRML need its step size tuned?

MAP of test queries for the default step times powers of 2, all else at its defaults, on the data
sets of the recipe frml-table-1 and on 2,000 covertype points, rank 20; mean over folds where there
are some. "Below the best" is how far the default is from the best of the row, and "error" the
standard error over folds of its own MAP. Needs the data folder (RANKSPACE_DATA).
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
    "label": "covertype", "name": "covertype", "sample": 2000, "equal_classes": True, "folds": 5,
    "standardise": True,
}  # fmt: skip


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
        means, own = scores.mean(axis=1), scores[POWERS.index(0)]
        error = float(own.std(ddof=1) / len(own) ** 0.5) if len(own) > 1 else ""
        below = float(means.max() - own.mean())
        rows.append([data["label"], *map(float, means), below, error])
        print(rows[-1], flush=True)
    header = ["data", *(f"2^{power}" for power in POWERS), "below the best", "error"]
    publish("FRML: MAP by step size", header, rows)


if __name__ == "__main__":
    main()
