"""Rows of floats: vectors as a caller passes them, checked and converted.

Plain arrays and lists of numbers are checked by NumPy alone, so that a service which maps queries
never waits for the import of scikit-learn. That package checks everything else: sparse matrices,
dataframes, and whatever is none of these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .vectors import BLOCK, check_is_matrix

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Sums of squares in double precision within these limits lost nothing to underflow or overflow.
SMALLEST_SQUARE = 1e-270
LARGEST_SQUARE = 1e270


def float_rows(
    X: Any, name: str, *, accept_sparse: Any = False, allow_nan: bool = False
) -> Any:
    """A matrix of float64 or float32, the latter also for float16, with at least one row.

    Parameters
    ----------
    X : array-like or sparse matrix
        The rows; finite, or without infinity if NaN is allowed.
    name : str
        What messages call them.
    accept_sparse : bool or sequence of str, default=False
        Sparse formats to accept.
    allow_nan : bool, default=False
        Whether NaN stands for a missing value.

    Returns
    -------
    ndarray or sparse matrix
    """
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    check_is_matrix(X, name)
    if getattr(X, "dtype", None) == np.float16:
        X = X.astype(np.float32)
    rows = _plain_floats(X)
    if rows is None:
        from sklearn.utils import check_array

        return check_array(
            X,
            accept_sparse=accept_sparse,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if allow_nan else True,
            input_name=name,
        )
    if 0 in rows.shape:
        raise ValueError(
            f"{name} must have at least one row and one feature: got shape {rows.shape}."
        )
    _check_finite(rows, name, allow_nan)
    return rows


def check_n_features(X: Any, n_features: int, name: str) -> None:
    """Raise unless rows have so many features."""
    if X.shape[1] != n_features:
        raise ValueError(f"{name} must have {n_features} features: got {X.shape[1]}.")


def ready_vector(x: np.ndarray, *, unit: bool) -> np.ndarray | None:
    """A vector of floats, divided by its length if wanted; None if that takes a closer look.

    One product checks all numbers, as NaN and infinity stay in a sum of squares.
    """
    if type(x) is not np.ndarray or x.dtype not in FLOATS:
        return None
    double = x.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        square = float(double.dot(double))
    if not SMALLEST_SQUARE < square < LARGEST_SQUARE:
        return None
    if unit:
        return (double / math.sqrt(square)).astype(x.dtype, copy=False)
    return x


def _plain_floats(X: Any) -> np.ndarray | None:
    """A plain array of real numbers as floats; None for anything else."""
    # Subclasses may mean something else by their numbers, as masked arrays do.
    if type(X) not in (np.ndarray, np.memmap):
        return None
    if X.dtype in FLOATS:
        return np.asarray(X)
    if X.dtype.kind in "biuf":
        return X.astype(np.float64)
    return None


def _check_finite(rows: np.ndarray, name: str, allow_nan: bool) -> None:
    # In blocks, as rows may be memory-mapped and larger than memory.
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        bad = np.isinf(block) if allow_nan else ~np.isfinite(block)
        if bad.any():
            row = start + int(bad.any(axis=1).argmax())
            what = "infinity" if np.isinf(rows[row]).any() else "NaN"
            raise ValueError(
                f"{name} must be finite: row {row} contains {what}. Leave such rows out, or embed "
                "them again."
            )
