"""Figures and axes to draw on; needs the extra ``plot``."""

from __future__ import annotations

from typing import Any


def figure(n: int = 1, size: tuple[float, float] = (5.0, 3.5)) -> Any:
    """A figure with some axes in a row."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it with pip install 'rankspace[plot]'."
        ) from error
    return plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[0]


def axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    return figure().axes[0] if ax is None else ax
