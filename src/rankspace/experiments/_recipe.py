"""Recipes: what a paper ran, what it published, and how we rerun it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Self

from .._engine.files import PathLike

FOLDER = resources.files(__package__) / "recipes"


@dataclass(frozen=True)
class Recipe:
    """One table or figure to rerun.

    Parameters
    ----------
    name : str
        What ``rankspace reproduce`` calls it.
    title, paper, cost : str
        What it shows, where it was published, and how long it takes.
    protocol : str
        Which module of `rankspace.experiments` runs it.
    options : mapping
        Numbers of the protocol: splits, seeds, sizes.
    content : mapping
        The rest: data sets, methods and published values, as the protocol reads them.
    """

    name: str
    title: str
    paper: str
    cost: str
    protocol: str
    options: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)

    def with_options(self, changes: Mapping[str, Any]) -> Self:
        """The recipe with some numbers changed."""
        unknown = sorted(set(changes) - set(self.options))
        if unknown:
            raise ValueError(
                f"recipe {self.name} has no option {unknown[0]!r}: it has "
                f"{', '.join(self.options) or 'none'}."
            )
        return replace(self, options={**self.options, **changes})


def list_recipes() -> list[str]:
    """Names of the recipes that come with the package.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from rankspace.experiments import list_recipes
    >>> "mlr-table-2" in list_recipes()
    True
    """
    return sorted(
        path.name.removesuffix(".toml")
        for path in FOLDER.iterdir()
        if path.name.endswith(".toml")
    )


def load_recipe(name: PathLike) -> Recipe:
    """Read a recipe by its name, or from a TOML file.

    Parameters
    ----------
    name : str or path
        One of `list_recipes`, or a path that ends in ``.toml``.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> from rankspace.experiments import load_recipe
    >>> load_recipe("mlr-figure-1").paper
    'McFee and Lanckriet, Metric learning to rank, ICML 2010, figure 1'
    """
    name = str(name)
    if name.endswith(".toml"):
        text, name = Path(name).read_text(encoding="utf-8"), Path(name).stem
    elif name in list_recipes():
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise ValueError(
            f"there is no recipe {name!r}: there are {', '.join(list_recipes())}."
        )
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"recipe {name} is no TOML file: {error}.") from error
    head = {
        key: content.pop(key, None) for key in ("title", "paper", "cost", "protocol")
    }
    missing = [key for key, value in head.items() if not isinstance(value, str)]
    if missing:
        raise ValueError(f"recipe {name} must give {missing[0]} as a string.")
    return Recipe(name, **head, options=content.pop("options", {}), content=content)
