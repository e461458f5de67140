"""Smaller vectors in `tune`: beside `reduce`, SciPy's t-test and simulated queries."""

import json
import re

import numpy as np
import pytest
from scipy import stats

from planted import hidden
from rankspace import Index, Relevance, evaluate, load_metric, tune
from rankspace.evaluation.significance import clustered_mean
from rankspace.learners import families
from rankspace.search import QuantisedMetric
from rankspace.tuning.sizes import _verdict, _widths, lower_limit, queries_for

MEASURE = "ndcg-linear@10"


@pytest.fixture(autouse=True)
def few_strengths(monkeypatch):
    """Three strengths instead of eight, so that tests are fast."""
    monkeypatch.setattr(families, "TOTAL_REGS", (24.0, 2.4, 0.24))


def wide(seed=0, d=20, n_queries=90, informative=True, noise=0.0):
    """Vectors of 6 dimensions that matter, turned into d dimensions."""
    rng = np.random.default_rng(seed)
    X, relevance, Q = hidden(n_queries=n_queries, informative=informative)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0][:6]
    X, Q = (V @ turn + noise * rng.normal(size=(len(V), d)) for V in (X, Q))
    return X, relevance, Q


def learned(X, relevance, Q, n_components, **options):
    options = {"similarity": "cosine", "random_state": 0, **options}
    return tune(X, relevance, queries=Q, n_components=n_components, **options)


def test_widths():
    assert _widths(384) == (256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8)
    assert _widths(9) == (8,)
    assert _widths(8) == ()


@pytest.mark.parametrize("informative", [True, False])
def test_dimensions_that_are_not_used_are_left_out(informative):
    X, relevance, Q = wide(informative=informative)
    tuned = learned(X, relevance, Q, "smallest")
    full = learned(X, relevance, Q, None)
    assert tuned.decision == full.decision == ("ship" if informative else "keep")
    assert tuned.metric.item_map.shape == (8, 20)
    assert tuned.is_mapped
    one = Index(X, tuned.metric).rank(Q, 10)
    other = Index(X, full.metric).rank(Q, 10)
    np.testing.assert_array_equal(one.items, other.items)
    assert "8 of 20 dimensions are enough: at most 0.000 is lost." in str(tuned)
    assert "rankspace transform METRIC CORPUS.npy" in str(tuned)
    assert "stay unchanged" not in str(tuned)
    rows = tuned.report.sizes
    assert [row.n_components for row in rows] == [20, 16, 12, 8, 8, 8, 8]
    assert [row.outcome for row in rows[:5]] == ["full width", *["safe"] * 4]
    assert [row.storage for row in rows[3:]] == ["float32", "float16", "int8", "binary"]
    assert [row.megabytes for row in rows] == [80, 64, 48, 32, 16, 8, 1]


def test_scores_of_dev_queries_are_those_of_the_reduced_metric():
    X, relevance, Q = wide(noise=0.2)
    dev = np.arange(50, 90)
    full = learned(X, relevance, Q, None, dev=dev).metric
    tuned = learned(X, relevance, Q, "smallest", dev=dev, size_tolerance=1.0)
    judged = relevance.take_queries(dev)
    values = []
    for row in tuned.report.sizes:
        metric = full.reduce(X, row.n_components)
        ranking = QuantisedMetric(metric, X, row.storage).index(X).rank(Q[dev], 10)
        scores = evaluate(ranking, judged, MEASURE)
        values.append(scores.values[MEASURE])
        assert row.everything == pytest.approx(values[-1].mean())
    for row, own in zip(tuned.report.sizes[1:], values[1:], strict=True):
        interval = stats.ttest_1samp(own - values[0], 0.0).confidence_interval(0.9)
        assert row.lower_limit <= interval.low + 1e-9
    np.testing.assert_allclose(
        np.abs(tuned.metric.item_map), np.abs(full.reduce(X, 8).item_map), atol=1e-9
    )


def test_widths_that_lose_are_not_used():
    X, relevance, Q = hidden(d=20, n_queries=150)
    tuned = learned(X, relevance, Q, "smallest")
    outcomes = [row.outcome for row in tuned.report.sizes]
    assert outcomes[:4] == ["full width", "loses", "not tested", "not tested"]
    assert [row.n_components for row in tuned.report.sizes[4:]] == [20, 20, 20]
    assert tuned.metric.item_map.shape == (20, 20)
    assert tuned.report.sentence.endswith("No smaller width is safe.")
    forced = learned(X, relevance, Q, 8)
    assert forced.metric.item_map.shape == (8, 20)
    assert [row.n_components for row in forced.report.sizes] == [20, 8, 8, 8, 8]
    assert "not shown to be enough" in forced.report.sentence


def test_too_few_queries_are_named_with_the_number_that_would_do():
    X, relevance, Q = wide(noise=0.05, n_queries=60)
    tuned = learned(X, relevance, Q, "smallest", size_tolerance=0.01)
    assert tuned.report.sizes[1].outcome == "too few queries"
    found = re.search("with 60 queries; it would take about (.*)\\.", str(tuned))
    assert 100 < int(found[1].replace(",", "")) < 1000


def test_lower_limits_are_those_of_a_t_test():
    values = np.random.default_rng(0).normal(size=40)
    estimate = clustered_mean(values, np.arange(40))
    expected = stats.ttest_1samp(values, 0.0, alternative="greater")
    low = expected.confidence_interval(0.95).low
    assert lower_limit(estimate) == pytest.approx(low)


@pytest.mark.parametrize("mean", [0.0, -0.002])
def test_as_many_queries_as_named_show_it_in_four_of_five_cases(mean):
    rng = np.random.default_rng(0)
    first = rng.normal(mean, 0.03, size=100)
    first += mean - first.mean()
    n = queries_for(clustered_mean(first, np.arange(100)), 0.005)
    spread = first.std(ddof=1)
    safe = []
    for _ in range(300):
        drawn = rng.normal(mean, spread, size=n)
        estimate = clustered_mean(drawn, np.arange(n))
        safe.append(_verdict({"all": estimate}, 0.005) == "safe")
    assert 0.72 < np.mean(safe) < 0.88


def test_labels_are_reduced_too():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 12
    means = rng.normal(size=(12, 5))
    X = (means[y] + 0.3 * rng.normal(size=(120, 5))) @ rng.normal(size=(5, 12))
    tuned = tune(X, y, n_components="smallest", random_state=0)
    assert tuned.metric.n_features == 12
    assert len(tuned.metric.item_map) == tuned.report.sizes[-1].n_components == 8


def test_the_table_is_saved_with_the_metric(tmp_path):
    X, relevance, Q = wide()
    tuned = learned(X, relevance, Q, 8)
    tuned.metric.save(tmp_path / "m")
    card = load_metric(tmp_path / "m").card
    assert card["method"].endswith("reduced to 8 dimensions")
    assert card["sizes"] == json.loads(tuned.report.to_json())["sizes"]


def test_no_time_for_sizes_is_said():
    X, relevance, Q = wide()
    tuned = learned(X, relevance, Q, "smallest", budget=1e-9)
    assert tuned.report.sizes == []
    assert tuned.metric.item_map.shape == (20, 20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 21}, "n_components must be at most 20"),
        ({"n_components": 0}, "n_components must be a whole number from 1"),
        (
            {"n_components": "small"},
            "n_components must be one of smallest: got 'small'",
        ),
        (
            {"n_components": 8, "size_tolerance": -1},
            "size_tolerance == -1, must be >= 0",
        ),
    ],
)
def test_wrong_options_are_named(options, message):
    X, relevance, Q = wide()
    with pytest.raises(ValueError, match=message):
        learned(X, relevance, Q, **options)


def test_nothing_to_gain_may_still_be_smaller():
    X, _, _ = wide()
    relevance = Relevance.from_lists(np.arange(40)[:, None], n_items=200)
    tuned = learned(X, relevance, X[:40], "smallest")
    assert tuned.decision == "keep"
    assert tuned.metric.item_map.shape == (8, 20)


def test_components_that_half_precision_cannot_hold_are_named():
    X, relevance, Q = wide()
    tuned = learned(1e7 * X, relevance, Q, 8, similarity="dot")
    assert [row.storage for row in tuned.report.sizes] == ["float32", "float32"]
    assert "Not quantised: half precision needs components up to" in str(tuned)
