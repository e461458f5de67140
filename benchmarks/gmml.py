"""How long does GMML take, how close is that to the limit, and how long do other learners take?

Ten overlapping Gaussian classes. "Fit / parts" compares `fit` with its unavoidable parts, timed
in the same run: one product of the points with themselves for each of the two scatter matrices,
one Cholesky factorisation and one symmetric eigenproblem. The other learners get the same
points: scikit-learn's NCA and metric-learn's NCA with 20 steps, and metric-learn's ITML with 20
sweeps over its 2,000 pairs. "/ fit" is their time relative to GMML. "–": not run, because it
would take minutes at this size; "absent": metric-learn is not installed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from _table import best_seconds, publish
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils import check_array, check_X_y

from rankspace import GMML

STEPS = 20
# With more features these would take many minutes.
MAX_FEATURES = {"NCA": 1000, "metric-learn NCA": 300, "ITML": 300}
HEADER = [
    "n",
    "d",
    "fit, s",
    "two products, s",
    "Cholesky, s",
    "eigh, s",
    "fit / parts",
    "NCA, s",
    "NCA / fit",
    "metric-learn NCA, s",
    "metric-learn NCA / fit",
    "ITML, s",
    "ITML / fit",
]


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, d)) + 3 / np.sqrt(d) * rng.normal(size=(10, d))[y], y


def metric_learn() -> Any:
    """The metric-learn package, or None if it is not installed.

    Version 0.7 passes a keyword that scikit-learn has renamed; the new name is passed instead.
    """
    try:
        import metric_learn as library
        from metric_learn import _util
    except ImportError:
        return None

    def renamed(check: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if "force_all_finite" in options:
                options["ensure_all_finite"] = options.pop("force_all_finite")
            return check(*args, **options)

        return call

    _util.check_array, _util.check_X_y = renamed(check_array), renamed(check_X_y)
    return library


def rivals() -> dict[str, Any]:
    """The other learners; None for those that are not installed."""
    library = metric_learn()
    nca = NeighborhoodComponentsAnalysis(max_iter=STEPS, random_state=0)
    if library is None:
        return {"NCA": nca, "metric-learn NCA": None, "ITML": None}
    return {
        "NCA": nca,
        "metric-learn NCA": library.NCA(max_iter=STEPS, random_state=0),
        "ITML": library.ITML_Supervised(
            max_iter=STEPS, n_constraints=2000, random_state=0
        ),
    }


def rival_columns(X: np.ndarray, y: np.ndarray, fit: float) -> list[Any]:
    """Seconds of the other learners, and their ratio to GMML."""
    columns: list[Any] = []
    for name, estimator in rivals().items():
        if len(X) > 2000 or X.shape[1] > MAX_FEATURES[name]:
            columns += ["–", "–"]
        elif estimator is None:
            columns += ["absent", "absent"]
        else:
            start = time.perf_counter()
            estimator.fit(X, y)
            seconds = time.perf_counter() - start
            columns += [seconds, f"{seconds / fit:,.0f}"]
    return columns


def row(n: int, d: int) -> list[Any]:
    X, y = problem(n, d)
    repeats = 3 if d >= 1000 or n > 50_000 else 5
    S = X.T @ X / n + np.eye(d)
    products = 2 * best_seconds(lambda: X.T @ X, repeats)
    factor = best_seconds(lambda: scipy.linalg.cholesky(S, lower=True), repeats)
    eigen = best_seconds(lambda: scipy.linalg.eigh(S, driver="evd"), repeats)
    fit = best_seconds(lambda: GMML(0.5, reg=0.01).fit(X, y), repeats)
    ratio = fit / (products + factor + eigen)
    columns = [n, d, fit, products, factor, eigen, ratio, *rival_columns(X, y, fit)]
    print(*columns, sep=" | ", flush=True)
    return columns


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [row(2000, d) for d in (10, 30, 100, 300, 1000, 2000)]
    rows += [row(n, 100) for n in (500, 20_000, 200_000)]
    publish("GMML: time of a fit", HEADER, rows)


if __name__ == "__main__":
    main()
