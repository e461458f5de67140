"""Second-order retraction on the manifold of positive semi-definite matrices of fixed rank.

A point is ``W = F F'`` with F of full column rank, the transpose of the components; a step is the
symmetric ``Z = V diag(c) V'``. With ``A = F^+ V`` and ``Q = A diag(c) A'``, the part of the step
inside the range of F relative to W itself, the second-order retraction is

    F (I - Q/2 + 3/8 Q^2) + V diag(c) A' (I - Q/2).

This is Lemma 3.2 of the FRML paper, ``V W^+ V'`` with its symmetric step, and Algorithm 1 with
``S = A2' A1``: there ``S A' = A' Q``, so nothing of the size of the batch squared is ever needed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

# Damping of the solve, relative to the mean squared singular value of F. Directions with smaller
# values are damped; elsewhere steps are exact to eight digits.
DAMPING = 1e-9
MAX_DAMPING = 0.1


def relative_change(
    gram: np.ndarray, cross: np.ndarray, damping: float = 0.0
) -> np.ndarray:
    """``A = F^+ V`` from ``F'F`` and ``F'V``; damping grows until the Cholesky solve succeeds."""
    scale = np.trace(gram) / len(gram)
    while damping < MAX_DAMPING:
        lifted = plus_identity(gram, damping * scale)
        _, A, failed = dposv(lifted.T, cross, overwrite_a=True)
        if not failed:
            return A
        if not damping:
            break
        damping *= 100
    raise np.linalg.LinAlgError("the factor of the metric has lost its rank.")


def second_order(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the second-order retraction: of F, and of ``V diag(c) A'``."""
    tail = plus_identity(-0.5 * Q)
    return tail + 0.375 * (Q @ Q), tail


def plus_identity(matrix: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """A matrix plus a multiple of the identity."""
    total = matrix.copy()
    total.reshape(-1)[:: len(matrix) + 1] += factor
    return total


def retract(F: np.ndarray, V: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The retraction: the factor after a step ``V diag(c) V'``."""
    A = relative_change(F.T @ F, F.T @ V)
    S = c[:, None] * A.T
    inner, tail = second_order(A @ S)
    return F @ inner + V @ S @ tail
