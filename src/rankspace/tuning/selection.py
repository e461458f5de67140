"""Candidate selection, its p-value, and harm to groups of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from ..evaluation.measures import parse_measure
from ..evaluation.report import Report
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .candidates import BASELINE
from .report import TrialResult, TuneReport

ALPHA = 0.025  # rate of false positives, one-sided
# Significance level of harm to a group, two-sided as the report prints it.
HARM_ALPHA = 0.05
CLEAR = 2.0  # standard errors by which a clear winner beats all others


@dataclass
class Selection:
    """Selects one of several trials by their values on held-out queries.

    Parameters
    ----------
    trials : sequence of TrialResult
        Results of all candidates; the first is the baseline.
    seen : ndarray of bool
        Queries with a relevant item that is also relevant to a training query.
    relevance : Relevance
        Judgments of all queries, and their weights.
    measure : str
        The measure to compare by.
    generalise : bool, default=False
        Whether only queries with new relevant items count.
    preferred : str
        Name of the trial that others must beat by their ``margin``.
    """

    trials: Sequence[TrialResult]
    seen: np.ndarray
    relevance: Relevance
    measure: str
    generalise: bool = False
    preferred: str = ""

    @property
    def all_queries(self) -> np.ndarray:
        """Mask of all queries."""
        return np.ones(self.seen.size, dtype=bool)

    def pick(self, mask: np.ndarray) -> TrialResult:
        """The trial with the best mean over some queries that harms no group of them."""
        baseline = self.trials[0]
        gains = {trial.name: self.gain(trial, mask) for trial in self.trials}
        allowed = []
        for trial in self.trials:
            if gains[trial.name] > 0 and not self._harms(trial, mask):
                allowed.append(trial)
        by_name = {trial.name: trial for trial in self.trials}
        preferred = by_name.get(self.preferred, baseline)
        if preferred in allowed:
            allowed = [
                trial
                for trial in allowed
                if trial is preferred
                or self._beats(trial, preferred, mask, trial.candidate.margin)
            ]
        elif gains[preferred.name] > 0:
            # It gains at the cost of a group. Trials with a margin take the same risk.
            allowed = [trial for trial in allowed if not trial.candidate.margin]
        return max(allowed, key=lambda trial: gains[trial.name], default=baseline)

    def pick_by_all(self) -> TrialResult:
        """The trial that all queries together select."""
        return self.pick(self.all_queries)

    def is_clear(self) -> bool:
        """Whether the selected trial is two standard errors better than all other fits."""
        best = self.pick_by_all()
        return all(
            self._beats(best, other, self.all_queries, CLEAR)
            for other in self.trials
            if other.candidate.fit != best.candidate.fit
        )

    def gain(self, trial: TrialResult, mask: np.ndarray) -> float:
        """Mean gain over the baseline; 0 if none of the queries counts."""
        counted = self._counted(mask)
        if not counted.any():
            return 0.0
        return self._mean(self._gains(trial, self.trials[0]), counted)

    def _gains(self, trial: TrialResult, other: TrialResult) -> np.ndarray:
        return larger_is_better(self.measure) * (trial.values - other.values)

    def _harms(self, trial: TrialResult, mask: np.ndarray) -> bool:
        """Whether the trial is significantly worse than the baseline for one of the groups."""
        gains = self._gains(trial, self.trials[0])
        held_out = mask & ~np.isnan(gains)
        return _is_loss(gains[held_out & self.seen]) or _is_loss(
            gains[held_out & ~self.seen]
        )

    def _beats(
        self, trial: TrialResult, other: TrialResult, mask: np.ndarray, n_errors: float
    ) -> bool:
        """Whether a trial is better than another by more than some standard errors."""
        counted = self._counted(mask)
        gains = self._gains(trial, other)
        error = np.std(gains[counted]) / np.sqrt(counted.sum())
        return self._mean(gains, counted) > n_errors * error

    def _counted(self, mask: np.ndarray) -> np.ndarray:
        """The held-out queries that decide."""
        held_out = mask & ~np.isnan(self.trials[0].values)
        if self.generalise:
            return held_out & ~self.seen
        return held_out

    def _mean(self, gains: np.ndarray, mask: np.ndarray) -> float:
        weights = self.relevance.weights[mask]
        if not weights.any():
            return float(np.mean(gains[mask]))
        return float(np.average(gains[mask], weights=weights))


def larger_is_better(measure: str) -> float:
    """1 for a measure to maximise, -1 for an error."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0


def _is_loss(gains: np.ndarray) -> bool:
    """Whether the mean is significantly below zero, by a t-test."""
    if gains.size < 2 or np.mean(gains) >= 0:
        return False
    error = np.std(gains, ddof=1) / np.sqrt(gains.size)
    if error == 0:
        return True
    return bool(stdtr(gains.size - 1, np.mean(gains) / error) < HARM_ALPHA / 2)


class Evaluation(NamedTuple):
    """The report, and whether the preferred candidate was rejected only for harm to a group."""

    report: TuneReport
    harmful: bool = False


def evaluate_selection(
    selection: Selection,
    parts: Sequence[np.ndarray],
    alpha: float,
    single_alpha: float = 0.0,
    singles: Sequence[str] = (),
) -> Evaluation:
    """Significance test of the selected candidate, or of a single one fixed in advance.

    Selection costs power, because parts of the queries are evaluated with different candidates. So
    the first of the ``singles`` is also tested alone, at the level ``single_alpha``. A test that
    is made only after this one has passed adds no false positives. So the selection, and the other
    singles if the first harms a group, are then tested at the same level.
    """
    tests = [_test_single(selection, name, parts) for name in singles]
    if not tests or tests[0].p_value >= single_alpha:
        return Evaluation(_evaluate_picks(selection, parts, alpha))
    report = _evaluate_picks(selection, parts, single_alpha)
    if report.chosen != BASELINE:
        return Evaluation(report)
    for test in tests:
        if test.passes(single_alpha):
            return Evaluation(test.report_at(single_alpha))
    return Evaluation(tests[0].report_at(single_alpha), tests[0].harm is not None)


def _test_single(
    selection: Selection, name: str, parts: Sequence[np.ndarray]
) -> _PairedTest:
    """Test one candidate by itself."""
    (trial,) = [trial for trial in selection.trials if trial.name == name]
    chosen = name if selection.gain(trial, selection.all_queries) > 0 else BASELINE
    return _paired_test(selection, [(part, trial) for part in parts], chosen)


def _evaluate_picks(
    selection: Selection, parts: Sequence[np.ndarray], alpha: float
) -> TuneReport:
    """Test the selection; if its choice harms a group, select among the other candidates."""
    remaining = selection
    tests = []
    while True:
        picks = []
        for part in parts:
            picks.append((part, remaining.pick(_others(parts, part, selection))))
        chosen = remaining.pick_by_all().name
        test = _paired_test(selection, picks, chosen)
        tests.append(test)
        if chosen == BASELINE or test.p_value >= alpha or test.harm is None:
            break
        trials = [trial for trial in remaining.trials if trial.name != chosen]
        remaining = replace(remaining, trials=trials)
    if tests[-1].passes(alpha):
        return tests[-1].report_at(alpha)
    return tests[0].report_at(alpha)


def _others(
    parts: Sequence[np.ndarray], part: np.ndarray, selection: Selection
) -> np.ndarray:
    """Mask of the held-out queries outside of a part."""
    others = np.zeros(selection.seen.size, dtype=bool)
    others[np.concatenate(parts)] = True
    others[part] = False
    return others


@dataclass(frozen=True)
class _PairedTest:
    """A report without verdict, its one-sided p-value, and a group with a significant loss."""

    report: TuneReport
    p_value: float
    harm: tuple[str, float] | None

    def passes(self, alpha: float) -> bool:
        """Whether the improvement is significant and harms no group."""
        significant = self.report.chosen != BASELINE and self.p_value < alpha
        return significant and self.harm is None

    def report_at(self, alpha: float) -> TuneReport:
        """The report with its verdict at a significance level."""
        chosen = BASELINE
        if self.passes(alpha):
            chosen = self.report.chosen
        return replace(self.report, chosen=chosen, verdict=self._verdict(alpha))

    def _verdict(self, alpha: float) -> str:
        if self.passes(alpha):
            return (
                f"Significantly better: {self.report.chosen}, refitted on all queries."
            )
        if self.report.chosen == BASELINE:
            return "No candidate ranks better than the unchanged vectors: keep them."
        if self.harm is None or self.p_value >= alpha:
            return (
                f"No significant improvement (one-sided p = {self.p_value:.3g}; required: "
                f"p < {alpha:.2g}): keep the vectors unchanged, or judge more queries."
            )
        group, p_value = self.harm
        return (
            f"Better overall, but significantly worse for queries with {group} relevant items "
            f"(p = {p_value:.3g}): keep the vectors unchanged."
        )


def _paired_test(
    selection: Selection, picks: Sequence[tuple[np.ndarray, TrialResult]], chosen: str
) -> _PairedTest:
    """Paired test against the baseline, each part of the queries with its own candidate."""
    baseline = selection.trials[0]
    relevance = selection.relevance
    measure = selection.measure
    sign = larger_is_better(measure)
    values = np.full(relevance.n_queries, np.nan)
    lists = list(baseline.ranking)
    for part, trial in picks:
        values[part] = trial.values[part]
        for query in part:
            lists[query] = trial.ranking[query]
    smaller_is_better = frozenset({measure}) if sign < 0 else frozenset()
    before = Report(
        {measure: baseline.values},
        smaller_is_better,
        relevance.query_ids,
        relevance.weights,
    )
    report = TuneReport(
        measure,
        list(selection.trials),
        before,
        replace(before, values={measure: values}),
        selection.seen,
        chosen,
        "",
        (baseline.ranking, Ranking.from_pairs(lists, relevance.n_items)),
        relevance,
    )
    return _PairedTest(report, _p_value(report, sign), _harmed_group(report, sign))


def _p_value(report: TuneReport, sign: float) -> float:
    """One-sided p-value of the improvement."""
    comparison = report.comparisons["all"]
    two_sided = comparison.p_value[report.measure]
    if sign * comparison.difference[report.measure] > 0:
        return two_sided / 2
    return 1 - two_sided / 2


def _harmed_group(report: TuneReport, sign: float) -> tuple[str, float] | None:
    """A group of queries with a significant loss, and its p-value."""
    for group, comparison in report.comparisons.items():
        loss = -sign * comparison.difference[report.measure]
        p_value = comparison.p_value[report.measure]
        if group != "all" and loss > 0 and p_value < HARM_ALPHA:
            return group, p_value
    return None
