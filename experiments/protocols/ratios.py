"""Learning curves: ranking error against the training fraction, and views of the spaces."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from rankspace import Index, Relevance, evaluate
from rankspace.display import LearningCurveDisplay, SpaceDisplay
from rankspace.relevance.splits import ENOUGH_HELD_OUT, N_FOLDS

from ..methods import fit_estimator
from ..pictures import subplots
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from ..tables import estimate, holm
from .prepared import Prepared, available_sets, prepare, source

MIN_PER_CLASS = 2  # training rows: fewer teach nothing
MAX_SHOWN = 1000  # points of a view
NCA_STARTS = ("lda", "pca", "random")
# As many as PARCA has penalties to choose from.
SHRINKAGES = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0)
N_ITML_FOLDS = 2
PAIRED = (
    "Paired tests: 'p' tables give p-values of t-tests of the differences split by split, "
    "corrected for the number of rows by Holm's rule. They speak of the mean over random "
    "splits of this data set, not of other data."
)

# Errors by ratio and split, for each data set and method.
Errors = Mapping[tuple[str, str], np.ndarray]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Curves of all methods on all data sets at hand, and views."""
    sets, notes = available_sets(recipe.content["datasets"])
    methods, options = recipe.content["methods"], recipe.options
    ratios, n_splits = options["ratios"], options["n_splits"]
    errors, sizes = {}, {}
    pairs = list(itertools.product(sets, methods))
    # Split by split, so that a run that is cut short has some splits of everything.
    pieces = [
        (source(data), method, ratio, split, options["n_queries"])
        for split in range(n_splits)
        for (data, method), ratio in itertools.product(pairs, ratios)
    ]
    results = np.array(jobs.map(one_piece, pieces))
    results = results.reshape(n_splits, len(pairs), len(ratios), 2)
    results = results.transpose(1, 2, 0, 3)
    for (data, method), values in zip(pairs, results, strict=True):
        errors[data["label"], method["label"]] = values[:, :, 0]
        sizes[data["label"]] = values[:, 0, 1]
    labels = [method["label"] for method in methods]
    tables = []
    for data in sets:
        name = data["label"]
        tables.append(_errors_table(name, labels, errors, ratios, sizes[name]))
        tables.append(_differences_table(name, labels, errors, ratios))
        if n_splits > 1:
            tables.append(_p_values_table(name, labels, errors, ratios))
    names = [data["label"] for data in sets]
    pictures: dict[str, Any] = {
        "curves": partial(_curves, names, labels, errors, ratios)
    }
    for view in recipe.content.get("views", []):
        for data in sets:
            if data["label"] == view["dataset"]:
                display = _view(view, data, methods, jobs, options["n_queries"])
                pictures[view["name"]] = partial(_draw, display)
    notes = [*recipe.content.get("notes", []), PAIRED, *notes]
    return Outcome(recipe, tables, notes, pictures)


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
        return discriminant(X, y, **fixed, seed=seed)
    if name == "ITML":
        return _itml(X, y, fixed, seed)
    if name == "NCA":
        starts = method.get("starts", NCA_STARTS)
        fits = [_nca(X, y, start, fixed, seed) for start in starts]
        return max(fits, key=lambda L: _nca_objective(X @ L.T, y))
    if "." not in name:
        fixed = {**fixed, "random_state": seed}
    return fit_estimator(name, fixed, X, y).components_


class Discriminants(NamedTuple):
    """Scatter matrices of some classes, for LDA with any shrinkage at the cost of one.

    Parameters
    ----------
    vectors, values : ndarray
        Eigenvectors of the scatter within classes, and its positive eigenvalues.
    unit : float
        The mean eigenvalue, in units of which ``eps`` is given.
    between : ndarray of shape (n_features, n_classes)
        B with scatter between classes B B'.
    """

    vectors: np.ndarray
    values: np.ndarray
    unit: float
    between: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, form: str) -> Discriminants:
        """The scatter between classes is that of their means around ``form``."""
        labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        means = np.array([X[codes == c].mean(axis=0) for c in range(labels.size)])
        inner = X - means[codes]
        _, lengths, rows = np.linalg.svd(inner, full_matrices=False)
        values = lengths**2
        kept = values > values.max() * 1e-12
        centre = X.mean(axis=0)
        if form == "class means":
            centre = means.mean(axis=0)
        outer = means - centre
        if form == "textbook":
            outer *= np.sqrt(counts)[:, None]
        unit = values.sum() / X.shape[1]
        return cls(rows[kept].T, values[kept], unit, outer.T)

    def directions(self, eps: float) -> np.ndarray:
        """Leading directions of (S_W + eps I)^-1 S_B, two or as many as there are."""
        shrinkage = eps * self.unit
        inside = self.vectors.T @ self.between
        outside = self.between - self.vectors @ inside
        solved = self.vectors @ (inside / (self.values + shrinkage)[:, None])
        if shrinkage > 0:
            solved += outside / shrinkage
        k = min(2, self.between.shape[1] - 1)
        values, vectors = np.linalg.eigh(self.between.T @ solved)
        leading = slice(-1, -k - 1, -1)
        lengths = np.sqrt(np.maximum(values[leading], np.finfo(float).tiny))
        return ((solved @ vectors[:, leading]) / lengths).T


def discriminant(
    X: np.ndarray,
    y: np.ndarray,
    eps: float | None = None,
    form: str = "data",
    seed: int = 0,
) -> np.ndarray:
    """LDA: leading directions of (S_W + eps I)^-1 S_B.

    Parameters
    ----------
    eps : float, optional
        Shrinkage, in units of the mean variance within classes. By default, that of `SHRINKAGES`
        with the least ranking error on held-out rows.
    form : {"data", "class means", "textbook"}
        S_B sums over classes: around the mean of the data, as in the PARCA paper; around the mean
        of the class means; or around the mean of the data, with classes weighted by their size.
    """
    if eps is None:
        errors = np.zeros(len(SHRINKAGES))
        for rows, others in validation_folds(y, seed):
            scatter = Discriminants.of(X[rows], y[rows], form)
            for i, tried in enumerate(SHRINKAGES):
                L = scatter.directions(tried)
                errors[i] += others.size * _held_out_error(L, X, y, rows, others)
        eps = SHRINKAGES[int(errors.argmin())]
    return Discriminants.of(X, y, form).directions(eps)


def validation_folds(y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of training rows to choose settings by, as many and as large as those of PARCA.

    A fold is left out if the others have no pair of one class, or one class only.
    """
    order = np.random.default_rng(seed).permutation(y.size)
    folds = []
    n_held_out = 0
    for fold in np.array_split(order, N_FOLDS):
        rows = np.sort(np.setdiff1d(order, fold))
        counts = np.unique(y[rows], return_counts=True)[1]
        teaches = counts.size > 1 and counts.max() > 1
        if fold.size and teaches and n_held_out < ENOUGH_HELD_OUT:
            others = np.sort(fold[:ENOUGH_HELD_OUT])
            folds.append((rows, others))
            n_held_out += others.size
    return folds


def _held_out_error(
    L: np.ndarray | None, X: Any, y: np.ndarray, rows: np.ndarray, others: np.ndarray
) -> float:
    """Ranking error of held-out training rows; 0, as for all settings, if none can be ranked."""
    error = _error(L, Prepared(X, y, None), rows, others)
    return 0.0 if np.isnan(error) else error


def _itml(X: np.ndarray, y: np.ndarray, fixed: Mapping[str, Any], seed: int) -> Any:
    """ITML; a list of gammas is tried on held-out rows, of two folds for the time it takes."""
    fixed = {**fixed, "random_state": seed}
    gammas = fixed.pop("gammas", [])
    if gammas:
        errors = np.zeros(len(gammas))
        for rows, others in validation_folds(y, seed)[:N_ITML_FOLDS]:
            for i, gamma in enumerate(gammas):
                setting = {**fixed, "gamma": gamma}
                model = fit_estimator("ITML", setting, X[rows], y[rows])
                L = model.components_
                errors[i] += others.size * _held_out_error(L, X, y, rows, others)
        fixed["gamma"] = gammas[int(errors.argmin())]
    return fit_estimator("ITML", fixed, X, y).components_


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


def _p_values_table(
    data: str, methods: Sequence[str], errors: Errors, ratios: Sequence[float]
) -> Table:
    """Paired t-tests of these differences, for each ratio corrected by Holm's rule."""
    first, *others = methods
    columns = []
    for i in range(len(ratios)):
        gaps = [errors[data, name][i] - errors[data, first][i] for name in others]
        columns.append(holm([estimate(gap, 0.0).p for gap in gaps]))
    rows = [
        (name, *(f"{column[i]:.4f}" for column in columns))
        for i, name in enumerate(others)
    ]
    title = f"{data}: p (Holm) of these differences"
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
