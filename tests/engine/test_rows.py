"""Rows of floats: what NumPy checks alone agrees with scikit-learn, and the rest goes there."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.utils import check_array

from rankspace._engine.rows import float_rows, ready_vector

FLOATS = (np.float64, np.float32)
DTYPES = ["f2", "f4", "f8", ">f8", ">f4", "i1", "u8", "?", "c8", "U1", "O"]


def outcome(check, X):
    """The array, or None if the input is refused."""
    try:
        return check(X)
    except (TypeError, ValueError):
        return None


def expected_rows(X, finite=True):
    """What scikit-learn makes of it, with a warning where numbers overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return check_array(X, dtype=FLOATS, ensure_all_finite=finite)


# By scikit-learn, which sums objects that are inf and -inf.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_arrays_are_accepted_as_scikit_learn_accepts_them(dtype, data):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=0))
    if dtype == "O":
        elements = st.floats() | st.none()
        X = data.draw(arrays.arrays(object, shape, elements=elements))
    else:
        X = data.draw(arrays.arrays(dtype, shape))
    allow_nan = data.draw(st.booleans())
    finite = "allow-nan" if allow_nan else True
    single = X.astype("f4") if dtype == "f2" else X
    expected = outcome(lambda X: expected_rows(X, finite), single)
    found = outcome(lambda X: float_rows(X, "X", allow_nan=allow_nan), X)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, 4]],
        ([1.0, 2.0], np.array([3.0, 4.0])),
        np.ma.masked_array([[1.0, 2.0]], mask=[[False, False]]),
        pd.DataFrame({"a": [1.0], "b": [2.0]}),
        scipy.sparse.csr_array([[1.0, 0.0]]),
        [["a"]],
    ],
    ids=["list", "tuple", "masked", "dataframe", "sparse", "words"],
)
def test_everything_else_is_accepted_as_scikit_learn_accepts_it(X):
    expected = outcome(expected_rows, X)
    found = outcome(lambda X: float_rows(X, "X"), X)
    assert (found is None) == (expected is None)
    if found is not None:
        np.testing.assert_array_equal(found, expected)


def test_memory_maps_are_checked_and_not_copied(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((20_000, 2), np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(float_rows(X, "X"), X)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_row_of_a_bad_number_is_named(value, what):
    X = np.ones((20_000, 2))
    X[9000, 1] = value
    with pytest.raises(ValueError, match=f"X must be finite: row 9000 contains {what}"):
        float_rows(X, "X")


@pytest.mark.parametrize("dtype", FLOATS)
@given(st.data())
def test_a_ready_vector_is_finite_and_of_unit_length(dtype, data):
    x = data.draw(arrays.arrays(dtype, st.integers(0, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ready = ready_vector(x, unit=True)
    if ready is None:
        return
    assert ready.dtype == dtype
    wide = x.astype(np.longdouble)
    expected = wide / np.sqrt(np.sum(wide**2))
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(ready, expected.astype(dtype), rtol=tolerance)
    np.testing.assert_array_equal(ready_vector(x, unit=False), x)


@pytest.mark.parametrize(
    "x",
    [[1.0], np.array([1]), np.array([np.nan]), np.array([1e200]), np.zeros(2)],
    ids=["list", "integers", "NaN", "large", "zero"],
)
def test_vectors_that_take_a_closer_look_are_not_ready(x):
    assert ready_vector(x, unit=False) is None
