"""MLR on the majority vote of the nearest neighbours, against a program over all rankings."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

from rankspace import MLR, MLRCV, Relevance, RobustMLR, load_metric
from rankspace.learners.solvers.cutting_plane.vote_loss import item_classes
from reference import mlr as reference


class VoteQuery:
    """One query and every ranking of its items, with loss and order of each pair."""

    def __init__(self, X, y, q, k):
        others = np.delete(np.arange(len(X)), q)
        self.differences = X[others] - X[q]
        same = y[others] == y[q]
        self.pos, self.neg = np.flatnonzero(same), np.flatnonzero(~same)
        rankings = np.array(list(itertools.permutations(range(len(others)))))
        self.places = np.argsort(rankings, axis=1)
        classes = np.where(same, -1, y[others])
        errors = np.array([self.is_error(classes[r[:k]]) for r in rankings])
        best = (np.sort(self.places[:, self.pos], axis=1) < self.pos.size).all(axis=1)
        self.losses = errors - errors[best].min()

    @staticmethod
    def is_error(first):
        counts = np.unique(first[first >= 0], return_counts=True)[1]
        return float(counts.max(initial=0) >= np.sum(first < 0))

    def most_violated(self, W):
        D = self.differences
        distances = np.einsum("ij,jk,ik->i", D, W, D)
        above = self.places[:, self.neg, None] < self.places[:, None, self.pos]
        gaps = distances[self.neg][:, None] - distances[self.pos]
        scale = 2 / above[0].size
        values = self.losses - scale * (above * gaps).sum(axis=(1, 2))
        worst = int(np.argmax(values))
        psi = np.zeros((D.shape[1],) * 2)
        for a, b in np.argwhere(above[worst]):
            far, near = D[self.neg[a]], D[self.pos[b]]
            psi += scale * (np.outer(far, far) - np.outer(near, near))
        return values[worst], self.losses[worst], psi


def small_problem(rng):
    y = np.array([0, 0, 0, 1, 1, 2, 2])
    # Classes far apart: with others the best metric for this loss is zero.
    X = rng.normal(size=(7, 2)) + 3 * np.array([[0, 1], [1, -1], [-1, -1]])[y]
    X -= X.mean(axis=0)
    return X / np.sqrt(2 * X.var(axis=0).sum()), y


@pytest.mark.parametrize(
    ("k", "C", "seed"), [(3, 30.0, 0), (3, 300.0, 1), (4, 30.0, 0)]
)
@pytest.mark.filterwarnings("ignore:the best metric at C=30.0 is zero")
def test_the_optimum_is_that_of_all_rankings(k, C, seed):
    X, y = small_problem(np.random.default_rng(seed))
    queries = [VoteQuery(X, y, q, k) for q in range(len(X))]
    best, _, _ = reference.solve(queries, 2, C, cp.trace)
    model = MLR(C, measure=f"knn-vote@{k}", tol=1e-4).fit(X, y)
    assert model.objective_ == pytest.approx(best, abs=2e-4 * C)
    assert model.components_.any() == (k == 3)
    W = model.get_mahalanobis_matrix() * model.scale_**2
    slack = np.mean([max(0.0, query.most_violated(W)[0]) for query in queries])
    assert np.trace(W) + C * slack == pytest.approx(model.objective_, abs=1e-6 * C)


def test_a_saved_metric_ranks_the_same(wine, tmp_path):
    X, y = wine
    model = MLR(10_000, measure="knn-vote@3").fit(X, y)
    model.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(loaded.rank(X, X, 5).items, model.rank(X, X, 5).items)
    assert model.score(X, y) > 0.9


def test_two_classes_and_odd_k_are_the_loss_of_knn(rng):
    y = np.arange(30) % 2
    X = rng.normal(size=(30, 3)) + 4 * y[:, None]
    vote, knn = (
        MLR(1000, measure=measure, tol=1e-3).fit(X, y).objective_
        for measure in ("knn-vote@3", "knn@3")
    )
    assert vote == pytest.approx(knn, abs=2)


def test_other_learners_take_it(wine):
    X, y = wine
    assert RobustMLR(10_000, measure="knn-vote@3").fit(X, y).support_.size
    model = MLRCV((1e4, 1e5), measure="knn-vote@3", scoring="knn@3", random_state=0)
    assert model.fit(X, y).C_ in (1e4, 1e5)
    with pytest.raises(ValueError, match="scoring must name a measure"):
        MLRCV((10,), measure="knn-vote@3").fit(X, y)


def test_classes_of_items(rng):
    relevance = Relevance.from_labels([0, 7, 0, 1, 1, 9])
    trainable = relevance.take_queries(np.flatnonzero(relevance.trainable))
    for judgments in (relevance, trainable):
        classes = item_classes(judgments)
        same = classes[:, None] == classes
        assert same.sum() == 4 + 4 + 1 + 1
        assert same[0, 2]
        assert same[3, 4]


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        (Relevance.from_lists([[1], [0], [0, 1]]), "needs class labels of all items"),
        (
            Relevance.from_labels([0, 0, 1, 1, -1], unlabelled=-1),
            "needs class labels of all items",
        ),
    ],
)
def test_other_judgments_stop(relevance, message, rng):
    with pytest.raises(ValueError, match=message):
        MLR(measure="knn-vote@3").fit(rng.normal(size=(len(relevance), 2)), relevance)


def test_classes_without_a_query_stop(rng):
    X = 5 * np.eye(3)[[0, 0, 1, 1, 2, 2]] + rng.normal(size=(6, 3))
    relevance = Relevance.from_labels([0, 0, 1, 1, 2, 2], query_labels=[0, 1])
    model = MLR(1000, measure="knn-vote@1")
    queries = 5 * np.eye(3)[:2]
    assert model.fit(X, relevance, queries=queries).metric_
    with pytest.raises(ValueError, match="got 2 items of classes that no query is of"):
        model.fit(X, relevance.take_queries([0, 1]), queries=queries)


@pytest.mark.parametrize("measure", ["knn-vote", "knn-vote@0", "knn-vote@x"])
def test_names_need_a_cut(measure, wine):
    with pytest.raises(ValueError, match="measure must be one of"):
        MLR(measure=measure).fit(*wine)
