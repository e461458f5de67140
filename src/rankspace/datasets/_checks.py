"""Published sizes, held against what was read."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_equal(name: str, what: str, expected: Any, got: Any) -> None:
    """Raise unless a data set has its published size."""
    if expected != got:
        raise ValueError(
            f"the {what} of {name} must be {expected}: got {got}. A file is damaged or is another "
            "version of the set: put the original in its place."
        )


def class_counts(labels: np.ndarray) -> list[int]:
    """Number of rows of each class, in the order of the sorted classes."""
    return np.unique(labels, return_counts=True)[1].tolist()


def check_lists(
    name: str, X: np.ndarray, qid: Any, shape: tuple[int, int], n: int
) -> None:
    """Check rows, columns and number of queries of candidate lists."""
    check_equal(name, "rows and columns", shape, X.shape)
    check_equal(name, "number of queries", n, np.unique(qid).size)
