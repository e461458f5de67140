"""Does full rank cost training MAP? FRML and LORETA at several ranks on ten sets."""

from __future__ import annotations

import argparse
import logging
import warnings
from typing import Any

import numpy as np
from _sets import STANDARDISED, problem
from _table import publish

from rankspace import FRML, LORETA

RANKS = (2, 4, 10, 30)
SEEDS = (0, 1)
LEARNERS: dict[str, Any] = {"FRML": FRML, "LORETA": LORETA}


def training_map(learner: Any, X: np.ndarray, y: np.ndarray, rank: int) -> float:
    """Mean over seeds of the training MAP at a rank."""
    scores = [learner(rank, random_state=s).fit(X, y).score(X, y) for s in SEEDS]
    return float(np.mean(scores))


def row(name: str, method: str, X: np.ndarray, y: np.ndarray) -> list[Any]:
    """MAP at the best low rank and at full rank, and the difference."""
    full = X.shape[1]
    learner = LEARNERS[method]
    low = {m: training_map(learner, X, y, m) for m in RANKS if m < full}
    best = max(low, key=low.__getitem__)
    at_full = training_map(learner, X, y, full)
    return [f"{method}, {name}", best, low[best], full, at_full, low[best] - at_full]


def main() -> None:
    """Measure all sets, or some without publishing them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=STANDARDISED)
    chosen = parser.parse_known_args()[0].sets
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    rows = []
    for name in chosen:
        X, y = problem(name).prepared()
        for method in LEARNERS:
            rows.append(row(name, method, X, y))
            print(*rows[-1], flush=True)
    if chosen == STANDARDISED:
        header = ["learner, set", "low rank", "MAP", "full rank", "MAP there", "lost"]
        publish("Full rank beside low rank", header, rows)


if __name__ == "__main__":
    main()
