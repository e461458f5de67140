"""How long does MLR take, for one round of cutting planes and for whole fits?

The reference for a round is its two products and the sorts of its distances alone, in the same
blocks on the same threads. Fits are certified to tol = 0.01; the last column is the share of
time in the inner solver. IsoLet needs the data folder (RANKSPACE_DATA); the synthetic data have
ten Gaussian classes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from _table import best_seconds, publish
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from rankspace import MLR, Relevance
from rankspace._engine.parallel.threads import thread_map
from rankspace.datasets import fetch_isolet
from rankspace.learners.solvers.cutting_plane.admm import PlaneProblem
from rankspace.learners.solvers.cutting_plane.ranking_loss import RankingLoss, Sums
from rankspace.learners.solvers.points import Points


def isolet(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    train = fetch_isolet().part("train")
    rows = np.random.default_rng(0).permutation(len(train.X))[:n]
    return PCA(d, random_state=0).fit_transform(train.X)[rows], train.labels[rows]


def classes(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, d, n_informative=d // 2, n_redundant=0, n_classes=10, random_state=0
    )


class BareRound(RankingLoss):
    """Only the matrix products and sorts of a round."""

    def bare_step(
        self, block: np.ndarray, items: np.ndarray, queries: np.ndarray
    ) -> Sums:
        distances = queries[block] @ items.T
        np.argsort(distances, axis=1)
        return Sums(self.Q[block].T @ (distances @ self.X), np.zeros(len(self.X)), 0.0)

    def run(self, components: np.ndarray) -> None:
        items = self.X @ components.T
        queries = self.Q @ components.T
        blocks = self.blocks(self.queries)
        list(thread_map(lambda b: self.bare_step(b, items, queries), blocks, depth=8))


def round_row(X: np.ndarray, y: np.ndarray, measure: str) -> list[Any]:
    X = X / np.sqrt(2 * X.var(axis=0).sum())
    rows = np.arange(len(X))
    points = Points(X, rows, len(X))
    arguments = (points, Relevance.from_labels(y), measure, rows, 512)
    components = 10 * np.eye(X.shape[1])
    bare = BareRound(*arguments)
    seconds = best_seconds(lambda: RankingLoss(*arguments).plane(components), 3)
    floor = best_seconds(lambda: bare.run(components), 3)
    label = f"one round, {measure}, {len(X):,} x {X.shape[1]}"
    return [label, seconds, seconds / floor, "", "", ""]


def fit_row(
    name: str, X: np.ndarray, y: np.ndarray, measure: str, C: float
) -> list[Any]:
    inner = 0.0
    solve = PlaneProblem.solve

    def timed(self: PlaneProblem, *arguments: Any) -> Any:
        nonlocal inner
        start = time.perf_counter()
        result = solve(self, *arguments)
        inner += time.perf_counter() - start
        return result

    PlaneProblem.solve = timed  # type: ignore[method-assign]
    try:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MLR(C, measure=measure, max_iter=300).fit(X, y)
        seconds = time.perf_counter() - start
    finally:
        PlaneProblem.solve = solve  # type: ignore[method-assign]
    label = f"{name}, {measure}, C={C:g}, {len(X):,} x {X.shape[1]}"
    return [label, seconds, "", model.n_iter_, model.gap_, inner / seconds]


def main() -> None:
    rows = [
        round_row(*isolet(4991, 170), measure) for measure in ("auc", "map", "ndcg@10")
    ]
    rows += [fit_row("IsoLet", *isolet(4991, 170), "auc", 1000.0)]
    rows += [fit_row("IsoLet", *isolet(4991, 170), "map", 1000.0)]
    rows += [
        fit_row("classes", *classes(n, 32), "map", 1000.0)
        for n in (1000, 2000, 4000, 8000)
    ]
    rows += [
        fit_row("classes", *classes(2000, d), "map", 1000.0) for d in (16, 64, 128)
    ]
    header = [
        "what",
        "seconds",
        "time / products and sorts",
        "rounds",
        "gap",
        "share of inner solver",
    ]
    publish("MLR: rounds and fits", header, rows)


if __name__ == "__main__":
    main()
