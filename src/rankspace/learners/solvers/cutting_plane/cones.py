"""Constraints of the metric: semi-definite (PSD cone), diagonal, one weight a block, or none."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dsyevd, dsyevr, dsyevx

# If more than one in so many eigenvalues is positive, a full decomposition costs no more.
FULL_SHARE = 4


def eigenvectors(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, which is overwritten.

    LAPACK is called directly: for small matrices, the checks of `scipy.linalg.eigh` take longer.
    """
    values, vectors, info = dsyevd(A.T, lower=1, overwrite_a=1)
    check_converged(info)
    return values, vectors


def positive_eigenvectors(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues above 0, and their eigenvectors; the symmetric matrix is overwritten."""
    above = {"range": "V", "vl": 0.0, "vu": np.inf, "lower": 1}
    values, vectors, n, _, info = dsyevx(A.T, overwrite_a=1, **above)
    check_converged(info)
    return values[:n], vectors[:, :n]


def check_converged(info: int) -> None:
    """Raise an error unless LAPACK has found all eigenvalues."""
    if info:
        raise np.linalg.LinAlgError(
            f"eigenvalues did not converge: LAPACK returned {info}. Are there huge values?"
        )


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
        # Only one triangle is read, and rounding makes the two differ.
        A = (A + A.T) / 2
        some = self._last_rank * FULL_SHARE < len(A)
        values, vectors = positive_eigenvectors(A) if some else eigenvectors(A)
        positive = values > 0
        self._last_rank = int(positive.sum())
        return values[positive], vectors[:, positive]

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point of the cone."""
        values, vectors = self.split(A)
        return (vectors * values) @ vectors.T

    def largest(self, A: np.ndarray) -> float:
        """The smallest t with ``A <= t I``."""
        A = (A + A.T) / 2
        last = len(A)
        values, *_, info = dsyevr(A.T, compute_v=0, range="I", il=last, iu=last)
        check_converged(info)
        return float(values[0])

    def components(self, W: np.ndarray) -> np.ndarray:
        """L with ``W = L'L``, largest directions first; one zero row for W = 0."""
        values, vectors = self.split(W)
        large = values > values.max(initial=0) * 1e-12
        if not large.any():
            return np.zeros((1, len(W)))
        L = (vectors[:, large] * np.sqrt(values[large])).T
        return np.ascontiguousarray(L[::-1])


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
        """L with ``diag(W) = L'L``, without rows for features of weight 0."""
        if not W.any():
            return np.zeros((1, W.size))
        L = np.diag(np.sqrt(W))[np.argsort(-W, kind="stable")]
        return L[L.any(axis=1)]


class BlockCone:
    """Diagonal matrices with one weight, not below 0, for each block of columns, as vectors.

    Entry b is the weight of block b times the root of its number of columns, so that products and
    norms of vectors are those of the matrices. ``blocks`` numbers the block of each column from 0.
    """

    def __init__(self, blocks: np.ndarray) -> None:
        self.blocks = blocks
        self.identity = np.sqrt(np.bincount(blocks))

    def restrict(self, psi: np.ndarray) -> np.ndarray:
        """What of a feature difference acts on the cone."""
        return np.bincount(self.blocks, np.diag(psi)) / self.identity

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point of the cone."""
        return np.maximum(A, 0)

    def largest(self, A: np.ndarray) -> float:
        """The smallest t with ``A <= t I``."""
        return float((A / self.identity).max())

    def weights(self, W: np.ndarray) -> np.ndarray:
        """The weight of each block."""
        return W / self.identity

    def components(self, W: np.ndarray) -> np.ndarray:
        """L with ``W = L'L``, without rows for columns of weight 0."""
        columns = self.weights(W)[self.blocks]
        if not columns.any():
            return np.zeros((1, columns.size))
        order = np.argsort(-columns, kind="stable")
        return np.diag(np.sqrt(columns))[order[columns[order] > 0]]


class AllVectors:
    """All vectors, without constraint: one weight per feature instead of a matrix."""

    def __init__(self, d: int) -> None:
        self.identity = np.ones(d)

    def restrict(self, psi: np.ndarray) -> np.ndarray:
        """What of a feature difference acts on the vector."""
        return psi

    def project(self, A: np.ndarray) -> np.ndarray:
        """The nearest point: itself."""
        return A
