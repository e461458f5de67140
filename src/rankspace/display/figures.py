"""Figures and axes to draw on; needs the extra ``plot``."""

from __future__ import annotations

from typing import Any

# Told apart by people of any colour vision, and by their shapes too: ten by ten pairs.
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
    """A figure with some axes in a row."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it with pip install 'rankspace[plot]'."
        ) from error
    return plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[0]


def class_look(code: int) -> tuple[int, int]:
    """Numbers of the colour and the shape of a class; the first hundred pairs all differ."""
    return code % len(COLOURS), (code + code // len(COLOURS)) % len(SHAPES)


def axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    return figure().axes[0] if ax is None else ax
