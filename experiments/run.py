"""Run a recipe: its jobs in parallel processes, its tables and pictures into a folder."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rankspace import __version__
from rankspace._engine.files import write_text
from rankspace._engine.tables import as_text

from .methods import find_estimator
from .pictures import save_png
from .recipe import Recipe, load_recipe
from .tables import Table

HOME = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
# Modules of protocols that others import, and that run nothing themselves.
HELPERS = ("__init__", "adapters", "prepared")


@dataclass
class Outcome:
    """Results of a recipe: tables, notes, and pictures, each a function that returns a figure."""

    recipe: Recipe
    tables: list[Table]
    notes: list[str] = field(default_factory=list)
    pictures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    seconds: float = 0.0
    n_cached: int = 0

    def __str__(self) -> str:
        sections = [f"{self.recipe.title} ({self.recipe.paper})"]
        for table in self.tables:
            sections.append(f"{table.title}\n{as_text(table.header, table.rows)}")
        return "\n\n".join(sections + self.notes)

    def to_markdown(self) -> str:
        """The tables, pictures and notes as a page."""
        sections = [f"# {self.recipe.title}", f"{self.recipe.paper}."]
        for table in self.tables:
            sections += [f"## {table.title}", table.to_markdown()]
        sections += [f"![{name}]({name}.png)" for name in self.pictures]
        sections += [*self.notes, self._provenance()]
        return "\n\n".join(sections) + "\n"

    def _provenance(self) -> str:
        options = [f"{key} = {value}" for key, value in self.recipe.options.items()]
        versions = [f"{name} {number}" for name, number in _versions().items()]
        cached = ""
        if self.n_cached:
            cached = f", {self.n_cached} jobs from the cache"
        return (
            f"Options: {', '.join(options)}. Run in {self.seconds:,.0f} s{cached}, "
            f"{', '.join(versions)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "recipe": self.recipe.name,
            "paper": self.recipe.paper,
            "options": dict(self.recipe.options),
            "tables": [table.to_dict() for table in self.tables],
            "notes": self.notes,
            "seconds": self.seconds,
            "jobs_from_cache": self.n_cached,
            "versions": {"rankspace": __version__, **_versions()},
            "python": platform.python_version(),
        }

    def write(self, folder: Path) -> None:
        """Write the page, ``results.json``, each table as CSV and LaTeX, and the pictures."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "results.json", as_json(self.to_dict()))
        write_text(folder / "README.md", self.to_markdown())
        for number, table in enumerate(self.tables, 1):
            write_text(folder / f"table-{number}.csv", table.to_csv())
            write_text(folder / f"table-{number}.tex", table.to_latex())
        for name, draw in self.pictures.items():
            save_png(draw(), folder / f"{name}.png")


def as_json(content: Mapping[str, Any]) -> str:
    """JSON with a line for each row of a table: readable, and half the size of an indented one."""
    rows = [json.dumps(row) for table in content["tables"] for row in table["rows"]]
    tables = [
        {**table, "rows": ["ROW"] * len(table["rows"])} for table in content["tables"]
    ]
    parts = json.dumps({**content, "tables": tables}, indent=1).split('"ROW"')
    return "".join(a + b for a, b in zip(parts, [*rows, ""], strict=True)) + "\n"


def _versions() -> dict[str, str]:
    return {name: version(name) for name in PACKAGES}


class Jobs:
    """Runs the jobs of a recipe in processes, with a cache on disk, so that a run can resume."""

    def __init__(
        self, folder: Path, n_jobs: int, progress: Callable[[float], Any]
    ) -> None:
        self.folder = folder
        self.n_jobs = n_jobs
        self.progress = progress
        self.n_cached = 0

    def map(
        self, work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Results of ``work(*piece)`` in order, as JSON stores them."""
        from joblib import Parallel, delayed

        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / f"{_digest(work, piece)}.json" for piece in pieces]
        missing = [i for i, path in enumerate(paths) if not path.is_file()]
        n_cached = len(pieces) - len(missing)
        self.n_cached += n_cached
        run = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        calls = (delayed(_run_job)(paths[i], work, pieces[i]) for i in missing)
        for n_done, _ in enumerate(run(calls), start=n_cached + 1):
            self.progress(n_done / len(pieces))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _run_job(path: Path, work: Callable[..., Any], piece: tuple[Any, ...]) -> None:
    write_text(path, json.dumps(work(*piece)))


def _digest(work: Callable[..., Any], piece: tuple[Any, ...]) -> str:
    content = json.dumps(
        [work.__module__, work.__name__, piece], sort_keys=True, default=str
    )
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def list_protocols() -> list[str]:
    """Names of the protocols that a recipe may choose from."""
    names = {path.stem for path in (HOME / "protocols").glob("*.py")}
    return sorted(names - set(HELPERS))


def reproduce(
    recipe: Recipe | str | Path,
    folder: str | Path = HOME / "results",
    *,
    n_jobs: int = -1,
    progress: Callable[[float], Any] = lambda fraction: None,
) -> Outcome:
    """Run a recipe and write its tables and pictures.

    Finished jobs are cached under ``folder/NAME/jobs``: a run that was interrupted resumes, and
    other options start anew. The cache does not know which version of the code filled it: delete
    it after a change of a learner.

    Parameters
    ----------
    recipe : Recipe, str or path
        A recipe, its name, or a TOML file.
    folder : path, optional
        Results go to a folder of the recipe's name in it; ``experiments/results`` by default.
    n_jobs : int, default=-1
        Number of processes; -1 is one for each core.
    progress : callable, optional
        Called with the fraction of the jobs that are done.

    Returns
    -------
    Outcome
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe)
    _check(recipe)
    start = time.perf_counter()
    home = Path(folder) / recipe.name
    jobs = Jobs(home / "jobs", n_jobs, progress)
    protocol = import_module(f"experiments.protocols.{recipe.protocol}")
    try:
        outcome = protocol.run(recipe, jobs)
    except KeyError as error:
        raise ValueError(f"recipe {recipe.name} lacks {error}.") from error
    left_out = [note for note in outcome.notes if note.startswith("Left out: ")]
    if left_out and not any(table.rows for table in outcome.tables):
        raise FileNotFoundError(" ".join(left_out))
    outcome.n_cached = jobs.n_cached
    outcome.seconds = time.perf_counter() - start
    outcome.write(home)
    return outcome


def _check(recipe: Recipe) -> None:
    """Raise before any work is done if the recipe cannot run."""
    if recipe.protocol not in list_protocols():
        raise ValueError(
            f"protocol of recipe {recipe.name} must be one of {', '.join(list_protocols())}: got "
            f"{recipe.protocol!r}."
        )
    for requirement in ("matplotlib", *recipe.requires):
        if find_spec(requirement) is None:
            raise ImportError(
                f"recipe {recipe.name} needs {requirement}: pip install {requirement} first."
            )
    for method in recipe.content.get("methods", []):
        if "." in method.get("estimator", ""):
            find_estimator(method["estimator"])
    labels = [method["label"] for method in recipe.content.get("methods", [])]
    against = recipe.options.get("against")
    if against and against not in labels:
        raise ValueError(
            f"against must be the label of a method, one of {', '.join(labels)}: got {against!r}. "
            """Pass --set 'against="LABEL"', or 'against=""' for no paired tests."""
        )


__all__ = ["Jobs", "Outcome", "Table", "list_protocols", "reproduce"]
