"""Packed sorting of distances against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankspace._engine.kernels.sorting import sort_rows

TINY = np.finfo(np.float64).smallest_subnormal


def check(distances):
    """The items of the keys are those of a stable sort, and a negative zero equals zero."""
    expected = np.argsort(distances, axis=1, kind="stable")
    given = distances.copy()
    keys, mask = sort_rows(given)
    np.testing.assert_array_equal(keys & mask, expected)
    np.testing.assert_array_equal(given, distances)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_values(dtype, data):
    width = np.dtype(dtype).itemsize * 8
    values = st.floats(allow_nan=False, width=width, allow_subnormal=True)
    shape = st.tuples(st.integers(1, 3), st.integers(1, 40))
    few = st.sampled_from([-0.0, 0.0, 1.0, -1.0, np.inf, -np.inf])
    elements = data.draw(st.sampled_from([values, few]))
    check(data.draw(arrays.arrays(dtype, shape, elements=elements)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("start", [1.0, -1.0, 0.0, 1e-310, -3e300])
@pytest.mark.parametrize("n", [2, 33, 1000])
def test_neighbouring_floats(dtype, start, n, rng):
    """Values next to each other, where cut keys are equal; in random order, with ties."""
    if dtype == np.float32:
        start = np.float32(np.clip(start, -3e38, 3e38))
    integer = np.int32 if dtype == np.float32 else np.int64
    first = np.array([start], dtype=dtype).view(integer)[0]
    steps = rng.integers(0, n, size=(2, n)).astype(integer)
    check((first + steps).view(dtype))


def test_denormals_zeros_and_ties(rng):
    values = np.array([-0.0, 0.0, TINY, -TINY, 2 * TINY, 1.0])
    check(rng.choice(values, size=(4, 500)))
