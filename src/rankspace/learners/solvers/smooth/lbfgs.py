"""L-BFGS: a smooth function of many variables, gone down by the curvature of the last steps.

SciPy's is made for bounds, and its own work takes as long as a quarter of a gradient here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

MEMORY = 10
ARMIJO = 1e-4  # of the fall that the slope promises
SHORTEST = 1e-10  # of a step, below which nothing lower is to be found

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Point(NamedTuple):
    """Where a search stands."""

    x: np.ndarray
    value: float
    gradient: np.ndarray


class _Change(NamedTuple):
    """A step, the change of the gradient along it, and one over their product."""

    step: np.ndarray
    bend: np.ndarray
    inverse: float


def lbfgs_steps(function: Function, x: np.ndarray) -> Iterator[Point]:
    """The start, and every point that is lower than the one before, until there is none."""
    now, changes = Point(x, *function(x)), deque[_Change](maxlen=MEMORY)
    yield now
    while True:
        direction = _direction(now.gradient, changes)
        length = 1.0 if changes else 1 / max(1.0, float(np.linalg.norm(now.gradient)))
        found = _lower(function, now, direction, length)
        if found is None and changes:
            changes.clear()
            continue
        if found is None:
            return
        step, bend = found.x - now.x, found.gradient - now.gradient
        product = float(np.vdot(step, bend))
        if product > 1e-12 * float(np.vdot(bend, bend)):
            changes.append(_Change(step, bend, 1 / product))
        now = found
        yield now


def _direction(gradient: np.ndarray, changes: deque[_Change]) -> np.ndarray:
    """Minus the gradient, over the curvature that was met."""
    direction, weights = -gradient, []
    for change in reversed(changes):
        weights.append(change.inverse * float(np.vdot(change.step, direction)))
        direction -= weights[-1] * change.bend
    if changes:
        last = changes[-1]
        direction /= last.inverse * float(np.vdot(last.bend, last.bend))
    for change, weight in zip(changes, reversed(weights), strict=True):
        direction += (
            weight - change.inverse * float(np.vdot(change.bend, direction))
        ) * change.step
    return direction


def _lower(
    function: Function, now: Point, direction: np.ndarray, length: float
) -> Point | None:
    """A point in a direction that is lower by enough."""
    slope = float(np.vdot(now.gradient, direction))
    if not slope < 0:
        return None
    while length > SHORTEST:
        x = now.x + length * direction
        value, gradient = function(x)
        if value <= now.value + ARMIJO * length * slope:
            return Point(x, value, gradient)
        bend = (
            value - now.value - length * slope
        )  # a parabola through both, and the slope
        guess = -slope * length**2 / (2 * bend) if np.isfinite(bend) else 0.0
        length = min(max(guess, 0.1 * length), 0.5 * length)
    return None
