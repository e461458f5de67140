"""Which results the code may have changed since: digests of modules, and one cheap cell of each.

A result keeps in ``code.txt`` the digests of the modules that computed its cell. Where one of them
has changed, the cell is computed again, and only a number that moved makes the result stale. A
result is stale, too, if other settings of its recipe were run than those of today.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankspace._engine.files import write_text

from .numbers import printed
from .recipe import Recipe, list_recipes, load_recipe
from .run import HOME, reproduce

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGES = ("rankspace", "experiments")
# They compute nothing that a table shows.
UNUSED = ("experiments.stale", "experiments.numbers", "experiments.__main__")
DIGITS = 8  # of a digest
PRINTED = 4  # decimals of a table
# A time moved if it is so many times longer or shorter.
TIME_FACTOR = 10.0


@dataclass(frozen=True)
class State:
    """What is known of a result: "as committed", "stale" or "not checked", why, and the modules."""

    name: str
    verdict: str
    reason: str = ""
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.name}: {self.verdict}"
        if self.reason:
            text += f", {self.reason}"
        if self.changed:
            text += f" (changed: {', '.join(self.changed)})"
        return text


def check_result(name: str, folder: Path = HOME / "results") -> State:
    """Compare the modules of a result with their digests, and its cell where one has changed."""
    kept = _kept_digests(name, folder)
    changed = changed_modules(kept)
    if kept and not changed:
        return State(name, "as committed")
    recipe = load_recipe(name)
    results = folder / name / "results.json"
    if not recipe.cell or not results.is_file():
        reason = "it has no results" if recipe.cell else "its recipe has no [cell]"
        return State(name, "not checked", reason)
    if f"recipes/{name}.toml" in changed:
        return State(name, "stale", "its recipe has changed", changed)
    content = json.loads(results.read_text(encoding="utf-8"))
    if content["options"] != recipe.options:
        return State(name, "stale", "it was run with other options", changed)
    committed = printed(content, recipe.cell["place"], name)
    try:
        found = _compute_in_process(name)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1]
        return State(name, "not checked", reason, changed)
    place = f"{recipe.cell['place']} was {committed} and is {found['number']}"
    if _moved(committed, found["number"], recipe.cell.get("is_time", False)):
        return State(name, "stale", place, changed)
    write_digests(folder / name / "code.txt", found["digests"])
    return State(name, "as committed", place, changed)


def _kept_digests(name: str, folder: Path) -> dict[str, str]:
    path = folder / name / "code.txt"
    return read_digests(path) if path.is_file() else {}


def write_digests(path: Path, digests: Mapping[str, str]) -> None:
    """Write digests with a line for each package: its name, then ``module=digest`` for each."""
    lines: dict[str, list[str]] = {}
    for name, value in digests.items():
        package, _, module = name.rpartition(".")
        lines.setdefault(package, [package]).append(f"{module}={value}")
    write_text(path, "".join(" ".join(words) + "\n" for words in lines.values()))


def read_digests(path: Path) -> dict[str, str]:
    """Read what `write_digests` wrote."""
    digests = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        package, *entries = line.split(" ")
        for entry in entries:
            module, _, value = entry.partition("=")
            digests[f"{package}.{module}".removeprefix(".")] = value
    return digests


def _moved(committed: str, found: str, is_time: bool) -> bool:
    """Whether a number differs by more than one unit of its last digit, or a time by a factor.

    Numbers with all their digits count with as many as the tables print.
    """
    before, after = (float(text.replace(",", "")) for text in (committed, found))
    if is_time:
        return not before / TIME_FACTOR <= after <= before * TIME_FACTOR
    decimals = min(len(committed.partition(".")[2]), PRINTED)
    return abs(after - before) > 1.001 * 10.0**-decimals


# ---------------------------------------------------------------------- digests


def digest(source: str) -> str:
    """A digest of the syntax tree of a module without its docstrings; comments are not in it."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            node.body[:1] = [] if node.body[1:] else [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:DIGITS]


def changed_modules(kept: Mapping[str, str]) -> tuple[str, ...]:
    """The modules whose digest is not the kept one, or whose file is gone."""
    return tuple(name for name, value in kept.items() if _digest_of(name) != value)


def _digest_of(name: str) -> str:
    path = _path(name)
    if path is None:
        return ""
    content = path.read_text(encoding="utf-8")
    return digest(content) if path.suffix == ".py" else _settings_digest(path.stem)


def _settings_digest(name: str) -> str:
    """A digest of all that a recipe runs: its protocol, options, data sets and methods."""
    recipe = load_recipe(name)
    content = {key: recipe.content[key] for key in recipe.content if key != "notes"}
    text = json.dumps([recipe.protocol, recipe.options, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _path(name: str) -> Path | None:
    """The file of a module or of a recipe, which is named by its path; None if it is gone."""
    if name.endswith(".toml"):
        path = HOME / name
        return path if path.is_file() else None
    package = sys.modules[name.partition(".")[0]]
    home = Path(str(package.__file__)).parent.joinpath(*name.split(".")[1:])
    for path in (home.with_suffix(".py"), home / "__init__.py"):
        if path.is_file():
            return path
    return None


# ---------------------------------------------------------------------- cells


def _compute_in_process(name: str) -> dict[str, Any]:
    """The cell of a recipe, computed in a process that imports what it needs and nothing else."""
    command = [sys.executable, "-m", "experiments.stale", "--cell", name]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=HOME.parent
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compute_cell(recipe: Recipe) -> str:
    """Run no more of a recipe than its cell needs, and return its number."""
    with tempfile.TemporaryDirectory(prefix="cell-") as folder:
        outcome = reproduce(recipe.only_cell(), folder, n_jobs=1)
    return printed(outcome.to_dict(), recipe.cell["place"], recipe.name)


def _used_modules() -> list[str]:
    """The modules of this repository that the process has imported."""
    used = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    return sorted(name for name in used if name not in UNUSED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all results or some; the exit code is 1 if one is stale."""
    parser = argparse.ArgumentParser(prog="python -m experiments.stale")
    parser.add_argument("names", nargs="*", help="recipes (default: all)")
    parser.add_argument("--cell", help="compute the cell of a recipe, print it as JSON")
    options = parser.parse_args(arguments)
    if options.cell:
        number = compute_cell(load_recipe(options.cell))
        digests = {name: _digest_of(name) for name in _used_modules()}
        settings = f"recipes/{options.cell}.toml"
        digests[settings] = _digest_of(settings)
        print(json.dumps({"number": number, "digests": digests}))
        return 0
    verdicts = set()
    for name in options.names or list_recipes():
        state = check_result(name)
        verdicts.add(state.verdict)
        print(state, flush=True)
    return int("stale" in verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
