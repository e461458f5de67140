"""Explanations sum to the score, for every kind of metric, and their parts are what they say."""

import pickle

import numpy as np
import pytest

from rankspace import (
    AsymmetricMetric,
    BilinearMetric,
    Fields,
    KernelMetric,
    LinearMetric,
    LocalMetric,
    Relevance,
    tune,
)
from rankspace.metrics import unchanged_metric
from rankspace.metrics.feature_scaling import FeatureScaling

D = 5


def maps(n_components=4, n_features=D, seed=0):
    return np.random.default_rng(seed).normal(size=(n_components, n_features))


def separate(kind, similarity, offset=True, n_query_features=D, seed=0):
    offsets = np.random.default_rng(seed).normal(size=4) if offset else None
    return kind(
        maps(n_features=n_query_features, seed=seed),
        maps(seed=seed + 1),
        query_offset=offsets,
        similarity=similarity,
    )


def kernel_metric(seed=0):
    kernels = [{"name": "rbf", "gamma": 0.3}, {"name": "poly", "gamma": 0.1}]
    return KernelMetric(maps(6, seed=3), maps(3, 12, seed), kernels=kernels)


def local_metric(**options):
    factors = np.random.default_rng(2).normal(size=(3, 2, D))
    return LocalMetric(factors, [0.5, 1.0, -0.2], **options)


METRICS = {
    "linear": LinearMetric(maps()),
    "linear float32": LinearMetric(maps().astype(np.float32)),
    "linear, cosine": LinearMetric(maps(), similarity="cosine"),
    "bilinear": separate(BilinearMetric, "dot"),
    "bilinear, cosine": separate(BilinearMetric, "cosine"),
    "query map": BilinearMetric(maps(D), np.eye(D), similarity="cosine"),
    "asymmetric": separate(AsymmetricMetric, "euclidean"),
    "asymmetric, cosine": separate(AsymmetricMetric, "cosine"),
    "asymmetric, no offset": separate(AsymmetricMetric, "euclidean", False),
    "kernel": kernel_metric(),
    "local": local_metric(),
    "local, distance": local_metric(kernel="distance"),
}
BASELINES = {
    "none": None,
    "unchanged": "unchanged",
    "linear": LinearMetric(maps(seed=7)),
    "linear, cosine": LinearMetric(maps(seed=7), similarity="cosine"),
    "bilinear": separate(BilinearMetric, "dot", seed=7),
    "asymmetric": separate(AsymmetricMetric, "cosine", seed=7),
    "kernel": kernel_metric(7),
    "local": local_metric(),
}


def pair(scale=1.0):
    q, x = np.random.default_rng(5).normal(scale=scale, size=(2, D))
    return q, x


def score(metric, q, x):
    return -metric.distances(q[None], x[None])[0, 0]


def total(parts):
    return sum(part.contribution for part in parts)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("kind", METRICS)
def test_directions_sum_to_the_score(kind, baseline, scale):
    metric, other = METRICS[kind], BASELINES[baseline]
    q, x = pair(scale)
    found = metric.explain(q, x, other)
    expected = score(metric, q, x)
    largest = max(1.0, abs(found.score), abs(found.baseline))
    near = pytest.approx(expected, abs=1e-8 * largest)
    assert found.score == near
    assert total(found.directions) + found.baseline == near
    assert total(found.top(2)) == pytest.approx(
        total(found.directions), abs=1e-8 * largest
    )
    if other is None:
        assert found.baseline == 0
    elif other != "unchanged":
        assert found.baseline == pytest.approx(score(other, q, x))
    sizes = [abs(part.contribution) for part in found.directions]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("kind", [n for n in METRICS if "local" not in n])
def test_unchanged_vectors_are_compared_as_the_metric_compares(kind):
    metric = METRICS[kind]
    q, x = pair()
    before = metric.explain(q, x, "unchanged").baseline
    if metric.similarity == "cosine":
        q, x = q / np.linalg.norm(q), x / np.linalg.norm(x)
    expected = q @ x if metric.inner_product else -np.linalg.norm(q - x)
    assert before == pytest.approx(expected)


def test_the_direction_is_the_one_that_was_stretched():
    direction = np.array([0.6, 0.8, 0, 0, 0])
    stretched = np.eye(D) + 2 * np.outer(direction, direction)
    metric = BilinearMetric(stretched, np.eye(D))
    q, x = pair()
    (only,) = metric.explain(q, x, "unchanged").directions
    assert only.contribution == pytest.approx(2 * (q @ direction) * (x @ direction))
    shared = LinearMetric(stretched).explain(q, x, "unchanged")
    (only,) = shared.directions
    squares = ((q - x) @ direction) ** 2 * 8
    assert only.contribution == pytest.approx(
        squares / (shared.score + shared.baseline)
    )


def test_the_metric_itself_is_no_news():
    for kind in ("linear", "bilinear", "asymmetric"):
        metric = METRICS[kind]
        found = metric.explain(*pair(), metric)
        assert found.difference == 0
        assert total(found.directions) == pytest.approx(0, abs=1e-12)
    same = LinearMetric(np.eye(D)).explain(pair()[0], pair()[0], "unchanged")
    assert (same.score, total(same.directions)) == (0, 0)


def test_queries_may_be_wider_than_items(rng):
    metric = separate(BilinearMetric, "dot", n_query_features=3)
    q, x = rng.normal(size=3), rng.normal(size=D)
    found = metric.explain(q, x)
    assert total(found.directions) == pytest.approx(score(metric, q, x))
    with pytest.raises(ValueError, match="equally many features: got 3 and 5"):
        metric.explain(q, x, "unchanged")


def test_anchors_and_features_are_the_parts():
    metric = local_metric(anchors=maps(3, seed=9), linear=np.arange(D) / 9)
    _, x = pair()
    found = metric.explain(None, x)
    assert found.score == pytest.approx(metric.scores(x[None])[0])
    parts = {part.name: part.contribution for part in found.directions}
    expected = metric.contributions(x[None])[0]
    names = [f"anchor {r}" for r in range(3)] + [f"feature {j}" for j in range(D)]
    assert parts == pytest.approx(dict(zip(names, expected, strict=True)))
    assert total(found.directions) == pytest.approx(found.score)


def test_anchors_with_weights_of_the_list(rng):
    rows = rng.normal(size=(8, D))
    metric = LocalMetric(
        rng.normal(size=(3, 2, D)),
        rng.normal(size=(4, 3)),
        anchors=rng.normal(size=(3, D)),
        reference_profiles=rng.normal(size=(4, 2 * D)),
        n_neighbors=2,
    )
    found = metric.explain(rows, rows[2])
    assert found.score == pytest.approx(metric.scores(rows, np.zeros(8))[2])
    assert total(found.directions) == pytest.approx(found.score)
    with pytest.raises(ValueError, match="pass its candidate list as q"):
        metric.explain(None, rows[2])


def test_joined_scaling_sums_too(rng):
    rows = rng.normal(size=(30, D))
    scaling = FeatureScaling.of(rows, "joined")
    metric = LocalMetric(
        rng.normal(size=(2, 2, 2 * D)),
        [1.0, 2.0],
        anchors=rng.normal(size=(2, 2 * D)),
        linear=rng.normal(size=2 * D),
        scaling=scaling,
    )
    found = metric.explain(None, rows[0])
    assert total(found.directions) == pytest.approx(metric.scores(rows[:1])[0])


# ---------------------------------------------------------------------- fields


def test_fields_sum_to_the_score_and_are_their_columns(rng):
    widths = {"title": 2, "body": 3}
    matrix = maps(D, seed=4)
    metric = BilinearMetric(matrix, np.eye(D), parameters={"fields": widths})
    q, x = pair()
    found = metric.explain(q, x, "unchanged")
    parts = {part.name: part.contribution for part in found.fields}
    change = (matrix - np.eye(D)) @ q * x
    assert parts == pytest.approx({"title": change[:2].sum(), "body": change[2:].sum()})


@pytest.mark.parametrize("kind", ["linear, cosine", "asymmetric", "bilinear"])
@pytest.mark.parametrize("baseline", [None, "unchanged"])
def test_fields_of_any_kind_sum_to_the_score(kind, baseline):
    original = METRICS[kind]
    metric = pickle.loads(pickle.dumps(original))
    metric.parameters["fields"] = {"title": 1, "body": 4}
    found = metric.explain(*pair(), baseline)
    assert {"title", "body"} <= {part.name for part in found.fields}
    assert total(found.fields) == pytest.approx(found.difference, abs=1e-9)
    assert original.explain(*pair(), baseline).fields == []


@pytest.mark.parametrize(
    "fields",
    [{"title": "1"}, {"title": {}, "body": 4}, {"title": -1, "body": 6}, [5], 5],
)
def test_a_file_may_hold_anything_as_fields(fields):
    metric = BilinearMetric(np.eye(D), np.eye(D), parameters={"fields": fields})
    assert metric.explain(*pair()).fields == []


def test_a_metric_tuned_on_fields_has_them(rng):
    title, body = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    of_title, of_body = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    near = np.argsort(-of_title @ title.T, axis=1)[:, :3]
    items, asked = (
        {"title": title, "body": body},
        {"title": of_title, "body": of_body},
    )
    tuned = tune(items, near, queries=asked, n_folds=2, random_state=0)
    q, x = np.asarray(Fields(asked))[0], np.asarray(Fields(items))[0]
    found = tuned.metric.explain(q, x)
    assert [part.name for part in found.fields] == ["title", "body"]
    assert total(found.fields) == pytest.approx(found.score, abs=1e-6)


# ---------------------------------------------------------------------- training judgments


def training(rng, n=30):
    X, Q = rng.normal(size=(40, D)), rng.normal(size=(n, D))
    relevance = Relevance.from_lists(rng.integers(40, size=(n, 2)).tolist(), n_items=40)
    return X, relevance, Q


@pytest.mark.parametrize(
    "kind",
    ["linear", "linear, cosine", "bilinear", "query map", "asymmetric", "kernel"],
)
@pytest.mark.parametrize("baseline", [None, "unchanged"])
def test_judgments_and_the_rest_sum_to_the_score(kind, baseline, rng):
    found = METRICS[kind].explain(*pair(), baseline, training=training(rng))
    assert total(found.judgments) == pytest.approx(found.difference, abs=1e-9)
    assert "rest" in {part.name for part in found.judgments}
    assert "judgments" in str(found)


def test_leverage_is_that_of_ridge_regression(rng):
    """The slow twin: explicit features of pairs, and explicit weights."""
    X, relevance, Q = training(rng, 12)
    matrix = maps(D, seed=4)
    metric = BilinearMetric(matrix, np.eye(D))
    q, x = pair()
    found = metric.explain(q, x, "unchanged", training=(X, relevance, Q))
    pairs = [(i, j) for i in range(12) for j in relevance.relevant(i)]
    features = np.array([np.outer(Q[i], X[j]).ravel() for i, j in pairs])
    changes = features @ (matrix - np.eye(D)).T.ravel()
    ridge = 0.1 * (features**2).sum() / len(pairs)
    gram = features.T @ features + ridge * np.eye(D * D)
    predicted = np.outer(q, x).ravel() @ np.linalg.solve(gram, features.T @ changes)
    parts = {part.name: part.contribution for part in found.judgments}
    rest = parts.pop("rest")
    assert sum(parts.values()) == pytest.approx(predicted)
    assert rest == pytest.approx(found.difference - predicted)
    assert set(parts) == {f"query {i}, item {j}" for i, j in pairs}


def test_the_judgment_of_the_pair_itself_counts_most(rng):
    X, relevance, Q = training(rng)
    item = int(relevance.relevant(3)[0])
    direction = np.outer(Q[3], X[item])
    matrix = np.eye(D) + direction.T
    metric = BilinearMetric(matrix, np.eye(D))
    found = metric.explain(Q[3], X[item], "unchanged", training=(X, relevance, Q))
    first = found.judgments[0]
    assert first.name == f"query 3, item {item}"
    assert first.contribution > 0.3 * found.difference > 0


def test_labels_are_judgments_too(rng):
    X = rng.normal(size=(30, D))
    relevance = Relevance.from_labels(np.arange(30) % 3)
    found = LinearMetric(maps()).explain(X[0], X[3], training=(X, relevance, None))
    assert total(found.judgments) == pytest.approx(found.score)


# ---------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones(4), np.ones(D)), {}, "q must have 5 features: got 4"),
        ((np.ones(D), np.ones((2, D))), {}, "x must be one vector: got 2 rows"),
        ((np.ones(D), np.ones(D), "before"), {}, "baseline must be a metric"),
        ((np.ones(D), np.ones(D)), {"training": 3}, "training must be"),
        (
            (np.ones(D), np.ones(D)),
            {"training": (np.ones((2, D)), [[0]], None)},
            "relevance must be a Relevance: got list",
        ),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        METRICS["linear"].explain(*arguments, **options)


def test_local_metrics_have_limits(rng):
    with pytest.raises(ValueError, match="training must be None for a local metric"):
        METRICS["local"].explain(*pair(), training=training(rng))
    anchored = local_metric(anchors=maps(3))
    with pytest.raises(
        ValueError, match="baseline must be None for a metric with anch"
    ):
        anchored.explain(None, pair()[1], "unchanged")


def test_text_and_numbers(rng):
    metric = METRICS["query map"]
    found = metric.explain(*pair(), unchanged_metric(D, "cosine"))
    assert str(found).startswith(f"score {found.score:.4f}, baseline ")
    assert found.to_dict()["directions"][0]["name"].startswith("direction ")
    # Kept for the next call, and not pickled.
    form = metric._last_form
    metric.explain(*pair(), form.baseline)
    assert metric._last_form is form
    assert not hasattr(pickle.loads(pickle.dumps(metric)), "_last_form")
