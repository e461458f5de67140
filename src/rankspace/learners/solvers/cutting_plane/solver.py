"""The 1-slack cutting plane with a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .admm import PlaneProblem
from .checkpoint import Checkpoint
from .ranking_loss import Plane


class SolverResult(NamedTuple):
    """What a solver found, and the reason to trust it."""

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
    callback: Callable[[dict[str, float]], Any] = lambda row: None,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Minimise ``reg(W) + C xi(W)``, xi the slack of the most violated rankings.

    Each round asks for the most violated rankings at W, which give the true slack of W and so an
    upper bound; solving over all planes so far gives a minimiser of theirs and, by duality, a lower
    bound. The next W lies between the best one and that minimiser.

    Parameters
    ----------
    find_plane : callable
        The most violated rankings at a point of the cone.
    problem : PlaneProblem
        Regulariser, cone, C and the planes so far.
    start : ndarray
        First point.
    tol : float
        Stop when (upper - lower) / C is at most this: a loss, as the measures are.
    max_iter : int
        Rounds at most.
    callback : callable, optional
        Given each row of the history.
    checkpoint : Checkpoint, optional
        Where rounds are kept, and gone on from.

    Returns
    -------
    SolverResult
        With the best point met, its true objective, and the gap.
    """
    C, begin = problem.C, time.perf_counter()
    W, best, upper, lower = start, start, np.inf, 0.0
    history: list[dict[str, float]] = []
    slack, n_inner = 0.0, 0
    if checkpoint is not None and (at := checkpoint.load(problem)) is not None:
        W, best, upper, lower = at["W"], at["best"], at["upper"], at["lower"]
        history, slack, n_inner = at["history"], at["slack"], at["n_inner"]
        begin -= history[-1]["seconds"]
    while len(history) < max_iter:
        plane = find_plane(W)
        violation = max(
            0.0, plane.delta - float(np.sum(problem.cone.restrict(plane.psi) * W))
        )
        value = problem.regularizer.value(W) + C * violation
        if value < upper:
            best, upper = W, value
        gap = (upper - lower) / C
        history.append(
            {
                "upper": upper,
                "lower": lower,
                "gap": gap,
                "violation": violation,
                "slack": slack,
                "n_constraints": problem.n_planes,
                "inner_iterations": n_inner,
                "seconds": time.perf_counter() - begin,
            }
        )
        callback(history[-1])
        if gap <= tol:
            break
        problem.add(plane.psi, plane.delta)
        inner = problem.solve(problem.closeness * C * gap)
        W, slack, n_inner = (
            best + problem.step * (inner.W - best),
            inner.slack,
            inner.n_iter,
        )
        lower = max(lower, inner.lower)
        if checkpoint is not None:
            checkpoint.save(
                problem,
                W=W,
                best=best,
                upper=upper,
                lower=lower,
                history=history,
                slack=slack,
                n_inner=n_inner,
            )
    gap = (upper - lower) / C
    return SolverResult(best, upper, gap, len(history), gap <= tol, history)
