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

SIGNIFICANT = 0.05  # chance of selling noise, and of harm to a group, in the end
DOUBTFUL = 0.2  # chance of harm to a group from which a candidate is passed over


@dataclass
class Choice:
    """Picks a candidate by some of the queries."""

    tried: Sequence[Tried]
    seen: np.ndarray
    sign: float
    generalise: bool

    def pick(self, who: np.ndarray) -> int:
        """The best mean of those that may harm no group, unless the first is about as good.

        Differences below a standard error are chance, and the first tried is what suits most data.
        0 stands for the vectors as they are.
        """
        raw = self.tried[0].values
        counted = who & ~np.isnan(raw)
        decisive = counted & ~self.seen if self.generalise else counted
        gains = [self.sign * (t.values - raw) for t in self.tried]
        groups = (counted & self.seen, counted & ~self.seen)
        fit = [
            number
            for number, gain in enumerate(gains)
            if decisive.any() and np.mean(gain[decisive]) > 0
            and not any(_may_harm(gain[group]) for group in groups)
        ]  # fmt: skip
        if not fit:
            return 0
        best = max(fit, key=lambda number: np.mean(gains[number][decisive]))
        ahead = (gains[best] - gains[fit[0]])[decisive]
        return best if np.mean(ahead) > np.std(ahead) / np.sqrt(ahead.size) else fit[0]

    def of_all(self) -> str:
        """The name of what all queries together pick."""
        return self.tried[self.pick(np.ones(self.seen.size, dtype=bool))].name


def _may_harm(gains: np.ndarray) -> bool:
    """Whether the mean is below zero, by more than small groups show by chance alone."""
    if gains.size < 2 or np.mean(gains) >= 0:
        return False
    error = np.std(gains, ddof=1) / np.sqrt(gains.size)
    return bool(error == 0 or stdtr(gains.size - 1, np.mean(gains) / error) < DOUBTFUL)


def judge(
    choice: Choice, parts: Sequence[np.ndarray], relevance: Relevance, measure: str, level: float
) -> TuneReport:
    """What choosing is worth: each part of the held-out queries by the choice of the others."""
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
    draft = TuneReport(
        measure, list(choice.tried), before_report, after_report, choice.seen, choice.of_all(), "",
        rankings, relevance,
    )  # fmt: skip
    verdict = _verdict(draft, choice.sign, level)
    chosen = draft.chosen if verdict.startswith("Better") else AS_IS
    return replace(draft, chosen=chosen, verdict=verdict)


def _verdict(report: TuneReport, sign: float, level: float) -> str:
    groups, name = report.comparisons, report.measure
    if report.chosen == AS_IS:
        return "Nothing tried ranks better than the vectors as they are: keep them."
    gain, chance = sign * groups["all"].difference[name], groups["all"].p_value[name]
    if gain <= 0 or chance >= level:
        return (
            f"Nothing is better beyond chance (p = {chance:.3g}, asked for is {level:.3g}): keep "
            "the vectors as they are, or judge more queries."
        )
    for group in ("seen", "new"):
        if group not in groups:
            continue
        loss, chance = -sign * groups[group].difference[name], groups[group].p_value[name]
        if loss > 0 and chance < SIGNIFICANT:
            return (
                f"It is better on the whole, but worse for queries with {group} relevant items "
                f"(p = {chance:.3g}): keep the vectors as they are."
            )
    return f"Better beyond chance: {report.chosen}, fitted on all queries."


def sign_of(measure: str) -> float:
    """1 if more of the measure is better, -1 if less is."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0
