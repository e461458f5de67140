"""Random projections of vectors: a few numbers that tell two samples of vectors apart."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from .parallel.threads import single_threaded_blas
from .rows import float_rows
from .similarity import unit_rows

N_PROJECTIONS = 32
# From so many queries a metric file keeps projections: 64 kB.
MAX_SAMPLE = 500


@cache
def random_signs(n_features: int) -> np.ndarray:
    """Directions (N_PROJECTIONS, n_features) of random signs, which keep lengths on average.

    The signs are bits of a hash, so that they are the same for every version of NumPy.
    """
    n = N_PROJECTIONS * n_features
    drawn = hashlib.shake_256(b"rankspace projections").digest(-(-n // 8))
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=n)
    signs = 2.0 * bits.reshape(N_PROJECTIONS, n_features) - 1
    return signs / np.sqrt(N_PROJECTIONS)


def evenly_spaced(n_rows: int, n: int) -> np.ndarray:
    """Numbers of at most n rows, spread over all."""
    return np.linspace(0, n_rows - 1, min(n_rows, n)).astype(np.int64)


def spread_rows(Q: Any, n: int) -> Any:
    """At most n rows, spread over all, of a matrix or a dataframe."""
    if not hasattr(Q, "tocsr"):
        Q = np.asarray(Q)
    return Q[evenly_spaced(Q.shape[0], n)]


def project(Q: Any, name: str, *, unit: bool) -> np.ndarray:
    """Projections (n_rows, N_PROJECTIONS) in float32, of rows at unit length if wanted.

    A missing value counts as 0.
    """
    rows = float_rows(Q, name, accept_sparse=("csr", "csc"), allow_nan=True)
    if isinstance(rows, np.ndarray):
        rows = np.nan_to_num(rows.astype(np.float64), copy=False)
    if unit:
        rows = unit_rows(rows, name)
    with single_threaded_blas():
        projected = rows @ random_signs(rows.shape[1]).T
    return np.asarray(projected, dtype=np.float32)
