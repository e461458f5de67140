"""What does the majority vote of k-NN over all classes gain over knn@k?

Errors of k-NN classification of test rows by the training rows, in percent, mean and standard
deviation over ten splits: 56 % of the rows to fit, 19 % to choose C of 1,000, 10,000 and 100,000
on, 25 % to test. Each learner optimises the measure it is named after, with 40 rounds at most.
"Zero metrics" is, for each learner, in how many splits the chosen metric is zero. Features are
standardised on the training rows. Arguments: names of sets.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from _sets import problem
from _table import publish
from _validation import Part, Split, three_parts

from rankspace import MLR, knn_error

SETS = {"iris": 1000, "wine": 1000, "balance": 300, "digits": 400}
KS = (3, 7)
CS = (1e3, 1e4, 1e5)
SHARES = (0.19, 0.25)
SPLITS = 10


def error(model: Any, k: int, items: Part, queries: Part) -> float:
    """The share of queries that k-NN by the training rows puts into a wrong class."""
    ranking = model.rank(queries.X, items.X)
    return knn_error(ranking, items.y, k, query_labels=queries.y)


def best_by_error(models: Sequence[Any], k: int, items: Part, queries: Part) -> Any:
    """The fitted model with the lowest error of the validation rows."""
    errors = [error(model, k, items, queries) for model in models]
    return models[int(np.argmin(errors))]


def fitted(measure: str, split: Split) -> list[Any]:
    """The learner of a measure with every C."""
    return [MLR(C, measure=measure, max_iter=40).fit(*split.train) for C in CS]


def result(
    k: int, models: Sequence[Sequence[Any]], splits: Sequence[Split]
) -> tuple[str, int]:
    """Test error in percent, and the number of splits whose chosen metric is zero."""
    errors, zeros = [], 0
    for candidates, split in zip(models, splits, strict=True):
        best = best_by_error(candidates, k, split.train, split.validation)
        zeros += not np.any(best.components_)
        errors.append(100 * error(best, k, split.train, split.test))
    return f"{np.mean(errors):.1f} ± {np.std(errors, ddof=1):.1f}", zeros


def rows_of(name: str) -> list[list[Any]]:
    """The lines of a set, one for each k."""
    data = problem(name)
    X, y = data.X[: SETS[name]], data.y[: SETS[name]]
    splits = list(three_parts(X, y, data.steps, shares=SHARES, n=SPLITS))
    by_map = [fitted("map", split) for split in splits]
    rows = []
    for k in KS:
        majority = [fitted(f"knn@{k}", split) for split in splits]
        vote = [fitted(f"knn-vote@{k}", split) for split in splits]
        results = [result(k, models, splits) for models in (majority, vote, by_map)]
        zeros = ", ".join(str(count) for _, count in results)
        rows.append([name, k, *(cell for cell, _ in results), zeros])
        print(rows[-1], f"{time.process_time():.0f} s", flush=True)
    return rows


def main() -> None:
    warnings.simplefilter(
        "ignore"
    )  # fits that end at max_iter, and metrics that are zero
    names = [name for name in sys.argv[1:] if name in SETS] or list(SETS)
    rows = [row for name in names for row in rows_of(name)]
    header = ["set", "k", "knn@k", "knn-vote@k", "MAP", "zero metrics"]
    publish("The majority vote of k-NN: test errors in %", header, rows)


if __name__ == "__main__":
    main()
