"""Low-rank factors F of a metric ``W = F F'`` under many small steps.

A step along ``Z = V diag(c) V'``, where the rows of V' are differences of points, has two parts.
`prepare` takes ``S = diag(c) A'`` and returns the m x m matrix ``(V S)'(V S)``; `move` replaces F
by ``F inner + V S tail``. In between, only matrices of size m are needed to choose the step.

Rounding errors must not accumulate. Along a direction that shrinks, ``inner`` is above 1 and
``V S tail`` subtracts more, so updates of the form ``G inner + ...`` would accumulate errors. Hence
a factor is stored either explicitly, or as ``base scale`` with a base that steps only add to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgesv

from ...._engine.parallel.threads import for_each
from ..points import Points
from .riemannian import plus_identity

# Sum of relative changes after which the scale is multiplied out: its condition is below 100.
MAX_DRIFT = 2.0


class DenseFactor:
    """An explicit factor for dense points: O(d m (r + m)) for a step of r differences."""

    def __init__(self, points: Points, F: np.ndarray, start: np.ndarray) -> None:
        self.points = points
        self.matrix = F
        self.start = start

    @property
    def gram(self) -> np.ndarray:
        """``F'F``."""
        return self.matrix.T @ self.matrix

    @property
    def cross(self) -> np.ndarray:
        """``start'F``."""
        return self.start.T @ self.matrix

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.points.embed(self.matrix, rows)

    def embedded_differences(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``V'F``; V stays for the step."""
        self._V = self.points.differences(left, right)
        return self._V @ self.matrix.astype(self._V.dtype, copy=False)

    def prepare(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``, for the V that was embedded last."""
        V = self._V
        product = V.T @ S.astype(V.dtype, copy=False)
        self._moved = product.astype(np.float64, copy=False)
        return self._moved.T @ self._moved

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """``F inner + V S tail``."""
        self.matrix = self.matrix @ inner + self._moved @ tail


class ScaledFactor:
    """A factor ``base scale`` with an m x m scale, so that a step changes only some rows of base.

    ``F inner + V S tail`` is ``(base + V change) (scale inner)``, with ``change`` solved for. For
    sparse points only the features where V is not zero move.
    """

    def __init__(self, points: Points, F: np.ndarray, start: np.ndarray) -> None:
        self.points = points
        self.start = start
        self.base = F.copy()
        self.scale = np.eye(F.shape[1])
        self._drift = 0.0
        self._base_gram = F.T @ F
        self._base_cross = start.T @ F

    def _multiply_out(self) -> None:
        """Reset the scale to the identity."""
        self.base = self.base @ self.scale
        self._base_gram = self.gram
        self._base_cross = self.cross
        self.scale = np.eye(len(self.scale))
        self._drift = 0.0

    @property
    def matrix(self) -> np.ndarray:
        """The factor itself."""
        return self.base @ self.scale

    @property
    def gram(self) -> np.ndarray:
        """``F'F``."""
        return self.scale.T @ self._base_gram @ self.scale

    @property
    def cross(self) -> np.ndarray:
        """``start'F``."""
        return self._base_cross @ self.scale

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.points.embed(self.base, rows) @ self.scale

    def embedded_differences(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``V'F``."""
        return self.rows(left) - self.rows(right)

    def prepare(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``."""
        self._S = S
        self._V = self.points.differences(left, right)
        self._products = (self._V @ self._V.T).toarray()
        return S.T @ self._products @ S

    def move(self, inner: np.ndarray, tail: np.ndarray) -> None:
        """``F inner + V S tail``."""
        self.scale = self.scale @ inner
        change = self._S @ dgesv(self.scale.T, tail.T)[2].T
        mixed = self._on_base().T @ change
        self._base_gram += mixed + mixed.T + change.T @ self._products @ change
        self._base_cross += self._on_start().T @ change
        self._add(change)
        moved = plus_identity(inner, -1.0)
        self._drift += float(np.sqrt(np.vdot(moved, moved)))
        if self._drift > MAX_DRIFT:
            self._multiply_out()

    def _on_base(self) -> np.ndarray:
        """``V' base``."""
        return self._V @ self.base

    def _on_start(self) -> np.ndarray:
        """``V' start``."""
        return self._V @ self.start

    def _add(self, change: np.ndarray) -> None:
        from ...._engine.kernels.factors import add_sparse_product

        V = self._V
        add_sparse_product(V.indptr, V.indices, V.data, change, self.base)


class ProductTable(NamedTuple):
    """Gram matrix of the points, and the points embedded by the first factor."""

    products: np.ndarray
    embedded: np.ndarray

    @classmethod
    def of(cls, points: Points, start: np.ndarray) -> ProductTable:
        """Compute blocks of rows, so that sparse points need no more memory than the table."""
        products = np.empty((points.n, points.n), dtype=points.matrix.dtype)
        for rows in points.blocks:
            block = points.matrix[rows] @ points.matrix.T
            if points.is_sparse:
                block = block.toarray()
            products[rows] = block
        return cls(products, points.embed(start))


class GramFactor(ScaledFactor):
    """A factor ``(F0 + X' weights) scale`` whose steps use inner products, not features.

    With all inner products of points stored, embeddings are updated in O(N m (r + m)) per step,
    independently of d.
    """

    def __init__(
        self,
        points: Points,
        F: np.ndarray,
        start: np.ndarray,
        table: ProductTable,
    ) -> None:
        super().__init__(points, F, start)
        self.products = table.products
        self._embedded_start = table.embedded
        self.weights = np.zeros((points.n, F.shape[1]))
        self._embedded_base = points.embed(F)
        self.embedded = self._embedded_base.copy()

    def _multiply_out(self) -> None:
        self.weights = self.weights @ self.scale
        self._embedded_base[:] = self.embedded
        super()._multiply_out()

    @property
    def matrix(self) -> np.ndarray:
        """The factor itself."""
        return (self.base + self.points.matrix.T @ self.weights) @ self.scale

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Embedded points."""
        return self.embedded[rows]

    def prepare(self, left: np.ndarray, right: np.ndarray, S: np.ndarray) -> np.ndarray:
        """``(V S)'(V S)``."""
        from ...._engine.kernels.factors import difference_products

        self._left = left
        self._right = right
        self._S = S
        self._products = difference_products(self.products, left, right)
        return S.T @ self._products @ S

    def _on_base(self) -> np.ndarray:
        base = self._embedded_base
        return base[self._left] - base[self._right]

    def _on_start(self) -> np.ndarray:
        start = self._embedded_start
        return start[self._left] - start[self._right]

    def _add(self, change: np.ndarray) -> None:
        from ...._engine.kernels.factors import add_rows, subtract_rows

        left = self._left
        right = self._right
        add_rows(left, right, change, self.weights)
        dtype = self.embedded.dtype
        change = change.astype(dtype)
        scale = self.scale.astype(dtype)

        def work(rows: slice) -> None:
            base = self._embedded_base[rows]
            differences = np.empty((left.size, len(base)), dtype=dtype)
            subtract_rows(self.products[:, rows], left, right, differences)
            base += differences.T @ change
            np.matmul(base, scale, out=self.embedded[rows])

        flops = 2.0 * self.embedded.size * (left.size + len(scale))
        for_each(work, self.points.blocks, flops=flops)
