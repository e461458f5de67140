"""k-NN error on class labels: settings and k chosen on validation data, or the paper's way."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

from ..datasets import open_dataset
from ..display.plots import grouped_bars, n_directions
from ..evaluation.neighbors import knn_error
from ..search.index import Index
from ._methods import at_hand, fit_metric, settings
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table

# What a recipe says of a data set that does not change a piece of it.
APART = ("label", "grids", "skip")


class Part(NamedTuple):
    """Some rows and their classes."""

    X: np.ndarray
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Part:
        """Some of the rows."""
        return Part(self.X[rows], self.y[rows])

    def through(self, transformer: Any) -> Part:
        """The rows mapped."""
        return Part(transformer.transform(self.X), self.y)


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Errors of all methods on all data sets that are at hand."""
    sets, notes = at_hand(recipe.content["datasets"])
    methods = recipe.content["methods"]
    # What a piece depends on, so that others stay good when the recipe grows.
    options = {key: recipe.options[key] for key in ("test_size", "folds", "votes")}
    pieces, places = [], []
    for data, method in itertools.product(sets, methods):
        if method["label"] in data.get("skip", []):
            continue
        core = {key: value for key, value in data.items() if key not in APART}
        n_splits = 1 if data.get("published_split") else recipe.options["n_splits"]
        for split, setting in itertools.product(
            range(n_splits), settings(method, data)
        ):
            pieces.append((core, method["estimator"], setting, split, options))
            places.append((method, data, split))
    cells: dict[tuple[str, str], list[list[Any]]] = {}
    for (method, data, split), piece, found in zip(
        places, pieces, jobs.map(one_piece, pieces), strict=True
    ):
        splits = cells.setdefault((method["label"], data["label"]), [])
        if split == len(splits):
            splits.append([])
        splits[split].append({**found, "setting": method["shown"].format(**piece[2])})
    table = {key: _cell(key, splits, recipe) for key, splits in cells.items()}
    notes = [*recipe.content.get("notes", []), *notes]
    return _outcome(recipe, [data["label"] for data in sets], table, notes)


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
    parts = list(folds.split(train.X))[: data.get("folds_used")]
    scaler = StandardScaler() if data.get("standardise", True) else None
    votes = options["votes"]
    held_out = [
        _errors(
            estimator, setting, train.take(rows), train.take(others), votes, scaler
        )[0]
        for rows, others in parts
    ]
    errors, size = _errors(estimator, setting, train, test, votes, scaler)
    validation = np.mean(held_out, axis=0).tolist()
    return {"dimensions": size, "test": errors, "validation": validation}


@lru_cache(maxsize=4)
def _load(name: str) -> Any:
    return open_dataset(name)


def _split(
    data: Mapping[str, Any], split: int, options: Mapping[str, Any]
) -> tuple[Part, Part]:
    dataset = _load(data["name"])
    whole = Part(
        np.asarray(dataset.X, dtype=data.get("dtype", "float64")), dataset.labels
    )
    if not data.get("published_split"):
        rows = np.arange(len(whole.X))
        parts = train_test_split(
            rows, test_size=options["test_size"], random_state=split
        )
        return whole.take(parts[0]), whole.take(parts[1])
    train, test = (whole.take(dataset.splits[name]) for name in ("train", "test"))
    if "n_components" in data:
        pca = PCA(data["n_components"], svd_solver="full").fit(train.X)
        train, test = (part.through(pca) for part in (train, test))
    return train, test


def _errors(
    estimator: str,
    setting: Mapping[str, Any],
    train: Part,
    test: Part,
    votes: Sequence[int],
    scaler: Any,
) -> tuple[list[float], int]:
    """Error of each k, and how many dimensions the metric has."""
    items, queries = train, test
    if scaler is not None:
        items, queries = (part.through(scaler.fit(train.X)) for part in (train, test))
    metric = fit_metric(estimator, setting, items.X, items.y)
    ranking = Index(items.X, metric).rank(queries.X, max(votes))
    errors = [knn_error(ranking, items.y, k, query_labels=queries.y) for k in votes]
    return errors, n_directions(metric.spectrum)


# ---------------------------------------------------------------------- the table


class Cell(NamedTuple):
    """One method on one data set: errors of each split, and what the paper says."""

    chosen: np.ndarray
    optimistic: float
    dimensions: float
    favourite: str
    published: float

    def row(self, name: str) -> tuple[str, ...]:
        """As a row of the table."""
        n, mean = self.chosen.size, self.chosen.mean()
        error = f" ± {self.chosen.std(ddof=1) / n**0.5:.1f}" if n > 1 else ""
        return (
            name,
            f"{self.published:.1f}",
            f"{mean:.1f}{error}",
            f"{self.optimistic:.1f}",
            f"{mean - self.published:+.1f}",
            self.favourite,
        )


def _cell(
    key: tuple[str, str], splits: Sequence[Sequence[Any]], recipe: Recipe
) -> Cell:
    votes, paper = recipe.options["votes"], recipe.content["paper_values"]
    chosen, sizes, names = [], [], []
    for found in splits:
        setting, vote = choose(found)
        chosen.append(100 * found[setting]["test"][vote])
        sizes.append(found[setting]["dimensions"])
        names.append(f"{found[setting]['setting']}k {votes[vote]}")
    tested = np.array([[f["test"] for f in found] for found in splits])
    return Cell(
        np.array(chosen),
        float(100 * tested.mean(axis=0).min()),
        float(np.mean(sizes)),
        Counter(names).most_common(1)[0][0],
        paper[key[0]][paper["datasets"].index(key[1])],
    )


def choose(found: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Setting and vote by validation errors alone.

    The setting of least error averaged over votes, which is less noisy than any one of them, among
    those whose metric on the training part is not zero; then its best vote, the larger of equals.
    """
    errors = np.array([f["validation"] for f in found])
    means = errors.mean(axis=1)
    means[[f["dimensions"] == 0 for f in found]] = np.inf
    setting = int(means.argmin())
    votes = np.flatnonzero(errors[setting] == errors[setting].min())
    return setting, int(votes[-1])


NOTES = [
    "'Chosen on validation': for each split alone, the setting and then k with the least error on "
    "folds of the training part; ± is the standard error over splits. 'Paper's rule' takes the "
    "setting and k of least mean error on the *test* parts, as the paper did ('best choice of C "
    "and k'), which flatters every method.",
]
HEADER = [
    "method, data",
    "paper",
    "chosen on validation",
    "paper's rule",
    "difference",
    "mode",
]


def _outcome(
    recipe: Recipe,
    sets: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    notes: list[str],
) -> Outcome:
    labels = list(dict.fromkeys(label for label, _ in cells))
    rows = [
        cells[k].row(", ".join(k))
        for k in itertools.product(labels, sets)
        if k in cells
    ]
    sizes = {
        label: [
            cells[label, s].dimensions if (label, s) in cells else np.nan for s in sets
        ]
        for label in labels
    }
    title = "Dimensions that hold 95 % of the spectral mass"
    tables = [
        Table("k-NN error in %", HEADER, rows),
        Table(
            title,
            ["method", *sets],
            [(k, *(_shown(v) for v in sizes[k])) for k in labels],
        ),
    ]
    picture = {"dimensions": lambda: grouped_bars(sets, sizes, title.lower(), log=True)}
    return Outcome(recipe, tables, [*NOTES, *notes], picture)


def _shown(size: float) -> str:
    return f"{size:.1f}" if np.isfinite(size) else "–"
