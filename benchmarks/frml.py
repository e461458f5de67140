"""How many triplets a second does FRML take, and what is the limit?

Ten Gaussian classes; the descent is timed after a first stretch has made violators rare. "Over
products" is its time over that of the matrix products of its steps alone, on the same shapes in the
same strategy of embedding: what embeds points and moves the metric, and the distances of all items for
triplets that drew a sixty-fourth of them in vain. "Draws" is how many irrelevant items a triplet
needed. The last column holds it against the plain NumPy twin of the tests (draws one at a time,
tall matrices), from the same state in the same run.
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
from rankspace.learners.solvers.warp.sampling import sampling_of
from rankspace.learners.solvers.warp.starts import start_factor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from frml_reference import FactoredFRML

BATCH, FIRST, TIMED, TWIN = 32, 3200, 6400, 64


def problem(n: int, d: int) -> tuple[np.ndarray, Relevance]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(10, d))[y] * 4 / np.sqrt(d)
    return (X - X.mean(axis=0)) / np.sqrt(
        2 * X.var(axis=0).sum()
    ), Relevance.from_labels(y)


def product_seconds(
    strategy: str, n: int, d: int, m: int, draws: float, looked: float
) -> float:
    """The matrix products of one step: embedding, pulling, moving and looking through items."""
    rng = np.random.default_rng(0)
    r, drawn = 2 * BATCH, int(BATCH * (2 + draws))
    tall, wide, small = (
        rng.normal(size=(d, m)),
        rng.normal(size=(d, r)),
        rng.normal(size=(m, m)),
    )
    outer, points = (
        rng.normal(size=(r, m)),
        rng.normal(size=(n if strategy == "all" else drawn, d)),
    )
    items, by_points = rng.normal(size=(n, m)), rng.normal(size=(r, n))
    queries = rng.normal(size=(round(looked * BATCH), m))

    def step() -> None:
        queries @ items.T
        if strategy == "gram":
            items @ small
            by_points.T @ outer
            return
        points @ tall
        pulled = wide @ outer
        pulled.T @ pulled
        tall.T @ tall
        tall @ small
        pulled @ small

    with single_threaded_blas():
        return best_seconds(step, 50)


def row(n: int, d: int, m: int, gamma: float, twin: bool = False) -> list[Any]:
    X, relevance = problem(n, d)
    sampling = sampling_of(relevance, "reciprocal", gamma, seed=0)
    descent = Descent(
        Points(X, relevance.query_items, n), sampling, Options(batch_size=BATCH)
    )
    F = start_factor(X, m, "pca", 1.0, 0)
    progress = Progress(F, F, multiplier=2.0)
    for _ in range(3):
        descent.run(progress, FIRST)
    last: list[Any] = []

    def descend() -> None:
        last[:] = [deepcopy(progress)]
        last.append(descent.run(last[0], TIMED))

    seconds = best_seconds(descend, 7) / TIMED
    tally = last[1]
    draws = tally.draws / TIMED
    space = descent._space(progress, tally.strategy)
    looked = float(
        np.mean(space.draw(sampling, progress.n_triplets, TIMED).draws > n // 64)
    )
    products = product_seconds(tally.strategy, n, d, m, draws, looked) / BATCH
    faster = twin_seconds(X, relevance, progress, gamma) / seconds if twin else ""
    over = seconds / products
    return [
        n,
        d,
        m,
        gamma,
        tally.strategy,
        draws,
        1 / seconds,
        1e6 * seconds,
        over,
        1 / over,
        faster,
    ]


def twin_seconds(
    X: np.ndarray, relevance: Relevance, progress: Progress, gamma: float
) -> float:
    twin = FactoredFRML(X, relevance, progress.F, seed=0, gamma=gamma, batch_size=BATCH)
    twin.start, twin.n_triplets = progress.start, progress.n_triplets
    twin.distance, twin.squares = progress.distance, progress.squares
    start = time.perf_counter()
    twin.run(progress.n_triplets + TWIN)
    return (time.perf_counter() - start) / TWIN


def main() -> None:
    rows = [row(2000, 1000, 30, 1, twin=True), row(2000, 1000, 30, 25, twin=True)]
    rows += [row(n, 1000, 30, 1) for n in (500, 8000)]
    rows += [row(2000, d, 30, 1) for d in (30, 100, 300, 3000)]
    rows += [row(2000, 1000, m, 1) for m in (10, 20, 60, 120)]
    rows += [row(50_000, 100, 30, gamma) for gamma in (1, 10, 25)]
    header = [
        "n", "d", "m", "gamma", "strategy", "draws", "triplets/s", "us a triplet", "over products",
        "share of products", "times the twin",
    ]  # fmt: skip
    publish("FRML: triplets a second", header, rows)


if __name__ == "__main__":
    main()
