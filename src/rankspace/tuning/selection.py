"""Selection of a strength by held-out queries, with the one-standard-error rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from ..evaluation.cross_validation import Question, Questions, measurable
from ..evaluation.significance import ClusteredMean, clustered_mean

ALPHA = 0.025  # one-sided level of the only test

# The questions that each preference averages over, and those it protects from harm.
TARGETS = {"both": ("known", "new"), "known": ("known",), "new": ("new",)}
PROTECTED = {"both": ("known", "new"), "known": (), "new": ("known",)}


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


def cross_fit(
    questions: Questions, prefer: str, tolerance: float
) -> dict[str, np.ndarray]:
    """The strength that the other folds choose for each query of each question.

    No query takes part in choosing its own strength.
    """
    chosen = {}
    for name, question in questions.items():
        folds = question.folds
        assert folds is not None
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
