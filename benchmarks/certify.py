"""Is the optimum found by MLR correct? Comparison with a semidefinite program solver.

Each measure has 30 random problems (40 for knn, where fewer are non-trivial) of at most 12
points in at most 8 dimensions, solved to tol = 1e-6. The reference enumerates every interleaving
of relevant and irrelevant items and solves the semidefinite program with Clarabel to 1e-7.
"Non-trivial" problems have W other than 0, slack above 0, and at least two active planes.
Differences are between the objectives, relative to the reference. "Not converged" counts
problems whose gap is above tol after 60 rounds.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import cvxpy as cp

from rankspace import MLR, Relevance
from reference import mlr as reference

TOL = 1e-6
MEASURES = (
    "auc",
    "p@3",
    "knn@3",
    "map",
    "mrr",
    "ndcg@3",
    "ndcg",
    "ndcg-mlr@3",
    "ndcg-mlr",
)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(7, 13)), int(rng.integers(3, 9))
    y = rng.permutation(np.arange(n) % int(rng.integers(2, 4)))
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    X -= X.mean(axis=0)
    return X / np.sqrt(2 * X.var(axis=0).sum()), y, float(10 ** rng.uniform(1.3, 2.7))


def check(measure: str, seed: int) -> tuple[str, float, float, bool]:
    """The measure, the difference of the objectives, our gap, and whether it is non-trivial."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, C = problem(seed)
    queries = reference.queries_of(X, Relevance.from_labels(y), measure)
    expected, W, active = reference.solve(queries, X.shape[1], C, cp.trace)
    slack = reference.objective(W, queries, C, np.trace)[1]
    model = MLR(C, measure=measure, tol=TOL, max_iter=60).fit(X, y)
    nontrivial = bool(np.trace(W) > 1e-3 and slack > 1e-4 and active >= 2)
    difference = abs(model.objective_ - expected) / expected
    return measure, difference, model.gap_, nontrivial


def n_problems(measure: str) -> int:
    return 40 if measure == "knn@3" else 30


def summary(measure: str, checks: list[Any]) -> list[Any]:
    """One row of the table."""
    differences = np.array([difference for difference, _, _ in checks])
    gaps = np.array([gap for _, gap, _ in checks])
    nontrivial = np.array([flag for _, _, flag in checks])
    return [
        measure,
        len(gaps),
        int(nontrivial.sum()),
        differences.max(),
        differences[nontrivial].max(),
        gaps.max(),
        int((gaps > TOL).sum()),
    ]


def main() -> None:
    tasks = [(m, seed) for m in MEASURES for seed in range(n_problems(m))]
    run = Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1)
    results = run(delayed(check)(*task) for task in tasks)
    checks: dict[str, list[Any]] = {measure: [] for measure in MEASURES}
    for done, (measure, *rest) in enumerate(results, 1):
        checks[measure].append(rest)
        print(f"\r{done} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    rows = [summary(measure, checks[measure]) for measure in MEASURES]
    header = [
        "measure",
        "problems",
        "non-trivial",
        "largest difference",
        "of the non-trivial",
        "largest gap",
        "not converged",
    ]
    publish("MLR against an independent solver", header, rows)


if __name__ == "__main__":
    main()
