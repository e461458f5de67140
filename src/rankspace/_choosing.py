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
    choice: Choice, parts: Sequence[np.ndarray], relevance: Relevance, measure: str,
    level: float, alone: float = 0.0,
) -> TuneReport:  # fmt: skip
    """What choosing is worth, or what the first candidate is, if that is all one can be sure of.

    The first is tested by itself at a level of its own, ``alone``, for choosing has a price: what
    each part is judged by differs. If it passes, choosing may add to it at that level too.
    """
    everyone = np.concatenate(parts)
    first = replace(choice, tried=choice.tried[:2])
    if alone and first.of_all() != AS_IS:
        draft = _draft(first, [(everyone, 1)], relevance, measure)
        draft = replace(
            draft, verdict=_verdict(draft, choice.sign, alone), tried=list(choice.tried)
        )
        if draft.verdict.startswith("Better"):
            chosen = _chosen(choice, parts, relevance, measure, alone)
            return draft if chosen.chosen == AS_IS else chosen
    return _chosen(choice, parts, relevance, measure, level)


def _chosen(
    choice: Choice, parts: Sequence[np.ndarray], relevance: Relevance, measure: str, level: float
) -> TuneReport:
    """What choosing is worth, without what turns out to harm a group if there is something else."""
    tried = list(choice.tried)
    while True:
        picks = [(part, choice.pick(_others(parts, part, relevance.n_queries))) for part in parts]
        found = _draft(choice, picks, relevance, measure)
        found = replace(found, verdict=_verdict(found, choice.sign, level), tried=tried)
        if len(choice.tried) == len(tried):
            draft = found
        if not found.verdict.startswith("It is better"):
            break
        choice = replace(choice, tried=[t for t in choice.tried if t.name != found.chosen])
    return found if found.verdict.startswith("Better") else replace(draft, chosen=AS_IS)


def _others(parts: Sequence[np.ndarray], part: np.ndarray, n_queries: int) -> np.ndarray:
    """Held-out queries but for a part."""
    others = np.zeros(n_queries, dtype=bool)
    others[np.concatenate(parts)] = True
    others[part] = False
    return others


def _draft(
    choice: Choice, picks: Sequence[tuple[np.ndarray, int]], relevance: Relevance, measure: str
) -> TuneReport:
    """A report on parts of the queries, each judged by a candidate of its own."""
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


def _verdict(report: TuneReport, sign: float, level: float) -> str:
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
    if harmed := _worse_group(report, sign):
        return (
            f"It is better on the whole, but worse for queries with {harmed[0]} relevant items "
            f"(p = {harmed[1]:.3g}): keep the vectors as they are."
        )
    return f"Better beyond chance: {report.chosen}, fitted on all queries."


def sign_of(measure: str) -> float:
    """1 if more of the measure is better, -1 if less is."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0
