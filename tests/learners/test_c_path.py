"""C="auto": a warm-started path, judged on held-out queries, with a certificate at its end."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import scale

from rankspace import MLR, MLRCV, GraphMLR, KernelMLR, RobustMLR, datasets
from rankspace.datasets import make_matching
from rankspace.learners import c_path
from rankspace.learners.c_path import CS, LEAST_GAIN, follow_path
from rankspace.relevance.relevance import Relevance
from rankspace.relevance.splits import choice_folds


@pytest.fixture(scope="module")
def wine():
    data = datasets.load_wine()
    return scale(np.asarray(data.X))[::2], data.labels[::2]


@pytest.mark.parametrize(
    "learner",
    [
        MLR("auto"),
        MLR("auto", constraint="diagonal", measure="auc"),
        MLR("auto", regularizer="frobenius", prior="identity", measure="ndcg@5"),
        RobustMLR("auto", sparsity=3.0, measure="auc"),
        GraphMLR("auto", measure="auc"),
    ],
    ids=repr,
)
def test_the_fit_at_the_chosen_C_is_certified(learner, wine):
    X, y = wine
    auto = clone(learner).fit(X, y)
    tried = list(auto.C_scores_)
    assert auto.C_ in tried
    assert tried == list(CS[: len(tried)])
    assert auto.gap_ <= auto.tol
    fixed = clone(learner).set_params(C=auto.C_).fit(X, y)
    assert auto.objective_ == pytest.approx(fixed.objective_, abs=auto.C_ * auto.tol)
    best = max(auto.C_scores_.values())
    assert auto.C_scores_[auto.C_] >= best - LEAST_GAIN
    assert auto.metric_.parameters["C"] == auto.C_
    again = clone(learner).fit(X, y)
    np.testing.assert_array_equal(auto.components_, again.components_)


def test_auto_and_MLRCV_are_one_mechanism(wine, monkeypatch):
    X, y = wine
    given = MLRCV(CS, random_state=0).fit(X, y)
    split = given._split(X, Relevance.from_labels(y), None)
    monkeypatch.setattr(c_path, "choice_folds", lambda *data: [split])
    auto = MLR("auto").fit(X, y)
    scores = list(auto.C_scores_.values())
    np.testing.assert_array_equal(scores, given.scores_[: len(scores)])


def test_scores_are_the_mean_over_folds_of_fits_from_scratch(wine):
    X, y = wine
    learner = MLR("auto", measure="auc", tol=1e-5)
    folds = choice_folds(X, Relevance.from_labels(y), None, c_path.SEED)
    path = follow_path(learner, folds, "none", [10.0, 100.0], "auc")
    for C, score in zip(path.Cs, path.scores, strict=True):
        expected = []
        for fold in folds:
            fresh = MLR(C, measure="auc", tol=1e-5).fit(fold.X, fold.relevance)
            report = fresh._evaluate(
                fold.X, fold.judged, None, fold.points, None, "auc"
            )
            expected.append(report.means["auc"])
        assert score == pytest.approx(np.mean(expected), abs=1e-3)


def test_a_path_goes_on_from_the_zero_metric_and_ends_where_nothing_is_gained(
    wine, monkeypatch
):
    monkeypatch.setattr(c_path, "CS", (1e-6, 1e-5, 100.0, 100.1, 1000.0))
    auto = MLR("auto", measure="auc").fit(*wine)
    assert list(auto.C_scores_) == [1e-6, 1e-5, 100.0, 100.1]
    assert auto.C_ == 100


def test_separate_queries_and_kernels_choose_too():
    matching = make_matching(60, random_state=0)
    auto = MLR("auto", measure="auc", constraint="diagonal")
    auto.fit(matching.X, matching.relevance, queries=matching.queries)
    assert auto.gap_ <= auto.tol
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (np.hypot(*X.T) > 1).astype(int)
    assert KernelMLR("auto", measure="auc").fit(X, y).model_.C_ in CS


def test_too_few_queries_take_the_default():
    X = np.random.default_rng(0).normal(size=(8, 3))
    X[:4] += 5
    auto = MLR("auto", measure="auc").fit(X, np.arange(8) < 4)
    assert auto.C_ == c_path.DEFAULT_C
    assert auto.C_scores_ == {}


def test_a_checkpoint_resumes_at_the_chosen_C(wine, tmp_path):
    auto = MLR("auto", measure="auc", checkpoint=tmp_path / "fit.safetensors")
    first = clone(auto).fit(*wine)
    second = clone(auto).fit(*wine)
    np.testing.assert_array_equal(first.components_, second.components_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": "best"}, "C must be one of auto: got 'best'"),
        ({"C": "auto", "measure": "knn-vote@3"}, "C='auto' needs a measure of rank"),
        ({"C": "auto", "measure": np.ones}, "C='auto' needs a measure of rankings"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused(options, message, wine):
    with pytest.raises(ValueError, match=message):
        MLR(**options).fit(*wine)
