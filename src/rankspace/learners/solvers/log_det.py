"""LogDet projections of ITML: the matrix nearest to the identity under bounds on distances.

A projection on the bound of a pair with difference v changes the inverse of A by a multiple of
``v v'``, and needs of A no more than ``v' A v``. So a block of pairs is projected on in turn by
their inner products alone, and A follows by one product.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

BLOCK = 64  # pairs


class LogDetProjections:
    """Cyclic projections on bounds, with slack.

    Parameters
    ----------
    V : ndarray of shape (n_pairs, n_features)
        Differences of pairs.
    similar : ndarray of bool
        Pairs whose squared distance is bounded from above; that of others is from below.
    bounds : ndarray
        The bounds. They move as far as the slack allows.
    gamma : float
        Weight of the slack.
    """

    def __init__(
        self, V: np.ndarray, similar: np.ndarray, bounds: np.ndarray, gamma: float
    ) -> None:
        self.basis = _span(V)
        self.V = V @ self.basis
        self.signs = np.where(similar, 1.0, -1.0)
        self.bounds = bounds.copy()
        self.gamma = gamma
        self.duals = np.zeros(len(V))
        self._inner_matrix = np.eye(self.basis.shape[1])

    @property
    def matrix(self) -> np.ndarray:
        """The matrix A, (n_features, n_features)."""
        change = self._inner_matrix - np.eye(self.basis.shape[1])
        return np.eye(len(self.basis)) + self.basis @ change @ self.basis.T

    def cycle(self) -> float:
        """Project on every bound once; returns the sum of the changes of the dual variables."""
        from ..._engine.kernels.online import project_in_turn

        change = 0.0
        for at in range(0, len(self.V), BLOCK):
            part = slice(at, at + BLOCK)
            mapped = self.V[part] @ self._inner_matrix
            inner = mapped @ self.V[part].T
            before = self.duals[part].copy()
            change += project_in_turn(
                inner.copy(),
                self.signs[part],
                self.gamma,
                self.duals[part],
                self.bounds[part],
            )
            self._follow(mapped, inner, self.signs[part] * (self.duals[part] - before))
        return change

    def _follow(self, mapped: np.ndarray, inner: np.ndarray, steps: np.ndarray) -> None:
        """Add ``V' diag(steps) V`` to the inverse of A, by Woodbury's formula."""
        moved = np.flatnonzero(steps)
        mapped = mapped[moved]
        inner = inner[np.ix_(moved, moved)]
        steps = steps[moved]
        roots = np.sqrt(np.abs(steps))
        core = np.diag(np.sign(steps)) + roots[:, None] * inner * roots
        core = roots[:, None] * scipy.linalg.solve(core, np.diag(roots), assume_a="sym")
        self._inner_matrix -= mapped.T @ ((core + core.T) / 2 @ mapped)


def _span(V: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the differences, outside of which A stays the identity."""
    values, vectors = np.linalg.eigh(V.T @ V)
    return vectors[:, values > values[-1] * max(V.shape) * np.finfo(float).eps]
