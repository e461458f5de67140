"""PARCA for users: what it learns, kinds of data, warnings and errors."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import PARCA, Euclidean, Index, Relevance, evaluate
from rankspace.datasets import make_matching
from rankspace.learners import parca
from reference.conventions import expected_failures

QUICK = {"reg": 0.003, "random_state": 0}


@parametrize_with_checks(
    [PARCA(reg=1e-4, max_iter=50), PARCA(reg=1e-4, solver="minibatch", max_iter=10)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """300 digits to learn from, and 600 others."""
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:900], y[300:900]


def held_out_error(components, digits):
    X, y, Q, wanted = digits
    relevance = Relevance.from_labels(y, query_labels=wanted)
    ranking = Index(X @ components.T).rank(Q @ components.T)
    return evaluate(ranking, relevance, "ranking-error").means["ranking-error"]


# ---------------------------------------------------------------------- learning


def test_new_points_are_ranked_better_than_by_pca_and_by_all_pixels(digits):
    model = PARCA(random_state=0).fit(*digits[:2])
    found = held_out_error(model.components_, digits)
    assert found < held_out_error(PCA(2).fit(digits[0]).components_, digits) - 0.1
    assert found < held_out_error(np.eye(64), digits)


def test_the_reg_of_the_lowest_cross_validated_error_is_taken(digits):
    model = PARCA(random_state=0).fit(*digits[:2])
    errors = [result.error for result in model.path_]
    assert model.reg_ == model.path_[int(np.argmin(errors))].setting
    assert len(errors) - 1 - np.argmin(errors) <= 2
    given = PARCA(reg=model.reg_, random_state=0).fit(*digits[:2])
    np.testing.assert_array_equal(given.components_, model.components_)
    assert given.path_ == []


def test_warm_starts_find_the_reg_of_cold_ones(monkeypatch, wine):
    """Trials from the last reg's map, loosely, against trials from PCA to the full tolerance."""
    warm = PARCA(random_state=0).fit(*wine)
    monkeypatch.setattr(parca, "TRIAL_TOL", 0.0)
    monkeypatch.setattr(
        parca.TrialFold, "last", property(_nothing, _ignore), raising=False
    )
    cold = PARCA(random_state=0).fit(*wine)
    assert warm.reg_ == cold.reg_
    assert warm.loss_ == pytest.approx(cold.loss_, abs=1e-4)
    for loose, close in zip(warm.path_, cold.path_, strict=True):
        assert loose.error == pytest.approx(close.error, abs=0.02)


def _nothing(fold):
    return None


def _ignore(fold, value):
    pass


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_unit_and_origin_of_the_data_do_not_matter(unit, wine):
    X, y = wine
    reference = PARCA(random_state=0).fit(X, y)
    moved = PARCA(random_state=0).fit(unit * (X + 3), y)
    assert moved.reg_ == reference.reg_
    np.testing.assert_allclose(
        unit**2 * moved.get_mahalanobis_matrix(),
        reference.get_mahalanobis_matrix(),
        rtol=1e-4,
        atol=1e-6,
    )


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["double", "single", "sparse", "batches"])
def test_no_unit_overflows_and_all_give_the_same_answer(unit, kind, wine):
    X, y = wine
    X = X.astype(np.float32) if kind == "single" else X
    wrap = scipy.sparse.csr_array if kind == "sparse" else np.asarray
    options = QUICK | {"solver": "minibatch" if kind == "batches" else "lbfgs"}
    reference = PARCA(**options).fit(wrap(X), y)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        model = PARCA(**options).fit(wrap(X * X.dtype.type(unit)), y)
    assert np.isfinite(model.components_).all()
    close = 0.02 if kind == "single" else 1e-3  # L-BFGS ends a little elsewhere
    found = unit * model.components_.astype(float)
    np.testing.assert_allclose(
        found.T @ found, reference.get_mahalanobis_matrix(), rtol=close, atol=close
    )


@pytest.mark.parametrize("reg", [0.0, 1e-5, 1e-3, "auto"])
def test_fewer_points_than_features(reg, rng):
    """All classes can be collapsed, and yet the map stays finite and of a sensible length."""
    X, y = rng.normal(size=(30, 200)), np.arange(30) % 3
    model = PARCA(reg=reg, random_state=0).fit(X, y)
    assert np.isfinite(model.components_).all()
    assert np.abs(model.transform(X)).max() < 1e3
    assert model.loss_ > np.log(1e-6) - 1e-9
    assert model.score(X, y) > 0.99


def test_multi_start_keeps_the_best_start(digits):
    X, y = digits[:2]
    losses = {
        start: PARCA(init=start, **QUICK).fit(X, y).loss_
        for start in ("lda", "pca", "random")
    }
    model = PARCA(**QUICK).fit(X, y)
    assert model.start_ in losses
    assert model.loss_ == pytest.approx(min(losses.values()), abs=0.05)
    assert len(model.history_) == model.n_iter_
    assert model.history_[-1] == model.loss_


def test_components_of_an_earlier_fit_are_a_start(wine):
    X, y = wine
    model = PARCA(tol=1e-9, **QUICK).fit(X, y)
    again = PARCA(init=model.components_, tol=1e-9, **QUICK).fit(X, y)
    assert again.start_ == "given"
    assert again.n_iter_ < 10
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-2)


def test_batches_agree_with_all_pairs(digits):
    X, y = digits[:2]
    full = PARCA(**QUICK).fit(X, y)
    part = PARCA(solver="minibatch", batch_size=100, **QUICK).fit(X, y)
    assert part.loss_ == pytest.approx(full.loss_, abs=0.02)
    assert part.n_iter_ == 500
    assert len(part.history_) == 50  # a row for ten steps
    difference = held_out_error(part.components_, digits) - held_out_error(
        full.components_, digits
    )
    assert abs(difference) < 0.01


def test_many_queries_are_taken_in_batches(monkeypatch, wine):
    from rankspace.learners import parca

    monkeypatch.setattr(parca, "MAX_FULL_BATCH", 100)
    automatic = PARCA(max_iter=30, **QUICK).fit(*wine)
    batches = PARCA(solver="minibatch", max_iter=30, **QUICK).fit(*wine)
    np.testing.assert_array_equal(automatic.components_, batches.components_)


def test_with_batches_the_loss_of_all_queries_is_never_computed(monkeypatch, wine):
    from rankspace.learners.solvers.smooth import minibatch
    from rankspace.learners.solvers.smooth.pair_ratio import PairRatio

    sizes = []
    value_and_gradient = PairRatio.value_and_gradient

    def record(self, Z, queries=None):
        sizes.append(self.relevance.n_queries if queries is None else len(queries))
        return value_and_gradient(self, Z, queries)

    monkeypatch.setattr(PairRatio, "value_and_gradient", record)
    monkeypatch.setattr(minibatch, "N_VALIDATION", 40)
    PARCA(solver="minibatch", batch_size=20, max_iter=30, random_state=0).fit(*wine)
    assert set(sizes) == {20, 40}


def test_seeds(wine):
    options = {"solver": "minibatch", "batch_size": 50, "max_iter": 20, "reg": 0.003}
    fits = [PARCA(**options, random_state=seed).fit(*wine) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert np.abs(fits[0].components_ - fits[2].components_).max() > 1e-3


# ---------------------------------------------------------------------- data of all kinds


def test_sparse_is_dense_and_never_made_so(monkeypatch, wine):
    X, y = wine
    X = np.where(X > 0, X, 0)
    dense = PARCA(init="random", **QUICK).fit(X, y)

    def refuse(self, *_, **__):
        raise AssertionError("made dense")

    for name in ("toarray", "todense"):
        monkeypatch.setattr(scipy.sparse.csr_array, name, refuse, raising=False)
    sparse = PARCA(init="random", **QUICK).fit(scipy.sparse.csr_array(X), y)
    monkeypatch.undo()
    np.testing.assert_allclose(
        sparse.get_mahalanobis_matrix(),
        dense.get_mahalanobis_matrix(),
        rtol=1e-2,
        atol=1e-3,
    )
    sparse = PARCA(random_state=0).fit(scipy.sparse.csr_array(X), y)
    assert sparse.score(X, y) > Euclidean().fit(X, y).score(X, y) + 0.03


def test_single_precision(wine):
    X, y = wine
    model = PARCA(**QUICK).fit(X.astype(np.float32), y)
    assert (
        model.components_.dtype
        == model.transform(X.astype(np.float32)).dtype
        == np.float32
    )
    double = PARCA(**QUICK).fit(X, y)
    assert model.score(X.astype(np.float32), y) == pytest.approx(
        double.score(X, y), abs=0.01
    )


def test_separate_queries_and_unjudged_pairs():
    matching = make_matching(300, random_state=0)
    scores = [
        model.fit(matching.X, matching.relevance, queries=matching.queries).score(
            matching.X, matching.relevance, queries=matching.queries
        )
        for model in (Euclidean(), PARCA(6, reg=1e-3, random_state=0))
    ]
    assert scores[1] > scores[0] + 0.1


def test_labels_and_lists_are_the_same_supervision(wine):
    X, y = wine
    lists = Relevance.from_lists([np.flatnonzero(y == label) for label in y])
    by_labels, by_lists = (
        PARCA(**QUICK).fit(X, s).get_mahalanobis_matrix() for s in (y, lists)
    )
    np.testing.assert_allclose(by_lists, by_labels, rtol=1e-3, atol=1e-4)


def test_a_class_of_one_is_no_query(wine):
    X, y = wine
    model = PARCA(**QUICK).fit(X, np.where(np.arange(178) == 5, 7, y))
    assert model.score(X, y) > 0.9


# ---------------------------------------------------------------------- scikit-learn's ways


def test_grid_search_pipeline_and_clone(wine):
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), PARCA(random_state=0))
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"parca__reg": [0.003, 10.0]}, cv=folds)
    with pytest.warns(ConvergenceWarning, match="mapping all points to one"):
        search.fit(X, y)
    assert search.best_params_ == {"parca__reg": 0.003}
    assert clone(pipeline).get_params()["parca__n_components"] == 2
    assert list(search.best_estimator_.get_feature_names_out()) == ["parca0", "parca1"]


def test_warnings_name_the_parameter_to_change(wine):
    X, y = wine
    with pytest.warns(
        ConvergenceWarning, match=r"stopped after 2 steps .* Raise max_iter or tol"
    ):
        PARCA(init="random", max_iter=2, tol=0, **QUICK).fit(X, y)
    with pytest.warns(
        ConvergenceWarning, match=r"that of the zero map 0\. Lower reg=100"
    ):
        PARCA(reg=100.0, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_components": 14},
            "n_components must be at most the number of features, 13: got 14",
        ),
        ({"reg": -1.0}, "reg == -1.0, must be >= 0"),
        ({"reg": "best"}, "reg must be one of auto: got 'best'"),
        ({"init": "zero"}, "init must be one of auto, lda, pca, random: got 'zero'"),
        ({"init": np.eye(3)}, r"here \(2, 13\): got \(3, 3\)"),
        ({"init": np.ones((2, 13))}, "finite and of rank 2"),
        (
            {"solver": "newton"},
            "solver must be one of auto, lbfgs, minibatch: got 'newton'",
        ),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
        ({"batch_size": 0}, "batch_size == 0, must be >= 1"),
        ({"tol": -1.0}, "tol == -1.0, must be >= 0"),
    ],
)
def test_wrong_parameters_are_refused(options, message, wine):
    with pytest.raises(ValueError, match=message):
        PARCA(**options).fit(*wine)
