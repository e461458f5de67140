"""Weighted geometric mean of two positive definite matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg

# Traces beyond this, or below one over it, are divided out: squares must stay floats.
FAR = 2.0**200


def mean_factor(S: np.ndarray, D: np.ndarray, t: float) -> np.ndarray:
    """Factor L of the geometric mean ``L'L = inv(S) #_t D``, at ``t`` from inv(S) to D.

    With ``S = C C'`` a congruence by C turns the end points into the identity and ``C'D C``, which
    is ``U v U'``. Between them the geodesic is ``U v^t U'``, and undoing the congruence gives
    ``L = v^(t/2) U' inv(C)``: one Cholesky factor, one eigenproblem, and no inverse.

    Raises ValueError if S is not positive definite, or a matrix is not finite.
    """
    if not (np.isfinite(S).all() and np.isfinite(D).all()):
        raise ValueError(
            "the scatter of pairs must be finite: reg, or values of the data, are too large."
        )
    unit_S = _unit(S)
    unit_D = _unit(D)
    base, values = _geodesic(S / unit_S, D / unit_D)
    L = base * (values ** (t / 2))[:, None]
    return L * (unit_D ** (t / 2) * unit_S ** ((t - 1) / 2))


def geodesic(S: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and values with ``values**(t/2) * rows`` the factor at every t, up to a multiple."""
    return _geodesic(S / _unit(S), D / _unit(D))


def _unit(matrix: np.ndarray) -> float:
    """What to divide a matrix by: 1, or a power of two if its trace is very large or small."""
    trace = float(np.trace(matrix / len(matrix)))
    if 1 / FAR < trace < FAR or not trace > 0:
        return 1.0
    return float(2.0 ** np.floor(np.log2(trace)))


def _geodesic(S: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``U' inv(C)`` and v, those of the largest v first."""
    try:
        C = scipy.linalg.cholesky(S, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the scatter of similar pairs is singular: no similar pair differs in some direction, "
            "such as a constant feature. Raise reg."
        ) from None
    (trmm,) = scipy.linalg.get_blas_funcs(("trmm",), (C, D))
    between = trmm(1.0, C, trmm(1.0, C, D, lower=1, trans_a=1), lower=1, side=1)
    values, U = scipy.linalg.eigh(
        between, overwrite_a=True, check_finite=False, driver="evd"
    )
    # U' inv(C) is the transpose of inv(C') U.
    L = scipy.linalg.solve_triangular(C, U, lower=True, trans="T", check_finite=False)
    return np.ascontiguousarray(L.T[::-1]), np.maximum(values, 0.0)[::-1]
