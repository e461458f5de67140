"""Similarities of vectors (cosine, dot product, Euclidean distance), and rows of unit length."""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 8192  # rows that are scaled at a time, in double precision


def by_inner_product(similarity: str) -> bool:
    """Whether unmapped vectors are compared by inner product, for the cosine at unit length."""
    return similarity != "euclidean"


def is_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix; SciPy is only imported if they are no array."""
    if isinstance(X, np.ndarray):
        return False
    from scipy.sparse import issparse

    return bool(issparse(X))


def unit_rows(X: Any, name: str) -> Any:
    """Rows divided by their length, which is computed in double precision."""
    check_no_zeros(X, name)
    if is_sparse(X):
        import scipy.sparse

        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        scales = scipy.sparse.diags_array(1 / np.ravel(lengths))
        return (scales @ X).tocsr().astype(X.dtype, copy=False)
    unit = np.empty(X.shape, dtype=X.dtype)
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        unit[rows] = _unit_block(X[rows])
    return unit


def _unit_block(X: np.ndarray) -> np.ndarray:
    # Scaled by a power of two, which rounds nothing, so that no square overflows or vanishes.
    _, exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))
    scaled = np.ldexp(X.astype(np.float64), -exponents)
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def check_no_zeros(X: Any, name: str, first: int = 0) -> None:
    """Raise if a row is zero, as the cosine is undefined; rows are counted from ``first``."""
    present = abs(X).sum(axis=1) if is_sparse(X) else np.any(X, axis=1)
    zeros = np.flatnonzero(np.ravel(present) == 0)
    if zeros.size:
        raise ValueError(
            f"{name} must not contain zero vectors, which have no cosine: row "
            f"{first + zeros[0]} is zero. Leave such rows out, embed them again, or choose "
            "another similarity."
        )
