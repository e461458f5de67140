"""Items and queries in one matrix of points, dense or sparse, centred and scaled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...relevance.relevance import Relevance
from .scaling import check_scale

BLOCK = 512  # rows of a product; fixed, so that threads do not change how it rounds
GRID = (
    2.0**-24
)  # precision of scaled points, relative to the root mean squared distance


class Points(NamedTuple):
    """Items and queries in one matrix, dense or sparse, and the row of each query."""

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
        return self.matrix[: self.n_items]

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


class Scaling(NamedTuple):
    """Centring and scaling of points by one mean and one number."""

    mean: np.ndarray | None
    scale: float

    @classmethod
    def of(cls, X: Any) -> Scaling:
        """The mean and the root mean squared distance of two rows; sparse rows are not centred."""
        if scipy.sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            squares = np.asarray(X.multiply(X).mean(axis=0, dtype=np.float64)).ravel()
            variance = float(np.sum(squares - mean**2))
            return cls(None, check_scale(np.sqrt(2 * max(variance, 0.0))))
        variance = X.var(axis=0, dtype=np.float64).sum()
        return cls(X.mean(axis=0, dtype=np.float64), check_scale(np.sqrt(2 * variance)))

    def apply(self, points: Any) -> Any:
        """Centre and scale points, and round them to `GRID`.

        The last bits of scaled data depend on the unit of the data, and SGD amplifies them.
        Rounding removes them, so that the metric does not depend on the unit.
        """
        if self.mean is None:
            sparse = scipy.sparse.csr_array(points)
            content = (self._rounded(sparse.data), sparse.indices, sparse.indptr)
            return scipy.sparse.csr_array(content, sparse.shape)
        if scipy.sparse.issparse(points):
            points = points.toarray()
        centred = np.subtract(points, self.mean, dtype=np.float64)
        return self._rounded(centred).astype(points.dtype, copy=False)

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        units = np.rint(values.astype(np.float64) / (self.scale * GRID))
        return (units * GRID).astype(values.dtype)


def scaled_points(
    X: Any, relevance: Relevance, queries: Any, scaling: Scaling
) -> Points:
    """Items and queries, scaled, in one matrix."""
    items = scaling.apply(X)
    n = items.shape[0]
    if queries is None:
        return Points(items, relevance.query_items, n)
    scaled = scaling.apply(queries).astype(items.dtype)
    rows = n + np.arange(scaled.shape[0])
    if scipy.sparse.issparse(items):
        return Points(scipy.sparse.vstack((items, scaled), format="csr"), rows, n)
    return Points(np.concatenate((items, scaled)), rows, n)
