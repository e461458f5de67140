"""Scaling of data: one mean and one number, so that C, reg and learning rates know no unit."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from ..._engine.parallel import Step, current_backend
from ..._engine.vectors import power_of_two

BLOCK = 4096  # rows; fixed, because rounding of sums and products depends on it
CENTRE_ROWS = 4096  # rows whose mean the moments are computed around
GRID = 2.0**-24  # precision of rounded data, relative to their scale
# A mean square within these bounds has lost no digits to underflow, and no sum has overflowed.
SAFE_SQUARES = (1e-280, 1e280)


class Scaling(NamedTuple):
    """Centring by a mean, and division by one number.

    Sparse rows stay sparse: their mean is None, and they are not centred. With ``rounded``, scaled
    values are multiples of `GRID`. Their last bits depend on the unit of the data, and SGD and long
    searches amplify them; rounding removes them, so that the metric does not depend on the unit.
    Scaled rows have the precision ``dtype``, or their own if it is None.
    """

    mean: np.ndarray | None
    scale: float
    rounded: bool = False
    dtype: Any = None

    @classmethod
    def of(cls, X: Any, *, rounded: bool = False) -> Self:
        """The mean of the rows, and the root mean squared distance of two of them."""
        sparse = scipy.sparse.issparse(X)
        centre = np.zeros(X.shape[1]) if sparse else approximate_mean(X)
        mean, variance, unit = _moments(X, centre)
        if not variance > 0:
            raise ValueError("X must have rows that differ: all are equal.")
        return cls(
            None if sparse else mean, unit * float(np.sqrt(2 * variance)), rounded
        )

    @classmethod
    def of_norms(cls, X: np.ndarray) -> Self:
        """No centring, as products depend on the origin, and the root mean squared norm."""
        origin = np.zeros(X.shape[1])
        mean, variance, unit = _moments(X, origin)
        shift = mean / unit
        mean_square = variance + float(shift @ shift)
        if not mean_square > 0:
            raise ValueError("X must have rows that are not zero: all are.")
        return cls(origin, unit * float(np.sqrt(mean_square)))

    def apply(self, rows: Any) -> Any:
        """Scale rows."""
        dtype = self.dtype or rows.dtype
        if self.mean is None:
            sparse = scipy.sparse.csr_array(rows)
            content = (self._divided(sparse.data, dtype), sparse.indices, sparse.indptr)
            return scipy.sparse.csr_array(content, sparse.shape)
        if scipy.sparse.issparse(rows):
            rows = rows.toarray()
        return self._divided(np.subtract(rows, self.mean, dtype=np.float64), dtype)

    def _divided(self, values: np.ndarray, dtype: Any) -> np.ndarray:
        scaled = np.divide(values, self.scale, dtype=np.float64)
        if self.rounded:
            scaled = np.rint(scaled / GRID) * GRID
        return scaled.astype(dtype, copy=False)

    def apply_quickly(self, rows: np.ndarray) -> np.ndarray:
        """Scale rows in their own precision: faster, and off by a common shift."""
        scaled = rows - np.asarray(self.mean).astype(rows.dtype)
        scaled *= rows.dtype.type(1 / self.scale)
        return scaled


def row_slices(n: int) -> list[slice]:
    """Slices of all rows, in blocks of a fixed size."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def spaced_rows(X: Any, n: int) -> Any:
    """At most n rows, evenly spaced."""
    numbers = np.linspace(0, X.shape[0] - 1, min(X.shape[0], n)).astype(int)
    return X[np.unique(numbers)]


def approximate_mean(X: np.ndarray) -> np.ndarray:
    """The mean of a few thousand rows spread evenly over all: a centre that costs little."""
    return spaced_rows(X, CENTRE_ROWS).mean(axis=0, dtype=np.float64)


# ---------------------------------------------------------------------- moments


class _Moments(Step):
    """Sums of rows and of their squares; on a cluster each worker gets the rows of its blocks."""

    def __init__(self, X: Any, first: int = 0) -> None:
        self.X = X
        self.first = first

    def restrict(self, blocks: list[slice]) -> _Moments:
        first = blocks[0].start
        last = blocks[-1].stop
        return _Moments(self.X[first - self.first : last - self.first], first)

    def map_block(
        self, block: slice, state: tuple[np.ndarray, float]
    ) -> tuple[np.ndarray, float]:
        centre, unit = state
        raw = self.X[block.start - self.first : block.stop - self.first]
        if scipy.sparse.issparse(raw):
            values = np.divide(raw.data, unit, dtype=np.float64)
            sums = np.bincount(raw.indices, values, raw.shape[1])
            return sums, float(np.einsum("i,i->", values, values))
        rows = np.subtract(raw, centre, dtype=np.float64)
        if unit != 1:
            rows /= unit
        return rows.sum(axis=0), float(np.einsum("ij,ij->", rows, rows))


def _moments(X: Any, centre: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The mean of the rows, their variance in units, and the unit: 1, or another power of two."""
    mean, variance, mean_square = _moments_in(X, centre, 1.0)
    if SAFE_SQUARES[0] < mean_square < SAFE_SQUARES[1]:
        return mean, variance, 1.0
    unit = power_of_two(X)
    return *_moments_in(X, centre, unit)[:2], unit


def _moments_in(
    X: Any, centre: np.ndarray, unit: float
) -> tuple[np.ndarray, float, float]:
    n = X.shape[0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total, squares = current_backend().reduce(
            _Moments(X), row_slices(n), (centre, unit)
        )
        shift = total / n
        mean_square = squares / n
        variance = mean_square - float(shift @ shift)
        offset = centre / unit
        # Less than this is rounding: of the rows, or for sparse ones of the two terms.
        share = 1e-14 if scipy.sparse.issparse(X) else 1e-24
        if not variance > share * (mean_square + float(offset @ offset)):
            variance = 0.0
    return centre + unit * shift, variance, mean_square
