"""Centring and scaling of data, so that C, reg and learning rates do not depend on the unit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._engine.parallel import Step, current_backend
from ..._engine.parallel.threads import thread_map
from ..._engine.parallel.transport import mapped_file
from ...relevance.relevance import Relevance

BLOCK = 4096  # rows; fixed, because rounding of sums and products depends on it
CENTRE_ROWS = 4096  # rows whose mean moments are computed around
COVARIANCE_ROWS = 16_384  # rows that whitening is computed from
FLOOR = 0.02  # of the mean variance, added to the variance in each direction


class Scaled(NamedTuple):
    """Items and queries, centred, and divided by the root mean squared distance of two items."""

    X: Any
    Q: Any
    scale: float
    mean: Any = 0.0


def scale_data(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
) -> Scaled:
    """Centre items and queries, and scale them by one number."""
    items, points, scale = scaled_rows(X, relevance, queries)
    return Scaled(whole(items), points[np.arange(len(points))], scale, items.mean)


# ---------------------------------------------------------------------- lazy scaling


class ScaledRows:
    """Lazily scaled rows of ``X``, or of some of its rows; `whole` caches all of them."""

    def __init__(
        self,
        X: np.ndarray,
        mean: np.ndarray,
        scale: float,
        numbers: np.ndarray | None = None,
    ) -> None:
        self.X = X
        self.mean = mean
        self.scale = scale
        self.numbers = numbers
        self.dtype = X.dtype
        self.shape = X.shape
        if numbers is not None:
            self.shape = (len(numbers), X.shape[1])
        self.cached: np.ndarray | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        if self.cached is not None:
            return self.cached[rows]
        if self.numbers is not None:
            rows = self.numbers[rows]
        centred = np.subtract(self.X[rows], self.mean, dtype=np.float64)
        return (centred / self.scale).astype(self.dtype)

    def streamed(self, rows: slice) -> np.ndarray:
        """Consecutive rows, scaled in their own precision: faster, and off by a common shift."""
        scaled = self.X[rows] - self.mean.astype(self.dtype)
        scaled *= self.dtype.type(1 / self.scale)
        return scaled

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cached": None}


def scaled_rows(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
) -> tuple[ScaledRows, ScaledRows, float]:
    """Lazily scaled items and queries, and the scale; nothing is copied."""
    mean, scale = moments(X)
    items = ScaledRows(X, mean, scale)
    if queries is None:
        return items, ScaledRows(X, mean, scale, relevance.query_items), scale
    return items, ScaledRows(queries, mean, scale), scale


def is_loaded(X: Any) -> bool:
    """Whether all rows are in memory, scaled."""
    return isinstance(X, np.ndarray) or X.cached is not None


def whole(X: Any) -> np.ndarray:
    """All rows, scaled and cached."""
    if isinstance(X, np.ndarray):
        return X
    if X.cached is None:
        scaled = np.empty(X.shape, dtype=X.dtype)
        for rows in row_slices(len(X)):
            scaled[rows] = X[rows]
        X.cached = scaled
    return X.cached


def streams(X: Any, max_memory: int) -> bool:
    """Whether rows are streamed: mapped from a file, and larger than the memory in MiB."""
    if is_loaded(X):
        return False
    return X.X.nbytes > max_memory * 2**20 and mapped_file(X.X[:1]) is not None


def slice_rows(X: Any, rows: slice) -> Any:
    """Consecutive rows of a matrix, or of lazily scaled rows."""
    if isinstance(X, np.ndarray):
        return X[rows]
    return ScaledRows(X.X[rows], X.mean, X.scale)


def row_slices(n: int) -> list[slice]:
    """Slices of all rows, in blocks of a fixed size."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def in_blocks(X: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Embed rows by a linear map, in products of a fixed size."""
    map_ = components.T.astype(X.dtype)
    embedded = np.empty((len(X), len(components)), dtype=X.dtype)

    def work(rows: slice) -> None:
        np.matmul(X[rows], map_, out=embedded[rows])

    for _ in thread_map(work, row_slices(len(X)), depth=8):
        pass
    return embedded


def partly_white(X: np.ndarray, degree: float) -> np.ndarray:
    """A whitening map of centred rows, full with degree 1, that preserves the total variance."""
    sample = _spaced_rows(X, COVARIANCE_ROWS)
    variances, directions = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    variances = np.maximum(variances, 0)
    scales = (variances + FLOOR * variances.mean()) ** (-degree / 2)
    scales *= np.sqrt(variances.sum() / (variances @ scales**2))
    return (directions * scales) @ directions.T


def _spaced_rows(X: np.ndarray, n: int) -> np.ndarray:
    """At most n rows, evenly spaced."""
    numbers = np.linspace(0, len(X) - 1, min(len(X), n)).astype(int)
    return X[np.unique(numbers)]


# ---------------------------------------------------------------------- sums over rows


class _Moments(Step):
    """Sums of rows and of their squares; on a cluster each worker gets the rows of its blocks."""

    def __init__(self, X: np.ndarray, first: int = 0) -> None:
        self.X = X
        self.first = first

    def restrict(self, blocks: list[slice]) -> _Moments:
        first = blocks[0].start
        last = blocks[-1].stop
        return _Moments(self.X[first - self.first : last - self.first], first)

    def map_block(self, block: slice, centre: np.ndarray) -> tuple[np.ndarray, float]:
        raw = self.X[block.start - self.first : block.stop - self.first]
        rows = np.subtract(raw, centre, dtype=np.float64)
        return rows.sum(axis=0), float(np.einsum("ij,ij->", rows, rows))


def moments(X: np.ndarray) -> tuple[np.ndarray, float]:
    """The mean of the rows, and the root mean squared distance of two of them."""
    centre = approximate_mean(X)
    total, squares = current_backend().reduce(_Moments(X), row_slices(len(X)), centre)
    shift = total / len(X)
    mean_square = squares / len(X)
    variance = mean_square - float(shift @ shift)
    if not variance > 1e-24 * (mean_square + float(centre @ centre)):
        variance = 0.0  # rounding errors only
    return centre + shift, check_scale(np.sqrt(2 * variance))


def approximate_mean(X: np.ndarray) -> np.ndarray:
    """The mean of a few thousand rows spread evenly over all: a centre that costs little."""
    return _spaced_rows(X, CENTRE_ROWS).mean(axis=0, dtype=np.float64)


def check_scale(scale: float) -> float:
    """Raise an error if the scale is 0: all rows of ``X`` are equal."""
    if not scale > 0:
        raise ValueError("X must have rows that differ: all are equal.")
    return float(scale)
