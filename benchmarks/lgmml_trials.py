"""What else was tried to make LGMML rank better, and was not kept?

Mean NDCG@10 over the validation queries of the first fold of `lgmml.py` (120 on MQ2008, 21 on
OHSUMED, 33 on the MSLR sample, so a hundredth says little), with one seed; test queries are not
looked at. Every row changes the model as it comes, "LGMML" in the first row, in one thing. LightGBM
stops early by the same queries. With ``--keep FILE`` a stopped run goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _kept import Kept
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

ALPHA, K = 0.2, 10
RECIPE = LocalOptions(0.5, 0.01, 0.5, 4, K, False, 64)


class Problem(NamedTuple):
    """Scaled documents of the training lists, in their order, and how to scale others."""

    Z: np.ndarray
    lists: Lists
    scaling: FeatureScaling

    @classmethod
    def of(cls, part: Part) -> Problem:
        relevance = Relevance.from_groups(part.grades, part.qid)
        lists = Lists.of(relevance.take_queries(relevance.trainable))
        scaling = FeatureScaling.of(part.X, "joined")
        Z = scaling.apply(part.X)[lists.rows].astype(np.float64)
        own = Lists(lists.indptr, np.arange(len(Z)), lists.grades, lists.weights)
        return cls(Z, own, scaling)

    def pull(self, scores: np.ndarray) -> np.ndarray:
        """How much a higher score of each document would lower the loss."""
        losses, gradient = np.empty(len(self.lists)), np.empty(len(self.Z))
        weights = pair_weights(self.lists, K)
        pair_losses(
            scores, self.lists.gains, self.lists.indptr, weights, losses, gradient
        )
        return -gradient

    def loss(self, scores: np.ndarray) -> float:
        losses, gradient = np.empty(len(self.lists)), np.empty(len(self.Z))
        weights = pair_weights(self.lists, K)
        pair_losses(
            scores, self.lists.gains, self.lists.indptr, weights, losses, gradient
        )
        return float(losses.sum())


class Local(NamedTuple):
    """Metrics with anchors, and the weights of distances and features."""

    factors: np.ndarray
    anchors: np.ndarray
    weights: np.ndarray
    linear: np.ndarray

    def heights(self, Z: np.ndarray) -> np.ndarray:
        gaps = np.einsum("mrd,nd->nmr", self.factors, Z, optimize=True)
        gaps -= np.einsum("mrd,md->mr", self.factors, self.anchors)
        return -np.expm1(-0.5 * np.sum(gaps**2, axis=2))

    def scores(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self.linear - self.heights(Z) @ self.weights


def weighted(problem: Problem, factors: np.ndarray, anchors: np.ndarray) -> Local:
    """Weights of given metrics and of features by the logistic loss, as LGMML finds them."""
    m = len(factors)
    empty = Local(factors, anchors, np.zeros(m), np.zeros(problem.Z.shape[1]))
    H = empty.heights(problem.Z)
    spread = H.std(axis=0)
    spread[spread == 0] = np.inf
    columns = np.hstack([(H.mean(axis=0) - H) / spread, problem.Z])
    w = logistic_weights(
        columns, problem.lists, weight_reg=ALPHA, k=K, non_negative=False, max_iter=200
    )
    return empty._replace(weights=w[:m] / spread, linear=w[m:])


def as_it_comes(
    fold: Fold, problem: Problem, n_metrics: int = 50, seed: int = 0
) -> Local:
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
        found = shared_directions(pool, RECIPE)
        directions = np.eye(problem.Z.shape[1]) if found is None else found
        seen = Scatter(*(directions @ part @ directions.T for part in pool))
        return cls(directions, problem.Z @ directions.T, seen)


# ---------------------------------------------------------------------- trials


def clustered(fold: Fold, problem: Problem) -> Local:
    """Means of 50 clusters of relevant documents as anchors, with the metric of each cluster."""
    from sklearn.cluster import KMeans

    Z, lists = problem.Z, problem.lists
    shared = Shared.of(problem)
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
    place = np.arange(len(Z)) - lists.indptr[owner]
    high = np.flatnonzero(place < upper_counts(lists)[owner])
    low = np.flatnonzero(lists.grades == lists.grades[lists.indptr[1:] - 1][owner])
    cluster = (
        KMeans(min(50, high.size), n_init=1, random_state=0)
        .fit(shared.points[high])
        .labels_
    )
    factors, anchors = [], []
    for c in np.unique(cluster):
        members = high[cluster == c]
        near = shared.points[members]
        far = shared.points[low[np.isin(owner[low], owner[members])]]
        factor = local_factor(set_scatter(near, far), shared.pool, RECIPE)
        unit = unit_of(
            (np.concatenate([near, far]) - near.mean(axis=0)) @ factor.T, False
        )
        factors.append(factor @ shared.directions / unit)
        anchors.append(Z[members].mean(axis=0))
    return weighted(problem, np.stack(factors), np.stack(anchors))


def moved_by_warp(fold: Fold, problem: Problem, step: float, rounds: int = 20) -> Local:
    """Factors moved by WARP steps, then new weights."""
    local = as_it_comes(fold, problem)
    factors = local.factors.copy()
    Z, lists, rng = problem.Z, problem.lists, np.random.default_rng(0)
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
        pull = np.sum(1 / np.log2(np.arange(2, rank + 2))) * unit * (1 - t / total)
        for row, sign in ((top, 1.0), (lows[wrong[0]], -1.0)):
            gap = Z[row] - local.anchors
            mapped = np.einsum("mrd,md->mr", factors, gap)
            slope = (
                local.weights * np.exp(-0.5 * np.sum(mapped**2, axis=1)) * pull * sign
            )
            factors -= (slope[:, None] * mapped)[:, :, None] * gap[:, None, :]
    return weighted(problem, factors, local.anchors)


def moved_by_descent(fold: Fold, problem: Problem, steps: int = 10) -> Local:
    """Factors and weights moved together by L-BFGS on the logistic loss."""
    local = as_it_comes(fold, problem)
    Z, shape = problem.Z, local.factors.shape
    m, size = len(local.factors), local.factors.size
    spread = local.heights(Z).var(axis=0)
    decay = ALPHA * np.concatenate([np.zeros(size), spread, np.ones(shape[2])])

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        factors, w, linear = np.split(theta, [size, size + m])
        factors = factors.reshape(shape)
        offsets = np.einsum("mrd,md->mr", factors, local.anchors)
        mapped = (Z @ factors.reshape(-1, shape[2]).T).reshape(
            -1, m, shape[1]
        ) - offsets
        near = np.exp(-0.5 * np.sum(mapped**2, axis=2))
        scores = Z @ linear - (1 - near) @ w
        pull = problem.pull(scores)
        inner = (pull[:, None] * near * w)[:, :, None] * mapped
        moved = np.einsum("nmr,nd->mrd", inner, Z, optimize=True)
        moved -= inner.sum(axis=0)[:, :, None] * local.anchors[:, None, :]
        slope = np.concatenate([moved.ravel(), pull @ (1 - near), -(pull @ Z)])
        return problem.loss(scores) + float(decay @ theta**2) / 2, slope + decay * theta

    start = np.concatenate([local.factors.ravel(), local.weights, local.linear])
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}
    ).x
    factors, w, linear = np.split(found, [size, size + m])
    return local._replace(factors=factors.reshape(shape), weights=w, linear=linear)


def boosted(fold: Fold, problem: Problem, rounds: int = 50, rate: float = 0.3) -> Local:
    """Metrics one after the other, each of the documents that the sum so far has most wrong."""
    Z, rng = problem.Z, np.random.default_rng(0)
    shared = Shared.of(problem)
    points = shared.points
    linear = logistic_weights(
        Z, problem.lists, weight_reg=ALPHA, k=K, non_negative=False, max_iter=200
    )
    scores = Z @ linear
    kept: list[tuple[np.ndarray, np.ndarray, float]] = []
    for _ in range(rounds):
        pull = problem.pull(scores)
        shares = np.maximum(pull, 0) ** 2
        anchor = int(rng.choice(len(Z), p=shares / shares.sum()))
        around = points - points[anchor]
        order = np.argsort(np.sum(around**2, axis=1))[: len(Z) // 4]
        near, far = order[pull[order] > 0], order[pull[order] < 0]
        factor = local_factor(
            set_scatter(points[near], points[far]), shared.pool, RECIPE
        )
        factor = factor / unit_of(around[order] @ factor.T, False)
        height = -np.expm1(-0.5 * np.sum((around @ factor.T) ** 2, axis=1))
        w = rate * best_weight(problem, scores, height)
        scores = scores - w * height
        kept.append((factor @ shared.directions, Z[anchor], w))
    factors, anchors, weights = zip(*kept, strict=True)
    return Local(np.stack(factors), np.stack(anchors), np.array(weights), linear)


def best_weight(problem: Problem, scores: np.ndarray, height: np.ndarray) -> float:
    """The weight of one more metric that lowers the loss most."""
    decay = ALPHA / 2 * float(height.var())
    found = minimize_scalar(
        lambda w: problem.loss(scores - w * height) + decay * w * w,
        options={"maxiter": 20},
    )
    return float(found.x)


# ---------------------------------------------------------------------- the table

Scorer = Callable[[Part], np.ndarray]


def scorer(make: Callable[..., Local], **options: Any) -> Callable[[Fold], Scorer]:
    def fitted(fold: Fold) -> Scorer:
        problem = Problem.of(fold.train)
        local = make(fold, problem, **options)
        return lambda part: local.scores(
            problem.scaling.apply(part.X).astype(np.float64)
        )

    return fitted


def averaged(fold: Fold) -> Scorer:
    problem = Problem.of(fold.train)
    models = [as_it_comes(fold, problem, seed=seed) for seed in range(5)]

    def scores(part: Part) -> np.ndarray:
        Z = problem.scaling.apply(part.X).astype(np.float64)
        return np.mean([model.scores(Z) for model in models], axis=0)

    return scores


def trees(distances: bool) -> Callable[[Fold], Scorer]:
    """LightGBM of 15 leaves, stopped by the validation fold, with or without the distances."""

    def fitted(fold: Fold) -> Scorer:
        import lightgbm

        problem = Problem.of(fold.train)
        local = as_it_comes(fold, problem)

        def columns(part: Part) -> np.ndarray:
            Z = problem.scaling.apply(part.X).astype(np.float64)
            return np.hstack([part.X, local.heights(Z)]) if distances else part.X

        data = [
            lightgbm.Dataset(columns(part), part.grades, group=part.sizes)
            for part in fold[:2]
        ]
        options = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "seed": 0,
                   "num_threads": 1, "verbose": -1, "num_leaves": 15, "learning_rate": 0.05,
                   "min_data_in_leaf": 50, "feature_fraction": 0.3}  # fmt: skip
        model = lightgbm.train(
            options, data[0], 600, valid_sets=[data[1]],
            callbacks=[lightgbm.early_stopping(60, verbose=False)],
        )  # fmt: skip
        return lambda part: model.predict(columns(part), num_threads=1)

    return fitted


TRIALS: list[tuple[str, Callable[[Fold], Scorer]]] = [
    ("LGMML, 50 metrics, as it comes", scorer(as_it_comes)),
    ("200 metrics", scorer(as_it_comes, n_metrics=200)),
    ("anchors and metrics of 50 clusters of relevant documents", scorer(clustered)),
    (
        "factors moved by WARP, 20 short steps a list, then new weights",
        scorer(moved_by_warp, step=0.001),
    ),
    ("the same by long steps", scorer(moved_by_warp, step=0.02)),
    ("factors and weights moved by 10 steps of L-BFGS", scorer(moved_by_descent)),
    (
        "factors and weights moved by 60 steps of L-BFGS",
        scorer(moved_by_descent, steps=60),
    ),
    ("boosting: 50 metrics, each of what is most wrong so far", scorer(boosted)),
    ("mean of five models of other lists", averaged),
    ("LightGBM on features", trees(False)),
    ("LightGBM on features and distances", trees(True)),
]
SETS = ("MQ2008", "OHSUMED", "MSLR sample")


def validated(fit: Callable[[Fold], Scorer], fold: Fold) -> float:
    return float(fold.vali.judge(fit(fold)(fold.vali))[2].mean())


def main() -> None:
    warnings.simplefilter("ignore")
    kept = Kept.from_arguments()
    sets = {name: next(folds_of(name)) for name in SETS}
    rows: list[list[Any]] = []
    for label, fit in TRIALS:
        found = [
            kept.get(f"{label} | {name}", partial(validated, fit, fold))
            for name, fold in sets.items()
        ]
        rows.append([label, *(f"{value:.4f}" for value in found)])
        print(*rows[-1], sep=" | ", flush=True)
    publish("LGMML: what was tried and not kept", ["trial", *SETS], rows)


if __name__ == "__main__":
    main()
