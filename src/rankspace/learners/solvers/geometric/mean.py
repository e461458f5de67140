"""Weighted geometric mean of two positive definite matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def mean_factor(S: np.ndarray, D: np.ndarray, t: float) -> np.ndarray:
    """Factor L of the geometric mean ``L'L = inv(S) #_t D``, at ``t`` from inv(S) to D.

    With ``S = C C'`` a congruence by C turns the end points into the identity and ``C'D C``, which
    is ``U v U'``. Between them the geodesic is ``U v^t U'``, and undoing the congruence gives
    ``L = v^(t/2) U' inv(C)``: one Cholesky factor, one eigenproblem, and no inverse.

    Raises ``numpy.linalg.LinAlgError`` if S is not positive definite.
    """
    C = scipy.linalg.cholesky(S, lower=True, check_finite=False)
    (trmm,) = scipy.linalg.get_blas_funcs(("trmm",), (C, D))
    between = trmm(1.0, C, trmm(1.0, C, D, lower=1, trans_a=1), lower=1, side=1)
    values, U = scipy.linalg.eigh(
        between, overwrite_a=True, check_finite=False, driver="evd"
    )
    roots = np.maximum(values, 0.0) ** (t / 2)
    # U' inv(C) is the transpose of inv(C') U.
    L = scipy.linalg.solve_triangular(C, U, lower=True, trans="T", check_finite=False)
    return np.ascontiguousarray((L * roots).T[::-1])
