"""What all pictures share: colours and markers of classes, matplotlib figures and axes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._engine.optional import require

# Colours that people of any colour vision can distinguish; with the markers, 100 pairs.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#d99400",
    "#3fa6e0",
    "#882255",
    "#8a8a26",
    "#4b3fae",
    "#5d6470",
)
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "_", "|", "*")
BETTER, WORSE = COLOURS[:2]


def figure(n: int = 1, size: tuple[float, float] = (5.0, 3.5)) -> Any:
    """A new matplotlib figure with ``n`` axes in a row."""
    plt = require("matplotlib.pyplot", extra="plot")
    return plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[0]


class Display:
    """Base class of displays that draw on one pair of axes."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        Display
            The display itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = self._axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw()
        return self

    def _axes(self) -> Any:
        """Axes of a new figure."""
        return figure().axes[0]

    def _draw(self) -> None:
        """Draw on ``ax_``."""
        raise NotImplementedError


def class_look(code: int) -> tuple[int, int]:
    """Colour and marker numbers of a class; the first hundred pairs all differ."""
    return code % len(COLOURS), (code + code // len(COLOURS)) % len(SHAPES)


def project_to_plane(points: np.ndarray) -> np.ndarray:
    """Project points to their first two principal components, if they have more."""
    if points.shape[1] == 2:
        return points
    centred = points - points.mean(axis=0)
    if points.shape[1] == 1:
        return np.hstack((centred, np.zeros_like(centred)))
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


def draw_points(ax: Any, points: Any, labels: Any) -> None:
    """Scatter plot of points in the plane, marked by class, with equal scales."""
    points = np.asarray(points, dtype=float)
    labels = np.asarray(labels)
    for code, label in enumerate(np.unique(labels)):
        colour, shape = class_look(code)
        marker = SHAPES[shape]
        ax.plot(
            *points[labels == label].T,
            marker,
            markersize=3.5,
            label=str(label),
            color=COLOURS[colour],
            # Only these two markers are drawn by their edges.
            markeredgewidth=1.5 if marker in "_|" else 0.0,
        )
    half = np.ptp(points, axis=0).max() / 2 or 1.0
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.set(xlim=(middle[0] - 1.1 * half, middle[0] + 1.1 * half))
    ax.set(ylim=(middle[1] - 1.1 * half, middle[1] + 1.1 * half))
