"""SVG pictures of the report page and their legends, coloured by ``page.css``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..figures import class_look
from .html import text

# More marks make a page slow and a picture no clearer.
MAX_MARKS = 2_000
MAX_LEGEND = 40

# Each marker is drawn from its centre by relative moves, about ten units wide.
_MARKERS = (
    "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "m-3.6,-3.6h7.2v7.2h-7.2z",
    "m0,-4.8l4.6,8.2h-9.2z",
    "m0,-5.2l4.4,5.2l-4.4,5.2l-4.4,-5.2z",
    "m0,4.8l4.6,-8.2h-9.2z",
    "m-1.4,-4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z",
    "m0,-2l2.6,-2.6l2,2l-2.6,2.6l2.6,2.6l-2,2l-2.6,-2.6l-2.6,2.6l-2,-2l2.6,-2.6l-2.6,-2.6l2,-2z",
    "m-5,-1.6h10v3.2h-10z",
    "m-1.6,-5h3.2v10h-3.2z",
    "m0,-5l1.4,3.5l3.7,.3l-2.9,2.4l.9,3.6l-3.1,-2l-3.1,2l.9,-3.6l-2.9,-2.4l3.7,-.3z",
)
_OUTCOME_MARKERS = {
    "better": _MARKERS[0],
    "equal": _MARKERS[1],
    "worse": _MARKERS[4],
}

# Without scripts, each class needs a rule of its own to dim the others.
LEGEND_STYLE = "".join(
    f".views:has(#class-{code}:checked) .point:not(.k{code}){{opacity:.07}}"
    for code in range(MAX_LEGEND)
)


class Scale(NamedTuple):
    """A linear scale from values to positions in a picture."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)


class Frame:
    """The plotting area of a chart: its x and y scales."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x = Scale(*x, 62, 408)
        self.y = Scale(*y, 352, 12)


# ---------------------------------------------------------------------- legends and captions


def class_marker(code: int) -> tuple[int, str]:
    """Colour number and marker outline of a class."""
    colour, shape = class_look(code)
    return colour, _MARKERS[shape]


def outcome_key(kind: str) -> str:
    """Legend marker of queries that got "better", "equal" or "worse"."""
    return _key(kind, _OUTCOME_MARKERS[kind])


def _key(style: str, marker: str) -> str:
    return (
        '<svg class="key" viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<path class="{style}" d="M0,0{marker}"/></svg>'
    )


def class_legend(classes: Sequence[object]) -> str:
    """Legend of classes; choosing one dims the others."""
    if not classes:
        return ""
    keys = ""
    for code, name in enumerate(classes[:MAX_LEGEND]):
        colour, marker = class_marker(code)
        keys += (
            f'<label><input type="radio" name="class" id="class-{code}">'
            f"{_key(f'c{colour}', marker)}{text(name)}</label>"
        )
    if len(classes) > MAX_LEGEND:
        keys += f"<span>and {len(classes) - MAX_LEGEND} more</span>"
    return (
        '<fieldset class="legend"><legend>Choose a class to see it alone</legend>'
        f'<label><input type="radio" name="class" checked>all</label>{keys}</fieldset>'
    )


def captioned(caption: str, picture: str) -> str:
    """A figure: a picture with a caption."""
    return f"<figure><figcaption>{text(caption)}</figcaption>{picture}</figure>"


def subset(n: int) -> np.ndarray:
    """Indices of the marks to draw: all, or a random subset with a fixed seed."""
    if n <= MAX_MARKS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MAX_MARKS, replace=False))


def subset_note(n: int, nouns: str) -> str:
    """A sentence for pictures that show only a subset."""
    if n <= MAX_MARKS:
        return ""
    return f" Shown: {MAX_MARKS:,} of {n:,} {nouns}, a random subset with a fixed seed."


# ---------------------------------------------------------------------- pictures


def scatter(
    before: np.ndarray,
    after: np.ndarray,
    gains: np.ndarray,
    queries: Sequence[str],
    axes: tuple[str, str],
    description: str,
) -> str:
    """Scatter plot with one mark per query, before (x) against after (y)."""
    limits = _limits(np.concatenate((before, after)))
    frame = Frame(limits, limits)
    parts = [_axes(frame, *axes), _line("diagonal", 62, 352, 408, 12)]
    for a, b, gain, query in zip(before, after, gains, queries, strict=True):
        kind = _outcome(gain)
        place = f"M{frame.x(a):.1f},{frame.y(b):.1f}"
        parts.append(
            f'<path class="dot {kind}" d="{place}{_OUTCOME_MARKERS[kind]}">'
            f"<title>query {text(query)}: {a:.3f} → {b:.3f}</title></path>"
        )
    return _picture(420, 400, description, parts)


def _outcome(gain: float) -> str:
    if gain > 0:
        return "better"
    if gain < 0:
        return "worse"
    return "equal"


def gain_chart(gains: np.ndarray, what: str, description: str) -> str:
    """Bar chart of the gains of all queries, largest first."""
    gains = np.sort(gains)[::-1]
    limits = _limits(np.append(gains, 0.0), within_one=False)
    frame = Frame((0, gains.size), limits)
    zero = frame.y(0)
    losses = gains[gains < 0]
    parts = [
        _axes(frame, "queries, largest gain first", what, x_ticks=False),
        _bars("better", gains[gains > 0], 0, frame),
        _bars("worse", losses, gains.size - losses.size, frame),
        _line("zero", 62, zero, 408, zero),
    ]
    return _picture(420, 400, description, parts)


def spectrum_chart(spectrum: np.ndarray, n_marked: int, description: str) -> str:
    """Bar chart of a metric's eigenvalues as shares of their sum, with running totals."""
    shares = spectrum / (spectrum.sum() or 1.0)
    frame = Frame((0, shares.size), (0, 1))
    mark = frame.x(n_marked)
    parts = [
        _axes(frame, "directions, largest first", "share of tr(W)", x_ticks=False),
        _bars("bar old", np.cumsum(shares), 0, frame),
        _bars("c0", shares, 0, frame),
        _line("diagonal", mark, 352, mark, 12),
    ]
    return _picture(420, 400, description, parts)


def _bars(kind: str, values: np.ndarray, first: int, frame: Frame) -> str:
    """Adjacent bars in one path; ``first`` is the position of the first one."""
    zero = f"{frame.y(0):.1f}"
    steps = "".join(
        f"V{frame.y(value):.1f}H{frame.x(right):.2f}"
        for right, value in enumerate(values, first + 1)
    )
    return f'<path class="{kind}" d="M{frame.x(first):.2f},{zero}{steps}V{zero}Z"/>'


def cloud(points: np.ndarray, codes: np.ndarray, description: str) -> str:
    """Scatter plot of points in the plane, marked by class, with equal scales."""
    low = points.min(axis=0)
    high = points.max(axis=0)
    middle = (low + high) / 2
    half = float((high - low).max()) / 2 or 1.0
    x = Scale(middle[0] - half, middle[0] + half, 14, 406)
    y = Scale(middle[1] - half, middle[1] + half, 406, 14)
    parts = ['<rect class="frame" x="0.5" y="0.5" width="419" height="419" rx="6"/>']
    for code in np.unique(codes).tolist():
        colour, marker = class_marker(code)
        marks = "".join(
            f"M{x(a):.1f},{y(b):.1f}{marker}" for a, b in points[codes == code]
        )
        parts.append(f'<path class="point k{code} c{colour}" d="{marks}"/>')
    return _picture(420, 420, description, parts)


def interval_bars(
    before: tuple[float, float, float],
    after: tuple[float, float, float],
    description: str,
) -> str:
    """Two bars from 0 to 1 with error bars; each argument is mean, low and high."""
    x = Scale(0, 1, 1, 215)
    parts = [_line("grid", at, 1, at, 33) for at in (1, 54.5, 108, 161.5, 215)]
    for kind, top, (mean, low, high) in (("old", 4, before), ("new", 19, after)):
        parts.append(
            f'<rect class="bar {kind}" x="1" y="{top}" width="{x(mean) - 1:.1f}" height="11"/>'
            f'<path class="reach" d="M{x(low):.1f},{top + 2.5}v6m0,-3H{x(high):.1f}m0,-3v6"/>'
        )
    return _picture(218, 34, description, parts)


def _picture(width: int, height: int, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{text(description)}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg>"
    )


# ---------------------------------------------------------------------- axes


def _limits(values: np.ndarray, within_one: bool = True) -> tuple[float, float]:
    """Axis limits: 0 to 1 if that contains the values, else the ticks around them."""
    low = float(values.min())
    high = float(values.max())
    if within_one and low >= 0 and high <= 1:
        return 0.0, 1.0
    if low == high:
        low -= 0.5
        high += 0.5
    step = _tick_step((high - low) / 5)
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _tick_step(least: float) -> float:
    """The smallest step of at least ``least`` that is 1, 2 or 5 times a power of ten."""
    power = float(10.0 ** np.floor(np.log10(least)))
    for step in (1, 2, 5):
        if step * power >= least * 0.999:
            return step * power
    return 10 * power


def _ticks(scale: Scale) -> list[float]:
    # Limits that were moved out to ticks span at most seven of their steps.
    step = _tick_step((scale.high - scale.low) / 7)
    first = np.ceil(scale.low / step - 1e-9)
    n_ticks = int(np.floor(scale.high / step + 1e-9) - first) + 1
    # Rounding removes floating-point noise; adding zero removes the sign of -0.0.
    return [float(round((first + i) * step, 12)) + 0.0 for i in range(n_ticks)]


def _axes(frame: Frame, x_name: str, y_name: str, x_ticks: bool = True) -> str:
    """Grid lines, tick labels and axis labels."""
    parts = [
        f'<text class="axis mid" x="235" y="392">{text(x_name)}</text>',
        f'<text class="axis mid" transform="translate(14,182) rotate(-90)">{text(y_name)}</text>',
    ]
    for value in _ticks(frame.y):
        at = frame.y(value)
        parts.append(_line("grid", 62, at, 408, at))
        parts.append(_tick_label("end", 54, at + 4, value))
    if x_ticks:
        for value in _ticks(frame.x):
            at = frame.x(value)
            parts.append(_line("grid", at, 352, at, 12))
            parts.append(_tick_label("mid", at, 370, value))
    return "".join(parts)


def _tick_label(anchor: str, x: float, y: float, value: float) -> str:
    label = f"{value:g}".replace("-", "−")
    return f'<text class="tick {anchor}" x="{x:.1f}" y="{y:.1f}">{label}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
