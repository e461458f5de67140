"""Items and queries in one matrix of points: scaled, in memory or read lazily, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ..._engine.parallel.threads import thread_map
from ..._engine.parallel.transport import mapped_file
from ...metrics.feature_scaling import FeatureScaling
from ...relevance.relevance import Relevance
from .scaling import Scaling, row_slices, spaced_rows

BLOCK = 512  # rows of a product; fixed, so that threads do not change how it rounds
COVARIANCE_ROWS = 16_384  # rows that whitening is computed from
FLOOR = 0.02  # of the mean variance, added to the variance in each direction


class Points(NamedTuple):
    """Items, then queries that are not items, in one matrix, and the row of each query.

    The matrix is dense, sparse, or `ScaledRows`.
    """

    matrix: Any
    query_rows: np.ndarray
    n_items: int

    @property
    def n(self) -> int:
        """Number of points."""
        return self.matrix.shape[0]

    @property
    def items(self) -> Any:
        """The rows that are items."""
        return slice_rows(self.matrix, slice(0, self.n_items))

    @property
    def queries(self) -> Any:
        """The rows of the queries."""
        first = self.n_items if self.n > self.n_items else 0
        matrix = slice_rows(self.matrix, slice(first, self.n))
        if isinstance(matrix, ScaledRows):
            return matrix.numbered(self.query_rows - first)
        return matrix[self.query_rows - first]

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is sparse."""
        return hasattr(self.matrix, "tocsr")

    def differences(self, left: np.ndarray, right: np.ndarray) -> Any:
        """Rows ``left`` minus rows ``right``."""
        return self.matrix[left] - self.matrix[right]

    def embed(self, F: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """Rows times a factor, in the precision of the points."""
        return self.matrix[rows] @ F.astype(self.matrix.dtype, copy=False)

    @property
    def blocks(self) -> list[slice]:
        """Slices of all rows, as blocks for threads."""
        return [slice(start, start + BLOCK) for start in range(0, self.n, BLOCK)]

    def loaded(self) -> Points:
        """The same points with all rows in memory."""
        return self._replace(matrix=whole(self.matrix))


def lazy_points(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None, scaling: Scaling
) -> Points:
    """Items and queries that are scaled when they are read."""
    scaling = _with_dtype(scaling, X)
    n = len(X)
    rows = relevance.query_items
    if queries is not None:
        rows = n + np.arange(len(queries))
    points = X if queries is None else _StackedRows(X, queries)
    return Points(ScaledRows(points, scaling), rows, n)


def scaled_points(
    X: Any, relevance: Relevance, queries: Any, scaling: Scaling
) -> Points:
    """Items and queries in memory, scaled; sparse rows stay sparse if they are not centred."""
    if not scipy.sparse.issparse(X):
        return lazy_points(X, relevance, queries, scaling).loaded()
    scaling = _with_dtype(scaling, X)
    items = scaling.apply(X)
    n = items.shape[0]
    if queries is None:
        return Points(items, relevance.query_items, n)
    stacked = (items, scaling.apply(queries))
    rows = n + np.arange(queries.shape[0])
    return Points(scipy.sparse.vstack(stacked, format="csr"), rows, n)


def _with_dtype(scaling: Scaling, X: Any) -> Scaling:
    """The scaling with a precision: that of the items by default."""
    return scaling._replace(dtype=np.dtype(scaling.dtype or X.dtype))


# ---------------------------------------------------------------------- lazy rows


class ScaledRows:
    """Lazily scaled rows of ``X``, or of some of its rows; `whole` caches all of them."""

    def __init__(
        self,
        X: Any,
        scaling: Scaling | FeatureScaling,
        numbers: np.ndarray | None = None,
    ) -> None:
        self.X = X
        self.scaling = scaling
        self.numbers = numbers
        no_rows = scaling.apply(X[:0])
        self.dtype = no_rows.dtype
        n = X.shape[0] if numbers is None else len(numbers)
        self.shape = (n, no_rows.shape[1])
        self.cached: np.ndarray | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        if self.cached is not None:
            return self.cached[rows]
        if self.numbers is not None:
            rows = self.numbers[rows]
        return self.scaling.apply(self.X[rows])

    def streamed(self, rows: slice) -> np.ndarray:
        """Consecutive rows, scaled in their own precision."""
        assert isinstance(self.scaling, Scaling)
        return self.scaling.apply_quickly(self.X[rows])

    def between(self, rows: slice) -> ScaledRows:
        """Consecutive rows, still lazy."""
        if rows == slice(0, len(self)):
            return self
        if self.numbers is not None:
            return self.numbered(self.numbers[rows])
        return ScaledRows(self.X[rows], self.scaling)

    def numbered(self, numbers: np.ndarray) -> ScaledRows:
        """Rows of some numbers, still lazy."""
        return ScaledRows(self.X, self.scaling, numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cached": None}


class _StackedRows:
    """Rows of one array, then those of another, which may lie in files; nothing is copied."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second
        self.n = len(first)
        self.shape = (len(first) + len(second), first.shape[1])
        self.dtype = first.dtype

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return self._between(*rows.indices(self.shape[0])[:2])
        rows = np.asarray(rows)
        is_first = rows < self.n
        if is_first.all():
            return self.first[rows]
        if not is_first.any():
            return self.second[rows - self.n]
        taken = np.empty((rows.size, self.shape[1]))
        taken[is_first] = self.first[rows[is_first]]
        taken[~is_first] = self.second[rows[~is_first] - self.n]
        return taken

    def _between(self, start: int, stop: int) -> Any:
        if stop <= self.n:
            return self.first[start:stop]
        second = self.second[max(start - self.n, 0) : stop - self.n]
        if start >= self.n:
            return second
        return _StackedRows(self.first[start:], second)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.concatenate((self.first, self.second), dtype=dtype)


def is_loaded(X: Any) -> bool:
    """Whether all rows are in memory, scaled."""
    return not isinstance(X, ScaledRows) or X.cached is not None


def whole(X: Any) -> Any:
    """All rows, scaled and cached."""
    if not isinstance(X, ScaledRows):
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
    if isinstance(X, ScaledRows):
        return X.between(rows)
    return X[rows]


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
    sample = spaced_rows(X, COVARIANCE_ROWS)
    variances, directions = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    variances = np.maximum(variances, 0)
    scales = (variances + FLOOR * variances.mean()) ** (-degree / 2)
    scales *= np.sqrt(variances.sum() / (variances @ scales**2))
    return (directions * scales) @ directions.T
