"""Logistic PARCA: its penalty, its clusters, and the choice of beta."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import LogisticPARCA, Relevance
from rankspace.learners.solvers.points import Points
from rankspace.learners.solvers.smooth.components import MapLoss
from rankspace.learners.solvers.smooth.logistic import (
    LogisticLoss,
    mean_entropy,
    memberships,
)
from reference.conventions import expected_failures
from reference.parca import entropy, log_ratio, slopes

QUICK = {"beta": 0.1, "random_state": 0}


@parametrize_with_checks(
    [LogisticPARCA(beta=0.1, max_iter=40, n_starts=1)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------- the penalty


@pytest.mark.parametrize("K", [2, 3, 5])
def test_entropy_and_its_gradient(K, rng):
    B = rng.normal(size=(K, 4)) * 3
    value, gradient = mean_entropy(B)
    assert value == pytest.approx(entropy(B))
    np.testing.assert_allclose(gradient, slopes(entropy, B), rtol=1e-5, atol=1e-9)


def test_entropy_of_equals_is_one_and_of_a_single_member_zero():
    assert mean_entropy(np.zeros((3, 2)))[0] == pytest.approx(1)
    assert mean_entropy(np.array([[40.0, -40.0], [-40.0, 40.0]]))[0] == pytest.approx(
        0, abs=1e-12
    )


def test_memberships_of_vanishing_weights():
    """h(-2000) is 0 in double precision; its share beside h(-1990) is not lost."""
    B = np.array([[-2000.0], [-1990.0]])
    np.testing.assert_allclose(memberships(B), expit([[-10.0], [10.0]]), rtol=1e-9)
    assert np.isfinite(mean_entropy(B)[1]).all()


@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_loss_and_gradient_match_plain_loops(beta, rng):
    y, X = np.arange(12) % 3, rng.random((12, 4))
    relevance = Relevance.from_labels(y)
    loss = LogisticLoss(MapLoss(Points(X, relevance.query_items, 12), relevance), beta)
    B = rng.normal(size=(2, 4))

    def slow(B):
        Z = X @ expit(B).T
        return np.logaddexp(log_ratio(Z, Z, relevance), np.log(1e-6)) + beta * entropy(
            B
        )

    value, gradient = loss.value_and_gradient(B)
    assert value == pytest.approx(slow(B))
    np.testing.assert_allclose(gradient, slopes(slow, B), rtol=1e-5, atol=1e-9)


# ---------------------------------------------------------------------- clusters


@pytest.fixture(scope="module")
def planted():
    """Four classes by two bits: features 0 to 4 hold the first, 5 to 9 the second, 10, 11 none."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 4
    X = 0.3 * rng.normal(size=(160, 12))
    X[:, :5] += (y // 2)[:, None]
    X[:, 5:10] += (y % 2)[:, None]
    return X, y


def test_features_with_the_same_information_form_a_cluster(planted):
    model = LogisticPARCA(2, **QUICK).fit(*planted)
    clusters = model.cluster_of_feature_
    assert len(set(clusters[:5])) == len(set(clusters[5:10])) == 1
    assert clusters[0] != clusters[5]
    np.testing.assert_array_equal(clusters, np.argmax(model.membership_, axis=0))
    np.testing.assert_allclose(model.membership_.sum(axis=0), 1)
    A = model.components_ * model.scale_
    assert 0 <= A.min() <= A.max() <= 1
    np.testing.assert_allclose(model.membership_, A / A.sum(axis=0), rtol=1e-9)


def test_topics_list_the_features_of_each_cluster(planted):
    X, y = planted
    model = LogisticPARCA(2, **QUICK).fit(X, y)
    names = [f"word{i}" for i in range(12)]
    topics = model.topics(names, n=5)
    wanted = [set(names[:5]), set(names[5:10])]
    assert [set(topic) for topic in topics] in (wanted, wanted[::-1])
    everything = model.topics(names, n=12)
    assert sorted(itertools.chain(*everything)) == sorted(names)
    for component, topic in enumerate(everything):
        important = [model.importance_[component, names.index(name)] for name in topic]
        assert important == sorted(important, reverse=True)
    assert model.topics(n=2)[0] == [name.removeprefix("word") for name in topics[0][:2]]
    with pytest.raises(ValueError, match=r"must name 12 features: got shape \(3,\)"):
        model.topics(["a", "b", "c"])


def test_importance_is_the_distance_a_feature_makes(planted):
    X, y = planted
    model = LogisticPARCA(2, **QUICK).fit(X, y)
    differences = X[:, None] - X[None]
    expected = model.components_**2 * np.mean(differences**2, axis=(0, 1))
    np.testing.assert_allclose(model.importance_, expected, rtol=1e-9)
    sparse = LogisticPARCA(2, **QUICK).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(
        sparse.importance_, model.importance_, rtol=0.05, atol=1e-3
    )


def test_names_of_a_dataframe():
    pandas = pytest.importorskip("pandas")
    iris = load_iris()
    frame = pandas.DataFrame(iris.data, columns=iris.feature_names)
    model = LogisticPARCA(2, **QUICK).fit(frame, iris.target)
    assert sorted(itertools.chain(*model.topics())) == sorted(iris.feature_names)


def test_more_beta_makes_memberships_sharper(planted):
    loose = LogisticPARCA(3, 0.0, random_state=0).fit(*planted)
    sharp = LogisticPARCA(3, 3.0, random_state=0).fit(*planted)
    loose_mean = loose.membership_.max(axis=0).mean()
    assert sharp.membership_.max(axis=0).mean() > loose_mean + 0.1


# ---------------------------------------------------------------------- choices and data


def test_beta_is_the_largest_that_ranks_about_as_well(planted):
    model = LogisticPARCA(2, n_starts=1, random_state=0).fit(*planted)
    best = min(model.path_, key=lambda result: result.error)
    limit = best.error + best.standard_error
    good = [result.setting for result in model.path_ if result.error <= limit]
    assert model.beta_ == max(good)
    settings = [result.setting for result in model.path_]
    assert settings == sorted(set(settings))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_unit_and_origin_of_the_data_do_not_matter(unit, planted):
    X, y = planted
    reference = LogisticPARCA(2, **QUICK).fit(X, y)
    moved = LogisticPARCA(2, **QUICK).fit(unit * (X + 3), y)
    np.testing.assert_allclose(
        unit * moved.components_, reference.components_, rtol=1e-3, atol=1e-4
    )


def test_orthogonal_unit_length_rows_are_not_rescaled(rng):
    X = np.eye(300)[rng.integers(0, 300, 200)]
    model = LogisticPARCA(2, max_iter=5, tol=1.0, **QUICK).fit(X, np.arange(200) % 2)
    assert model.scale_ == pytest.approx(1, abs=0.01)


def test_one_component(planted):
    model = LogisticPARCA(1, **QUICK).fit(*planted)
    assert (model.cluster_of_feature_ == 0).all()
    assert (model.membership_ == 1).all()


def test_grid_search_pipeline_and_precision(planted):
    X, y = planted
    pipeline = make_pipeline(MinMaxScaler(), LogisticPARCA(random_state=0))
    folds = KFold(2, shuffle=True, random_state=0)
    grid = {"logisticparca__beta": [0.0, 0.1], "logisticparca__n_components": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=folds).fit(X, y)
    assert search.best_params_["logisticparca__n_components"] == 2
    single = LogisticPARCA(2, **QUICK).fit(X.astype(np.float32), y)
    assert single.components_.dtype == single.membership_.dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -0.5}, "beta == -0.5, must be >= 0"),
        ({"beta": "best"}, "beta must be one of auto: got 'best'"),
        ({"n_starts": 0}, "n_starts == 0, must be >= 1"),
        (
            {"n_components": 13},
            "n_components must be at most the number of features, 12: got 13",
        ),
    ],
)
def test_wrong_parameters_are_refused(options, message, planted):
    with pytest.raises(ValueError, match=message):
        LogisticPARCA(**options).fit(*planted)
