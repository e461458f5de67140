"""Plots of convergence and of the spectrum of a metric; they need the extra ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..metrics.embedding import LinearMetric
from .figures import COLOURS, Display


class ConvergenceDisplay(Display):
    """Convergence plot of MLR: upper and lower bound on the optimum, round by round.

    Parameters
    ----------
    history : list of dict
        The attribute ``history_`` of a fitted `MLR`, `RobustMLR` or `SVMMAP`.
    name : str, optional
        Title of the plot.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure of the plot.

    Examples
    --------
    >>> from rankspace import MLR
    >>> from rankspace.datasets import load_wine
    >>> from rankspace.display import ConvergenceDisplay
    >>> wine = load_wine()
    >>> model = MLR(measure="auc").fit(wine.X, wine.labels)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'round'
    """

    def __init__(
        self, history: Sequence[Mapping[str, float]], *, name: str | None = None
    ) -> None:
        self.history = history
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot the history of a fitted estimator.

        Parameters
        ----------
        estimator : MLR, RobustMLR or SVMMAP
            A fitted estimator.
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        ConvergenceDisplay
        """
        history: Any = getattr(estimator, "history_", None)
        row = history[0] if history else None
        if not isinstance(row, dict) or not np.isfinite(row.get("upper", np.nan)):
            raise ValueError(
                "estimator must have a history_ of bounds, like an MLR fitted without batch_size "
                f"(for an MLRCV pass its model_): got {estimator!r}."
            )
        return cls(history, name=type(estimator).__name__).plot(ax=ax)

    def _draw(self) -> None:
        rounds = np.arange(1, len(self.history) + 1)
        upper = np.array([row["upper"] for row in self.history])
        lower = np.array([row["lower"] for row in self.history])
        self.ax_.step(rounds, upper, where="post", label="best objective so far")
        self.ax_.step(rounds, lower, where="post", label="lower bound")
        self.ax_.fill_between(rounds, lower, upper, step="post", alpha=0.15)
        self.ax_.set(xlabel="round", ylabel="objective", title=self.name)
        self.ax_.legend()


class SpectrumDisplay(Display):
    """Bar chart of the spectrum of a metric: the share of each direction.

    Parameters
    ----------
    spectrum : array-like of shape (n_components,)
        Eigenvalues of W, largest first.
    mass : float, default=0.95
        The plot marks the number of directions that hold this share.

    Attributes
    ----------
    n_directions_ : int
        Number of directions that hold this share; 0 for a zero metric.
    ax_, figure_
        Matplotlib axes and figure of the plot.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.display import SpectrumDisplay
    >>> SpectrumDisplay.from_metric(LinearMetric([[9.0, 0.0], [0.0, 1.0]])).n_directions_
    1
    """

    def __init__(self, spectrum: Any, *, mass: float = 0.95) -> None:
        self.spectrum = np.asarray(spectrum, dtype=float)
        self.mass = mass

    @classmethod
    def from_metric(
        cls, metric: LinearMetric, *, mass: float = 0.95, ax: Any = None
    ) -> Self:
        """Plot the spectrum of a linear metric.

        Parameters
        ----------
        metric : LinearMetric
            A metric such as ``estimator.metric_``.
        mass : float, default=0.95
            The plot marks the number of directions that hold this share.
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        SpectrumDisplay
        """
        return cls(metric.spectrum, mass=mass).plot(ax=ax)

    def _draw(self) -> None:
        self.n_directions_ = n_directions(self.spectrum, self.mass)
        share = self.spectrum / (self.spectrum.sum() or 1.0)
        numbers = np.arange(1, share.size + 1)
        self.ax_.bar(numbers, share, color=COLOURS[0], label="share of a direction")
        total = np.cumsum(share)
        self.ax_.plot(numbers, total, ".-", color=COLOURS[9], label="running total")
        self.ax_.axvline(self.n_directions_ + 0.5, color="grey", linestyle=":")
        self.ax_.set(xlabel="direction", ylabel="share of tr(W)", ylim=(0, 1.05))
        hold = "direction holds" if self.n_directions_ == 1 else "directions hold"
        self.ax_.set_title(f"{self.n_directions_} {hold} {self.mass:.0%}")
        self.ax_.legend()


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
    >>> from rankspace.display import n_directions
    >>> n_directions([3.0, 1.0, 0.0], 0.7)
    1
    """
    sums = np.cumsum(np.append(np.asarray(spectrum, dtype=float), 0.0))
    return (
        int(np.searchsorted(sums, (mass - 1e-12) * sums[-1]) + 1) if sums[-1] > 0 else 0
    )
