"""Reduced metrics beside PCA of scikit-learn on mapped vectors."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from rankspace import AsymmetricMetric, BilinearMetric, LinearMetric
from rankspace.metrics import reduction

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 6)) * [5, 3, 2, 1, 0.5, 0.1] + 40.0
Q = rng.normal(size=(30, 6)) + 40.0
A, B = rng.normal(size=(2, 5, 6))
METRICS = {
    "linear": LinearMetric(B),
    "cosine": LinearMetric(B, similarity="cosine"),
    "bilinear": BilinearMetric(A, B, query_offset=np.arange(5.0)),
    "asymmetric": AsymmetricMetric(A, B, query_offset=np.arange(5.0)),
}


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


def unit(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@pytest.mark.parametrize("n_components", [1, 3, 5])
def test_distances_are_those_of_projected_vectors(metric, n_components, monkeypatch):
    """By PCA of the mapped items, and a projector on its components."""
    monkeypatch.setattr(reduction, "ROWS", 64)
    queries, items = (unit(Q), unit(X)) if metric.similarity == "cosine" else (Q, X)
    queries = queries @ metric.query_map.T + metric.query_offset
    items = items @ metric.item_map.T
    components = PCA(n_components).fit(items).components_
    queries, items = queries @ components.T, items @ components.T
    expected = cdist(queries, items)
    if metric.inner_product:
        expected = -queries @ items.T
    found = metric.reduce(X, n_components)
    assert type(found) is type(metric)
    assert found.similarity == metric.similarity
    assert found.item_map.shape == (n_components, 6)
    np.testing.assert_allclose(found.distances(Q, X), expected, rtol=1e-6, atol=1e-6)


def test_full_width_changes_no_ranking(metric):
    whole = metric.reduce(X, 5)
    for (one, _), (other, _) in zip(metric.rank(Q, X), whole.rank(Q, X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_components_vary_alike():
    """The variances of reduced items differ by less than those of principal components."""
    wide = np.random.default_rng(1).normal(size=(500, 30)) * np.geomspace(20, 1, 30)
    metric = BilinearMetric(np.eye(30), np.eye(30))
    variances = metric.reduce(wide, 20).embed_items(wide).var(axis=0)
    principal = PCA(20).fit(wide).explained_variance_
    assert variances.sum() == pytest.approx(principal.sum(), rel=0.01)
    assert variances.max() / variances.min() < 0.2 * principal[0] / principal[-1]


def test_turned_items_are_nearer_to_their_signs_than_after_random_turns():
    wide = np.random.default_rng(1).normal(size=(500, 30)) * np.geomspace(20, 1, 30)
    items = BilinearMetric(np.eye(30), np.eye(30)).reduce(wide, 20).embed_items(wide)
    losses = []
    for seed in range(5):
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(20, 20)))[0]
        losses.append(np.abs(items @ turn).sum())
    # Of vectors of given length, those nearest to their signs have the largest sum of sizes.
    assert np.abs(items).sum() > 1.02 * max(losses)


def test_the_number_of_blas_threads_changes_no_bit():
    wide = np.random.default_rng(0).normal(size=(1000, 384)).astype("f4")
    metric = BilinearMetric(np.eye(384, dtype="f4"), np.eye(384, dtype="f4"))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(metric.reduce(wide, 200).item_map)
    np.testing.assert_array_equal(*found)


def test_precision_and_parameters_stay_and_files_load(tmp_path):
    metric = BilinearMetric(
        A.astype("f4"), B.astype("f4"), similarity="cosine", parameters={"a": 1}
    )
    small = metric.reduce(X.astype("f2"), 2)
    assert small.query_map.dtype == small.item_map.dtype == np.float32
    assert small.parameters == {"a": 1, "n_components": 2}
    small.save(tmp_path / "m")
    np.save(tmp_path / "X.npy", X.astype("f2"))
    again = metric.reduce(tmp_path / "X.npy", 2)
    np.testing.assert_array_equal(small.query_map, again.query_map)


@pytest.mark.parametrize(
    ("n_components", "message"),
    [
        (6, "n_components must be at most 5, the width of the mapped vectors: got 6"),
        (0, "n_components must be a whole number from 1"),
        (2.5, "n_components must be a whole number from 1"),
    ],
)
def test_widths_that_are_none_are_named(n_components, message):
    with pytest.raises(ValueError, match=message):
        METRICS["linear"].reduce(X, n_components)
    with pytest.raises(ValueError, match="6 features"):
        METRICS["linear"].reduce(X[:, :3], 2)
