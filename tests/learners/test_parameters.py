"""Parameters of every estimator: NaN and infinity are refused by name."""

import re

import numpy as np
import pytest

import rankspace
from rankspace import GMML, BaseRanker, Relevance
from rankspace.datasets import make_matching

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 3


def estimators():
    classes = [getattr(rankspace, name) for name in rankspace.__all__]
    return [
        learner
        for learner in classes
        if isinstance(learner, type) and issubclass(learner, BaseRanker)
    ]


PARAMETERS = [
    pytest.param(learner, name, id=f"{learner.__name__}-{name}")
    for learner in estimators()
    for name in learner().get_params(deep=False)
]


@pytest.mark.parametrize(("learner", "name"), PARAMETERS)
def test_parameters_must_be_finite(learner, name):
    values = [
        np.nan,
        np.inf,
        -np.inf,
        np.float32(np.nan),
        [1.0, np.inf],
        (1, np.nan),
        np.array([[1.0, np.nan]]),
    ]
    for value in values:
        what = re.escape(f"{name} must be finite: got ") + "-?(nan|inf)"
        with pytest.raises(ValueError, match=what):
            learner(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(("learner", "name"), PARAMETERS)
def test_whole_numbers_have_64_bits(learner, name):
    for value in (2**63, -(10**30)):
        with pytest.raises(ValueError, match=rf"{name} must be below 2\*\*63: got "):
            learner(**{name: value}).fit(X, Y)


def test_the_largest_gamma_keeps_the_bounds():
    kept = [
        rankspace.ITML(gamma=gamma, n_pairs=50, random_state=0).fit(X, Y).metric_
        for gamma in (1e100, 1e308)
    ]
    np.testing.assert_allclose(kept[1].matrix, kept[0].matrix)


def test_there_are_parameters_of_every_estimator():
    assert len(estimators()) > 15
    assert len(PARAMETERS) > 100


@pytest.mark.parametrize("name", ["t", "reg", "prior"])
def test_parameters_are_checked_for_pairs(name):
    pairs = X.reshape(6, 2, 3)
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        GMML(**{name: np.nan}).fit(pairs, [1, -1] * 3)


def test_parameters_are_checked_for_parts():
    with pytest.raises(ValueError, match="reg must be finite"):
        rankspace.FRML(2, reg=np.nan).partial_fit(X, Y)


@pytest.mark.parametrize("grade", [np.nan, np.inf, 0.0, -1.0])
def test_smallest_relevant_grade_is_finite(grade):
    with pytest.raises(ValueError, match="min_relevant_grade must be a finite grade"):
        Relevance.from_labels(Y, min_relevant_grade=grade)


@pytest.mark.parametrize(
    "parameters", [{"noise": np.nan}, {"hidden_map": [[np.inf]] * 4}]
)
def test_synthetic_data_are_made_from_finite_numbers(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        make_matching(100, n_features=4, random_state=0, **parameters)
