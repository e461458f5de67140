"""Scaling of data: one mean and one number, so that C, reg and learning rates know no unit.

Features of very different spreads are standardised first: each is divided by its own deviation.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from ..._engine.checks import check_choice
from ..._engine.parallel import Step, current_backend, use_backend
from ..._engine.vectors import power_of_two

BLOCK = 4096  # rows; fixed, because rounding of sums and products depends on it
CENTRE_ROWS = 4096  # rows whose mean the moments are computed around
GRID = 2.0**-24  # precision of rounded data, relative to their scale
# ``scaling="auto"`` standardises dense features if the largest standard deviation is so many times
# the median: raw tables differ by 400 and more, principal components by less than 90, and these
# are better left alone (benchmarks/scaling.py).
FACTOR = 100.0
KINDS = ("auto", "standard", "none")
# Deviations within so many units in the last place of a feature are rounding: it is constant.
ROUNDING = 16
# A mean square within these bounds has lost no digits to underflow, and no sum has overflowed.
SAFE_SQUARES = (1e-280, 1e280)


class Scaling(NamedTuple):
    """Centring by a mean, and division by one number, or by one number for each feature.

    With ``spreads``, the standard deviations of the features, rows are standardised before they are
    divided by ``scale``. Sparse rows stay sparse: their mean is None, and they are not centred.
    With ``rounded``, scaled values are multiples of `GRID`. Their last bits depend on the unit of
    the data, and SGD and long searches amplify them; rounding removes them, so that the metric does
    not depend on the unit.
    Scaled rows have the precision ``dtype``, or their own if it is None.
    """

    mean: np.ndarray | None
    scale: float
    rounded: bool = False
    dtype: Any = None
    spreads: np.ndarray | None = None

    @classmethod
    def of(cls, X: Any, *, rounded: bool = False, kind: str | None = "none") -> Self:
        """The mean of the rows, and the root mean squared distance of two of them.

        ``kind`` says whether features are standardised before: "standard", "none" or None, or
        "auto" by their spreads.
        """
        if standardises(X, kind):
            return cls._standard(X, rounded)
        sparse = scipy.sparse.issparse(X)
        centre = np.zeros(X.shape[1]) if sparse else approximate_mean(X)
        mean, variance, unit = _moments(X, centre)
        if not variance > 0:
            raise ValueError("X must have rows that differ: all are equal.")
        return cls(
            None if sparse else mean, unit * float(np.sqrt(2 * variance)), rounded
        )

    @classmethod
    def _standard(cls, X: Any, rounded: bool) -> Self:
        """The means and standard deviations of the features; constant ones keep their unit."""
        mean, spreads = feature_moments(X)
        varies = spreads > 0
        if not varies.any():
            raise ValueError("X must have rows that differ: all are equal.")
        return cls(
            None if scipy.sparse.issparse(X) else mean,
            float(np.sqrt(2 * varies.sum())),
            rounded,
            spreads=np.where(varies, spreads, 1.0),
        )

    @property
    def divisor(self) -> Any:
        """What rows are divided by: a number, or one for each feature."""
        return self.scale if self.spreads is None else self.scale * self.spreads

    @property
    def kind(self) -> str:
        """Whether features are standardised: "standard" or "none"."""
        return "none" if self.spreads is None else "standard"

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
            divisor = self.divisor
            if self.spreads is not None:
                divisor = divisor[sparse.indices]
            values = self._divided(sparse.data, divisor, dtype)
            content = (values, sparse.indices, sparse.indptr)
            return scipy.sparse.csr_array(content, sparse.shape)
        if scipy.sparse.issparse(rows):
            rows = rows.toarray()
        centred = np.subtract(rows, self.mean, dtype=np.float64)
        return self._divided(centred, self.divisor, dtype)

    def _divided(self, values: np.ndarray, divisor: Any, dtype: Any) -> np.ndarray:
        scaled = np.divide(values, divisor, dtype=np.float64)
        if self.rounded:
            scaled = np.rint(scaled / GRID) * GRID
        return scaled.astype(dtype, copy=False)

    def apply_quickly(self, rows: np.ndarray) -> np.ndarray:
        """Scale rows in their own precision: faster, and off by a common shift."""
        scaled = rows - np.asarray(self.mean).astype(rows.dtype)
        scaled *= np.asarray(1 / self.divisor, dtype=rows.dtype)
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

    def restrict(self, blocks: list[slice]) -> Self:
        first = blocks[0].start
        last = blocks[-1].stop
        return type(self)(self.X[first - self.first : last - self.first], first)

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


# ---------------------------------------------------------------------- features


def standardises(X: Any, kind: str | None) -> bool:
    """Whether ``scaling=kind`` standardises the features of these rows."""
    kind = "none" if kind is None else kind
    check_choice(kind, "scaling", KINDS)
    if kind == "auto" and not scipy.sparse.issparse(X):
        return spread_ratio(X) > FACTOR
    return kind == "standard"


def spread_ratio(X: np.ndarray) -> float:
    """The largest standard deviation of a feature over the median one, on some thousand rows.

    Constant features do not count.
    """
    # The rows are few, and workers far away.
    with use_backend("threads"):
        spreads = feature_moments(np.asarray(spaced_rows(X, CENTRE_ROWS)))[1]
    varying = spreads[spreads > 0]
    if not varying.size:
        return 1.0
    with np.errstate(over="ignore"):
        return float(varying.max() / np.median(varying))


def feature_moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of each feature; the latter is 0 if it is constant."""
    sparse = scipy.sparse.issparse(X)
    centre = np.zeros(X.shape[1]) if sparse else approximate_mean(X)
    units = _feature_units(X)
    n = X.shape[0]
    total, squares = current_backend().reduce(
        _FeatureMoments(X), row_slices(n), (centre, units)
    )
    shift = total / n
    mean_squares = squares / n
    variances = mean_squares - np.square(shift)
    # The same tolerance as for all features together, in units of the last place of a feature.
    rounding = ROUNDING * np.finfo(X.dtype).eps
    sizes = np.maximum(np.abs(centre / units), np.sqrt(mean_squares))
    spreads = np.sqrt(np.maximum(variances, 0))
    spreads[spreads <= rounding * sizes] = 0.0
    return centre + units * shift, spreads * units


def _feature_units(X: Any) -> np.ndarray:
    """A power of two near the largest value of each feature, so that squares stay floats."""
    largest = np.abs(spaced_rows(X, CENTRE_ROWS)).max(axis=0)
    if scipy.sparse.issparse(largest):
        largest = largest.toarray().ravel()
    largest = np.asarray(largest, dtype=np.float64)
    return 2.0 ** (np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1)


class _FeatureMoments(_Moments):
    """Sums of each feature and of its squares, in units of the features."""

    def map_block(self, block: slice, state: tuple[Any, Any]) -> tuple[Any, Any]:
        centre, units = state
        raw = self.X[block.start - self.first : block.stop - self.first]
        if scipy.sparse.issparse(raw):
            values = np.divide(raw.data, units[raw.indices], dtype=np.float64)
            d = raw.shape[1]
            return (
                np.bincount(raw.indices, values, d),
                np.bincount(raw.indices, np.square(values), d),
            )
        rows = np.subtract(raw, centre, dtype=np.float64)
        rows /= units
        return rows.sum(axis=0), np.einsum("ij,ij->j", rows, rows)
