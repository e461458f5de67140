"""Data at the ends of the range of floats: a finite metric, or an error that says what to do."""

import warnings

import numpy as np
import pytest

from rankspace import GMML, LGMML
from rankspace.learners.solvers.geometric.mean import mean_factor
from rankspace.metrics.feature_scaling import FeatureScaling

ROWS, LISTS = 60, np.arange(60) // 10


def extreme_data(dtype):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(ROWS, 4))
    info = np.finfo(dtype)
    largest = normal / np.abs(normal).max() * float(info.max)
    tiny = normal * float(info.tiny)
    outlier = normal.copy()
    outlier[0] = float(info.max) / 4
    unlike = normal * [float(info.max) / 8, float(info.tiny), 1.0, 0.0]
    constant = normal.copy()
    constant[:, 1] = float(info.max)
    heavy = rng.standard_cauchy((ROWS, 4)) ** 5
    return {
        "largest": largest,
        "subnormal": tiny / 1e3,
        "tiny": tiny,
        "outlier": outlier,
        "unlike": unlike,
        "constant": constant,
        "heavy": heavy,
        "equal": np.ones((ROWS, 4)),
        "zero": np.zeros((ROWS, 4)),
        "repeated": np.repeat(normal[:6], 10, axis=0),
    }


DATA = [
    pytest.param(X.astype(dtype), id=f"{name}-{dtype.__name__}")
    for dtype in (np.float64, np.float32)
    for name, X in extreme_data(dtype).items()
]
LEARNERS = [
    LGMML(5, random_state=0),
    LGMML(5, scaling=None, random_state=0),
    LGMML(5, scaling="standard", random_state=0),
    LGMML(5, scaling="rank-gauss", reg=0.0, random_state=0),
    LGMML.paper(5, random_state=0),
]


def _is_right(error, learner, X):
    if "singular" in str(error):
        return learner.reg == 0
    problems = ("norms of features must be within", "local metric must be of size")
    explained = any(problem in str(error) for problem in problems)
    return explained and np.abs(X).max() > 1e300


@pytest.mark.parametrize("learner", LEARNERS, ids=range(len(LEARNERS)))
@pytest.mark.parametrize("X", DATA)
@pytest.mark.parametrize("with_lists", [True, False])
def test_metric_is_finite(learner, X, with_lists):
    y = np.arange(ROWS) % 3
    qid = LISTS if with_lists else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            learner.fit(X, y, qid=qid)
            values = learner.predict(X) if with_lists else learner.rank(X, X).distances
        except ValueError as error:
            if _is_right(error, learner, X):
                return
            raise
    arrays = {name: getattr(learner.metric_, name) for name in learner.metric_.arrays}
    assert [
        name for name, array in arrays.items() if not np.isfinite(array).all()
    ] == []
    assert np.isfinite(values).all()


@pytest.mark.parametrize("reg", [1e100, 1e200, 1e300])
def test_a_large_reg_leaves_the_identity(reg, wine):
    # All directions count alike then.
    metric = GMML(reg=reg).fit(*wine).metric_
    M = metric.item_map.T @ metric.item_map
    np.testing.assert_allclose(M / M[0, 0], np.eye(len(M)), atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [(1e250, 1e250), (1e-250, 1e-250), (1e-290, 1e290)]
)
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_mean_of_large_and_small_matrices(a, b, t, rng):
    S, D = (A @ A.T for A in rng.normal(size=(2, 4, 9)))
    expected = mean_factor(S, D, t)
    L = mean_factor(a * S, b * D, t)
    np.testing.assert_allclose(L / (a ** ((t - 1) / 2) * b ** (t / 2)), expected)


def test_scaling_of_the_largest_floats():
    largest = np.finfo(np.float64).max
    X = np.array([[largest, 1.0], [largest / 2, 2.0], [-largest, 3.0]])
    small = X / [2.0**1000, 1.0]
    with pytest.raises(ValueError, match="norms of features must be within the range"):
        FeatureScaling.of(X, "l2")
    for kind in ("none", "standard", "joined"):
        scaling = FeatureScaling.of(X, kind)
        assert np.isfinite(scaling.offset).all()
        if kind != "none":
            expected = FeatureScaling.of(small, kind).apply(small)
            np.testing.assert_allclose(scaling.apply(X), expected, rtol=1e-12)
