"""Early stopping of FRML: validation checks, learning-rate schedule, and checkpoints.

A `TrainingState` holds everything that determines the rest of the training. It is saved at each
check, and a run that resumes from it gives the same result, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ....evaluation.measures import evaluate
from ....relevance.relevance import Relevance
from ....search.index import Index
from ..checkpoint import check_like, check_shapes
from .descent import Descent, Progress, Statistics

DECAY = 4.0  # the learning rate is divided by this when nothing improves
MAX_CUTS = 3  # of the learning rate, before training stops early
# Triplets between two choices of the embedding strategy.
MIN_STRETCH = 320
MAX_STRETCH = 5000
# The row of a check in the history.
ROW = {
    "n_triplets": 0,
    "score": 0.0,
    "loss": 0.0,
    "violators": 0.0,
    "draws": 0.0,
    "step": 0.0,
    "multiplier": 0.0,
    "strategy": "",
    "seconds": 0.0,
}


@dataclass
class Schedule:
    """Training length, and when to check for early stopping."""

    n_triplets: int
    check_every: int
    patience: int


@dataclass
class TrainingState:
    """State of the training at a check: all that a checkpoint stores."""

    progress: Progress
    seed: int
    best: np.ndarray
    best_score: float = -np.inf
    n_unimproved: int = 0
    n_cuts: int = 0
    done: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)

    def update_best(self, score: float, patience: int) -> None:
        """Keep the best factor; return to it with a lower learning rate if nothing improves."""
        if score > self.best_score:
            self.best = self.progress.F
            self.best_score = score
            self.n_unimproved = 0
            return
        self.n_unimproved += 1
        if self.n_unimproved >= patience:
            self.n_cuts += 1
            self.n_unimproved = 0
            self.progress.F = self.best
            self.progress.multiplier /= DECAY

    def as_dict(self) -> dict[str, Any]:
        """The fields, those of the progress included, for a checkpoint."""
        return {**vars(self), "progress": None, **vars(self.progress)}

    @staticmethod
    def check(
        state: dict[str, Any], shape: tuple[int, int], schedule: Schedule
    ) -> None:
        """Raise ValueError unless training can go on from what `as_dict` returned.

        ``shape`` is that of the factor.
        """
        factor = np.zeros(shape)
        example = TrainingState(Progress(factor, factor), 0, factor).as_dict()
        check_like(state, {**example, "history": [ROW]}, "the state")
        check_shapes(state, dict.fromkeys(("F", "start", "best"), shape))
        sums = [state[name] for name in ("distance", "squares", "draws")]
        if min(sums) < 0 or state["multiplier"] <= 0 or state["seed"] >= 2**32:
            raise ValueError(
                "a sum is negative, multiplier not positive, or seed too large"
            )
        if not state["done"] and state["n_triplets"] >= schedule.n_triplets:
            raise ValueError("n_triplets is beyond the end of the training")

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> TrainingState:
        """The state from what `as_dict` returned."""
        progress = {field.name: state.pop(field.name) for field in fields(Progress)}
        return cls(**{**state, "progress": Progress(**progress)})


@dataclass
class Validator:
    """Validation score of a factor on held-out queries; larger is better."""

    items: Any
    points: Any
    judged: Relevance
    measure: str

    def score(self, F: np.ndarray) -> float:
        """The measure, or its negative if smaller is better."""
        items = self.items @ F.astype(self.items.dtype, copy=False)
        points = self.points @ F.astype(self.points.dtype, copy=False)
        report = evaluate(Index(items).blocks(points), self.judged, self.measure)
        sign = -1.0 if report.smaller_is_better else 1.0
        return sign * report.means[self.measure]


def descend(
    state: TrainingState,
    descent: Descent,
    schedule: Schedule,
    validator: Validator | None,
    at_check: Callable[[TrainingState], bool],
) -> None:
    """Train until early stopping, the maximum number of triplets, or until ``at_check`` is true."""
    while not state.done:
        started = time.perf_counter()
        before = state.progress.n_triplets
        statistics = _until_check(state.progress, descent, schedule)
        score = float("nan")
        if validator is not None:
            score = validator.score(state.progress.F)
        seconds = time.perf_counter() - started
        row = _row(state, statistics, before, score, seconds)
        if validator is None:
            state.best = state.progress.F
        else:
            state.update_best(score, schedule.patience)
        state.history.append(row)
        finished = state.progress.n_triplets >= schedule.n_triplets
        state.done = finished or state.n_cuts > MAX_CUTS
        if at_check(state):
            state.done = True


def _until_check(
    progress: Progress, descent: Descent, schedule: Schedule
) -> Statistics:
    """Train up to the next multiple of ``check_every`` triplets, or to the end."""
    n_checks = progress.n_triplets // schedule.check_every
    stop = min((n_checks + 1) * schedule.check_every, schedule.n_triplets)
    total = Statistics()
    while progress.n_triplets < stop:
        stretch = max(progress.n_triplets, MIN_STRETCH)
        stretch = min(stretch, MAX_STRETCH, stop - progress.n_triplets)
        total = total.add(descent.run(progress, stretch))
    return total


def _row(
    state: TrainingState,
    statistics: Statistics,
    before: int,
    score: float,
    seconds: float,
) -> dict[str, Any]:
    n = state.progress.n_triplets - before
    return {
        "n_triplets": state.progress.n_triplets,
        "score": score,
        "loss": statistics.loss / n,
        "violators": statistics.violators / n,
        "draws": statistics.draws / n,
        "step": float(statistics.length),
        "multiplier": state.progress.multiplier,
        "strategy": statistics.strategy,
        "seconds": seconds,
    }
