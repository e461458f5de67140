"""Small quadratic programs (QP) over the capped simplex."""

from __future__ import annotations

import numpy as np

PRECISION = 1e-12


def simplex_qp(H: np.ndarray, b: np.ndarray, C: float, start: np.ndarray) -> np.ndarray:
    """Minimise ``1/2 a'Ha + b'a`` over ``a >= 0``, ``sum(a) <= C``.

    Pairwise coordinate descent (SMO) from the start takes microseconds if the start is close and H
    is well-conditioned. If it does not converge soon, an interior-point method takes over.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Positive semi-definite.
    b : ndarray of shape (m,)
        Linear term.
    C : float
        The cap.
    start : ndarray of shape (m,)
        A feasible point to start from.

    Returns
    -------
    ndarray of shape (m,)
    """
    from ...._engine.kernels.simplex import exchange, interior_point

    m = b.size
    # A slack variable turns the cap into an equality.
    wide = np.zeros((m + 1, m + 1))
    wide[:m, :m] = H
    linear = np.append(b, 0.0)
    a = np.append(start, max(C - start.sum(), 0.0))
    size = np.abs(linear).max() + np.abs(wide).max() * C
    if not exchange(wide, wide @ a + linear, a, PRECISION * size, 20 * (m + 10)):
        a = interior_point(wide / size, linear / size, C, PRECISION, 60)
        # An interior point has no exact zeros; these weights are rounding errors.
        a[a < 1e-11 * C] = 0.0
        exchange(wide, wide @ a + linear, a, PRECISION * size, 20 * (m + 10))
    return a[:m]
