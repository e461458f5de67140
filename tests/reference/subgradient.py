"""The MLR paper's own inner solver: projected subgradients, a twin of our ADMM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankspace.learners.solvers.cutting_plane.admm import InnerResult, PlaneProblem
from rankspace.learners.solvers.cutting_plane.ranking_loss import Plane
from rankspace.learners.solvers.cutting_plane.solver import SolverResult, cutting_plane

PATIENCE = 200


class SubgradientProblem(PlaneProblem):
    """The inner problem by steps against the most violated plane, with backtracking.

    The multipliers for the lower bound are the share of trials at which each plane was the most
    violated one, which tends to optimal ones.
    """

    def solve(self, tolerance: float, max_iter: int = 5000) -> InnerResult:
        """Step until neither the value falls nor the gap stays above the tolerance."""
        W, (value, slack) = self.Z, self.value(self.Z)
        step, idle, lower = 1.0, 0, -np.inf
        counts = np.zeros(self.n_planes)
        for iteration in range(1, max_iter + 1):
            hinges = self.delta - self.psi @ W.ravel()
            worst = int(hinges.argmax())
            direction = self._slope(W)
            if hinges[worst] > 0:
                counts[worst] += 1
                direction = direction - self.C * self.psi[worst].reshape(W.shape)
            trial = self.cone.project(W - step * direction)
            trial_value, trial_slack = self.value(trial)
            if trial_value < value:
                idle = idle + 1 if value - trial_value < 1e-9 * self.C else 0
                W, value, slack, step = trial, trial_value, trial_slack, 1.2 * step
            else:
                idle, step = idle + 1, 0.5 * step
            if iteration % 50 == 0 or idle > PATIENCE or iteration == max_iter:
                self.alpha = self.C * counts / iteration
                lower = max(lower, self._lower())
                if value - lower <= tolerance or idle > PATIENCE:
                    break
        self.Z = W
        return InnerResult(W, slack, value, lower, iteration)

    def _slope(self, W: np.ndarray) -> np.ndarray:
        """Gradient of the regulariser."""
        prior = getattr(self.regularizer, "prior", None)
        return self.cone.identity if prior is None else W - prior


def projected_subgradient(
    find_plane: Callable[[np.ndarray], Plane],
    problem: PlaneProblem,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
) -> SolverResult:
    """The cutting plane with `SubgradientProblem` inside."""
    inner = SubgradientProblem(problem.cone, problem.regularizer, problem.C)
    inner.Z = start
    return cutting_plane(find_plane, inner, start, tol=tol, max_iter=max_iter)
