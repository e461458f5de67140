"""Small quadratic programs (QP) over the capped simplex."""

from __future__ import annotations

import numpy as np

PRECISION = 1e-12
MAX_NEWTON_STEPS = 60


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
    from ...._engine.kernels.simplex import exchange

    m = b.size
    # A slack variable turns the cap into an equality.
    wide = np.zeros((m + 1, m + 1))
    wide[:m, :m] = H
    linear = np.zeros(m + 1)
    linear[:m] = b
    a = np.empty(m + 1)
    a[:m] = start
    a[m] = max(C - start.sum(), 0.0)
    # The largest entry of a semi-definite matrix is on its diagonal.
    size = np.abs(b).max(initial=0.0) + H.diagonal().max(initial=0.0) * C
    if not exchange(wide, wide @ a + linear, a, PRECISION * size, 20 * (m + 10)):
        a = _interior_point(wide / size, linear / size, C)
        # An interior point has no exact zeros; these weights are rounding errors.
        a[a < 1e-11 * C] = 0.0
        exchange(wide, wide @ a + linear, a, PRECISION * size, 20 * (m + 10))
    return a[:m]


def _interior_point(H: np.ndarray, b: np.ndarray, C: float) -> np.ndarray:
    """Minimise ``1/2 a'Ha + b'a`` over ``a >= 0, sum(a) = C`` by a predictor-corrector method.

    For ill-conditioned H, where pairwise descent creeps.
    """
    m = b.size
    a = np.full(m, C / m)
    gradient = H @ a + b
    t = -gradient.min() + np.abs(gradient).max() + 1e-12
    z = gradient + t
    for _ in range(MAX_NEWTON_STEPS):
        gap = a @ z
        residual = H @ a + b + t - z
        if gap <= PRECISION * C and np.abs(residual).max() <= PRECISION:
            break
        K = H + np.diag(z / a)
        ones = np.linalg.solve(K, np.ones(m))
        target = 0.0
        correction = np.zeros(m)
        for corrector in range(2):
            complementarity = (target - correction - a * z) / a
            inner = np.linalg.solve(K, complementarity - residual)
            dt = (inner.sum() - (C - a.sum())) / ones.sum()
            da = inner - dt * ones
            dz = complementarity - z / a * da
            if corrector == 0:
                a_reached = a + _longest_step(a, da) * da
                z_reached = z + _longest_step(z, dz) * dz
                target = (a_reached @ z_reached / gap) ** 3 * gap / m
                correction = da * dz
        step = min(_longest_step(a, da), _longest_step(z, dz))
        a = a + step * da
        z = z + step * dz
        t += step * dt
    return a


def _longest_step(values: np.ndarray, changes: np.ndarray) -> float:
    """The longest step up to 1 that leaves all values above 0."""
    falling = changes < 0
    steps = -0.995 * values[falling] / changes[falling]
    return float(steps.min(initial=1.0))
