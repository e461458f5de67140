"""Pictures of metrics and of how they were learned; needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..metrics.embedding import LinearMetric
from .features import PixelClustersDisplay, TopicsDisplay
from .figures import COLOURS, axes
from .spaces import GainsDisplay, LearningCurveDisplay, SpaceDisplay

__all__ = [
    "ConvergenceDisplay",
    "GainsDisplay",
    "LearningCurveDisplay",
    "PixelClustersDisplay",
    "SpaceDisplay",
    "SpectrumDisplay",
    "TopicsDisplay",
    "n_directions",
]


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
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        rounds = np.arange(1, len(self.history) + 1)
        upper, lower = (
            np.array([row[key] for row in self.history]) for key in ("upper", "lower")
        )
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
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.n_directions_ = n_directions(self.spectrum, self.mass)
        share = self.spectrum / (self.spectrum.sum() or 1.0)
        numbers = np.arange(1, share.size + 1)
        self.ax_.bar(numbers, share, color=COLOURS[0], label="share of a direction")
        sums = np.cumsum(share)
        self.ax_.plot(
            numbers, sums, ".-", color=COLOURS[9], label="share of all up to it"
        )
        self.ax_.axvline(self.n_directions_ + 0.5, color="grey", linestyle=":")
        self.ax_.set(xlabel="direction", ylabel="share of tr(W)", ylim=(0, 1.05))
        hold = "direction holds" if self.n_directions_ == 1 else "directions hold"
        self.ax_.set_title(f"{self.n_directions_} {hold} {self.mass:.0%}")
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
    >>> from rankspace.display import n_directions
    >>> n_directions([3.0, 1.0, 0.0], 0.7)
    1
    """
    sums = np.cumsum(np.append(np.asarray(spectrum, dtype=float), 0.0))
    return (
        int(np.searchsorted(sums, (mass - 1e-12) * sums[-1]) + 1) if sums[-1] > 0 else 0
    )
