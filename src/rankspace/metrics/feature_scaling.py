"""Features of different kinds brought to one scale, which is kept for new rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SCALINGS = ("l2", "standard", "rank-gauss", "joined")
MOST_KNOTS = 256  # a power of two
FARTHEST = 4.0  # standard deviations; farther values say no more


class FeatureScaling(NamedTuple):
    """A map of each feature, learned once: a shift and a scale, or a monotone curve, or both.

    ``kind`` is "none" (the mean is taken off, which no distance sees), "l2" (divided by the 2-norm
    over the rows), "standard", "rank-gauss" (ranks turned into normal scores), or "joined", which
    puts normal scores and clipped standard scores side by side. Missing values become ``fill``.
    """

    kind: str
    fill: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    knots: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, kind: str) -> FeatureScaling:
        """Learn from rows."""
        rows = _without_empty_columns(X)
        knots = values = np.zeros((X.shape[1], 0))
        mean: Any = np.nanmean(rows, axis=0, dtype=np.float64)
        fill, offset, scale = mean, mean, np.ones_like(mean)
        if kind == "l2":
            scale = _positive(
                np.sqrt(np.nansum(np.square(rows, dtype=np.float64), axis=0))
            )
        elif kind in ("standard", "joined"):
            scale = _positive(np.nanstd(rows, axis=0, dtype=np.float64))
        if kind in ("rank-gauss", "joined"):
            curves = [_normal_scores(column) for column in rows.T]
            knots, values = (np.stack(part) for part in zip(*curves, strict=True))
            fill = np.nanmedian(rows, axis=0).astype(np.float64)
        return cls(kind, fill, offset, scale, knots, values)

    @property
    def n_scaled(self) -> int:
        """Number of features after scaling."""
        return self.fill.size * (2 if self.kind == "joined" else 1)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Scale rows; the result has their precision."""
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.fill.astype(X.dtype), X)
        parts = []
        if self.kind in ("rank-gauss", "joined"):
            parts.append(self._curves(X))
        if self.kind != "rank-gauss":
            parts.append(self._shifted(X))
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _shifted(self, X: np.ndarray) -> np.ndarray:
        # Doubles, for an offset may be large beside what is left when it is taken off.
        shifted = np.subtract(X, self.offset, dtype=np.float64)
        shifted /= self.scale
        if self.kind == "joined":
            np.clip(shifted, -FARTHEST, FARTHEST, out=shifted)
        return shifted.astype(X.dtype, copy=False)

    def _curves(self, X: np.ndarray) -> np.ndarray:
        from .._engine.kernels.curves import follow_curves

        scaled = np.empty(X.shape, dtype=X.dtype)
        knots, values = (
            np.asarray(part, dtype=X.dtype) for part in (self.knots, self.values)
        )
        follow_curves(np.ascontiguousarray(X), knots, values, scaled)
        return scaled


class ScaledRows:
    """Rows that are scaled when they are asked for, so that all of them never exist at once."""

    def __init__(self, X: np.ndarray, scaling: FeatureScaling) -> None:
        self.X, self.scaling = X, scaling
        self.shape, self.dtype = (len(X), scaling.n_scaled), X.dtype

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.scaling.apply(self.X[rows])


def _without_empty_columns(X: np.ndarray) -> np.ndarray:
    """Columns without any value count as constant."""
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, X.dtype.type(0), X) if empty.any() else X


def _positive(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0, scale, 1.0)


def _normal_scores(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knots of a curve from values to normal scores of mean 0 and variance 1 over the column."""
    from scipy.special import ndtri

    found, counts = np.unique(
        column[~np.isnan(column)].astype(np.float64), return_counts=True
    )
    share = counts / counts.sum()
    # Equal values share the middle of their ranks.
    scores = ndtri(np.cumsum(share) - share / 2)
    mean = share @ scores
    spread = np.sqrt(share @ np.square(scores - mean))
    scores = (scores - mean) / (spread if spread > 0 else 1.0)
    at = np.arange(found.size)
    if found.size > MOST_KNOTS:
        # Evenly spaced scores, so that long tails are followed as closely as the middle.
        at = np.searchsorted(scores, np.linspace(scores[0], scores[-1], MOST_KNOTS))
        at = np.unique(at.clip(0, found.size - 1))
    at = np.pad(at, (0, MOST_KNOTS - at.size), mode="edge")
    return found[at], scores[at]


def check_scaling(scaling: Any) -> str:
    """The kind of scaling that a parameter names; None is a name of its own."""
    from .._engine.checks import check_choice

    if scaling is None:
        return "none"
    check_choice(scaling, "scaling", SCALINGS)
    return str(scaling)
