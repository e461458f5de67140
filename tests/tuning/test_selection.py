"""Selection of a candidate, and its significance test, on made-up values."""

from dataclasses import replace

import numpy as np
import pytest

from rankspace import Ranking, Relevance
from rankspace.tuning.candidates import BASELINE, Candidate
from rankspace.tuning.report import TrialResult
from rankspace.tuning.selection import Selection, evaluate_selection

MEASURE = "ndcg-linear@10"
ERROR = "ranking-error"


def trial(name, values, part_of="", margin=0.0):
    """A trial with made-up values and empty rankings."""
    empty = (np.zeros(0, np.int64), np.zeros(0))
    ranking = Ranking.from_pairs([empty] * len(values), 300)
    candidate = Candidate(name, part_of=part_of, margin=margin)
    return TrialResult(candidate, values, 0.0, ranking)


def as_errors(trials):
    return [replace(trial, values=1 - trial.values) for trial in trials]


def judgments(n):
    return Relevance.from_lists([[0]] * n, n_items=300)


def select(trials, seen=None, measure=MEASURE, **options):
    n = len(trials[0].values)
    if seen is None:
        seen = np.ones(n, dtype=bool)
    return Selection(trials, seen, judgments(n), measure, **options)


def test_a_candidate_that_harms_a_group_is_not_selected():
    seen = np.arange(100) < 80
    noise = 0.01 * np.random.default_rng(0).normal(size=100)
    greedy = trial("greedy", np.where(seen, 0.7, 0.4) + noise)
    modest = trial("modest", np.where(seen, 0.55, 0.5) + noise)
    trials = [trial(BASELINE, np.full(100, 0.5)), greedy, modest]
    assert select(trials, seen).pick_by_all().name == "modest"
    assert select(trials, seen).pick(seen).name == "greedy"
    assert select(trials[:2], seen).pick_by_all().name == BASELINE
    errors = select(as_errors(trials), seen, ERROR)
    assert errors.pick_by_all().name == "modest"


def test_harm_to_a_small_group_must_be_significant():
    seen = np.arange(100) < 90
    few = np.linspace(-1, 1, 10)
    # The standard error of the ten is a fifth.
    for loss, expected in ((0.4, "map"), (0.55, BASELINE)):
        values = np.where(seen, 0.7, 0.5)
        values[~seen] += 0.1 * (few - loss)
        trials = [trial(BASELINE, np.full(100, 0.5)), trial("map", values)]
        assert select(trials, seen).pick_by_all().name == expected


def ahead_of(values, n_errors):
    """Values that are better by so many standard errors."""
    noise = np.random.default_rng(0).normal(size=values.size)
    noise = (noise - noise.mean()) / noise.std()
    return values + 0.02 * (noise + n_errors / np.sqrt(values.size))


@pytest.mark.parametrize(("n_errors", "clear"), [(1.5, False), (2.5, True)])
def test_a_clear_winner_is_two_standard_errors_better_than_other_fits(n_errors, clear):
    first = np.full(100, 0.6)
    better = ahead_of(first, n_errors)
    trials = [
        trial(BASELINE, first - 0.1),
        trial("first", first),
        trial("better", better),
        trial("part", better, part_of="better"),
    ]
    for selection in (select(trials), select(as_errors(trials), measure=ERROR)):
        assert selection.pick_by_all().name == "better"
        assert selection.is_clear() == clear


@pytest.mark.parametrize("margin", [1.0, 2.0])
@pytest.mark.parametrize(("extra", "expected"), [(-0.5, "first"), (0.5, "other")])
def test_others_must_beat_the_preferred_candidate_by_their_margin(
    margin, extra, expected
):
    first = np.full(100, 0.6)
    other = trial("other", ahead_of(first, margin + extra), margin=margin)
    trials = [trial(BASELINE, first - 0.1), trial("first", first), other]
    assert select(trials, preferred="first").pick_by_all().name == expected
    assert select(trials).pick_by_all().name == "other"
    errors = select(as_errors(trials), measure=ERROR, preferred="first")
    assert errors.pick_by_all().name == expected


def test_if_the_preferred_candidate_does_harm_those_with_a_margin_are_not_selected():
    seen, raw = np.arange(100) < 90, np.full(100, 0.5)
    harmful = trial("first", np.where(seen, 0.8, 0.4))
    useless = trial("first", raw - 0.01)
    bold = trial("bold", raw + 0.2, margin=2.0)
    modest = trial("modest", raw + 0.1)

    def picked(*others):
        trials = [trial(BASELINE, raw), *others]
        return select(trials, seen, preferred="first").pick_by_all().name

    assert picked(harmful, bold) == BASELINE
    assert picked(harmful, bold, modest) == "modest"
    assert picked(useless, bold) == "bold"


def test_generalise_selects_by_queries_with_new_items():
    seen = np.arange(100) < 50
    noise = 0.01 * np.random.default_rng(0).normal(size=100)
    memory = trial("memory", np.where(seen, 0.8, 0.51) + noise)
    general = trial("general", np.where(seen, 0.55, 0.6) + noise)
    trials = [trial(BASELINE, np.full(100, 0.5)), memory, general]
    assert select(trials, seen).pick_by_all().name == "memory"
    assert select(trials, seen, generalise=True).pick_by_all().name == "general"


def test_queries_count_by_their_weight():
    half = np.arange(40) % 2 == 0
    trials = [
        trial(BASELINE, np.full(40, 0.5)),
        trial("one", np.where(half, 0.8, 0.5)),
        trial("other", np.where(half, 0.5, 0.7)),
    ]
    seen = np.ones(40, dtype=bool)
    for weights, expected in (
        (np.ones(40), "one"),
        (np.where(half, 1.0, 2.0), "other"),
        (np.zeros(40), "one"),
    ):
        relevance = replace(judgments(40), weights=weights)
        selection = Selection(trials, seen, relevance, MEASURE)
        assert selection.pick_by_all().name == expected


# ---------------------------------------------------------------------- significance


def evaluated(trials, seen=None, alpha=0.0, single_alpha=0.02, singles=("first",)):
    """The report of candidates that two halves of the queries select for each other."""
    n = len(trials[0].values)
    parts = [np.arange(0, n, 2), np.arange(1, n, 2)]
    selection = select(trials, seen)
    return evaluate_selection(selection, parts, alpha, single_alpha, singles).report


@pytest.fixture
def raw(rng):
    return rng.uniform(0.4, 0.6, size=100)


def fickle(raw):
    """Two candidates, each best for the half that does not select it."""
    half = np.arange(100) % 2 == 0
    return [
        trial("one", raw + np.where(half, 0.2, -0.2) + 0.06),
        trial("other", raw + np.where(half, -0.2, 0.2) + 0.06),
    ]


def test_the_preferred_candidate_is_taken_if_selection_loses_its_gain(raw):
    first = trial("first", raw + 0.05)
    trials = [trial(BASELINE, raw), first, *fickle(raw)]
    report = evaluated(trials)
    assert report.chosen == "first"
    assert report.verdict.startswith("Significantly better: first")
    np.testing.assert_array_equal(report.after.values[MEASURE], first.values)
    assert report.trials == trials
    assert evaluated(trials, alpha=0.02, single_alpha=0).chosen == BASELINE


def test_a_better_candidate_is_taken_after_or_instead_of_the_preferred_one(raw):
    trials = [trial(BASELINE, raw), trial("first", raw + 0.05)]
    trials.append(trial("better", raw + 0.1))
    assert evaluated(trials).chosen == "better"
    trials[1] = trial("first", raw - 0.05)
    assert evaluated(trials).chosen == BASELINE
    assert evaluated(trials, alpha=0.01).chosen == "better"


def test_a_harmful_preferred_candidate_is_not_taken(raw):
    seen = np.arange(100) < 80
    harmful = trial("first", raw + np.where(seen, 0.1, -0.1))
    report = evaluated([trial(BASELINE, raw), harmful], seen)
    assert report.chosen == BASELINE
    assert report.verdict.startswith(
        "Better overall, but significantly worse for queries with new relevant items"
    )
    assert evaluated([trial(BASELINE, raw), harmful]).chosen == "first"


def test_if_the_preferred_candidate_does_harm_others_are_tested_at_its_level(raw):
    seen = np.arange(100) < 80
    harmful = trial("first", raw + np.where(seen, 0.1, -0.1))
    trials = [trial(BASELINE, raw), harmful, trial("second", raw + 0.03)]
    assert evaluated(trials, seen).chosen == "second"
    more, both = [*trials, *fickle(raw)], ("first", "second")
    assert evaluated(more, seen).chosen == BASELINE
    assert evaluated(more, seen, singles=both).chosen == "second"
    trials[1] = trial("first", raw - 0.01)
    assert evaluated(trials, seen, singles=both).chosen == BASELINE


@pytest.mark.parametrize("modest", [True, False])
def test_a_selection_that_harms_a_group_gives_way_to_the_next_best(modest):
    noise = 0.05 * np.random.default_rng(0).normal(size=120)
    seen, half = np.arange(120) < 80, np.arange(120) % 2 == 0
    # Each harms the new queries of one half and is selected by the other half.
    one = np.where(seen, 0.7, np.where(half, 0.3, 0.7))
    other = np.where(seen, 0.7, np.where(half, 0.7, 0.3))
    trials = [trial(BASELINE, np.full(120, 0.5))]
    trials += [trial("one", one + noise), trial("other", other + noise)]
    if modest:
        trials.append(trial("modest", 0.55 + noise))
    report = evaluated(trials, seen, alpha=0.05, singles=())
    assert report.trials == trials
    assert report.chosen == ("modest" if modest else BASELINE)
    start = "Significantly better" if modest else "Better overall, but significantly"
    assert report.verdict.startswith(start)


def test_a_gain_has_half_of_the_two_sided_p_value(raw, rng):
    better = raw + 0.005 + 0.03 * rng.normal(size=100)
    trials = [trial(BASELINE, raw), trial("first", better)]
    report = evaluated(trials, alpha=0.0005, singles=())
    p_value = report.comparisons["all"].p_value[MEASURE] / 2
    assert 0.001 < p_value < 0.5
    assert f"(one-sided p = {p_value:.3g}; required: p < 0.0005)" in report.verdict
    assert evaluated(trials, alpha=1.001 * p_value, singles=()).chosen == "first"


def test_a_loss_has_a_one_sided_p_value_near_one():
    noise = 0.02 * np.random.default_rng(0).normal(size=40)
    half = np.arange(40) % 2 == 0
    trials = [
        trial(BASELINE, np.full(40, 0.5)),
        trial("one", np.where(half, 0.9, 0.3) + noise),
        trial("other", np.where(half, 0.3, 0.9) + noise),
    ]
    report = evaluated(trials, alpha=0.05, singles=())
    assert report.chosen == BASELINE
    assert report.verdict.startswith(
        "No significant improvement (one-sided p = 1; required: p < 0.05): keep"
    )


def test_false_positives_stay_below_the_sum_of_both_levels():
    """150 sets of candidates that are no better than the baseline, at 10 % and 2 %."""
    rng = np.random.default_rng(0)
    seen, names = np.arange(40) < 25, ("first", "second", "third", "fourth", "fifth")
    false_positives = 0
    for _ in range(150):
        raw = rng.uniform(0.4, 0.6, size=40)
        others = [trial(name, raw + 0.05 * rng.normal(size=40)) for name in names]
        report = evaluated([trial(BASELINE, raw), *others], seen, 0.02, 0.1, names)
        false_positives += report.chosen != BASELINE
    assert false_positives / 150 < 0.12 + 3 * np.sqrt(0.12 * 0.88 / 150)
