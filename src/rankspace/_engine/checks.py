"""Validation of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def check_choice(value: Any, name: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless a parameter is one of its valid choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}: got {value!r}.")
