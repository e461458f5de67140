"""The regression test: three outcomes, their definition, and how often it is wrong."""

import json

import numpy as np
import pytest

from rankspace import Report
from rankspace.cli import main as cli
from rankspace.evaluation import check_regression


def reports(gains, **options):
    before = np.full(len(gains), 0.5)
    return Report({"map": before}, **options), Report(
        {"map": before + gains}, **options
    )


def bounds(gains, n_resamples=2000):
    """A slow twin: means of resampled queries, in a loop."""
    rng = np.random.default_rng(1)
    means = [rng.choice(gains, len(gains)).mean() for _ in range(n_resamples)]
    return np.percentile(means, [2.5, 97.5, 95])


def definition(gains, tolerance, low, high, bound):
    if gains.mean() < -tolerance and bound < 0:
        return "worse"
    if low < -tolerance <= high and low <= 0 <= high:
        return "inconclusive"
    return "passed"


@pytest.mark.parametrize(
    ("mean", "spread", "outcome"),
    [
        (-0.1, 0.1, "worse"),
        (-0.1, 1.5, "inconclusive"),
        (0.0, 0.2, "inconclusive"),
        (0.0, 0.01, "passed"),
        (-0.005, 0.001, "passed"),
        (0.1, 0.1, "passed"),
    ],
)
def test_outcomes(mean, spread, outcome):
    gains = mean + spread * np.resize([1.0, -1.0, 0.5, -0.5], 60)
    tested = check_regression(*reports(gains), 0.01)
    low, high, bound = bounds(gains)
    assert tested.outcome == definition(gains, 0.01, low, high, bound) == outcome
    width = high - low
    assert tested.interval == pytest.approx((low, high), abs=0.1 * width + 1e-9)
    assert tested.upper_bound == pytest.approx(bound, abs=0.1 * width + 1e-9)
    assert tested.change == pytest.approx(mean)
    assert tested.n_queries == 60


def test_outcomes_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(24):
        gains = rng.normal(rng.uniform(-0.15, 0.05), rng.uniform(0.05, 0.4), 40)
        tested = check_regression(*reports(gains), 0.03)
        low, high, bound = bounds(gains, 1000)
        margins = [bound, low + 0.03, gains.mean() + 0.03, high]
        if min(map(abs, margins)) > 0.005:
            assert tested.outcome == definition(gains, 0.03, low, high, bound)
            found.append(tested.outcome)
    assert set(found) == {"worse", "inconclusive", "passed"}


def test_equal_rankings_seldom_fail():
    rng = np.random.default_rng(0)
    outcomes = [
        check_regression(*reports(rng.normal(0, 0.2, 60)), 0.0).outcome
        for _ in range(120)
    ]
    # 5 % is promised; 13 of 120 have a probability below 0.01.
    assert outcomes.count("worse") < 13


def test_errors_are_better_if_they_drop():
    before, after = reports(np.full(20, -0.2), smaller_is_better=frozenset({"map"}))
    assert check_regression(before, after, 0.01).change == pytest.approx(0.2)
    assert check_regression(after, before, 0.01).outcome == "worse"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": -1}, "tolerance must be a number from 0 on: got -1"),
        ({"tolerance": float("nan")}, "tolerance must be a number from 0 on: got nan"),
        ({"measure": "mrr"}, "measure must be in both reports: 'mrr' is not"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        check_regression(*reports(np.zeros(9)), **{"tolerance": 0.1, **change})
    with pytest.raises(ValueError, match="needs at least 5 queries: got 4"):
        check_regression(*reports(np.full(4, -0.1)), 0.01)


def write_run(path, n_first):
    """A run of 40 queries, of which so many have the relevant item first."""
    lines = []
    for query in range(40):
        first = ("a", "b") if query < n_first else ("b", "a")
        lines += [f"{query} Q0 {name} {i} {-i} x" for i, name in enumerate(first)]
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("n_first", "code", "outcome"),
    [(10, 1, "worse"), (39, 0, "inconclusive"), (40, 0, "passed")],
)
def test_the_command_exits_with_1_if_worse(
    n_first, code, outcome, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "before", 40)
    write_run(tmp_path / "after", n_first)
    lines = [f"{query} 0 a 1" for query in range(40)]
    (tmp_path / "qrels").write_text("\n".join(lines))
    words = [
        "compare",
        "before",
        "after",
        "qrels",
        "--measures",
        "map",
        "--fail-if-worse",
        "0.01",
    ]
    assert cli.main(words) == code
    assert f"\n{outcome}: map changed by" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer["fail_if_worse"]["outcome"] == outcome
    assert answer["map"]["n_queries"] == 40
    assert cli.main(words[:-2]) == 0
    assert cli.main([*words[:-1], "-1"]) == 2
