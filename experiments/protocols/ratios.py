"""Learning curves: ranking error against the training fraction, and views of the spaces."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from rankspace import Index, Relevance, evaluate
from rankspace.display import LearningCurveDisplay, SpaceDisplay

from ..methods import fit_estimator
from ..pictures import subplots
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from .prepared import Prepared, available_sets, prepare, source

MIN_PER_CLASS = 2  # training rows: fewer teach nothing
MAX_SHOWN = 1000  # points of a view
NCA_STARTS = ("lda", "pca", "random")

# Errors by ratio and split, for each data set and method.
Errors = Mapping[tuple[str, str], np.ndarray]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Curves of all methods on all data sets at hand, and views."""
    sets, notes = available_sets(recipe.content["datasets"])
    methods, options = recipe.content["methods"], recipe.options
    ratios, n_splits = options["ratios"], options["n_splits"]
    errors, sizes = {}, {}
    pairs = list(itertools.product(sets, methods))
    pieces = [
        (source(data), method, ratio, split, options["n_queries"])
        for data, method in pairs
        for ratio, split in itertools.product(ratios, range(n_splits))
    ]
    results = np.array(jobs.map(one_piece, pieces))
    results = results.reshape(len(pairs), len(ratios), n_splits, 2)
    for (data, method), values in zip(pairs, results, strict=True):
        errors[data["label"], method["label"]] = values[:, :, 0]
        sizes[data["label"]] = values[:, 0, 1]
    labels = [method["label"] for method in methods]
    tables = []
    for data in sets:
        name = data["label"]
        tables.append(_errors_table(name, labels, errors, ratios, sizes[name]))
        tables.append(_differences_table(name, labels, errors, ratios))
    names = [data["label"] for data in sets]
    pictures: dict[str, Any] = {
        "curves": partial(_curves, names, labels, errors, ratios)
    }
    for view in recipe.content.get("views", []):
        for data in sets:
            if data["label"] == view["dataset"]:
                display = _view(view, data, methods, jobs, options["n_queries"])
                pictures[view["name"]] = partial(_draw, display)
    return Outcome(recipe, tables, [*recipe.content.get("notes", []), *notes], pictures)


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any],
    method: Mapping[str, Any],
    ratio: float,
    split: int,
    n_queries: int,
) -> list[float]:
    """Ranking error of held-out points, and the number of training points."""
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
    shown = others[: min(n_queries, MAX_SHOWN)]
    error = _error(L, whole, rows, others[:n_queries])
    places = np.zeros((shown.size, 2))
    places[:, : min(2, len(L))] = _embed(whole.X[shown], L)[:, :2]
    return [np.round(places, 6).tolist(), whole.y[shown].tolist(), error]


def split_rows(
    y: np.ndarray, ratio: float, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """Stratified split: training rows, at least two of each class, and all others, shuffled."""
    rng = np.random.default_rng(split)
    chosen = []
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        chosen.append(members[: max(MIN_PER_CLASS, round(ratio * members.size))])
    rows = np.sort(np.concatenate(chosen))
    return rows, rng.permutation(np.setdiff1d(np.arange(y.size), rows))


def _embed(X: Any, L: np.ndarray | None) -> np.ndarray:
    if L is None:
        return _dense(X)
    return np.asarray(X @ L.T)


def _dense(X: Any) -> np.ndarray:
    if scipy.sparse.issparse(X):
        return X.toarray()
    return X


def _error(
    L: np.ndarray | None, whole: Prepared, rows: np.ndarray, others: np.ndarray
) -> float:
    relevance = Relevance.from_labels(whole.y[rows], query_labels=whole.y[others])
    index = Index(_embed(whole.X[rows], L))
    blocks = index.blocks(_embed(whole.X[others], L))
    return float(evaluate(blocks, relevance, "ranking-error").means["ranking-error"])


# ---------------------------------------------------------------------- methods


def learn(
    method: Mapping[str, Any], whole: Prepared, rows: np.ndarray, seed: int
) -> Any:
    """Components by any estimator, or by PCA, LDA or NCA; None for all features unchanged."""
    X, y = whole.X[rows], whole.y[rows]
    name, fixed = method["estimator"], method.get("fixed", {})
    if name == "Euclidean":
        return None
    if name not in ("PARCA", "LogisticPARCA"):
        X = _dense(X)
    if name == "PCA":
        return PCA(2).fit(X).components_
    if name == "LDA":
        return discriminant(X, y, **fixed)
    if name == "NCA":
        starts = method.get("starts", NCA_STARTS)
        fits = [_nca(X, y, start, fixed, seed) for start in starts]
        return max(fits, key=lambda L: _nca_objective(X @ L.T, y))
    if "." not in name:
        fixed = {**fixed, "random_state": seed}
    return fit_estimator(name, fixed, X, y).components_


def discriminant(X: np.ndarray, y: np.ndarray, eps: float) -> np.ndarray:
    """LDA of the paper: leading directions of (S_W + eps I)^-1 S_B, with equal class weights.

    ``eps`` is in units of the mean variance within classes.
    """
    labels = np.unique(y)
    means = np.array([X[y == label].mean(axis=0) for label in labels])
    inner = X - means[np.searchsorted(labels, y)]
    within = inner.T @ inner
    d = X.shape[1]
    within += eps * np.trace(within) / d * np.eye(d)
    outer = means - means.mean(axis=0)
    k = min(2, len(labels) - 1)
    last = (d - k, d - 1)
    _, vectors = scipy.linalg.eigh(outer.T @ outer, within, subset_by_index=last)
    return vectors[:, ::-1].T


def _nca(X: np.ndarray, y: np.ndarray, start: str, fixed: Any, seed: int) -> np.ndarray:
    if start == "lda" and len(np.unique(y)) < 3:
        start = "pca"  # two classes have one discriminant direction, and two are needed
    nca = NeighborhoodComponentsAnalysis(2, init=start, random_state=seed, **fixed)
    return nca.fit(X, y).components_


def _nca_objective(Z: np.ndarray, y: np.ndarray) -> float:
    """Objective of NCA: mean probability that a point draws a neighbour of its class."""
    squares = np.sum(Z**2, axis=1)
    logits = 2 * Z @ Z.T - squares - squares[:, None]
    np.fill_diagonal(logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    same_class = np.where(y[:, None] == y, weights, 0).sum(axis=1)
    return float(np.mean(same_class / weights.sum(axis=1)))


# ---------------------------------------------------------------------- tables and pictures


def _errors_table(
    data: str,
    methods: Sequence[str],
    errors: Errors,
    ratios: Sequence[float],
    sizes: np.ndarray,
) -> Table:
    rows = [
        (name, *(_mean(values) for values in errors[data, name])) for name in methods
    ]
    heads = [
        f"{100 * ratio:g} % (n = {n:.0f})"
        for ratio, n in zip(ratios, sizes, strict=True)
    ]
    n_splits = errors[data, methods[0]].shape[1]
    title = f"{data}: ranking error, {n_splits} splits"
    return Table(title, ["method", *heads], rows)


def _differences_table(
    data: str, methods: Sequence[str], errors: Errors, ratios: Sequence[float]
) -> Table:
    """How far each other method is above the first, on the same splits."""
    first = methods[0]
    rows = []
    for name in methods[1:]:
        gaps = errors[data, name] - errors[data, first]
        rows.append((name, *(_mean(gap, sign="+") for gap in gaps)))
    title = f"{data}: error above that of {first}, split by split"
    return Table(title, ["method", *(f"{100 * ratio:g} %" for ratio in ratios)], rows)


def _mean(values: np.ndarray, sign: str = "") -> str:
    """Mean over splits, and its standard error if there are several."""
    mean = f"{values.mean():{sign}.3f}"
    if values.size == 1:
        return mean
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


def _curves(
    sets: Sequence[str],
    methods: Sequence[str],
    errors: Errors,
    ratios: Sequence[float],
) -> Any:
    figure = subplots(len(sets), (4.0 * len(sets), 3.8))
    for ax, data in zip(figure.axes, sets, strict=True):
        lines = {name: errors[data, name] for name in methods}
        LearningCurveDisplay(ratios, lines, title=data).plot(ax=ax)
    return figure


def _view(
    view: Mapping[str, Any],
    data: Mapping[str, Any],
    methods: Sequence[Mapping[str, Any]],
    jobs: Jobs,
    n_queries: int,
) -> SpaceDisplay:
    """Held-out points under every method that maps to the plane."""
    drawn = [method for method in methods if method["label"] in view["methods"]]
    pieces = [(source(data), method, view["ratio"], 0, n_queries) for method in drawn]
    views, errors, labels = {}, {}, []
    for method, result in zip(drawn, jobs.map(one_view, pieces), strict=True):
        places, labels, error = result
        views[method["label"]] = places
        errors[method["label"]] = error
    return SpaceDisplay(views, labels, errors=errors)


def _draw(display: SpaceDisplay) -> Any:
    return display.plot().figure_
