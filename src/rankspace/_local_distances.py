"""How far rows are from anchors under many metrics at once, and how distances count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BLOCK = 2**21  # numbers in a block of work


def paper_height(squares: np.ndarray) -> np.ndarray:
    """``d exp(-d)``, as the paper has it: it falls again beyond d = 1."""
    d = np.sqrt(squares)
    return d * np.exp(-d)


def rbf_height(squares: np.ndarray) -> np.ndarray:
    """``1 - exp(-d^2 / 2)``: far is far, however far."""
    return -np.expm1(-0.5 * squares)


KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "paper": paper_height,
    "rbf": rbf_height,
    "distance": np.sqrt,
}


def anchored_squares(Z: np.ndarray, factors: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Squared distances (n, m) of rows from the anchor of each metric, in the rows' precision."""
    m, r, d = factors.shape
    stacked = factors.transpose(1, 0, 2).reshape(r * m, d).astype(Z.dtype)
    offsets = np.einsum("mrd,md->rm", factors, anchors).ravel().astype(Z.dtype)
    mapped = Z @ stacked.T
    mapped -= offsets
    np.square(mapped, out=mapped)
    squares = mapped[:, :m].copy()
    for j in range(1, r):
        squares += mapped[:, j * m : (j + 1) * m]
    return squares


def list_profile(Z: np.ndarray) -> np.ndarray:
    """What the candidates of a query look like: mean and standard deviation of each feature."""
    return np.concatenate([Z.mean(axis=0, dtype=np.float64), Z.std(axis=0, dtype=np.float64)])
