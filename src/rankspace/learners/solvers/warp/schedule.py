"""A descent watched on held-out queries: when to shorten steps, when to stop, what to return.

Everything that decides how it goes on is in a `Run`, which is a few matrices and numbers. It is
stored at each check, and from there a killed run goes on to the same answer, bit for bit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...._engine.files import PathLike, replacing
from ....evaluation.measures import evaluate
from ....relevance.relevance import Relevance
from ....search.index import Index
from .descent import Descent, Progress, Statistics

SHORTER, MOST_CUTS = 4.0, 3  # steps are shortened by this factor, so often
STRETCHES = (
    320,
    5000,
)  # triplets between two choices of the way to embed, at first and at most
ARRAYS = ("F", "start", "best")


@dataclass
class Schedule:
    """How long to go on."""

    n_triplets: int
    check_every: int
    patience: int


@dataclass
class Run:
    """Where a watched descent stands at a check."""

    progress: Progress
    seed: int
    best: np.ndarray
    best_score: float = -np.inf
    n_unimproved: int = 0
    n_cuts: int = 0
    done: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)

    def judge(self, score: float, patience: int) -> None:
        """Keep the best factor; from there, go on with shorter steps when nothing gets better."""
        if score > self.best_score:
            self.best, self.best_score, self.n_unimproved = self.progress.F, score, 0
            return
        self.n_unimproved += 1
        if self.n_unimproved >= patience:
            self.n_cuts += 1
            self.n_unimproved = 0
            self.progress.F = self.best
            self.progress.multiplier /= SHORTER

    # ------------------------------------------------------------------ files

    def save(self, path: PathLike, fingerprint: str) -> None:
        """Write a checkpoint, whole or not at all."""
        from safetensors.numpy import save

        numbers = {
            name: value for name, value in asdict(self).items() if name not in ARRAYS
        }
        progress = numbers.pop("progress")
        numbers.update({name: v for name, v in progress.items() if name not in ARRAYS})
        arrays = {"F": self.progress.F, "start": self.progress.start, "best": self.best}
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        header = {"fingerprint": fingerprint, "run": json.dumps(numbers)}
        with replacing(path) as stream:
            stream.write(save(arrays, header))

    @classmethod
    def load_if_there(cls, path: PathLike | None, fingerprint: str) -> Run | None:
        """Read a checkpoint of the same data and parameters, if there is one."""
        from safetensors import SafetensorError, safe_open

        if path is None or not Path(path).exists():
            return None
        try:
            with safe_open(path, framework="numpy") as stored:
                header = stored.metadata() or {}
                arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(
                f"{path} is no checkpoint ({error}). Delete it."
            ) from error
        if header.get("fingerprint") != fingerprint:
            raise ValueError(
                f"checkpoint={path} must be of the same data and parameters: it is of others. "
                "Name another file, or delete it."
            )
        numbers = json.loads(header["run"])
        names = set(Progress.__dataclass_fields__) - set(ARRAYS)
        moved = {name: numbers.pop(name) for name in names}
        progress = Progress(arrays["F"], arrays["start"], **moved)
        return cls(progress, best=arrays["best"], **numbers)


@dataclass
class Watch:
    """Scores of a factor on held-out queries, larger is better."""

    items: Any
    points: Any
    judged: Relevance
    measure: str

    def score(self, F: np.ndarray) -> float:
        """The measure, or minus it where smaller is better."""
        items, points = (
            p @ F.astype(p.dtype, copy=False) for p in (self.items, self.points)
        )
        report = evaluate(Index(items).blocks(points), self.judged, self.measure)
        sign = -1.0 if report.smaller_is_better else 1.0
        return sign * report.means[self.measure]


def descend(
    run: Run,
    descent: Descent,
    schedule: Schedule,
    watch: Watch | None,
    at_check: Callable[[Run], bool],
) -> Run:
    """Go on until nothing gets better, the triplets are used up, or ``at_check`` says so."""
    while not run.done:
        start = time.perf_counter()
        before = run.progress.n_triplets
        tally = _until_check(run.progress, descent, schedule)
        score = float("nan") if watch is None else watch.score(run.progress.F)
        row = _row(run, tally, before, score, time.perf_counter() - start)
        if watch is None:
            run.best = run.progress.F
        else:
            run.judge(score, schedule.patience)
        run.history.append(row)
        run.done = (
            run.n_cuts > MOST_CUTS or run.progress.n_triplets >= schedule.n_triplets
        )
        run.done = at_check(run) or run.done
    return run


def _until_check(
    progress: Progress, descent: Descent, schedule: Schedule
) -> Statistics:
    """Run to the next multiple of ``check_every``, or to the end."""
    done = progress.n_triplets
    stop = (done // schedule.check_every + 1) * schedule.check_every
    stop = min(stop, schedule.n_triplets)
    total = Statistics()
    while progress.n_triplets < stop:
        shortest, longest = STRETCHES
        stretch = min(
            max(progress.n_triplets, shortest), longest, stop - progress.n_triplets
        )
        total = total.add(descent.run(progress, stretch))
    return total


def _row(
    run: Run, tally: Statistics, before: int, score: float, seconds: float
) -> dict[str, Any]:
    n = run.progress.n_triplets - before
    return {
        "n_triplets": run.progress.n_triplets,
        "score": score,
        "loss": tally.loss / n,
        "violators": tally.violators / n,
        "draws": tally.draws / n,
        "step": float(tally.length),
        "multiplier": run.progress.multiplier,
        "way": tally.way,
        "seconds": seconds,
    }
