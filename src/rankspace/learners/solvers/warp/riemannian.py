"""Second-order retraction on the manifold of positive semi-definite matrices of fixed rank.

A point is ``W = F F'`` with F of full column rank, the transpose of the components; a step is the
symmetric ``Z = V diag(c) V'``. With ``A = F^+ V`` and ``Q = A diag(c) A'``, the part of the step
inside the range of F relative to W itself, the second-order retraction is

    F (I - Q/2 + 3/8 Q^2) + V diag(c) A' (I - Q/2).

This is Lemma 3.2 of the FRML paper, ``V W^+ V'`` with its symmetric step, and Algorithm 1 with
``S = A2' A1``: there ``S A' = A' Q``, so nothing of the size of the batch squared is ever needed.

The retraction needs Q to be small. But the optimum often has a lower rank than W, and Q grows
without limit as a singular value of F goes to zero. Steps are therefore damped: ``(F'F + t I)^-1
F' V`` takes the place of A, where t is the length of the step inside the range of F. So no step
is longer than 1 relative to ``W + t I``. Directions in which W is large against the step hardly
notice, the others shrink or grow by a bounded factor, and the rank falls as far as the data ask
for.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf

# Lift of F'F, relative to the mean squared singular value of F: the norm of a gradient inside the
# range of F is exact to eight digits.
LIFT = 1e-9
# Singular values are kept above this share of the largest. Their part of squared distances is
# 1e-12, and some twenty steps make them grow again if the data ask for them.
MIN_SHARE = 1e-6


def lift(gram: np.ndarray) -> np.ndarray:
    """``F'F`` plus a multiple of the identity, small but enough for a Cholesky factor.

    Rounding makes lost directions look negative; the multiple grows until they do not.
    """
    if not np.isfinite(gram).all():
        raise FloatingPointError("the metric must be finite: it has overflowed.")
    unit = max(np.abs(gram.diagonal()).mean(), np.finfo(float).tiny)
    share = LIFT
    lifted = plus_identity(gram, share * unit)
    while dpotrf(lifted)[1]:
        share *= 100
        lifted = plus_identity(gram, share * unit)
    return lifted


def solve(positive: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``positive^-1 right`` for a positive definite matrix."""
    return dposv(positive, right)[1]


def damping(lifted: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """``D = (F'F + t I)^-1 F'F``, which turns A into ``D A``, for a step ``F inside F'``."""
    product = inside @ lifted
    length = np.sqrt(max(np.vdot(product, product.T), 0.0))
    return solve(plus_identity(lifted, length), lifted)


def keep_rank(F: np.ndarray) -> np.ndarray:
    """Raise singular values that have come near zero, so that F keeps its rank."""
    squares = np.linalg.eigvalsh(F.T @ F)
    if squares[0] > (2 * MIN_SHARE) ** 2 * squares[-1]:
        return F
    U, s, Vt = np.linalg.svd(F, full_matrices=False)
    return (U * np.maximum(s, MIN_SHARE * s[0])) @ Vt


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
    A = np.linalg.solve(F.T @ F, F.T @ V)
    S = c[:, None] * A.T
    inner, tail = second_order(A @ S)
    return F @ inner + V @ S @ tail
