"""How far rows are from anchors under many metrics at once, and how distances count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._engine.parallel.threads import single_threaded_blas, thread_map

BLOCK = 2**21  # numbers in a block of work


def paper_height(squares: np.ndarray) -> np.ndarray:
    """``d exp(-d)``, as the paper has it: it falls again beyond d = 1."""
    d = np.sqrt(squares)
    return d * np.exp(-d)


def rbf_height(squares: np.ndarray) -> np.ndarray:
    """``1 - exp(-d^2 / 2)``: far is far, however far."""
    if squares.dtype == np.float32:
        return 1 - np.exp(
            -0.5 * squares
        )  # several times faster, and as exact as the distances are
    return -np.expm1(-0.5 * squares)


KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "paper": paper_height,
    "rbf": rbf_height,
    "distance": np.sqrt,
}


class Anchored(NamedTuple):
    """Maps of all metrics in one matrix (d, r * m), the first rows of all before the second ones.

    So distances are one product and sums of r slices. ``offsets`` are the mapped anchors.
    """

    maps: np.ndarray
    offsets: np.ndarray
    n_metrics: int

    @classmethod
    def of(cls, factors: np.ndarray, anchors: np.ndarray, dtype: Any) -> Anchored:
        """Stack factors (m, r, d) of anchors (m, d)."""
        m, r, d = factors.shape
        maps = np.asfortranarray(
            factors.transpose(1, 0, 2).reshape(r * m, d).T.astype(dtype)
        )
        offsets = np.einsum("mrd,md->rm", factors, anchors).ravel().astype(dtype)
        return cls(maps, offsets, m)

    def squares(self, Z: np.ndarray) -> np.ndarray:
        """Squared distances (n, m) of rows from the anchor of each metric."""
        m = self.n_metrics
        mapped = Z @ self.maps
        mapped -= self.offsets
        np.square(mapped, out=mapped)
        squares = mapped[:, :m].copy()
        for start in range(m, mapped.shape[1], m):
            squares += mapped[:, start : start + m]
        return squares


def kernel_values(stacked: Anchored, Z: np.ndarray, kernel: str) -> np.ndarray:
    """What each metric counts (n, m) for all rows, in blocks that threads share."""
    H = np.empty((len(Z), stacked.n_metrics), dtype=Z.dtype)
    step = max(16, BLOCK // stacked.maps.shape[1])

    def work(start: int) -> None:
        H[start : start + step] = KERNELS[kernel](
            stacked.squares(Z[start : start + step])
        )

    with single_threaded_blas():
        for _ in thread_map(work, range(0, len(Z), step), depth=4):
            pass
    return H


def list_profile(Z: np.ndarray) -> np.ndarray:
    """What the candidates of a query look like: mean and standard deviation of each feature."""
    return np.concatenate(
        [Z.mean(axis=0, dtype=np.float64), Z.std(axis=0, dtype=np.float64)]
    )
