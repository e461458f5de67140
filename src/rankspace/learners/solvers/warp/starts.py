"""Where a metric of fixed rank starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

STARTS = ("pca", "random", "identity")
SMALL = 500  # up to here, all singular vectors are found and the leading ones kept


def start_factor(X: Any, m: int, init: Any, scale: float, seed: int) -> np.ndarray:
    """A factor F of full column rank, (n_features, m), for data that were divided by ``scale``."""
    d = X.shape[1]
    random = np.random.default_rng(seed)
    if not isinstance(init, str):
        return given_start(init, m, d).T * scale
    if init == "identity":
        if m != d:
            raise ValueError(
                f"init='identity' keeps all {d} features: got n_components={m}. Leave n_components "
                "out, or start from init='pca'."
            )
        return np.eye(d)
    if init == "random":
        return random.normal(size=(d, m)) / np.sqrt(m)
    return _principal(X, m, random)


def given_start(init: Any, m: int, d: int) -> np.ndarray:
    """Components of full rank that a user gave to start from, (m, d)."""
    components = np.array(init, dtype=np.float64)
    if components.shape != (m, d):
        raise ValueError(
            f"init must be components of shape (n_components, n_features), here ({m}, {d}): got "
            f"{components.shape}."
        )
    if not np.isfinite(components).all() or np.linalg.matrix_rank(components) < m:
        raise ValueError(
            f"init must be finite and of rank {m}: its rows are dependent."
        )
    return components


def _principal(X: Any, m: int, random: np.random.Generator) -> np.ndarray:
    """Leading right singular vectors, and random directions where there are not enough."""
    n, d = X.shape
    k = min(m, n, d)
    if min(n, d) <= SMALL and not scipy.sparse.issparse(X):
        leading = np.linalg.svd(X.astype(np.float64), full_matrices=False)[2][:k].T
    else:
        from sklearn.utils.extmath import randomized_svd

        leading = randomized_svd(X, k, random_state=int(random.integers(2**31)))[2].T
    filled = np.hstack((leading, random.normal(size=(d, m - k))))
    return np.linalg.qr(filled)[0]
