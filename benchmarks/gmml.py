"""How long does GMML take, and what is the limit?

Ten Gaussian classes. "Over the parts" is the time of `fit` over that of what it cannot do without:
the product of the points with themselves for each of the two scatter matrices, one Cholesky factor
and one symmetric eigenproblem, timed in the same run. The last columns hold it against
scikit-learn's NCA on the same points, stopped after 20 of its steps.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.linalg
from _table import best_seconds, publish
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from rankspace import GMML

HEADER = ["n", "d", "fit, s", "two products, s", "Cholesky, s", "eigh, s", "over the parts",
          "NCA, s", "times faster"]  # fmt: skip


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, d)) + rng.normal(size=(10, d))[y], y


def nca_seconds(X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    NeighborhoodComponentsAnalysis(max_iter=20, random_state=0).fit(X, y)
    return time.perf_counter() - start


def row(n: int, d: int, nca: bool = False) -> list[Any]:
    X, y = problem(n, d)
    repeats = 3 if d >= 1000 or n > 50_000 else 5
    S = X.T @ X / n + np.eye(d)
    products = 2 * best_seconds(lambda: X.T @ X, repeats)
    factor = best_seconds(lambda: scipy.linalg.cholesky(S, lower=True), repeats)
    eigen = best_seconds(lambda: scipy.linalg.eigh(S, driver="evd"), repeats)
    fit = best_seconds(lambda: GMML().fit(X, y), repeats)
    rival = nca_seconds(X, y) if nca else ""
    over = fit / (products + factor + eigen)
    return [n, d, fit, products, factor, eigen, over, rival, rival / fit if nca else ""]


def main() -> None:
    rows = [row(2000, d, nca=d <= 300) for d in (10, 30, 100, 300, 1000, 2000)]
    rows += [row(n, 100) for n in (500, 20_000, 200_000)]
    publish("GMML: time of a fit", HEADER, rows)


if __name__ == "__main__":
    main()
