"""Local metrics: sums over metrics against loops, reranking, explanations and files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from rankspace import BilinearMetric, Index, LinearMetric, LocalMetric, load_metric
from rankspace.metrics.feature_scaling import FeatureScaling
from rankspace.metrics.local import KERNELS, list_profile

KERNEL_VALUES = {
    "paper": lambda d: d * np.exp(-d),
    "rbf": lambda d: 1 - np.exp(-(d**2) / 2),
    "distance": lambda d: d,
}


def anchored(rng, kernel="rbf", linear=True, **options):
    return LocalMetric(
        rng.normal(size=(4, 2, 3)),
        rng.normal(size=4),
        anchors=rng.normal(size=(4, 3)),
        linear=rng.normal(size=3) if linear else None,
        kernel=kernel,
        **options,
    )


def from_queries(rng, kernel="rbf", **options):
    return LocalMetric(
        rng.normal(size=(4, 2, 3)), rng.uniform(size=4), kernel=kernel, **options
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(list(KERNELS)), st.booleans())
def test_scores_are_sums_over_metrics(seed, kernel, linear):
    rng = np.random.default_rng(seed)
    metric, X = anchored(rng, kernel, linear), rng.normal(size=(7, 3))
    expected = [
        -sum(
            w * KERNEL_VALUES[kernel](np.linalg.norm(L @ (x - p)))
            for w, L, p in zip(
                metric.weights[0], metric.factors, metric.anchors, strict=True
            )
        )
        + (metric.linear @ x if linear else 0)
        for x in X
    ]
    np.testing.assert_allclose(metric.scores(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        metric.contributions(X).sum(axis=1), metric.scores(X), atol=1e-9
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(list(KERNELS)))
def test_distances_from_queries_are_sums_over_metrics(seed, kernel):
    rng = np.random.default_rng(seed)
    metric, X, Q = (
        from_queries(rng, kernel),
        rng.normal(size=(6, 3)),
        rng.normal(size=(2, 3)),
    )
    distances = metric.distances(Q, X)
    for q, x in np.ndindex(2, 6):
        expected = sum(
            w * KERNEL_VALUES[kernel](np.linalg.norm(L @ (X[x] - Q[q])))
            for w, L in zip(metric.weights[0], metric.factors, strict=True)
        )
        assert distances[q, x] == pytest.approx(expected)
    np.testing.assert_allclose(
        metric.distances(X, X), metric.distances(X, X).T, atol=1e-12
    )
    assert (np.diag(metric.distances(X, X)) == 0).all()


def test_weights_are_averaged_over_the_nearest_reference_profiles(rng):
    profiles = rng.normal(size=(9, 3))
    weights = rng.uniform(size=(9, 4))
    metric = LocalMetric(
        rng.normal(size=(4, 2, 3)),
        weights,
        reference_profiles=profiles,
        n_neighbors=3,
    )
    q = rng.normal(size=3)
    nearest = np.argsort(np.linalg.norm(profiles - q, axis=1))[:3]
    np.testing.assert_allclose(
        metric.weights_at(q[None])[0], weights[nearest].mean(axis=0)
    )
    alone = LocalMetric(metric.factors, weights[nearest].mean(axis=0))
    X = rng.normal(size=(5, 3))
    np.testing.assert_allclose(
        metric.distances(q[None], X), alone.distances(q[None], X)
    )


def test_lists_get_the_weights_of_similar_lists(rng):
    X, qid = rng.normal(size=(20, 3)), np.repeat([5, 3], 10)
    profiles = np.stack([list_profile(X[:10]), list_profile(X[10:])])
    weights = rng.uniform(size=(2, 4))
    anchors = rng.normal(size=(4, 3))
    factors = rng.normal(size=(4, 2, 3))
    metric = LocalMetric(
        factors,
        weights,
        anchors=anchors,
        reference_profiles=profiles,
        n_neighbors=1,
    )
    for half in (0, 1):
        single = LocalMetric(factors, weights[half], anchors=anchors)
        rows = slice(10 * half, 10 * half + 10)
        np.testing.assert_allclose(metric.scores(X, qid)[rows], single.scores(X[rows]))


def test_candidates_of_an_index_are_reranked(rng):
    metric, X, Q = from_queries(rng), rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    whole = metric.rank(Q, X)
    every = metric.rerank(Q, X, Index(X).rank(Q))
    np.testing.assert_array_equal(every.items, whole.items)
    assert metric.rank(Q, X, k=3).items.size == 12
    by_lists = metric.rerank(Q, X, [[3, 1], [], [7], [2, 0, 9]])
    assert [len(items) for items, _ in by_lists] == [2, 0, 1, 3]
    with pytest.raises(ValueError, match="a list for each of 4 queries: got 1"):
        metric.rerank(Q, X, [[0]])
    for bad in ([-1], [50], [0.5]):
        with pytest.raises(ValueError, match="must"):
            metric.rerank(Q, X, [bad, [], [7], [2]])
    with pytest.raises(
        ValueError, match="LocalMetric does not: use its own rank, or rerank"
    ):
        Index(X, metric)


def test_far_from_the_origin_in_single_precision(rng):
    X = (rng.normal(size=(200, 3)) + 1e4).astype(np.float32)
    scaling = FeatureScaling.of(X, "none")
    metric = LocalMetric(
        np.ones((1, 3, 3)) * np.eye(3), [1.0], kernel="distance", scaling=scaling
    )
    np.testing.assert_array_equal(
        metric.rank(X[:20], X, 10).items, Index(X).rank(X[:20], 10).items
    )


def test_explanations_list_the_largest_contributions_first():
    metric = LocalMetric(
        np.ones((2, 1, 2)) * [[[1, 0]], [[0, 1]]],
        [1.0, 5.0],
        anchors=np.zeros((2, 2)),
        kernel="distance",
        linear=[0.0, 0.1],
    )
    X = np.array([[0.0, 1.0], [0.0, 0.0], [3.0, 0.0]])
    reasons = metric.explain_list(X, top=2)
    assert reasons[0][0].name == "anchor 1"
    assert reasons[0][0].contribution == pytest.approx(-5 + 5 / 3)
    assert reasons[2][0].name == "anchor 0"
    assert reasons[2][0].contribution == pytest.approx(-3 + 1)
    np.testing.assert_allclose(metric.contributions(X)[0], [0, -5, 0, 0.1])


@pytest.mark.parametrize("kind", ["none", "joined", "rank-gauss"])
def test_saved_files_hold_the_feature_scaling(kind, rng, tmp_path):
    X = rng.lognormal(size=(40, 3))
    scaling = FeatureScaling.of(X, kind)
    d = scaling.n_scaled
    metric = LocalMetric(
        rng.normal(size=(4, 2, d)),
        rng.normal(size=4),
        anchors=rng.normal(size=(4, d)),
        scaling=scaling,
        kernel="paper",
        parameters={"method": "test"},
    )
    metric.save(tmp_path / "m.safetensors")
    loaded = LocalMetric.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.scores(X), metric.scores(X))
    assert loaded.parameters == metric.parameters
    with pytest.raises(ValueError, match="must hold a LinearMetric"):
        LinearMetric.load(tmp_path / "m.safetensors")


def test_scores_in_blocks_are_those_of_single_rows(rng, monkeypatch):
    metric, X = anchored(rng), rng.normal(size=(300, 3))
    whole = metric.scores(X)
    monkeypatch.setattr("rankspace.metrics.local.BLOCK", 64)
    np.testing.assert_allclose(metric.scores(X), whole, rtol=1e-12)


def test_wrong_shapes(rng):
    with pytest.raises(ValueError, match="factors must have 3 dimensions"):
        LocalMetric(np.eye(3), [1.0])
    with pytest.raises(
        ValueError, match=r"need weights of shape \(1, 3\).* got weights \(1, 2\)"
    ):
        LocalMetric(np.ones((3, 2, 4)), [1.0, 1.0])
    with pytest.raises(ValueError, match="X must have 3 features: got 2"):
        anchored(rng).scores(np.ones((2, 2)))
    with pytest.raises(ValueError, match="measures from anchors, not from queries"):
        anchored(rng).rank(np.ones((1, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="kernel must be one of paper, rbf, distance"):
        LocalMetric(np.ones((1, 1, 1)), [1.0], kernel="none")


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_items_whose_squares_leave_the_range_are_refused(unit, rng):
    metric = LocalMetric(np.ones((1, 1, 2)), [1.0], kernel="distance")
    X = rng.normal(size=(6, 2))
    with pytest.raises(ValueError, match="items under a local metric must be of size"):
        metric.rank(X[:2], unit * X)
    fitted = LocalMetric(np.ones((1, 1, 2)) / unit, [1.0], kernel="distance")
    found = fitted.rank(unit * X, unit * X).items
    np.testing.assert_array_equal(found, metric.rank(X, X).items)


@pytest.mark.parametrize("kind", [None, "l2", "standard", "rank-gauss", "joined"])
def test_feature_scaling_knows_no_unit(kind, rng):
    X = rng.normal(size=(30, 3))
    kind = kind or "none"
    expected = FeatureScaling.of(X, kind).apply(X)
    for unit in (2.0**-700, 2.0**700):
        found = FeatureScaling.of(unit * X, kind).apply(unit * X)
        if kind == "none":
            found = found * (expected[0, 0] / found[0, 0])
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    far_apart = X * [1, 2.0**-700, 1]
    if kind != "none":
        found = FeatureScaling.of(far_apart, kind).apply(far_apart)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# ---------------------------------------------------------------------- crafted files


@pytest.fixture
def stored(rng, tmp_path):
    """The arrays and the header of a saved metric with curves."""
    X = rng.normal(size=(20, 3))
    metric = anchored(rng, scaling=FeatureScaling.of(X, "rank-gauss"))
    metric.save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="numpy") as content:
        return load_file(tmp_path / "m"), content.metadata()


CRAFTED = {
    "knots of fewer features": ({"knots": np.zeros((1, 256))}, "have a row for each"),
    "knots without columns": ({"knots": np.zeros((3, 0))}, "a power of two of knots"),
    "knots of another width": ({"knots": np.zeros((3, 128))}, "have a row for each"),
    "values of fewer features": ({"values": np.zeros((2, 256))}, "have a row for each"),
    "an odd number of knots": (
        {"knots": np.zeros((3, 7)), "values": np.zeros((3, 7))},
        "a power of two of knots",
    ),
    "knots that fall": (
        {"knots": np.tile(-np.arange(256.0), (3, 1))},
        "knots of a feature must not fall",
    ),
    "values that fall": (
        {"values": np.tile(-np.arange(256.0), (3, 1))},
        "values of a feature must not fall",
    ),
    "NaN in knots": ({"knots": np.full((3, 256), np.nan)}, "knots must be finite"),
    "a fill of another length": ({"fill": np.zeros(1)}, "one number for each feature"),
    "an offset of another length": ({"offset": np.zeros(4)}, "one number for each"),
    "an offset that is a matrix": ({"offset": np.zeros((3, 1))}, "1 dimensions"),
    "a scale of another length": ({"scale": np.ones(2)}, "one number for each"),
    "a scale of zero": ({"scale": np.zeros(3)}, "scale must be positive: got 0"),
    "a negative scale": ({"scale": -np.ones(3)}, "scale must be positive: got -1"),
    "a scale of NaN": ({"scale": np.full(3, np.nan)}, "scale must be finite"),
    "complex weights": (
        {"weights": np.ones((1, 4), np.complex64)},
        "must hold real numbers",
    ),
    "no metrics": (
        {
            "factors": np.zeros((0, 2, 3)),
            "weights": np.zeros((1, 0)),
            "anchors": np.zeros((0, 3)),
        },
        "factors must not be empty",
    ),
    "profiles of another width": (
        {"reference_profiles": np.zeros((1, 3))},
        "reference_profiles must have 6 columns",
    ),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_arrays_that_do_not_fit_each_other_are_refused(stored, tmp_path, case):
    arrays, header = stored
    changes, message = CRAFTED[case]
    save_file(arrays | changes, tmp_path / "crafted", header)
    with pytest.raises(ValueError, match=message):
        load_metric(tmp_path / "crafted")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number from 1: got 0"),
        ({"n_neighbors": -3}, "n_neighbors must be a whole number from 1: got -3"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number from 1: got 2.5"),
        ({"n_neighbors": None}, "n_neighbors must be a whole number from 1: got None"),
        ({"scaling": "unheard-of"}, "scaling must be one of none, l2"),
        ({"scaling": "standard"}, "of no knots"),
        ({"scaling": ["joined"]}, "scaling must be one of"),
        ({"kernel": 3}, "kernel must be one of"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(stored, tmp_path, changes, message):
    arrays, header = stored
    header["parameters"] = json.dumps(json.loads(header["parameters"]) | changes)
    save_file(arrays, tmp_path / "crafted", header)
    with pytest.raises(ValueError, match=message):
        load_metric(tmp_path / "crafted")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"parameters": "[1]"}, "must be a JSON object: got list"),
        ({"parameters": "{}"}, "lacks the parameter 'kernel'"),
        ({"parameters": "[" * 100_000}, "its parameters must be JSON"),
        ({"rankspace_format": "²"}, "has no format version"),
        ({"rankspace_format": "9" * 5000}, "has no format version"),
    ],
)
def test_headers_that_are_no_mapping_are_refused(stored, tmp_path, header, message):
    arrays, good = stored
    save_file(arrays, tmp_path / "crafted", good | header)
    with pytest.raises(ValueError, match=message):
        load_metric(tmp_path / "crafted")


def test_brain_floats_are_refused(tmp_path):
    header = json.dumps(
        {
            "__metadata__": {"rankspace_format": "1", "kind": "linear"},
            "components": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]},
        }
    ).encode()
    (tmp_path / "m").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ValueError, match=r"must be a metric file|real numbers"):
        load_metric(tmp_path / "m")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_out_of_range_are_an_error_and_not_nan(rng):
    far = np.full((1, 2), 1e200)
    from_anchor = LocalMetric(
        np.full((1, 1, 2), 1e200), [1.0], anchors=[[0.0, 0.0]], kernel="paper"
    )
    with pytest.raises(ValueError, match="scores must be finite"):
        from_anchor.scores(far)
    with pytest.raises(ValueError, match="contributions must be finite"):
        from_anchor.contributions(far)
    from_query = LocalMetric(np.ones((1, 1, 2)), [1.0], kernel="paper")
    with pytest.raises(ValueError, match="distances must be finite"):
        from_query.distances(far, np.ones((1, 2)))
    with pytest.raises(ValueError, match="vectors under the metric must be finite"):
        LinearMetric(far).transform(far)
    with pytest.raises(ValueError, match="inner products must be finite"):
        BilinearMetric(far, far).distances([[1.0, -1.0 / 3]], [[1.0, 0.0]])
