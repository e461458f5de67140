"""Validation of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

SIMILARITIES = ("cosine", "dot", "euclidean")  # what vectors can be compared by
LARGEST = 2**63  # of whole numbers


def check_choice(value: Any, name: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless a parameter is one of its valid choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}: got {value!r}.")


def check_count(value: Any, name: str) -> None:
    """Raise ValueError unless a parameter is a whole number of at least 1."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < 1:
        raise ValueError(f"{name} must be a whole number from 1: got {value!r}.")


def check_finite(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter is, or a list or array of numbers has, NaN or infinity.

    Comparisons with NaN are false, so that checks of a range let it pass. Whole numbers of more
    than 64 bits are refused too, as no array can hold them.
    """
    for name, value in parameters.items():
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise ValueError(f"{name} must be below 2**63: got {value}.")
        bad = [number for number in _floats(value) if not np.isfinite(number)]
        if bad:
            raise ValueError(f"{name} must be finite: got {bad[0]}.")


def _floats(value: Any) -> Any:
    """The floating-point numbers of a number, a list or an array; none of anything else."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value[~np.isfinite(value)]
    if isinstance(value, np.ndarray | list | tuple):
        value = np.asarray(value, dtype=object).ravel().tolist()
    else:
        value = [value]
    return [number for number in value if isinstance(number, float | np.floating)]


def check_components(n_components: int | None, n_features: int) -> None:
    """Raise ValueError if there are more components than features; None leaves the choice open."""
    from sklearn.utils import check_scalar

    if n_components is None:
        return
    check_scalar(n_components, "n_components", Integral, min_val=1)
    if n_components > n_features:
        raise ValueError(
            f"n_components must be at most the number of features, {n_features}: got "
            f"{n_components}."
        )
