"""Initial factors of a metric of fixed rank: PCA, random, normal or identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

STARTS = ("pca", "random", "normal", "identity")
FULL_SVD = 500  # up to this size a full SVD is computed, beyond it a randomized one


def start_factor(X: Any, m: int, init: Any, divisor: Any, seed: int) -> np.ndarray:
    """An initial factor F of full column rank, (n_features, m), for data divided by ``divisor``."""
    d = X.shape[1]
    random = np.random.default_rng(seed)
    if not isinstance(init, str):
        return (given_start(init, m, d) * divisor).T
    if init == "identity":
        if m != d:
            raise ValueError(
                f"init='identity' needs n_components={d}, the number of features: got "
                f"n_components={m}. Omit n_components, or use init='pca'."
            )
        return np.eye(d)
    if init == "normal":
        return random.normal(size=(d, m))
    if init == "random":
        return random.normal(size=(d, m)) / np.sqrt(m)
    return _principal(X, m, random)


def given_start(init: Any, m: int, d: int) -> np.ndarray:
    """Validate an array of initial components: shape (m, d), finite and of full rank."""
    components = np.array(init, dtype=np.float64)
    if components.shape != (m, d):
        raise ValueError(
            f"init must have shape (n_components, n_features), here ({m}, {d}): got "
            f"{components.shape}."
        )
    if not np.isfinite(components).all() or np.linalg.matrix_rank(components) < m:
        raise ValueError(
            f"init must be finite and of rank {m}: its rows are linearly dependent, or not finite."
        )
    return components


def _principal(X: Any, m: int, random: np.random.Generator) -> np.ndarray:
    """Principal directions (PCA), and random directions if there are too few."""
    n, d = X.shape
    k = min(m, n, d)
    if min(n, d) <= FULL_SVD and not scipy.sparse.issparse(X):
        leading = np.linalg.svd(X.astype(np.float64), full_matrices=False)[2][:k].T
    else:
        from sklearn.utils.extmath import randomized_svd

        leading = randomized_svd(X, k, random_state=int(random.integers(2**31)))[2].T
    filled = np.hstack((leading, random.normal(size=(d, m - k))))
    return np.linalg.qr(filled)[0]
