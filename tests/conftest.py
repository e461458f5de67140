"""Fixtures of all tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

# A loaded machine must not fail a test: none of them is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def wine():
    """Wines of three classes on standardised features."""
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.fixture
def data_folder():
    """The folder of real data sets, or a skip that says how to name it."""
    folder = os.environ.get("RANKSPACE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RANKSPACE_DATA does not name a folder of data sets")
    return Path(folder)
