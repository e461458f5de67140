"""One scale for all data, so that weights and steps mean the same on any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .relevance import Relevance


class Scaled(NamedTuple):
    """Items and queries from their centre, in units of the root mean squared distance."""

    X: np.ndarray
    Q: np.ndarray
    scale: float


def scale_data(X: np.ndarray, relevance: Relevance, queries: np.ndarray | None) -> Scaled:
    """Centre and scale by one number, so that C means the same on any data."""
    mean = X.mean(axis=0, dtype=np.float64)
    scale = float(np.sqrt(2 * X.var(axis=0, dtype=np.float64).sum()))
    if scale == 0:
        raise ValueError("X must have rows that differ: all are equal.")

    def scaled(points: np.ndarray) -> np.ndarray:
        return (np.subtract(points, mean, dtype=np.float64) / scale).astype(points.dtype)

    items = scaled(X)
    return Scaled(items, items[relevance.own_items] if queries is None else scaled(queries), scale)
