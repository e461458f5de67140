"""Limited-memory BFGS with a backtracking line search.

SciPy's L-BFGS-B serves where weights are bounded, or minima many. Elsewhere it finds the same
minima, but its own work takes as long as a quarter of a gradient here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from ...._engine.parallel.threads import single_threaded_blas

MEMORY = 10  # steps whose curvature is remembered
ARMIJO = 1e-4  # share of the decrease promised by the slope that a step must reach
MIN_STEP = 1e-10  # step lengths below this find nothing lower
# Small steps in a row that end a search: one alone may precede larger ones.
PATIENCE = 2

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Minimum(NamedTuple):
    """Where a minimisation ended, the loss after each step, and whether it converged."""

    parameters: np.ndarray
    loss: float
    losses: list[float]
    converged: bool
    n_steps: int
    history: Sequence[Curvature] = ()
    gradient: np.ndarray | None = None


class Curvature(NamedTuple):
    """A step, the change of the gradient along it, and one over their inner product."""

    step: np.ndarray
    change: np.ndarray
    inverse: float

    def steeper(self, added: float) -> Curvature:
        """The curvature after ``added`` times the squared length went into the function."""
        change = self.change + 2 * added * self.step
        return Curvature(self.step, change, 1 / float(np.vdot(self.step, change)))


class Point(NamedTuple):
    """A point, its value and its gradient."""

    x: np.ndarray
    value: float
    gradient: np.ndarray

    def steeper(self, added: float) -> Point:
        """The point after ``added`` times the squared length went into the function."""
        value = self.value + added * float(np.vdot(self.x, self.x))
        return Point(self.x, value, self.gradient + 2 * added * self.x)


def minimize_lbfgs(
    function: Function,
    start: np.ndarray | Point,
    *,
    tol: float,
    max_iter: int,
    floor: float = 1.0,
    memory: int = MEMORY,
    history: Sequence[Curvature] = (),
) -> Minimum:
    """L-BFGS until two steps in a row lower the loss by no more than a fraction ``tol`` each.

    Losses below ``floor`` count as ``floor``. A start whose value and gradient are known saves an
    evaluation, and a ``history`` of curvature from a search of nearly the same function saves the
    first steps.
    """
    losses: list[float] = []
    n_small = 0
    known = deque(history, maxlen=memory)
    # Threads that BLAS starts between evaluations would spin on the cores of ours.
    with single_threaded_blas():
        for point in lbfgs_steps(function, start, known):
            decrease = losses[-1] - point.value if losses else np.inf
            losses.append(point.value)
            if decrease <= tol * max(abs(point.value), floor):
                n_small += 1
            else:
                n_small = 0
            if n_small == PATIENCE or len(losses) > max_iter:
                break
    # A search that finds nothing lower ends at a kink of the loss, as good as any.
    converged = n_small == PATIENCE or len(losses) <= max_iter
    return Minimum(
        point.x,
        losses[-1],
        losses[1:],
        converged,
        len(losses) - 1,
        tuple(known),
        point.gradient,
    )


def minimize_scipy(
    function: Function,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    memory: int = MEMORY,
) -> Minimum:
    """SciPy's L-BFGS-B, until one step lowers the loss by no more than a fraction ``tol``."""
    losses: list[float] = []

    def flat(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(vector.reshape(start.shape))
        return value, gradient.ravel()

    def callback(intermediate_result: Any) -> None:
        losses.append(float(intermediate_result.fun))

    with single_threaded_blas():
        result = scipy.optimize.minimize(
            flat,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={"maxiter": max_iter, "maxcor": memory, "ftol": tol, "gtol": 0.0},
        )
    x = result.x.reshape(start.shape)
    converged = result.nit < max_iter
    return Minimum(x, float(result.fun), losses, converged, len(losses))


def lbfgs_steps(
    function: Function,
    start: np.ndarray | Point,
    history: deque[Curvature] | None = None,
) -> Iterator[Point]:
    """Points of an L-BFGS search, each lower than the one before, until none is lower.

    Curvature that is met is added to the history.
    """
    if history is None:
        history = deque(maxlen=MEMORY)
    point = start if isinstance(start, Point) else Point(start, *function(start))
    yield point
    while True:
        length = 1.0
        if not history:
            length = 1 / max(1.0, float(np.linalg.norm(point.gradient)))
        direction = _direction(point.gradient, history)
        lower = line_search(function, point, direction, length)
        if lower is None and not history:
            return
        if lower is None:
            history.clear()  # curvature met far away may point nowhere: try the gradient
            continue
        step = lower.x - point.x
        change = lower.gradient - point.gradient
        product = float(np.vdot(step, change))
        if product > 1e-12 * float(np.vdot(change, change)):
            history.append(Curvature(step, change, 1 / product))
        point = lower
        yield point


def _direction(gradient: np.ndarray, history: deque[Curvature]) -> np.ndarray:
    """The quasi-Newton direction by the two-loop recursion."""
    direction = -gradient
    weights = []
    for curvature in reversed(history):
        weight = curvature.inverse * float(np.vdot(curvature.step, direction))
        direction -= weight * curvature.change
        weights.append(weight)
    if history:
        last = history[-1]
        direction /= last.inverse * float(np.vdot(last.change, last.change))
    for curvature, weight in zip(history, reversed(weights), strict=True):
        back = curvature.inverse * float(np.vdot(curvature.change, direction))
        direction += (weight - back) * curvature.step
    return direction


def line_search(
    function: Function, point: Point, direction: np.ndarray, length: float
) -> Point | None:
    """Backtracking line search: a point that is lower by the Armijo rule, if there is one."""
    slope = float(np.vdot(point.gradient, direction))
    if not slope < 0:
        return None
    while length > MIN_STEP:
        x = point.x + length * direction
        value, gradient = function(x)
        if value <= point.value + ARMIJO * length * slope:
            return Point(x, value, gradient)
        # The lowest point of a parabola through both values and the slope, within bounds.
        excess = value - point.value - length * slope
        guess = 0.0
        if np.isfinite(excess):
            guess = -slope * length**2 / (2 * excess)
        length = min(max(guess, 0.1 * length), 0.5 * length)
    return None
