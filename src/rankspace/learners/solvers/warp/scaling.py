"""Points in a unit and from an origin of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ....relevance.relevance import Relevance
from .factors import Points

GRID = 2.0**-24  # of the root mean squared distance


class Scaling(NamedTuple):
    """What is taken from points, and what they are divided by."""

    mean: np.ndarray | None
    scale: float

    @classmethod
    def of(cls, X: Any) -> Scaling:
        """The mean, and the root mean squared distance of two rows; sparse rows stay in place."""
        if scipy.sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            squares = np.asarray(X.multiply(X).mean(axis=0, dtype=np.float64)).ravel()
            variance = float(np.sum(squares - mean**2))
            return cls(None, _checked(np.sqrt(2 * max(variance, 0.0))))
        variance = X.var(axis=0, dtype=np.float64).sum()
        return cls(X.mean(axis=0, dtype=np.float64), _checked(np.sqrt(2 * variance)))

    def apply(self, points: Any) -> Any:
        """Points from the mean, in units of the scale, rounded to `GRID`.

        Long steps let the last bit grow, and the last bits of data change with their scale. Rounded
        this far above them, data give the same metric in any unit.
        """
        if self.mean is None:
            scaled = scipy.sparse.csr_array(points)
            return scipy.sparse.csr_array(
                (self._rounded(scaled.data), scaled.indices, scaled.indptr),
                scaled.shape,
            )
        if scipy.sparse.issparse(points):
            points = points.toarray()
        centred = np.subtract(points, self.mean, dtype=np.float64)
        return self._rounded(centred).astype(points.dtype, copy=False)

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        units = np.rint(values.astype(np.float64) / (self.scale * GRID))
        return (units * GRID).astype(values.dtype)


def _checked(scale: float) -> float:
    if not scale > 0:
        raise ValueError("X must have rows that differ: all are equal.")
    return float(scale)


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
