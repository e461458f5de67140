"""Negative results: what else was tried to make LGMML rank better, and was rejected?

Mean NDCG@10 over the validation queries of the first fold of `lgmml.py`, with one seed; test
queries are not used. With 120 validation queries on MQ2008, 21 on OHSUMED and 33 on the MSLR
sample, differences of 0.01 mean little. Each row changes one thing in the default model of the
first row. LightGBM uses early stopping on the same queries. With ``--checkpoint FILE`` an
interrupted run resumes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _checkpoint import Checkpoint
from _table import publish
from lgmml import Fold, Part, folds_of
from scipy.optimize import minimize, minimize_scalar

from rankspace import LGMML, Relevance
from rankspace._engine.kernels.lists import pair_losses
from rankspace.learners.solvers.geometric.lists import Lists, upper_counts
from rankspace.learners.solvers.geometric.local_metrics import (
    LocalOptions,
    local_factor,
    pooled_scatter,
    set_scatter,
    shared_directions,
    unit_of,
)
from rankspace.learners.solvers.geometric.metric_weights import (
    logistic_weights,
    pair_weights,
)
from rankspace.learners.solvers.geometric.scatter import Scatter
from rankspace.metrics.feature_scaling import FeatureScaling

WEIGHT_REG = 0.2
K = 10
OPTIONS = LocalOptions(0.5, 0.01, 0.5, 4, K, False, 64)


class Problem(NamedTuple):
    """Scaled documents of the training lists, in their order, and the feature scaling."""

    Z: np.ndarray
    lists: Lists
    scaling: FeatureScaling

    @classmethod
    def of(cls, part: Part) -> Problem:
        relevance = Relevance.from_groups(part.grades, part.qid)
        lists = Lists.of(relevance.take_queries(relevance.trainable))
        scaling = FeatureScaling.of(part.X, "joined")
        Z = scaling.apply(part.X)[lists.rows].astype(np.float64)
        compact = Lists(lists.indptr, np.arange(len(Z)), lists.grades, lists.weights)
        return cls(Z, compact, scaling)

    def loss_and_gradient(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """The logistic loss, and its gradient with respect to the scores."""
        losses = np.empty(len(self.lists))
        gradient = np.empty(len(self.Z))
        weights = pair_weights(self.lists, K)
        pair_losses(
            scores, self.lists.gains, self.lists.indptr, weights, losses, gradient
        )
        return float(losses.sum()), gradient


class Local(NamedTuple):
    """Metrics with anchors, and the weights of distances and features."""

    factors: np.ndarray
    anchors: np.ndarray
    weights: np.ndarray
    linear: np.ndarray

    def kernel_values(self, Z: np.ndarray) -> np.ndarray:
        gaps = np.einsum("mrd,nd->nmr", self.factors, Z, optimize=True)
        gaps -= np.einsum("mrd,md->mr", self.factors, self.anchors)
        return -np.expm1(-0.5 * np.sum(gaps**2, axis=2))

    def scores(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self.linear - self.kernel_values(Z) @ self.weights


def weighted(problem: Problem, factors: np.ndarray, anchors: np.ndarray) -> Local:
    """Weights of given metrics and of the features by the logistic loss, as in LGMML."""
    m = len(factors)
    empty = Local(factors, anchors, np.zeros(m), np.zeros(problem.Z.shape[1]))
    H = empty.kernel_values(problem.Z)
    spread = H.std(axis=0)
    spread[spread == 0] = np.inf
    columns = np.hstack([(H.mean(axis=0) - H) / spread, problem.Z])
    w = logistic_weights(
        columns,
        problem.lists,
        weight_reg=WEIGHT_REG,
        k=K,
        non_negative=False,
        max_iter=200,
    )
    return empty._replace(weights=w[:m] / spread, linear=w[m:])


def with_defaults(
    fold: Fold, problem: Problem, n_metrics: int = 50, seed: int = 0
) -> Local:
    """The default model."""
    model = LGMML(n_metrics, random_state=seed)
    model.fit(fold.train.X.astype(np.float64), fold.train.grades, qid=fold.train.qid)
    metric: Any = model.metric_
    return Local(metric.factors, metric.anchors, metric.weights[0], metric.linear)


class Shared(NamedTuple):
    """Documents along shared directions, and the scatter of all lists there."""

    directions: np.ndarray
    points: np.ndarray
    pool: Scatter

    @classmethod
    def of(cls, problem: Problem) -> Shared:
        pool = pooled_scatter(problem.Z, problem.lists)
        directions = shared_directions(pool, OPTIONS)
        if directions is None:
            directions = np.eye(problem.Z.shape[1])
        projected = Scatter(*[directions @ part @ directions.T for part in pool])
        return cls(directions, problem.Z @ directions.T, projected)


# ---------------------------------------------------------------------- trials


def clustered(fold: Fold, problem: Problem) -> Local:
    """k-means: the centres of 50 clusters of relevant documents are the anchors."""
    from sklearn.cluster import KMeans

    Z, lists = problem.Z, problem.lists
    shared = Shared.of(problem)
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
    place = np.arange(len(Z)) - lists.indptr[owner]
    high = np.flatnonzero(place < upper_counts(lists)[owner])
    low = np.flatnonzero(lists.grades == lists.grades[lists.indptr[1:] - 1][owner])
    kmeans = KMeans(min(50, high.size), n_init=1, random_state=0)
    cluster = kmeans.fit(shared.points[high]).labels_
    factors, anchors = [], []
    for c in np.unique(cluster):
        members = high[cluster == c]
        near = shared.points[members]
        far = shared.points[low[np.isin(owner[low], owner[members])]]
        factor = local_factor(set_scatter(near, far), shared.pool, OPTIONS)
        unit = unit_of(
            (np.concatenate([near, far]) - near.mean(axis=0)) @ factor.T, False
        )
        factors.append(factor @ shared.directions / unit)
        anchors.append(Z[members].mean(axis=0))
    return weighted(problem, np.stack(factors), np.stack(anchors))


def trained_by_warp(
    fold: Fold, problem: Problem, step: float, rounds: int = 20
) -> Local:
    """Factors trained by WARP steps, then new weights."""
    local = with_defaults(fold, problem)
    factors = local.factors.copy()
    Z, lists = problem.Z, problem.lists
    rng = np.random.default_rng(0)
    n_top, n_low = lists.ends()
    total = rounds * len(lists)
    unit = step * np.mean(factors**2) ** 0.5 / np.mean(np.abs(local.weights))
    for t in range(total):
        q = int(rng.integers(len(lists)))
        top = lists.indptr[q] + rng.integers(n_top[q])
        lows = lists.indptr[q + 1] - 1 - rng.permutation(int(n_low[q]))
        scores = local._replace(factors=factors).scores(Z[np.append(top, lows)])
        wrong = np.flatnonzero(scores[1:] > scores[0] - 0.1)
        if not wrong.size:
            continue
        rank = n_low[q] // (wrong[0] + 1)
        rank_weight = np.sum(1 / np.log2(np.arange(2, rank + 2)))
        rate = rank_weight * unit * (1 - t / total)
        for row, sign in ((top, 1.0), (lows[wrong[0]], -1.0)):
            gap = Z[row] - local.anchors
            mapped = np.einsum("mrd,md->mr", factors, gap)
            slope = (
                local.weights * np.exp(-0.5 * np.sum(mapped**2, axis=1)) * rate * sign
            )
            factors -= (slope[:, None] * mapped)[:, :, None] * gap[:, None, :]
    return weighted(problem, factors, local.anchors)


def trained_by_lbfgs(fold: Fold, problem: Problem, steps: int = 10) -> Local:
    """Factors and weights trained together by L-BFGS on the logistic loss."""
    local = with_defaults(fold, problem)
    Z, shape = problem.Z, local.factors.shape
    m, size = len(local.factors), local.factors.size
    spread = local.kernel_values(Z).var(axis=0)
    decay = WEIGHT_REG * np.concatenate([np.zeros(size), spread, np.ones(shape[2])])

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        factors, w, linear = np.split(theta, [size, size + m])
        factors = factors.reshape(shape)
        offsets = np.einsum("mrd,md->mr", factors, local.anchors)
        mapped = (Z @ factors.reshape(-1, shape[2]).T).reshape(
            -1, m, shape[1]
        ) - offsets
        near = np.exp(-0.5 * np.sum(mapped**2, axis=2))
        scores = Z @ linear - (1 - near) @ w
        loss, gradient = problem.loss_and_gradient(scores)
        inner = (-gradient[:, None] * near * w)[:, :, None] * mapped
        by_factors = np.einsum("nmr,nd->mrd", inner, Z, optimize=True)
        by_factors -= inner.sum(axis=0)[:, :, None] * local.anchors[:, None, :]
        by_weights = -gradient @ (1 - near)
        slope = np.concatenate([by_factors.ravel(), by_weights, gradient @ Z])
        return loss + float(decay @ theta**2) / 2, slope + decay * theta

    start = np.concatenate([local.factors.ravel(), local.weights, local.linear])
    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}
    )
    factors, w, linear = np.split(result.x, [size, size + m])
    return local._replace(factors=factors.reshape(shape), weights=w, linear=linear)


def boosted(fold: Fold, problem: Problem, rounds: int = 50, rate: float = 0.3) -> Local:
    """Boosting: each metric is fitted to the documents with the largest errors so far."""
    Z = problem.Z
    rng = np.random.default_rng(0)
    shared = Shared.of(problem)
    points = shared.points
    linear = logistic_weights(
        Z, problem.lists, weight_reg=WEIGHT_REG, k=K, non_negative=False, max_iter=200
    )
    scores = Z @ linear
    factors, anchors, weights = [], [], []
    for _ in range(rounds):
        residuals = -problem.loss_and_gradient(scores)[1]
        shares = np.maximum(residuals, 0) ** 2
        anchor = int(rng.choice(len(Z), p=shares / shares.sum()))
        around = points - points[anchor]
        order = np.argsort(np.sum(around**2, axis=1))[: len(Z) // 4]
        near = order[residuals[order] > 0]
        far = order[residuals[order] < 0]
        factor = local_factor(
            set_scatter(points[near], points[far]), shared.pool, OPTIONS
        )
        factor = factor / unit_of(around[order] @ factor.T, False)
        column = -np.expm1(-0.5 * np.sum((around @ factor.T) ** 2, axis=1))
        weight = rate * best_weight(problem, scores, column)
        scores = scores - weight * column
        factors.append(factor @ shared.directions)
        anchors.append(Z[anchor])
        weights.append(weight)
    return Local(np.stack(factors), np.stack(anchors), np.array(weights), linear)


def best_weight(problem: Problem, scores: np.ndarray, column: np.ndarray) -> float:
    """Line search: the weight of one more metric that lowers the loss most."""
    decay = WEIGHT_REG / 2 * float(column.var())

    def objective(w: float) -> float:
        return problem.loss_and_gradient(scores - w * column)[0] + decay * w * w

    return float(minimize_scalar(objective, options={"maxiter": 20}).x)


# ---------------------------------------------------------------------- the table

Scorer = Callable[[Part], np.ndarray]


def scorer(make: Callable[..., Local], **options: Any) -> Callable[[Fold], Scorer]:
    def fitted(fold: Fold) -> Scorer:
        problem = Problem.of(fold.train)
        local = make(fold, problem, **options)

        def scores(part: Part) -> np.ndarray:
            return local.scores(problem.scaling.apply(part.X).astype(np.float64))

        return scores

    return fitted


def averaged(fold: Fold) -> Scorer:
    problem = Problem.of(fold.train)
    models = [with_defaults(fold, problem, seed=seed) for seed in range(5)]

    def scores(part: Part) -> np.ndarray:
        Z = problem.scaling.apply(part.X).astype(np.float64)
        return np.mean([model.scores(Z) for model in models], axis=0)

    return scores


def trees(distances: bool) -> Callable[[Fold], Scorer]:
    """LightGBM with 15 leaves and early stopping, with or without the distances as features."""

    def fitted(fold: Fold) -> Scorer:
        import lightgbm

        problem = Problem.of(fold.train)
        local = with_defaults(fold, problem)

        def columns(part: Part) -> np.ndarray:
            if not distances:
                return part.X
            Z = problem.scaling.apply(part.X).astype(np.float64)
            return np.hstack([part.X, local.kernel_values(Z)])

        data = [
            lightgbm.Dataset(columns(part), part.grades, group=part.sizes)
            for part in fold[:2]
        ]
        options = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "seed": 0,
            "num_threads": 1,
            "verbose": -1,
            "num_leaves": 15,
            "learning_rate": 0.05,
            "min_data_in_leaf": 50,
            "feature_fraction": 0.3,
        }
        model = lightgbm.train(
            options,
            data[0],
            600,
            valid_sets=[data[1]],
            callbacks=[lightgbm.early_stopping(60, verbose=False)],
        )
        return lambda part: model.predict(columns(part), num_threads=1)

    return fitted


TRIALS: list[tuple[str, Callable[[Fold], Scorer]]] = [
    ("LGMML, 50 metrics, defaults", scorer(with_defaults)),
    ("200 metrics", scorer(with_defaults, n_metrics=200)),
    ("anchors and metrics from 50 clusters of relevant documents", scorer(clustered)),
    (
        "factors trained by WARP, 20 short steps per list, then new weights",
        scorer(trained_by_warp, step=0.001),
    ),
    ("the same with long steps", scorer(trained_by_warp, step=0.02)),
    ("factors and weights trained by 10 steps of L-BFGS", scorer(trained_by_lbfgs)),
    (
        "factors and weights trained by 60 steps of L-BFGS",
        scorer(trained_by_lbfgs, steps=60),
    ),
    ("boosting: 50 metrics, each fitted to the largest errors so far", scorer(boosted)),
    ("mean of five models from different lists", averaged),
    ("LightGBM on features", trees(False)),
    ("LightGBM on features and distances", trees(True)),
]
SETS = ("MQ2008", "OHSUMED", "MSLR sample")


def validated(fit: Callable[[Fold], Scorer], fold: Fold) -> float:
    """NDCG@10 on the validation queries."""
    return float(fold.vali.judge(fit(fold)(fold.vali))[2].mean())


def main() -> None:
    warnings.simplefilter("ignore")
    checkpoint = Checkpoint.from_arguments()
    sets = {name: next(folds_of(name)) for name in SETS}
    rows: list[list[Any]] = []
    for label, fit in TRIALS:
        row = [label]
        for name, fold in sets.items():
            value = checkpoint.get(f"{label} | {name}", partial(validated, fit, fold))
            row.append(f"{value:.4f}")
        rows.append(row)
        print(*rows[-1], sep=" | ", flush=True)
    publish("LGMML: rejected changes", ["trial", *SETS], rows)


if __name__ == "__main__":
    main()
