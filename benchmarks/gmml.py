"""How long does GMML take, what is the limit, and what do others take?

Ten Gaussian classes that overlap. "Over the parts" is the time of `fit` over that of what it cannot
do without: the product of the points with themselves for each of the two scatter matrices, one
Cholesky factor and one symmetric eigenproblem, timed in the same run. The others learn from the
same points: scikit-learn's NCA and metric-learn's NCA, stopped after 20 steps, and metric-learn's
ITML, after 20 sweeps over its 2,000 pairs; "/ fit": how many times longer than GMML they take.
"–": not run at this size, for it would take minutes; "absent": metric-learn is not installed.
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
MOST = {
    "NCA": 1000,
    "metric-learn NCA": 300,
    "ITML": 300,
}  # features, for minutes are enough
HEADER = ["n", "d", "fit, s", "two products, s", "Cholesky, s", "eigh, s", "over the parts",
          "NCA, s", "NCA / fit", "metric-learn NCA, s", "metric-learn NCA / fit", "ITML, s",
          "ITML / fit"]  # fmt: skip


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, d)) + 3 / np.sqrt(d) * rng.normal(size=(10, d))[y], y


def metric_learn() -> Any:
    """The library, or None without it.

    Version 0.7 passes scikit-learn a keyword that was renamed there; it is renamed here too.
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
    """The estimators to compare with; None for those that are not installed."""
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
    """Seconds of each, and how many times those of GMML."""
    columns: list[Any] = []
    for name, estimator in rivals().items():
        if len(X) > 2000 or X.shape[1] > MOST[name]:
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
    fit = best_seconds(lambda: GMML().fit(X, y), repeats)
    over = fit / (products + factor + eigen)
    found = [n, d, fit, products, factor, eigen, over, *rival_columns(X, y, fit)]
    print(*found, sep=" | ", flush=True)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [row(2000, d) for d in (10, 30, 100, 300, 1000, 2000)]
    rows += [row(n, 100) for n in (500, 20_000, 200_000)]
    publish("GMML: time of a fit", HEADER, rows)


if __name__ == "__main__":
    main()
