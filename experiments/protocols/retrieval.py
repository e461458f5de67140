"""Retrieval by held-out queries over the training items: quality and time against rank."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import Relevance
from rankspace.datasets import Dataset
from rankspace.relevance.splits import Split, hold_out

from ..data import open_dataset
from ..methods import available, evaluate_ranker, fit_ranker, settings
from ..pictures import curves
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table

MEASURES = {"AUC": "auc", "MAP": "map", "P@1": "p@1", "P@10": "p@10"}
PUBLISHED = ["paper's AUC", "MAP", "P@1", "P@10"]
# Fields of a data set in a recipe on which no job depends.
NOT_IN_JOBS = ("label", "grids", "ranks", "skip")


class Rows(NamedTuple):
    """Rows to train on, to choose settings by, and to test on."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class Place(NamedTuple):
    """The cell of a table: data set, method, and rank of the metric (0 if it has full rank)."""

    data: str
    method: str
    rank: int


Results = Mapping[Place, Sequence[Mapping[str, Any]]]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all data sets that are at hand: a table and a picture for each."""
    sets, notes = available(
        recipe.content["datasets"], lambda data: open_dataset(data["name"])
    )
    options = {key: recipe.options[key] for key in ("validation", "seed")}
    pieces, places = [], []
    for data, method in itertools.product(sets, recipe.content["methods"]):
        if method["label"] in data.get("skip", []):
            continue
        ranks = [0]
        if method.get("ranked"):
            ranks = data.get("ranks", recipe.options["ranks"])
        fields = job_fields(data)
        grid = settings(method, data)
        for rank, fold in itertools.product(ranks, range(n_folds(data))):
            pieces.append((fields, method["estimator"], grid, rank, fold, options))
            places.append(Place(data["label"], method["label"], rank))
    results: dict[Place, list[Any]] = {}
    for place, result in zip(places, jobs.map(one_piece, pieces), strict=True):
        results.setdefault(place, []).append(result)
    paper = recipe.content.get("paper_values", {})
    tables = []
    pictures: dict[str, Callable[[], Any]] = {}
    for data in sets:
        label = data["label"]
        part = {place: results[place] for place in results if place.data == label}
        tables.append(_table(label, part, paper))
        if len({place.rank for place in part if place.rank}) > 1:
            name = label.lower().replace(" ", "-")
            pictures[name] = partial(_picture, part)
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes], pictures)


def job_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set that its jobs depend on."""
    return {key: value for key, value in data.items() if key not in NOT_IN_JOBS}


def n_folds(data: Mapping[str, Any]) -> int:
    """How many folds of a data set are run."""
    return int(data.get("folds", 1))


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any],
    estimator: str,
    grid: Sequence[Mapping[str, Any]],
    rank: int,
    fold: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Choose a setting on the validation part, fit on all but the test part, evaluate on that."""
    dataset = _load(data["name"])
    rows = split_rows(dataset, data, fold, options)
    if rank:
        grid = [{**setting, "n_components": rank} for setting in grid]
    setting = grid[0]
    if len(grid) > 1:
        split = _prepared(dataset, data, rows.train, rows.validation)
        setting = _choose(estimator, grid, split)
    items = np.sort(np.concatenate((rows.train, rows.validation)))
    split = _prepared(dataset, data, items, rows.test)
    start = time.perf_counter()
    model = fit_ranker(estimator, setting, split.X, split.relevance)
    seconds = time.perf_counter() - start
    measures = " ".join(MEASURES.values())
    n_items, n_features = split.X.shape
    return {
        **evaluate_ranker(model, split.X, split.judged, split.points, measures),
        "seconds": seconds,
        "chosen": _shown(setting, grid),
        "size": f"{n_items:,} items x {n_features}, {len(split.points):,} queries",
    }


def _choose(
    estimator: str, grid: Sequence[Mapping[str, Any]], split: Split
) -> Mapping[str, Any]:
    scores = []
    for setting in grid:
        model = fit_ranker(estimator, setting, split.X, split.relevance)
        scores.append(model.score(split.X, split.judged, queries=split.points))
    return grid[int(np.argmax(scores))]


def _shown(setting: Mapping[str, Any], grid: Sequence[Mapping[str, Any]]) -> str:
    """The parameters of a setting that vary over the grid."""
    varied = [key for key in setting if any(s[key] != setting[key] for s in grid)]
    return ", ".join(f"{key} {setting[key]:g}" for key in varied)


@lru_cache(maxsize=2)
def _load(name: str) -> Dataset:
    return open_dataset(name)


def split_rows(
    dataset: Dataset, data: Mapping[str, Any], fold: int, options: Mapping[str, Any]
) -> Rows:
    """Rows of a fold: published ones, a published test part, or folds of a sample."""
    if data.get("published_folds"):
        published = dataset.fold(fold + 1)
        return Rows(published["train"], published["vali"], published["test"])
    rng = np.random.default_rng(options["seed"] + data.get("sample_seed", 0))
    if "folds" in data:
        rows = _draw(np.arange(len(dataset.X)), dataset.labels, data, rng)
        folds = KFold(data["folds"], shuffle=True, random_state=options["seed"])
        rest_places, test_places = list(folds.split(rows))[fold]
        rest = rows[rest_places]
        test = rows[test_places]
    else:
        rest = _draw(dataset.splits["train"], dataset.labels, data, rng)
        test = rng.permutation(dataset.splits["test"])[: data.get("n_queries")]
    order = rng.permutation(len(rest))
    n = round(options["validation"] * len(rest))
    return Rows(rest[np.sort(order[n:])], rest[np.sort(order[:n])], np.sort(test))


def _draw(
    rows: np.ndarray, labels: Any, data: Mapping[str, Any], rng: np.random.Generator
) -> np.ndarray:
    """A random sample of the rows, or one with equal numbers of each class."""
    n = data.get("sample", len(rows))
    rows = rng.permutation(rows)
    if data.get("equal_classes"):
        classes = np.unique(labels[rows])
        each = -(-n // len(classes))
        rows = np.concatenate([rows[labels[rows] == label][:each] for label in classes])
        rows = rng.permutation(rows)
    return np.sort(rows[:n])


def _prepared(
    dataset: Dataset, data: Mapping[str, Any], items: np.ndarray, queries: np.ndarray
) -> Split:
    """Items to train on and queries to test by, scaled and projected as fitted on the items."""
    rows = np.concatenate((items, queries))
    relevance = dataset.relevance
    assert isinstance(relevance, Relevance)
    numbers = np.arange(len(rows))
    n = len(items)
    split = hold_out(dataset.X[rows], relevance[rows], None, numbers[:n], numbers[n:])
    steps: list[Any] = []
    if data.get("standardise"):
        steps.append(StandardScaler())
    if "n_components" in data:
        projection = PCA
        if scipy.sparse.issparse(split.X):
            projection = TruncatedSVD
        steps.append(projection(data["n_components"], random_state=0))
    if not steps:
        X = np.asarray(split.X, float)
        return split._replace(X=X, points=np.asarray(split.points, float))
    pipeline = make_pipeline(*steps).fit(split.X)
    X = pipeline.transform(split.X)
    return split._replace(X=X, points=pipeline.transform(split.points))


# ---------------------------------------------------------------------- tables and pictures


def _table(label: str, results: Results, paper: Mapping[str, Any]) -> Table:
    rows, size = [], ""
    for place, folds in results.items():
        size = folds[0]["size"]
        row = [place.method, str(place.rank or "–"), *_cells(folds)]
        if paper:
            row += map(str, paper.get(place.method, ["–"] * 4))
        rows.append(row)
    header = ["method", "m", *MEASURES, "seconds", "chosen"]
    if paper:
        header += PUBLISHED
    return Table(f"{label} ({size})", header, rows)


def _cells(folds: Sequence[Mapping[str, Any]]) -> list[str]:
    scores = [_mean([fold[measure] for fold in folds]) for measure in MEASURES.values()]
    seconds = float(np.mean([fold["seconds"] for fold in folds]))
    chosen = " / ".join(dict.fromkeys(fold["chosen"] for fold in folds))
    return [*scores, f"{seconds:,.1f}", chosen or "–"]


def _mean(values: Sequence[float]) -> str:
    """Mean over folds, and its standard error if there are several."""
    mean = f"{np.mean(values):.3f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"


def _picture(results: Results) -> Any:
    """Measures and seconds against the rank; methods without one are level lines."""
    shown = {"AUC": "auc", "MAP": "map", "seconds": "seconds"}
    ranks = sorted({place.rank for place in results if place.rank})
    views: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for name, key in shown.items():
        panel = views.setdefault(name, {})
        for place, folds in results.items():
            x, y = panel.setdefault(place.method, ([], []))
            value = float(np.mean([fold[key] for fold in folds]))
            abscissas = [place.rank] if place.rank else [ranks[0], ranks[-1]]
            x.extend(abscissas)
            y.extend([value] * len(abscissas))
    return curves(views, "rank m", log=("seconds",))
