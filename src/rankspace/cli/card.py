"""What a command says about itself in the card of the metric that it learns."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

# Options whose values are words of ours. All other text may be a path or an address.
WORDS = (
    "method",
    "methods",
    "measure",
    "prefer",
    "sides",
    "similarity",
    "split",
    "dev",
    "unknown",
)
# Options that do not decide the result, or that are written in another way.
UNNAMED = (
    *("name", "verb", "json", "quiet", "verbose", "output", "report", "cluster"),
    *("data", "set"),
)


def fitted_card(
    estimator: Any, dataset: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """The card of a fit; nothing was measured on held-out queries."""
    from ..metrics.card import data_facts

    facts = {
        "method": type(estimator).__name__,
        "parameters": _public_parameters(estimator),
        "command": command_of(options),
        **data_facts(dataset.X, dataset.relevance, dataset.queries),
    }
    for name in ("similarity", "measure"):
        value = getattr(estimator.metric_, name, None) or getattr(estimator, name, None)
        if isinstance(value, str):
            facts[name] = value
    return facts


def _public_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that JSON can hold, without paths."""
    plain = (bool, int, float, list, tuple, type(None))
    parameters = {
        name: value
        for name, value in estimator.get_params().items()
        if name != "checkpoint" and (isinstance(value, plain) or _is_word(value))
    }
    # JSON has no infinity and no NaN: they become words.
    text = json.dumps(parameters, default=lambda value: type(value).__name__)
    public: dict[str, Any] = json.loads(text, parse_constant=str)
    return public


def command_of(options: argparse.Namespace) -> str:
    """The command that learned a metric; names in capitals stand for paths and addresses."""
    from ..datasets import list_datasets

    names = [row.name for row in list_datasets()]
    words = ["rankspace", options.name]
    words.append(options.data if options.data in names else "DATA")
    for name, value in vars(options).items():
        if name in UNNAMED or value is None or value is False:
            continue
        words.append("-C" if name == "trade_off" else f"--{name.replace('_', '-')}")
        if value is not True:
            words += _public_values(name, value)
    for setting in getattr(options, "set", []):
        words += ["--set", _public_setting(setting)]
    return " ".join(words)


def _public_values(name: str, value: Any) -> list[str]:
    """The values of an option as words of a command."""
    values = value if isinstance(value, list) else [value]
    if name in WORDS and all(map(_is_word, values)):
        return values
    if all(isinstance(value, int | float) for value in values):
        return [str(value) for value in values]
    return [name.upper()]


def _public_setting(setting: str) -> str:
    """NAME=VALUE, with the value if it is a number or a word."""
    name, _, value = (part.strip() for part in setting.partition("="))
    if name == "checkpoint" or not _is_word(value):
        value = "VALUE"
    return f"{name}={value}"


def _is_word(value: Any) -> bool:
    """Whether a value is text that is no path with folders, and no address."""
    return isinstance(value, str) and bool(re.fullmatch(r"[\w@.,+-]+", value))
