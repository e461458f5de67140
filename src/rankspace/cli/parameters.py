"""Parameters of estimators as text: parsed, and checked against the signature."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

PLAIN = (bool, int, float, str, list, NoneType)
# How the types of a signature are called in messages.
NAMES = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "text",
    list: "a list of numbers",
    NoneType: "none",
}
OTHER_TYPE = "an object of Python, which has no text"


def parse_parameter(text: str) -> tuple[str, Any]:
    """Parse OPTION=VALUE, with the value in TOML; a plain word needs no quotes.

    Examples
    --------
    >>> from rankspace.cli.parameters import parse_parameter
    >>> parse_parameter("max_iter=50"), parse_parameter("sides=query")
    (('max_iter', 50), ('sides', 'query'))
    """
    word = re.fullmatch(r"(\w+)=(?!true$|false$|nan$|inf$)([a-z][\w@-]*)", text)
    if word:
        return word[1], word[2]
    try:
        ((name, value),) = tomllib.loads(text).items()
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"--set must be OPTION=VALUE, such as n_splits=5: got {text[:60]!r}."
        ) from error
    return name, value


def check_parameters(estimator: type, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that an estimator has, of the types of its signature.

    The word "none" stands for None where the signature allows it.

    Parameters
    ----------
    estimator : type
        Its class.
    parameters : mapping
        Values by name.

    Returns
    -------
    dict

    Examples
    --------
    >>> from rankspace import MLR
    >>> from rankspace.cli.parameters import check_parameters
    >>> check_parameters(MLR, {"batch_size": "none", "C": 10})
    {'batch_size': None, 'C': 10}
    >>> check_parameters(MLR, {"max_iter": 2.5})
    Traceback (most recent call last):
    ValueError: max_iter of MLR must be a whole number: got 2.5.
    """
    known = list(inspect.signature(estimator).parameters)
    types = get_type_hints(estimator.__init__)  # type: ignore[misc]
    checked = {}
    for name, value in parameters.items():
        if name not in known:
            raise ValueError(
                f"{estimator.__name__} has no parameter {name!r}: it has "
                f"{', '.join(sorted(known))}."
            )
        described = f"{name} of {estimator.__name__}"
        checked[name] = check_value(described, value, types[name])
    return checked


def check_value(name: str, value: Any, hint: Any) -> Any:
    """A value that has the type of a hint; the word "none" stands for None where it may.

    Examples
    --------
    >>> from rankspace.cli.parameters import check_value
    >>> check_value("tol", "none", float | None), check_value("tol", 1, float | None)
    (None, 1)
    """
    kinds = _alternatives(hint)
    if value == "none" and _allows(None, kinds):
        return None
    if not _allows(value, kinds):
        described = " or ".join(dict.fromkeys(_describe(kind) for kind in kinds))
        raise ValueError(f"{name} must be {described}: got {value!r}.")
    return value


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union, or the only type."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for part in get_args(hint) for kind in _alternatives(part)]
    return [hint]


def _allows(value: Any, kinds: list[Any]) -> bool:
    return any(_is_of(value, kind) for kind in kinds)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value has a type of a signature; whole numbers are numbers, booleans are not."""
    if kind is Any:
        return isinstance(value, PLAIN)
    if get_origin(kind) is Sequence:
        (entry,) = get_args(kind)
        return isinstance(value, list) and all(_is_of(one, entry) for one in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float)
    return kind in NAMES and isinstance(value, kind)


def _describe(kind: Any) -> str:
    if kind is Any:
        return "a number, text or a list"
    return NAMES.get(list if get_origin(kind) is Sequence else kind, OTHER_TYPE)
