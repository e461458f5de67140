"""MLR and R-MLR: certified, and equal to what another solver finds."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import MLR, MLRCV, Euclidean, Relevance, RobustMLR
from rankspace.datasets import make_matching
from rankspace.learners.mlr import MetricProblem
from rankspace.learners.solvers.cutting_plane.admm import PlaneProblem
from rankspace.learners.solvers.cutting_plane.cones import PSDCone
from rankspace.learners.solvers.cutting_plane.ranking_loss import RankingLoss
from rankspace.learners.solvers.cutting_plane.simplex_qp import simplex_qp
from rankspace.learners.solvers.points import Points, scaled_points
from rankspace.learners.solvers.scaling import Scaling
from rankspace.relevance.splits import split_queries
from reference.conventions import expected_failures
from reference.subgradient import projected_subgradient

ALL = ["auc", "p@3", "knn@3", "map", "mrr", "ndcg@3", "ndcg", "ndcg-mlr@3", "ndcg-mlr"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [MLR(max_iter=20), MLRCV((10, 1000), max_iter=20), RobustMLR(max_iter=20)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def small_problem(seed):
    """At most 12 points of two or three classes in at most 8 dimensions, already of unit scale."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(7, 13)), int(rng.integers(2, 9))
    y = rng.permutation(np.arange(n) % int(rng.integers(2, 4)))
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    X -= X.mean(axis=0)
    return X / np.sqrt(2 * X.var(axis=0).sum()), y


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("seed", range(2))
def test_optimum_is_that_of_an_independent_solver(measure, seed):
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    from reference import mlr as reference

    X, y = small_problem(seed)
    C = [30.0, 300.0][seed % 2]
    queries = reference.queries_of(X, Relevance.from_labels(y), measure)
    expected, _, _ = reference.solve(queries, X.shape[1], C, cp.trace)
    model = fit(MLR(C, measure=measure, tol=1e-6, max_iter=2000), X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(expected, rel=1e-3)
    true, _ = reference.objective(model.get_mahalanobis_matrix(), queries, C, np.trace)
    assert true == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("variant", ["diagonal", "frobenius", "prior", "groups"])
def test_variants_against_an_independent_solver(variant, seed):
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    from reference import mlr as reference

    X, y = small_problem(seed)
    d, C = X.shape[1], 100.0
    queries = reference.queries_of(X, Relevance.from_labels(y), "map")
    prior = 3 * np.eye(d)
    options = {"measure": "map", "tol": 1e-6, "max_iter": 2000}
    psd = {"constraints": lambda W: [W >> 0]}
    model, regularizer, constraints = {
        "diagonal": (
            MLR(C, constraint="diagonal", **options),
            cp.trace,
            {"constraints": lambda W: [cp.diag(cp.diag(W)) == W, cp.diag(W) >= 0]},
        ),
        "frobenius": (
            MLR(C, regularizer="frobenius", **options),
            lambda W: cp.sum_squares(W) / 2,
            psd,
        ),
        "prior": (
            MLR(C, regularizer="frobenius", prior=prior, **options),
            lambda W: cp.sum_squares(W - prior) / 2,
            psd,
        ),
        "groups": (
            RobustMLR(C, sparsity=2.0, **options),
            lambda W: cp.trace(W) + 2 * cp.sum(cp.norm(W, 2, axis=0)),
            psd,
        ),
    }[variant]
    expected, _, _ = reference.solve(queries, d, C, regularizer, **constraints)
    assert fit(model, X, y).objective_ == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("measure", ALL)
def test_plane_is_a_subgradient(measure, wine):
    """The violation is convex in W; its slope is minus psi."""
    X, y = wine
    X = X / np.sqrt(2 * X.shape[1])
    rng = np.random.default_rng(0)
    everyone = np.arange(len(X))
    points = Points(X, everyone, len(X))
    loss = RankingLoss(points, Relevance.from_labels(y), measure, everyone, 64)
    factor = 3 * rng.normal(size=(13, 13))
    W, E = factor.T @ factor, rng.normal(size=(13, 13))
    E = 1e-6 * (E + E.T)

    def violation(W):
        plane = loss.plane(np.linalg.cholesky(W).T)
        return plane.delta - np.sum(W * plane.psi)

    slope = (violation(W + E) - violation(W - E)) / 2
    assert slope == pytest.approx(
        -np.sum(E * loss.plane(factor).psi), rel=1e-4, abs=1e-12
    )


def test_blocks_threads_and_lists_give_the_same_plane(wine):
    X, y = wine
    n = np.arange(len(X))
    everything = Relevance.from_labels(y)
    relevant = [np.flatnonzero((y == y[i]) & (n != i)) for i in n]
    irrelevant = [np.flatnonzero(y != y[i]) for i in n]
    judged = Relevance.from_lists(relevant, irrelevant, unjudged="ignore")
    L = np.eye(13)
    planes = [
        RankingLoss(Points(X, n, len(X)), relevance, "map", n, memory).plane(L)
        for relevance in (everything, judged)
        for memory in (1, 64)
    ]
    for plane in planes[1:]:
        np.testing.assert_allclose(plane.psi, planes[0].psi, atol=1e-12)
        assert plane.delta == pytest.approx(planes[0].delta)


def test_bounds_close_and_the_metric_helps(wine):
    X, y = wine
    model = MLR(measure="map").fit(X, y)
    rows = model.history_
    assert model.gap_ <= 0.01
    assert all(row["lower"] <= rows[-1]["upper"] + 1e-9 for row in rows)
    assert (np.diff([row["upper"] for row in rows]) <= 0).all()
    assert (np.diff([row["lower"] for row in rows]) >= 0).all()
    assert model.score(X, y) > Euclidean().fit(X, y).score(X, y) + 0.05


def test_scale_and_place_of_the_data_do_not_matter(wine):
    X, y = wine
    reference = MLR(100.0, measure="auc").fit(X, y)
    moved = MLR(100.0, measure="auc").fit(1000 * X + 5, y)
    assert moved.objective_ == pytest.approx(reference.objective_, rel=1e-6)
    W, moved_W = reference.get_mahalanobis_matrix(), moved.get_mahalanobis_matrix()
    np.testing.assert_allclose(moved_W * 1e6, W, atol=1e-4 * np.abs(W).max())


def test_projected_subgradients_reach_the_same_objective(wine):
    X, y = wine
    relevance = Relevance.from_labels(y)
    model = MLR(100.0, measure="auc").fit(X, y)
    scaling = Scaling.of(X)
    points = scaled_points(X, relevance, None, scaling)
    everyone = np.arange(len(X))
    loss = RankingLoss(points, relevance, "auc", everyone, 64)
    problem = MetricProblem(loss, scaling.scale)
    planes = PlaneProblem(problem.cone, problem.regularizer, 100.0)
    found = projected_subgradient(
        problem.plane, planes, problem.start, tol=0.01, max_iter=200
    )
    assert found.objective == pytest.approx(model.objective_, abs=2 * 0.01 * 100)
    assert found.gap <= 0.01


def test_robust_metric_is_zero_outside_its_support(wine):
    X, y = wine
    noise = np.random.default_rng(0).normal(size=(len(X), 30))
    model = RobustMLR(measure="auc", sparsity=3.0).fit(np.c_[X, noise], y)
    outside = np.setdiff1d(np.arange(43), model.support_)
    W = model.get_mahalanobis_matrix()
    assert outside.size > 10
    assert not W[outside].any()
    assert not W[:, outside].any()
    assert W[model.support_].any(axis=1).all()


def test_sparsity_zero_is_mlr(wine):
    X, y = wine
    plain, robust = (
        model.fit(X, y).objective_
        for model in (
            MLR(measure="auc", tol=1e-4),
            RobustMLR(measure="auc", sparsity=0, tol=1e-4),
        )
    )
    assert robust == pytest.approx(plain, abs=2 * 1e-4 * 1000)


def test_single_precision(wine):
    X, y = wine
    double = MLR(measure="map", tol=1e-4).fit(X, y)
    single = MLR(measure="map", tol=1e-4).fit(X.astype(np.float32), y)
    assert single.components_.dtype == np.float32
    assert single.objective_ == pytest.approx(double.objective_, abs=2 * 1e-4 * 1000)


def test_separate_queries_and_weights(wine):
    X, y = wine
    relevance = Relevance.from_labels(y, query_labels=y[:40])
    model = MLR(measure="auc").fit(X, relevance, queries=X[:40] + 0.1)
    assert model.gap_ <= 0.01
    only_first = replace(relevance, weights=np.arange(40) < 20)
    close = MLR(measure="auc", tol=1e-4)
    part = close.fit(X, only_first, queries=X[:40] + 0.1).objective_
    same = close.fit(
        X, relevance.take_queries(range(20)), queries=X[:20] + 0.1
    ).objective_
    unweighted = close.fit(X, relevance, queries=X[:40] + 0.1).objective_
    assert part == pytest.approx(same, abs=2 * 1e-4 * 1000)
    assert abs(part - unweighted) > 1


def test_unjudged_pairs_are_ignored():
    matching = make_matching(400, random_state=0)
    model = MLR(measure="auc").fit(
        matching.X, matching.relevance, queries=matching.queries
    )
    before = Euclidean().fit(matching.X, matching.relevance, queries=matching.queries)
    scores = [
        m.score(matching.X, matching.relevance, queries=matching.queries)
        for m in (before, model)
    ]
    assert scores[1] > scores[0] + 0.1


def test_batches_are_seeded_and_have_no_certificate(wine):
    X, y = wine
    a, b = (
        MLR(measure="auc", batch_size=30, random_state=0).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(a.components_, b.components_)
    assert np.isnan(a.history_[-1]["lower"])
    assert a.score(X, y) > 0.9


def test_identity_prior_stays_near_a_multiple_of_it(wine):
    X, y = wine
    options = {"regularizer": "frobenius", "prior": "identity", "measure": "auc"}
    W = MLR(1e-6, **options).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(W, W[0, 0] * np.eye(13), atol=1e-4 * W[0, 0])
    assert MLR(100.0, **options).fit(X, y).score(X, y) > Euclidean().fit(X, y).score(
        X, y
    )


def test_leading_directions_only(wine):
    X, y = wine
    full = MLR(measure="auc").fit(X, y)
    part = MLR(measure="auc", n_components=2).fit(X, y)
    np.testing.assert_array_equal(part.components_, full.components_[:2])
    lengths = np.linalg.norm(full.components_, axis=1)
    assert (np.diff(lengths) <= 0).all()


def test_grid_search(wine):
    X, y = wine
    cv = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(
        MLR(measure="auc"), {"C": [0.001, 100.0]}, cv=cv, error_score="raise"
    )
    with pytest.warns(ConvergenceWarning, match="the best metric at C=0.001 is zero"):
        search.fit(X, y)
    assert search.best_params_ == {"C": 100.0}


def test_a_zero_metric_does_not_pass_silently(wine):
    with pytest.warns(ConvergenceWarning, match="Use a larger C, or a prior"):
        MLR(0.01, measure="p@3").fit(*wine)


def test_stopping_early_names_the_gap(wine):
    with pytest.warns(
        ConvergenceWarning, match=r"stopped after 3 rounds with a gap of 0\.\d+"
    ):
        MLR(measure="map", max_iter=3).fit(*wine)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MLR(C=0), "C == 0, must be > 0"),
        (MLR(tol=-1), "tol == -1, must be > 0"),
        (MLR(measure="r@3"), "one of auc, knn, map, mrr, ndcg, ndcg-mlr, p: got 'r'"),
        (MLR(measure="maq"), "measure must be one of"),
        (
            MLR(constraint="low"),
            "constraint must be one of psd, diagonal, blocks: got 'low'",
        ),
        (MLR(prior="identity"), "prior requires regularizer='frobenius'"),
        (
            MLR(regularizer="frobenius", prior="pca"),
            "prior must be one of identity: got 'pca'",
        ),
        (
            MLR(regularizer="frobenius", prior=np.eye(2)),
            r"of shape \(13, 13\): got shape \(2, 2\)",
        ),
        (RobustMLR(sparsity=-1), "sparsity == -1, must be >= 0"),
    ],
)
def test_bad_parameters(model, message, wine):
    with pytest.raises(ValueError, match=message):
        model.fit(*wine)


def test_equal_rows_are_refused():
    with pytest.raises(ValueError, match="X must have rows that differ: all are equal"):
        MLR().fit(np.ones((4, 2)), [0, 0, 1, 1])


def test_projection_is_the_nearest_semidefinite_matrix(rng):
    A = rng.normal(size=(5, 5))
    A = A + A.T
    cone = PSDCone(5)
    P = cone.project(A)
    assert np.linalg.eigvalsh(P).min() >= -1e-12
    L = cone.components(P)
    np.testing.assert_allclose(L.T @ L, P, atol=1e-12)
    for _ in range(50):
        B = rng.normal(size=(5, 5))
        assert np.linalg.norm(A - P) <= np.linalg.norm(A - B.T @ B) + 1e-12
    assert cone.largest(A) == pytest.approx(np.linalg.eigvalsh(A)[-1])


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12), st.floats(-3, 3))
def test_small_quadratic_program_meets_its_conditions(seed, m, rank, log_C):
    """Optimal if no weight could move to a smaller gradient; the slack has gradient 0."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(m, rank)) * np.logspace(0, -4, rank)
    H, b, C = factor @ factor.T, rng.normal(size=m), 10.0**log_C
    a = simplex_qp(H, b, C, np.zeros(m))
    gradient = H @ a + b
    level = min(0.0, gradient.min())
    assert a.min() >= 0
    assert a.sum() <= C * (1 + 1e-12)
    lost = a @ (gradient - level) + max(C - a.sum(), 0.0) * -level
    assert lost <= 1e-9 * C * (1 + np.abs(H).max() * C)


def test_path_chooses_on_held_out_queries_and_refits(wine):
    X, y = wine
    model = MLRCV((0.01, 10, 1000), measure="auc", random_state=0).fit(X, y)
    assert model.scores_.shape == (3,)
    assert int(np.argmax(model.scores_)) == [0.01, 10.0, 1000.0].index(model.C_)
    assert model.C_ > 0.01
    refit = MLR(model.C_, measure="auc").fit(X, y)
    np.testing.assert_allclose(model.components_, refit.components_)


def test_a_step_of_the_path_has_the_score_of_a_fit_from_scratch(wine):
    X, y = wine
    model = MLRCV((10, 100), measure="auc", tol=1e-4, random_state=0)
    model.fit(X, y)
    train, held_out = split_queries(len(X), 0.2, check_random_state(0))
    fresh = MLR(100, measure="auc", tol=1e-4).fit(X[train], y[train])
    judged = Relevance.from_labels(y[train], query_labels=y[held_out])
    expected = fresh._evaluate(X[train], judged, None, X[held_out], None, "auc").means[
        "auc"
    ]
    assert model.scores_[1] == pytest.approx(expected, abs=1e-3)


def test_path_over_separate_queries_and_ignored_pairs():
    matching = make_matching(300, random_state=0)
    model = MLRCV((10, 1000), measure="auc", scoring="map", random_state=0)
    model.fit(matching.X, matching.relevance, queries=matching.queries)
    assert np.isfinite(model.scores_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": []}, "Cs must be a list of positive numbers"),
        ({"Cs": [0, 1]}, "Cs must be a list of positive numbers"),
        ({"validation_fraction": 1.0}, "must lie between 0 and 1: got 1.0"),
    ],
)
def test_bad_paths(options, message, wine):
    with pytest.raises(ValueError, match=message):
        MLRCV(**options).fit(*wine)


def test_graded_judgments_are_told_to_be_taken_as_binary(wine, caplog):
    X, y = wine
    graded = [
        {int(i): 1.0 + (i % 2) for i in np.flatnonzero(y == label)} for label in y[:20]
    ]
    relevance = Relevance.from_lists(graded, n_items=len(X))
    fit(MLR(measure="ndcg@10", max_iter=3), X, Relevance.from_labels(y))
    assert not caplog.records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        MLR(measure="ndcg@10", max_iter=3).fit(X, relevance, queries=X[:20] + 0.01)
    assert "optimises the binary form of ndcg@10" in caplog.text


def test_rounds_are_logged(wine, caplog):
    with caplog.at_level("INFO", "rankspace"):
        model = MLR(measure="auc").fit(*wine)
    assert len(caplog.records) == model.n_iter_


def test_a_prior_must_be_a_mahalanobis_matrix(wine):
    X, y = wine
    for prior, message in (
        (np.eye(3), r"matrix of shape \(13, 13\): got shape \(3, 3\)"),
        (np.triu(np.ones((13, 13))), "finite and symmetric"),
        (np.full((13, 13), np.nan), "prior must be finite"),
        (-np.eye(13), "semi-definite: its smallest eigenvalue is -1"),
    ):
        with pytest.raises(ValueError, match=message):
            MLR(regularizer="frobenius", prior=prior).fit(X, y)


def test_warnings_say_what_happened(wine):
    X, y = wine
    with pytest.warns(ConvergenceWarning, match="stopped after 3 rounds with a gap"):
        MLR(max_iter=3, batch_size=1000).fit(X, y)
    with pytest.warns(ConvergenceWarning) as caught:
        MLR(max_iter=1).fit(X, y)
    assert any("found so far at C=1000.0 is zero" in str(w.message) for w in caught)


def test_batches_report_the_metric_they_judged_and_leave_out_weightless_queries(wine):
    X, y = wine
    relevance = Relevance.from_labels(y, weights=np.arange(178) < 9)
    model = fit(
        MLR(measure="auc", batch_size=5, max_iter=4, random_state=0), X, relevance
    )
    assert model.components_.any()
    last = model.history_[-1]
    trace = np.trace(model.get_mahalanobis_matrix()) * model.scale_**2
    assert model.objective_ == pytest.approx(trace + 1000 * last["violation"], rel=1e-6)


def test_a_path_with_a_prior_and_an_error_to_choose_by(wine):
    X, y = wine
    model = fit(
        MLRCV(
            (100, 1, 10),
            measure="auc",
            scoring="ranking-error",
            regularizer="frobenius",
            prior="identity",
            random_state=0,
        ),
        X,
        y,
    )
    np.testing.assert_array_equal(model.Cs_, [1, 10, 100])
    assert (model.scores_ >= 0).all()
    assert model.Cs_[model.scores_.argmin()] == model.C_
    for Cs in (10, (np.nan,), (), (0.0,)):
        with pytest.raises(ValueError, match=r"Cs must be (a list of positive|finite)"):
            MLRCV(Cs).fit(X, y)
    with pytest.raises(ValueError, match="tol"):
        MLRCV(tol=-1.0).fit(X, y)


def test_judged_lists_are_divided_among_all_threads(monkeypatch):
    matching = make_matching(3000, random_state=0)
    loss = RankingLoss(
        Points(matching.X, np.arange(3000), 3000),
        matching.relevance,
        "map",
        np.arange(3000),
        max_memory=512,
    )
    whole = loss.plane(np.eye(56))
    assert len(loss.blocks(loss.queries)) > 1
    monkeypatch.setattr(loss, "blocks", lambda queries: [queries])
    again = loss.plane(np.eye(56))
    np.testing.assert_allclose(whole.psi, again.psi, rtol=1e-9, atol=1e-12)
    assert whole.delta == pytest.approx(again.delta)


@pytest.mark.parametrize("measure", ["map", "auc"])
def test_one_feature_converges(measure, rng):
    """The cone does not bind there, so its multiplier is no scale for the penalty."""
    X = 3 * rng.uniform(size=(30, 1))
    model = MLR(measure=measure, max_iter=50).fit(X, X[:, 0].astype(int))
    assert model.gap_ <= model.tol
    assert model.components_[0, 0] > 0
