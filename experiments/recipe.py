"""Recipes: TOML files that say what a paper ran, what it published, and how to rerun it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rankspace.cli.parameters import check_value

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Recipe:
    """One table or figure to reproduce. ``recipes/README.md`` documents the fields of the file.

    Parameters
    ----------
    name : str
        The name of the file without ``.toml``.
    title, paper, cost : str
        What it shows, where it was published, and how long it takes.
    protocol : str
        The module of `experiments.protocols` that runs it.
    requires : sequence of str
        Packages it needs besides ``rankspace[plot]``, as pip names them.
    options : mapping
        Numbers of the protocol: splits, seeds, sizes.
    content : mapping
        Everything else: data sets, methods and published values, as the protocol reads them.
    cell : mapping
        A number that is cheap to compute again: its ``place`` in the tables, and what to keep.
    """

    name: str
    title: str
    paper: str
    cost: str
    protocol: str
    requires: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    cell: Mapping[str, Any] = field(default_factory=dict)

    def with_options(self, changes: Mapping[str, Any]) -> Self:
        """Return the recipe with some of its options changed, each to a value of its type."""
        unknown = sorted(set(changes) - set(self.options))
        if unknown:
            raise ValueError(
                f"recipe {self.name} has no option {unknown[0]!r}: it has "
                f"{', '.join(self.options) or 'none'}."
            )
        for name, value in changes.items():
            kind = _kind_of(self.options[name])
            check_value(f"{name} of recipe {self.name}", value, kind)
        return replace(self, options={**self.options, **changes})

    def only_cell(self) -> Self:
        """Return the recipe with no more than its cell needs."""
        content = {key: self.content[key] for key in self.content if key != "views"}
        for kind in ("datasets", "problems", "methods"):
            if kind in self.cell:
                content[kind] = _labelled(self.content[kind], self.cell[kind])
        options = {**self.options, **self.cell.get("options", {})}
        if "against" in options:
            options["against"] = ""  # one row has nothing to be compared with
        return replace(self, requires=(), content=content, options=options)


def _labelled(
    entries: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> list[Mapping[str, Any]]:
    """The entries with these labels."""
    chosen = [entry for entry in entries if entry["label"] in labels]
    if len(chosen) != len(labels):
        raise ValueError(
            f"a cell must name labels of its recipe: got {', '.join(labels)}."
        )
    return chosen


def _kind_of(default: Any) -> Any:
    """The type of an option: that of its default; lists hold numbers."""
    return Sequence[float] if isinstance(default, list) else type(default)


def list_recipes() -> list[str]:
    """Names of the recipes in this repository.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from experiments import list_recipes
    >>> "mlr-table-2" in list_recipes()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(name: str | Path) -> Recipe:
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
    >>> from experiments import load_recipe
    >>> load_recipe("mlr-figure-1").paper
    'McFee and Lanckriet, Metric learning to rank, ICML 2010, figure 1'
    """
    path = Path(name)
    if path.suffix != ".toml":
        path = FOLDER / f"{name}.toml"
        if str(name) not in list_recipes():
            raise ValueError(
                f"there is no recipe {str(name)!r}: there are {', '.join(list_recipes())}."
            )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"recipe {path.stem} is not valid TOML: {error}.") from error
    head = {
        key: content.pop(key, None) for key in ("title", "paper", "cost", "protocol")
    }
    missing = [key for key, value in head.items() if not isinstance(value, str)]
    if missing:
        raise ValueError(f"recipe {path.stem} must give {missing[0]} as a string.")
    requires = tuple(content.pop("requires", ()))
    options = content.pop("options", {})
    cell = content.pop("cell", {})
    return Recipe(
        path.stem,
        **head,
        requires=requires,
        options=options,
        content=content,
        cell=cell,
    )
