"""LGMML: kernels against loops, local metrics against pairs, and the estimator."""

import logging
import os
import subprocess
import sys
import tracemalloc
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import GMML, LGMML, Euclidean, Ranking, Relevance, evaluate, load_metric
from rankspace._engine.kernels.lists import (
    ListEnds,
    WarpSettings,
    exact_losses,
    pair_losses,
    warp_step,
)
from rankspace._engine.parallel import threads as _threads
from rankspace.learners.solvers.geometric import local_metrics, metric_weights
from rankspace.learners.solvers.geometric.lists import Lists, upper_counts
from rankspace.learners.solvers.geometric.local_metrics import (
    LocalOptions,
    best_anchor,
    leading_directions,
    list_metrics,
    pooled_scatter,
    set_scatter,
)
from rankspace.learners.solvers.geometric.metric_weights import (
    logistic_weights,
    pair_weights,
)
from rankspace.learners.solvers.geometric.query_metrics import pair_squares
from rankspace.metrics.feature_scaling import FeatureScaling
from reference.conventions import expected_failures

SEEDS = st.integers(0, 2**32)
VARIANTS = [
    {},
    {"kernel": "paper"},
    {"kernel": "distance"},
    {"features": False},
    {"pooling": 0.0},
    {"n_components": 0},
    {"n_directions": 4},
    {"scaling": "rank-gauss"},
    {"scaling": "standard"},
    {"scaling": "l2"},
    {"scaling": None},
    {"loss": "warp"},
    {"loss": "warp", "new_query_weights": "mean"},
    {"loss": "warp", "new_query_weights": "nearest"},
    {"new_query_weights": "ones"},
]


@parametrize_with_checks(
    [LGMML(3, n_steps=5, max_iter=20)], expected_failed_checks=expected_failures
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def candidate_lists(seed, n_lists=40, size=25, dtype=np.float64):
    """Grades by the nearness to an ideal document, among features of noise of any scale."""
    rng = np.random.default_rng(seed)
    n = n_lists * size
    X = rng.normal(size=(n, 6)) * [1, 1, 1, 1, 1e4, 1e-3]
    far = np.hypot(X[:, 0] - 1, X[:, 1] + 0.5) + rng.normal(size=n) * 0.1
    grades = np.digitize(-far, [-1.6, -1.1, -0.6])
    return X.astype(dtype), grades, np.repeat(np.arange(n_lists), size)


@pytest.fixture(scope="module")
def lists():
    return candidate_lists(0), candidate_lists(1)


def ndcg(model, X, grades, qid):
    ranking = Ranking.from_groups(-model.predict(X, qid=qid), qid)
    return evaluate(ranking, Relevance.from_groups(grades, qid), "ndcg@10").means[
        "ndcg@10"
    ]


# ---------------------------------------------------------------------- kernels


def slow_pair_loss(scores, gains, indptr, weights):
    total = 0.0
    for q in range(len(indptr) - 1):
        rows = range(indptr[q], indptr[q + 1])
        for i, j in permutations(rows, 2):
            if gains[i] > gains[j]:
                gap = scores[i] - scores[j]
                total += weights[q] * (gains[i] - gains[j]) * np.logaddexp(0, -gap)
    return total


def some_lists(rng, sizes=(5, 1, 8, 2)):
    grades = [np.sort(rng.integers(0, 4, n))[::-1] for n in sizes]
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    n = int(indptr[-1])
    weights = rng.uniform(0.5, 2, len(sizes))
    return Lists(indptr, np.arange(n), np.concatenate(grades).astype(float), weights)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.sampled_from([1e-3, 1.0, 9.0, 30.0, 1e4]))
def test_pair_loss_matches_a_loop_over_pairs(seed, spread):
    """Scores near each other go by products of exponentials, others pair by pair."""
    rng = np.random.default_rng(seed)
    lists = some_lists(rng, sizes=(5, 1, 50, 2))
    scores = 1000 + rng.normal(size=58) * spread
    losses, gradient, exact = np.empty(4), np.empty(58), np.zeros(58)
    args = (lists.gains, lists.indptr, lists.weights)
    pair_losses(scores, *args, losses, gradient)
    np.testing.assert_allclose(losses.sum(), slow_pair_loss(scores, *args), rtol=1e-10)
    for q in range(4):
        part = lists.rows_of(q)
        exact_losses(scores[part], lists.gains[part], exact[part])
        exact[part] *= lists.weights[q]
    np.testing.assert_allclose(gradient, exact, rtol=1e-9, atol=1e-12)


def test_gradient_of_the_pair_loss(rng):
    lists = some_lists(rng)
    losses, gradient = np.empty(4), np.empty(16)

    def value(scores):
        pair_losses(scores, lists.gains, lists.indptr, lists.weights, losses, gradient)
        return losses.sum()

    def slope(scores):
        value(scores)
        return gradient.copy()

    assert check_grad(value, slope, rng.normal(size=16)) < 1e-4


def test_weights_of_all_pairs_add_up_to_one(rng):
    lists = some_lists(rng)
    weights, total = pair_weights(lists, 3), 0.0
    for q in range(4):
        gains = lists.gains[lists.rows_of(q)]
        gaps = [a - b for a, b in permutations(gains, 2) if a > b]
        total += weights[q] * sum(gaps)
        if gaps:
            ideal = np.sort(gains)[::-1][:3] @ (1 / np.log2([2, 3, 4]))[: gains.size]
            expected = lists.weights[q] / (ideal * np.sqrt(len(gaps)))
            assert weights[q] / expected == pytest.approx(
                weights[0] / first_weight(lists)
            )
    assert total == pytest.approx(1)


def first_weight(lists):
    gains = lists.gains[lists.rows_of(0)]
    n_pairs = sum(a > b for a, b in permutations(gains, 2))
    ideal = gains[:3] @ (1 / np.log2([2, 3, 4]))
    return lists.weights[0] / (ideal * np.sqrt(n_pairs))


def test_logistic_weights_are_the_minimum(rng):
    """Against an independent solver on the listed pairs."""
    from sklearn.linear_model import LogisticRegression

    lists = some_lists(rng, sizes=(30, 20))
    columns = rng.normal(size=(50, 4))
    found = logistic_weights(
        columns, lists, weight_reg=0.05, k=10, non_negative=False, max_iter=500
    )
    weights, differences, shares = pair_weights(lists, 10), [], []
    for q in range(2):
        part = lists.rows_of(q)
        for i, j in permutations(range(part.start, part.stop), 2):
            if lists.gains[i] > lists.gains[j]:
                differences.append(columns[i] - columns[j])
                shares.append(weights[q] * (lists.gains[i] - lists.gains[j]))
    V, w = np.array(differences), np.array(shares)
    other = LogisticRegression(
        C=1 / 0.05, fit_intercept=False, tol=1e-10, max_iter=1000
    )
    both = (
        np.concatenate([V, -V]),
        np.repeat([1, 0], len(V)),
        np.concatenate([w, w]) / 2,
    )
    other.fit(both[0], both[1], sample_weight=both[2])
    np.testing.assert_allclose(found, other.coef_[0], atol=1e-4)
    held = logistic_weights(
        columns, lists, weight_reg=0.05, k=10, non_negative=True, max_iter=500
    )
    assert (held >= 0).all()


def test_a_warp_step_moves_away_from_the_violator():
    H = np.array([[0.5, 0.1], [0.2, 0.4], [0.9, 0.9]])
    rank_weights = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, 10)))))
    ends = ListEnds(np.array([0, 2]), np.array([1]), np.array([1]))
    settings = WarpSettings(0.1, 0.5, rank_weights, 0)

    def step(H, weights):
        return warp_step(H, ends, 0, weights, settings, 1.0, 0)

    weights = np.ones(2)
    assert step(H[:2], weights) == 1
    np.testing.assert_allclose(weights, np.maximum(0, 1 - (H[0] - H[1])))
    weights = np.ones(2)
    assert step(H[[0, 2]], weights) == 0
    assert (weights == 1).all()
    weights = np.array([0.1, 1.0])
    step(np.array([[1.0, 0.0], [0.0, 0.0]]), weights)
    assert (weights == [0.0, 1.0]).all()


# ---------------------------------------------------------------------- local metrics


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.integers(1, 6), st.integers(1, 6))
def test_scatter_of_sets_is_the_mean_over_pairs(seed, n_high, n_low):
    rng = np.random.default_rng(seed)
    high, low = rng.normal(size=(n_high, 3)) + 4, rng.normal(size=(n_low, 3))
    found = set_scatter(high, low)
    inside = [np.outer(a - b, a - b) for a, b in permutations(high, 2)] or [
        np.zeros((3, 3))
    ]
    across = [np.outer(a - b, a - b) for a in high for b in low]
    np.testing.assert_allclose(found.similar, np.mean(inside, axis=0), atol=1e-10)
    np.testing.assert_allclose(found.dissimilar, np.mean(across, axis=0), atol=1e-10)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.sampled_from([2**21, 40]))
def test_scatter_of_all_lists_is_the_mean_over_their_pairs(seed, block):
    """In one block of documents, or in several."""
    rng = np.random.default_rng(seed)
    lists = some_lists(rng, sizes=(6, 9, 4))
    lists.grades[lists.indptr[1:] - 1] = -1  # so that each list has two grades
    Z = rng.normal(size=(19, 3)) + 5
    sums, counts = np.zeros((2, 3, 3)), np.zeros(2)
    for q in range(3):
        part = lists.rows_of(q)
        points, grades, weight = Z[part], lists.grades[part], lists.weights[q]
        n_high = slow_upper_count(grades)
        assert upper_counts(lists)[q] == n_high
        high = range(n_high)
        low = np.flatnonzero(grades == grades[-1])
        for kind, pairs in enumerate([permutations(high, 2), product(high, low)]):
            for i, j in pairs:
                sums[kind] += weight * np.outer(
                    points[i] - points[j], points[i] - points[j]
                )
                counts[kind] += weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_metrics, "BLOCK", block)
        found = pooled_scatter(Z, lists)
    np.testing.assert_allclose(found.dissimilar, sums[1] / counts[1], atol=1e-10)
    expected = sums[0] / counts[0] if counts[0] else np.eye(3)
    np.testing.assert_allclose(found.similar, expected, atol=1e-10)


def test_metrics_made_in_shared_directions(rng):
    """They are those of the rows seen along these directions, and of no other row."""
    lists = some_lists(rng, sizes=(30, 40))
    Z = rng.normal(size=(70, 8)) * np.arange(1, 9)
    options = LocalOptions(0.5, 0.01, 0.5, 2, 10, False, 5)
    shared = local_metrics.shared_directions(pooled_scatter(Z, lists), options)
    np.testing.assert_allclose(shared @ shared.T, np.eye(5), atol=1e-10)
    found = list_metrics(Z, lists, np.arange(2), options)
    mapped = list_metrics(
        Z @ shared.T, lists, np.arange(2), options._replace(n_directions=0)
    )
    np.testing.assert_array_equal(found.anchors, mapped.anchors)
    np.testing.assert_allclose(found.factors, mapped.factors @ shared, atol=1e-8)
    every = list_metrics(Z, lists, np.arange(2), options._replace(n_directions=8))
    assert every.factors.shape == (2, 2, 8)


def slow_upper_count(grades):
    """Documents of a sorted list with grades of the upper half."""
    levels = np.unique(grades)
    return int(np.sum(grades >= levels[-max(1, levels.size // 2)]))


def test_upper_half_of_the_grades():
    grades = [[4, 4, 3, 2, 1, 0, 0], [2, 1, 1, 0], [1, 1, 0]]
    sizes = [len(values) for values in grades]
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    lists = Lists(indptr, np.arange(14), np.concatenate(grades), np.ones(3))
    np.testing.assert_array_equal(upper_counts(lists), [3, 1, 2])


def slow_anchor(mapped, grades, k):
    scores = []
    for c in np.flatnonzero(grades == grades[0]):
        others = [i for i in range(len(grades)) if i != c]
        others.sort(key=lambda i, c=c: np.linalg.norm(mapped[i] - mapped[c]))
        gains = 2 ** grades[others[:k]] - 1
        scores.append(gains @ (1 / np.log2(np.arange(2, gains.size + 2))))
    return int(np.argmax(scores))


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(2, 12), st.integers(1, 12))
def test_the_anchor_ranks_the_others_best(seed, n, k):
    rng = np.random.default_rng(seed)
    grades = np.sort(rng.integers(0, 3, n))[::-1].astype(float)
    mapped = rng.normal(size=(n, 2))
    assert best_anchor(mapped, grades, k) == slow_anchor(mapped, grades, k)


def test_leading_directions_of_equal_lengths(rng):
    Q = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    lengths = np.where(np.arange(64) < 40, 1.5, np.linspace(0.9, 1.2, 64))
    lengths[:2] = 2.2, 1.6
    found = leading_directions(lengths[:, None] * Q.T, 4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [2.2, 1.6, 1.5, 1.5])


def test_leading_directions_are_the_nearest_of_their_rank(rng):
    L = rng.normal(size=(5, 5))
    found = leading_directions(L, 2)
    values, vectors = np.linalg.eigh(L.T @ L)
    best = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    np.testing.assert_allclose(found.T @ found, best, atol=1e-10)
    assert found.shape == (2, 5)


# ---------------------------------------------------------------------- scaling


@pytest.mark.parametrize("kind", ["none", "l2", "standard", "rank-gauss", "joined"])
def test_scalings_take_what_real_files_hold(kind, rng):
    X = rng.lognormal(size=(300, 4))
    X[:, 1] = 3.0
    X[:, 2] = np.nan
    X[::7, 3] = np.nan
    X[:150, 0] = 0.0
    scaling = FeatureScaling.of(X, kind)
    Z = scaling.apply(X)
    assert Z.shape == (300, scaling.n_scaled) == (300, 8 if kind == "joined" else 4)
    assert np.isfinite(Z).all()
    assert (Z[:, 1] == Z[0, 1]).all()
    order = np.argsort(X[:, 0], kind="stable")
    assert (np.diff(Z[order, 0]) >= 0).all()
    assert scaling.apply(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(scaling.apply(X[:1]), Z[:1])
    assert np.isfinite(scaling.apply(np.full((1, 4), 1e30))).all()


def test_rank_gauss_is_normal_whatever_the_law(rng):
    from scipy.stats import kstest

    X = np.exp(3 * rng.normal(size=(2000, 1)))
    Z = FeatureScaling.of(X, "rank-gauss").apply(X)[:, 0]
    assert kstest(Z, "norm").pvalue > 0.9
    np.testing.assert_allclose(
        FeatureScaling.of(np.log(X), "rank-gauss").apply(np.log(X))[:, 0], Z, atol=0.02
    )


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(1, 400), st.sampled_from([np.float32, np.float64]))
def test_curves_are_linear_between_knots(seed, n_values, dtype):
    rng = np.random.default_rng(seed)
    X = rng.choice(rng.lognormal(sigma=3, size=n_values), size=(500, 1)).astype(dtype)
    scaling = FeatureScaling.of(X, "rank-gauss")
    probe = np.concatenate([X[:, 0], 1.01 * X[:, 0], [-1, 0, 1e9]]).astype(dtype)
    expected = np.interp(
        probe, scaling.knots[0].astype(dtype), scaling.values[0].astype(dtype)
    )
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(
        scaling.apply(probe[:, None])[:, 0], expected, atol=tolerance
    )


def test_norms_are_those_of_the_training_rows(rng):
    X = rng.normal(size=(50, 3)) * [1, 10, 100]
    Z = FeatureScaling.of(X, "l2").apply(X)
    np.testing.assert_allclose(Z, (X - X.mean(axis=0)) / np.linalg.norm(X, axis=0))


# ---------------------------------------------------------------------- candidate lists


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_all_variants_rank_new_queries(options, lists):
    train, test = lists
    model = LGMML(20, random_state=0, **options).fit(train[0], train[1], qid=train[2])
    by_chance = ndcg(Chance(), *test)
    assert ndcg(model, *test) > by_chance + (
        0.25 if options.get("scaling", "") else 0.1
    )


class Chance:
    def predict(self, X, qid):
        return np.random.default_rng(0).normal(size=len(X))


def test_the_default_ranks_nearly_perfectly(lists):
    train, test = lists
    model = LGMML(30, weight_reg=0.01, random_state=0).fit(
        train[0], train[1], qid=train[2]
    )
    assert ndcg(model, *test) > 0.93


def test_the_papers_form(lists):
    train, test = lists
    model = LGMML.paper(30, random_state=0).fit(train[0], train[1], qid=train[2])
    assert model.metric_.kernel == "paper"
    assert model.metric_.factors.shape == (30, 6, 6)
    assert not model.metric_.linear.size
    assert (model.metric_.weights >= 0).all()
    assert ndcg(model, *test) > ndcg(Chance(), *test) + 0.1
    # Distances within the list of each metric are at most 1, where d exp(-d) is monotone.
    X, _, qid = train
    Z = model.metric_.scaling.apply(X)
    for factor, row in zip(model.metric_.factors, model.anchor_rows_, strict=True):
        own = Z[qid == qid[row]]
        assert np.linalg.norm((own - Z[row]) @ factor.T, axis=1).max() == pytest.approx(
            1
        )


def test_anchors_are_documents_of_the_highest_grade(lists):
    (X, grades, qid), _ = lists
    model = LGMML(15, random_state=0).fit(X, grades, qid=qid)
    assert model.n_metrics_ == 15
    assert np.unique(qid[model.anchor_rows_]).size == 15
    for row in model.anchor_rows_:
        assert grades[row] == grades[qid == qid[row]].max()


@pytest.mark.parametrize(
    "options", [{}, {"loss": "warp", "new_query_weights": "nearest"}], ids=str
)
def test_any_number_of_threads_gives_the_same(options, lists, monkeypatch):
    (X, grades, qid), _ = lists
    found = []
    monkeypatch.setattr(_threads, "WORTH_THREADS", 0)
    monkeypatch.setattr(metric_weights, "RUN", 100)
    for n in (1, 2, 5):
        monkeypatch.setattr(_threads, "n_threads", lambda n=n: n)
        model = LGMML(20, random_state=0, **options).fit(X, grades, qid=qid)
        found.append(
            (model.metric_.factors, model.metric_.weights, model.predict(X, qid=qid))
        )
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


DIGEST = """
import hashlib, numpy as np
from rankspace import LGMML
rng = np.random.default_rng(0)
X, qid = rng.normal(size=(4000, 40)).astype(np.float32), np.repeat(np.arange(40), 100)
grades = np.digitize(X[:, 0] + np.abs(X[:, 1]), [0.5, 1.5, 2.5])
model = LGMML(random_state=0).fit(X, grades, qid=qid)
parts = [model.metric_.factors, model.metric_.weights, model.metric_.linear]
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


@pytest.mark.long
def test_threads_of_matrix_products_change_nothing():
    """Whole processes, for BLAS takes its number of threads when it is loaded."""
    found = set()
    for n in "12":
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, n)}
        found.add(
            subprocess.check_output([sys.executable, "-c", DIGEST], env=environment)
        )
    assert len(found) == 1


def test_rows_in_any_order(lists, rng):
    (X, grades, qid), test = lists
    order = rng.permutation(len(X))
    a = LGMML(50, random_state=0).fit(X, grades, qid=qid)
    b = LGMML(50, random_state=0).fit(X[order], grades[order], qid=qid[order])
    np.testing.assert_allclose(ndcg(a, *test), ndcg(b, *test), atol=0.01)


def test_no_label_of_a_new_query_is_used(lists):
    train, (X, grades, qid) = lists
    model = LGMML(10, random_state=0).fit(train[0], train[1], qid=train[2])
    before = model.predict(X)
    model.score(X, grades, qid=qid)
    np.testing.assert_array_equal(model.predict(X), before)
    one = model.predict(X[:1])
    np.testing.assert_allclose(one, before[:1], rtol=1e-10)


def test_short_lists_and_lists_without_anything_relevant(lists, caplog):
    (X, grades, qid), test = lists
    X = np.vstack([X, X[:30]])
    grades = np.concatenate([grades, [3], np.zeros(29, dtype=int)])
    qid = np.concatenate([qid, [900], np.repeat([901], 29)])
    with caplog.at_level(logging.WARNING):
        model = LGMML(100, random_state=0).fit(X, grades, qid=qid)
    assert "2 of 42 queries" in caplog.text
    assert model.n_metrics_ == 40
    assert ndcg(model, *test) > 0.8


def test_one_relevant_document_a_list(rng):
    X, qid = rng.normal(size=(300, 4)), np.repeat(np.arange(30), 10)
    grades = np.zeros(300, dtype=int)
    for q in range(30):
        grades[10 * q + np.argmax(X[10 * q : 10 * q + 10, 0])] = 1
    for options in ({}, {"pooling": 0.0}):
        model = LGMML(10, random_state=0, **options).fit(X, grades, qid=qid)
        assert ndcg(model, X, grades, qid) > 0.9


def test_missing_values_and_single_precision(lists, rng):
    (X, grades, qid), test = lists
    holes = X.astype(np.float32)
    holes[rng.uniform(size=X.shape) < 0.05] = np.nan
    model = LGMML(20, random_state=0).fit(holes, grades, qid=qid)
    assert model.predict(holes).dtype == np.float32
    assert ndcg(model, *test) > 0.8


def test_less_memory_means_fewer_lists(lists, caplog):
    (X, grades, qid), test = lists
    X, grades, qid = (np.concatenate([part] * 4) for part in (X, grades, qid))
    qid = qid + np.repeat(np.arange(4), 1000) * 1000
    with caplog.at_level(logging.INFO, "rankspace"):
        model = LGMML(20, max_memory=1, random_state=0).fit(X, grades, qid=qid)
    assert "weights are learned from 8" in caplog.text
    assert ndcg(model, *test) > 0.8


def test_memory_stays_bounded(rng, monkeypatch):
    monkeypatch.setattr("rankspace.learners.lgmml.MAX_SCALED", 2000)
    X, qid = rng.normal(size=(60_000, 20)).astype(np.float32), np.arange(60_000) // 30
    grades = (X[:, 0] > 1).astype(int)
    LGMML(5, max_iter=5, max_memory=4).fit(X[:3000], grades[:3000], qid=qid[:3000])
    tracemalloc.start()
    model = LGMML(5, max_iter=5, max_memory=4, random_state=0).fit(X, grades, qid=qid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Scaled features and distances of all rows would take three times X.
    assert peak < 2 * X.nbytes
    assert ndcg(model, X[:3000], grades[:3000], qid[:3000]) > 0.95


def test_grid_search_over_lists(lists):
    (X, grades, qid), _ = lists
    search = GridSearchCV(
        LGMML(5, random_state=0), {"weight_reg": [0.01, 1.0]}, cv=GroupKFold(3)
    )
    search.fit(X, Relevance.from_groups(grades, qid), groups=qid)
    assert search.best_params_ == {"weight_reg": 0.01}
    assert clone(search.best_estimator_).weight_reg == 0.01


def test_rankings_and_scores(lists):
    train, (X, grades, qid) = lists
    model = LGMML(10, random_state=0).fit(train[0], train[1], qid=train[2])
    ranking = model.rank(X=X, qid=qid, k=5)
    items, _ = ranking[0]
    assert (items == np.argsort(-model.predict(X[:25]), kind="stable")[:5]).all()
    report = evaluate(
        model.rank(X=X, qid=qid), Relevance.from_groups(grades, qid), "map"
    )
    assert model.score(X, grades, qid=qid) == pytest.approx(report.means["map"])
    with pytest.raises(ValueError, match=r"call rank\(X=X, qid=qid\)"):
        model.rank(X, X)


def test_nearest_needs_the_lists(lists):
    (X, grades, qid), _ = lists
    options = {"loss": "warp", "new_query_weights": "nearest", "random_state": 0}
    model = LGMML(5, **options).fit(X, grades, qid=qid)
    with pytest.raises(ValueError, match=r"pass qid=\.\.\."):
        model.predict(X)
    assert model.metric_.reference_profiles.shape == (40, 24)
    own = LGMML(5, n_neighbors=1, **options).fit(X, grades, qid=qid).metric_
    profile = own.reference_profiles[7:8]
    np.testing.assert_array_equal(own.weights_at(profile)[0], own.weights[7])


# ---------------------------------------------------------------------- queries with vectors


def test_distances_of_listed_pairs(rng):
    Z, points = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))
    factors = rng.normal(size=(3, 2, 4))
    rows, owner = rng.integers(0, 9, 40), rng.integers(0, 5, 40)
    found = pair_squares(Z, rows, points, owner, factors)
    for pair, r in np.ndindex(40, 3):
        gap = factors[r] @ (Z[rows[pair]] - points[owner[pair]])
        assert found[pair, r] == pytest.approx(gap @ gap)


def test_one_metric_is_gmml(wine):
    X, y = wine
    local, whole = LGMML(1, t=0.3, reg=0.1).fit(X, y), GMML(0.3, reg=0.1).fit(X, y)
    np.testing.assert_array_equal(local.rank(X, X).items, whole.rank(X, X).items)
    assert local.score(X, y) == pytest.approx(whole.score(X, y))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "warp"},
        {"loss": "warp", "new_query_weights": "nearest"},
        {"kernel": "distance"},
    ],
    ids=str,
)
def test_classes_of_new_points(options):
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 600), slice(1200, 1400)
    relevance = Relevance.from_labels(y[train], query_labels=y[test])
    model = LGMML(10, random_state=0, **options).fit(X[train], y[train])
    plain = Euclidean().fit(X[train], y[train])
    scores = [m.score(X[train], relevance, queries=X[test]) for m in (plain, model)]
    assert scores[1] > scores[0] + 0.03
    assert (model.metric_.weights >= 0).all()


def test_queries_in_shared_directions():
    """As many directions as features change nothing, half of them little."""
    X, y = load_digits(return_X_y=True)
    every, same, half = (
        LGMML(10, n_directions=n, random_state=0).fit(X[:400], y[:400])
        for n in (0, 64, 32)
    )
    np.testing.assert_array_equal(every.metric_.factors, same.metric_.factors)
    assert half.metric_.factors.shape == (10, 32, 64)
    assert (
        half.score(X[400:600], y[400:600]) > every.score(X[400:600], y[400:600]) - 0.05
    )


def test_separate_queries_and_a_shortlist(rng):
    X, Q = rng.normal(size=(60, 4)), rng.normal(size=(12, 4))
    near = [np.argsort(np.linalg.norm((X - q)[:, :2], axis=1))[:5] for q in Q]
    relevance = Relevance.from_lists(near, n_items=60)
    model = LGMML(6, random_state=0).fit(X, relevance, queries=Q)
    assert model.score(X, relevance, queries=Q) > Euclidean().fit(
        X, relevance, queries=Q
    ).score(X, relevance, queries=Q)
    shortlist = Euclidean().fit(X, relevance, queries=Q).rank(Q, X, 20)
    again = model.metric_.rerank(Q, X, shortlist)
    distances = model.metric_.distances(Q, X)
    for q in range(12):
        items, found = again[q]
        assert set(items) == set(shortlist[q][0])
        np.testing.assert_allclose(found, np.sort(distances[q][shortlist[q][0]]))
    assert not hasattr(model, "predict")
    with pytest.raises(ValueError, match="measures from queries"):
        model.metric_.scores(X)


def test_files(lists, wine, tmp_path):
    (X, grades, qid), _ = lists
    path = tmp_path / "metric.safetensors"
    model = LGMML(7, random_state=0).fit(X, grades, qid=qid)
    model.metric_.save(path)
    np.testing.assert_array_equal(load_metric(path).scores(X), model.predict(X))
    local = LGMML(3, loss="warp", new_query_weights="nearest", random_state=0).fit(
        *wine
    )
    local.metric_.save(path)
    found = load_metric(path)
    np.testing.assert_array_equal(
        found.rank(*[wine[0]] * 2).items, local.rank(*[wine[0]] * 2).items
    )
    assert found.parameters == local.metric_.parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_metrics": 0}, "n_metrics == 0, must be >= 1"),
        ({"pooling": 2.0}, "pooling == 2.0, must be <= 1"),
        ({"weight_reg": -1.0}, "weight_reg == -1.0, must be >= 0"),
        (
            {"kernel": "cosine"},
            "kernel must be one of paper, rbf, distance: got 'cosine'",
        ),
        (
            {"scaling": "log"},
            "scaling must be one of l2, standard, rank-gauss, joined: got 'log'",
        ),
        (
            {"new_query_weights": "mean"},
            "new_query_weights='mean' needs weights of each query: pass loss='warp'",
        ),
        ({"loss": "hinge"}, "loss must be one of logistic, warp: got 'hinge'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_parameters(options, message, lists):
    (X, grades, qid), _ = lists
    with pytest.raises(ValueError, match=message):
        LGMML(**options).fit(X, grades, qid=qid)
