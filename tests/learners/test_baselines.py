"""LMNN and MLCC against convex programs and finite differences; SVM-MAP against brute force."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import (
    LMNN,
    MLCC,
    MLR,
    SVMMAP,
    BilinearMetric,
    Euclidean,
    Relevance,
    load_metric,
)
from rankspace._engine.kernels.measures import KERNELS
from rankspace.learners.solvers.smooth.pair_loss import LargeMargin, PairLoss, collapse
from reference.conventions import expected_failures

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
AVERAGE_PRECISION = KERNELS["average_precision"]


@parametrize_with_checks(
    [LMNN(max_iter=20), MLCC(max_iter=20), SVMMAP(max_iter=20)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def overlapping(seed, n=12, d=3):
    """Points of two classes that no metric separates, at unit mean squared distance."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, d)) + 0.5 * y[:, None]
    X -= X.mean(axis=0)
    return X / np.sqrt(2 * X.var(axis=0).sum()), y


def relevances(y):
    """The same judgments, and others that use weights, unjudged items and missing judgments."""
    n = len(y)
    rows = range(n)
    return {
        "labels": Relevance.from_labels(y),
        "weights": Relevance.from_labels(y, weights=np.arange(1.0, n + 1)),
        "ignore": Relevance.from_lists(
            [np.flatnonzero(y == y[i])[:4] for i in rows],
            [np.flatnonzero(y != y[i])[:3] for i in rows],
            n_items=n,
            query_rows=rows,
            unjudged="ignore",
        ),
    }


def squared(X, W):
    differences = X[:, None] - X[None]
    return np.einsum("ijk,kl,ijl->ij", differences, W, differences)


def query_parts(relevance):
    weights = relevance.weights / relevance.weights.sum()
    for q in range(relevance.n_queries):
        yield q, weights[q], relevance.relevant(q), relevance.irrelevant(q)


def lmnn_by_loops(X, relevance, W, n_targets, push):
    start, distances, total = squared(X, np.eye(X.shape[1])), squared(X, W), 0.0
    for q, weight, pos, neg in query_parts(relevance):
        for j in pos[np.argsort(start[q, pos], kind="stable")][:n_targets]:
            hinges = np.maximum(0, 1 + distances[q, j] - distances[q, neg])
            total += weight * ((1 - push) * distances[q, j] + push * hinges.sum())
    return total


def mlcc_by_loops(X, relevance, W):
    distances, total = squared(X, W), 0.0
    for q, weight, pos, neg in query_parts(relevance):
        others = np.concatenate([pos, neg])
        total += weight * (
            distances[q, pos].mean() + np.log(np.exp(-distances[q, others]).sum())
        )
    return total


@pytest.mark.parametrize("kind", ["labels", "weights", "ignore"])
@pytest.mark.parametrize("seed", range(3))
def test_losses_are_those_of_plain_loops_and_gradients_of_differences(seed, kind):
    X, y = overlapping(seed)
    relevance = relevances(y)[kind]
    L = np.random.default_rng(seed).normal(size=(2, X.shape[1]))
    loss = PairLoss(X, X, relevance, max_memory=1)
    loss.blocks = np.array_split(np.arange(len(X)), 3)
    of_rows = {"lmnn": LargeMargin(loss, 2, 0.3), "mlcc": collapse}
    expected = {
        "lmnn": lmnn_by_loops(X, relevance, L.T @ L, 2, 0.3),
        "mlcc": mlcc_by_loops(X, relevance, L.T @ L),
    }
    for name, rows in of_rows.items():
        assert loss.value_and_gradient(L, rows)[0] == pytest.approx(
            expected[name], rel=1e-12
        )

        def flat(vector, which, rows=rows):
            return np.ravel(
                loss.value_and_gradient(vector.reshape(L.shape), rows)[which]
            )

        error = check_grad(
            lambda v, flat=flat: flat(v, 0)[0],
            lambda v, flat=flat: flat(v, 1),
            L.ravel(),
        )
        assert error < 1e-5 * np.linalg.norm(flat(L.ravel(), 1))


def as_program(X):
    """A semi-definite matrix to find, and the squared distances under it."""
    W = cp.Variable((X.shape[1],) * 2, PSD=True)
    return W, lambda i, j: cp.sum(cp.multiply(np.outer(X[i] - X[j], X[i] - X[j]), W))


def solved(loss):
    problem = cp.Problem(cp.Minimize(loss))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value


@pytest.mark.parametrize("seed", range(4))
def test_lmnn_finds_the_optimum_of_the_convex_program(seed):
    X, y = overlapping(seed)
    model = LMNN(2, tol=1e-12, max_iter=2000).fit(X, y)
    relevance, start = Relevance.from_labels(y), squared(X, np.eye(X.shape[1]))
    _, distance = as_program(X)
    total = 0
    for q, weight, pos, neg in query_parts(relevance):
        for j in pos[np.argsort(start[q, pos], kind="stable")][:2]:
            near = distance(q, j)
            hinges = sum(cp.pos(1 + near - distance(q, i)) for i in neg)
            total += weight * 0.5 * (near + hinges)
    assert model.loss_ == pytest.approx(solved(total), rel=2e-3)
    W = model.get_mahalanobis_matrix()
    assert model.loss_ == pytest.approx(
        lmnn_by_loops(X, relevance, W, 2, 0.5), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_mlcc_finds_the_optimum_of_the_convex_program(seed):
    X, y = overlapping(seed)
    model = MLCC(tol=1e-13, max_iter=2000).fit(X, y)
    relevance = Relevance.from_labels(y)
    _, distance = as_program(X)
    total = 0
    for q, weight, pos, neg in query_parts(relevance):
        near = sum(distance(q, j) for j in pos) / len(pos)
        others = cp.hstack([-distance(q, j) for j in np.concatenate([pos, neg])])
        total += weight * (near + cp.log_sum_exp(others))
    assert model.loss_ == pytest.approx(solved(total), rel=1e-5)


@pytest.mark.parametrize("model", [LMNN(max_iter=30), MLCC(max_iter=30)])
def test_scale_and_place_of_the_data_do_not_matter(model, wine):
    X, y = wine
    once = model.fit(X, y).score(X, y)
    assert model.fit(1000 * X + 5000, y).score(1000 * X + 5000, y) == pytest.approx(
        once, abs=1e-4
    )


@pytest.mark.parametrize("model", [LMNN(), MLCC()])
def test_learning_beats_euclidean(model, wine):
    X, y = wine
    assert model.fit(X, y).score(X, y) > Euclidean().fit(X, y).score(X, y) + 0.02
    assert np.all(np.diff(model.history_) <= 0)


def test_blocks_do_not_change_the_answer(wine):
    X, y = wine
    found = [
        LMNN(max_iter=10, max_memory=memory).fit(X, y).components_
        for memory in (1, 512)
    ]
    assert len(PairLoss(X, X, Relevance.from_labels(y), 1).blocks) > 1
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def test_a_search_cut_short_warns(wine):
    for model in (LMNN(max_iter=3), MLCC(max_iter=3)):
        with pytest.warns(ConvergenceWarning, match="stopped after 3 steps"):
            model.fit(*wine)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LMNN(0), "n_targets == 0, must be >= 1"),
        (LMNN(push=1.5), "push == 1.5, must be <= 1"),
        (MLCC(max_iter=0), "max_iter == 0, must be >= 1"),
        (SVMMAP(0.0), "C == 0.0, must be > 0"),
        (SVMMAP(tol=-1.0), "tol == -1.0, must be > 0"),
    ],
)
def test_bad_parameters(model, message, wine):
    with pytest.raises(ValueError, match=message):
        model.fit(*wine)


# ---------------------------------------------------------------------- SVM-MAP


def judged_problem(seed):
    """Queries with a few judged items each; what is relevant depends on a hidden direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 3))
    X = (X - X.mean(axis=0)) / np.sqrt(2 * X.var(axis=0).sum())
    hidden = X @ rng.normal(size=3) + 0.3 * rng.normal(size=14)
    relevant, irrelevant = [], []
    for q in range(14):
        others = rng.permutation(np.delete(np.arange(14), q))[:6]
        order = others[np.argsort(hidden[others])]
        relevant.append(order[-2:])
        irrelevant.append(order[:-2])
    return X, Relevance.from_lists(
        relevant, irrelevant, n_items=14, query_rows=range(14), unjudged="ignore"
    )


def planes_of(X, relevance, query):
    """Loss and feature difference of every ranking of a query's items, by brute force.

    Interleavings of all orders: the order within a kind is any permutation, so nothing is assumed
    of the scores.
    """
    pos, neg = relevance.relevant(query), relevance.irrelevant(query)
    items, ones = np.concatenate([pos, neg]), np.ones(len(pos))
    planes = set()
    for order in itertools.permutations(range(len(items))):
        place = np.empty(len(items), dtype=np.int64)
        place[list(order)] = np.arange(1, len(items) + 1)
        positions = np.sort(place[: len(pos)])
        loss = 1 - AVERAGE_PRECISION(positions, ones, ones, len(neg), 0)
        psi = np.zeros(X.shape[1])
        for i, j in itertools.product(range(len(pos)), range(len(pos), len(items))):
            if place[i] > place[j]:
                psi += 2 * (X[items[j]] - X[items[i]]) / (len(pos) * len(neg))
        planes.add((round(loss, 12), *np.round(psi, 12)))
    return np.array(sorted(planes))


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_svm_map_finds_the_optimum_of_the_quadratic_program(seed, C):
    X, relevance = judged_problem(seed)
    model = SVMMAP(C, tol=1e-7).fit(X, relevance)
    w, xi = cp.Variable(3), cp.Variable(14)
    cuts = [
        xi[q] >= planes[:, 0] - planes[:, 1:] @ w
        for q, planes in enumerate(planes_of(X, relevance, q) for q in range(14))
    ]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * cp.sum(xi) / 14), cuts)
    problem.solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(problem.value, rel=1e-5)
    # The objective curves by 1, so within its gap w lies this near.
    assert np.linalg.norm(model.coef_ + w.value) < np.sqrt(2 * C * 1e-7) + 1e-4


def test_svm_map_ranks_by_one_direction_whatever_the_query(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    good = np.flatnonzero(X @ [1.0, -1.0, 0.0, 0.0] > 0.8)
    relevance = Relevance.from_lists([good] * 80, n_items=80, query_rows=range(80))
    model = SVMMAP().fit(X, relevance)
    assert model.score(X, relevance) > 0.95
    assert isinstance(model.metric_, BilinearMetric)
    orders = [model.rank(q[None], X).items for q in rng.normal(size=(5, 4))]
    assert all((order == orders[0]).all() for order in orders)
    np.testing.assert_array_equal(
        orders[0], np.argsort(-(X @ model.coef_), kind="stable")
    )
    model.metric_.save(tmp_path / "metric.safetensors")
    stored = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(stored.distances(X, X), model.metric_.distances(X, X))


def test_svm_map_takes_all_items_or_the_judged_ones_alike():
    """All items judged, so ignoring the unjudged must change nothing."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    X[:, 0] += y
    full = Relevance.from_lists(
        [np.flatnonzero(y == 1)] * 30, n_items=30, query_rows=range(30)
    )
    judged = Relevance.from_lists(
        [np.flatnonzero(y == 1)] * 30,
        [np.flatnonzero(y == 0)] * 30,
        n_items=30,
        query_rows=range(30),
        unjudged="ignore",
    )
    a, b = (SVMMAP(10.0, tol=1e-6).fit(X, relevance) for relevance in (full, judged))
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-5)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-3)


def test_svm_map_scores_do_not_depend_on_the_scale():
    X, relevance = judged_problem(5)
    a, b = (SVMMAP(10.0, tol=1e-8).fit(X * scale, relevance) for scale in (1.0, 1000.0))
    np.testing.assert_allclose(a.coef_, 1000 * b.coef_, rtol=1e-4)


def test_mlr_beats_svm_map_where_relevance_is_nearness(wine):
    X, y = wine
    assert MLR().fit(X, y).score(X, y) > SVMMAP().fit(X, y).score(X, y) + 0.2
