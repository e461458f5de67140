"""Where an answer may lie: the semi-definite cone, the non-negative diagonals, or anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

# With more than one positive eigenvalue in so many, finding all of them is no dearer.
WORTH_ALL = 4


class PSDCone:
    """Positive semi-definite matrices."""

    def __init__(self, d: int) -> None:
        self.identity = np.eye(d)
        self._last_rank = d

    def restrict(self, psi: np.ndarray) -> np.ndarray:
        """What of a feature difference acts on the cone."""
        return psi

    def split(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positive eigenvalues of A and their directions, one a column."""
        how: dict[str, Any] = {"driver": "evd"}
        if self._last_rank * WORTH_ALL < len(A):
            how = {"driver": "evx", "subset_by_value": (0.0, np.inf)}
        # eigh reads one triangle only; rounding made the two differ.
        values, vectors = scipy.linalg.eigh((A + A.T) / 2, check_finite=False, **how)
        kept = values > 0
        self._last_rank = int(kept.sum())
        return values[kept], vectors[:, kept]

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point of the cone."""
        values, vectors = self.split(A)
        return (vectors * values) @ vectors.T

    def largest(self, A: np.ndarray) -> float:
        """The smallest t with ``A <= t I``."""
        last = len(A) - 1
        values = scipy.linalg.eigh(
            (A + A.T) / 2,
            eigvals_only=True,
            subset_by_index=(last, last),
            check_finite=False,
        )
        return float(values[0])

    def components(self, W: np.ndarray) -> np.ndarray:
        """L with ``W = L'L``, largest directions first; one zero row for W = 0."""
        values, vectors = self.split(W)
        kept = values > values.max(initial=0) * 1e-12
        L = (vectors[:, kept] * np.sqrt(values[kept])).T[::-1]
        return np.ascontiguousarray(L) if len(L) else np.zeros((1, len(W)))


class DiagonalCone:
    """Diagonal matrices without negative entries, as vectors."""

    def __init__(self, d: int) -> None:
        self.identity = np.ones(d)

    def restrict(self, psi: np.ndarray) -> np.ndarray:
        """What of a feature difference acts on the cone."""
        return np.diag(psi).copy()

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point of the cone."""
        return np.maximum(A, 0)

    def largest(self, A: np.ndarray) -> float:
        """The smallest t with ``A <= t I``."""
        return float(A.max())

    def components(self, W: np.ndarray) -> np.ndarray:
        """L with ``diag(W) = L'L``, the rows of features without weight left out."""
        L = np.diag(np.sqrt(W))[np.argsort(-W, kind="stable")]
        kept = L.any(axis=1)
        return L[kept] if kept.any() else np.zeros((1, W.size))


class AllVectors:
    """Every vector; what is learned is no matrix but one weight a feature."""

    def __init__(self, d: int) -> None:
        self.identity = np.ones(d)

    def restrict(self, psi: np.ndarray) -> np.ndarray:
        """What of a feature difference acts on the vector."""
        return psi

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point: itself."""
        return A
