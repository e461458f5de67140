"""What no learner may depend on: the unit of the data, and the number of BLAS threads."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from rankspace import (
    FRML,
    GMML,
    ITML,
    LGMML,
    LMNN,
    LORETA,
    MLCC,
    MLR,
    MLRCV,
    OASIS,
    PARCA,
    SVMMAP,
    Euclidean,
    GraphMLR,
    KernelMLR,
    ListwiseMap,
    LogisticPARCA,
    Relevance,
    RobustMLR,
)
from rankspace._engine.vectors import has_equal_norms
from rankspace.learners.solvers.points import lazy_points, scaled_points
from rankspace.learners.solvers.scaling import Scaling
from rankspace.learners.solvers.smooth import pair_loss

SEED = {"random_state": 0}
LEARNERS = [
    Euclidean(),
    FRML(4, n_triplets=1500, **SEED),
    FRML(4, graph_reg=0.1, n_triplets=1500, **SEED),
    GMML(),
    GMML(t=0.2, n_pairs=300, **SEED),
    GraphMLR(graph_reg=10.0, max_iter=10),
    ITML(n_pairs=200, max_iter=20, **SEED),
    LGMML(10, **SEED),
    LGMML(1, scaling="standard"),
    LMNN(max_iter=20),
    LORETA(4, n_triplets=1000, **SEED),
    ListwiseMap(max_iter=10, sides="separate"),
    LogisticPARCA(2, beta=0.1, max_iter=20, **SEED),
    MLCC(max_iter=10),
    MLR(max_iter=10),
    MLR("auto", max_iter=3),
    MLRCV((10, 100), max_iter=5, **SEED),
    OASIS(n_triplets=1000, **SEED),
    PARCA(2, reg=0.003, max_iter=20, **SEED),
    PARCA(2, reg=0.003, max_iter=20, solver="minibatch", **SEED),
    RobustMLR(max_iter=10),
    SVMMAP(max_iter=10),
]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2] + 0.5, y[::2]


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **options)


@pytest.mark.parametrize("model", LEARNERS, ids=str)
def test_the_unit_of_the_data_does_not_matter(model, wine):
    X, y = wine
    expected = fit(model, X, y).rank(X[::5], X).items
    for k in (-665, -500, -40, 40, 500, 665):
        Z = 2.0**k * X
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            found = fit(model, Z, y).rank(Z[::5], Z).items
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("k", [-665, 665])
def test_kernels_of_data_in_an_impossible_unit_are_refused(k, wine):
    X, y = wine
    for kernel in ("rbf", "linear"):
        with pytest.raises(ValueError, match=r"X must be of size .* by a constant"):
            KernelMLR(kernel=kernel).fit(2.0**k * X, y)


@pytest.mark.parametrize("k", [-665, 665])
def test_weights_of_blocks_in_any_unit(k, wine):
    X, y = wine
    model = MLR(constraint="blocks", blocks=np.arange(13) // 7, max_iter=5)
    expected = fit(model, X, y).rank(X[::5], X).items
    found = fit(model, 2.0**k * X, y).rank(2.0**k * X[::5], 2.0**k * X).items
    np.testing.assert_array_equal(found, expected)


def metric_of(model, n_threads, *data, **options):
    with threadpool_limits(n_threads):
        metric = fit(model, *data, **options).metric_
    return {
        name: value for name, value in vars(metric).items() if hasattr(value, "shape")
    }


# MLR's decompositions take all threads above 512 features.
@pytest.mark.parametrize("model", LEARNERS, ids=str)
@pytest.mark.parametrize("separate", [False, True], ids=["rows", "queries"])
def test_the_number_of_blas_threads_does_not_matter(model, separate):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    X = rng.normal(size=(400, 96)) + 0.3 * rng.normal(size=(4, 96))[y]
    data, options = (X, y), {}
    if separate:
        data = (X[:300], Relevance.from_labels(y[:300], query_labels=y[300:]))
        options = {"queries": X[300:]}
    one, two = (metric_of(model, n, *data, **options) for n in (1, 2))
    for name, expected in one.items():
        np.testing.assert_array_equal(two[name], expected, err_msg=name)


def test_a_path_does_not_depend_on_the_number_of_blas_threads():
    """It is wide enough for products of two threads to round otherwise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 384)), np.arange(300) % 4
    relevance = Relevance.from_labels(y, query_labels=y[:100])
    model = ListwiseMap(sides="query", similarity="cosine", max_iter=5)
    maps = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            path = list(model.path(X, relevance, [0.1, 0.01], queries=X[:100] + 1))
        maps.append([metric.query_map for metric in path])
    np.testing.assert_array_equal(*maps)


def test_blocks_do_not_depend_on_the_number_of_threads(monkeypatch):
    relevance = Relevance.from_labels(np.arange(300) % 2)
    X = np.zeros((300, 2))
    blocks = []
    for n in (1, 8):
        monkeypatch.setattr(pair_loss, "n_threads", lambda n=n: n, raising=False)
        blocks.append(pair_loss.PairLoss(X, X, relevance, 1).blocks)
    assert [block.size for block in blocks[0]] == [block.size for block in blocks[1]]


# ---------------------------------------------------------------------- scaling


@pytest.mark.parametrize("k", [-700, -500, 0, 500, 700])
@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_by_the_mean_and_all_distances(k, sparse, rng):
    X = rng.normal(size=(50, 3)) + 2
    unit = 2.0**k
    pairs = [np.sum((a - b) ** 2) for a in X for b in X]
    expected = np.sqrt(np.mean(pairs))
    scaling = Scaling.of(scipy.sparse.csr_array(unit * X) if sparse else unit * X)
    assert scaling.scale / unit == pytest.approx(expected, rel=1e-12)
    if sparse:
        assert scaling.mean is None
    else:
        np.testing.assert_allclose(scaling.mean / unit, X.mean(axis=0), rtol=1e-12)
        norms = np.sqrt(np.mean(np.sum(X**2, axis=1)))
        found = Scaling.of_norms(unit * X).scale
        assert found / unit == pytest.approx(norms, rel=1e-12)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e-200, 1e200])
def test_equal_rows_have_no_scale(wrap, value):
    with pytest.raises(ValueError, match="X must have rows that differ"):
        Scaling.of(wrap(np.full((7, 3), value)))


def test_a_large_offset_does_not_hide_the_scale(rng):
    X = rng.normal(size=(200, 2))
    moved = Scaling.of(X + 1e6).scale
    assert moved == pytest.approx(Scaling.of(X).scale, rel=1e-8)


def test_rounded_data_know_no_unit(rng):
    X = rng.normal(size=(40, 3))
    one, other = (Scaling.of(c * X, rounded=True).apply(c * X) for c in (1.0, 0.3))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("separate", [False, True])
def test_lazy_points_are_those_in_memory(separate, rng):
    X, Q = rng.normal(size=(20, 3)).astype(np.float32), rng.normal(size=(6, 3))
    relevance = Relevance.from_labels(
        np.arange(20) % 2, query_labels=np.arange(6) % 2 if separate else None
    )
    queries = Q if separate else None
    scaling = Scaling.of(X)
    lazy = lazy_points(X, relevance, queries, scaling)
    loaded = scaled_points(X, relevance, queries, scaling)
    rows = np.concatenate((X, Q)) if separate else X
    expected = (rows - X.mean(axis=0, dtype=float)) / scaling.scale
    assert loaded.matrix.dtype == np.float32
    np.testing.assert_allclose(loaded.matrix, expected, rtol=1e-4, atol=1e-6)
    for points in (lazy, loaded):
        assert points.n == len(rows)
        mixed = np.array([0, len(rows) - 1, 3])
        np.testing.assert_array_equal(points.matrix[mixed], loaded.matrix[mixed])
        np.testing.assert_array_equal(points.matrix[15:], loaded.matrix[15:])
        np.testing.assert_array_equal(points.items[:], loaded.matrix[:20])
        np.testing.assert_array_equal(points.items[2:5], loaded.matrix[2:5])
        by_row = loaded.matrix[loaded.query_rows]
        np.testing.assert_array_equal(points.queries[np.arange(3)], by_row[:3])
        some = points._replace(query_rows=points.query_rows[1::2])
        every = np.arange(len(some.query_rows))
        np.testing.assert_array_equal(some.queries[every], by_row[1::2])


# ---------------------------------------------------------------------- other places


@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e150, 1e200])
def test_distances_of_pairs_in_any_unit(unit, wine):
    X, y = wine
    model = Euclidean().fit(unit * X, y)
    pairs = np.stack((X[:5], X[5:10]), axis=1)
    expected = [np.sqrt(np.sum((a - b) ** 2)) for a, b in pairs]
    np.testing.assert_allclose(model.pair_distance(unit * pairs) / unit, expected)
    between = model.metric_.distances(unit * X[:5], unit * X[5:10])
    np.testing.assert_allclose(np.diag(between) / unit, expected)
    distance = model.get_metric()
    found = [distance(*(unit * pair)) / unit for pair in pairs]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_equal_norms_in_any_unit(unit, rng):
    X = rng.normal(size=(30, 4))
    assert not has_equal_norms(unit * X)
    assert has_equal_norms(unit * X / np.linalg.norm(X, axis=1, keepdims=True))


def test_importance_of_features_in_any_unit(wine):
    X, y = wine
    model = LogisticPARCA(2, beta=0.1, max_iter=10, **SEED)
    expected = fit(model, X, y).importance_
    for unit in (2.0**-700, 2.0**700):
        found = fit(model, unit * X, y).importance_
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_chosen_model_of_the_path_is_fitted(wine):
    X, y = wine
    model = fit(MLRCV((10, 100), max_iter=5, **SEED), X, y)
    np.testing.assert_array_equal(
        model.model_.rank(X[:3], X).items, model.rank(X[:3], X).items
    )
