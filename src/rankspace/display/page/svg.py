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


class Frame(NamedTuple):
    """The plotting area: its x and y scales."""

    x: Scale
    y: Scale


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
    values: Sequence[np.ndarray],
    gains: np.ndarray,
    labels: Sequence[str],
    names: tuple[str, str],
    what: str,
    description: str,
) -> str:
    """Scatter plot with one mark per query, before (x) against after (y)."""
    low, high = _limits(np.concatenate(values))
    x = Scale(low, high, 56, 408)
    y = Scale(low, high, 352, 12)
    parts = [
        _axes(Frame(x, y), f"{what}, {names[0]}", f"{what}, {names[1]}"),
        '<line class="diagonal" x1="56" y1="352" x2="408" y2="12"/>',
    ]
    for before, after, gain, label in zip(*values, gains, labels, strict=True):
        kind = _outcome(gain)
        parts.append(
            f'<path class="dot {kind}" '
            f'd="M{x(before):.1f},{y(after):.1f}{_OUTCOME_MARKERS[kind]}">'
            f"<title>{text(label)}: {before:.3f} → {after:.3f}</title></path>"
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
    low, high = _limits(np.append(gains, 0.0), within_one=False)
    frame = Frame(Scale(0, gains.size, 62, 408), Scale(low, high, 352, 12))
    zero = f"{frame.y(0):.1f}"
    n_worse = int((gains < 0).sum())
    better = _bars(gains[gains > 0], 0, frame)
    worse = _bars(gains[gains < 0], gains.size - n_worse, frame)
    parts = [
        _axes(frame, "queries, largest gain first", what, x_ticks=False),
        f'<path class="better" d="{better}"/><path class="worse" d="{worse}"/>',
        f'<line class="zero" x1="62" y1="{zero}" x2="408" y2="{zero}"/>',
    ]
    return _picture(420, 400, description, parts)


def spectrum_chart(spectrum: np.ndarray, n_marked: int, description: str) -> str:
    """Bar chart of a metric's eigenvalues as shares of their sum, with running totals."""
    shares = spectrum / (spectrum.sum() or 1.0)
    frame = Frame(Scale(0, shares.size, 62, 408), Scale(0, 1, 352, 12))
    mark = f"{frame.x(n_marked):.1f}"
    parts = [
        _axes(frame, "directions, largest first", "share of tr(W)", x_ticks=False),
        f'<path class="bar old" d="{_bars(np.cumsum(shares), 0, frame)}"/>',
        f'<path class="c0" d="{_bars(shares, 0, frame)}"/>',
        f'<line class="diagonal" x1="{mark}" y1="352" x2="{mark}" y2="12"/>',
    ]
    return _picture(420, 400, description, parts)


def _bars(values: np.ndarray, first: int, frame: Frame) -> str:
    """The outline of adjacent bars; ``first`` is the position of the first one."""
    zero = f"{frame.y(0):.1f}"
    steps = "".join(
        f"V{frame.y(value):.1f}H{frame.x(right):.2f}"
        for right, value in enumerate(values, first + 1)
    )
    return f"M{frame.x(first):.2f},{zero}{steps}V{zero}Z"


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
    parts = [
        f'<line class="grid" x1="{x(at):.0f}" y1="1" x2="{x(at):.0f}" y2="33"/>'
        for at in (0, 0.25, 0.5, 0.75, 1)
    ]
    for kind, top, (mean, low, high) in (("old", 4, before), ("new", 19, after)):
        left = f"{x(low):.1f}"
        middle = top + 5.5
        parts.append(
            f'<rect class="bar {kind}" x="1" y="{top}" width="{x(mean) - 1:.1f}" height="11"/>'
            f'<path class="reach" d="M{left},{middle - 3}v6M{left},{middle}H{x(high):.1f}m0,-3v6"/>'
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
    x, y = frame
    parts = [_y_tick(frame, value) for value in _ticks(y)]
    if x_ticks:
        parts += [_x_tick(frame, value) for value in _ticks(x)]
    centre_x = (x.start + x.stop) / 2
    centre_y = (y.start + y.stop) / 2
    turn = f'transform="translate(14,{centre_y}) rotate(-90)"'
    parts += [
        f'<text class="axis mid" x="{centre_x}" y="392">{text(x_name)}</text>',
        f'<text class="axis mid" {turn}>{text(y_name)}</text>',
    ]
    return "".join(parts)


def _x_tick(frame: Frame, value: float) -> str:
    x, y = frame
    at = f"{x(value):.1f}"
    return (
        f'<line class="grid" x1="{at}" y1="{y.start}" x2="{at}" y2="{y.stop}"/>'
        f'<text class="tick mid" x="{at}" y="{y.start + 18}">{_tick_label(value)}</text>'
    )


def _y_tick(frame: Frame, value: float) -> str:
    x, y = frame
    at = y(value)
    return (
        f'<line class="grid" x1="{x.start}" y1="{at:.1f}" x2="{x.stop}" y2="{at:.1f}"/>'
        f'<text class="tick end" x="{x.start - 8}" y="{at + 4:.1f}">{_tick_label(value)}</text>'
    )


def _tick_label(value: float) -> str:
    return f"{value:g}".replace("-", "−")
