"""Weights of queries and validation sets, as `fit` takes them."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankspace
from rankspace import (
    FRML,
    GMML,
    LGMML,
    LMNN,
    MLCC,
    MLR,
    MLRCV,
    OASIS,
    PARCA,
    SVMMAP,
    GraphMLR,
    KernelMLR,
    ListwiseMap,
    LogisticPARCA,
    Relevance,
    RobustMLR,
)

FIXED = {"random_state": 0}
WEIGHTED = [
    FRML(2, n_triplets=640, **FIXED),
    GMML(),
    GraphMLR(max_iter=3),
    KernelMLR(max_iter=3),
    LGMML(3, **FIXED),
    LMNN(max_iter=5),
    MLCC(max_iter=5),
    MLR(max_iter=3),
    MLRCV((10,), max_iter=3, **FIXED),
    PARCA(2, max_iter=5, **FIXED),
    SVMMAP(max_iter=50),
    ListwiseMap(max_iter=5),
    LogisticPARCA(beta=0.1, max_iter=5, n_starts=1, **FIXED),
    RobustMLR(max_iter=3),
]
WITHOUT = {"Euclidean", "ITML", "LORETA", "OASIS"}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def data(rng):
    """Points of three classes, and weights, some of them 0."""
    y = np.arange(36) % 3
    X = rng.normal(size=(36, 3)) + y[:, None]
    return X, y, rng.choice([0.0, 0.5, 1.0, 4.0], size=36)


def learned(model):
    if hasattr(model, "components_"):
        return model.components_
    return model.rank(
        np.eye(3), np.random.default_rng(1).normal(size=(20, 3))
    ).distances


def test_every_learner_takes_weights_or_is_known_not_to():
    takes = {type(model).__name__ for model in WEIGHTED}
    learners = set(rankspace.learners.__all__)
    assert learners - {"BaseRanker", "LinearRanker", "scorer"} == takes | WITHOUT
    for name in takes | WITHOUT:
        parameters = inspect.signature(getattr(rankspace, name).fit).parameters
        assert ("sample_weight" in parameters) == (name in takes)


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
def test_sample_weights_are_weights_of_queries(model, data):
    X, y, weights = data
    expected = learned(model.fit(X, Relevance.from_labels(y, weights=weights))).copy()
    np.testing.assert_array_equal(learned(model.fit(X, y, weights)), expected)
    assert not np.array_equal(learned(model.fit(X, y)), expected)


def test_weights_of_separate_queries(data):
    X, y, weights = data
    relevance = Relevance.from_labels(y[20:], query_labels=y[:20])
    model = GMML(0.5, reg=0.01).fit(X[20:], relevance, weights[:20], queries=X[:20])
    repeated = np.repeat(np.arange(20), (2 * weights[:20]).astype(int))
    twice = relevance.take_queries(repeated)
    expected = GMML(0.5, reg=0.01).fit(X[20:], twice, queries=X[:20][repeated])
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), expected.get_mahalanobis_matrix()
    )


def test_weights_of_pairs_are_repeated_pairs(rng):
    pairs, signs = rng.normal(size=(20, 2, 3)), np.repeat([1, -1], 10)
    times = rng.integers(0, 3, 20)
    model = GMML().fit(pairs, signs, times)
    expected = GMML().fit(pairs.repeat(times, axis=0), signs.repeat(times))
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), expected.get_mahalanobis_matrix()
    )
    with pytest.raises(ValueError, match="for a similar and for a dissimilar pair"):
        GMML().fit(pairs, signs, signs > 0)


def test_bad_weights_stop(data):
    X, y, weights = data
    with pytest.raises(ValueError, match="one entry for each of 36 rows"):
        GMML().fit(X, y, weights[1:])
    with pytest.raises(ValueError, match="finite and not negative: got -1"):
        GMML().fit(X, y, weights - 1)
    with pytest.raises(ValueError, match=r"sample_weight must be above 0.*are zero"):
        GMML().fit(
            X, np.where(np.arange(36) < 2, 9, np.arange(36)), 0 * weights + (y > 8)
        )
    with pytest.raises(TypeError, match="sample_weight"):
        OASIS().fit(X, y, sample_weight=weights)


def test_weights_reach_fit_by_routing(data):
    X, y, weights = data
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        params = {"sample_weight": weights}
        scores = cross_val_score(GMML(), X, y, cv=folds, params=params)
    for (train, test), score in zip(folds.split(X), scores, strict=True):
        model = GMML().fit(X[train], y[train], weights[train])
        assert model.score(X[test], y[test], weights[test]) == pytest.approx(score)


def test_lists_have_the_weight_of_their_first_row(data, rng):
    X, _, _ = data
    grades, qid = rng.integers(0, 3, 36), np.arange(36) // 6
    weights = np.arange(1.0, 7.0)
    relevance = Relevance.from_groups(grades, qid, weights=weights)
    expected = LGMML(2, **FIXED).fit(X, relevance).predict(X)
    found = LGMML(2, **FIXED).fit(X, grades, weights[qid], qid=qid).predict(X)
    np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------- validation sets


def frml(**options):
    options = {"n_triplets": 960, "check_every": 320, **FIXED, **options}
    return FRML(2, **options)


def test_frml_validates_on_the_set_that_was_passed(data):
    X, y, _ = data
    model = frml(measure="p@2").fit(X[:24], y[:24], X_val=X[24:], y_val=y[24:])
    score = rankspace.scorer("p@2")(model, X[24:], y[24:])
    assert model.best_score_ == pytest.approx(score)
    assert len(model.history_) == 3
    # All queries train: the last metric of a run without validation is the same.
    last = frml(validation_fraction=0).fit(X[:24], y[:24])
    every = frml(patience=99).fit(X[:24], y[:24], X_val=X[24:], y_val=y[24:])
    if every.history_[-1]["score"] == every.best_score_:
        np.testing.assert_allclose(every.components_, last.components_)


def test_validation_queries_may_be_separate(data):
    X, y, _ = data
    judged = Relevance.from_labels(y[24:30], query_labels=y[30:])
    sets = {"X_val": X[24:30], "y_val": judged, "queries_val": X[30:]}
    model = frml().fit(X[:24], y[:24], **sets)
    score = model.score(X[24:30], judged, queries=X[30:])
    assert model.best_score_ == pytest.approx(score)


@pytest.mark.parametrize("n", [4, 6])
def test_lists_of_a_validation_set_take_the_number_of_items_from_it(data, n):
    X, y, _ = data
    sets = {"X_val": X[24:30], "queries_val": X[30 : 30 + n] + 0.1}
    lists = [[q, (q + 1) % 6] for q in range(n)]
    scores = []
    for judged in (Relevance.from_lists(lists, n_items=6), Relevance.from_lists(lists)):
        model = frml().fit(X[:24], y[:24], y_val=judged, **sets)
        scores.append(model.best_score_)
    assert scores[0] == scores[1]


def test_mlr_cv_chooses_on_the_set_that_was_passed(data):
    X, y, _ = data
    sets = {"X_val": X[24:], "y_val": y[24:]}
    model = MLRCV((1, 100), measure="auc", scoring="map").fit(X[:24], y[:24], **sets)
    for C, score in zip(model.Cs_, model.scores_, strict=True):
        alone = MLR(C, measure="auc", tol=1e-4).fit(X[:24], y[:24])
        assert alone.score(X[24:], y[24:]) == pytest.approx(score, abs=0.05)


def test_validation_sets_go_through_the_pipeline(data):
    X, y, _ = data
    scaled = StandardScaler().fit(X[:24]).transform(X)
    expected = frml().fit(scaled[:24], y[:24], X_val=scaled[24:], y_val=y[24:])
    sets = {"X_val": X[24:], "y_val": y[24:]}
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), frml(), transform_input=["X_val"])
        model.fit(X[:24], y[:24], **sets)
        np.testing.assert_array_equal(model[-1].components_, expected.components_)
        careless = make_pipeline(StandardScaler(), frml())
        with pytest.raises(ValueError, match=r"X_val that it did not.*\['X_val'\]"):
            careless.fit(X[:24], y[:24], **sets)


def test_checkpoints_are_bound_to_the_validation_set(data, tmp_path):
    X, y, _ = data
    model = frml(checkpoint=tmp_path / "run.ckpt")
    first = model.fit(X[:24], y[:24], X_val=X[24:], y_val=y[24:]).components_
    again = model.fit(X[:24], y[:24], X_val=X[24:], y_val=y[24:]).components_
    np.testing.assert_array_equal(first, again)
    with pytest.raises(ValueError, match="y_val"):
        model.fit(X[:24], y[:24], X_val=X[24:], y_val=y[24:][::-1])
    with pytest.raises(ValueError, match="X_val"):
        model.fit(X[:24], y[:24])


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"y_val": [0, 1]}, "y_val and queries_val need X_val"),
        ({"X_val": np.ones((2, 3))}, "X_val needs y_val"),
        ({"X_val": np.ones((2, 3)), "y_val": [0, 1]}, "got 2 queries without both"),
        ({"X_val": np.ones((3, 2)), "y_val": [0, 1, 1]}, "expecting 3 features"),
        ({"X_val": np.ones((3, 3)), "y_val": [0, 1]}, "one item for each row of X"),
    ],
)
def test_bad_validation_sets_stop(sets, message, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        frml().fit(X, y, **sets)
