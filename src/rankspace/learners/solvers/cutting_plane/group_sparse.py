"""Group-sparse inner problem of robust MLR: ADMM with a third block for the (2,1)-norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from .admm import PlaneProblem, Trace
from .simplex_qp import simplex_qp


class TraceAndGroups(Trace):
    """Trace plus group-sparse (2,1)-norm: the weighted sum of the column lengths of W."""

    def __init__(self, cone: Any, weight: float) -> None:
        super().__init__(cone)
        self.weight = weight

    def value(self, W: np.ndarray) -> float:
        return super().value(W) + self.weight * float(np.linalg.norm(W, axis=0).sum())


class GroupSparseProblem(PlaneProblem):
    """The inner problem of `PlaneProblem` with a third ADMM block V for the (2,1)-norm.

    The candidate is the block of Z on the columns that V keeps: it is positive semi-definite, and
    exactly zero elsewhere.
    """

    # A point between two others has the features of both. So planes are cut at the minimisers,
    # with a tolerance small enough for their support to settle.
    step = 1.0
    closeness = 0.1

    def __init__(self, cone: Any, regularizer: TraceAndGroups, C: float) -> None:
        super().__init__(cone, regularizer, C)
        self.V = np.zeros_like(self.Z)
        self.U_groups = np.zeros_like(self.Z)
        self.Y = np.zeros_like(self.Z)

    def _candidate(self) -> np.ndarray:
        selected = self.V.any(axis=0)
        return self.Z * np.outer(selected, selected)

    def _step(self) -> None:
        rho = self.rho
        Z = self.Z
        centre, curvature = self.regularizer.proximal(Z - self.U, rho)
        linear = curvature * (self.psi @ centre.ravel() - self.delta)
        self.alpha = simplex_qp(self.gram, linear, self.C, self.alpha)
        W = centre + self._combination() / curvature
        target = Z - self.U_groups
        lengths = rho * np.linalg.norm(target, axis=0)
        weight = self.regularizer.weight
        selected = lengths > weight
        shrinkage = 1 - weight / np.where(selected, lengths, 1)
        self.V = target * np.where(selected, shrinkage, 0)
        # What the shrinkage removed is a subgradient of the norm.
        self.Y = rho * (target - self.V)
        self.Z = self.cone.project((W + self.V + self.U + self.U_groups) / 2)
        self.U = self.U + W - self.Z
        self.U_groups = self.U_groups + self.V - self.Z
        primal = np.hypot(np.linalg.norm(W - self.Z), np.linalg.norm(self.V - self.Z))
        dual = np.sqrt(2) * rho * np.linalg.norm(self.Z - Z)
        self._balance(float(primal), float(dual))

    def _balance(self, primal: float, dual: float) -> None:
        rho = self.rho
        super()._balance(primal, dual)
        self.U_groups = self.U_groups * (rho / self.rho)

    def _lower(self) -> float:
        # <Y, W> <= weight * |W|_{2,1} for every W, so the norm is at least the inner product.
        combination = self._combination() - (self.Y + self.Y.T) / 2
        scale = max(1.0, self.cone.largest(combination))
        return float(self.alpha @ self.delta) / scale
