"""ADMM for the inner problem of the cutting plane: a regulariser and a hinge over the planes.

    min over W in a cone of  reg(W) + C max_r [delta_r - <W, psi_r>]_+

ADMM puts the hinge and the regulariser on W and the cone on Z, with W = Z and the scaled dual U.
The step in W is the small dual program of `simplex_qp`. Z, U and the penalty are kept between
calls, so that each call is warm-started from the last one.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ...._engine.parallel import check_interruption
from ...._engine.parallel.threads import single_threaded_blas
from ..checkpoint import check_shapes
from .cones import AllVectors
from .simplex_qp import simplex_qp

# Over-relaxation: it saves two thirds of the iterations on IsoLet, about half on small data.
RELAXATION = 1.6
# Share of the gradient of the losses below which the multiplier of the cone is no scale.
INACTIVE = 1e-3
TINY = 1e-150


class Trace:
    """Trace regulariser tr(W), as in the MLR paper."""

    def __init__(self, cone: Any) -> None:
        self.cone = cone

    def value(self, W: np.ndarray) -> float:
        return float(np.sum(self.cone.identity * W))

    def proximal(self, V: np.ndarray, rho: float) -> tuple[np.ndarray, float]:
        """Centre and curvature of ``reg(W) + rho/2 |W - V|^2`` as a quadratic in W."""
        return V - self.cone.identity / rho, rho

    def dual(self, combination: np.ndarray, value: float) -> float:
        """A lower bound by duality: multipliers scaled so that ``sum alpha_r psi_r <= I``."""
        return value / max(1.0, self.cone.largest(combination))


class Frobenius:
    """Frobenius regulariser: half the squared distance from a prior."""

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
    """Solution of the inner problem: a point of the cone, and bounds on the optimum."""

    W: np.ndarray
    slack: float
    upper: float
    lower: float
    n_iter: int


class PlaneProblem:
    """The inner problem of the cutting plane, solved by ADMM.

    Parameters
    ----------
    cone, regularizer : objects of `cones` and this module
        Constraint and regulariser of W.
    C : float
        Weight of the hinge.
    patience : int
        Number of calls after which an inactive plane is dropped.
    """

    # The next plane is cut at this fraction of the way from the best point to the minimiser over
    # the planes. At the minimiser itself (1.0) the points oscillate: on wine, WDBC, ionosphere and
    # IsoLet a quarter of the way takes half to a third of the rounds.
    step = 0.25
    # Tolerance of the inner problem, as a fraction of the gap: a smaller one takes more iterations
    # and saves no rounds.
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
        # W is at most about C and its multiplier about 1, which bounds sensible penalties.
        self._least = 1e-4 / C
        self._most = 1e6
        self._steps = 0

    @property
    def n_planes(self) -> int:
        """Number of planes."""
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

    def raise_C(self, C: float) -> None:
        """Continue with a larger C and the same planes (warm start)."""
        self.C = C
        self._least = 1e-4 / C

    def get_state(self) -> dict[str, Any]:
        """All that decides the next solutions, for a checkpoint."""
        state: dict[str, Any] = {
            f"problem.{name}": value
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }
        # The rank that the cone expects decides how it computes the next eigenvalues.
        cone = {name: n for name, n in vars(self.cone).items() if isinstance(n, int)}
        return {**state, "rho": float(self.rho), "cone": cone}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError if the planes of a state do not fit each other; kernels rely on it."""
        n = state["problem.delta"].size
        d = self.cone.identity.size
        planes = {
            "psi": (n, d),
            "gram": (n, n),
            "delta": (n,),
            "alpha": (n,),
            "idle": (n,),
        }
        names = [name for name in vars(self) if f"problem.{name}" in state]
        shapes = {f"problem.{name}": planes.get(name, self.Z.shape) for name in names}
        check_shapes(state, shapes)
        most = max(self._most, 1.0 / self.C)
        in_range = min(self._least, 1.0 / self.C) <= state["rho"] <= most
        if not in_range or (state["problem.alpha"] < 0).any():
            raise ValueError("rho or alpha is out of its range")
        if any(rank > len(self.cone.identity) for rank in state["cone"].values()):
            raise ValueError("cone holds a rank above the number of features")
        if not _are_products(state["problem.gram"], state["problem.psi"]):
            raise ValueError("gram must hold the products of psi")

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        for name, value in state.items():
            if name.startswith("problem."):
                setattr(self, name.removeprefix("problem."), value)
        self.rho = state["rho"]
        vars(self.cone).update(state["cone"])

    def solve(self, tolerance: float, max_iter: int = 1000) -> InnerResult:
        """Iterate until the duality gap is below a tolerance."""
        # Eigenvectors of matrices this small take one thread half the time.
        with single_threaded_blas():
            return self._solve(tolerance, max_iter)

    def _solve(self, tolerance: float, max_iter: int) -> InnerResult:
        best: InnerResult | None = None
        lower = -np.inf
        self._steps = 0
        for iteration in range(1, max_iter + 1):
            check_interruption()
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
        """The current point of the cone."""
        return self.Z

    def _step(self) -> None:
        centre, curvature = self.regularizer.proximal(self.Z - self.U, self.rho)
        linear = curvature * (self.psi @ centre.ravel() - self.delta)
        self.alpha = simplex_qp(self.gram, linear, self.C, self.alpha)
        combination = self._combination()
        W = centre + combination / curvature
        before = self.Z
        relaxed = RELAXATION * W + (1 - RELAXATION) * before
        self.Z = self.cone.project(relaxed + self.U)
        self.U = self.U + relaxed - self.Z
        primal = norm(W - self.Z)
        dual = self.rho * norm(self.Z - before)
        # Halfway between absolute residuals and residuals relative to W and its multiplier.
        primal /= max(sqrt(norm(self.Z)), TINY)
        # The multiplier is 0 where the cone does not bind, as often with one feature.
        multiplier = max(self.rho * norm(self.U), INACTIVE * norm(combination))
        dual /= max(sqrt(multiplier), TINY)
        self._balance(primal, dual)

    def _balance(self, primal: float, dual: float) -> None:
        """Adapt the penalty to keep the two residuals within a factor of ten of each other.

        U is the dual over rho, so it is rescaled. After 50 steps the penalty changes less often,
        because ADMM only converges once the penalty settles.
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
        recent = self.idle < self.patience
        if not recent.all():
            for name in ("psi", "delta", "alpha", "idle"):
                setattr(self, name, getattr(self, name)[recent])
            self.gram = self.gram[np.ix_(recent, recent)]


def norm(values: np.ndarray) -> float:
    """Frobenius norm."""
    return sqrt(np.vdot(values, values))


def _are_products(gram: np.ndarray, rows: np.ndarray) -> bool:
    """Whether a matrix holds the inner products of rows, up to rounding."""
    with np.errstate(all="ignore"):
        products = rows @ rows.T
        rounding = 1e-6 * np.abs(products).max(initial=0.0)
        return np.allclose(gram, products, rtol=0, atol=rounding)


class VectorProblem(PlaneProblem):
    """The inner problem of a plain SVM: no cone, half the squared norm, solved by its dual."""

    def __init__(self, d: int, C: float) -> None:
        space = AllVectors(d)
        super().__init__(space, Frobenius(space, np.zeros(d)), C)

    def solve(self, tolerance: float, max_iter: int = 1000) -> InnerResult:
        """Solve the dual exactly."""
        self.alpha = simplex_qp(self.gram, -self.delta, self.C, self.alpha)
        self.Z = self._combination()
        upper, slack = self.value(self.Z)
        lower = self._lower()
        self._age()
        return InnerResult(self.Z, slack, upper, lower, 1)
