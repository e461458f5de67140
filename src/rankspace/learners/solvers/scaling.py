"""Scaling of data by one number, so that C, reg and steps mean the same on any data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._engine.parallel import Step, current_backend
from ..._engine.parallel.threads import thread_map
from ..._engine.parallel.transport import mapped_file
from ...relevance.relevance import Relevance

BLOCK = 4096  # rows; fixed, for sums and products round by it
SPREAD = 4096  # rows that settle the point which moments are taken from
MOST_ROWS = 16_384  # that settle the spread in all directions
FLOOR = 0.02  # of the mean spread, added to that of each direction


class Scaled(NamedTuple):
    """Items and queries from their centre, in units of the root mean squared distance."""

    X: Any
    Q: Any
    scale: float
    mean: Any = 0.0


def scale_data(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
) -> Scaled:
    """Centre and scale by one number, so that C means the same on any data."""
    items, points, scale = scaled_rows(X, relevance, queries)
    return Scaled(whole(items), points[np.arange(len(points))], scale, items.mean)


# ---------------------------------------------------------------------- rows when they are needed


class ScaledRows:
    """Rows that are scaled when they are asked for; those of a small matrix are kept.

    ``numbers`` are the rows of ``X`` that these are; all by default.
    """

    def __init__(
        self,
        X: np.ndarray,
        mean: np.ndarray,
        scale: float,
        numbers: np.ndarray | None = None,
    ) -> None:
        self.X, self.mean, self.scale, self.numbers = X, mean, scale, numbers
        self.dtype = X.dtype
        self.shape = (len(X) if numbers is None else len(numbers), X.shape[1])
        self.kept: np.ndarray | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        if self.kept is not None:
            return self.kept[rows]
        raw = self.X[rows if self.numbers is None else self.numbers[rows]]
        return (np.subtract(raw, self.mean, dtype=np.float64) / self.scale).astype(
            self.dtype
        )

    def streamed(self, part: slice) -> np.ndarray:
        """A run of rows in the precision they have: faster, and off by a common shift at most."""
        rows = self.X[part] - self.mean.astype(self.dtype)
        rows *= self.dtype.type(1 / self.scale)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": None}


def scaled_rows(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
) -> tuple[ScaledRows, ScaledRows, float]:
    """Items and queries from their centre, and what they are divided by; nothing is copied."""
    mean, scale = moments(X)
    if queries is None:
        return (
            ScaledRows(X, mean, scale),
            ScaledRows(X, mean, scale, relevance.query_items),
            scale,
        )
    return ScaledRows(X, mean, scale), ScaledRows(queries, mean, scale), scale


def whole(X: Any) -> np.ndarray:
    """All rows at once, kept where they are scaled."""
    if isinstance(X, np.ndarray):
        return X
    if X.kept is None:
        kept = np.empty(X.shape, dtype=X.dtype)
        for part in row_slices(len(X)):
            kept[part] = X[part]
        X.kept = kept
    return X.kept


def streams(X: Any, max_memory: int) -> bool:
    """Whether rows lie in a file and are too many to be kept in so many MiB."""
    if isinstance(X, np.ndarray) or X.kept is not None:
        return False
    return X.X.nbytes > max_memory * 2**20 and mapped_file(X.X[:1]) is not None


def run_of_rows(X: Any, part: slice) -> Any:
    """A run of rows, scaled or to be scaled when they are read."""
    if isinstance(X, np.ndarray):
        return X[part]
    return ScaledRows(X.X[part], X.mean, X.scale)


def row_slices(n: int) -> list[slice]:
    """All rows, in blocks of a fixed size."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def in_blocks(X: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Rows under a map, by products of a fixed size."""
    map_ = components.T.astype(X.dtype)
    found = np.empty((len(X), len(components)), dtype=X.dtype)

    def work(part: slice) -> None:
        np.matmul(X[part], map_, out=found[part])

    for _ in thread_map(work, row_slices(len(X)), depth=8):
        pass
    return found


def partly_white(X: np.ndarray, degree: float) -> np.ndarray:
    """A map that evens the spread of centred rows, wholly with degree 1; the total stays."""
    some = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int))]
    spreads, directions = np.linalg.eigh((some.T @ some).astype(np.float64))
    spreads = np.maximum(spreads, 0)
    stretch = (spreads + FLOOR * spreads.mean()) ** (-degree / 2)
    stretch *= np.sqrt(spreads.sum() / (spreads @ stretch**2))
    return (directions * stretch) @ directions.T


# ---------------------------------------------------------------------- sums over rows


class _Moments(Step):
    """Sums of rows and of their squares; on a cluster each worker gets the rows of its blocks."""

    def __init__(self, X: np.ndarray, first: int = 0) -> None:
        self.X, self.first = X, first

    def restrict(self, blocks: list[slice]) -> _Moments:
        first = blocks[0].start
        return _Moments(
            self.X[first - self.first : blocks[-1].stop - self.first], first
        )

    def map_block(self, block: slice, centre: np.ndarray) -> tuple[np.ndarray, float]:
        raw = self.X[block.start - self.first : block.stop - self.first]
        rows = np.subtract(raw, centre, dtype=np.float64)
        return rows.sum(axis=0), float(np.einsum("ij,ij->", rows, rows))


def moments(X: np.ndarray) -> tuple[np.ndarray, float]:
    """The mean of the rows, and the root mean squared distance of two of them."""
    spread = np.unique(np.linspace(0, len(X) - 1, min(len(X), SPREAD)).astype(int))
    centre = X[spread].mean(axis=0, dtype=np.float64)
    total, squares = current_backend().reduce(_Moments(X), row_slices(len(X)), centre)
    shift = total / len(X)
    variance = squares / len(X) - float(shift @ shift)
    if not variance > 1e-24 * (squares / len(X) + float(centre @ centre)):
        variance = 0.0
    return centre + shift, check_scale(np.sqrt(2 * variance))


def check_scale(scale: float) -> float:
    """Raise unless the rows of ``X`` differ, so that there is something to divide by."""
    if not scale > 0:
        raise ValueError("X must have rows that differ: all are equal.")
    return float(scale)
