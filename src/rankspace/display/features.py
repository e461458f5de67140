"""Pictures of the clusters of features that Logistic PARCA finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .figures import axes, figure


class TopicsDisplay:
    """Topics as ranked lists of words, a column each.

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, the most important first.
    sizes : sequence of int, optional
        How many features each topic has in all, for the heads of the columns.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

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
        """Draw the topics of a fitted `LogisticPARCA`.

        Parameters
        ----------
        estimator : LogisticPARCA
            A fitted one.
        feature_names : array-like of shape (n_features,), optional
            The words; by default those of the dataframe it was fitted on, or their numbers.
        n : int, default=10
            Words of a topic at most.
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        TopicsDisplay
        """
        sizes = np.bincount(
            estimator.cluster_of_feature_, minlength=len(estimator.components_)
        ).tolist()
        return cls(estimator.topics(feature_names, n), sizes=sizes).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        TopicsDisplay
        """
        longest = max((len(topic) for topic in self.topics), default=0)
        if ax is None:
            ax = figure(size=(1.4 * len(self.topics) + 0.5, 0.25 * longest + 0.6)).axes[
                0
            ]
        self.ax_, self.figure_ = ax, ax.figure
        for column, topic in enumerate(self.topics):
            size = "" if self.sizes is None else f" ({self.sizes[column]})"
            ax.text(
                column,
                0,
                f"topic {column + 1}{size}",
                weight="bold",
                size=9,
                va="center",
            )
            for place, word in enumerate(topic, start=1):
                ax.text(column, -place, word, size=9, va="center")
        ax.set(xlim=(-0.1, len(self.topics)), ylim=(-longest - 0.5, 0.5))
        ax.axis("off")
        return self


class PixelClustersDisplay:
    """Which component each pixel belongs to, as an image, paler where shares are nearly equal.

    Parameters
    ----------
    membership : array-like of shape (n_components, n_pixels)
        Share of each component in each pixel.
    shape : tuple of int
        Height and width of the images.
    weights : array-like of shape (n_pixels,), optional
        How much each pixel counts, from 0; pixels of no weight are left white.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

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
        self.weights = (
            np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        )
        if self.shape[0] * self.shape[1] != n:
            raise ValueError(f"shape must have {n} pixels: got {self.shape}.")

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, ax: Any = None
    ) -> Self:
        """Draw the clusters of a `LogisticPARCA` that was fitted on images.

        Parameters
        ----------
        estimator : LogisticPARCA
            A fitted one.
        shape : tuple of int
            Height and width of the images.
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        PixelClustersDisplay
        """
        weights = np.sqrt(estimator.importance_.sum(axis=0))
        return cls(estimator.membership_, shape, weights=weights).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; new ones by default.

        Returns
        -------
        PixelClustersDisplay
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        import matplotlib

        k = len(self.membership)
        table = matplotlib.colormaps["tab10" if k <= 10 else "tab20"]
        colours = np.array(table(np.argmax(self.membership, axis=0) % 20))
        sharpness = (
            (k * self.membership.max(axis=0) - 1) / max(k - 1, 1) if k > 1 else 1.0
        )
        heaviest = self.weights.max() or 1.0
        colours[:, 3] = (0.3 + 0.7 * sharpness) * np.minimum(
            self.weights / heaviest * 3, 1
        )
        self.ax_.imshow(colours.reshape(*self.shape, 4), interpolation="nearest")
        self.ax_.set(xticks=[], yticks=[], title=f"{k} clusters of pixels")
        return self
