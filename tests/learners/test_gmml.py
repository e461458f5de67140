"""GMML: laws of the geometric mean, scatter against loops over pairs, and the estimator."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import GMML, Euclidean, Relevance
from rankspace.learners.gmml import MAX_ITEMS, REGS, SEED, TS
from rankspace.learners.solvers.geometric.mean import mean_factor
from rankspace.learners.solvers.geometric.scatter import (
    all_pairs,
    draw_pairs,
    laplacian_sum,
)
from rankspace.learners.solvers.points import lazy_points
from rankspace.learners.solvers.scaling import Scaling
from rankspace.relevance.splits import CHOICE_FOLDS, fold_queries, sample_data
from reference.conventions import expected_failures

SEEDS = st.integers(0, 2**32)


@parametrize_with_checks([GMML()], expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------- the geometric mean


def definite(rng, d):
    A = rng.normal(size=(d + 3, d))
    return A.T @ A / (d + 3)


def mean(S, D, t=0.5):
    L = mean_factor(S, D, t)
    return L.T @ L


def slow_mean(A, B, t):
    """A #_t B by its definition, with roots and powers of whole matrices."""
    root = scipy.linalg.sqrtm(A)
    inverse = np.linalg.inv(root)
    inner = scipy.linalg.fractional_matrix_power(inverse @ B @ inverse, t)
    return np.real(root @ inner @ root)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 7), st.floats(0, 1))
def test_mean_matches_its_definition(seed, d, t):
    rng = np.random.default_rng(seed)
    S, D = definite(rng, d), definite(rng, d)
    expected = slow_mean(np.linalg.inv(S), D, t)
    np.testing.assert_allclose(
        mean(S, D, t), expected, rtol=1e-7, atol=1e-8 * np.max(expected)
    )


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 8))
def test_half_way_solves_the_riccati_equation(seed, d):
    rng = np.random.default_rng(seed)
    S, D = definite(rng, d), definite(rng, d)
    M = mean(S, D)
    np.testing.assert_allclose(M @ S @ M, D, rtol=1e-7, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 6), st.floats(0, 1))
def test_congruence(seed, d, t):
    """G (A # B) G' = (G A G') # (G B G'), for A = inv(S)."""
    rng = np.random.default_rng(seed)
    S, D, G = (
        definite(rng, d),
        definite(rng, d),
        rng.normal(size=(d, d)) + 3 * np.eye(d),
    )
    inverse = np.linalg.inv(G)
    moved = mean(inverse.T @ S @ inverse, G @ D @ G.T, t)
    expected = G @ mean(S, D, t) @ G.T
    np.testing.assert_allclose(
        moved, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max()
    )


def test_end_points_of_the_geodesic(rng):
    S, D = definite(rng, 5), definite(rng, 5)
    np.testing.assert_allclose(mean(S, D, 0), np.linalg.inv(S), rtol=1e-9)
    np.testing.assert_allclose(mean(S, D, 1), D, rtol=1e-9)


def test_no_metric_near_it_has_a_smaller_objective(rng):
    """tr(M S) + tr(inv(M) D) is least at the mean."""
    S, D = definite(rng, 4), definite(rng, 4)
    M = mean(S, D)

    def objective(M):
        return np.trace(M @ S) + np.trace(np.linalg.solve(M, D))

    for _ in range(50):
        step = rng.normal(size=(4, 4)) * 1e-3
        assert objective(M + step + step.T) > objective(M)


# ---------------------------------------------------------------------- scatter


def slow_scatter(X, relevance, queries):
    """Means over pairs, one pair at a time."""
    d = X.shape[1]
    sums, totals = np.zeros((2, d, d)), np.zeros(2)
    for q in range(relevance.n_queries):
        point = X[relevance.query_items[q]] if queries is None else queries[q]
        for kind, items in enumerate((relevance.relevant(q), relevance.irrelevant(q))):
            for i in items:
                v = point - X[i]
                sums[kind] += relevance.weights[q] * np.outer(v, v)
                totals[kind] += relevance.weights[q]
    return sums / totals[:, None, None]


def supervisions():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 24)
    query_labels = rng.integers(0, 3, 7)
    lists = [rng.choice(24, 4, replace=False) for _ in range(24)]
    others = [
        rng.choice(np.setdiff1d(np.arange(24), own), 5, replace=False) for own in lists
    ]
    graded = {
        f"q{q}": {f"d{i}": int(i % 3) for i in rng.choice(24, 6)} for q in range(7)
    }
    names = [f"d{i}" for i in range(24)]
    return {
        "labels": Relevance.from_labels(y),
        "weighted": Relevance.from_labels(y, weights=rng.uniform(0.1, 2, 24)),
        "separate": Relevance.from_labels(y, query_labels=query_labels),
        "lists": Relevance.from_lists(lists),
        "judged only": Relevance.from_lists(lists, others, unjudged="ignore"),
        "graded": Relevance.from_qrels(graded, item_ids=names, min_relevant_grade=2),
        "graded, judged only": Relevance.from_qrels(
            graded, item_ids=names, unjudged="ignore"
        ),
    }


@pytest.mark.parametrize("name", supervisions())
def test_scatter_of_all_pairs(name, rng):
    relevance = supervisions()[name]
    X, queries = rng.normal(size=(24, 3)) + 5, None
    if not relevance.queries_are_rows:
        queries = rng.normal(size=(relevance.n_queries, 3))
    unscaled = Scaling(X.mean(axis=0), 1.0)
    found = all_pairs(lazy_points(X, relevance, queries, unscaled), relevance)
    for got, expected in zip(found, slow_scatter(X, relevance, queries), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_scatter_of_listed_pairs(rng):
    X = rng.normal(size=(20, 4))
    first, second = rng.integers(0, 20, (2, 60))
    V = X[first] - X[second]
    np.testing.assert_allclose(
        laplacian_sum(X, first, second), V.T @ V, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("name", supervisions())
@pytest.mark.parametrize("relevant", [True, False])
def test_pairs_are_drawn_from_those_there_are(name, relevant):
    relevance = supervisions()[name]
    relevance = relevance.take_queries(relevance.trainable)
    queries, items = draw_pairs(relevance, 4000, relevant, np.random.RandomState(0))
    counts = np.zeros((relevance.n_queries, 24))
    np.add.at(counts, (queries, items), 1 / relevance.weights[queries])
    for q in range(relevance.n_queries):
        pairs = relevance.relevant(q) if relevant else relevance.irrelevant(q)
        assert set(np.flatnonzero(counts[q])) <= set(pairs)
    drawn = counts[counts > 0]
    assert (
        drawn.size
        > 0.9 * (relevance.n_relevant if relevant else relevance.n_irrelevant).sum()
    )
    assert drawn.std() < 6 * drawn.mean() ** 0.5 / relevance.weights.min() ** 0.5


def test_far_from_the_origin_in_single_precision(wine):
    X, y = wine
    far = (X + 1000).astype(np.float32)
    near = far.astype(np.float64) - 1000
    found, expected = GMML().fit(far, y), GMML().fit(near, y)
    assert found.components_.dtype == np.float32
    np.testing.assert_allclose(
        found.get_mahalanobis_matrix(),
        expected.get_mahalanobis_matrix(),
        rtol=1e-3,
        atol=1e-3,
    )


# ---------------------------------------------------------------------- the estimator


def rankings(X, y, **options):
    return GMML(**options).fit(X, y).rank(X, X).items


@settings(deadline=None, max_examples=20)
@given(
    SEEDS,
    st.floats(1e-3, 1e3),
    st.sampled_from([0.0, 0.5, 0.8]),
    st.sampled_from([0.0, 0.1]),
)
def test_ranking_knows_no_rotation_and_no_unit(seed, unit, t, reg):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    expected = rankings(X, y, t=t, reg=reg)
    np.testing.assert_array_equal(
        rankings(unit * X @ turn + 2, y, t=t, reg=reg), expected
    )


def test_it_helps_new_points():
    X, y = load_digits(return_X_y=True)
    relevance = Relevance.from_labels(y[:1200], query_labels=y[1200:])
    scores = [
        model.fit(X[:1200], y[:1200]).score(X[:1200], relevance, queries=X[1200:])
        for model in (Euclidean(), GMML())
    ]
    assert scores[1] > scores[0] + 0.05


def test_all_pairs_and_labels_are_the_same(wine):
    X, y = wine[0][::3], wine[1][::3]
    i, j = np.triu_indices(len(X), 1)
    pairs, signs = np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)
    model = GMML().fit(pairs, signs)
    assert (model.t_, model.reg_) == (0.5, 0.01)
    np.testing.assert_allclose(
        model.components_, GMML(0.5, reg=0.01).fit(X, y).components_, atol=1e-9
    )
    assert model.pair_distance(pairs).shape == (len(pairs),)


def test_drawn_pairs_come_near_to_all_pairs(wine):
    X, y = wine
    whole = GMML().fit(X, y).get_mahalanobis_matrix()
    a, b = (GMML(n_pairs=20_000, random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a.components_, b.components_)
    assert np.linalg.norm(a.get_mahalanobis_matrix() - whole) < 0.1 * np.linalg.norm(
        whole
    )


def test_more_features_than_points(rng):
    X, y = rng.normal(size=(20, 60)), np.arange(20) % 2
    X[:, 0] += 3 * y
    model = GMML().fit(X, y)
    assert np.isfinite(model.components_).all()
    assert model.score(X, y) > Euclidean().fit(X, y).score(X, y)


def test_much_of_a_prior_gives_the_prior(wine, rng):
    prior = definite(rng, 13)
    found = GMML(reg=1e9, prior=prior).fit(*wine).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        found / np.trace(found), prior / np.trace(prior), atol=1e-6
    )
    plain = GMML(reg=0.1).fit(*wine).components_
    np.testing.assert_allclose(
        GMML(reg=0.1, prior=7 * np.eye(13)).fit(*wine).components_, plain
    )


def test_weights_of_queries_count(wine):
    X, y = wine
    one = replace(Relevance.from_labels(y), weights=np.where(y == 0, 1.0, 1e-9))
    alone = Relevance.from_labels(y).take_queries(y == 0)
    np.testing.assert_allclose(
        GMML().fit(X, one).components_,
        GMML().fit(X, alone).components_,
        rtol=1e-4,
        atol=1e-6,
    )


def test_grid_search_and_pipelines(wine):
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), GMML())
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"gmml__t": [0.2, 0.5]}, cv=folds).fit(X, y)
    assert search.best_score_ > 0.8
    assert clone(GMML(0.3, n_pairs=5)).get_params()["t"] == 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t": 1.5}, "t == 1.5, must be <= 1"),
        ({"reg": -1.0}, "reg == -1.0, must be >= 0"),
        ({"n_pairs": 0}, "n_pairs == 0, must be >= 1"),
        (
            {"prior": np.eye(3)},
            "prior must be a symmetric matrix of 13 rows: got shape",
        ),
        ({"prior": np.diag([-1.0] + [1.0] * 12)}, "prior must be positive definite"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_parameters(options, message, wine):
    with pytest.raises(ValueError, match=message):
        GMML(**options).fit(*wine)


def test_wrong_data(wine):
    X, y = wine
    flat = np.hstack([X, np.ones((len(X), 1))])
    with pytest.raises(
        ValueError, match=r"scatter of similar pairs is singular.*Raise reg"
    ):
        GMML(reg=0).fit(flat, y)
    with pytest.raises(ValueError, match="GMML learns from queries that have vectors"):
        GMML().fit(X, y, qid=np.arange(len(X)) // 10)
    pairs = np.zeros((4, 2, 3))
    with pytest.raises(ValueError, match="y must be 1 or -1 for each of 4 pairs"):
        GMML().fit(pairs, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="pairs must differ"):
        GMML().fit(pairs, [1, 1, -1, -1])
    with pytest.raises(
        ValueError, match=r"pairs must have shape \(n_pairs, 2, n_features\)"
    ):
        GMML().fit(np.zeros((4, 3, 3)), [1, 1, -1, -1])


# ---------------------------------------------------------------------- t and reg


def slow_scores(X, y, t, reg):
    """Sum over folds of the MAP of held-out rows, by a fit of its own."""
    folds = fold_queries(len(X), CHOICE_FOLDS, SEED).queries
    total = 0.0
    for fold in range(CHOICE_FOLDS):
        train = folds != fold
        model = GMML(t, reg=reg).fit(X[train], y[train])
        judged = Relevance.from_labels(y[train], query_labels=y[~train])
        total += model.score(X[train], judged, queries=X[~train])
    return total


def test_t_and_reg_are_those_of_the_best_folds(rng):
    X, y = rng.normal(size=(90, 8)), np.arange(90) % 3
    X[:, :2] += 2 * y[:, None]
    X[:, 2:] *= np.geomspace(0.05, 20, 6)
    scores = {(t, reg): slow_scores(X, y, t, reg) for t in TS for reg in REGS}
    model = GMML().fit(X, y)
    assert scores[model.t_, model.reg_] == pytest.approx(max(scores.values()))
    expected = GMML(model.t_, reg=model.reg_).fit(X, y).components_
    np.testing.assert_array_equal(model.components_, expected)
    by_t = GMML(reg=0.1).fit(X, y)
    assert by_t.reg_ == 0.1
    best = max(scores[t, 0.1] for t in TS)
    assert scores[by_t.t_, 0.1] == pytest.approx(best)


@pytest.mark.parametrize("separate", [False, True])
def test_t_and_reg_are_chosen_on_a_part_of_many_items(separate, rng):
    X, y = rng.normal(size=(3000, 5)), rng.integers(0, 4, 3000)
    X[:, 0] += y
    Q, relevance = None, Relevance.from_labels(y)
    if separate:
        Q, X, labels, y = X[:1200], X[1200:], y[:1200], y[1200:]
        relevance = Relevance.from_labels(y, query_labels=labels)
    part, taught, queries = sample_data(X, relevance, Q, MAX_ITEMS, SEED)
    assert len(part) == taught.n_items == MAX_ITEMS >= taught.n_queries
    model = GMML().fit(X, relevance, queries=Q)
    again = GMML().fit(part, taught, queries=queries)
    assert (model.t_, model.reg_) == (again.t_, again.reg_)


def test_few_queries_choose_nothing(rng):
    X = rng.normal(size=(30, 4))
    few = Relevance.from_lists([[0, 1]] * 9, n_items=30)
    model = GMML().fit(X, few, queries=rng.normal(size=(9, 4)))
    assert (model.t_, model.reg_) == (0.5, 0.01)
    # Similar pairs are equal in some folds, and in others not.
    twins = np.repeat(X[:12], 2, axis=0)
    twins[-1] += 1
    model = GMML().fit(twins, np.arange(12).repeat(2))
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("name", ["t", "reg"])
def test_other_words_than_auto_are_refused(name, wine):
    with pytest.raises(ValueError, match=f"{name} must be one of auto: got 'best'"):
        GMML(**{name: "best"}).fit(*wine)
