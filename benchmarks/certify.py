"""Is the optimum of MLR the optimum? Against brute-force oracles and semidefinite programs.

For each measure 30 random problems (40 for knn, where fewer are telling) of at most 12 points in at
most 8 dimensions, to tol = 1e-6. The reference enumerates every interleaving and lets Clarabel
solve to 1e-7. "Telling" problems have W other than 0, slack above 0 and two active planes or more;
differences are of the objectives, relative to the reference's. Problems whose gap is still open
after 60 rounds count as "open".
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
import mlr_reference as reference

from rankspace import MLR, Relevance

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
    """The measure, the difference of the objectives, our gap, and whether it is telling."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, C = problem(seed)
    queries = reference.queries_of(X, Relevance.from_labels(y), measure)
    expected, W, active = reference.solve(queries, X.shape[1], C, cp.trace)
    slack = reference.objective(W, queries, C, np.trace)[1]
    model = MLR(C, measure=measure, tol=TOL, max_iter=60).fit(X, y)
    telling = bool(np.trace(W) > 1e-3 and slack > 1e-4 and active >= 2)
    return measure, abs(model.objective_ - expected) / expected, model.gap_, telling


def main() -> None:
    pieces = [(m, seed) for m in MEASURES for seed in range(40 if m == "knn@3" else 30)]
    run = Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1)
    found: dict[str, list[Any]] = {measure: [] for measure in MEASURES}
    for done, (measure, *rest) in enumerate(
        run(delayed(check)(*piece) for piece in pieces), 1
    ):
        found[measure].append(rest)
        print(f"\r{done} of {len(pieces)}", end="", file=sys.stderr, flush=True)
    rows: list[list[Any]] = []
    for measure in MEASURES:
        differences, gaps, telling = (
            np.array(column) for column in zip(*found[measure], strict=True)
        )
        rows.append(
            [measure, len(gaps), int(telling.sum()), differences.max(),
             differences[telling].max(), gaps.max(), int((gaps > TOL).sum())]
        )  # fmt: skip
    header = ["measure", "problems", "telling", "largest difference", "of the telling",
              "largest gap", "open"]  # fmt: skip
    publish("MLR against an independent solver", header, rows)


if __name__ == "__main__":
    main()
