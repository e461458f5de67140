"""Retrieval by held-out queries over the training items: quality and time against rank."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import BaseRanker, BilinearMetric, LinearMetric, Relevance
from rankspace.datasets import Dataset
from rankspace.relevance.splits import Split, hold_out

from ..data import open_dataset
from ..methods import available, fit_ranker, settings
from ..pictures import curves
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import paired_table

MEASURES = {"AUC": "auc", "MAP": "map", "P@1": "p@1", "P@10": "p@10"}
PUBLISHED = ["paper's AUC", "MAP", "P@1", "P@10"]
# Fields of a data set in a recipe on which no job depends.
NOT_IN_JOBS = ("label", "grids", "ranks", "skip")
# Fields of a method on which jobs do depend, beside its settings.
IN_JOBS = ("estimator", "by")
SHORT = {"n_components": "m"}
# Measures of single queries that are kept, for paired tests.
TESTED = ("map", "p@1", "p@10")
PAIRED = (
    "Paired tests: differences to the row named in the title, with 95 % intervals and p-values of "
    "t-tests, over the queries where there is one test part, and over the folds, corrected for "
    "training parts that overlap (Nadeau & Bengio 2003), where there are several. 'p (Holm)' is "
    "corrected for the number of rows compared."
)


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


class Piece(NamedTuple):
    """A fit on one fold of a data set, and the settings that it chooses from."""

    place: Place
    data: Mapping[str, Any]
    method: Mapping[str, Any]
    grid: Sequence[Mapping[str, Any]]
    fold: int


Results = Mapping[Place, Sequence[Mapping[str, Any]]]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all data sets that are at hand: tables and a picture for each."""
    sets, notes = available(
        recipe.content["datasets"], lambda data: open_dataset(data["name"])
    )
    options = {key: recipe.options[key] for key in ("validation", "seed")}
    results: dict[Place, list[Any]] = {}
    for data in sets:
        pieces = [*_pieces(recipe, data)]
        chosen = _chosen_settings(pieces, jobs, options)
        calls = [
            (piece.data, piece.method, setting, piece.fold, options)
            for piece, setting in zip(pieces, chosen, strict=True)
        ]
        fits = jobs.map(one_piece, calls)
        for piece, setting, fit in zip(pieces, chosen, fits, strict=True):
            row = {**fit, "chosen": _shown(setting, piece.grid)}
            results.setdefault(piece.place, []).append(row)
    paper = recipe.content.get("paper_values", {})
    tables: list[Table] = []
    pictures: dict[str, Callable[[], Any]] = {}
    for data in sets:
        label = data["label"]
        part = {place: results[place] for place in results if place.data == label}
        tables.append(_table(label, part, paper))
        tables += _paired_tables(label, part, recipe.options.get("against", ""))
        if len({place.rank for place in part if place.rank}) > 1:
            name = label.lower().replace(" ", "-")
            pictures[name] = partial(_picture, part)
    notes = [*recipe.content["notes"], PAIRED, *notes]
    return Outcome(recipe, tables, notes, pictures)


def _pieces(recipe: Recipe, data: Mapping[str, Any]) -> Iterator[Piece]:
    """The fits of a data set, method by method: one at each rank, and one that chooses it."""
    for method in recipe.content["methods"]:
        if method["label"] in data.get("skip", []):
            continue
        grids = {0: settings(method, data)}
        if method.get("ranked"):
            ranks = data.get("ranks", recipe.options["ranks"])
            grids = {m: [{**grids[0][0], "n_components": m}] for m in ranks}
            tried = recipe.options.get("tried_ranks", [])
            if tried and method.get("chooses_rank"):
                grids[0] = [{**grids[ranks[0]][0], "n_components": m} for m in tried]
        fields = {key: method[key] for key in IN_JOBS if key in method}
        for (rank, grid), fold in itertools.product(
            grids.items(), range(n_folds(data))
        ):
            place = Place(data["label"], method["label"], rank)
            yield Piece(place, job_fields(data), fields, grid, fold)


def _chosen_settings(
    pieces: Sequence[Piece], jobs: Jobs, options: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """For each piece the setting of the best MAP on its validation part."""
    calls, owners = [], []
    for number, piece in enumerate(pieces):
        if len(piece.grid) > 1:
            fold = None if piece.data.get("tuned_on") else piece.fold
            calls += [(piece.data, piece.method, s, fold, options) for s in piece.grid]
            owners += [number] * len(piece.grid)
    # Folds that share a choice share its jobs.
    unique = {json.dumps(call, default=str): call for call in calls}
    scores = dict(
        zip(unique, jobs.map(validation_score, [*unique.values()]), strict=True)
    )
    found: dict[int, list[float]] = {}
    for number, call in zip(owners, calls, strict=True):
        found.setdefault(number, []).append(scores[json.dumps(call, default=str)])
    return [
        piece.grid[int(np.argmax(found.get(number, [0])))]
        for number, piece in enumerate(pieces)
    ]


def job_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set that its jobs depend on."""
    return {key: value for key, value in data.items() if key not in NOT_IN_JOBS}


def n_folds(data: Mapping[str, Any]) -> int:
    """How many folds of a data set are run."""
    return int(data.get("folds", 1))


# ---------------------------------------------------------------------- one piece


def validation_score(
    data: Mapping[str, Any],
    method: Mapping[str, Any],
    setting: Mapping[str, Any],
    fold: int | None,
    options: Mapping[str, Any],
) -> float:
    """MAP of a setting on the validation part; without a fold, on rows that no fold has."""
    dataset = _load(data["name"])
    if fold is None:
        train, validation, _ = _other_rows(dataset, data, options)
    else:
        train, validation, _ = split_rows(dataset, data, fold, options)
    split = _prepared(dataset, data, train, validation)
    model = _fit(method, setting, split)
    return model.score(split.X, split.judged, queries=split.points)


def one_piece(
    data: Mapping[str, Any],
    method: Mapping[str, Any],
    setting: Mapping[str, Any],
    fold: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Fit a setting on all but the test part, and evaluate on that."""
    dataset = _load(data["name"])
    rows = split_rows(dataset, data, fold, options)
    items = np.sort(np.concatenate((rows.train, rows.validation)))
    split = _prepared(dataset, data, items, rows.test)
    start = time.process_time()
    model = _fit(method, setting, split)
    seconds = time.process_time() - start
    report = model._evaluate(
        split.X, split.judged, None, split.points, None, " ".join(MEASURES.values())
    )
    n_items, n_features = split.X.shape
    return {
        **report.means,
        "queries": {name: np.round(report.values[name], 4).tolist() for name in TESTED},
        "seconds": seconds,
        "size": f"{n_items:,} items x {n_features}, {len(split.points):,} queries",
    }


def _fit(
    method: Mapping[str, Any], setting: Mapping[str, Any], split: Split
) -> BaseRanker:
    model = fit_ranker(method["estimator"], setting, split.X, split.relevance)
    if method.get("by") == "distance":
        model.metric_ = distance_of(model.metric_)
    return model


def distance_of(similarity: BilinearMetric) -> LinearMetric:
    """The distance under the matrix of a similarity: its symmetric part without negative values."""
    W = similarity.query_map.T @ similarity.item_map
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    return LinearMetric(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)


def _shown(setting: Mapping[str, Any], grid: Sequence[Mapping[str, Any]]) -> str:
    """The parameters of a setting that vary over the grid."""
    varied = [key for key in setting if any(s[key] != setting[key] for s in grid)]
    return ", ".join(f"{SHORT.get(key, key)} {setting[key]:g}" for key in varied)


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


def _other_rows(
    dataset: Dataset, data: Mapping[str, Any], options: Mapping[str, Any]
) -> Rows:
    """Rows to choose settings by, none of which is in the sample: a fifth are queries."""
    seed = options["seed"] + data.get("sample_seed", 0)
    everything = np.arange(len(dataset.X))
    used = _draw(everything, dataset.labels, data, np.random.default_rng(seed))
    others = np.setdiff1d(everything, used)
    smaller = {**data, "sample": data["tuned_on"]}
    rng = np.random.default_rng(seed)
    rows = _draw(others, dataset.labels, smaller, rng)
    order = rng.permutation(len(rows))
    n = round(options["validation"] * len(rows))
    return Rows(rows[np.sort(order[n:])], rows[np.sort(order[:n])], rows[:0])


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


def _paired_tables(label: str, results: Results, against: str) -> list[Table]:
    """Paired tests of all methods, at the rank that they chose or have, over folds or queries."""
    places = sorted(results, key=lambda place: -place.rank)
    last = {place.method: results[place] for place in places}
    rows = {place.method: last[place.method] for place in results}
    if against not in rows or len(rows) < 2:
        return []
    names = {key: name for name, key in MEASURES.items() if key in TESTED}
    n = len(rows[against])
    tables = []
    for key, name in names.items():
        if n > 1:
            values = {m: np.array([f[key] for f in folds]) for m, folds in rows.items()}
            title, overlap = f"{label}, {name}, {n} folds", 1 / (n - 1)
        else:
            values = {m: _of_queries(folds[0], key) for m, folds in rows.items()}
            title, overlap = f"{label}, {name}, {len(values[against]):,} queries", 0.0
        tables.append(paired_table(title, values, against, overlap))
    return tables


def _of_queries(fit: Mapping[str, Any], key: str) -> np.ndarray:
    values = np.array(fit["queries"][key], dtype=float)
    return values[~np.isnan(values)]


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
        ranked = {place.method for place in results if place.rank}
        for place, folds in results.items():
            if place.method in ranked and not place.rank:
                continue
            x, y = panel.setdefault(place.method, ([], []))
            value = float(np.mean([fold[key] for fold in folds]))
            abscissas = [place.rank] if place.rank else [ranks[0], ranks[-1]]
            x.extend(abscissas)
            y.extend([value] * len(abscissas))
    return curves(views, "rank m", log=("seconds",))
