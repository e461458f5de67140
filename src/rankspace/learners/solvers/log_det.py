"""LogDet projections of ITML: the matrix nearest to the identity under bounds on distances.

The projection on the bound of a pair with difference v adds a multiple of ``v v'`` to the inverse
of A, and only needs ``v' A v``. So a block of pairs is processed by their inner products alone, and
A is updated once per block.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

BLOCK = 64  # pairs


class LogDetProjections:
    """Cyclic LogDet (Bregman) projections on bounds of distances, with slack.

    Parameters
    ----------
    V : ndarray of shape (n_pairs, n_features)
        Differences of pairs.
    similar : ndarray of bool
        Whether the squared distance of a pair is bounded from above; otherwise from below.
    bounds : ndarray
        Bounds of the squared distances, which the slack variables adjust.
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
        for start in range(0, len(self.V), BLOCK):
            block = slice(start, start + BLOCK)
            V = self.V[block]
            signs = self.signs[block]
            duals = self.duals[block]
            mapped = V @ self._inner_matrix
            inner = mapped @ V.T
            before = duals.copy()
            change += project_in_turn(
                inner.copy(), signs, self.gamma, duals, self.bounds[block]
            )
            self._update(mapped, inner, signs * (duals - before))
        return change

    def _update(self, mapped: np.ndarray, inner: np.ndarray, steps: np.ndarray) -> None:
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
