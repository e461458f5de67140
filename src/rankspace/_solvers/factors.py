"""The factor F of a metric ``W = F F'`` under many low-rank steps, and the points it embeds.

A step along ``Z = V diag(c) V'``, where the rows of V' are differences of points, is made in two
parts. `pull` takes ``S = diag(c) A'`` and returns the m x m matrix ``(V S)'(V S)``; `move` replaces
F by ``F inner + V S tail``. In between, only matrices of size m are needed to choose the step.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

# Sum of the relative changes after which a scale is multiplied out: it has lost no more than four
# digits of what has shrunk.
MOST_DRIFT = 4.0


class Points(NamedTuple):
    """Items and queries in one matrix, dense or sparse, and the row of each query."""

    matrix: Any
    query_rows: np.ndarray
    n_items: int

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


class Factor(Protocol):
    """A factor that takes low-rank steps."""

    matrix: np.ndarray

    def pull(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray: ...

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None: ...


class DenseFactor:
    """A factor of dense points, kept as it is: O(d m (r + m)) a step of r differences."""

    def __init__(self, points: Points, F: np.ndarray) -> None:
        self.points, self.matrix = points, F

    def pull(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``."""
        V = self.points.differences(left, right)
        self._pulled = (V.T @ S.astype(V.dtype, copy=False)).astype(np.float64, copy=False)
        return self._pulled.T @ self._pulled

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """``F inner + V S tail``."""
        self.matrix = self.matrix @ inner + self._pulled @ tail


class ScaledFactor:
    """A factor ``base @ scale`` with a small scale, so that a step need not touch all of base.

    ``F inner + V S tail = (base + V S tail new_scale^-1) new_scale`` with ``new_scale = scale
    inner``: only features where V is not zero change.
    """

    def __init__(self, points: Points, F: np.ndarray) -> None:
        self.points = points
        self._start(F)

    def _start(self, F: np.ndarray) -> None:
        self.base, self.scale, self._drift = F.copy(), np.eye(F.shape[1]), 0.0

    @property
    def matrix(self) -> np.ndarray:
        """The factor itself."""
        return self.base @ self.scale

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.points.embed(self.base, rows) @ self.scale

    def pull(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``."""
        self._V, self._S = self.points.differences(left, right), S
        products = self._V @ self._V.T
        return S.T @ (products @ S)

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """``F inner + V S tail``."""
        from .._kernels.factors import add_sparse_product

        self.scale = self.scale @ inner
        change = np.linalg.solve(self.scale.T, (self._S @ tail).T).T
        V = self._V
        add_sparse_product(V.indptr, V.indices, V.data, change, self.base)
        self._drift += float(np.linalg.norm(inner - np.eye(len(inner))))
        if self._drift > MOST_DRIFT:
            self._start(self.matrix)


class GramFactor:
    """A factor ``(start + X' weights) scale``, moved without a look at the features.

    Inner products of all points are at hand, so a step costs O(r m (r + m)) whatever d.
    """

    def __init__(self, points: Points, F: np.ndarray, products: np.ndarray) -> None:
        self.points, self.products = points, products
        self._start(F)

    def _start(self, F: np.ndarray) -> None:
        self.start, self.scale, self._drift = F, np.eye(F.shape[1]), 0.0
        self.weights = np.zeros((self.points.matrix.shape[0], F.shape[1]))

    @property
    def matrix(self) -> np.ndarray:
        """The factor itself."""
        return (self.start + self.points.matrix.T @ self.weights) @ self.scale

    def pull(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``."""
        self._left, self._right, self._S = left, right, S
        self.differences = self.products[left] - self.products[right]
        products = self.differences[:, left] - self.differences[:, right]
        return S.T @ (products @ S)

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """``F inner + V S tail``."""
        from .._kernels.factors import add_rows

        self.scale = self.scale @ inner
        change = np.linalg.solve(self.scale.T, (self._S @ tail).T).T
        add_rows(self._left, self._right, change, self.weights)
        self._drift += float(np.linalg.norm(inner - np.eye(len(inner))))
        if self._drift > MOST_DRIFT:
            self._start(self.matrix)
