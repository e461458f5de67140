"""Selection of a strength by held-out queries, with the one-standard-error rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from ..evaluation.significance import ClusteredMean, clustered_mean

# Fewer queries, or fewer groups that are independent, measure nothing.
MIN_QUERIES = 30
MIN_GROUPS = 10
ALPHA = 0.025  # one-sided level of the only test

# The questions that each preference averages over, and those it protects from harm.
TARGETS = {"both": ("known", "new"), "known": ("known",), "new": ("new",)}
PROTECTED = {"both": ("known", "new"), "known": (), "new": ("known",)}


class Question(NamedTuple):
    """Differences from the baseline that answer one question.

    ``differences`` has a row for each strength, the baseline first, and NaN for queries that the
    question is not about; ``clusters`` are queries that depend on each other. With several folds,
    whose maps were learned from overlapping data, errors of folds are correlated too.
    """

    differences: np.ndarray
    clusters: np.ndarray
    n_folds: int = 1

    def estimate(self, strength: int) -> ClusteredMean:
        """Mean difference of a strength, with its standard error."""
        mean = clustered_mean(self.differences[strength], self.clusters)
        if self.n_folds == 1:
            return mean
        # With correlation r of any two folds the variance is 1 + (n_folds - 1) r times as large. On
        # 400 samples of 300 queries of NFCorpus r was .03 to .08 with 5 folds.
        factor = float(np.sqrt(1 + 1 / self.n_folds))
        return mean._replace(standard_error=factor * mean.standard_error)

    def at(self, strengths: np.ndarray) -> Question:
        """The question with one row: the given strength for each query."""
        row = self.differences[strengths, np.arange(strengths.size)]
        return self._replace(differences=row[None])

    def without(self, queries: np.ndarray) -> Question:
        """The question without some queries, given as a mask."""
        differences = np.where(queries, np.nan, self.differences)
        return self._replace(differences=differences)

    @property
    def is_measurable(self) -> bool:
        """Whether there are enough queries and groups."""
        asked = ~np.isnan(self.differences[0])
        n_groups = np.unique(self.clusters[asked]).size
        return int(asked.sum()) >= MIN_QUERIES and n_groups >= MIN_GROUPS


Questions = Mapping[str, Question]


def outcome(estimate: ClusteredMean, tolerance: float) -> str:
    """Whether a difference is "harmed", "safe" or "undecided"."""
    low, high = estimate.interval
    if high < 0 or estimate.mean < -tolerance:
        return "harmed"
    if low >= -tolerance:
        return "safe"
    return "undecided"


def choose_strength(questions: Questions, prefer: str, tolerance: float) -> int:
    """The strongest regularisation within one standard error of the best, unless it harms.

    Strengths are compared by the mean over the questions that ``prefer`` names. One that harms a
    protected question gives way to the next stronger one; the last is the baseline, 0.
    """
    asked = [questions[name] for name in TARGETS[prefer] if name in questions]
    if not asked:
        asked = [questions["all"]]
    scores = np.mean([np.nanmean(q.differences, axis=1) for q in asked], axis=0)
    best = int(scores.argmax())
    strength = 0
    while scores[best] - scores[strength] > _standard_error(asked, best, strength):
        strength += 1
    protected = [questions[name] for name in PROTECTED[prefer] if name in questions]
    while strength and any(
        outcome(question.estimate(strength), tolerance) == "harmed"
        for question in protected
    ):
        strength -= 1
    return strength


def _standard_error(asked: list[Question], best: int, strength: int) -> float:
    """Standard error of the mean paired difference of two strengths over questions."""
    squares = 0.0
    for question in asked:
        paired = question.differences[best] - question.differences[strength]
        squares += clustered_mean(paired, question.clusters).standard_error ** 2
    return float(np.sqrt(squares)) / len(asked)


def measurable(questions: Questions) -> Questions:
    """The questions with enough queries; that about all queries always stays."""
    return {
        name: question
        for name, question in questions.items()
        if name == "all" or question.is_measurable
    }


def cross_fit(
    questions: Questions,
    fold_of: Mapping[str, np.ndarray],
    prefer: str,
    tolerance: float,
) -> dict[str, np.ndarray]:
    """The strength that the other folds choose for each query of each question.

    No query takes part in choosing its own strength. ``fold_of`` names the folds of each question.
    """
    chosen = {}
    for name, folds in fold_of.items():
        chosen[name] = np.zeros(folds.size, dtype=np.int64)
        for fold in np.unique(folds):
            held_out = folds == fold
            others = {n: q.without(held_out) for n, q in questions.items()}
            strength = choose_strength(measurable(others), prefer, tolerance)
            chosen[name][held_out] = strength
    return chosen


class Verdict(NamedTuple):
    """The decision about one family, and the estimates it rests on."""

    decision: str  # "ship", "known only" or "keep"
    p_value: float  # of the only test, one-sided
    estimates: Mapping[str, ClusteredMean]
    outcomes: Mapping[str, str]
    level: float = ALPHA  # that the p-value had to reach


def tested_question(measured: Collection[str], prefer: str) -> str:
    """The question that is tested: the preferred one, if it can be measured."""
    return prefer if prefer in measured else "all"


def decide(
    questions: Questions, prefer: str, tolerance: float, alpha: float = ALPHA
) -> Verdict:
    """Decide by one test of the whole procedure, and by whether it harms a protected question."""
    usable = measurable(questions)
    estimates = {name: question.estimate(0) for name, question in usable.items()}
    outcomes = {name: outcome(e, tolerance) for name, e in estimates.items()}
    p_value = estimates[tested_question(estimates, prefer)].p_value
    harmed = [name for name in PROTECTED[prefer] if outcomes.get(name) == "harmed"]
    is_better = p_value <= alpha  # False for a p-value that is NaN
    if not is_better or harmed:
        decision = "keep"
    elif outcomes.get("new", "safe") == "safe":
        decision = "ship"
    else:
        decision = "known only"
    return Verdict(decision, p_value, estimates, outcomes, alpha)


def holm(p_values: list[float], alpha: float = ALPHA) -> list[float]:
    """The level at which each p-value is tested, by Holm's correction for several tests.

    Once one is not significant, all larger ones need its level, which they cannot reach.
    """
    levels = [0.0] * len(p_values)
    failed = False
    level = 0.0
    for place, number in enumerate(np.argsort(p_values, kind="stable")):
        if not failed:
            level = alpha / (len(p_values) - place)
            failed = not p_values[number] <= level
        levels[number] = level
    return levels
