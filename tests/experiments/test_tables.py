"""Tables of results in each form, and paired tests against other ways to compute them."""

import itertools
import json

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from experiments import Table
from experiments.tables import estimate, holm, paired_table

TABLE = Table("Error in %", ["method", "A_1"], [["a & b", 0.123456], ["c", "1 ± 2"]])


def test_csv_has_all_digits():
    assert TABLE.to_csv() == "method,A_1\na & b,0.123456\nc,1 ± 2\n"


def test_latex_is_escaped():
    lines = TABLE.to_latex().splitlines()
    assert lines[1] == r"\caption{Error in \%}"
    assert r"method & A\_1 \\" in lines
    assert r"a \& b & 0.1235 \\" in lines
    assert r"c & 1 $\pm$ 2 \\" in lines
    assert lines[2] == r"\begin{tabular}{lr}"


def test_a_frame_has_the_names_of_rows_as_index():
    pytest.importorskip("pandas")
    frame = TABLE.to_frame()
    assert frame.index.tolist() == ["a & b", "c"]
    assert frame.loc["a & b", "A_1"] == 0.123456


def test_tables_survive_json():
    stored = json.loads(json.dumps(TABLE.to_dict()))
    assert Table(**stored).to_markdown() == TABLE.to_markdown()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """A hypothesis is rejected if every set of them that contains it is, by Bonferroni."""
    numbers = range(len(p_values))
    sets = [
        chosen
        for size in range(1, len(p_values) + 1)
        for chosen in itertools.combinations(numbers, size)
    ]
    expected = [
        max(
            min(1.0, len(chosen) * min(p_values[j] for j in chosen))
            for chosen in sets
            if i in chosen
        )
        for i in numbers
    ]
    assert holm(p_values) == pytest.approx(expected)


def test_independent_values_have_the_interval_and_p_value_of_student(rng):
    a, b = rng.normal(size=(2, 12))
    found = estimate(a - b, overlap=0.0)
    other = scipy.stats.ttest_rel(a, b)
    interval = other.confidence_interval(0.95)
    assert found == pytest.approx(
        ((a - b).mean(), interval.low, interval.high, other.pvalue)
    )


def test_overlapping_training_parts_call_for_wider_intervals(rng):
    """Nadeau and Bengio: 1/n becomes 1/n + (test rows) / (training rows)."""
    values = rng.normal(size=50)
    plain, wide = estimate(values, 0.0), estimate(values, 0.25)
    ratio = (wide.high - wide.low) / (plain.high - plain.low)
    assert ratio == pytest.approx((1 + 50 * 0.25) ** 0.5)
    assert wide.p > plain.p


def test_splits_of_pure_noise_are_rarely_significant(rng):
    """Errors of two guesses on random test parts of one set of 100 rows: overlapping splits."""
    hits = {0.0: 0, 0.25: 0}
    for _ in range(300):
        gap = rng.choice([-1.0, 0.0, 1.0], size=100)
        values = np.array([rng.permutation(gap)[:20].mean() for _ in range(30)])
        for overlap in hits:
            hits[overlap] += estimate(values, overlap).p < 0.05
    assert hits[0.25] < 0.08 * 300 < hits[0.0]


def test_rows_are_compared_with_one_and_corrected_for_their_number(rng):
    base = rng.normal(size=10)
    values = {"base": base, "same": base, "more": base + 1 + 0.1 * rng.normal(size=10)}
    table = paired_table("Score", values, "base", 0.25)
    rows = {row[0]: row for row in table.rows}
    assert table.title == "Score, against base"
    assert rows["base"][4:] == ["–"] * 5
    assert rows["same"][4:] == [0.0, 0.0, 0.0, 1.0, 1.0]
    gain = estimate(values["more"] - base, 0.25)
    assert rows["more"][4:8] == list(gain)
    assert rows["more"][8] == pytest.approx(2 * gain.p)


@pytest.mark.parametrize(
    ("values", "against", "message"),
    [
        (
            {"a": np.ones(3)},
            "b",
            "against must be the label of a method, one of a: got 'b'",
        ),
        ({"a": np.ones(1)}, "a", r"at least 2: got \[1\]"),
        ({"a": np.ones(3), "b": np.ones(2)}, "a", r"the same splits .* got \[2, 3\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(values, against, message):
    with pytest.raises(ValueError, match=message):
        paired_table("Score", values, against, 0.0)
