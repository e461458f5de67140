"""Embedding metrics: laws of distances, and files that are complete or rejected."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from rankspace import AsymmetricMetric, BilinearMetric, LinearMetric, load_metric


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 6))
def test_linear_metric_is_a_pseudo_metric(seed, d, rank):
    rng = np.random.default_rng(seed)
    metric, X = LinearMetric(rng.normal(size=(rank, d))), rng.normal(size=(8, d))
    D = metric.distances(X, X)
    assert (D >= 0).all()
    assert (np.diag(D) == 0).all()
    np.testing.assert_allclose(D, D.T)
    assert (D[:, :, None] <= D[:, None, :] + D.T[None, :, :] + 1e-12).all()
    difference = X[0] - X[1]
    np.testing.assert_allclose(
        D[0, 1] ** 2, difference @ metric.matrix @ difference, atol=1e-12
    )
    assert np.linalg.eigvalsh(metric.matrix).min() >= -1e-12


@pytest.mark.parametrize(
    "transformer",
    [
        PCA(2),
        LinearDiscriminantAnalysis(),
        NeighborhoodComponentsAnalysis(2, max_iter=5, random_state=0),
        make_pipeline(StandardScaler(), PCA(3)),
    ],
    ids=["pca", "lda", "nca", "pipeline"],
)
def test_metric_of_a_transformer_has_its_distances(transformer):
    X, y = load_iris(return_X_y=True)
    Z = transformer.fit(X, y).transform(X)
    metric = LinearMetric.from_transformer(transformer)
    expected = np.linalg.norm(Z[:10, None] - Z[None, :10], axis=-1)
    np.testing.assert_allclose(metric.distances(X[:10], X[:10]), expected, atol=1e-10)


@pytest.mark.parametrize(
    "transformer",
    [
        PolynomialFeatures(2),
        QuantileTransformer(n_quantiles=20),
        MinMaxScaler(clip=True),
        KernelPCA(2, kernel="rbf", gamma=0.01),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_a_transformer_that_is_not_affine_is_rejected(transformer, rng):
    """Also where it is flat at the origin, far from the data."""
    transformer.fit(rng.normal(size=(200, 3)) * 5 + 100)
    with pytest.raises(ValueError, match="must be an affine map"):
        LinearMetric.from_transformer(transformer)


def test_a_transformer_must_be_fitted():
    with pytest.raises(NotFittedError):
        LinearMetric.from_transformer(PCA(2))


def test_load_of_a_class_rejects_another_kind(tmp_path):
    METRICS["bilinear"].save(tmp_path / "m")
    assert isinstance(BilinearMetric.load(tmp_path / "m"), BilinearMetric)
    with pytest.raises(
        ValueError, match=r"must hold a LinearMetric: got BilinearMetric"
    ):
        LinearMetric.load(tmp_path / "m")


def test_sparse_points_are_mapped_without_a_dense_copy(rng):
    X = scipy.sparse.csr_array(rng.random((20, 50)) * (rng.random((20, 50)) < 0.1))
    metric = LinearMetric(rng.normal(size=(3, 50)))
    np.testing.assert_allclose(metric.transform(X), metric.transform(X.toarray()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(rng, dtype):
    X = rng.normal(size=(5, 3)).astype(dtype)
    metric = LinearMetric(np.eye(3))
    assert metric.transform(X).dtype == dtype
    assert metric.distances(X, X).dtype == dtype
    assert BilinearMetric(np.eye(3), np.eye(3)).distances(X, X).dtype == dtype


METRICS = {
    "linear": LinearMetric(
        [[1.0, 2.0], [3.0, 4.0]], parameters={"C": 10, "measure": "map"}
    ),
    "single": LinearMetric(np.ones((1, 3), dtype=np.float32)),
    "bilinear": BilinearMetric(
        [[1.0, 2.0]], [[3.0]], parameters={"nested": {"a": [1, 2]}}
    ),
    "asymmetric": AsymmetricMetric([[1.0, 2.0]], [[3.0]], query_offset=[0.5]),
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_saved_and_loaded_is_the_same(metric, tmp_path):
    path = tmp_path / "metric.safetensors"
    metric.save(path)
    loaded = load_metric(path)
    assert type(loaded) is type(metric)
    assert loaded.parameters == metric.parameters
    for name in metric.arrays:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(metric, name))
        assert getattr(loaded, name).dtype == getattr(metric, name).dtype


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "metric.safetensors"
    METRICS["linear"].save(path)
    return path


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_truncated_file_is_rejected(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "metric.safetensors"
    METRICS["linear"].save(path)
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ValueError, match="damaged or cut short"):
        load_metric(path)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200))
def test_any_other_bytes_are_rejected(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("foreign") / "metric.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must be a metric file"):
        load_metric(path)


def write(path, header, **arrays):
    safetensors.numpy.save_file(arrays, path, header)


def test_a_foreign_safetensors_file_is_rejected(tmp_path):
    write(tmp_path / "m", None, weight=np.eye(2))
    with pytest.raises(ValueError, match="was not written by rankspace"):
        load_metric(tmp_path / "m")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rankspace_format": "2"},
            "has format version 2, and this rankspace reads up to version 1",
        ),
        ({"rankspace_format": "x"}, "has no format version"),
        (
            {"kind": "quantum"},
            "of kind linear, bilinear, asymmetric, kernel, local: got 'quantum'",
        ),
        ({"kind": "bilinear"}, "lacks the array 'item_map'"),
        ({"parameters": "{"}, "does not hold a valid metric"),
    ],
)
def test_a_strange_header_is_rejected(tmp_path, changes, message):
    header = {
        "rankspace_format": "1",
        "kind": "linear",
        "parameters": json.dumps({}),
    } | changes
    write(tmp_path / "m", header, components=np.eye(2))
    with pytest.raises(ValueError, match=message):
        load_metric(tmp_path / "m")


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (np.full((2, 2), np.nan), "must be finite"),
        (np.full((2, 2), np.inf), "must be finite"),
        (np.ones(3), r"components must have 2 dimensions: got shape \(3,\)"),
        (np.ones((0, 3)), r"components must not be empty: got shape \(0, 3\)"),
    ],
)
def test_bad_numbers_are_rejected(tmp_path, components, message):
    with pytest.raises(ValueError, match=message):
        LinearMetric(components)
    header = {"rankspace_format": "1", "kind": "linear"}
    write(tmp_path / "m", header, components=components)
    with pytest.raises(ValueError, match=message):
        load_metric(tmp_path / "m")


def test_a_pickle_is_not_executed(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(
        b"cos\nsystem\n(S'touch " + os.fsencode(tmp_path / "ran") + b"'\ntR."
    )
    with pytest.raises(ValueError, match="must be a metric file"):
        load_metric(path)
    assert not (tmp_path / "ran").exists()


def test_a_failed_save_leaves_the_old_file(saved):
    content = saved.read_bytes()
    broken = LinearMetric([[1.0]], parameters={"not JSON": object()})
    with pytest.raises(TypeError):
        broken.save(saved)
    assert saved.read_bytes() == content
    assert os.listdir(saved.parent) == [saved.name]


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_metric(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        METRICS["linear"].save(tmp_path / "no" / "m")


def test_a_metric_does_not_change_with_the_array_it_was_made_of():
    components = np.eye(2)
    metric = LinearMetric(components)
    components[0, 0] = 7
    assert metric.components[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        metric.components[0, 0] = 7


def test_maps_of_a_bilinear_metric_must_have_as_many_rows():
    with pytest.raises(ValueError, match=r"same number of rows: got \[1, 2, 1\]"):
        BilinearMetric([[1.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"same number of rows: got \[1, 1, 2\]"):
        BilinearMetric([[1.0]], [[1.0]], query_offset=[1.0, 2.0])
