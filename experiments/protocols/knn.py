"""k-NN classification error: settings and k chosen by cross-validation, or by the paper's rule."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

from rankspace import Index, knn_error
from rankspace.display import n_directions

from ..data import open_dataset
from ..methods import available, fit_metric, settings
from ..pictures import grouped_bars
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import PAIRED_NOTE, paired_table

# Fields of a data set in a recipe on which no job depends.
NOT_IN_JOBS = ("label", "grids", "skip")
HEADER = [
    "method, data",
    "paper",
    "chosen on validation",
    "paper's rule",
    "difference",
    "mode",
]
NOTE = (
    "'Chosen on validation': for each split alone, the setting and then k with the least error on "
    "folds of the training part; ± is the standard error over splits. 'Paper's rule' takes the "
    "setting and k of least mean error on the *test* parts, as the paper did ('best choice of C "
    "and k'), which flatters every method."
)
DIMENSIONS = "Dimensions that hold 95 % of the spectral mass, median over splits"


class Part(NamedTuple):
    """Some rows and their classes."""

    X: np.ndarray
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Part:
        """Some of the rows."""
        return Part(self.X[rows], self.y[rows])

    def transformed(self, transformer: Any) -> Part:
        """The rows under a fitted transformer."""
        return Part(transformer.transform(self.X), self.y)


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Errors of all methods on all data sets that are at hand."""
    sets, notes = available(
        recipe.content["datasets"], lambda data: open_dataset(data["name"])
    )
    # What a job depends on, so that others stay cached when the recipe grows.
    options = {key: recipe.options[key] for key in ("test_size", "folds", "votes")}
    pieces, places = [], []
    for data, method in itertools.product(sets, recipe.content["methods"]):
        if method["label"] in data.get("skip", []):
            continue
        fields = {key: data[key] for key in data if key not in NOT_IN_JOBS}
        n_splits = recipe.options["n_splits"]
        if data.get("published_split"):
            n_splits = 1
        grid = settings(method, data)
        for split, setting in itertools.product(range(n_splits), grid):
            pieces.append((fields, method["estimator"], setting, split, options))
            name = method["shown"].format(**setting)
            places.append(((method["label"], data["label"]), split, name))
    # For each method and data set, for each split, the results of all settings.
    results: dict[tuple[str, str], dict[int, list[Any]]] = {}
    for place, result in zip(places, jobs.map(one_piece, pieces), strict=True):
        key, split, name = place
        splits = results.setdefault(key, {})
        splits.setdefault(split, []).append({**result, "setting": name})
    cells = {
        key: _cell(key, list(splits.values()), recipe)
        for key, splits in results.items()
    }
    notes = [NOTE, *recipe.content.get("notes", []), *notes]
    return _outcome(recipe, [data["label"] for data in sets], cells, notes)


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any],
    estimator: str,
    setting: Mapping[str, Any],
    split: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Errors of a setting for each k, on folds of the training part and on the test part."""
    train, test = _split(data, split, options)
    folds = KFold(data.get("folds", options["folds"]), shuffle=True, random_state=split)
    scaler = None
    if data.get("standardise", True):
        scaler = StandardScaler()
    errors = partial(_errors, estimator, setting, options["votes"], scaler)
    validation = [
        errors(train.take(rows), train.take(others))[0]
        for rows, others in list(folds.split(train.X))[: data.get("folds_used")]
    ]
    test_errors, n_dimensions = errors(train, test)
    return {
        "dimensions": n_dimensions,
        "test": test_errors,
        "validation": np.mean(validation, axis=0).tolist(),
    }


@lru_cache(maxsize=4)
def _load(name: str) -> Any:
    return open_dataset(name)


def _split(
    data: Mapping[str, Any], split: int, options: Mapping[str, Any]
) -> tuple[Part, Part]:
    dataset = _load(data["name"])
    X = np.asarray(dataset.X, dtype=data.get("dtype", "float64"))
    whole = Part(X, dataset.labels)
    if not data.get("published_split"):
        rows, others = train_test_split(
            np.arange(len(X)), test_size=options["test_size"], random_state=split
        )
        return whole.take(rows), whole.take(others)
    train = whole.take(dataset.splits["train"])
    test = whole.take(dataset.splits["test"])
    if "n_components" in data:
        pca = PCA(data["n_components"], svd_solver="full").fit(train.X)
        return train.transformed(pca), test.transformed(pca)
    return train, test


def _errors(
    estimator: str,
    setting: Mapping[str, Any],
    votes: Sequence[int],
    scaler: Any,
    train: Part,
    test: Part,
) -> tuple[list[float], int]:
    """Error of each k, and how many dimensions the metric has."""
    if scaler is not None:
        scaler.fit(train.X)
        train = train.transformed(scaler)
        test = test.transformed(scaler)
    metric = fit_metric(estimator, setting, train.X, train.y)
    ranking = Index(train.X, metric).rank(test.X, max(votes))
    errors = [knn_error(ranking, train.y, k, query_labels=test.y) for k in votes]
    return errors, n_directions(metric.spectrum)


# ---------------------------------------------------------------------- the table


class Cell(NamedTuple):
    """One method on one data set: errors of each split, and what the paper says."""

    chosen: np.ndarray
    optimistic: float
    dimensions: float
    mode: str
    published: float

    def row(self, name: str) -> tuple[str, ...]:
        """As a row of the table."""
        mean = self.chosen.mean()
        shown = f"{mean:.1f}"
        if self.chosen.size > 1:
            error = self.chosen.std(ddof=1) / self.chosen.size**0.5
            shown += f" ± {error:.1f}"
        return (
            name,
            f"{self.published:.1f}",
            shown,
            f"{self.optimistic:.1f}",
            f"{mean - self.published:+.1f}",
            self.mode,
        )


def _cell(
    key: tuple[str, str], splits: Sequence[Sequence[Any]], recipe: Recipe
) -> Cell:
    votes, paper = recipe.options["votes"], recipe.content["paper_values"]
    chosen, sizes, names = [], [], []
    for results in splits:
        setting, vote = choose(results)
        best = results[setting]
        chosen.append(100 * best["test"][vote])
        sizes.append(best["dimensions"])
        names.append(f"{best['setting']}k {votes[vote]}")
    tested = [[result["test"] for result in results] for results in splits]
    method, data = key
    return Cell(
        np.array(chosen),
        float(100 * np.mean(tested, axis=0).min()),
        float(np.median(sizes)),
        Counter(names).most_common(1)[0][0],
        paper[method][paper["datasets"].index(data)],
    )


def choose(results: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Model selection by validation errors alone: the numbers of the setting and of k.

    The setting of least error averaged over k, which is less noisy than any one k, among those
    whose metric on the training part is not zero; then its best k, the larger of equals.
    """
    errors = np.array([result["validation"] for result in results])
    means = errors.mean(axis=1)
    means[[result["dimensions"] == 0 for result in results]] = np.inf
    setting = int(means.argmin())
    votes = np.flatnonzero(errors[setting] == errors[setting].min())
    return setting, int(votes[-1])


def _outcome(
    recipe: Recipe,
    sets: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    notes: list[str],
) -> Outcome:
    methods = list(dict.fromkeys(method for method, _ in cells))
    rows = [
        cells[key].row(", ".join(key))
        for key in itertools.product(methods, sets)
        if key in cells
    ]
    sizes = {method: [np.nan] * len(sets) for method in methods}
    for (method, data), cell in cells.items():
        sizes[method][sets.index(data)] = cell.dimensions
    size_rows = [(method, *map(_shown, sizes[method])) for method in methods]
    paired = _paired(recipe, sets, cells)
    if paired:
        notes = [*notes, PAIRED_NOTE]
    tables = [
        Table("k-NN error in %", HEADER, rows),
        Table(DIMENSIONS, ["method", *sets], size_rows),
        *paired,
    ]
    picture = partial(grouped_bars, sets, sizes, DIMENSIONS.lower(), log=True)
    return Outcome(recipe, tables, notes, {"dimensions": picture})


def _paired(
    recipe: Recipe, sets: Sequence[str], cells: Mapping[tuple[str, str], Cell]
) -> list[Table]:
    """Paired tests on each data set that has several splits and the row to compare with."""
    against, test_size = recipe.options.get("against"), recipe.options["test_size"]
    tables = []
    for data in sets:
        part = {m: cell.chosen for (m, label), cell in cells.items() if label == data}
        if against and part and min(map(len, part.values())) > 1:
            title, overlap = f"k-NN error in % on {data}", test_size / (1 - test_size)
            tables.append(paired_table(title, part, against, overlap))
    return tables


def _shown(size: float) -> str:
    if np.isnan(size):
        return "–"
    return f"{size:.1f}"
