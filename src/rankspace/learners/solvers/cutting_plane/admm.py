"""ADMM for the inner problem of the cutting plane: a regulariser and a hinge over the planes.

    min over W in a cone of  reg(W) + C max_r [delta_r - <W, psi_r>]_+

split as hinge and regulariser on W, the cone on Z, W = Z, by ADMM with the scaled dual U. The
step in W is the small dual program of `simplex_qp`. Z, U and the penalty survive from call to call
together, so a call starts where the last one ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._engine.parallel.threads import single_threaded_blas
from .cones import AllVectors
from .simplex_qp import simplex_qp

# Steps that overshoot: on IsoLet a third of the iterations, on small sets about a half.
RELAXATION = 1.6
TINY = 1e-150


class Trace:
    """The paper's regulariser, tr(W)."""

    def __init__(self, cone: Any) -> None:
        self.cone = cone

    def value(self, W: np.ndarray) -> float:
        return float(np.sum(self.cone.identity * W))

    def proximal(self, V: np.ndarray, rho: float) -> tuple[np.ndarray, float]:
        """Centre and curvature of ``reg(W) + rho/2 |W - V|^2`` as a quadratic in W."""
        return V - self.cone.identity / rho, rho

    def dual(self, combination: np.ndarray, value: float) -> float:
        """A lower bound from multipliers: scaled until ``sum alpha_r psi_r <= I``."""
        return value / max(1.0, self.cone.largest(combination))


class Frobenius:
    """Half the squared Frobenius distance from a prior."""

    def __init__(self, cone: Any, prior: np.ndarray) -> None:
        self.cone = cone
        self.prior = prior

    def value(self, W: np.ndarray) -> float:
        return 0.5 * float(np.sum((W - self.prior) ** 2))

    def proximal(self, V: np.ndarray, rho: float) -> tuple[np.ndarray, float]:
        """Centre and curvature of ``reg(W) + rho/2 |W - V|^2`` as a quadratic in W."""
        return (self.prior + rho * V) / (1 + rho), 1 + rho

    def dual(self, combination: np.ndarray, value: float) -> float:
        """The dual value: the minimum over the cone is at the projection of prior + combination."""
        reached = self.cone.project(self.prior + combination)
        return value + 0.5 * float(np.sum(self.prior**2) - np.sum(reached**2))


class InnerResult(NamedTuple):
    """A point of the cone, with bounds on the best value over the planes."""

    W: np.ndarray
    slack: float
    upper: float
    lower: float
    n_iter: int


class PlaneProblem:
    """Planes, and the inner problem over them.

    Parameters
    ----------
    cone, regularizer : objects of `cones` and this module
        Where W lies and what it costs.
    C : float
        Weight of the hinge.
    patience : int
        Calls after which a plane that was never active is dropped.
    """

    # How far from the best point towards the planes' own minimiser the next plane is cut. All the
    # way (1.0) the points swing from side to side: on wine, WDBC, ionosphere and IsoLet a quarter
    # of the way takes half to a third of the rounds.
    step = 0.25
    # How close the planes' problem is solved, as a share of the gap still open: closer costs more
    # steps and saves no round.
    closeness = 0.5

    def __init__(
        self, cone: Any, regularizer: Any, C: float, patience: int = 50
    ) -> None:
        self.cone = cone
        self.regularizer = regularizer
        self.C = C
        self.patience = patience
        self.psi = np.zeros((0, cone.identity.size))
        self.delta = np.zeros(0)
        self.gram = np.zeros((0, 0))
        self.alpha = np.zeros(0)
        self.idle = np.zeros(0, dtype=int)
        self.Z = np.zeros_like(cone.identity)
        self.U = np.zeros_like(cone.identity)
        self.rho = 1.0 / C
        # W is at most about C, its multiplier about 1: beyond these rho would be out of all scale.
        self._least = 1e-4 / C
        self._most = 1e6
        self._steps = 0

    @property
    def n_planes(self) -> int:
        """Planes at hand."""
        return self.delta.size

    def add(self, psi: np.ndarray, delta: float) -> None:
        """Add a plane."""
        row = self.cone.restrict(psi).ravel()
        products = self.psi @ row
        column = products[:, None]
        corner = np.array([[row @ row]])
        self.gram = np.block([[self.gram, column], [column.T, corner]])
        self.psi = np.vstack((self.psi, row))
        self.delta = np.append(self.delta, delta)
        self.alpha = np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)

    def raise_cap(self, C: float) -> None:
        """Go on with a larger C; what is known of the planes stays."""
        self.C = C
        self._least = 1e-4 / C

    def solve(self, tolerance: float, max_iter: int = 1000) -> InnerResult:
        """Lower the gap between value and dual below a tolerance."""
        # Eigenvectors of matrices this small are found in half the time by one thread alone.
        with single_threaded_blas():
            return self._solve(tolerance, max_iter)

    def _solve(self, tolerance: float, max_iter: int) -> InnerResult:
        best: InnerResult | None = None
        lower = -np.inf
        self._steps = 0
        for iteration in range(1, max_iter + 1):
            self._step()
            if iteration % 5 and iteration < max_iter:
                continue
            lower = max(lower, self._lower())
            candidate = self._candidate()
            upper, slack = self.value(candidate)
            if best is None or upper < best.upper:
                best = InnerResult(candidate, slack, upper, lower, iteration)
            best = best._replace(lower=lower, n_iter=iteration)
            if best.upper - lower <= tolerance:
                break
        self._age()
        assert best is not None
        return best

    def value(self, W: np.ndarray) -> tuple[float, float]:
        """Objective over the planes, and the slack in it."""
        slack = max(0.0, float((self.delta - self.psi @ W.ravel()).max()))
        return self.regularizer.value(W) + self.C * slack, slack

    def _candidate(self) -> np.ndarray:
        """The point of the cone at hand."""
        return self.Z

    def _step(self) -> None:
        centre, curvature = self.regularizer.proximal(self.Z - self.U, self.rho)
        linear = curvature * (self.psi @ centre.ravel() - self.delta)
        self.alpha = simplex_qp(self.gram, linear, self.C, self.alpha)
        W = centre + self._combination() / curvature
        before = self.Z
        relaxed = RELAXATION * W + (1 - RELAXATION) * before
        self.Z = self.cone.project(relaxed + self.U)
        self.U = self.U + relaxed - self.Z
        primal = np.linalg.norm(W - self.Z)
        dual = self.rho * np.linalg.norm(self.Z - before)
        # Half way between absolute residuals and those relative to W and to its multiplier.
        sizes = np.sqrt([np.linalg.norm(self.Z), self.rho * np.linalg.norm(self.U)])
        self._balance(*(np.array([primal, dual]) / np.maximum(sizes, TINY)))

    def _balance(self, primal: float, dual: float) -> None:
        """Keep the two residuals within a factor of ten; U is the dual over rho.

        Ever more seldom, for a penalty that never settles never converges.
        """
        self._steps += 1
        if self._steps > 50 and self._steps % 50:
            return
        factor = 1.0
        if primal > 10 * dual:
            factor = 2.0
        elif dual > 10 * primal:
            factor = 0.5
        if self._least <= factor * self.rho <= self._most:
            self.rho *= factor
            self.U = self.U / factor

    def _combination(self) -> np.ndarray:
        return (self.alpha @ self.psi).reshape(self.Z.shape)

    def _lower(self) -> float:
        return self.regularizer.dual(
            self._combination(), float(self.alpha @ self.delta)
        )

    def _age(self) -> None:
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        kept = self.idle < self.patience
        if not kept.all():
            for name in ("psi", "delta", "alpha", "idle"):
                setattr(self, name, getattr(self, name)[kept])
            self.gram = self.gram[np.ix_(kept, kept)]


class VectorProblem(PlaneProblem):
    """The same without a cone, under half the squared norm: its dual is the small program alone."""

    def __init__(self, d: int, C: float) -> None:
        space = AllVectors(d)
        super().__init__(space, Frobenius(space, np.zeros(d)), C)

    def solve(self, tolerance: float, max_iter: int = 1000) -> InnerResult:
        """Solve over the planes, exactly."""
        self.alpha = simplex_qp(self.gram, -self.delta, self.C, self.alpha)
        self.Z = self._combination()
        upper, slack = self.value(self.Z)
        lower = self._lower()
        self._age()
        return InnerResult(self.Z, slack, upper, lower, 1)
