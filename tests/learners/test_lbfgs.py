"""L-BFGS: minima, line search and stopping rule, beside SciPy's."""

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from rankspace.learners.solvers.smooth.lbfgs import (
    MEMORY,
    Curvature,
    Point,
    lbfgs_steps,
    minimize_lbfgs,
)


def bowl(seed, n):
    """A quadratic of random curvature, and where it is lowest."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.diag(rng.uniform(0.01, 1.0, size=n))
    lowest = rng.normal(size=n)

    def function(x):
        gradient = A @ (x - lowest)
        return float((x - lowest) @ gradient) / 2, gradient

    return function, lowest


@given(st.integers(0, 1000), st.integers(1, 8))
def test_every_point_is_lower_and_the_last_is_the_lowest(seed, n):
    function, lowest = bowl(seed, n)
    values, point = [], None
    for point in islice(lbfgs_steps(function, np.zeros(n)), 400):
        values.append(point.value)
        np.testing.assert_allclose(point.gradient, function(point.x)[1])
        if np.linalg.norm(point.gradient) < 1e-9:
            break
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(point.x, lowest, atol=1e-5)


def rosen(x):
    value = scipy.optimize.rosen(x.ravel())
    return value, scipy.optimize.rosen_der(x.ravel()).reshape(x.shape)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_it_stops_after_two_small_steps_in_a_row(tol):
    start = np.linspace(-1, 1, 6)
    values = [point.value for point in islice(lbfgs_steps(rosen, start), 200)]
    small = [a - b <= tol * max(b, 1.0) for a, b in pairwise(values)]
    n_steps = next(k + 2 for k, both in enumerate(pairwise(small)) if all(both))
    minimum = minimize_lbfgs(rosen, start, tol=tol, max_iter=200)
    assert minimum.converged
    assert minimum.n_steps == n_steps
    assert minimum.losses == values[1 : n_steps + 1]
    assert minimum.loss == rosen(minimum.parameters)[0] == values[n_steps]


def test_it_stops_at_max_iter_without_convergence():
    minimum = minimize_lbfgs(rosen, np.linspace(-1, 1, 6), tol=0, max_iter=3)
    assert not minimum.converged
    assert len(minimum.losses) == minimum.n_steps == 3


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_it_needs_about_as_many_steps_as_scipy(shape):
    start = np.linspace(-1, 1, 6).reshape(shape)
    points = list(islice(lbfgs_steps(rosen, start), 200))
    other = scipy.optimize.minimize(
        rosen,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 0},
    )
    enough = next(k for k, point in enumerate(points) if point.value < 1e-12)
    assert points[-1].x.shape == shape
    assert enough <= 1.5 * other.nit


def test_it_ends_where_nothing_is_lower_and_goes_down_to_a_kink():
    assert len(list(lbfgs_steps(lambda x: (0.0, np.zeros(3)), np.ones(3)))) == 1

    def kink(x):
        return float(np.abs(x).sum()), np.sign(x)

    values = [
        point.value for point in islice(lbfgs_steps(kink, np.array([0.3, -0.7])), 50)
    ]
    assert (np.diff(values) < 0).all()
    assert values[-1] < 1e-6


def test_a_step_into_the_infinite_is_shortened():
    def wall(x):
        with np.errstate(all="ignore"):
            value = np.nan_to_num(1e-3 * x[0] - np.log(x[0]), nan=np.inf)
            return float(value), 1e-3 - 1 / x

    points = list(islice(lbfgs_steps(wall, np.array([1e-3])), 300))
    assert points[-1].x[0] == pytest.approx(1000, rel=1e-3)


# ---------------------------------------------------------------------- curvature that is kept


@given(st.integers(0, 1000), st.floats(-0.004, 2.0))
def test_the_curvature_of_a_steeper_function_is_exact(seed, added):
    """The change of the gradient, again by the gradient of the steeper function itself."""
    function, _ = bowl(seed, 5)

    def steeper(x):
        value, gradient = function(x)
        return value + added * (x @ x), gradient + 2 * added * x

    rng = np.random.default_rng(seed)
    start, step = rng.normal(size=(2, 5))
    change = function(start + step)[1] - function(start)[1]
    found = Curvature(step, change, 1 / (step @ change)).steeper(added)
    expected = steeper(start + step)[1] - steeper(start)[1]
    np.testing.assert_allclose(found.change, expected, atol=1e-8)
    assert found.inverse == pytest.approx(1 / (step @ expected))
    np.testing.assert_array_equal(found.step, step)
    # Finite differences of the values: along the step the function is a parabola.
    middle = steeper(start + step / 2)[0]
    bend = 4 * (steeper(start)[0] + steeper(start + step)[0] - 2 * middle)
    assert 1 / found.inverse == pytest.approx(bend, rel=1e-5, abs=1e-8)


def test_a_history_saves_steps_and_changes_no_minimum():
    function, lowest = bowl(3, 8)
    settings = {"tol": 1e-12, "max_iter": 200, "memory": 8, "floor": 1e-9}
    first = minimize_lbfgs(function, np.zeros(8), **settings)
    again = minimize_lbfgs(function, np.zeros(8), history=first.history, **settings)
    assert 0 < len(first.history) <= 8
    assert again.n_steps < first.n_steps
    np.testing.assert_allclose(again.parameters, lowest, atol=1e-4)
    long = minimize_lbfgs(function, np.zeros(8), tol=0, max_iter=50)
    assert len(long.history) <= MEMORY


def test_a_history_that_points_nowhere_is_forgotten():
    function, lowest = bowl(1, 4)
    step = np.array([1.0, 0.0, 0.0, 0.0])
    wrong = Curvature(step, -1e6 * step, -1e-6)
    found = minimize_lbfgs(
        function, np.zeros(4), tol=1e-14, max_iter=300, history=[wrong], floor=1e-12
    )
    np.testing.assert_allclose(found.parameters, lowest, atol=1e-4)


def test_a_point_knows_its_value_after_a_square_went_into_the_function():
    x = np.linspace(-1, 2, 6)

    def steeper(y):
        return rosen(y)[0] + 0.7 * float(y @ y)

    found = Point(x, *rosen(x)).steeper(0.7)
    assert found.value == pytest.approx(steeper(x))
    assert (
        scipy.optimize.check_grad(
            steeper, lambda y: Point(y, *rosen(y)).steeper(0.7).gradient, x
        )
        < 1e-4
    )


def test_a_start_that_is_known_is_not_evaluated_again():
    calls = []

    def counted(x):
        calls.append(x)
        return rosen(x)

    start = np.linspace(-1, 2, 6)
    plain = minimize_lbfgs(rosen, start, tol=1e-3, max_iter=20)
    known = minimize_lbfgs(counted, Point(start, *rosen(start)), tol=1e-3, max_iter=20)
    np.testing.assert_array_equal(known.parameters, plain.parameters)
    np.testing.assert_array_equal(known.gradient, rosen(known.parameters)[1])
    assert not any(np.array_equal(x, start) for x in calls)
