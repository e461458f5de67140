"""Sentences, notes and next steps of the tuning report."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from rankspace import Relevance, tune
from rankspace.cli.main import build_parser
from rankspace.evaluation.cross_validation import Evidence, HeldOutValues, measurable
from rankspace.evaluation.search_task import check_task
from rankspace.evaluation.significance import ClusteredMean
from rankspace.learners.families import families
from rankspace.metrics.embedding import unchanged_metric
from rankspace.tuning import summary
from rankspace.tuning.parts import Learned
from rankspace.tuning.selection import choose_strength, decide
from rankspace.tuning.summary import make_report
from rankspace.tuning.trials import Deadline, Result, Trials

N = 200  # queries, half of them for known documents


def fold_values(gains, spread, known=0.0):
    """Values with these mean gains along the path, the same noise at each strength."""
    noise = spread * np.linspace(-1, 1, N)[np.random.default_rng(0).permutation(N)]
    gains = np.array([0.0, *gains])
    values = 0.5 + gains[:, None] + np.where(gains[:, None], noise, 0.0)
    tops = np.tile(np.arange(10), (len(gains), N, 1))
    memory = np.full((5, N), 0.6)
    return HeldOutValues(values, memory, tops, tops - 10.0, np.full(N, known))


def report_of(
    known,
    new,
    prefer="both",
    spread=0.05,
    method="query",
    measure="map",
    tolerance=0.01,
):
    """The report about these gains of known and of new documents along the path."""
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(50, 3)), rng.normal(size=(N, 3))
    relevance = Relevance.from_lists(np.arange(N)[:, None] % 50, n_items=50)
    task, _ = check_task(X, relevance, Q, "cosine", measure)
    on_dev = np.zeros(N, dtype=bool)
    quiet = (lambda step, fraction: None,)
    trials = Trials(task, on_dev, prefer, tolerance, None, 0, Deadline(None), *quiet)
    family = families([method], "cosine", measure, True, 0)[0]
    steps = len(family.strengths)
    path = Evidence(
        fold_values([*known, *[known[-1]] * (steps - len(known))], spread, known=1.0),
        fold_values([*new, *[new[-1]] * (steps - len(new))], spread),
        np.arange(N),
        np.arange(N),
    )
    questions = path.questions
    strength = choose_strength(measurable(questions), prefer, tolerance)
    strengths = dict.fromkeys(questions, np.full(N, strength))
    tested = {name: q.at(strengths[name]) for name, q in questions.items()}
    verdict = decide(tested, prefer, tolerance)
    result = Result(family, path, strength, path, strengths, verdict)
    metric = unchanged_metric(2, "cosine")
    learned = Learned(trials, [result], result, None, metric, family.label)
    return make_report(learned, np.arange(N))


def test_ship():
    report = report_of([0.05, 0.1], [0.0, 0.02])
    assert report.decision == "ship"
    assert report.sentence.startswith(
        "Ship it (map of the queries): MAP improves from 0.500 to 0.600 (p < 0.001). "
        "New documents do not lose: +0.020, 95 % interval +0.016 to +0.024."
    )
    assert [row.chosen for row in report.path].index(True) == 2


def test_undecided_ships_for_known_documents_only():
    report = report_of([0.3, 0.3], [-0.001, -0.001], spread=0.2)
    assert report.decision == "known only"
    assert report.sentence.startswith("Ship it for known documents only (map of the")
    assert "New documents may lose: -0.001, 95 % interval -0.017 to +0.015; " in (
        report.sentence
    )
    # Twice the normal quantiles of level and power, squared, over the squared margin of 0.009.
    deviation = 0.2 * np.std(np.linspace(-1, 1, N), ddof=1)
    # The test is by Student's t, which takes about half of 1.96 squared more.
    expected = (2.801585 * deviation / 0.009) ** 2 + 1.96**2 / 2
    number = report.sentence.split("; ")[1].removesuffix(
        " judged queries would settle it."
    )
    assert int(number.replace(",", "")) == pytest.approx(expected, abs=1)
    assert "keep unchanged vectors until more" in report.next_steps[-1]


def test_a_loss_within_the_tolerance_is_called_a_loss():
    sentence = report_of([0.3, 0.3], [-0.0006, -0.0006], spread=0.05).sentence
    assert "New documents lose less than 0.01: -0.001, 95 %" in sentence


def test_no_number_of_queries_settles_a_tolerance_of_zero():
    trials = SimpleNamespace(tolerance=0.0)
    for mean, settled in ((0.0, False), (0.02, True)):
        estimates = {"new": ClusteredMean(mean, 0.1, 100, 100)}
        best = SimpleNamespace(verdict=SimpleNamespace(estimates=estimates))
        assert ("would settle it" in summary._to_settle(trials, best)) == settled


def test_new_documents_that_nothing_changes_for_do_not_lose():
    report = report_of([0.3, 0.3], [0.0, 0.0], tolerance=0)
    assert report.decision == "ship"
    assert "New documents do not lose: 0.000, 95 % interval" in report.sentence


def test_keep_because_all_that_gain_harm_new_documents():
    report = report_of([0.1, 0.2], [-0.1, -0.2])
    assert report.decision == "keep"
    assert report.sentence == (
        "Keep what you have: with the map that gains most, new documents lose: -0.200 (-0.204 to "
        "-0.196). No stronger regularisation gains without harm."
    )
    assert any("--prefer known" in step for step in report.next_steps)
    assert report.path[0].chosen


def test_harm_that_is_not_protected_is_no_reason():
    report = report_of([-0.001, -0.002], [-0.1, -0.2], prefer="known")
    assert report.decision == "keep"
    assert report.sentence == (
        "Keep what you have: no regularisation ranks better than unchanged vectors."
    )
    shipped = report_of([0.1, 0.2], [-0.1, -0.2], prefer="known")
    assert shipped.decision == "known only"
    assert "MAP for known documents improves from 0.500 to 0.700" in shipped.sentence
    assert "New documents lose: -0.200" in shipped.sentence


def test_keep_without_significance_says_what_was_required():
    report = report_of([0.01, 0.01], [0.01, 0.01], spread=0.2)
    assert report.decision == "keep"
    assert report.sentence.startswith(
        "Keep what you have: no significant gain for all queries: +0.010, 95 % interval "
    )
    assert report.sentence.endswith("required: at most 0.025).")


def test_a_gain_within_its_error_is_not_denied():
    """The table shows a higher mean than that of unchanged vectors."""
    report = report_of([0.001, 0.001], [0.001, 0.001], spread=0.5)
    assert report.path[1].everything > report.path[0].everything
    assert report.sentence == (
        "Keep what you have: no regularisation ranks better than unchanged vectors by more than "
        "the error of the difference."
    )


def test_an_error_that_falls_is_a_gain():
    report = report_of([0.05, 0.1], [0.0, 0.02], measure="first-rank")
    row = report.question("all")
    assert (row.unchanged, row.tuned) == pytest.approx((-0.5, -0.6))
    assert row.difference == pytest.approx(-0.1)
    assert row.low < row.difference < row.high
    assert "improves from -0.500 to -0.600" in report.sentence


def test_text_and_json_are_plain():
    report = report_of([0.05, 0.1], [0.0, -1e-9])
    text = str(report)
    assert text.isascii()
    assert "-0.000 " not in text
    first, blank, sentence = text.splitlines()[:3]
    assert first == (
        "similarity: cosine; measure: MAP, on held-out queries; prefer: both"
    )
    assert (blank, sentence) == ("", report.sentence)
    content = json.loads(report.to_json())
    assert content["sentence"] == report.sentence
    assert content["questions"][0]["memory"] == pytest.approx(0.6)
    assert report.to_csv().count("\n") == 4


@pytest.mark.parametrize("method", ["query", "separate"])
def test_next_steps_are_sentences_or_commands_that_parse(method):
    steps = report_of([0.05, 0.1], [0.0, 0.02], method=method).next_steps
    commands = [step for step in steps if step.startswith("rankspace ")]
    assert commands
    for step in steps:
        if step in commands:
            build_parser().parse_args(step.split()[1:])
        else:
            assert step.endswith(".")


def test_rankings_and_reports_carry_the_similarity():
    report = report_of([0.05, 0.1], [0.0, 0.02])
    assert {r.similarity for r in report.rankings} == {"cosine"}
    assert {r.similarity for r in (report.before, report.after)} == {"cosine"}


def labelled(n_classes, **settings):
    """The report about labelled points, whose classes differ in one of three features."""
    y = np.arange(20 * n_classes) % n_classes
    X = np.random.default_rng(0).normal(size=(y.size, 3)) + y[:, None] * [1, 0, 0]
    return tune(X, y, n_folds=2, random_state=0, measure="map", **settings).report


def test_few_classes_say_how_many_it_takes():
    report = labelled(3)
    row = report.question("new")
    assert (row.label, row.outcome) == ("new classes", "not measurable")
    assert (
        "Not measurable: new classes. That takes 30 queries in 10 groups that share no "
        "relevant document; there are 60 in 3."
    ) in report.notes
    assert all(np.isnan(row.new) for row in report.path)
    assert not any("Of the first ten" in note for note in report.notes)
    assert all(np.isnan(report.judged_share))


def test_nothing_to_gain_and_no_time(tmp_path):
    X = np.eye(12).repeat(2, axis=0)
    report = tune(X, np.arange(24) // 2, similarity="cosine").report
    assert report.sentence == (
        "Keep what you have: unchanged vectors have NDCG@10 (linear gain) 1.000, so there is "
        "nothing to gain."
    )
    late = labelled(3, budget=0)
    assert "the time budget ended before the map shared by queries and items" in str(
        late
    )
    assert str(late).count("\n\n\n") == 0
    for done in (report, late):
        assert done.write_page(tmp_path / "page.html").exists()


@pytest.mark.parametrize("refit", [False, True])
def test_the_report_says_what_dev_queries_taught(refit):
    report = labelled(3, dev=np.arange(20), refit_on_dev=refit)
    assert report.judged_on == "dev queries"
    told = "Tuned: the map is learned without the dev queries."
    if refit:
        told = (
            "Tuned: values of a map learned without the dev queries; the map that is "
            "returned is learned from them too."
        )
    assert report.notes[0] == told


def test_no_number_of_queries_is_named_where_no_query_changes():
    report = report_of([0.05, 0.1], [0.0, 0.0])
    assert "new documents" not in report.needed
    assert report.question("new").difference == 0
    assert "all queries" in report.needed
