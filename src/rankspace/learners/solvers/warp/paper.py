"""The descent of the FRML paper: a constant learning rate, and Algorithm 1 without damping.

With ``V diag(c) V'`` the step and ``A = (F'F)^-1 F'V``, Algorithm 1 is

    F (I - Q/2 + 3/8 A C S A') + V (C A' - C S A' / 2),    Q = A C A'.

Corrected, ``S = A' A C``, the second-order retraction. The printed ``S = C A' A`` differs from it
where the step has a rank above 1, as it has for each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .descent import Descent, Progress
from .embeddings import AllItems, DrawnItems
from .riemannian import lift, plus_identity, solve

if TYPE_CHECKING:
    from ...._engine.kernels.warp import Triplets


def algorithm_1(
    A: np.ndarray, c: np.ndarray, *, printed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of F, (m, m), and of V, (b, m), of a step ``V diag(c) V'``."""
    CA = c[:, None] * A.T
    Q = A @ CA
    SA = CA @ Q
    if printed:
        SA = (c**2)[:, None] * A.T @ (A @ A.T)
    return plus_identity(-0.5 * Q + 0.375 * (A @ SA)), CA - 0.5 * SA


@dataclass
class PaperDescent(Descent):
    """SGD with a constant learning rate, the multiplier of the progress."""

    printed: bool = False

    def _step(
        self,
        progress: Progress,
        space: AllItems | DrawnItems,
        batch: Triplets,
        weights: np.ndarray,
        start_norm: float,
    ) -> float:
        left, right, c, differences = self._gradient(progress, space, batch, weights)
        factor = space.factor
        A = solve(lift(factor.gram), differences.T.astype(np.float64, copy=False))
        length = progress.multiplier
        inner, S = algorithm_1(A, -length * c, printed=self.printed)
        factor.prepare(left, right, S)
        space.move(inner, np.eye(len(A)))
        return length
