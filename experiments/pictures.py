"""Plots of the experiments: grouped bars, and curves in panels side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

DPI = 72
N_COLOURS = 32


def subplots(n: int, size: tuple[float, float]) -> Any:
    """A figure with some axes in a row."""
    import matplotlib.pyplot as plt

    return plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[0]


def save_png(figure: Any, path: Path) -> None:
    """Write a figure as a small PNG, and close it."""
    import matplotlib.pyplot as plt
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI)
    plt.close(figure)
    # A palette takes a third of the bytes, and the repository holds all results.
    image = Image.open(buffer).convert("RGB")
    palette = image.quantize(
        N_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    palette.save(path, optimize=True)


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    y_name: str,
    *,
    log: bool = False,
) -> Any:
    """Bar chart with a group for each column and a colour for each series.

    Parameters
    ----------
    groups : sequence of str
        Names below the groups.
    series : mapping of str to sequence of float
        A value for each group.
    y_name : str
        Label of the y-axis.
    log : bool, default=False
        Whether the y-axis is logarithmic.

    Returns
    -------
    matplotlib figure
    """
    figure = subplots(1, (1.6 * len(groups) + 2, 3.5))
    ax = figure.axes[0]
    width = 0.8 / len(series)
    places = np.arange(len(groups))
    for number, (name, values) in enumerate(series.items()):
        ax.bar(places + (number + 0.5) * width - 0.4, values, width, label=name)
    ax.set_xticks(places, groups)
    ax.set_ylabel(y_name)
    if log:
        ax.set_yscale("log")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure


def curves(
    views: Mapping[str, Mapping[str, tuple[Any, Any]]],
    x_name: str,
    *,
    log: Sequence[str] = (),
    log_x: bool = False,
) -> Any:
    """Line plots in panels side by side, a colour for each name.

    Parameters
    ----------
    views : mapping of str to mapping of str to pair of array-likes
        For each panel, by its title, the x and y of each line.
    x_name : str
        Label of the x-axis.
    log : sequence of str, optional
        Panels whose y-axis is logarithmic.
    log_x : bool, default=False
        Whether the x-axis is logarithmic.

    Returns
    -------
    matplotlib figure
    """
    figure = subplots(len(views), (3.2 * len(views) + 1.8, 3.2))
    for ax, (title, lines) in zip(figure.axes, views.items(), strict=True):
        for name, (x, y) in lines.items():
            ax.plot(x, y, ".-", label=name)
        ax.set(title=title, xlabel=x_name)
        if log_x:
            ax.set_xscale("log")
        if title in log:
            ax.set_yscale("log")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", fontsize="small")
    return figure
