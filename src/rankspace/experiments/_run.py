"""Run a recipe: its jobs in processes, its tables and pictures into a folder."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._engine.files import PathLike, write_text
from .._engine.parallel.threads import n_threads
from .._engine.tables import as_markdown, as_text
from ._recipe import Recipe, load_recipe

PROTOCOLS = (
    "by_example",
    "clusters",
    "counts",
    "embeddings",
    "knn",
    "matching",
    "noise",
    "ratios",
    "retrieval",
    "times",
    "timing",
    "toy",
    "trees",
    "warp_loss",
)
PACKAGES = ("rankspace", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Table:
    """A table of results: a title, and rows that begin with their name."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "title": self.title,
            "header": list(self.header),
            "rows": [*map(list, self.rows)],
        }


@dataclass
class Outcome:
    """What a recipe gave: tables, remarks, and pictures, each a function that draws on axes."""

    recipe: Recipe
    tables: list[Table]
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, Callable[[], Any]] = field(default_factory=dict)
    seconds: float = 0.0
    n_kept: int = 0

    def __str__(self) -> str:
        parts = [f"{self.recipe.title} ({self.recipe.paper})"]
        parts += [
            f"{table.title}\n{as_text(table.header, table.rows)}"
            for table in self.tables
        ]
        return "\n\n".join(parts + self.notes)

    def to_markdown(self) -> str:
        """The tables, pictures and remarks as a page."""
        parts = [f"# {self.recipe.title}", f"{self.recipe.paper}."]
        for table in self.tables:
            parts += [f"## {table.title}", as_markdown(table.header, table.rows)]
        parts += [f"![{name}]({name}.svg)" for name in self.pictures]
        parts += self.notes
        changed = ", ".join(
            f"{key} = {value}" for key, value in self.recipe.options.items()
        )
        kept = f", {self.n_kept} pieces kept from before" if self.n_kept else ""
        parts.append(
            f"Options: {changed}. Run in {self.seconds:,.0f} s{kept}, {_versions()}."
        )
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "recipe": self.recipe.name,
            "paper": self.recipe.paper,
            "options": dict(self.recipe.options),
            "tables": [table.to_dict() for table in self.tables],
            "notes": self.notes,
            "seconds": self.seconds,
            "pieces_kept_from_before": self.n_kept,
            "versions": {name: version(name) for name in PACKAGES},
            "python": platform.python_version(),
        }

    def write(self, folder: PathLike) -> Path:
        """Write ``README.md``, ``results.json`` and a picture each into a folder."""
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        write_text(home / "results.json", json.dumps(self.to_dict(), indent=1) + "\n")
        write_text(home / "README.md", self.to_markdown())
        for name, draw in self.pictures.items():
            _draw(draw, home / f"{name}.svg")
        return home


def _draw(draw: Callable[[], Any], path: Path) -> None:
    """Write a picture, and let its figure go."""
    import matplotlib.pyplot as plt

    figure = draw()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


class Jobs:
    """Runs the pieces of a recipe, and keeps what is done, so that a stopped run can go on."""

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        n_jobs: int,
        progress: Callable[[float], Any],
    ) -> None:
        self.folder, self.recipe, self.n_jobs, self.progress = (
            folder,
            recipe,
            n_jobs,
            progress,
        )
        self.n_kept = 0

    def map(
        self, work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Results of ``work(*piece)`` in order, as JSON keeps them."""
        from joblib import Parallel, delayed

        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / f"{_digest(work, piece)}.json" for piece in pieces]
        missing = [i for i, path in enumerate(paths) if not path.is_file()]
        self.n_kept += len(pieces) - len(missing)
        run = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        calls = (delayed(_keep)(paths[i], work, pieces[i]) for i in missing)
        for done, _ in enumerate(run(calls), start=len(pieces) - len(missing) + 1):
            self.progress(done / len(pieces))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _keep(path: Path, work: Callable[..., Any], piece: tuple[Any, ...]) -> None:
    write_text(path, json.dumps(work(*piece)))


def _digest(work: Callable[..., Any], piece: tuple[Any, ...]) -> str:
    content = json.dumps(
        [work.__module__, work.__name__, piece], sort_keys=True, default=str
    )
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _check_pictures() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "reproducing draws pictures: pip install 'rankspace[plot]' first."
        ) from error


def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in PACKAGES[1:])


def reproduce(
    recipe: Recipe | PathLike,
    folder: PathLike = "experiments",
    *,
    n_jobs: int | None = None,
    progress: Callable[[float], Any] = lambda share: None,
) -> Outcome:
    """Run a recipe and write its tables and pictures.

    Pieces that are done are kept under ``folder/NAME/jobs``: a run that was stopped goes on, one
    with other numbers starts anew. They do not know which version of the code made them; after a
    change of a learner, delete that folder.

    Parameters
    ----------
    recipe : Recipe, str or path
        A recipe, its name, or a TOML file.
    folder : path, default="experiments"
        Results go to a folder of the recipe's name in it.
    n_jobs : int, optional
        Processes; one for each core by default.
    progress : callable, optional
        Told the share of the pieces that is done.

    Returns
    -------
    Outcome
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe)
    begin = time.perf_counter()
    home = Path(folder) / recipe.name
    jobs = Jobs(home / "jobs", recipe, n_jobs or n_threads(), progress)
    if recipe.protocol not in PROTOCOLS:
        raise ValueError(
            f"protocol of recipe {recipe.name} must be one of {', '.join(PROTOCOLS)}: got "
            f"{recipe.protocol!r}."
        )
    _check_pictures()
    protocol = import_module(f".{recipe.protocol}", __package__)
    try:
        outcome = protocol.run(recipe, jobs)
    except KeyError as error:
        raise ValueError(f"recipe {recipe.name} lacks {error}.") from error
    outcome.n_kept = jobs.n_kept
    outcome.seconds = time.perf_counter() - begin
    outcome.write(home)
    return outcome
