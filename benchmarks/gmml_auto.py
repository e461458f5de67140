"""What do the values of t and reg that GMML chooses give, against fixed ones and the best?

Test MAP by 3 x 3-fold cross-validation on 13 sets (1,000 rows at most): "fixed" is ``GMML(0.5,
reg=0.01)``, "chosen" the default, "best" the best of the same grid by test MAP, which is only
reported. Seconds are those of a fit, one thread. Arguments: names of sets.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from _sets import SETS, problem
from _table import publish
from sklearn.model_selection import RepeatedStratifiedKFold

from rankspace import GMML, Euclidean, Relevance
from rankspace.learners.gmml import REGS, TS

FOLDS = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)


def timed_score(model: Any, train: Any, test: Any) -> tuple[float, float]:
    """Test MAP, and the seconds of the fit."""
    started = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - started
    judged = Relevance.from_labels(train[1], query_labels=test[1])
    return model.score(train[0], judged, queries=test[0]), seconds


def row_of(name: str) -> list[Any]:
    """One line of the table."""
    data = problem(name)
    grid = [GMML(t, reg=reg) for t in TS for reg in REGS]
    models = [Euclidean(), GMML(0.5, reg=0.01), GMML(), *grid]
    results = []
    for train, test in FOLDS.split(data.X, data.y):
        X = data.steps.fit_transform(data.X[train])
        taught = X, data.y[train]
        asked = data.steps.transform(data.X[test]), data.y[test]
        results.append([timed_score(model, taught, asked) for model in models])
    scores, seconds = np.mean(results, axis=0).T
    values = [*scores[:3], scores[3:].max(), seconds[1], seconds[2]]
    return [name, *(round(float(value), 4) for value in values)]


def main() -> None:
    rows = []
    for name in [name for name in sys.argv[1:] if name in SETS] or SETS:
        rows.append(row_of(name))
        print(rows[-1], flush=True)
    means = np.mean([row[1:] for row in rows], axis=0)
    rows.append(["mean", *(round(float(value), 4) for value in means)])
    header = ["data", "Euclidean", "fixed", "chosen", "best"]
    header += ["seconds, fixed", "seconds, chosen"]
    publish("GMML: t and reg chosen on folds", header, rows)


if __name__ == "__main__":
    main()
