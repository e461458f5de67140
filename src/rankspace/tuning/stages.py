"""Staged search: more candidates and folds, until one is significantly better."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .candidates import BASELINE, Candidate
from .cross_validation import CrossValidation, seen_queries
from .report import TuneReport
from .selection import ALPHA, Evaluation, Selection, evaluate_selection

# Shares of ALPHA for a first stage with one fold, and for the stage of the listwise maps. The last
# stage has the rest, so that all stages together give no more false positives than one test.
FIRST_FOLD_SHARE = 0.05
MAPS_SHARE = 0.85
# Share of a stage for the test of the preferred map alone.
PREFERRED_SHARE = 0.9


class Budget:
    """Time budget in seconds; None has no end."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def allows(self, seconds: float) -> bool:
        """Whether so many seconds are left."""
        return self.seconds is None or self.elapsed + seconds <= self.seconds


@dataclass(frozen=True)
class Stage:
    """Candidates, the folds to evaluate them on, and the significance level to spend.

    ``preferred_share`` of the level is for the test of the preferred candidate alone.
    """

    candidates: Sequence[Candidate]
    folds: range
    alpha: float
    preferred_share: float = 0.0


def plan_stages(
    candidates: Sequence[Candidate], n_folds: int, first_fold: bool, exhaustive: bool
) -> list[Stage]:
    """Stages of the search, whose significance levels add up to ``ALPHA``."""
    maps = [c for c in candidates if c.method == "listwise"]
    others = [c for c in candidates if c.method != "listwise"]
    every_fold = range(n_folds)
    if exhaustive:
        share = PREFERRED_SHARE if maps else 0.0
        return [Stage(candidates, every_fold, ALPHA, share)]
    stages = []
    if maps and first_fold:
        alpha = FIRST_FOLD_SHARE * ALPHA
        stages.append(Stage(maps, range(1), alpha, PREFERRED_SHARE))
    if maps:
        stages.append(Stage(maps, every_fold, MAPS_SHARE * ALPHA, PREFERRED_SHARE))
    if others or not maps:
        stages.append(Stage(others, every_fold, 0.0))
    rest = ALPHA - sum(stage.alpha for stage in stages[:-1])
    return [*stages[:-1], replace(stages[-1], alpha=rest)]


@dataclass
class StagedSearch:
    """Runs the stages one by one, within the budget, until a candidate is significantly better."""

    cross_validation: CrossValidation
    generalise: bool
    seed: int
    budget: Budget
    progress: Callable[[str, float], Any]
    fitted: dict[str, Candidate] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    preferred: str = ""  # of the first candidate
    leader: str = ""  # of the previous stage; it goes first in case time is short

    def __post_init__(self) -> None:
        validation = self.cross_validation
        self.seen = seen_queries(
            validation.splits, validation.tests, validation.relevance.n_queries
        )

    def run(self, stages: Sequence[Stage]) -> TuneReport:
        """The report of the first stage with a significant gain, or else of the last one."""
        spent = 0.0
        for number, stage in enumerate(stages):
            fraction_done = (number + 1) / len(stages)
            self._evaluate_candidates(stage, number / len(stages), fraction_done)
            later = stages[number + 1 :]
            if number and self.cross_validation.names(stage.folds) == [BASELINE]:
                # No time for any candidate: the previous stage gets the rest of the level.
                stage = stages[number - 1]
                spent -= stage.alpha
                later = []
            is_last = not later or not self._has_time(later[0].folds)
            if is_last:
                stage = replace(stage, alpha=ALPHA - spent)
            report = self._test(stage, fraction_done)
            if report.chosen != BASELINE:
                break
            if is_last:
                for other in later:
                    self.skipped += [candidate.name for candidate in other.candidates]
                break
            spent += stage.alpha
            self.leader = self._selection(stage.folds).pick_by_all().name
        tried = {trial.name for trial in report.trials}
        skipped = [name for name in dict.fromkeys(self.skipped) if name not in tried]
        return replace(report, skipped=skipped)

    def _evaluate_candidates(self, stage: Stage, start: float, end: float) -> None:
        """Cross-validate the candidates of this and earlier stages, then with smaller regs."""
        new = {candidate.name: candidate for candidate in stage.candidates}
        todo = list({**self.fitted, **new}.values())
        todo.sort(key=self._is_not_leader)
        list(self.cross_validation.run([Candidate(BASELINE)], stage.folds))
        # With a budget one by one, as each may be the last there is time for.
        size = 1
        if todo and self.budget.seconds is None:
            size = len(todo)
        for first in range(0, len(todo), size):
            batch_start = start + (end - start) * first / len(todo)
            batch_end = start + (end - start) * (first + size) / len(todo)
            batch = todo[first : first + size]
            if not self._cross_validate(batch, stage.folds, batch_start, batch_end):
                self.skipped += [candidate.name for candidate in todo[first:]]
                return
        while candidate := self._less_regularised(stage.folds):
            if not self._cross_validate([candidate], stage.folds, end, end):
                self.skipped.append(candidate.name)
                return

    def _is_not_leader(self, candidate: Candidate) -> bool:
        return all(part.name != self.leader for part in candidate.with_parts)

    def _cross_validate(
        self,
        candidates: Sequence[Candidate],
        folds: Sequence[int],
        start: float,
        end: float,
    ) -> bool:
        """Cross-validate candidates if there is time; returns whether there was."""
        if not self._has_time(folds):
            return False
        names = [candidate.name for candidate in candidates]
        self.progress(names[0], start)
        finished = self.cross_validation.run(candidates, folds)
        for n_finished, name in enumerate(finished, start=1):
            following = min(names.index(name) + 1, len(names) - 1)
            fraction = start + (end - start) * n_finished / (len(names) + 1)
            self.progress(names[following], fraction)
        self.fitted.update(zip(names, candidates, strict=True))
        self.preferred = self.preferred or candidates[0].preferred
        return True

    def _has_time(self, folds: Sequence[int]) -> bool:
        return self.budget.allows(1.5 * self.cross_validation.max_seconds(folds))

    def _less_regularised(self, folds: Sequence[int]) -> Candidate | None:
        """The candidate with the next smaller reg, if the best one is clearly ahead."""
        selection = self._selection(folds)
        if not selection.is_clear():
            return None
        candidate = selection.pick_by_all().candidate.less_regularised
        if candidate is None or candidate.name in self.fitted:
            return None
        return candidate

    def _selection(self, folds: Sequence[int]) -> Selection:
        validation = self.cross_validation
        return Selection(
            validation.trials(folds),
            self.seen,
            validation.relevance,
            validation.measure,
            self.generalise,
            self.preferred,
        )

    def _test(self, stage: Stage, fraction_done: float) -> TuneReport:
        """Test the stage, and again with the fallback if the preferred candidate does harm."""
        evaluation = self._evaluate(stage)
        if evaluation.harmful and self._try_fallback(stage, fraction_done):
            evaluation = self._evaluate(stage)
        return evaluation.report

    def _evaluate(self, stage: Stage) -> Evaluation:
        singles = self._singles(stage)
        share = stage.preferred_share if singles else 0.0
        return evaluate_selection(
            self._selection(stage.folds),
            self._parts(stage),
            alpha=(1 - share) * stage.alpha,
            single_alpha=share * stage.alpha,
            singles=singles,
        )

    def _singles(self, stage: Stage) -> list[str]:
        """Candidates to test alone: the preferred one, which was fixed before, and its fallback."""
        if not stage.preferred_share or not stage.candidates:
            return []
        first = stage.candidates[0]
        names = self.cross_validation.names(stage.folds)
        if names[1:2] != [first.name]:
            return []
        if first.fallback is None or first.fallback.preferred not in names:
            return [first.preferred]
        return [first.preferred, first.fallback.preferred]

    def _try_fallback(self, stage: Stage, fraction_done: float) -> bool:
        """Cross-validate the fallback of the first candidate; returns whether it is new."""
        fallback = stage.candidates[0].fallback
        if fallback is None or fallback.name in self.fitted:
            return False
        if self._cross_validate([fallback], stage.folds, fraction_done, fraction_done):
            return True
        self.skipped.append(fallback.name)
        return False

    def _parts(self, stage: Stage) -> list[np.ndarray]:
        """The folds, or two random halves of a single fold."""
        parts = [self.cross_validation.tests[fold] for fold in stage.folds]
        if len(parts) > 1:
            return parts
        order = np.random.default_rng(self.seed).permutation(parts[0])
        return [order[::2], order[1::2]]
