"""Do rows without a label help MLR and FRML?

Half of the rows are test queries. Of the others a tenth has a label, a second tenth chooses the
settings, and the rest has no label. MAP of test rows that rank all training rows, mean and
standard deviation over ten splits. `MLR` chooses C of 10 to 10,000, `GraphMLR` C of 100 and 1,000
and graph_reg of 1, 10 and 100, by the MAP of the validation rows that rank the labelled ones; both
optimise AUC with tol=0.02 and 60 rounds at most. `FRML` chooses reg of 0.01, 0.03 and 0.1, with a
graph reg=0.01 and graph_reg of 0.03, 0.3 and 3; 20,000 triplets, no early stopping. All get the
same rows and judgments, so that their scales agree. The graph has training rows only. Arguments:
names of sets.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from _sets import problem
from _table import publish
from _validation import Part, best_by_map, held_out_map, with_error
from sklearn.model_selection import train_test_split

from rankspace import FRML, MLR, Euclidean, GraphMLR, Relevance

SETS = {"wine": 1000, "ionosphere": 1000, "WDBC": 1000, "digits": 800}
SPLITS = 10
LABELLED = 0.1
UNLABELLED = -1


class PartlyLabelled(NamedTuple):
    """Training rows, of which few have a label that a learner may see, and test rows."""

    train: Part
    labelled: np.ndarray
    validation: np.ndarray
    test: Part

    @property
    def judged(self) -> Relevance:
        """What a learner is taught: judgments between labelled rows."""
        known = np.full(len(self.train.y), UNLABELLED)
        known[self.labelled] = self.train.y[self.labelled]
        return Relevance.from_labels(known, unlabelled=UNLABELLED, unjudged="ignore")

    def part(self, rows: np.ndarray) -> Part:
        """Some of the training rows."""
        return Part(self.train.X[rows], self.train.y[rows])


def splits_of(name: str) -> Iterator[PartlyLabelled]:
    """Stratified random splits of a set."""
    data = problem(name)
    X = data.X[: SETS[name]]
    # Classes as numbers from 0: names leave no room for UNLABELLED.
    y = np.unique(data.y[: SETS[name]], return_inverse=True)[1]
    for seed in range(SPLITS):
        rows, tested = train_test_split(
            np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y
        )
        steps = data.steps.fit(X[rows])
        train = Part(steps.transform(X[rows]), y[rows])
        test = Part(steps.transform(X[tested]), y[tested])
        some, _ = train_test_split(
            np.arange(len(rows)),
            train_size=2 * LABELLED,
            random_state=seed,
            stratify=train.y,
        )
        labelled, validation = train_test_split(
            some, test_size=0.5, random_state=seed, stratify=train.y[some]
        )
        yield PartlyLabelled(train, labelled, validation, test)


def grids() -> dict[str, list[Any]]:
    """The learners, each with all its settings."""
    effort = {"measure": "auc", "tol": 0.02, "max_iter": 60}
    graph = [
        GraphMLR(C, graph_reg=reg, **effort)
        for C in (1e2, 1e3)
        for reg in (1.0, 10.0, 100.0)
    ]
    plain = [MLR(C, **effort) for C in (1e1, 1e2, 1e3, 1e4)]
    triplets = {"n_triplets": 20_000, "validation_fraction": 0, "random_state": 0}
    return {
        "Euclidean": [Euclidean()],
        "MLR": plain,
        "GraphMLR": graph,
        "FRML": [FRML(reg=reg, **triplets) for reg in (0.01, 0.03, 0.1)],
        "FRML, graph": [FRML(graph_reg=reg, **triplets) for reg in (0.03, 0.3, 3.0)],
    }


def test_map(grid: list[Any], split: PartlyLabelled) -> float:
    """MAP of the test rows, for the settings that are best on the validation rows."""
    judged = split.judged
    fitted = [model.fit(split.train.X, judged) for model in grid]
    asked = split.part(split.validation)
    best = best_by_map(fitted, split.part(split.labelled), asked)
    return held_out_map(best, split.train, split.test)


def column_of(name: str) -> dict[str, str]:
    """The cell of each learner for a set."""
    splits = list(splits_of(name))
    cells = {}
    for label, grid in grids().items():
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
    publish("A tenth of the labels: MAP of test rows", ["learner", *names], rows)


if __name__ == "__main__":
    main()
