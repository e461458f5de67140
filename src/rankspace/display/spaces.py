"""Pictures of spaces and of what metrics are worth in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..evaluation.measures import evaluate
from ..evaluation.report import Report, compare
from ..relevance.relevance import Relevance
from ..search.index import Index
from .figures import BETTER, COLOURS, SHAPES, WORSE, axes, class_look, figure


class SpaceDisplay:
    """Held-out points as one or several metrics see them, each with its ranking error.

    Parameters
    ----------
    views : mapping of str to array-like of shape (n_points, 2)
        Places of the same points under each metric, by its name.
    labels : array-like of shape (n_points,)
        Class of each point.
    errors : mapping of str to float, optional
        The ranking error of each metric, for the titles: 0 is perfect, 1 is chance.

    Attributes
    ----------
    axes_, figure_
        Where it was drawn, one axes a metric.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from rankspace import PARCA
    >>> from rankspace.datasets import load_wine
    >>> from rankspace.display import SpaceDisplay
    >>> wine = load_wine()
    >>> train, test = wine.part(range(0, 178, 2)), wine.part(range(1, 178, 2))
    >>> models = {"PCA": PCA(2).fit(train.X), "PARCA": PARCA(reg=1e-4).fit(train.X, train.labels)}
    >>> display = SpaceDisplay.from_metrics(models, train.X, train.labels, test.X, test.labels)
    >>> len(display.axes_), display.errors["PARCA"] < display.errors["PCA"]
    (2, True)
    """

    def __init__(
        self,
        views: Mapping[str, Any],
        labels: Any,
        *,
        errors: Mapping[str, float] | None = None,
    ) -> None:
        self.views = {
            name: np.asarray(points, dtype=float) for name, points in views.items()
        }
        self.labels = np.asarray(labels)
        self.errors = dict(errors or {})
        for name, points in self.views.items():
            if points.shape != (self.labels.size, 2):
                raise ValueError(
                    f"views must place each of {self.labels.size} points in the plane: "
                    f"{name!r} has shape {points.shape}."
                )

    @classmethod
    def from_metrics(
        cls,
        metrics: Mapping[str, Any],
        X: Any,
        y: Any,
        X_held_out: Any,
        y_held_out: Any,
    ) -> Self:
        """Draw held-out points, which rank the points that the metrics were learned on.

        Parameters
        ----------
        metrics : mapping of str to estimator, transformer or LinearMetric
            Whatever has ``transform``, fitted. Of more than two dimensions, the two of the largest
            spread are drawn, and all count for the error; one dimension is drawn on a line.
        X, y : array-like of shape (n_items, n_features) and (n_items,)
            Points that were learned from, and their classes.
        X_held_out, y_held_out : array-like of shape (n_points, n_features) and (n_points,)
            Other points.

        Returns
        -------
        SpaceDisplay
        """
        relevance = Relevance.from_labels(y, query_labels=y_held_out)
        views, errors = {}, {}
        for name, metric in metrics.items():
            items, points = (
                np.asarray(metric.transform(part)) for part in (X, X_held_out)
            )
            report = evaluate(Index(items).blocks(points), relevance, "ranking-error")
            views[name], errors[name] = plane(points), report.means["ranking-error"]
        return cls(views, y_held_out, errors=errors).plot()

    def plot(self) -> Self:
        """Draw.

        Returns
        -------
        SpaceDisplay
        """
        self.figure_ = figure(len(self.views), (3.0 * len(self.views), 3.3))
        self.axes_ = self.figure_.axes
        for ax, (name, points) in zip(self.axes_, self.views.items(), strict=True):
            draw_points(ax, points, self.labels)
            error = self.errors.get(name)
            ax.set_title(
                name if error is None else f"{name}: ranking error {error:.3f}", size=10
            )
        return self


def plane(points: np.ndarray) -> np.ndarray:
    """Points in the two directions of their largest spread."""
    if points.shape[1] == 2:
        return points
    centred = points - points.mean(axis=0)
    if points.shape[1] == 1:
        return np.hstack((centred, np.zeros_like(centred)))
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


def draw_points(ax: Any, points: Any, labels: Any) -> None:
    """Points of the plane in the colours and shapes of their classes, both axes in one scale."""
    points, labels = np.asarray(points, dtype=float), np.asarray(labels)
    half = np.ptp(points, axis=0).max() / 2 or 1.0
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    for code, label in enumerate(np.unique(labels)):
        colour, shape = class_look(code)
        (dots,) = ax.plot(
            *points[labels == label].T,
            SHAPES[shape],
            markersize=3.5,
            label=str(label),
            color=COLOURS[colour],
            markeredgewidth=1.5 if SHAPES[shape] in "_|" else 0.0,
        )
        dots.set_gid(f"class {code}")
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.set(xlim=middle[0] + 1.1 * half * np.array([-1, 1]))
    ax.set(ylim=middle[1] + 1.1 * half * np.array([-1, 1]))


class LearningCurveDisplay:
    """An error against the share of the data that was learned from, with intervals.

    Parameters
    ----------
    ratios : array-like of shape (n_ratios,)
        Shares of the data that were learned from.
    errors : mapping of str to array-like of shape (n_ratios, n_splits)
        Error of each method, by its name, for each ratio and random split.
    title : str, optional
        What the data are.
    y_name : str, default="ranking error"
        What the error is.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from rankspace.display import LearningCurveDisplay
    >>> curves = {"PARCA": [[0.4, 0.5], [0.2, 0.3]], "PCA": [[0.6, 0.7], [0.6, 0.5]]}
    >>> LearningCurveDisplay([0.02, 0.1], curves).plot().ax_.get_ylabel()
    'ranking error'
    """

    def __init__(
        self,
        ratios: Any,
        errors: Mapping[str, Any],
        *,
        title: str | None = None,
        y_name: str = "ranking error",
    ) -> None:
        self.ratios = np.asarray(ratios, dtype=float)
        self.errors = {
            name: np.asarray(values, dtype=float) for name, values in errors.items()
        }
        self.title, self.y_name = title, y_name
        for name, values in self.errors.items():
            if values.ndim != 2 or len(values) != self.ratios.size:
                raise ValueError(
                    f"errors must have a row of splits for each of {self.ratios.size} ratios: "
                    f"{name!r} has shape {values.shape}."
                )

    def plot(self, *, ax: Any = None) -> Self:
        """Draw means, and bands of two standard errors to both sides.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        LearningCurveDisplay
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        for name, values in self.errors.items():
            mean, n = values.mean(axis=1), values.shape[1]
            (line,) = self.ax_.plot(100 * self.ratios, mean, ".-", label=name)
            if n > 1:
                half = 2 * values.std(axis=1, ddof=1) / np.sqrt(n)
                self.ax_.fill_between(
                    100 * self.ratios,
                    mean - half,
                    mean + half,
                    alpha=0.15,
                    color=line.get_color(),
                )
        self.ax_.set(xlabel="learned from, %", ylabel=self.y_name, title=self.title)
        self.ax_.legend(fontsize="small")
        return self


class GainsDisplay:
    """What each query gains or loses between two reports, largest gain first.

    Parameters
    ----------
    gains : array-like of shape (n_queries,)
        Gains, larger is better.
    measure : str, default="the measure"
        What is gained.

    Attributes
    ----------
    n_better_, n_worse_ : int
        Queries that gain, and that lose.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from rankspace.display import GainsDisplay
    >>> display = GainsDisplay([0.2, -0.1, 0.0, 0.3]).plot()
    >>> display.n_better_, display.n_worse_
    (2, 1)
    """

    def __init__(self, gains: Any, *, measure: str = "the measure") -> None:
        gains = np.asarray(gains, dtype=float)
        self.gains = np.sort(gains[np.isfinite(gains)])[::-1]
        self.measure = measure

    @classmethod
    def from_reports(
        cls,
        before: Report,
        after: Report,
        measure: str | None = None,
        *,
        ax: Any = None,
    ) -> Self:
        """Draw the gains of one measure.

        Parameters
        ----------
        before, after : Report
            Two reports of the same queries.
        measure : str, optional
            Which measure; the first by default. Where smaller is better, gains are falls.
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        GainsDisplay
        """
        compare(before, after)  # raises unless both are of the same queries
        measure = measure or next(iter(before.values))
        sign = -1.0 if measure in before.smaller_is_better else 1.0
        gains = sign * (after.values[measure] - before.values[measure])
        return cls(gains, measure=measure).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        GainsDisplay
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.n_better_, self.n_worse_ = (
            int(np.sum(self.gains > 0)),
            int(np.sum(self.gains < 0)),
        )
        edges = np.arange(self.gains.size + 1)
        self.ax_.stairs(np.maximum(self.gains, 0), edges, fill=True, color=BETTER)
        self.ax_.stairs(np.minimum(self.gains, 0), edges, fill=True, color=WORSE)
        self.ax_.set(
            xlabel="queries, largest gain first", ylabel=f"gain in {self.measure}"
        )
        self.ax_.set_title(f"{self.n_better_} better, {self.n_worse_} worse")
        return self
