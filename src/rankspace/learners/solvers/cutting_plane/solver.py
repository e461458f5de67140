"""The 1-slack cutting-plane solver of structural SVMs, with a certificate on the optimum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from ..checkpoint import Checkpoint, check_like, check_shapes
from .admm import PlaneProblem
from .ranking_loss import Plane

# Called with each row of the history and the best point so far; returns whether to stop.
Callback = Callable[[dict[str, float], np.ndarray], bool]

# The row of a round in the history.
ROW = {
    "upper": 0.0,
    "lower": 0.0,
    "gap": 0.0,
    "violation": 0.0,
    "slack": 0.0,
    "n_constraints": 0,
    "inner_iterations": 0,
    "seconds": 0.0,
}


class SolverResult(NamedTuple):
    """Solution of a cutting-plane solver, with its objective, gap and history."""

    W: np.ndarray
    objective: float
    gap: float
    n_iter: int
    converged: bool
    history: list[dict[str, float]]


def cutting_plane(
    find_plane: Callable[[np.ndarray], Plane],
    problem: PlaneProblem,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Minimise ``reg(W) + C xi(W)`` by cutting planes, xi the slack of the most violated rankings.

    Each round calls the separation oracle at W, which gives the true slack of W and so an upper
    bound. Minimising over all planes so far gives, by duality, a lower bound. The next W lies
    between the best one and the minimiser over the planes.

    Parameters
    ----------
    find_plane : callable
        The most violated rankings at a point of the cone.
    problem : PlaneProblem
        Regulariser, cone, C and the planes so far.
    start : ndarray
        First point.
    tol : float
        Stop when (upper - lower) / C is at most ``tol``; this gap has the unit of the measure.
    max_iter : int
        Maximum number of rounds.
    callback : callable, optional
        Called with each row of the history and the best point so far; if it returns True, the
        search stops.
    checkpoint : Checkpoint, optional
        File to save rounds to, and to resume from.

    Returns
    -------
    SolverResult
        The best point, its true objective, and the gap.
    """
    rounds = _Rounds(problem, _State(start, start), max_iter, checkpoint)
    state = rounds.state
    while rounds.go_on:
        plane = find_plane(state.W)
        violation = rounds.violation(plane)
        value = problem.regularizer.value(state.W) + problem.C * violation
        if value < state.upper:
            state.best = state.W
            state.upper = value
        gap = (state.upper - state.lower) / problem.C
        row = rounds.record(state.upper, state.lower, gap, violation)
        stop = callback is not None and callback(row, state.best)
        state.done = bool(gap <= tol)
        if not state.done:
            inner = rounds.add(plane, problem.closeness * problem.C * gap)
            state.W = state.best + problem.step * (inner.W - state.best)
            state.lower = max(state.lower, inner.lower)
        rounds.save(now=stop)
        if stop:
            break
    gap = (state.upper - state.lower) / problem.C
    n_iter = len(state.history)
    return SolverResult(state.best, state.upper, gap, n_iter, gap <= tol, state.history)


def sampled_cutting_plane(
    find_plane: Callable[[np.ndarray, np.random.Generator], Plane],
    problem: PlaneProblem,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    seed: int,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Stochastic cutting planes from random samples of queries, without a certificate.

    Stops when the violation on a new sample is at most the slack of the planes plus ``tol``. Bounds
    on samples do not bound the objective on all queries, so none are reported. ``find_plane`` also
    gets a random generator, seeded by ``seed`` and the number of the round.
    """
    rounds = _Rounds(problem, _State(start, start, seed), max_iter, checkpoint)
    state = rounds.state
    while rounds.go_on:
        state.best = state.W
        random = np.random.default_rng([state.seed, len(state.history)])
        plane = find_plane(state.W, random)
        violation = rounds.violation(plane)
        row = rounds.record(np.nan, np.nan, violation - state.slack, violation)
        stop = callback is not None and callback(row, state.best)
        state.done = bool(problem.n_planes and violation <= state.slack + tol)
        if not state.done:
            state.W = rounds.add(plane, 0.1 * tol * problem.C).W
        rounds.save(now=stop)
        if stop:
            break
    last = state.history[-1]
    objective = problem.regularizer.value(state.best) + problem.C * last["violation"]
    n_iter = len(state.history)
    return SolverResult(
        state.best, objective, last["gap"], n_iter, state.done, state.history
    )


@dataclass
class _State:
    """State of the rounds: all that a checkpoint stores besides the planes."""

    W: np.ndarray  # where the next plane is cut
    best: np.ndarray
    seed: int = 0
    upper: float = np.inf
    lower: float = 0.0
    slack: float = 0.0
    n_inner: int = 0
    done: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


class _Rounds:
    """The rounds of a cutting plane so far, resumed from a checkpoint if there is one."""

    def __init__(
        self,
        problem: PlaneProblem,
        state: _State,
        max_iter: int,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.problem = problem
        self.state = state
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.started = time.perf_counter()
        stored = None
        if checkpoint is not None:
            stored = checkpoint.load(self._check)
        if stored is not None:
            self._resume(stored)

    def _check(self, stored: dict[str, Any]) -> None:
        """Raise ValueError unless the rounds can go on from a state."""
        example = {**vars(self.state), **self.problem.get_state(), "history": [ROW]}
        check_like(stored, example, "the state")
        check_shapes(stored, {"W": self.state.W.shape, "best": self.state.W.shape})
        self.problem.check_state(stored)
        if not stored["history"]:
            raise ValueError("history must not be empty")

    def _resume(self, stored: dict[str, Any]) -> None:
        self.problem.set_state(stored)
        self.state = _State(**{f.name: stored[f.name] for f in fields(_State)})
        n_rounds = len(self.state.history)
        if n_rounds > self.max_iter:
            raise ValueError(
                f"checkpoint must hold at most max_iter={self.max_iter} rounds: it holds "
                f"{n_rounds}. Raise max_iter, or use another path."
            )
        self.started -= self.state.history[-1]["seconds"]

    @property
    def go_on(self) -> bool:
        """Whether another round is needed."""
        return not self.state.done and len(self.state.history) < self.max_iter

    def violation(self, plane: Plane) -> float:
        """Margin violation of a plane at the current W."""
        margin = np.sum(self.problem.cone.restrict(plane.psi) * self.state.W)
        return max(0.0, plane.delta - float(margin))

    def record(
        self, upper: float, lower: float, gap: float, violation: float
    ) -> dict[str, float]:
        """Add a row to the history."""
        row = {
            "upper": upper,
            "lower": lower,
            "gap": gap,
            "violation": violation,
            "slack": self.state.slack,
            "n_constraints": self.problem.n_planes,
            "inner_iterations": self.state.n_inner,
            "seconds": time.perf_counter() - self.started,
        }
        self.state.history.append(row)
        return row

    def add(self, plane: Plane, tolerance: float) -> Any:
        """Add a plane and solve the problem of all planes."""
        self.problem.add(plane.psi, plane.delta)
        inner = self.problem.solve(tolerance)
        self.state.slack = inner.slack
        self.state.n_inner = inner.n_iter
        return inner

    def save(self, *, now: bool) -> None:
        """Save the state to the checkpoint, if there is one; the last round in any case."""
        if self.checkpoint is not None:
            state = {**vars(self.state), **self.problem.get_state()}
            self.checkpoint.save(state, now=now or not self.go_on)
