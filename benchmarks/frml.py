"""How many triplets per second does FRML process, and how close is that to the limit?

Ten Gaussian classes. SGD is timed after a warm-up in which violating items become rare. "Time /
products" compares it with the matrix products of its steps alone, on the same shapes and with
the same embedding strategy: those that embed points and update the metric, and the distances of
all items for triplets that drew a sixty-fourth of them without a violation. "Draws" is the
number of irrelevant items drawn per triplet. The last column compares with the plain NumPy
reference implementation of the tests (one draw at a time), from the same state in the same run.
"""

from __future__ import annotations

import sys
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from _table import best_seconds, publish

from rankspace import Relevance
from rankspace._engine.parallel.threads import single_threaded_blas
from rankspace.learners.solvers.points import Points
from rankspace.learners.solvers.warp.descent import Descent, Options, Progress
from rankspace.learners.solvers.warp.embeddings import EXPECTED_AGE
from rankspace.learners.solvers.warp.sampling import sampling_of
from rankspace.learners.solvers.warp.starts import start_factor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference.frml import FactoredFRML

BATCH = 32
WARM_UP = 3200  # triplets, three times over
TIMED = 6400
TIMED_REFERENCE = 64


def problem(n: int, d: int) -> tuple[np.ndarray, Relevance]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(10, d))[y] * 4 / np.sqrt(d)
    X = (X - X.mean(axis=0)) / np.sqrt(2 * X.var(axis=0).sum())
    return X, Relevance.from_labels(y)


def product_seconds(
    strategy: str, n: int, d: int, m: int, draws: float, scans: float
) -> float:
    """Seconds of the matrix products of one step: embeddings, gradient, update, full scans."""
    rng = np.random.default_rng(0)
    r = 2 * BATCH
    n_embedded = int(BATCH * (2 + draws))
    if strategy == "lazy":
        n_embedded = r + n // EXPECTED_AGE
    factor = rng.normal(size=(d, m))
    differences = rng.normal(size=(d, r))
    small = rng.normal(size=(m, m))
    coefficients = rng.normal(size=(r, m))
    points = rng.normal(size=(n_embedded, d))
    items = rng.normal(size=(n, m))
    products = rng.normal(size=(r, n))
    queries = rng.normal(size=(round(scans * BATCH), m))

    def step() -> None:
        queries @ items.T
        if strategy == "gram":
            items @ small
            products.T @ coefficients
            return
        points @ factor
        gradient = differences @ coefficients
        gradient.T @ gradient
        factor.T @ factor
        factor @ small
        gradient @ small

    with single_threaded_blas():
        return best_seconds(step, 50)


def row(n: int, d: int, m: int, gamma: float, reference: bool = False) -> list[Any]:
    X, relevance = problem(n, d)
    sampling = sampling_of(relevance, "reciprocal", gamma, seed=0)
    descent = Descent(
        Points(X, relevance.query_items, n), sampling, Options(batch_size=BATCH)
    )
    F = start_factor(X, m, "pca", 1.0, 0)
    progress = Progress(F, F, multiplier=2.0)
    for _ in range(3):
        descent.run(progress, WARM_UP)
    last: list[Any] = []

    def descend() -> None:
        last[:] = [deepcopy(progress)]
        last.append(descent.run(last[0], TIMED))

    seconds = best_seconds(descend, 7) / TIMED
    statistics = last[1]
    draws = statistics.draws / TIMED
    space = descent._space(progress, statistics.strategy)
    drawn = space.draw(sampling, progress.n_triplets, TIMED).draws
    scans = float(np.mean(drawn > n // 64))
    products = product_seconds(statistics.strategy, n, d, m, draws, scans) / BATCH
    speedup: Any = ""
    if reference:
        speedup = reference_seconds(X, relevance, progress, gamma) / seconds
    ratio = seconds / products
    return [
        n,
        d,
        m,
        gamma,
        statistics.strategy,
        draws,
        1 / seconds,
        1e6 * seconds,
        ratio,
        1 / ratio,
        speedup,
    ]


def reference_seconds(
    X: np.ndarray, relevance: Relevance, progress: Progress, gamma: float
) -> float:
    """Seconds per triplet of the reference implementation of the tests."""
    twin = FactoredFRML(X, relevance, progress.F, seed=0, gamma=gamma, batch_size=BATCH)
    twin.start, twin.n_triplets = progress.start, progress.n_triplets
    twin.distance, twin.squares = progress.distance, progress.squares
    start = time.perf_counter()
    twin.run(progress.n_triplets + TIMED_REFERENCE)
    return (time.perf_counter() - start) / TIMED_REFERENCE


def main() -> None:
    rows = [row(2000, 1000, 30, gamma, reference=True) for gamma in (1, 25)]
    rows += [row(n, 1000, 30, 1) for n in (500, 8000)]
    rows += [row(2000, d, 30, 1) for d in (30, 100, 300, 3000)]
    rows += [row(2000, 1000, m, 1) for m in (10, 20, 60, 120)]
    rows += [row(50_000, 100, 30, gamma) for gamma in (1, 10, 25)]
    header = [
        "n",
        "d",
        "m",
        "gamma",
        "strategy",
        "draws",
        "triplets/s",
        "us per triplet",
        "time / products",
        "products / time",
        "reference / time",
    ]
    publish("FRML: triplets per second", header, rows)


if __name__ == "__main__":
    main()
