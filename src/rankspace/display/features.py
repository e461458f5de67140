"""Plots of the feature clusters of `LogisticPARCA`: topics of words, regions of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._engine.optional import require
from .figures import Display, figure


class TopicsDisplay(Display):
    """Topics as columns of words, most important first.

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, the most important first.
    sizes : sequence of int, optional
        Number of features of each topic, for the column heads.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure of the plot.

    Examples
    --------
    >>> from rankspace.display import TopicsDisplay
    >>> display = TopicsDisplay([["game", "team"], ["disk", "scsi"]]).plot()
    >>> [text.get_text() for text in display.ax_.texts][:3]
    ['topic 1', 'game', 'team']
    """

    def __init__(
        self, topics: Sequence[Sequence[str]], *, sizes: Sequence[int] | None = None
    ) -> None:
        self.topics = [list(topic) for topic in topics]
        self.sizes = sizes

    @classmethod
    def from_estimator(
        cls, estimator: Any, feature_names: Any = None, n: int = 10, *, ax: Any = None
    ) -> Self:
        """Plot the topics of a fitted `LogisticPARCA`.

        Parameters
        ----------
        estimator : LogisticPARCA
            A fitted estimator.
        feature_names : array-like of shape (n_features,), optional
            The words; by default the columns of the dataframe it was fitted on, or numbers.
        n : int, default=10
            Maximum number of words per topic.
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        TopicsDisplay
        """
        k = len(estimator.components_)
        sizes = np.bincount(estimator.cluster_of_feature_, minlength=k).tolist()
        return cls(estimator.topics(feature_names, n), sizes=sizes).plot(ax=ax)

    def _axes(self) -> Any:
        """Axes of a new figure that holds all words."""
        return figure(
            size=(1.4 * len(self.topics) + 0.5, 0.25 * self._longest + 0.6)
        ).axes[0]

    @property
    def _longest(self) -> int:
        return max((len(topic) for topic in self.topics), default=0)

    def _draw(self) -> None:
        for column, topic in enumerate(self.topics):
            head = f"topic {column + 1}"
            if self.sizes is not None:
                head += f" ({self.sizes[column]})"
            self.ax_.text(column, 0, head, weight="bold", size=9, va="center")
            for row, word in enumerate(topic, start=1):
                self.ax_.text(column, -row, word, size=9, va="center")
        self.ax_.set(xlim=(-0.1, len(self.topics)), ylim=(-self._longest - 0.5, 0.5))
        self.ax_.axis("off")


class PixelClustersDisplay(Display):
    """Image of the component of each pixel, paler where its memberships are nearly equal.

    Parameters
    ----------
    membership : array-like of shape (n_components, n_pixels)
        Membership of each pixel in each component.
    shape : tuple of int
        Height and width of the images.
    weights : array-like of shape (n_pixels,), optional
        Non-negative weight of each pixel; pixels of weight 0 are left white.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure of the plot.

    Examples
    --------
    >>> from rankspace.display import PixelClustersDisplay
    >>> shares = [[1.0, 1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.5]]
    >>> PixelClustersDisplay(shares, (2, 2)).plot().ax_.images[0].get_array().shape
    (2, 2, 4)
    """

    def __init__(
        self, membership: Any, shape: tuple[int, int], *, weights: Any = None
    ) -> None:
        self.membership = np.asarray(membership, dtype=float)
        self.shape = tuple(shape)
        n = self.membership.shape[1]
        if weights is None:
            weights = np.ones(n)
        self.weights = np.asarray(weights, dtype=float)
        if self.shape[0] * self.shape[1] != n:
            raise ValueError(f"shape must have {n} pixels: got {self.shape}.")

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, ax: Any = None
    ) -> Self:
        """Plot the pixel clusters of a `LogisticPARCA` that was fitted on images.

        Parameters
        ----------
        estimator : LogisticPARCA
            A fitted estimator.
        shape : tuple of int
            Height and width of the images.
        ax : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        PixelClustersDisplay
        """
        weights = np.sqrt(estimator.importance_.sum(axis=0))
        return cls(estimator.membership_, shape, weights=weights).plot(ax=ax)

    def _draw(self) -> None:
        colormaps = require("matplotlib", extra="plot").colormaps
        k = len(self.membership)
        table = colormaps["tab10" if k <= 10 else "tab20"]
        colours = np.array(table(np.argmax(self.membership, axis=0) % 20))
        # From 0 for equal memberships to 1 for a single one.
        sharpness = 1.0
        if k > 1:
            sharpness = (k * self.membership.max(axis=0) - 1) / (k - 1)
        relative_weights = self.weights / (self.weights.max() or 1.0)
        opacity = np.minimum(relative_weights * 3, 1)
        colours[:, 3] = (0.3 + 0.7 * sharpness) * opacity
        self.ax_.imshow(colours.reshape(*self.shape, 4), interpolation="nearest")
        self.ax_.set(xticks=[], yticks=[], title=f"{k} clusters of pixels")
