"""Plots of held-out points, learning curves and per-query gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..evaluation.measures import evaluate
from ..evaluation.report import Report, compare
from ..relevance.relevance import Relevance
from ..search.index import Index
from .figures import BETTER, WORSE, Display, draw_points, figure, project_to_plane


class SpaceDisplay:
    """Scatter plots of held-out points under one or several metrics, with ranking errors.

    Parameters
    ----------
    views : mapping of str to array-like of shape (n_points, 2)
        The same points in the plane under each metric, by its name.
    labels : array-like of shape (n_points,)
        Class of each point.
    errors : mapping of str to float, optional
        The ranking error of each metric, for the titles: 0 is perfect, 1 a random order.

    Attributes
    ----------
    axes_, figure_
        Matplotlib axes, one per metric, and the figure.

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
        self.views = {}
        self.labels = np.asarray(labels)
        self.errors = dict(errors or {})
        for name, view in views.items():
            points = np.asarray(view, dtype=float)
            if points.shape != (self.labels.size, 2):
                raise ValueError(
                    f"views must place each of {self.labels.size} points in the plane: "
                    f"{name!r} has shape {points.shape}."
                )
            self.views[name] = points

    @classmethod
    def from_metrics(
        cls,
        metrics: Mapping[str, Any],
        X: Any,
        y: Any,
        X_held_out: Any,
        y_held_out: Any,
    ) -> Self:
        """Plot held-out points; as queries they rank the training points by Euclidean distance.

        Parameters
        ----------
        metrics : mapping of str to estimator, transformer or LinearMetric
            Fitted objects with a ``transform`` method. More than two dimensions are projected to
            the first two principal components for the plot, not for the error; one dimension is
            drawn on a line.
        X, y : array-like of shape (n_items, n_features) and (n_items,)
            Training points and their classes.
        X_held_out, y_held_out : array-like of shape (n_points, n_features) and (n_points,)
            Held-out points and their classes.

        Returns
        -------
        SpaceDisplay
        """
        relevance = Relevance.from_labels(y, query_labels=y_held_out)
        views = {}
        errors = {}
        for name, metric in metrics.items():
            items = np.asarray(metric.transform(X))
            points = np.asarray(metric.transform(X_held_out))
            report = evaluate(Index(items).blocks(points), relevance, "ranking-error")
            views[name] = project_to_plane(points)
            errors[name] = report.means["ranking-error"]
        return cls(views, y_held_out, errors=errors).plot()

    def plot(self) -> Self:
        """Draw the plot.

        Returns
        -------
        SpaceDisplay
        """
        self.figure_ = figure(len(self.views), (3.0 * len(self.views), 3.3))
        self.axes_ = self.figure_.axes
        for ax, (name, points) in zip(self.axes_, self.views.items(), strict=True):
            draw_points(ax, points, self.labels)
            title = name
            if name in self.errors:
                title += f": ranking error {self.errors[name]:.3f}"
            ax.set_title(title, size=10)
        return self


class LearningCurveDisplay(Display):
    """Learning curves: error against the share of training data, with error bands.

    Parameters
    ----------
    ratios : array-like of shape (n_ratios,)
        Shares of the data used for training.
    errors : mapping of str to array-like of shape (n_ratios, n_splits)
        Error of each method, by its name, for each ratio and random split.
    title : str, optional
        Title of the plot.
    y_name : str, default="ranking error"
        Label of the y axis.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure of the plot.

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
        self.errors = {}
        self.title = title
        self.y_name = y_name
        for name, method_errors in errors.items():
            values = np.asarray(method_errors, dtype=float)
            if values.ndim != 2 or len(values) != self.ratios.size:
                raise ValueError(
                    f"errors must have a row of splits for each of {self.ratios.size} ratios: "
                    f"{name!r} has shape {values.shape}."
                )
            self.errors[name] = values

    def _draw(self) -> None:
        percent = 100 * self.ratios
        for name, values in self.errors.items():
            mean = values.mean(axis=1)
            n_splits = values.shape[1]
            (line,) = self.ax_.plot(percent, mean, ".-", label=name)
            if n_splits > 1:
                half = 2 * values.std(axis=1, ddof=1) / np.sqrt(n_splits)
                low = mean - half
                high = mean + half
                colour = line.get_color()
                self.ax_.fill_between(percent, low, high, alpha=0.15, color=colour)
        self.ax_.set(xlabel="training data, %", ylabel=self.y_name, title=self.title)
        self.ax_.legend(fontsize="small")


class GainsDisplay(Display):
    """Bar chart of the gain or loss of each query between two reports, largest gain first.

    Parameters
    ----------
    gains : array-like of shape (n_queries,)
        Gains; positive is better.
    measure : str, default="the measure"
        Name of the measure, for the axis.

    Attributes
    ----------
    n_better_, n_worse_ : int
        Number of queries that gain, and that lose.
    ax_, figure_
        Matplotlib axes and figure of the plot.

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
        """Plot the gains in one measure.

        Parameters
        ----------
        before, after : Report
            Two reports of the same queries.
        measure : str, optional
            The measure; the first by default. A decrease is a gain if smaller is better.
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        GainsDisplay
        """
        compare(before, after)  # raises if the queries differ
        measure = measure or next(iter(before.values))
        gains = after.values[measure] - before.values[measure]
        if measure in before.smaller_is_better:
            gains = -gains
        return cls(gains, measure=measure).plot(ax=ax)

    def _draw(self) -> None:
        self.n_better_ = int(np.sum(self.gains > 0))
        self.n_worse_ = int(np.sum(self.gains < 0))
        edges = np.arange(self.gains.size + 1)
        self.ax_.stairs(np.maximum(self.gains, 0), edges, fill=True, color=BETTER)
        self.ax_.stairs(np.minimum(self.gains, 0), edges, fill=True, color=WORSE)
        self.ax_.set(
            xlabel="queries, largest gain first", ylabel=f"gain in {self.measure}"
        )
        self.ax_.set_title(f"{self.n_better_} better, {self.n_worse_} worse")
