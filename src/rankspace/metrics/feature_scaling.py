"""Feature scaling, feature by feature: standardisation, l2 norms and rank-Gauss normal scores.

It is part of a local metric, which stores it and applies it to new rows. Learners that divide all
their training data by one number undo that in the metric: see ``learners.solvers.scaling``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._engine.checks import check_choice
from .storage import read_only_array

SCALINGS = ("l2", "standard", "rank-gauss", "joined")
CURVED = ("rank-gauss", "joined")
MAX_KNOTS = 256  # of a curve; a power of two, as its kernel searches by bisection
# The largest value is divided by a power of two if it is beyond this, or below one over it.
FAR = 2.0**100
CLIP = 4.0  # standard deviations; outliers beyond carry no more information


class FeatureScaling(NamedTuple):
    """Feature scaling learned from training rows: a shift and a scale, a monotone curve, or both.

    ``kind`` is "none" (only centred, unless in a very small or large unit), "l2" (divided by the
    2-norm over the rows), "standard", "rank-gauss" (ranks turned into normal scores), or "joined"
    (normal scores, then clipped standard scores). Missing values are imputed by ``fill``.
    """

    kind: str
    fill: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    knots: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, kind: str) -> FeatureScaling:
        """Learn the scaling from rows."""
        rows = _without_empty_columns(X)
        units = _units(rows)
        in_units = rows / units
        mean = np.nanmean(in_units, axis=0)
        # By rounding, the mean of equal values may lie beyond them.
        mean = (
            mean.clip(np.nanmin(in_units, axis=0), np.nanmax(in_units, axis=0)) * units
        )
        scale = _scale(in_units, units, kind)
        if kind not in CURVED:
            no_curve = np.zeros((X.shape[1], 0))
            return cls(kind, mean, mean, scale, no_curve, no_curve)
        curves = [_rank_gauss_curve(column) for column in rows.T]
        knots = np.stack([curve[0] for curve in curves])
        values = np.stack([curve[1] for curve in curves])
        median = np.nanmedian(in_units, axis=0) * units
        return cls(kind, median, mean, scale, knots, values)

    def checked(self) -> FeatureScaling:
        """A read-only copy, if the arrays are valid and fit each other; kernels rely on it.

        Raises ValueError otherwise.
        """
        check_choice(self.kind, "scaling", ("none", *SCALINGS))
        steps = [
            read_only_array(getattr(self, name), name, 1)
            for name in ("fill", "offset", "scale")
        ]
        curves = [
            read_only_array(getattr(self, name), name, 2)
            for name in ("knots", "values")
        ]
        fill, _, scale = steps
        if any(step.shape != fill.shape for step in steps):
            shapes = ", ".join(str(step.shape) for step in steps)
            raise ValueError(
                f"fill, offset and scale must have one number for each feature: got {shapes}."
            )
        if not (scale > 0).all():
            raise ValueError(f"scale must be positive: got {scale.min():g}.")
        _check_curves(self.kind, fill.size, *curves)
        return FeatureScaling(self.kind, *steps, *curves)

    @property
    def n_scaled(self) -> int:
        """Number of features after scaling."""
        if self.kind == "joined":
            return 2 * self.fill.size
        return self.fill.size

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Scale rows; the result has their precision."""
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.fill.astype(X.dtype), X)
        if self.kind == "rank-gauss":
            return self._normal_scores(X)
        if self.kind == "joined":
            return np.hstack([self._normal_scores(X), self._shift_and_scale(X)])
        return self._shift_and_scale(X)

    def _shift_and_scale(self, X: np.ndarray) -> np.ndarray:
        # In double precision, as centring cancels digits where the offset is large.
        # A power of two rounds nothing, and differences of the largest floats leave their range.
        unit = 2.0 ** (np.frexp(self.scale)[1] - 1)
        shifted = np.divide(X, unit, dtype=np.float64)
        shifted -= self.offset / unit
        shifted /= self.scale / unit
        if self.kind == "joined":
            np.clip(shifted, -CLIP, CLIP, out=shifted)
        return shifted.astype(X.dtype, copy=False)

    def _normal_scores(self, X: np.ndarray) -> np.ndarray:
        from .._engine.kernels.curves import follow_curves

        scaled = np.empty(X.shape, dtype=X.dtype)
        knots = np.asarray(self.knots, dtype=X.dtype)
        values = np.asarray(self.values, dtype=X.dtype)
        follow_curves(np.ascontiguousarray(X), knots, values, scaled)
        return scaled


def _check_curves(
    kind: str, n_features: int, knots: np.ndarray, values: np.ndarray
) -> None:
    """Raise unless each feature has a curve that rises from knot to knot."""
    n_knots = knots.shape[1]
    is_power = n_knots > 0 and n_knots & (n_knots - 1) == 0
    fits = is_power if kind in CURVED else n_knots == 0
    if not fits or not knots.shape == values.shape == (n_features, n_knots):
        rule = "a power of two of knots" if kind in CURVED else "no knots"
        raise ValueError(
            f"knots and values of {n_features} features with scaling={kind!r} must have a row "
            f"for each, of {rule}: got {knots.shape} and {values.shape}."
        )
    for name, curve in (("knots", knots), ("values", values)):
        if (np.diff(curve, axis=1) < 0).any():
            raise ValueError(f"{name} of a feature must not fall: got a row that does.")


def _units(rows: np.ndarray) -> np.ndarray:
    """A power of two for each feature, not above its largest value.

    Divisions by these round nothing, and sums and squares of the quotients stay in the range of
    floats.
    """
    largest = np.nanmax(np.abs(rows), axis=0).astype(np.float64)
    return 2.0 ** (np.frexp(largest)[1] - 1)


def _scale(in_units: np.ndarray, units: np.ndarray, kind: str) -> np.ndarray:
    """The scale of each feature; a constant one keeps its unit.

    "none" and "rank-gauss" divide by one power of two if the largest value is very small or large.
    """
    if kind == "l2":
        with np.errstate(over="ignore"):
            scale = np.sqrt(np.nansum(np.square(in_units), axis=0)) * units
        if np.isinf(scale).any():
            raise ValueError(
                "l2 norms of features must be within the range of floats: divide X by a constant."
            )
    elif kind in ("standard", "joined"):
        scale = np.nanstd(in_units, axis=0) * units
    else:
        used = np.nanmax(np.abs(in_units), axis=0) > 0
        unit = units[used].max(initial=0.0) or 1.0
        scale = np.full(units.shape, 1.0 if 1 / FAR < unit < FAR else unit)
    return np.where(scale > 0, scale, 1.0)


def _without_empty_columns(X: np.ndarray) -> np.ndarray:
    """Columns in which all values are missing, set to zero."""
    empty = np.isnan(X).all(axis=0)
    if not empty.any():
        return X
    return np.where(empty, X.dtype.type(0), X)


def _rank_gauss_curve(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knots of the rank-Gauss curve: from values to normal scores of mean 0 and variance 1."""
    from scipy.special import ndtri

    present = column[~np.isnan(column)].astype(np.float64)
    knots, counts = np.unique(present, return_counts=True)
    share = counts / counts.sum()
    # Ties get the score of their middle rank.
    scores = ndtri(np.cumsum(share) - share / 2)
    scores -= share @ scores
    spread = np.sqrt(share @ np.square(scores))
    if spread > 0:
        scores /= spread
    chosen = np.arange(knots.size)
    if knots.size > MAX_KNOTS:
        # Evenly spaced scores, so that long tails are followed as closely as the middle.
        grid = np.linspace(scores[0], scores[-1], MAX_KNOTS)
        chosen = np.searchsorted(scores, grid)
        chosen = np.unique(chosen.clip(0, knots.size - 1))
    chosen = np.pad(chosen, (0, MAX_KNOTS - chosen.size), mode="edge")
    return knots[chosen], scores[chosen]


def check_scaling(scaling: Any) -> str:
    """The kind of feature scaling that a parameter names; None stands for "none"."""
    if scaling is None:
        return "none"
    check_choice(scaling, "scaling", SCALINGS)
    return str(scaling)
