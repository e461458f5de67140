"""Standardising by a learner is standardising before it, and "auto" does so where it should."""

import logging

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from rankspace import (
    FRML,
    GMML,
    MLR,
    MLRCV,
    GraphMLR,
    ListwiseMap,
    RobustMLR,
    datasets,
    load_metric,
)
from rankspace.learners import standardising
from rankspace.learners.solvers import scaling as scalings
from rankspace.learners.solvers.scaling import (
    FACTOR,
    Scaling,
    feature_moments,
    spread_ratio,
)

LEARNERS = [
    MLR(measure="auc"),
    MLR(measure="auc", constraint="diagonal"),
    MLR(measure="auc", regularizer="frobenius", prior="identity"),
    RobustMLR(measure="auc", sparsity=3.0),
    GraphMLR(measure="auc"),
    MLRCV((10, 100), measure="auc", random_state=0),
    FRML(3, n_triplets=2000, validation_fraction=0, random_state=0),
    GMML(),
    ListwiseMap(),
]


def name_of(learner):
    return repr(learner).replace("\n", "")


@pytest.fixture(scope="module")
def raw_wine():
    wine = datasets.load_wine()
    return np.asarray(wine.X)[::3], wine.labels[::3]


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_a_learner_standardises_as_one_does_before_it(learner, raw_wine):
    X, y = raw_wine
    scaler = StandardScaler().fit(X)
    told = clone(learner).set_params(scaling="standard").fit(X, y)
    before = clone(learner).set_params(scaling=None).fit(scaler.transform(X), y)
    assert told.scaling_ == "standard"
    assert before.scaling_ == "none"
    in_units = told.get_mahalanobis_matrix() * np.outer(scaler.scale_, scaler.scale_)
    largest = np.abs(before.get_mahalanobis_matrix()).max()
    np.testing.assert_allclose(
        in_units, before.get_mahalanobis_matrix(), atol=1e-4 * largest
    )
    assert told.score(X, y) == pytest.approx(
        before.score(scaler.transform(X), y), abs=1e-3
    )


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_auto_standardises_a_raw_table_and_the_metric_says_so(
    learner, raw_wine, tmp_path
):
    X, y = raw_wine
    X = X.astype(np.float32)
    auto = clone(learner).fit(X, y)
    assert auto.scaling_ == "standard"
    assert auto.metric_.parameters["scaling"] == "standard"
    assert auto.components_.dtype == np.float32
    same = clone(learner).set_params(scaling="standard").fit(X, y)
    np.testing.assert_array_equal(auto.components_, same.components_)
    auto.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    first, second = auto.rank(X, X, 5), loaded.rank(X, X, 5)
    np.testing.assert_array_equal(first.items, second.items)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_auto_leaves_standardised_rows_alone(learner, raw_wine):
    X, y = raw_wine
    X = StandardScaler().fit_transform(X)
    auto = clone(learner).fit(X, y)
    none = clone(learner).set_params(scaling="none").fit(X, y)
    assert auto.scaling_ == "none"
    assert "scaling" not in auto.metric_.parameters
    np.testing.assert_array_equal(auto.components_, none.components_)


def test_auto_takes_tables_and_leaves_pixels_and_principal_components():
    for raw in (datasets.load_wine(), datasets.load_wdbc()):
        assert spread_ratio(np.asarray(raw.X)) > 3 * FACTOR
    pixels = np.asarray(datasets.load_digits().X)[:500]
    components = PCA(random_state=0).fit_transform(pixels)[:, :60]
    for X in (pixels, components, StandardScaler().fit_transform(pixels)):
        assert spread_ratio(X) < FACTOR / 3
        assert Scaling.of(X, kind="auto").spreads is None


def test_sparse_rows_are_standardised_only_if_told_and_never_centred(rng):
    dense = rng.exponential(size=(50, 4)) * [1e-3, 1.0, 1e3, 0.0]
    dense[rng.random(dense.shape) < 0.3] = 0
    X = scipy.sparse.csr_array(dense)
    assert Scaling.of(X, kind="auto").spreads is None
    scaling = Scaling.of(X, kind="standard")
    np.testing.assert_allclose(scaling.spreads[:3], dense.std(axis=0)[:3])
    assert scaling.spreads[3] == 1
    scaled = scaling.apply(X)
    assert scipy.sparse.issparse(scaled)
    assert scaled.nnz == X.nnz
    np.testing.assert_allclose(scaled.toarray(), dense / scaling.divisor)
    y = rng.integers(0, 2, 50)
    told = FRML(2, n_triplets=500, scaling="standard", random_state=0).fit(X, y)
    assert told.scaling_ == "standard"
    assert told.scale_.shape == (4,)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_are_those_of_each_feature_alone(rng, dtype, monkeypatch):
    monkeypatch.setattr(scalings, "BLOCK", 7)
    monkeypatch.setattr(scalings, "CENTRE_ROWS", 20)
    units = np.array([1e-30, 1e-3, 1.0, 1e4, 1e30])
    X = (rng.normal(size=(100, 5)) * units + 3 * units).astype(dtype)
    mean, spreads = feature_moments(X)
    precise = X.astype(np.longdouble)
    np.testing.assert_allclose(mean, precise.mean(axis=0).astype(float), rtol=1e-6)
    np.testing.assert_allclose(spreads, precise.std(axis=0).astype(float), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_feature_keeps_its_unit_and_changes_nothing(raw_wine, dtype):
    X, y = raw_wine
    X = X.astype(dtype)
    n = len(X)
    # Equal up to rounding, as one feature of some embedding models is.
    nearly = (np.float32(0.1) * (1 + np.finfo(dtype).eps * (np.arange(n) % 2))).astype(
        dtype
    )
    flat = np.column_stack((X, np.full(n, 1e6, dtype=dtype), nearly))
    scaling = Scaling.of(flat, kind="standard")
    np.testing.assert_array_equal(scaling.spreads[-2:], 1)
    assert spread_ratio(flat) == spread_ratio(X)
    with_it = MLR(measure="auc", scaling="standard").fit(flat, y)
    without = MLR(measure="auc", scaling="standard").fit(X, y)
    assert with_it.score(flat, y) == pytest.approx(without.score(X, y), abs=1e-3)


def test_rows_that_are_equal_are_refused_in_the_usual_words():
    for kind in ("none", "standard", "auto"):
        with pytest.raises(ValueError, match=r"X must have rows that differ"):
            Scaling.of(np.ones((5, 3)), kind=kind)


def test_priors_and_starts_are_metrics_of_the_rows_as_they_are(raw_wine, rng):
    X, y = raw_wine
    spreads = X.std(axis=0)
    factor = rng.normal(size=(13, 13))
    inside = factor @ factor.T + np.eye(13)
    prior = inside / np.outer(spreads, spreads)
    options = {"measure": "auc", "regularizer": "frobenius"}
    told = MLR(1.0, prior=prior, scaling="standard", **options).fit(X, y)
    before = MLR(1.0, prior=inside, scaling=None, **options).fit(X / spreads, y)
    np.testing.assert_allclose(
        told.components_ * spreads, before.components_, rtol=1e-6
    )
    start = rng.normal(size=(2, 13))
    steps = {"n_triplets": 100, "validation_fraction": 0, "random_state": 0}
    told = FRML(2, init=start, scaling="standard", **steps).fit(X, y)
    before = FRML(2, init=start * spreads, scaling=None, **steps).fit(X / spreads, y)
    np.testing.assert_allclose(
        told.components_ * spreads, before.components_, rtol=1e-4
    )
    told = GMML(0.5, reg=0.1, prior=prior, scaling="standard").fit(X, y)
    before = GMML(0.5, reg=0.1, prior=inside, scaling=None).fit(X / spreads, y)
    np.testing.assert_allclose(
        told.get_mahalanobis_matrix() * np.outer(spreads, spreads),
        before.get_mahalanobis_matrix(),
        rtol=1e-5,
        atol=1e-8,
    )


def test_pairs_of_points_are_standardised_too(raw_wine, rng):
    X, y = raw_wine
    i, j = rng.integers(0, len(X), (2, 400))
    signs = np.where(y[i] == y[j], 1, -1)
    pairs = np.stack((X[i], X[j]), axis=1)
    auto = GMML().fit(pairs, signs)
    spreads = pairs.reshape(-1, 13).std(axis=0)
    before = GMML(scaling=None).fit(pairs / spreads, signs)
    assert auto.scaling_ == "standard"
    np.testing.assert_allclose(
        auto.components_ * spreads, before.components_, rtol=1e-6
    )


def test_a_map_compared_by_products_standardises_only_if_told(raw_wine):
    X, y = raw_wine
    for options in ({"similarity": "cosine"}, {"sides": "query"}):
        assert ListwiseMap(**options).fit(X, y).scaling_ == "none"
    spreads = X.std(axis=0)
    told = ListwiseMap(sides="query", scaling="standard").fit(X, y).metric_
    before = ListwiseMap(sides="query", scaling=None).fit(X / spreads, y).metric_
    distances = told.rank(X, X).items, before.rank(X / spreads, X / spreads).items
    np.testing.assert_array_equal(*distances)


def test_what_auto_did_is_said_once(raw_wine, caplog):
    X, y = raw_wine
    standardising.say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="rankspace"):
        for _ in range(2):
            GMML().fit(X, y)
        GMML(scaling="standard").fit(X, y)
    said = [r.getMessage() for r in caplog.records if "standardises" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("GMML standardises the features")


def test_blocks_keep_their_units(raw_wine):
    X, y = raw_wine
    blocks = np.arange(13) // 7
    options = {"measure": "auc", "constraint": "blocks", "blocks": blocks}
    assert MLR(**options).fit(X, y).scaling_ == "none"
    with pytest.raises(
        ValueError, match="scaling='standard' is impossible with constr"
    ):
        MLR(scaling="standard", **options).fit(X, y)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_a_wrong_scaling_is_refused(learner, raw_wine):
    message = "scaling must be one of auto, standard, none: got 'l2'"
    with pytest.raises(ValueError, match=message):
        clone(learner).set_params(scaling="l2").fit(*raw_wine)
