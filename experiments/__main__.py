"""The command line of the experiments: ``python -m experiments NAME``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rankspace._engine.tables import as_text
from rankspace.cli.parameters import parse_parameter

from . import list_recipes, load_recipe, reproduce
from .run import HOME


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, or 2 for bad input."""
    options = build_parser().parse_args(arguments)
    try:
        print(_answer(options))
    except (ValueError, OSError, ImportError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce a published table or figure: write its tables and pictures beside "
        "the published numbers. A run that was interrupted resumes. Without NAME, list the "
        "recipes.",
        epilog="example: python -m experiments mlr-table-2 --set n_splits=5",
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a recipe or .toml file"
    )
    parser.add_argument(
        "--folder",
        default=HOME / "results",
        help="where to write (default: experiments/results)",
    )
    parser.add_argument(
        "--jobs", type=int, default=-1, help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="change an option of the recipe, such as n_splits=5",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--requirements", action="store_true", help="print the packages it needs"
    )
    return parser


def _answer(options: argparse.Namespace) -> str:
    if options.name is None:
        return "" if options.requirements else _listing(options.json)
    recipe = load_recipe(options.name)
    if options.requirements:
        return " ".join(recipe.requires)
    recipe = recipe.with_options(dict(map(parse_parameter, options.set)))
    print(f"running {recipe.name}, which takes {recipe.cost}", file=sys.stderr)
    outcome = reproduce(
        recipe, options.folder, n_jobs=options.jobs, progress=_show_progress
    )
    if options.json:
        return json.dumps(outcome.to_dict(), indent=1)
    return f"{outcome}\n\nwritten to {Path(options.folder) / recipe.name}"


def _listing(as_json: bool) -> str:
    recipes = [load_recipe(name) for name in list_recipes()]
    if as_json:
        rows = [{"name": r.name, "title": r.title, "cost": r.cost} for r in recipes]
        return json.dumps(rows, indent=1)
    return as_text(
        ["name", "shows", "takes"], [(r.name, r.title, r.cost) for r in recipes]
    )


def _show_progress(fraction: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{fraction:4.0%}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
