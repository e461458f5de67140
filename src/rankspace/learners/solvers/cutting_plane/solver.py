"""The 1-slack cutting-plane solver of structural SVMs, with a certificate on the optimum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .admm import PlaneProblem
from .checkpoint import Checkpoint
from .ranking_loss import Plane


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
    callback: Callable[[dict[str, float]], Any] | None = None,
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
        Called with each row of the history.
    checkpoint : Checkpoint, optional
        File to save rounds to, and to resume from.

    Returns
    -------
    SolverResult
        The best point, its true objective, and the gap.
    """
    rounds = _Rounds(problem, start, checkpoint)
    state = rounds.state
    while len(state.history) < max_iter:
        plane = find_plane(state.W)
        violation = rounds.violation(plane)
        value = problem.regularizer.value(state.W) + problem.C * violation
        if value < state.upper:
            state.best = state.W
            state.upper = value
        gap = (state.upper - state.lower) / problem.C
        row = rounds.record(state.upper, state.lower, gap, violation)
        if callback is not None:
            callback(row)
        if gap <= tol:
            break
        inner = rounds.add(plane, problem.closeness * problem.C * gap)
        state.W = state.best + problem.step * (inner.W - state.best)
        state.lower = max(state.lower, inner.lower)
        rounds.save()
    gap = (state.upper - state.lower) / problem.C
    n_iter = len(state.history)
    return SolverResult(state.best, state.upper, gap, n_iter, gap <= tol, state.history)


def sampled_cutting_plane(
    find_plane: Callable[[np.ndarray, int], Plane],
    problem: PlaneProblem,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Stochastic cutting planes from random samples of queries, without a certificate.

    Stops when the violation on a new sample is at most the slack of the planes plus ``tol``. Bounds
    on samples do not bound the objective on all queries, so none are reported. ``find_plane`` also
    gets the number of the round.
    """
    rounds = _Rounds(problem, start, checkpoint)
    state = rounds.state
    converged = False
    while len(state.history) < max_iter:
        state.best = state.W
        plane = find_plane(state.W, len(state.history))
        violation = rounds.violation(plane)
        rounds.record(np.nan, np.nan, violation - state.slack, violation)
        converged = problem.n_planes > 0 and violation <= state.slack + tol
        if converged:
            break
        state.W = rounds.add(plane, 0.1 * tol * problem.C).W
        rounds.save()
    last = state.history[-1]
    objective = problem.regularizer.value(state.best) + problem.C * last["violation"]
    n_iter = len(state.history)
    return SolverResult(
        state.best, objective, last["gap"], n_iter, converged, state.history
    )


@dataclass
class _State:
    """State of the rounds: all that a checkpoint stores besides the planes."""

    W: np.ndarray  # where the next plane is cut
    best: np.ndarray
    upper: float = np.inf
    lower: float = 0.0
    slack: float = 0.0
    n_inner: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


class _Rounds:
    """The rounds of a cutting plane so far, resumed from a checkpoint if there is one."""

    def __init__(
        self, problem: PlaneProblem, start: np.ndarray, checkpoint: Checkpoint | None
    ) -> None:
        self.problem = problem
        self.checkpoint = checkpoint
        self.state = _State(start, start)
        self.started = time.perf_counter()
        stored = None
        if checkpoint is not None:
            stored = checkpoint.load(problem)
        if stored is not None:
            self.state = _State(**stored)
            self.started -= self.state.history[-1]["seconds"]

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

    def save(self) -> None:
        """Save the state to the checkpoint, if there is one."""
        if self.checkpoint is not None:
            self.checkpoint.save(self.problem, **vars(self.state))
