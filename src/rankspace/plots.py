"""Pictures of metrics and of how they were learned; needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from .metric import LinearMetric


def _figure(n: int = 1, size: tuple[float, float] = (5.0, 3.5)) -> Any:
    """A figure with some axes in a row."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it with pip install 'rankspace[plot]'."
        ) from error
    return plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[0]


def _axes(ax: Any) -> Any:
    return _figure().axes[0] if ax is None else ax


class ConvergenceDisplay:
    """The two bounds on the optimum of MLR as they close in on each other.

    Parameters
    ----------
    history : list of dict
        The attribute ``history_`` of a fitted `MLR`, `RobustMLR` or `SVMMAP`.
    name : str, optional
        What to call it in the legend.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from rankspace import MLR
    >>> from rankspace.datasets import load_wine
    >>> from rankspace.plots import ConvergenceDisplay
    >>> wine = load_wine()
    >>> model = MLR(measure="auc").fit(wine.X, wine.labels)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'round'
    """

    def __init__(self, history: Sequence[Mapping[str, float]], *, name: str | None = None) -> None:
        self.history = history
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw a fitted estimator's history.

        Parameters
        ----------
        estimator : MLR, RobustMLR or SVMMAP
            A fitted one.
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        ConvergenceDisplay
        """
        history: Any = getattr(estimator, "history_", None)
        row = history[0] if history else None
        if not isinstance(row, dict) or not np.isfinite(row.get("upper", np.nan)):
            raise ValueError(
                "estimator must have a history_ of bounds, as a fitted MLR without batch_size has "
                f"(of an MLRCV its model_): got {estimator!r}."
            )
        return cls(history, name=type(estimator).__name__).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        ConvergenceDisplay
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        rounds = np.arange(1, len(self.history) + 1)
        upper, lower = (np.array([row[key] for row in self.history]) for key in ("upper", "lower"))
        self.ax_.step(rounds, upper, where="post", label="best objective so far")
        self.ax_.step(rounds, lower, where="post", label="lower bound")
        self.ax_.fill_between(rounds, lower, upper, step="post", alpha=0.15)
        self.ax_.set(xlabel="round", ylabel="objective", title=self.name)
        self.ax_.legend()
        return self


class SpectrumDisplay:
    """How much of a metric each of its directions holds.

    Parameters
    ----------
    spectrum : array-like of shape (n_components,)
        Eigenvalues of W, largest first.
    mass : float, default=0.95
        The share whose number of directions is marked.

    Attributes
    ----------
    n_directions_ : int
        Directions that hold that share; 0 for a metric that is zero.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.plots import SpectrumDisplay
    >>> SpectrumDisplay.from_metric(LinearMetric([[9.0, 0.0], [0.0, 1.0]])).n_directions_
    1
    """

    def __init__(self, spectrum: Any, *, mass: float = 0.95) -> None:
        self.spectrum = np.asarray(spectrum, dtype=float)
        self.mass = mass

    @classmethod
    def from_metric(cls, metric: LinearMetric, *, mass: float = 0.95, ax: Any = None) -> Self:
        """Draw the spectrum of a linear metric.

        Parameters
        ----------
        metric : LinearMetric
            Such as ``estimator.metric_``.
        mass : float, default=0.95
            The share whose number of directions is marked.
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        SpectrumDisplay
        """
        return cls(metric.spectrum, mass=mass).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        SpectrumDisplay
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.n_directions_ = n_directions(self.spectrum, self.mass)
        share = self.spectrum / (self.spectrum.sum() or 1.0)
        numbers = np.arange(1, share.size + 1)
        self.ax_.bar(numbers, share, label="share of a direction")
        self.ax_.plot(numbers, np.cumsum(share), "k.-", label="share of all up to it")
        self.ax_.axvline(self.n_directions_ + 0.5, color="grey", linestyle=":")
        self.ax_.set(xlabel="direction", ylabel="share of tr(W)", ylim=(0, 1.05))
        self.ax_.set_title(f"{self.n_directions_} directions hold {self.mass:.0%}")
        self.ax_.legend()
        return self


def n_directions(spectrum: Any, mass: float = 0.95) -> int:
    """How many of the largest eigenvalues hold a share of their sum.

    Parameters
    ----------
    spectrum : array-like
        Eigenvalues, largest first.
    mass : float, default=0.95
        The share.

    Returns
    -------
    int
        0 if all are zero.

    Examples
    --------
    >>> from rankspace.plots import n_directions
    >>> n_directions([3.0, 1.0, 0.0], 0.7)
    1
    """
    sums = np.cumsum(np.append(np.asarray(spectrum, dtype=float), 0.0))
    return int(np.searchsorted(sums, (mass - 1e-12) * sums[-1]) + 1) if sums[-1] > 0 else 0


def grouped_bars(
    groups: Sequence[str], series: Mapping[str, Sequence[float]], y_name: str, *, log: bool = False
) -> Any:
    """Bars side by side: a group for each column, a colour for each series.

    Parameters
    ----------
    groups : sequence of str
        Names below the groups.
    series : mapping of str to sequence of float
        A value for each group.
    y_name : str
        Name of the upward axis.
    log : bool, default=False
        Whether that axis is logarithmic.

    Returns
    -------
    matplotlib figure
    """
    figure = _figure(size=(1.6 * len(groups) + 2, 3.5))
    ax = figure.axes[0]
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        ax.bar(np.arange(len(groups)) + (number + 0.5) * width - 0.4, values, width, label=name)
    ax.set_xticks(np.arange(len(groups)), groups)
    ax.set_ylabel(y_name)
    ax.set_yscale("log" if log else "linear")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def curves(
    x: Sequence[float], lines: Mapping[str, Any], x_name: str, y_name: str, *, title: str = "",
    log: bool = False, log_y: bool = False,
) -> Any:  # fmt: skip
    """Lines over one axis, with a mark at each value.

    Parameters
    ----------
    x : sequence of float
        Where values were taken.
    lines : mapping of str to sequence of float
        Values of each line; NaN where there is none.
    x_name, y_name : str
        Names of the axes.
    title : str, default=""
        What stands above.
    log, log_y : bool, default=False
        Whether the axes are logarithmic.

    Returns
    -------
    matplotlib figure
    """
    figure = _figure()
    ax = figure.axes[0]
    for name, values in lines.items():
        ax.plot(x, values, "o-", markersize=4, label=name)
    ax.set(xlabel=x_name, ylabel=y_name, title=title)
    ax.set(xscale="log" if log else "linear", yscale="log" if log_y else "linear")
    ax.legend(fontsize="small")
    return figure


def panels(views: Mapping[str, Any], labels: Any) -> Any:
    """Points of the plane under several metrics side by side, coloured by class.

    Parameters
    ----------
    views : mapping of str to array-like of shape (n, 2)
        The points under each metric, by its name.
    labels : array-like of shape (n,)
        Class of each point.

    Returns
    -------
    matplotlib figure
    """
    figure, labels = _figure(len(views), (3.0 * len(views), 3.0)), np.asarray(labels)
    for ax, (name, points) in zip(figure.axes, views.items(), strict=True):
        points = np.asarray(points, dtype=float)
        half = np.ptp(points, axis=0).max() / 2 or 1.0
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        for label in np.unique(labels):
            ax.plot(*points[labels == label].T, ".", markersize=3, label=str(label))
        ax.set(title=name, xticks=[], yticks=[], aspect="equal")
        ax.set(xlim=middle[0] + 1.1 * half * np.array([-1, 1]))
        ax.set(ylim=middle[1] + 1.1 * half * np.array([-1, 1]))
    return figure
