"""The cutting plane over random batches of queries: no certificate."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .admm import PlaneProblem
from .checkpoint import Checkpoint
from .ranking_loss import Plane
from .solver import SolverResult


def sampled_cutting_plane(
    find_plane: Callable[[np.ndarray, int], Plane],
    problem: PlaneProblem,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Cut by planes of samples until a fresh sample is violated by no more than the planes' slack.

    Bounds of different samples do not bound the problem of all queries; they are not given.
    ``find_plane`` is told the number of the round too.
    """
    W, judged, slack, n_inner = start, start, 0.0, 0
    history: list[dict[str, float]] = []
    begin = time.perf_counter()
    converged = False
    if checkpoint is not None and (at := checkpoint.load(problem)) is not None:
        W, slack, history, n_inner = at["W"], at["slack"], at["history"], at["n_inner"]
        begin -= history[-1]["seconds"]
    while len(history) < max_iter:
        plane, judged = find_plane(W, len(history)), W
        violation = max(
            0.0, plane.delta - float(np.sum(problem.cone.restrict(plane.psi) * W))
        )
        history.append(
            {
                "upper": np.nan,
                "lower": np.nan,
                "gap": violation - slack,
                "violation": violation,
                "slack": slack,
                "n_constraints": problem.n_planes,
                "inner_iterations": n_inner,
                "seconds": time.perf_counter() - begin,
            }
        )
        converged = problem.n_planes > 0 and violation <= slack + tol
        if converged:
            break
        problem.add(plane.psi, plane.delta)
        inner = problem.solve(0.1 * tol * problem.C)
        W, slack, n_inner = inner.W, inner.slack, inner.n_iter
        if checkpoint is not None:
            checkpoint.save(problem, W=W, slack=slack, history=history, n_inner=n_inner)
    objective = problem.regularizer.value(judged) + problem.C * history[-1]["violation"]
    return SolverResult(
        judged, objective, history[-1]["gap"], len(history), converged, history
    )
