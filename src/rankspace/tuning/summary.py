"""Summary of the trials of `tune`: the tables, sentences and next steps of its report."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..display.page.html import interval, measure_label, number, p_text, signed
from ..evaluation.cross_validation import (
    MIN_GROUPS,
    MIN_QUERIES,
    Evidence,
    HeldOutValues,
    measurable,
)
from ..evaluation.held_out import TOP, Score, judged_share, orientation
from ..evaluation.report import Report
from ..evaluation.search_task import SearchTask
from ..evaluation.significance import queries_needed
from ..search.ranking import Ranking
from .explanations import with_explanations
from .parts import Learned
from .report import GAINS, PathRow, QuestionRow, TuneReport, as_agreement
from .selection import (
    ALPHA,
    PROTECTED,
    outcome,
    tested_question,
)
from .trials import Result, Trials

QUESTIONS = ("all", "known", "new")
LONGER = "Run it with a longer budget, or without one."


def make_report(
    learned: Learned, numbers: np.ndarray, refit_on_dev: bool = False
) -> TuneReport:
    """The report of all trials, about the best result; ``numbers`` are those of the queries."""
    if learned.best is None:
        report = _unlearned(learned.trials, numbers)
    else:
        report = _about_best(learned, learned.best, numbers, refit_on_dev)
        report = with_explanations(report, learned, numbers)
    teacher = learned.trials.task.relevance.teacher
    return report if teacher is None else as_agreement(report, teacher)


def _about_best(
    learned: Learned, best: Result, numbers: np.ndarray, refit_on_dev: bool
) -> TuneReport:
    """The report of the result to act on."""
    trials, results = learned.trials, learned.results
    on_dev = bool(trials.on_dev.any())
    judged = trials.on_dev if on_dev else ~trials.on_dev
    data = trials.task.take(judged)
    sign = orientation(data.measure)
    rows = {name: _question_row(best, name, data) for name in QUESTIONS}
    shares = (rows["all"].judged_unchanged, rows["all"].judged_tuned)
    return TuneReport(
        decision=best.verdict.decision,
        sentence=_sentence(trials, results, best, rows),
        judged_on="dev queries" if on_dev else "held-out queries",
        questions=list(rows.values()),
        path=_path_rows(results, best, trials.training),
        p_value=best.verdict.p_value,
        needed=_needed(best, rows, sign),
        judged_share=shares,
        notes=_notes(trials, rows, shares, refit_on_dev),
        next_steps=_next_steps(trials, best, rows, learned.is_reduced),
        known=best.judged.by_query.known,
        query_numbers=numbers[judged],
        **_lists(best, data),
        **_settings(trials, data),
    )


def _settings(trials: Trials, data: SearchTask) -> dict[str, Any]:
    """What was asked for, and what was left out."""
    return {
        "measure": data.measure,
        "similarity": data.similarity,
        "prefer": trials.prefer,
        "relevance": data.relevance,
        "skipped": trials.skipped,
    }


def _lists(best: Result, data: SearchTask) -> dict[str, Any]:
    """Values of single queries, and their first documents, with unchanged and tuned vectors."""
    values, sign = best.judged.by_query, orientation(data.measure)
    unchanged = np.zeros(data.n_queries, dtype=np.int64)
    tuned = best.strengths["all"]
    return {
        "before": _report(sign * _at(values.values, unchanged), data),
        "after": _report(sign * _at(values.values, tuned), data),
        "rankings": (_ranking(values, unchanged, data), _ranking(values, tuned, data)),
    }


def _unlearned(trials: Trials, numbers: np.ndarray) -> TuneReport:
    """The report when nothing was learned: no room for a gain, or no time."""
    data = trials.task
    score = data.baseline()
    everything = np.full(data.n_queries, np.nan)
    everything[data.sample] = orientation(data.measure) * score.values
    report = _report(everything, data)
    ranking = _baseline_ranking(score, data)
    is_late = bool(trials.skipped)
    return TuneReport(
        decision="keep",
        sentence=_unlearned_sentence(trials),
        judged_on="all queries" if len(score.values) == data.n_queries else "a sample",
        questions=[],
        path=[],
        p_value=1.0,
        needed={},
        judged_share=(np.nan, np.nan),
        notes=[_skipped(trials)] if is_late else [],
        next_steps=[LONGER] if is_late else [],
        before=report,
        after=report,
        known=np.full(data.n_queries, np.nan),
        rankings=(ranking, ranking),
        query_numbers=numbers,
        **_settings(trials, data),
    )


def _unlearned_sentence(trials: Trials) -> str:
    if trials.skipped:
        return (
            f"Keep what you have: the time budget ended before the {trials.skipped[0]} was "
            "cross-validated."
        )
    label = measure_label(trials.task.measure)
    return (
        f"Keep what you have: unchanged vectors have {label} "
        f"{number(trials.task.baseline_mean())}, so there is nothing to gain."
    )


def _skipped(trials: Trials) -> str:
    return f"Skipped for lack of time: {', '.join(trials.skipped)}."


# ---------------------------------------------------------------------- values


def _at(table: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """The entry of each query at a strength of its own."""
    return table[strengths, np.arange(strengths.size)]


def _judged_share(tops: np.ndarray, data: SearchTask) -> float:
    """Share of the first ten items that are judged; NaN where those that are not do not count."""
    relevance = data.relevance
    if relevance.has_classes or not relevance.unlisted_is_irrelevant:
        return np.nan
    return judged_share(tops[:, :TOP], relevance)


def _report(values: np.ndarray, data: SearchTask) -> Report:
    errors = frozenset([data.measure] if orientation(data.measure) < 0 else [])
    return Report(
        {data.measure: values},
        errors,
        data.relevance.query_ids,
        data.relevance.weights,
        similarity=data.similarity,
    )


def _ranking(values: HeldOutValues, strengths: np.ndarray, data: SearchTask) -> Ranking:
    """The first items of each query with a strength of its own."""
    tops = _at(values.tops, strengths)[:, :TOP]
    return _as_ranking(tops, _at(values.distances, strengths)[:, :TOP], data)


def _baseline_ranking(score: Score, data: SearchTask) -> Ranking:
    """The first items of the queries of a sample; other lists are empty."""
    tops = np.full((data.n_queries, score.tops.shape[1]), -1)
    distances = np.full(tops.shape, np.nan)
    tops[data.sample] = score.tops
    distances[data.sample] = score.distances
    return _as_ranking(tops, distances, data)


def _as_ranking(tops: np.ndarray, distances: np.ndarray, data: SearchTask) -> Ranking:
    shown = tops >= 0
    ends = np.cumsum(shown.sum(axis=1))
    return Ranking(
        np.concatenate(([0], ends)),
        tops[shown],
        distances[shown],
        data.relevance.n_items,
        similarity=data.similarity,
    )


# ---------------------------------------------------------------------- tables


def _question_row(best: Result, name: str, data: SearchTask) -> QuestionRow:
    label = _label(name, data)
    question = best.question(name)
    asked = ~np.isnan(question.differences[0])
    n_groups = int(np.unique(question.clusters[asked]).size)
    counts = (int(asked.sum()), n_groups)
    n_of_all = int(np.unique(best.judged.groups).size)
    if name == "new" and best.judged is best.path and n_of_all < MIN_GROUPS:
        # With so few groups, none was held out.
        counts = (asked.size, n_of_all)
    if name not in best.verdict.estimates:
        blank = (np.nan,) * 6
        return QuestionRow(label, *blank, *counts, "not measurable")
    estimate = best.verdict.estimates[name]
    sign = orientation(data.measure)
    values = best.judged.values_of(name)
    unchanged = sign * float(values.values[0, asked].mean())
    difference = sign * estimate.mean
    memory = sign * _memory(best.path.by_query.memory, values.memory[:, asked])
    low, high = sorted(sign * limit for limit in estimate.interval)
    means = (unchanged, memory, unchanged + difference)
    verdict = best.verdict.outcomes[name]
    shares = []
    for strengths in (np.zeros(asked.size, dtype=np.int64), best.strengths[name]):
        tops = np.where(asked[:, None], _at(values.tops, strengths), -1)
        shares.append(_judged_share(tops, data))
    return QuestionRow(label, *means, difference, low, high, *counts, verdict, *shares)


def _label(name: str, data: SearchTask) -> str:
    if name == "all":
        return "all queries"
    return f"{name} {'classes' if data.relevance.has_classes else 'documents'}"


def _memory(by_fold: np.ndarray, memory: np.ndarray) -> float:
    """Mean of the memory baseline with the weight that is best over all queries of the folds."""
    if np.isnan(by_fold).all():
        return np.nan
    best = int(np.nanmean(by_fold, axis=1).argmax())
    return float(np.nanmean(memory[best]))


def _path_rows(results: list[Result], best: Result, data: SearchTask) -> list[PathRow]:
    sign = orientation(data.measure)
    acted_on = 0 if best.verdict.decision == "keep" else best.strength
    rows: list[PathRow] = []
    for result in results:
        means = sign * _path_means(result.path)
        for strength, label in enumerate(("unchanged", *result.family.strengths)):
            if strength == 0 and rows:
                continue
            family = result.family.label if strength else ""
            chosen = strength == acted_on and (not strength or result is best)
            judged = _judged_share(result.path.by_query.tops[strength], data)
            row = (*means[strength].tolist(), chosen, judged)
            rows.append(PathRow(family, label, *row))
    return rows


def _path_means(path: Evidence) -> np.ndarray:
    """Means by strength, for all queries and for known and new documents; NaN if too few."""
    means = np.full((len(path.by_query.values), len(QUESTIONS)), np.nan)
    for name, question in measurable(path.questions).items():
        asked = ~np.isnan(question.differences[0])
        values = path.values_of(name).values[:, asked]
        means[:, QUESTIONS.index(name)] = values.mean(axis=1)
    return means


def _needed(
    best: Result, rows: dict[str, QuestionRow], sign: float
) -> dict[str, dict[float, int]]:
    """Queries that show a gain with 80 % power, by the spread of the best strength.

    Errors may be ranks, for which gains of this size mean nothing. Where no query changes there is
    no spread, and where there is one group it is unknown.
    """
    needed: dict[str, dict[float, int]] = {}
    if sign < 0:
        return needed
    for name, question in measurable(best.path.questions).items():
        means = np.nanmean(question.differences[1:], axis=1)
        spread = question.estimate(1 + int(means.argmax()))
        if spread.standard_error > 0:
            counts = {gain: queries_needed(gain, spread) for gain in GAINS}
            needed[rows[name].label] = counts
    return needed


# ---------------------------------------------------------------------- sentences


def _sentence(
    trials: Trials, results: list[Result], best: Result, rows: dict[str, QuestionRow]
) -> str:
    decision = best.verdict.decision
    if decision == "keep":
        reason = _harm(trials, best, rows) or _no_gain(trials, results, best, rows)
        return f"Keep what you have: {reason}"
    row = rows[tested_question(best.verdict.estimates, trials.prefer)]
    where = "" if row is rows["all"] else f" for {row.label}"
    what = "Ship it"
    if decision == "known only":
        what = f"Ship it for {rows['known'].label} only"
    return _plain(
        f"{what} ({best.family.label}): {measure_label(trials.task.measure)}{where} improves from "
        f"{number(row.unchanged)} to {number(row.tuned)} (p {p_text(best.verdict.p_value)}). "
        f"{_about_new(trials, best, rows['new'])}"
    )


def _plain(sentence: str) -> str:
    """The same in ASCII, for terminals and JSON."""
    return sentence.replace("\u2212", "-").replace("\u00a0", " ")


def _change(row: QuestionRow) -> str:
    limits = interval((row.low, row.high), signed)
    return f"{signed(row.difference)}, 95 % interval {limits}"


def _about_new(trials: Trials, best: Result, row: QuestionRow) -> str:
    name = row.label.capitalize()
    if row.outcome == "safe" and orientation(trials.task.measure) * row.difference < 0:
        return f"{name} lose less than {trials.tolerance:g}: {_change(row)}."
    if row.outcome == "safe":
        return f"{name} do not lose: {_change(row)}."
    if row.outcome == "harmed":
        return f"{name} lose: {_change(row)}."
    if row.outcome == "undecided":
        return f"{name} may lose: {_change(row)}{_to_settle(trials, best)}."
    return f"{name} could not be measured."


def _to_settle(trials: Trials, best: Result) -> str:
    """How many queries would show whether new documents lose more than the tolerance.

    No number does, if they neither gain nor may lose anything.
    """
    estimate = best.verdict.estimates["new"]
    margin = max(estimate.mean, -trials.tolerance / 2) + trials.tolerance
    if margin <= 0:
        return ""
    return f"; {queries_needed(margin, estimate):,} judged queries would settle it"


def _harm(trials: Trials, best: Result, rows: dict[str, QuestionRow]) -> str:
    """Which protected question loses: by the tested map, or by the one that gains most."""
    questions = measurable(best.path.questions)
    strongest_gain = int(np.nanmean(questions["all"].differences, axis=1).argmax())
    sign = orientation(trials.task.measure)
    for name in PROTECTED[trials.prefer]:
        if best.verdict.outcomes.get(name) == "harmed":
            lost = _change(rows[name])
            return _plain(f"with the learned map, {rows[name].label} lose: {lost}.")
        if best.strength or not strongest_gain or name not in questions:
            continue
        estimate = questions[name].estimate(strongest_gain)
        if outcome(estimate, trials.tolerance) == "harmed":
            limits = sorted(sign * limit for limit in estimate.interval)
            lost = f"{signed(sign * estimate.mean)} ({interval((limits[0], limits[1]), signed)})"
            return _plain(
                f"with the map that gains most, {rows[name].label} lose: {lost}. No stronger "
                "regularisation gains without harm."
            )
    return ""


def _no_gain(
    trials: Trials, results: list[Result], best: Result, rows: dict[str, QuestionRow]
) -> str:
    target = tested_question(best.verdict.estimates, trials.prefer)
    row = rows[target]
    if not row.difference:
        gains = np.nanmean(best.path.questions[target].differences, axis=1)
        by = "" if gains.max() <= 0 else " by more than the error of the difference"
        return f"no regularisation ranks better than unchanged vectors{by}."
    if not best.strength and best.verdict.p_value <= best.verdict.level:
        return _plain(
            f"the gain for {row.label}, {_change(row)}, rests on maps that only some folds choose. "
            "All queries together choose unchanged vectors."
        )
    required = best.verdict.level
    return _plain(
        f"no significant gain for {row.label}: {_change(row)} (p {p_text(best.verdict.p_value)}, "
        f"required: at most {required:.2g})."
    )


def _notes(
    trials: Trials,
    rows: dict[str, QuestionRow],
    shares: tuple[float, float],
    refit_on_dev: bool,
) -> list[str]:
    """How to read the tables, and what could not be measured."""
    tolerance = f"{trials.tolerance:g}"
    notes = [
        _about_tuned(bool(trials.on_dev.any()), refit_on_dev),
        f"Safe: loses less than {tolerance}, by the 95 % interval. Harmed: loses more than "
        f"{tolerance}, or loses significantly. Undecided: too few queries to tell.",
    ]
    if not np.isnan(rows["all"].memory):
        notes.append(
            "Memory: no map, but documents judged relevant to similar past queries rank higher."
        )
    if orientation(trials.task.measure) > 0:
        notes.append(
            "Queries needed: with so many judged queries, a gain of this size is significant in "
            "four of five cases."
        )
    for row in rows.values():
        if row.outcome == "not measurable":
            notes.append(
                f"Not measurable: {row.label}. That takes {MIN_QUERIES} queries in {MIN_GROUPS} "
                f"groups that share no relevant document; there are {row.n_queries} in "
                f"{row.n_groups}."
            )
    if not np.isnan(shares[0]):
        notes.append(
            f"Of the first ten documents, {shares[0]:.0%} are judged with unchanged vectors and "
            f"{shares[1]:.0%} with tuned ones; the others count as irrelevant."
        )
    if trials.skipped:
        notes.append(_skipped(trials))
    return notes


def _about_tuned(on_dev: bool, refit_on_dev: bool) -> str:
    """What the values of the learned map are."""
    if not on_dev:
        return "Tuned: each query is ranked by a map that it took no part in learning or choosing."
    if not refit_on_dev:
        return "Tuned: the map is learned without the dev queries."
    return (
        "Tuned: values of a map learned without the dev queries; the map that is returned is "
        "learned from them too."
    )


def _next_steps(
    trials: Trials, best: Result, rows: dict[str, QuestionRow], is_reduced: bool
) -> list[str]:
    """What to do next: sentences, and commands that start with "rankspace"."""
    if best.verdict.decision == "keep":
        return _steps_to_gain(trials, best)
    steps: list[str] = []
    if is_reduced:
        # The steps of smaller vectors follow.
        pass
    elif not best.strength:
        steps.append("Search unchanged vectors, as you do now.")
    elif best.family.method == "query":
        steps += [
            "Map each query before the search. Documents and their index stay unchanged.",
            "rankspace transform METRIC QUERIES.npy --side queries --output MAPPED.npy",
            "rankspace export METRIC --to onnx --side queries --output QUERIES.onnx",
        ]
    else:
        steps += [
            "Build a new index of mapped documents. It maps queries itself.",
            "rankspace export METRIC --to faiss --vectors CORPUS.npy --output CORPUS.faiss",
        ]
    if best.verdict.decision == "known only":
        steps.append(
            f"Where searches are for {rows['new'].label}, keep unchanged vectors until more "
            "queries are judged."
        )
    return steps


def _steps_to_gain(trials: Trials, best: Result) -> list[str]:
    """What may help where nothing is gained."""
    steps = ["Judge more queries, and run tune again."]
    known = best.path.questions["known"]
    if trials.prefer != "known" and known.is_measurable:
        means = np.nanmean(known.differences[1:], axis=1)
        gain = known.estimate(1 + int(means.argmax()))
        if gain.p_value <= ALPHA:
            steps.append(
                f"If all your searches are for {_judged_things(trials)}, tune for these: "
                "prefer='known', or --prefer known."
            )
    return steps


def _judged_things(trials: Trials) -> str:
    if trials.task.relevance.has_classes:
        return "classes with examples"
    return "documents with judged queries"
