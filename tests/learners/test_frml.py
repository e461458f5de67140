"""FRML as its users meet it: what it learns, where it stops, and how it goes on."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import FRML, Euclidean, Relevance
from rankspace.datasets import make_matching
from rankspace.learners.solvers.warp import embeddings
from reference.conventions import expected_failures

QUICK = {"n_triplets": 6000, "check_every": 2000, "random_state": 0}


@parametrize_with_checks(
    [FRML(2, n_triplets=640, check_every=320)], expected_failed_checks=expected_failures
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


# ---------------------------------------------------------------------- learning


def test_it_learns_what_new_points_need(digits):
    X, y = digits
    train, test = np.arange(0, 1200), np.arange(1200, 1797)
    relevance = Relevance.from_labels(y[train], query_labels=y[test])
    model = FRML(20, n_triplets=40_000, random_state=0).fit(X[train], y[train])
    before = Euclidean().fit(X[train], y[train])
    scores = [m.score(X[train], relevance, queries=X[test]) for m in (before, model)]
    assert scores[1] > scores[0] + 0.1
    assert model.components_.shape == (20, 64)
    assert np.linalg.matrix_rank(model.components_) == 20


@pytest.mark.parametrize("unit", [1000.0, 0.01])
def test_unit_and_origin_of_the_data_do_not_matter(unit, wine):
    X, y = wine
    reference = FRML(4, **QUICK).fit(X, y)
    moved = FRML(4, **QUICK).fit(unit * (X + 3), y)
    np.testing.assert_allclose(
        unit * moved.components_, reference.components_, rtol=1e-9, atol=1e-12
    )
    assert moved.score(unit * (X + 3), y) == pytest.approx(
        reference.score(X, y), abs=1e-12
    )


def test_the_best_metric_is_returned(wine):
    X, y = wine
    seen = []
    model = FRML(4, measure="p@3", callback=seen.append, **QUICK).fit(X, y)
    scores = [row["score"] for row in model.history_]
    assert model.best_score_ == max(scores)
    assert seen == model.history_
    assert model.n_iter_ == model.history_[-1]["n_triplets"] >= 6000


def test_steps_get_shorter_and_training_stops(wine):
    X, y = wine
    model = FRML(3, check_every=320, patience=1, random_state=0).fit(X, y)
    multipliers = [row["multiplier"] for row in model.history_]
    assert model.n_iter_ < 300_000
    assert set(multipliers) == {2.0, 0.5, 0.125, 0.03125}
    assert (np.diff(multipliers) <= 0).all()


def noisy(X, n=1):
    """The data beside features that say nothing."""
    noise = np.random.default_rng(1).normal(size=(len(X), n))
    return np.hstack((X, noise))


def one_feature():
    """One feature tells two classes apart, and varies less than the others."""
    y = np.arange(200) % 2
    rng = np.random.default_rng(0)
    return (y + 0.05 * rng.normal(size=200))[:, None], y


def few_digits():
    X, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(X[:400]), y[:400]


def irises():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    ("data", "low"), [(one_feature, 1), (irises, 2), (few_digits, 10)]
)
def test_full_rank_useless_features_and_units_cost_nothing(data, low):
    X, y = data()
    options = {"n_triplets": 30_000, "random_state": 0}
    best = FRML(low, **options).fit(X, y).score(X, y)
    for other in (X, noisy(X), noisy(X, 4), 1e3 * X):
        model = FRML(other.shape[1], **options).fit(other, y)
        assert model.score(other, y) > best - 0.01


def many_classes(seed=0, n=400, d=60, n_classes=20):
    """Classes so far apart that a metric of lower rank than the default will do."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(n_classes, d))[y]
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_that_is_not_needed_may_be_lost(dtype):
    X, y = many_classes()
    X = X.astype(dtype)
    model = FRML(n_triplets=100_000, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    assert np.isfinite(model.components_).all()
    again = FRML(init=model.components_, **QUICK).fit(X, y)
    assert again.score(X, y) > 0.99


@pytest.mark.parametrize("step", [1e-3, 1e3, 1e8])
def test_steps_of_any_length_end_with_a_metric(step, wine):
    model = FRML(step=step, **QUICK).fit(*wine)
    assert np.isfinite(model.components_).all()
    assert model.best_score_ == max(row["score"] for row in model.history_)


def test_smaller_is_better_is_known(wine):
    X, y = wine
    model = FRML(3, measure="ranking-error", **QUICK).fit(X, y)
    assert model.best_score_ == max(row["score"] for row in model.history_) <= 0


def test_a_callback_stops(wine):
    model = FRML(3, callback=lambda row: row["n_triplets"] >= 2000, **QUICK).fit(*wine)
    assert len(model.history_) == 1


def test_without_held_out_queries_the_last_metric_is_returned(wine):
    model = FRML(3, validation_fraction=0, **QUICK).fit(*wine)
    assert np.isnan(model.best_score_)
    assert model.n_iter_ >= 6000
    assert model.score(*wine) > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"rank_weights": "uniform"},
        {"rank_weights": "ndcg"},
        {"rank_weights": "precision@5"},
        {"rank_weights": "reciprocal@10"},
        {"gamma": 25},
        {"regularizer": "frobenius"},
        {"init": "random"},
        {"n_components": None, "init": "identity"},
        {"n_targets": 5},
        {"batch_size": 5},
    ],
    ids=str,
)
def test_all_variants_learn(options, wine):
    X, y = wine
    model = FRML(**({"n_components": 5} | QUICK | options)).fit(X, y)
    assert model.score(X, y) > Euclidean().fit(X, y).score(X, y) + 0.03


def test_single_precision(wine):
    X, y = wine
    model = FRML(4, **QUICK).fit(X.astype(np.float32), y)
    assert model.components_.dtype == np.float32
    assert model.score(X.astype(np.float32), y) > 0.9


def test_seeds(wine):
    a, b = (FRML(4, **QUICK).fit(*wine).components_ for _ in range(2))
    np.testing.assert_array_equal(a, b)
    other = FRML(4, **(QUICK | {"random_state": 1})).fit(*wine).components_
    assert np.abs(a - other).max() > 1e-3


# ---------------------------------------------------------------------- data of all kinds


def test_separate_queries_and_unjudged_pairs():
    matching = make_matching(400, random_state=0)
    models = (Euclidean(), FRML(5, n_triplets=20_000, random_state=0))
    scores = [
        model.fit(matching.X, matching.relevance, queries=matching.queries).score(
            matching.X, matching.relevance, queries=matching.queries
        )
        for model in models
    ]
    assert scores[1] > scores[0] + 0.1


def test_sparse_is_dense(wine):
    X, y = wine
    X = np.where(X > 0, X, 0)
    dense = FRML(4, validation_fraction=0, init="random", **QUICK).fit(X, y)
    sparse = FRML(4, validation_fraction=0, init="random", **QUICK)
    sparse.fit(scipy.sparse.csr_matrix(X), y)
    assert sparse.scale_ == pytest.approx(dense.scale_)
    rows = scipy.sparse.csr_array(X)
    assert sparse.score(rows, y) == pytest.approx(sparse.score(X, y))
    assert sparse.score(X, y) == pytest.approx(dense.score(X, y), abs=0.03)
    np.testing.assert_allclose(sparse.transform(rows), sparse.transform(X), atol=1e-12)
    assert (
        sparse.rank(rows[:3], rows, 5).items.tolist()
        == sparse.rank(X[:3], X, 5).items.tolist()
    )


def test_sparse_queries_and_never_a_dense_matrix(monkeypatch, rng):
    X = scipy.sparse.random_array((60, 40), density=0.1, rng=rng, format="csr")
    y = np.arange(60) % 3
    relevance = Relevance.from_labels(y, query_labels=y[:20])

    def refuse(*_, **__):
        raise AssertionError("made dense")

    monkeypatch.setattr(embeddings, "choose_strategy", lambda *_: "drawn")
    products = scipy.sparse.csr_array.toarray

    def small_only(self, *arguments, **options):
        if self.shape[1] == 40:
            refuse()
        return products(self, *arguments, **options)

    monkeypatch.setattr(scipy.sparse.csr_array, "toarray", small_only)
    model = FRML(3, max_memory=1, **QUICK).fit(X, relevance, queries=X[:20])
    assert model.components_.shape == (3, 40)


def test_grades_draw_positives_by_gain(rng):
    """Grade 3 lies along one axis and grade 1 along the other: the metric keeps the former."""
    n = 200
    groups = np.arange(n) % 4
    X = rng.normal(size=(n, 2))
    X[:, 0] += 10 * (groups // 2)
    X[:, 1] += 10 * (groups % 2)
    strong = [
        {
            int(j): 4.0 if groups[j] // 2 == groups[i] // 2 else 1.0
            for j in range(n)
            if j != i
            and (groups[j] // 2 == groups[i] // 2 or groups[j] % 2 == groups[i] % 2)
        }
        for i in range(n)
    ]
    model = FRML(2, **QUICK).fit(X, Relevance.from_lists(strong))
    lengths = np.linalg.norm(model.components_, axis=0)
    assert lengths[0] > 1.5 * lengths[1]


def test_query_weights_count(wine):
    """Queries of weight 0 have no say: rows of class 2 alone decide."""
    from dataclasses import replace

    X, y = wine
    relevance = Relevance.from_labels(y)
    weights = np.where(y == 2, 1.0, 0.0)
    model = FRML(2, validation_fraction=0, **QUICK).fit(
        X, replace(relevance, weights=weights)
    )
    plain = FRML(2, validation_fraction=0, **QUICK).fit(X, relevance)
    assert model.score(X, y, sample_weight=weights) > model.score(X, y)
    assert np.abs(model.components_ - plain.components_).max() > 1e-3


def test_weights_that_are_all_zero_are_refused(wine):
    from dataclasses import replace

    X, y = wine
    relevance = replace(Relevance.from_labels(y), weights=np.zeros(178))
    with pytest.raises(ValueError, match="must not all be 0"):
        FRML(2, validation_fraction=0, **QUICK).fit(X, relevance)


# ---------------------------------------------------------------------- scikit-learn's ways


def test_grid_search_pipeline_and_clone(wine):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), FRML(3, **QUICK))
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(clone(model), {"frml__n_components": [1, 3]}, cv=folds)
    assert search.fit(X, y).best_params_ == {"frml__n_components": 3}


def test_partial_fit_goes_on(wine):
    X, y = wine
    model = FRML(3, random_state=0)
    first = model.partial_fit(X, y).components_.copy()
    n_triplets = model.n_iter_
    for _ in range(20):
        model.partial_fit(X, y)
    assert model.n_iter_ > n_triplets
    assert np.abs(model.components_ - first).max() > 1e-3
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y)


def test_partial_fit_after_fit_starts_from_its_metric(wine):
    X, y = wine
    model = FRML(3, **QUICK).fit(X, y)
    score = model.score(X, y)
    assert model.partial_fit(X, y).score(X, y) > score - 0.05


def test_warm_start_and_given_components_are_where_it_starts(wine):
    X, y = wine
    model = FRML(3, warm_start=True, **QUICK).fit(X, y)
    components = model.components_
    again = FRML(3, init=components, **QUICK).fit(X, y)
    model.fit(X, y)
    np.testing.assert_array_equal(model.components_, again.components_)
    one_step = FRML(init=components, n_triplets=32, validation_fraction=0, step=1e-6)
    np.testing.assert_allclose(
        one_step.fit(X, y).components_, components, rtol=1e-3, atol=1e-6
    )


def test_identity_stays_near_good_embeddings(wine):
    X, y = wine
    one_step = FRML(init="identity", n_triplets=32, validation_fraction=0, step=1e-6)
    one_step.fit(X, y)
    np.testing.assert_allclose(
        one_step.components_ * one_step.scale_, np.eye(13), rtol=1e-3, atol=1e-3
    )


# ---------------------------------------------------------------------- checkpoints

SCRIPT = """
import sys
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from rankspace import FRML
X, y = load_wine(return_X_y=True)
model = FRML(4, n_triplets=40_000, check_every=1000, random_state=0, checkpoint=sys.argv[1])
print("ready", flush=True)
model.fit(scale(X), y)
"""


def test_killed_and_resumed_it_ends_the_same(tmp_path, wine):
    options = {"n_triplets": 40_000, "check_every": 1000, "random_state": 0}
    whole = FRML(4, **options).fit(*wine)
    path = tmp_path / "run.safetensors"
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path)],
            stdout=subprocess.PIPE,
            env=os.environ,
        )
        process.stdout.readline()
        time.sleep(rng.uniform(0.05, 0.4))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert kills
    resumed = FRML(4, checkpoint=path, **options).fit(*wine)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert [row["score"] for row in resumed.history_] == [
        row["score"] for row in whole.history_
    ]


def test_resumed_from_every_check_it_ends_the_same(tmp_path, wine):
    """In one process: a run is broken off at its second check, with the first one in the file."""
    whole = FRML(4, **QUICK).fit(*wine)
    path = tmp_path / "run.safetensors"
    checks = []

    def break_off(row):
        checks.append(row["n_triplets"])
        if len(checks) % 2 == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FRML(4, checkpoint=path, callback=break_off, **QUICK).fit(*wine)
    with pytest.raises(KeyboardInterrupt):
        FRML(4, checkpoint=path, callback=break_off, **QUICK).fit(*wine)
    assert len(checks) == 4
    assert checks[1] == checks[2] < checks[3]
    for _ in range(2):  # the second finds a finished run
        resumed = FRML(4, checkpoint=path, **QUICK).fit(*wine)
        np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_stopped_by_a_callback_it_goes_on_from_the_checkpoint(tmp_path, wine):
    path = tmp_path / "run.safetensors"
    stopped = FRML(4, checkpoint=path, callback=lambda row: True, **QUICK).fit(*wine)
    assert len(stopped.history_) == 1
    resumed = FRML(4, checkpoint=path, **QUICK).fit(*wine)
    np.testing.assert_array_equal(
        resumed.components_, FRML(4, **QUICK).fit(*wine).components_
    )


def test_a_checkpoint_of_other_data_or_parameters_is_refused(tmp_path, wine):
    X, y = wine
    path = tmp_path / "run.safetensors"
    FRML(4, checkpoint=path, **QUICK).fit(X, y)
    for model, data in (
        (FRML(3, checkpoint=path, **QUICK), X),
        (FRML(4, checkpoint=path, **QUICK), X + X**2),
    ):
        with pytest.raises(ValueError, match="must be of the same data and parameters"):
            model.fit(data, y)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="must be a checkpoint"):
        FRML(4, checkpoint=path, **QUICK).fit(X, y)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 14}, "at most the number of features, 13: got 14"),
        ({"n_components": 0}, "n_components == 0, must be >= 1"),
        ({"gamma": 0.5}, "gamma == 0.5, must be >= 1"),
        ({"reg": 1.0}, "reg == 1.0, must be < 1"),
        ({"step": 0}, "step == 0, must be > 0"),
        ({"rank_weights": "squared"}, "rank_weights must be one of .*: got 'squared'"),
        ({"rank_weights": "precision@0"}, "k is a positive integer: got 'precision@0'"),
        ({"rank_weights": "precision"}, "rank_weights must be one of"),
        (
            {"regularizer": "trace"},
            "regularizer must be one of pairs, frobenius: got 'trace'",
        ),
        (
            {"init": "zero"},
            "init must be one of pca, random, normal, identity: got 'zero'",
        ),
        (
            {"init": "identity"},
            "needs n_components=13, the number of features: got n_components=3",
        ),
        ({"init": np.ones((3, 13))}, "init must be finite and of rank 3"),
        ({"init": np.ones((2, 13))}, r"here \(3, 13\): got \(2, 13\)"),
        ({"measure": "maq"}, "measure must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction == 1.0, must be < 1"),
        ({"n_targets": 0}, "n_targets == 0, must be >= 1"),
    ],
)
def test_bad_parameters(options, message, wine):
    with pytest.raises(ValueError, match=message):
        FRML(**({"n_components": 3} | options)).fit(*wine)


def test_equal_rows_are_refused():
    with pytest.raises(ValueError, match="X must have rows that differ: all are equal"):
        FRML(1).fit(np.ones((4, 2)), [0, 0, 1, 1])


def test_lists_of_candidates_are_refused(wine):
    X, _ = wine
    with pytest.raises(ValueError, match="learns from queries that have vectors"):
        FRML(2).fit(X, np.arange(178) % 2, qid=np.arange(178) // 10)


def test_too_few_queries_to_hold_out_are_said(caplog):
    X, y = np.array([[0.0], [1.0], [5.0]]), [0, 0, 1]
    model = FRML(1, n_triplets=64, random_state=0).fit(X, y)
    assert "too few queries to hold some out" in caplog.text
    assert np.isnan(model.best_score_)
