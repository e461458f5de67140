"""Reports and comparisons: means, intervals, tests against chance, tables and files."""

import csv
import dataclasses
import io
import json
import math
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from rankspace import Ranking, Relevance, Report, compare, evaluate
from reference.rankings import sign_flip_p_value, whole

NAN = math.nan


def report(*values, name="map", **options):
    return Report({name: np.array(values, dtype=float)}, **options)


@pytest.fixture
def mixed():
    """One measure that counts all queries, one error that leaves one out."""
    return Report(
        {
            "map": np.array([0.2, 0.4, 0.6]),
            "ranking-error": np.array([1.0, NAN, 2000.0]),
        },
        smaller_is_better=frozenset({"ranking-error"}),
        query_ids=np.array(["a", "b", "c"]),
    )


# ---------------------------------------------------------------------- means and intervals


def test_means_leave_out_nan_and_weigh_queries():
    found = report(1.0, NAN, 0.0, 0.5, weights=np.array([3.0, 100.0, 1.0, 0.0]))
    assert found.means == {"map": 0.75}
    assert found.left_out == {"map": 1}
    assert found.n_queries == 4


@pytest.mark.parametrize(
    "found",
    [report(NAN, NAN), report(), report(0.5, NAN, weights=np.array([0.0, 1.0]))],
    ids=["none counts", "no queries", "no weight"],
)
def test_mean_of_nothing_is_nan(found):
    assert math.isnan(found.means["map"])
    assert all(math.isnan(bound) for bound in found.intervals["map"])
    assert str(found).splitlines()[2].split()[1:4] == ["-", "-", "-"]


@pytest.mark.parametrize("values", [(0.3,), (0.3, NAN), (0.3, 0.3, 0.3)])
def test_interval_of_one_value_is_that_value(values):
    assert report(*values).intervals["map"] == pytest.approx((0.3, 0.3))


def test_interval_holds_the_mean_is_stable_and_narrows(rng):
    values = rng.random(400)
    wide, narrow = report(*values[:20]), report(*values)
    for found in (wide, narrow):
        low, high = found.intervals["map"]
        assert values.min() < low < found.means["map"] < high < values.max()
        assert report(*found.values["map"]).intervals == found.intervals
    assert np.ptp(narrow.intervals["map"]) < np.ptp(wide.intervals["map"]) / 2


def test_interval_is_that_of_the_central_limit(rng):
    values = rng.random(500)
    low, high = report(*values).intervals["map"]
    half = 1.96 * values.std() / math.sqrt(values.size)
    assert [low, high] == pytest.approx(
        [values.mean() - half, values.mean() + half], abs=half / 5
    )


def test_attributes_cannot_be_set(mixed):
    with pytest.raises(dataclasses.FrozenInstanceError):
        mixed.values = {}


def test_repr_names_the_means():
    assert repr(report(0.25, 0.5)) == "Report(2 queries, map=0.3750)"


# ---------------------------------------------------------------------- compare


@given(
    pairs=st.lists(
        st.tuples(
            st.integers(0, 8), st.integers(0, 8), st.sampled_from([0.0, 0.5, 1.0, 2.0])
        ),
        min_size=1,
        max_size=10,
    )
)
@settings(deadline=None, max_examples=40)
def test_p_value_is_the_share_of_all_sign_flips(pairs):
    a, b, weights = (
        np.array(column, dtype=float) for column in zip(*pairs, strict=True)
    )
    weights[0] = 1.0
    found = compare(report(*a, weights=weights), report(*b, weights=weights))
    assert found.p_value["map"] == pytest.approx(
        sign_flip_p_value(((b - a) * weights).tolist())
    )
    assert found.difference["map"] == pytest.approx(np.average(b - a, weights=weights))
    assert found.before["map"] == pytest.approx(np.average(a, weights=weights))
    assert found.after["map"] == pytest.approx(np.average(b, weights=weights))


@pytest.mark.parametrize("n", [14, 100, 500])
def test_drawn_p_values_agree_with_those_of_scipy(n, rng):
    differences = rng.normal(
        1.5 / math.sqrt(n), 1.0, size=n
    )  # one and a half standard errors
    found = compare(report(*np.zeros(n)), report(*differences)).p_value["map"]
    expected = permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=9_999,
        vectorized=True,
        batch=100,
        random_state=0,
    ).pvalue
    # Shares of 9,999 draws, the second one twice that of a tail: five standard deviations.
    assert abs(found - expected) < 5 * math.sqrt(3 * expected / 9_999)


def test_a_drawn_p_value_counts_what_was_observed_among_the_draws():
    """Then no p-value is 0, and a test keeps its level: (as far + 1) / (draws + 1)."""
    found = compare(report(*np.zeros(60)), report(*np.ones(60))).p_value["map"]
    assert found == 1 / (9_999 + 1)


@pytest.mark.parametrize("n", [1, 2, 8, 40])
def test_swapping_the_reports_changes_signs_only(n, rng):
    a, b = report(*rng.random(n)), report(*rng.random(n))
    there, back = compare(a, b), compare(b, a)
    assert there.p_value == pytest.approx(back.p_value)
    assert there.difference["map"] == -back.difference["map"]
    low, high = back.interval["map"]
    assert there.interval["map"] == pytest.approx((-high, -low))


@pytest.mark.parametrize("n", [1, 3, 50])
def test_a_report_does_not_differ_from_itself(n, rng):
    found = report(*rng.random(n))
    same = compare(found, found)
    assert same.p_value == {"map": 1.0}
    assert same.difference == {"map": 0.0}
    assert same.interval == {"map": (0.0, 0.0)}


@pytest.mark.parametrize("n", [8, 16], ids=["exact", "drawn"])
def test_p_values_are_uniform_under_the_null(n, rng):
    p_values = np.array(
        [
            compare(report(*rng.random(n)), report(*rng.random(n))).p_value["map"]
            for _ in range(200)
        ]
    )
    # Four standard deviations of a share of 200 draws.
    for level in (0.05, 0.2, 0.5):
        spread = 4 * math.sqrt(level * (1 - level) / 200)
        assert abs((p_values <= level).mean() - level) < spread + 2 / 2**n


def test_a_clear_difference_has_a_small_p_value(rng):
    a = rng.random(60)
    found = compare(report(*a), report(*(a + 0.1 + 0.05 * rng.random(60))))
    assert found.p_value["map"] < 0.001
    assert (
        0.1
        < found.interval["map"][0]
        < found.difference["map"]
        < found.interval["map"][1]
    )


def test_the_seed_decides_the_draws(rng):
    a, b = report(*rng.random(30)), report(*rng.random(30))
    assert (
        compare(a, b, random_state=3).to_dict()
        == compare(a, b, random_state=3).to_dict()
    )
    assert (
        compare(a, b, random_state=3).interval != compare(a, b, random_state=4).interval
    )


def test_queries_are_matched_by_name(rng):
    a, b = rng.random(7), rng.random(7)
    weights, names, order = rng.random(7), np.array(list("gfedcba")), rng.permutation(7)
    straight = compare(
        report(*a, query_ids=names, weights=weights),
        report(*b, query_ids=names, weights=weights),
    )
    shuffled = compare(
        report(*a, query_ids=names, weights=weights),
        report(*b[order], query_ids=names[order], weights=weights[order]),
    )
    assert shuffled.to_dict() == straight.to_dict()


def test_a_query_that_one_report_leaves_out_does_not_count():
    found = compare(report(0.1, NAN, 0.5, 0.3), report(0.2, 0.9, NAN, 0.5))
    assert found.n_queries == {"map": 2}
    assert found.before["map"] == pytest.approx(0.2)
    assert found.after["map"] == pytest.approx(0.35)


def test_measures_of_one_report_are_passed_over(mixed):
    found = compare(mixed, report(0.1, 0.2, 0.3))
    assert list(found.p_value) == ["map"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            report(0.1),
            report(0.1, name="mrr"),
            "the reports must share a measure: got map and mrr.",
        ),
        (
            report(0.1),
            report(0.1, 0.2),
            "the reports must be of the same queries: got 1 and 2.",
        ),
        (
            report(0.1, query_ids=np.array(["a"])),
            report(0.1, query_ids=np.array(["b"])),
            "the reports must be of the same queries: their query ids differ.",
        ),
        (
            report(0.1, NAN),
            report(NAN, 0.1),
            "no query has a score for map in both reports.",
        ),
    ],
)
def test_reports_that_cannot_be_compared(before, after, message):
    with pytest.raises(ValueError, match=whole(message)):
        compare(before, after)


def test_reports_weighted_differently_cannot_be_compared():
    before = report(0.1, 0.5, weights=np.array([1.0, 0.0]))
    after = report(0.1, 0.5, weights=np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="weights"):
        compare(before, after)


# ---------------------------------------------------------------------- tables


def test_report_as_text(mixed):
    low, high = (f"{bound:.4f}" for bound in mixed.intervals["map"])
    header, rule, first, second, note = str(mixed).splitlines()
    assert header.split() == ["measure", "mean", "low", "high", "queries"]
    assert set(rule) == {"-"}
    assert first.split() == ["map", "0.4000", low, high, "3"]
    assert second.split() == [
        "ranking-error",
        "(error)",
        "1000.5",
        "1.0000",
        "2000.0",
        "2",
    ]
    assert {len(header), len(first), len(second)} == {len(rule)}
    assert note == (
        "Of 3 queries left out (nothing relevant, or nothing irrelevant to compare with): "
        "1 by ranking-error."
    )


def test_report_says_how_many_queries_have_nothing_relevant():
    note = str(report(0.5, NAN, NAN)).splitlines()[-1]
    assert note == (
        "2 of 3 queries left out: nothing relevant, or nothing irrelevant to compare with."
    )


def test_report_does_not_call_a_query_empty_that_is_all_relevant():
    ranking = Ranking.from_distances([[0.0, 1.0]] * 2)
    found = evaluate(ranking, Relevance.from_lists([[0, 1], [0]], n_items=2), "auc")
    assert found.left_out == {"auc": 1}
    assert "nothing relevant to find" not in str(found)


def test_report_without_anything_left_out_has_no_note():
    assert len(str(report(0.5, 0.25)).splitlines()) == 3


def test_report_as_markdown(mixed):
    lines = mixed.to_markdown().splitlines()
    assert lines[0] == "| measure | mean | low | high | queries |"
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: |"
    assert lines[3] == "| ranking-error (error) | 1000.5 | 1.0000 | 2000.0 | 2 |"
    assert lines[4] == ""  # ends the table
    assert lines[5].startswith("Of 3 queries left out")


def test_csv_keeps_every_digit():
    found = report(1 / 3, 1 / 7)
    rows = list(csv.reader(io.StringIO(found.to_csv())))
    assert rows[0] == ["measure", "mean", "low", "high", "queries"]
    assert [float(cell) for cell in rows[1][1:]] == [
        found.means["map"],
        *found.intervals["map"],
        2,
    ]


def test_report_json_comes_back(mixed):
    found = json.loads(mixed.to_json())
    assert found == mixed.to_dict()
    assert found["n_queries"] == 3
    assert found["query_ids"] == ["a", "b", "c"]
    error = found["measures"]["ranking-error"]
    assert error["per_query"] == [1.0, None, 2000.0]
    assert (error["larger_is_better"], error["left_out"]) == (False, 1)
    assert found["measures"]["map"]["larger_is_better"]


def strict_json(text):
    """Read JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


WEIGHTLESS = {"weights": np.array([0.0, 1.0])}


@pytest.mark.parametrize("found", [report(NAN, NAN), report(0.5, NAN, **WEIGHTLESS)])
def test_json_of_a_report_holds_no_nan(found):
    assert strict_json(found.to_json())["measures"]["map"]["mean"] is None


def test_json_of_a_comparison_holds_no_nan():
    found = compare(report(0.5, NAN, **WEIGHTLESS), report(0.1, NAN, **WEIGHTLESS))
    assert strict_json(found.to_json())["map"]["before"] is None


def test_comparison_as_text_markdown_and_csv(mixed):
    found = compare(mixed, mixed)
    columns = [
        "measure",
        "before",
        "after",
        "difference",
        "low",
        "high",
        "p-value",
        "queries",
    ]
    assert str(found).splitlines()[0].split() == columns
    assert str(found).splitlines()[2].split() == [
        "map",
        "0.4000",
        "0.4000",
        "0.0000",
        "0.0000",
        "0.0000",
        "1.0000",
        "3",
    ]
    assert found.to_markdown().splitlines()[0] == f"| {' | '.join(columns)} |"
    rows = list(csv.reader(io.StringIO(found.to_csv())))
    assert rows[0] == columns
    assert rows[2][0] == "ranking-error (error)"
    assert json.loads(found.to_json()) == found.to_dict()
    assert not found.to_dict()["ranking-error"]["larger_is_better"]


def test_comparison_repr_names_difference_and_p_value():
    found = compare(report(0.1, 0.2), report(0.2, 0.4))
    assert repr(found) == "Comparison(map: +0.1500 (p=0.5000))"


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("suffix", "form"),
    [("json", "to_json"), ("md", "to_markdown"), ("csv", "to_csv"), ("txt", "__str__")],
)
@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_the_ending_says_the_form(suffix, form, kind, mixed, tmp_path):
    found = mixed if kind == "report" else compare(mixed, mixed)
    path = tmp_path / f"table.{suffix}"
    assert found.write(str(path)) == path
    assert path.read_text() == getattr(found, form)().rstrip("\n") + "\n"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_written_files_replace_older_ones_and_can_be_read_by_others(mixed, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    mixed.write(path)
    assert json.loads(path.read_text()) == mixed.to_dict()
    fresh = tmp_path / "fresh"
    fresh.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(fresh.stat().st_mode)


@pytest.mark.parametrize("name", ["report.html", "report", ".json"])
def test_an_unknown_ending_leaves_the_file_as_it_was(name, mixed, tmp_path):
    path = tmp_path / name
    path.write_text("precious")
    message = (
        f"the file of a table must end in .json, .md, .csv, .tex, .txt: got {path}."
    )
    with pytest.raises(ValueError, match=whole(message)):
        mixed.write(path)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_failure_on_the_way_leaves_the_file_as_it_was(mixed, tmp_path, monkeypatch):
    path = tmp_path / "report.csv"
    path.write_text("precious")

    def fail(*_):
        raise OSError("disk is full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        mixed.write(path)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["report.csv"]


def test_a_missing_folder_is_named(mixed, tmp_path):
    folder = tmp_path / "none"
    message = f"the folder {folder} does not exist: create it first."
    with pytest.raises(FileNotFoundError, match=whole(message)):
        mixed.write(folder / "report.json")


# ---------------------------------------------------------------------- subsets


@pytest.mark.parametrize(
    "queries", [[2, 0], np.array([True, False, True]), slice(0, 2)], ids=repr
)
def test_a_report_of_some_queries_equals_the_evaluation_of_these(queries):
    ranking = Ranking.from_distances([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    relevance = Relevance.from_lists(
        [[1], [1], []], n_items=3, weights=[1, 2, 3], query_ids=["a", "b", "c"]
    )
    found = evaluate(ranking, relevance, "map first-rank").take(queries)
    expected = evaluate(
        Ranking.from_distances(
            [[[0, 1, 2], [1, 0, 2], [2, 1, 0]][q] for q in np.arange(3)[queries]]
        ),
        relevance.take_queries(queries),
        "map first-rank",
    )
    assert found.to_dict() == expected.to_dict()
    assert found.weights.tolist() == expected.weights.tolist()


def test_a_report_of_some_measures(mixed):
    found = mixed.take([0, 2], ["ranking-error"])
    assert found.means == {"ranking-error": 1000.5}
    assert found.query_ids.tolist() == ["a", "c"]
