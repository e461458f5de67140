"""Ranking error against the share of the data that is learned from, and views of the spaces."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from ..display.figures import figure
from ..display.plots import LearningCurveDisplay, SpaceDisplay
from ..evaluation.measures import evaluate
from ..relevance.relevance import Relevance
from ..search.index import Index
from ._methods import fit_estimator
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table
from .prepared import Prepared, prepare

FEWEST = 2  # rows of each class to learn from: fewer teach nothing
MOST_SHOWN = 1000  # points of a view
NCA_STARTS = ("lda", "pca", "random")


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Curves of all methods on all data sets at hand, and views."""
    sets, notes = at_hand(recipe.content["datasets"])
    methods, options = recipe.content["methods"], recipe.options
    runs = [
        (data, method, ratio, split)
        for data, method in itertools.product(sets, methods)
        for ratio in options["ratios"]
        for split in range(options["n_splits"])
    ]
    pieces = [(core(d), m, r, s, options["n_queries"]) for d, m, r, s in runs]
    found: dict[tuple[str, str], list[Any]] = {}
    for (data, method, *_), result in zip(
        runs, jobs.map(one_piece, pieces), strict=True
    ):
        found.setdefault((data["label"], method["label"]), []).append(result)
    tables = [
        table(data, methods, found, options)
        for data in sets
        for table in (_errors_table, _differences_table)
    ]
    pictures: dict[str, Any] = {
        "curves": lambda: _curves(sets, methods, found, options)
    }
    for view in recipe.content.get("views", []):
        if shown := [data for data in sets if data["label"] == view["dataset"]]:
            pictures[view["name"]] = _view_picture(
                view, shown[0], methods, jobs, options
            )
    return Outcome(recipe, tables, [*recipe.content.get("notes", []), *notes], pictures)


def at_hand(
    sets: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The data sets whose files are there, and remarks on the others."""
    kept, notes = [], []
    for data in sets:
        try:
            prepare(**core(data))
            kept.append(data)
        except FileNotFoundError as error:
            notes.append(f"Left out: {data['label']}. {error}")
    if not kept:
        raise FileNotFoundError(" ".join(notes))
    return kept, notes


def core(data: Mapping[str, Any]) -> dict[str, Any]:
    """What tells how a data set is prepared."""
    return {key: data[key] for key in ("name", "per_class", "n_words") if key in data}


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any],
    method: Mapping[str, Any],
    ratio: float,
    split: int,
    n_queries: int,
) -> list[float]:
    """Ranking error of held-out points, and number of points learned from."""
    whole = prepare(**data)
    rows, others = split_rows(whole.y, ratio, split)
    L = learn(method, whole, rows, split)
    return [_error(L, whole, rows, others[:n_queries]), float(rows.size)]


def one_view(
    data: Mapping[str, Any],
    method: Mapping[str, Any],
    ratio: float,
    split: int,
    n_queries: int,
) -> list[Any]:
    """Held-out points in the plane, their classes, and their ranking error."""
    whole = prepare(**data)
    rows, others = split_rows(whole.y, ratio, split)
    L = learn(method, whole, rows, split)
    shown = others[: min(n_queries, MOST_SHOWN)]
    error = _error(L, whole, rows, others[:n_queries])
    places = np.zeros((shown.size, 2))
    places[:, : min(2, len(L))] = _embed(whole.X[shown], L)[:, :2]
    return [np.round(places, 6).tolist(), whole.y[shown].tolist(), error]


def split_rows(
    y: np.ndarray, ratio: float, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from, a share of each class but at least two, and all others, shuffled."""
    rng = np.random.default_rng(split)
    chosen = []
    for label in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == label))
        chosen.append(own[: max(FEWEST, round(ratio * own.size))])
    rows = np.sort(np.concatenate(chosen))
    return rows, rng.permutation(np.setdiff1d(np.arange(y.size), rows))


def _embed(X: Any, L: np.ndarray | None) -> np.ndarray:
    if L is None:
        return X.toarray() if scipy.sparse.issparse(X) else X
    return np.asarray(X @ L.T)


def _error(
    L: np.ndarray | None, whole: Prepared, rows: np.ndarray, others: np.ndarray
) -> float:
    relevance = Relevance.from_labels(whole.y[rows], query_labels=whole.y[others])
    items, points = (_embed(whole.X[part], L) for part in (rows, others))
    report = evaluate(Index(items).blocks(points), relevance, "ranking-error")
    return float(report.means["ranking-error"])


# ---------------------------------------------------------------------- methods


def learn(
    method: Mapping[str, Any], whole: Prepared, rows: np.ndarray, seed: int
) -> Any:
    """Components by a method of rankspace or scikit-learn; None for all features as they are."""
    X, y = whole.X[rows], whole.y[rows]
    name, fixed = method["estimator"], method.get("fixed", {})
    if name == "Euclidean":
        return None
    if name in ("PARCA", "LogisticPARCA"):
        return fit_estimator(name, {**fixed, "random_state": seed}, X, y).components_
    X = X.toarray() if scipy.sparse.issparse(X) else X
    if name == "PCA":
        return PCA(2).fit(X).components_
    if name == "LDA":
        return discriminant(X, y, **fixed)
    if name == "NCA":
        starts = method.get("starts", NCA_STARTS)
        fits = [_nca(X, y, start, fixed, seed) for start in starts]
        return max(fits, key=lambda L: _nca_objective(X @ L.T, y))
    return fit_estimator(name, {**fixed, "random_state": seed}, X, y).components_


def discriminant(X: np.ndarray, y: np.ndarray, eps: float) -> np.ndarray:
    """LDA as the paper has it: leading directions of (S_W + eps I)^-1 S_B, classes counting alike.

    ``eps`` is in units of the mean variance within classes.
    """
    labels = np.unique(y)
    means = np.array([X[y == label].mean(axis=0) for label in labels])
    inner = X - means[np.searchsorted(labels, y)]
    within, d = inner.T @ inner, X.shape[1]
    within += eps * np.trace(within) / d * np.eye(d)
    outer = means - means.mean(axis=0)
    k = min(2, len(labels) - 1)
    return scipy.linalg.eigh(outer.T @ outer, within, subset_by_index=(d - k, d - 1))[
        1
    ][:, ::-1].T


def _nca(X: np.ndarray, y: np.ndarray, start: str, fixed: Any, seed: int) -> np.ndarray:
    if start == "lda" and len(np.unique(y)) < 3:
        start = "pca"  # two classes have one discriminant direction, and two are wanted
    nca = NeighborhoodComponentsAnalysis(2, init=start, random_state=seed, **fixed)
    return nca.fit(X, y).components_


def _nca_objective(Z: np.ndarray, y: np.ndarray) -> float:
    """Mean chance that a point draws a neighbour of its class."""
    squares = np.sum(Z**2, axis=1)
    logits = 2 * Z @ Z.T - squares - squares[:, None]
    np.fill_diagonal(logits, -np.inf)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    own = np.where(y[:, None] == y, chances, 0).sum(axis=1)
    return float(np.mean(own / chances.sum(axis=1)))


# ---------------------------------------------------------------------- tables and pictures


def _errors_table(
    data: Mapping[str, Any],
    methods: Any,
    found: Mapping[Any, Any],
    options: Mapping[str, Any],
) -> Table:
    rows = []
    for method in methods:
        values = _values(found, data, method, options)
        rows.append((method["label"], *(_mean(v[:, 0]) for v in values)))
    sizes = _values(found, data, methods[0], options)[:, 0, 1]
    heads = [
        f"{100 * r:g} % (n = {n:.0f})"
        for r, n in zip(options["ratios"], sizes, strict=True)
    ]
    title = f"{data['label']}: ranking error, {options['n_splits']} splits"
    return Table(title, ["method", *heads], rows)


def _differences_table(
    data: Mapping[str, Any],
    methods: Any,
    found: Mapping[Any, Any],
    options: Mapping[str, Any],
) -> Table:
    """How far each other method is above the first, on the same splits."""
    first, rows = _values(found, data, methods[0], options)[:, :, 0], []
    for method in methods[1:]:
        gaps = _values(found, data, method, options)[:, :, 0] - first
        rows.append((method["label"], *(_mean(gap, sign="+") for gap in gaps)))
    title = (
        f"{data['label']}: error above that of {methods[0]['label']}, split by split"
    )
    return Table(
        title, ["method", *(f"{100 * ratio:g} %" for ratio in options["ratios"])], rows
    )


def _values(
    found: Mapping[Any, Any],
    data: Mapping[str, Any],
    method: Any,
    options: Mapping[str, Any],
) -> Any:
    """Results by ratio, split and kind."""
    results = found[data["label"], method["label"]]
    return np.array(results).reshape(len(options["ratios"]), -1, 2)


def _mean(values: np.ndarray, sign: str = "") -> str:
    """Mean over splits, and its standard error if there are several."""
    mean = f"{values.mean():{sign}.3f}"
    if values.size == 1:
        return mean
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


def _curves(
    sets: Any, methods: Any, found: Mapping[Any, Any], options: Mapping[str, Any]
) -> Any:
    drawn = figure(len(sets), (4.0 * len(sets), 3.8))
    for ax, data in zip(drawn.axes, sets, strict=True):
        errors = {
            m["label"]: _values(found, data, m, options)[:, :, 0] for m in methods
        }
        LearningCurveDisplay(options["ratios"], errors, title=data["label"]).plot(ax=ax)
    return drawn


def _view_picture(view: Any, data: Any, methods: Any, jobs: Jobs, options: Any) -> Any:
    """A function that draws held-out points under every method that maps to the plane."""
    drawn = [m for m in methods if m["label"] in view["methods"]]
    pieces = [(core(data), m, view["ratio"], 0, options["n_queries"]) for m in drawn]
    found = jobs.map(one_view, pieces)
    views = {m["label"]: places for m, (places, _, _) in zip(drawn, found, strict=True)}
    errors = {m["label"]: error for m, (_, _, error) in zip(drawn, found, strict=True)}
    return lambda: SpaceDisplay(views, found[0][1], errors=errors).plot().figure_
