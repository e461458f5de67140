"""Which candidate to take, what choosing is worth, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from ._trials import AS_IS
from .measures import parse_measure
from .ranking import Ranking
from .relevance import Relevance
from .results import Report
from .tune_report import Tried, TuneReport

BEYOND_CHANCE = 0.025  # of selling noise, one-sided
# Chance of passing a candidate over for bad luck of a group (one-sided), and of turning down the
# choice for that (two-sided, as the report prints it).
SIGNIFICANT = 0.05


@dataclass
class Choice:
    """Picks a candidate by some of the queries."""

    tried: Sequence[Tried]
    seen: np.ndarray
    sign: float
    generalise: bool
    weights: np.ndarray | None = None  # of the queries

    def pick(self, who: np.ndarray) -> int:
        """The best mean of those that harm no group; 0 stands for the vectors as they are.

        A part of another is picked only if it is ahead by more than a standard error.
        """
        raw = self.tried[0].values
        counted = who & ~np.isnan(raw)
        decisive = self._decisive(who)
        gains = [self.sign * (t.values - raw) for t in self.tried]
        groups = (counted & self.seen, counted & ~self.seen)
        fit = [
            number
            for number, gain in enumerate(gains)
            if decisive.any() and self._mean(gain, decisive) > 0
            and not any(_harmed(gain[group]) for group in groups)
        ]  # fmt: skip

        def best(some: list[int], otherwise: int) -> int:
            means = {number: self._mean(gains[number], decisive) for number in some}
            return max(means, key=means.__getitem__, default=otherwise)

        whole = best([number for number in fit if not self.tried[number].part_of], 0)
        parts = [number for number in fit if self.tried[number].part_of]
        if whole:
            parts = [part for part in parts if self._is_ahead(part, whole, decisive, 1)]
        return best(parts, whole)

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
    return bool(error == 0 or stdtr(gains.size - 1, np.mean(gains) / error) < SIGNIFICANT)


def judge(
    choice: Choice, parts: Sequence[np.ndarray], relevance: Relevance, measure: str, level: float
) -> TuneReport:
    """What choosing is worth, without what turns out to harm a group if there is something else."""
    reports = []
    while True:
        draft = _nested(choice, parts, relevance, measure)
        harmed = _worse_group(draft, choice.sign)
        verdict = _verdict(draft, choice.sign, level, harmed)
        reports.append(replace(draft, verdict=verdict))
        if not harmed or not verdict.startswith("It is better"):
            break
        choice = replace(choice, tried=[t for t in choice.tried if t.name != draft.chosen])
    found = reports[-1]
    if not found.verdict.startswith("Better"):
        found = replace(reports[0], chosen=AS_IS)
    return replace(found, tried=reports[0].tried)


def _nested(
    choice: Choice, parts: Sequence[np.ndarray], relevance: Relevance, measure: str
) -> TuneReport:
    """Each part of the held-out queries by the choice of the others."""
    everyone = np.zeros(relevance.n_queries, dtype=bool)
    everyone[np.concatenate(parts)] = True
    after, lists = np.full(relevance.n_queries, np.nan), list(choice.tried[0].lists)
    for part in parts:
        others = everyone.copy()
        others[part] = False
        picked = choice.tried[choice.pick(others)]
        after[part] = picked.values[part]
        for query in part:
            lists[query] = picked.lists[query]
    smaller = frozenset({measure}) if choice.sign < 0 else frozenset()
    before_report, after_report = (
        Report({measure: values}, smaller, relevance.query_ids, relevance.weights)
        for values in (choice.tried[0].values, after)
    )
    rankings = choice.tried[0].lists, Ranking.from_pairs(lists, relevance.n_items)
    return TuneReport(
        measure, list(choice.tried), before_report, after_report, choice.seen, choice.of_all(), "",
        rankings, relevance,
    )  # fmt: skip


def _worse_group(report: TuneReport, sign: float) -> tuple[str, float] | None:
    """A group of queries that lose beyond chance, and that chance."""
    for group, found in report.comparisons.items():
        loss, chance = -sign * found.difference[report.measure], found.p_value[report.measure]
        if group != "all" and loss > 0 and chance < SIGNIFICANT:
            return group, chance
    return None


def _verdict(
    report: TuneReport, sign: float, level: float, harmed: tuple[str, float] | None
) -> str:
    found, name = report.comparisons["all"], report.measure
    if report.chosen == AS_IS:
        return "Nothing tried ranks better than the vectors as they are: keep them."
    gain, chance = sign * found.difference[name], found.p_value[name] / 2
    chance = chance if gain > 0 else 1 - chance
    if chance >= level:
        return (
            f"Nothing is better beyond chance (one-sided p = {chance:.3g}, asked for is "
            f"{level:.3g}): keep the vectors as they are, or judge more queries."
        )
    if harmed:
        return (
            f"It is better on the whole, but worse for queries with {harmed[0]} relevant items "
            f"(p = {harmed[1]:.3g}): keep the vectors as they are."
        )
    return f"Better beyond chance: {report.chosen}, fitted on all queries."


def sign_of(measure: str) -> float:
    """1 if more of the measure is better, -1 if less is."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0
