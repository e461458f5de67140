"""Which candidate to take, what choosing is worth, and whether that is more than chance."""

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
from .report import TrialResult, TuneReport
from .trials import AS_IS

ALPHA = 0.025  # of selling noise, one-sided
SIGNIFICANT = 0.05  # chance of calling bad luck of a group harm, two-sided, as the report prints it


@dataclass
class Selection:
    """Picks a candidate by some of the queries."""

    tried: Sequence[TrialResult]
    seen: np.ndarray
    sign: float
    generalise: bool
    weights: np.ndarray | None = None  # of the queries
    preferred: str = ""  # the candidate that others must be ahead of by their ``lead``

    def pick(self, who: np.ndarray) -> int:
        """The best mean of those that harm no group; 0 stands for the vectors as they are.

        Those with a ``lead`` must be so far ahead of the preferred one, and are passed over where
        even that gains on the whole at the cost of a group.
        """
        means = [self.gain(number, who) for number in range(len(self.tried))]
        fit = [
            n for n, mean in enumerate(means) if mean > 0 and not self._harms(n, who)
        ]
        preferred = next(
            (n for n, t in enumerate(self.tried) if t.name == self.preferred), 0
        )
        if preferred in fit:
            fit = [n for n in fit if n == preferred or self._leads(n, preferred, who)]
        elif means[preferred] > 0:  # it does harm
            fit = [n for n in fit if not self.tried[n].lead]
        return max(fit, key=means.__getitem__, default=0)

    def _harms(self, number: int, who: np.ndarray) -> bool:
        """Whether a candidate is worse than the vectors for one of the groups, beyond chance."""
        gains = self.sign * (self.tried[number].values - self.tried[0].values)
        counted = who & ~np.isnan(gains)
        return any(_harmed(gains[counted & group]) for group in (self.seen, ~self.seen))

    def _leads(self, number: int, preferred: int, who: np.ndarray) -> bool:
        return self._is_ahead(
            number, preferred, self._decisive(who), self.tried[number].lead
        )

    def gain(self, number: int, who: np.ndarray) -> float:
        """The mean by which a candidate is better than the vectors, 0 if nobody decides."""
        decisive = self._decisive(who)
        gains = self.sign * (self.tried[number].values - self.tried[0].values)
        return self._mean(gains, decisive) if decisive.any() else 0.0

    def _is_ahead(self, one: int, other: int, who: np.ndarray, errors: float) -> bool:
        """Whether one is better than another by more than so many standard errors."""
        ahead = self.sign * (self.tried[one].values - self.tried[other].values)
        return self._mean(ahead, who) > errors * np.std(ahead[who]) / np.sqrt(who.sum())

    def _decisive(self, who: np.ndarray) -> np.ndarray:
        counted = who & ~np.isnan(self.tried[0].values)
        return counted & ~self.seen if self.generalise else counted

    def _mean(self, gains: np.ndarray, who: np.ndarray) -> float:
        return float(np.average(gains[who], weights=_at(self.weights, who)))

    def of_all(self) -> str:
        """The name of what all queries together pick."""
        return self.tried[self.pick(np.ones(self.seen.size, dtype=bool))].name

    def is_clear(self) -> bool:
        """Whether what all pick is ahead of all other fits by more than two standard errors."""
        everyone = np.ones(self.seen.size, dtype=bool)
        picked = self.pick(everyone)
        return all(
            self._is_ahead(picked, number, self._decisive(everyone), 2)
            for number, other in enumerate(self.tried)
            if other.fit != self.tried[picked].fit
        )


def _at(weights: np.ndarray | None, who: np.ndarray) -> np.ndarray | None:
    """Weights of some of the queries, or none if they are all zero."""
    return None if weights is None or not weights[who].any() else weights[who]


def _harmed(gains: np.ndarray) -> bool:
    """Whether the mean is below zero beyond chance."""
    if gains.size < 2 or np.mean(gains) >= 0:
        return False
    error = np.std(gains, ddof=1) / np.sqrt(gains.size)
    return bool(
        error == 0 or stdtr(gains.size - 1, np.mean(gains) / error) < SIGNIFICANT / 2
    )


class Judged(NamedTuple):
    """The report, and whether the first candidate was turned down for the harm it does alone."""

    report: TuneReport
    harm: bool = False


def judge(
    choice: Selection,
    parts: Sequence[np.ndarray],
    relevance: Relevance,
    measure: str,
    level: float,
    alone: float = 0.0,
    singles: Sequence[str] = (),
) -> Judged:
    """What choosing is worth, or what a single candidate is, if that is all one can be sure of.

    Choosing has a price, for parts of the queries are judged by different candidates. So the first
    of the singles is tested by itself, at a level of its own, ``alone``. Where nothing is better
    than chance it passes no more often than that level says, and what is tested only after it has
    passed cannot add to it: so choosing, and the other singles where the first harms a group, are
    then tested at that level too.
    """
    found = [_single(choice, name, parts, relevance, measure) for name in singles]
    if not found or found[0].chance >= alone:
        return Judged(_chosen(choice, parts, relevance, measure, level))
    chosen = _chosen(choice, parts, relevance, measure, alone)
    if chosen.chosen != AS_IS:
        return Judged(chosen)
    passed = [draft for draft in found if draft.is_better(alone)]
    draft = passed[0] if passed else found[0]
    return Judged(draft.report_at(alone), harm=not passed and draft.harmed is not None)


def _single(
    choice: Selection,
    name: str,
    parts: Sequence[np.ndarray],
    relevance: Relevance,
    measure: str,
) -> _Draft:
    """What a candidate by itself is worth."""
    alone = replace(choice, tried=[t for t in choice.tried if t.name in (AS_IS, name)])
    draft = _draft(alone, [(part, 1) for part in parts], relevance, measure)
    chosen = name if alone.gain(1, np.ones(choice.seen.size, dtype=bool)) > 0 else AS_IS
    return replace(
        draft, report=replace(draft.report, tried=list(choice.tried), chosen=chosen)
    )


def _chosen(
    choice: Selection,
    parts: Sequence[np.ndarray],
    relevance: Relevance,
    measure: str,
    level: float,
) -> TuneReport:
    """What choosing is worth, without what turns out to harm a group if there is something else."""
    tried, drafts = list(choice.tried), []
    while True:
        picks = [
            (part, choice.pick(_others(parts, part, relevance.n_queries)))
            for part in parts
        ]
        drafts.append(_draft(choice, picks, relevance, measure))
        chosen = drafts[-1].report.chosen
        if chosen == AS_IS or drafts[-1].chance >= level or drafts[-1].harmed is None:
            break
        choice = replace(choice, tried=[t for t in choice.tried if t.name != chosen])
    told = drafts[-1] if drafts[-1].is_better(level) else drafts[0]
    return replace(told.report_at(level), tried=tried)


@dataclass(frozen=True)
class _Draft:
    """A report before its verdict, the chance of such a gain, and a group that loses beyond it."""

    report: TuneReport
    chance: float  # one-sided
    harmed: tuple[str, float] | None

    def is_better(self, level: float) -> bool:
        """Whether the choice may be taken."""
        return (
            self.report.chosen != AS_IS and self.chance < level and self.harmed is None
        )

    def report_at(self, level: float) -> TuneReport:
        """The report with a verdict at a level of selling noise."""
        chosen = self.report.chosen if self.is_better(level) else AS_IS
        return replace(self.report, chosen=chosen, verdict=self._verdict(level))

    def _verdict(self, level: float) -> str:
        if self.is_better(level):
            return f"Better beyond chance: {self.report.chosen}, fitted on all queries."
        if self.report.chosen == AS_IS:
            return "Nothing tried ranks better than the vectors as they are: keep them."
        if self.harmed is None or self.chance >= level:
            return (
                f"Nothing is better beyond chance (one-sided p = {self.chance:.3g}, asked for is "
                f"{level:.3g}): keep the vectors as they are, or judge more queries."
            )
        return (
            f"It is better on the whole, but worse for queries with {self.harmed[0]} relevant "
            f"items (p = {self.harmed[1]:.3g}): keep the vectors as they are."
        )


def _others(
    parts: Sequence[np.ndarray], part: np.ndarray, n_queries: int
) -> np.ndarray:
    """Held-out queries but for a part."""
    others = np.zeros(n_queries, dtype=bool)
    others[np.concatenate(parts)] = True
    others[part] = False
    return others


def _draft(
    choice: Selection,
    picks: Sequence[tuple[np.ndarray, int]],
    relevance: Relevance,
    measure: str,
) -> _Draft:
    """Parts of the queries, each judged by a candidate of its own."""
    after, lists = np.full(relevance.n_queries, np.nan), list(choice.tried[0].lists)
    for part, number in picks:
        after[part] = choice.tried[number].values[part]
        for query in part:
            lists[query] = choice.tried[number].lists[query]
    smaller = frozenset({measure}) if choice.sign < 0 else frozenset()
    before_report, after_report = (
        Report({measure: values}, smaller, relevance.query_ids, relevance.weights)
        for values in (choice.tried[0].values, after)
    )
    rankings = choice.tried[0].lists, Ranking.from_pairs(lists, relevance.n_items)
    report = TuneReport(
        measure,
        list(choice.tried),
        before_report,
        after_report,
        choice.seen,
        choice.of_all(),
        "",
        rankings,
        relevance,
    )
    return _Draft(
        report, _chance(report, choice.sign), _worse_group(report, choice.sign)
    )


def _chance(report: TuneReport, sign: float) -> float:
    """How likely chance alone gives such a gain."""
    found, name = report.comparisons["all"], report.measure
    two_sided = found.p_value[name]
    return two_sided / 2 if sign * found.difference[name] > 0 else 1 - two_sided / 2


def _worse_group(report: TuneReport, sign: float) -> tuple[str, float] | None:
    """A group of queries that lose beyond chance, and that chance."""
    for group, found in report.comparisons.items():
        loss, chance = (
            -sign * found.difference[report.measure],
            found.p_value[report.measure],
        )
        if group != "all" and loss > 0 and chance < SIGNIFICANT:
            return group, chance
    return None


def sign_of(measure: str) -> float:
    """1 if more of the measure is better, -1 if less is."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0
