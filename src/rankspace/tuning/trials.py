"""Trials of families: cross-validation, choice of a strength, and one test of both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..evaluation.cross_validation import (
    Evidence,
    Question,
    cross_validate,
    evaluate_on,
    measurable,
)
from ..evaluation.measures import parse_measure
from ..evaluation.search_task import SearchTask
from ..evaluation.significance import holm
from ..learners.families import Family
from .selection import (
    ALPHA,
    Verdict,
    choose_strength,
    cross_fit,
    decide,
    tested_question,
)


class OutOfTime(Exception):
    """The time budget ended."""


class Deadline:
    """A time limit; its check raises once the time is over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else time.time() + seconds

    def check(self) -> None:
        """Raise if the time is over."""
        if time.time() > self.end:
            raise OutOfTime


@dataclass(frozen=True, eq=False)
class Result:
    """What came out for one family.

    Parameters
    ----------
    family : Family
        The family.
    path : Evidence
        Held-out values of each strength.
    strength : int
        The strength chosen by all folds, counted from 1; 0 is the baseline.
    judged : Evidence
        The values that are tested: those of the path, or of the dev queries.
    strengths : dict of str to ndarray
        The strength that each query of each question is judged with.
    verdict : Verdict
        The decision.
    """

    family: Family
    path: Evidence
    strength: int
    judged: Evidence
    strengths: dict[str, np.ndarray]
    verdict: Verdict

    def question(self, name: str) -> Question:
        """A question with the one row that is tested."""
        return self.judged.questions[name].at(self.strengths[name])


def best_result(results: Sequence[Result], prefer: str) -> Result | None:
    """The result to act on: of those to ship, the largest gain where preferred; else the first."""

    def gain(result: Result) -> float:
        estimates = result.verdict.estimates
        return estimates[tested_question(estimates, prefer)].mean

    shipped = [result for result in results if result.verdict.decision != "keep"]
    return max(shipped or results[:1], key=gain, default=None)


@dataclass(eq=False)
class Trials:
    """Trials of families on the same task, folds and time limit.

    ``on_dev`` is a mask of queries to judge on, which nothing is learned from; without any,
    queries are judged by cross-validation.
    """

    task: SearchTask
    on_dev: np.ndarray
    prefer: str
    tolerance: float
    n_folds: int
    seed: int
    deadline: Deadline
    progress: Callable[[str, float], Any]
    skipped: list[str] = field(default_factory=list)

    @cached_property
    def nothing_to_gain(self) -> bool:
        """Whether unchanged vectors are within the tolerance of a perfect score."""
        measure, _ = parse_measure(self.task.measure)
        if not measure.larger_is_better:
            return False
        return self.task.baseline_mean() >= 1 - self.tolerance

    @cached_property
    def training(self) -> SearchTask:
        """The task without the dev queries."""
        return self.task.without(self.on_dev)

    def run(self, families: Sequence[Family]) -> list[Result]:
        """The results of all families, tested with Holm's correction if they are several."""
        results = []
        for number, family in enumerate(families):
            try:
                results.append(self._run_one(family, number, len(families)))
            except OutOfTime:
                self.skipped.append(family.label)
        levels = holm([result.verdict.p_value for result in results], ALPHA)
        return [
            self._decided(result, level)
            for result, level in zip(results, levels, strict=True)
        ]

    def _run_one(self, family: Family, number: int, n: int) -> Result:
        def show(fraction: float) -> None:
            self.progress(f"cross-validating: {family.label}", (number + fraction) / n)

        show(0.0)
        settings = (self.prefer, self.tolerance)
        task, check = self.training, self.deadline.check
        judged = path = cross_validate(
            family, task, self.n_folds, self.seed, check, show
        )
        strength = choose_strength(measurable(path.questions), *settings)
        if self.on_dev.any():
            judged = evaluate_on(family, self.task, self.on_dev, check)
            chosen = np.full(judged.groups.size, strength)
            strengths = dict.fromkeys(path.questions, chosen)
        else:
            strengths = cross_fit(path.questions, *settings)
        tested = {name: q.at(strengths[name]) for name, q in judged.questions.items()}
        verdict = decide(tested, *settings)
        return Result(family, path, strength, judged, strengths, verdict)

    def _decided(self, result: Result, level: float) -> Result:
        """The result with its decision at a level of significance."""
        tested = {name: result.question(name) for name in result.strengths}
        verdict = decide(tested, self.prefer, self.tolerance, level)
        if not result.strength:
            # Some folds may choose maps where all queries together choose none.
            verdict = verdict._replace(decision="keep")
        return replace(result, verdict=verdict)
