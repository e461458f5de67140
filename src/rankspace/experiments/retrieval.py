"""Held-out queries rank the items that a metric was learned on: quality and time against rank."""

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

from ..datasets import Dataset, open_dataset
from ..display.plots import curves
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, hold_out
from ._methods import at_hand, fit_estimator, settings
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

MEASURES = {"AUC": "auc", "MAP": "map", "P@1": "p@1", "P@10": "p@10"}
# What a recipe says of a data set that does not change a piece of it.
APART = ("label", "grids", "ranks", "skip")


class Rows(NamedTuple):
    """Rows to learn on, to choose settings by, and to judge by."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all data sets that are at hand: a table and a picture for each."""
    sets, notes = at_hand(recipe.content["datasets"])
    options = {key: recipe.options[key] for key in ("validation", "seed")}
    pieces, places = [], []
    for data, method in itertools.product(sets, recipe.content["methods"]):
        if method["label"] in data.get("skip", []):
            continue
        core = {key: value for key, value in data.items() if key not in APART}
        ranks = (
            data.get("ranks", recipe.options["ranks"]) if method.get("ranked") else [0]
        )
        for rank, fold in itertools.product(ranks, range(n_folds(data))):
            every = settings(method, data)
            pieces.append((core, method["estimator"], every, rank, fold, options))
            places.append((data["label"], method["label"], rank))
    found: dict[tuple[str, str, int], list[Any]] = {}
    for place, result in zip(places, jobs.map(one_piece, pieces), strict=True):
        found.setdefault(place, []).append(result)
    paper = recipe.content.get("paper_values", {})
    labels = [str(data["label"]) for data in sets]
    tables = [_table(label, found, paper) for label in labels]
    pictures: dict[str, Callable[[], Any]] = {
        label.lower().replace(" ", "-"): partial(_picture, label, found)
        for label in labels
        if len({rank for data, _, rank in found if data == label and rank}) > 1
    }
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes], pictures)


def n_folds(data: Mapping[str, Any]) -> int:
    """How many folds of a data set are run."""
    return int(data["folds"]) if "folds" in data else 1


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any],
    estimator: str,
    every: Sequence[Mapping[str, Any]],
    rank: int,
    fold: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Choose a setting on the validation part, fit on all that is no test, judge the test part."""
    dataset = _load(data["name"])
    rows = split_rows(dataset, data, fold, options)
    every = [
        {**setting, **({"n_components": rank} if rank else {})} for setting in every
    ]
    chosen = every[0]
    if len(every) > 1:
        part = _prepared(dataset, data, rows.train, rows.validation)
        models = [_fit(estimator, setting, part)[0] for setting in every]
        scores = [
            model.score(part.X, part.judged, queries=part.points) for model in models
        ]
        chosen = every[int(np.argmax(scores))]
    part = _prepared(
        dataset, data, np.sort(np.concatenate((rows.train, rows.validation))), rows.test
    )
    model, seconds = _fit(estimator, chosen, part)
    measures = " ".join(MEASURES.values())
    report = model._evaluate(part.X, part.judged, None, part.points, None, measures)
    varied = {
        key: value
        for key, value in chosen.items()
        if any(s[key] != value for s in every)
    }
    shown = ", ".join(f"{key} {value:g}" for key, value in varied.items())
    return {**report.means, "seconds": seconds, "chosen": shown, "size": _size(part)}


def _fit(estimator: str, setting: Mapping[str, Any], part: Split) -> tuple[Any, float]:
    begin = time.perf_counter()
    model = fit_estimator(estimator, setting, part.X, part.relevance)
    return model, time.perf_counter() - begin


def _size(part: Split) -> str:
    return (
        f"{part.X.shape[0]:,} items x {part.X.shape[1]}, {len(part.points):,} queries"
    )


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
        rest, test = (rows[part] for part in list(folds.split(rows))[fold])
    else:
        rest = _draw(dataset.splits["train"], dataset.labels, data, rng)
        test = rng.permutation(dataset.splits["test"])[: data.get("n_queries")]
    order = rng.permutation(len(rest))
    n = round(options["validation"] * len(rest))
    return Rows(rest[np.sort(order[n:])], rest[np.sort(order[:n])], np.sort(test))


def _draw(
    rows: np.ndarray, labels: Any, data: Mapping[str, Any], rng: np.random.Generator
) -> np.ndarray:
    """So many of the rows, each as likely, or in equal numbers from each class."""
    n, rows = data.get("sample", len(rows)), rng.permutation(rows)
    if data.get("equal_classes"):
        classes = np.unique(labels[rows])
        each = -(-n // len(classes))
        rows = np.concatenate([rows[labels[rows] == label][:each] for label in classes])
        rows = rng.permutation(rows)
    return np.sort(rows[:n])


def _prepared(
    dataset: Dataset, data: Mapping[str, Any], items: np.ndarray, queries: np.ndarray
) -> Split:
    """Items to learn on and queries to judge by, scaled and projected as the items ask for."""
    rows = np.concatenate((items, queries))
    relevance = dataset.relevance
    assert isinstance(relevance, Relevance)
    numbers = np.arange(len(rows))
    part = hold_out(
        dataset.X[rows],
        relevance[rows],
        None,
        numbers[: len(items)],
        numbers[len(items) :],
    )
    steps: list[Any] = [StandardScaler()] if data.get("standardise") else []
    if "n_components" in data:
        kind = TruncatedSVD if scipy.sparse.issparse(part.X) else PCA
        steps.append(kind(data["n_components"], random_state=0))
    if not steps:
        return part._replace(
            X=np.asarray(part.X, float), points=np.asarray(part.points, float)
        )
    pipeline = make_pipeline(*steps).fit(part.X)
    return part._replace(
        X=pipeline.transform(part.X), points=pipeline.transform(part.points)
    )


# ---------------------------------------------------------------------- tables and pictures


def _table(
    label: str, found: Mapping[Any, Sequence[Any]], paper: Mapping[str, Any]
) -> Table:
    rows, size = [], ""
    for (data, method, rank), results in found.items():
        if data != label:
            continue
        size = results[0]["size"]
        chosen = " / ".join(dict.fromkeys(result["chosen"] for result in results))
        scores = [
            _mean([result[measure] for result in results])
            for measure in MEASURES.values()
        ]
        seconds = float(np.mean([result["seconds"] for result in results]))
        row = [method, str(rank or "–"), *scores, f"{seconds:,.1f}", chosen or "–"]
        rows.append([*row, *map(str, paper.get(method, ["–"] * 4))] if paper else row)
    header = ["method", "m", *MEASURES, "seconds", "chosen"]
    header += ["paper's AUC", "MAP", "P@1", "P@10"] if paper else []
    return Table(f"{label} ({size})", header, rows)


def _mean(values: Sequence[float]) -> str:
    error = (
        f" ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"
        if len(values) > 1
        else ""
    )
    return f"{np.mean(values):.3f}{error}"


def _picture(label: str, found: Mapping[Any, Sequence[Any]]) -> Any:
    """Measures and seconds against the rank; methods without one are level lines."""
    shown = {"AUC": "auc", "MAP": "map", "seconds": "seconds"}
    ranks = sorted({rank for data, _, rank in found if data == label and rank})
    views: dict[str, dict[str, tuple[list[int], list[float]]]] = {
        name: {} for name in shown
    }
    for (data, method, rank), results in found.items():
        if data != label:
            continue
        for name, key in shown.items():
            x, y = views[name].setdefault(method, ([], []))
            value = float(np.mean([result[key] for result in results]))
            x.extend([rank] if rank else [ranks[0], ranks[-1]])
            y.extend([value] if rank else [value, value])
    return curves(views, "rank m", log=("seconds",))
