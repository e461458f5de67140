"""Drift: the test against a slow twin, its false alarms, the file of a metric, and the command."""

import json

import numpy as np
import pandas as pd
import pytest

from rankspace import AsymmetricMetric, LinearMetric, load_metric, tune
from rankspace._engine.projections import N_PROJECTIONS, project, random_signs
from rankspace.cli import main as cli
from rankspace.evaluation import check_drift, check_gain
from rankspace.evaluation.drift import energy_test, gain_outcome, promised_gain
from rankspace.evaluation.significance import ClusteredMean
from rankspace.export import to_query_side
from rankspace.metrics import unchanged_metric


def mean_distance(A, B):
    return np.mean([[np.linalg.norm(a - b) for b in B] for a in A])


def energy(A, B):
    """The energy distance, by its definition."""
    return 2 * mean_distance(A, B) - mean_distance(A, A) - mean_distance(B, B)


def test_the_energy_test_is_that_of_its_definition(rng):
    old, new = rng.normal(size=(12, 3)), rng.normal(0.6, 1.5, size=(9, 3))
    p_value, size = energy_test(old, new)
    points, observed = np.concatenate((old, new)), energy(old, new)
    n_extreme = 0
    for _ in range(400):
        order = rng.permutation(21)
        n_extreme += energy(points[order[:12]], points[order[12:]]) >= observed
    assert p_value == pytest.approx(n_extreme / 400, abs=0.06)
    # Without the distances of points from themselves nothing is biased.
    unbiased = observed - mean_distance(old, old) / 11 - mean_distance(new, new) / 8
    expected = max(0.0, unbiased / (2 * mean_distance(old, new)))
    assert size == pytest.approx(expected)


def test_projections_are_sums_with_signs(rng):
    rows = rng.normal(size=(4, 6))
    signs = random_signs(6)
    assert np.unique(np.abs(signs)) == pytest.approx([N_PROJECTIONS**-0.5])
    assert abs(signs.mean()) < 0.05
    expected = [[row @ direction for direction in signs] for row in rows]
    assert project(rows, "Q", unit=False) == pytest.approx(np.array(expected), abs=1e-6)
    assert project(7 * rows, "Q", unit=True) == pytest.approx(
        project(rows, "Q", unit=True), abs=1e-6
    )
    # Fixed for all versions, as files rely on it.
    assert (random_signs(6)[:2] > 0).tolist() == SIGNS


SIGNS = [
    [True, True, True, False, False, False],
    [True, False, True, False, True, False],
]


def learned(queries, **options):
    metric = LinearMetric(np.eye(queries.shape[1]), **options)
    metric.keep_query_sample(queries)
    return metric


def test_false_alarms_are_as_promised(rng):
    alarms = 0
    for seed in range(150):
        metric = learned(rng.standard_t(3, size=(60, 5)), similarity="cosine")
        new = rng.standard_t(3, size=(40, 5))
        tested = check_drift(metric, new, level=0.1, random_state=seed)
        alarms += tested.outcome == "drifted"
    # 15 expected; outside 4 to 28 with probability 0.001.
    assert 4 <= alarms <= 28


@pytest.mark.parametrize("change", ["mean", "spread", "mixture"])
def test_drift_is_found(change, rng):
    metric = learned(rng.normal(size=(400, 20)))
    new = rng.normal(size=(200, 20))
    if change == "mean":
        new += 0.4
    if change == "spread":
        new *= 1.3
    if change == "mixture":
        new[:60] += 2
    tested = check_drift(metric, new)
    assert tested.outcome == "drifted"
    assert tested.p_value <= 0.01
    assert 0 < tested.size < 1
    assert (tested.n_learned, tested.n_new) == (400, 200)


def test_the_sample_is_in_the_file_and_equal_runs_write_equal_bytes(rng, tmp_path):
    queries = rng.normal(size=(1200, 6)).astype(np.float32)
    for name in ("a", "b"):
        learned(queries).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").stat().st_size < 70_000
    loaded = load_metric(tmp_path / "a")
    assert loaded.query_sample.shape == (500, N_PROJECTIONS)
    assert np.array_equal(loaded.query_sample, learned(queries).query_sample)
    new = rng.normal(size=(99, 6))
    assert check_drift(loaded, new) == check_drift(learned(queries), new)


def test_a_file_without_a_sample_says_how_to_get_one(tmp_path):
    LinearMetric(np.eye(2)).save(tmp_path / "old")
    metric = load_metric(tmp_path / "old")
    assert metric.query_sample is None
    with pytest.raises(ValueError, match="must hold a sample of the queries"):
        check_drift(metric, np.eye(2))


def test_a_broken_sample_is_refused(tmp_path):
    metric = LinearMetric(np.eye(2))
    metric.query_sample = np.zeros((4, 3))
    metric.save(tmp_path / "m")
    with pytest.raises(ValueError, match="query_sample must have rows of 32 numbers"):
        load_metric(tmp_path / "m")


def test_bad_arguments(rng):
    metric = learned(rng.normal(size=(9, 3)))
    with pytest.raises(ValueError, match="level must be between 0 and 1: got 2"):
        check_drift(metric, np.eye(3), level=2)
    with pytest.raises(ValueError, match="queries must have 3 features: got 4"):
        check_drift(metric, np.ones((9, 4)))
    with pytest.raises(ValueError, match=r"at least 5 queries .* got 9 and 3"):
        check_drift(metric, np.eye(3))


def test_queries_may_be_a_dataframe_or_lists(rng):
    old, new = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    expected = check_drift(learned(old), new)
    for kind in (pd.DataFrame, list):
        metric = learned(old)
        metric.keep_query_sample(kind(old))
        assert check_drift(metric, kind(new)) == expected


def test_queries_may_be_wider_than_items(rng):
    maps = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    metric = AsymmetricMetric(*maps)
    metric.keep_query_sample(rng.normal(size=(30, 4)))
    assert check_drift(metric, rng.normal(size=(9, 4))).n_new == 9


def test_exported_query_maps_keep_the_sample(rng, tmp_path):
    metric = learned(rng.normal(size=(30, 4)))
    exported = to_query_side(metric, rng.normal(size=(9, 4)), tmp_path / "x.npy")
    kept = exported.metric.query_sample
    assert np.array_equal(kept, metric.query_sample)


# ---------------------------------------------------------------------- the gain


@pytest.mark.parametrize(
    ("mean", "error", "promise", "outcome"),
    [
        (0.1, 0.02, None, "survived"),
        (0.01, 0.02, None, "inconclusive"),
        (-0.1, 0.02, None, "lost"),
        (0.1, 0.02, (0.3, 0.01), "survived"),
        (0.01, 0.02, (0.3, 0.01), "lost"),
        (0.01, 0.02, (0.03, 0.01), "inconclusive"),
        (0.01, 0.02, (0.3, 0.4), "inconclusive"),
        (-0.1, 0.02, (0.3, 0.4), "lost"),
    ],
)
def test_outcomes_of_a_gain(mean, error, promise, outcome):
    assert gain_outcome(ClusteredMean(mean, error, 90, 90), promise) == outcome


def problem(rng):
    X, Q = rng.normal(size=(300, 6)), rng.normal(size=(180, 6))
    hidden = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    near = np.argsort(-(Q * hidden) @ X.T, axis=1)[:, :3]
    return X, Q, near


@pytest.fixture(scope="module")
def tuned():
    X, Q, near = problem(np.random.default_rng(0))
    return tune(
        X, near[:90], queries=Q[:90], similarity="dot", n_folds=2, random_state=0
    )


def test_a_tuned_metric_holds_what_a_check_needs(tuned):
    X, Q, near = problem(np.random.default_rng(0))
    metric = tuned.metric
    assert len(metric.query_sample) == 90
    assert check_drift(metric, Q[90:]).outcome == "no drift found"
    found = check_gain(metric, X, near[90:], Q[90:])
    row = tuned.report.question("all")
    assert (found.outcome, found.n_queries) == ("survived", 90)
    assert found.promised == pytest.approx(row.difference)
    assert found.gain == pytest.approx(found.tuned - found.unchanged)
    low, high = found.interval
    assert low < found.gain < high
    # Judgments to which the hidden map does not apply.
    others = np.argsort(-Q[90:] @ X.T, axis=1)[:, :3]
    assert check_gain(metric, X, others, Q[90:]).outcome == "lost"


def test_promises_of_other_measures_do_not_count(tuned):
    card = tuned.metric.card
    gain, error = promised_gain(card, "ndcg-linear@10")
    assert 0 < error < gain
    assert promised_gain(card, "map") is None
    assert promised_gain({}, "map") is None
    assert promised_gain({**card, "decision": "keep"}, "ndcg-linear@10") is None
    broken = {**card, "questions": [{"label": "all", "difference": None}]}
    assert promised_gain(broken, "ndcg-linear@10") is None
    whole = {"label": "all", "difference": 0.1, "low": 0, "high": 10**400}
    for questions in (True, "all", {"label": "all"}, [1, None, []], [whole]):
        broken = {**card, "questions": questions}
        assert promised_gain(broken, "ndcg-linear@10") is None


def test_a_card_of_a_file_may_hold_anything(rng):
    metric = LinearMetric(np.eye(3))
    X = rng.normal(size=(20, 3))
    metric.card = {"measure": [7]}
    with pytest.raises(ValueError, match="must name its measure by a text"):
        check_gain(metric, X, [[1, 2]] * 20, X)


def test_errors_gain_when_they_fall():
    row = {"label": "all queries", "difference": -0.1, "low": -0.2, "high": 0.0}
    card = {"measure": "ranking-error", "questions": [row]}
    assert promised_gain(card, "ranking-error")[0] == pytest.approx(0.1)


# ---------------------------------------------------------------------- the command


def test_the_command(tuned, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, Q, near = problem(np.random.default_rng(0))
    tuned.metric.save("m")
    np.save("items.npy", X)
    np.save("new.npy", Q[90:])
    np.save("moved.npy", Q[90:] + 1)
    judged = [f"{q} 0 {i} 1" for q, row in enumerate(near[90:]) for i in row]
    (tmp_path / "qrels").write_text("\n".join(judged))
    assert cli.main(["check", "m", "--queries", "new.npy"]) == 0
    assert capsys.readouterr().out.startswith("no drift found: ")
    assert cli.main(["check", "m", "--queries", "moved.npy"]) == 1
    assert capsys.readouterr().out.startswith("drifted: ")
    words = ["check", "m", "--queries", "new.npy", "--qrels", "qrels"]
    assert cli.main([*words, "--items", "items.npy", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["drift"]["outcome"] == "no drift found"
    assert answer["gain"]["outcome"] == "survived"
    assert cli.main(words) == 2
    assert "both --qrels and --items" in capsys.readouterr().err
    assert cli.main([*words[:4], "--measure", "map"]) == 2
    assert "--measure can only be used with --qrels" in capsys.readouterr().err
    unchanged_metric(6, "dot").save("old")
    assert cli.main(["check", "old", "--queries", "new.npy"]) == 2
    assert "must hold a sample" in capsys.readouterr().err


def test_fit_writes_the_sample_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        assert cli.main(["fit", "wine", "--method", "gmml", "--output", name]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(load_metric("a").query_sample) == 178
