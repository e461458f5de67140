"""Pictures of a report page: plain SVG and their legends, coloured by the style of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from ..figures import class_look

# More marks than this make a page slow and a picture no clearer.
MOST_MARKS = 2_000
_MOST_KEYS = 40

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
_OUTCOMES = {"better": 0, "equal": 1, "worse": 4}


class Scale(NamedTuple):
    """A straight map from values to places in a picture."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (
            self.stop - self.start
        )


class Frame(NamedTuple):
    """The plotting area: its two scales, x to the right and y upwards."""

    x: Scale
    y: Scale


def class_marker(code: int) -> tuple[int, str]:
    """Colour number and outline of a class."""
    colour, shape = class_look(code)
    return colour, _MARKERS[shape]


def marker_key(code: int) -> str:
    """The marker of a class as a small picture for a legend."""
    colour, shape = class_marker(code)
    return (
        '<svg class="key" viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<path class="c{colour}" d="M0,0{shape}"/></svg>'
    )


def outcome_key(kind: str) -> str:
    """The marker of queries that got "better", "equal" or "worse", for a legend."""
    shape = _MARKERS[_OUTCOMES[kind]]
    return (
        '<svg class="key" viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<path class="{kind}" d="M0,0{shape}"/></svg>'
    )


def subset(n: int) -> np.ndarray:
    """All of n marks, or as many as a picture bears, always the same ones."""
    if n <= MOST_MARKS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_MARKS, replace=False))


def subset_note(n: int, nouns: str) -> str:
    """A sentence that says so where not all is drawn."""
    if n <= MOST_MARKS:
        return ""
    return f" Drawn are {MOST_MARKS:,} of {n:,} {nouns}, a random subset with a fixed seed."


def captioned(caption: str, picture: str) -> str:
    """A picture under a caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}</figure>"


def scatter(
    values: Sequence[np.ndarray],
    gains: np.ndarray,
    labels: Sequence[str],
    names: tuple[str, str],
    what: str,
    description: str,
) -> str:
    """One mark a query, before to the right and after upwards, and the diagonal of no change."""
    low, high = _limits(np.concatenate(values))
    frame = Frame(Scale(low, high, 56, 408), Scale(low, high, 352, 12))
    corners = 'x1="56" y1="352" x2="408" y2="12"'
    parts = [_axes(frame, f"{what}, {names[0]}", f"{what}, {names[1]}")]
    parts.append(f'<line class="diagonal" {corners}/>')
    for a, b, gain, label in zip(*values, gains, labels, strict=True):
        kind, shape = _outcome(gain)
        parts.append(
            f'<path class="dot {kind}" d="M{frame.x(a):.1f},{frame.y(b):.1f}{shape}">'
            f"<title>{escape(label)}: {a:.3f} → {b:.3f}</title></path>"
        )
    return _picture(420, 400, description, parts)


def _outcome(gain: float) -> tuple[str, str]:
    """Style class and marker of a query that gained, lost, or stayed."""
    kind = "equal" if gain == 0 else "better" if gain > 0 else "worse"
    return kind, _MARKERS[_OUTCOMES[kind]]


def gain_chart(gains: np.ndarray, what: str, description: str) -> str:
    """The gains of all queries from the largest to the smallest, as steps around zero."""
    gains = np.sort(gains)[::-1]
    low, high = _limits(np.append(gains, 0.0), within_one=False)
    frame = Frame(Scale(0, gains.size, 62, 408), Scale(low, high, 352, 12))
    zero = frame.y(0)
    parts = [_axes(frame, "queries, largest gain first", what, x_ticks=False)]
    for kind, part in (("better", gains > 0), ("worse", gains < 0)):
        if part.any():
            first = int(np.flatnonzero(part)[0])
            parts.append(
                f'<path class="{kind}" d="{_steps(gains[part], first, frame)}"/>'
            )
    parts.append(
        f'<line class="zero" x1="62" y1="{zero:.1f}" x2="408" y2="{zero:.1f}"/>'
    )
    return _picture(420, 400, description, parts)


def _steps(values: np.ndarray, first: int, frame: Frame) -> str:
    moves = "".join(
        f"V{frame.y(value):.1f}H{frame.x(first + i + 1):.2f}"
        for i, value in enumerate(values)
    )
    return f"M{frame.x(first):.2f},{frame.y(0):.1f}{moves}V{frame.y(0):.1f}Z"


def cloud(points: np.ndarray, codes: np.ndarray, description: str) -> str:
    """Points of the plane at equal scale in both directions, marked by class."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    half = float(np.ptp(points, axis=0).max()) / 2 or 1.0
    x = Scale(middle[0] - half, middle[0] + half, 14, 406)
    y = Scale(middle[1] - half, middle[1] + half, 406, 14)
    parts = ['<rect class="frame" x="0.5" y="0.5" width="419" height="419" rx="6"/>']
    for code in np.unique(codes).tolist():
        colour, shape = class_marker(code)
        moves = "".join(
            f"M{x(a):.1f},{y(b):.1f}{shape}" for a, b in points[codes == code]
        )
        parts.append(f'<path class="point k{code} c{colour}" d="{moves}"/>')
    return _picture(420, 420, description, parts)


def check_views(
    views: tuple[np.ndarray, np.ndarray], labels: np.ndarray | None
) -> list[np.ndarray]:
    """Both views as arrays of floats, or the error that says what is wrong with them."""
    points = [np.asarray(view, dtype=float) for view in views]
    shapes = [view.shape for view in points]
    n = shapes[0][0] if shapes and shapes[0] else 0
    if len(points) != 2 or n == 0 or any(shape != (n, 2) for shape in shapes):
        raise ValueError(
            "views must be two arrays of shape (n_points, 2), of the same points before and after: "
            f"got shapes {', '.join(map(str, shapes))}. Project the points to two columns first."
        )
    if not all(np.isfinite(view).all() for view in points):
        raise ValueError(
            "views must be finite: got NaN or infinity. Leave those points out."
        )
    if labels is not None and np.shape(labels) != (n,):
        raise ValueError(
            f"view_labels must name the class of each of {n} points: got shape {np.shape(labels)}."
        )
    return points


def class_codes(labels: np.ndarray | None, n: int) -> tuple[list[object], np.ndarray]:
    """Classes in order and the number of each point's class; no class if there are no labels."""
    if labels is None:
        return [], np.zeros(n, dtype=np.int64)
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    return classes.tolist(), codes


def class_legend(classes: Sequence[object]) -> str:
    """The classes with their markers; choosing one dims the others, by style alone."""
    if not classes:
        return ""
    keys = "".join(
        f'<label><input type="radio" name="class" id="class-{code}">{marker_key(code)}'
        f"{escape(str(name))}</label>"
        for code, name in enumerate(classes[:_MOST_KEYS])
    )
    more = (
        f"<span>and {len(classes) - _MOST_KEYS} more</span>"
        if len(classes) > _MOST_KEYS
        else ""
    )
    return (
        '<fieldset class="legend"><legend>Choose a class to see it alone</legend>'
        f'<label><input type="radio" name="class" checked>all</label>{keys}{more}</fieldset>'
    )


def class_style(classes: Sequence[object]) -> str:
    """The rules by which the legend dims the other classes."""
    return "".join(
        f".views:has(#class-{code}:checked) .point:not(.k{code}){{opacity:.07}}"
        for code in range(min(len(classes), _MOST_KEYS))
    )


def bar_pair(
    before: tuple[float, float, float],
    after: tuple[float, float, float],
    description: str,
) -> str:
    """Two means between 0 and 1 as bars, with their intervals as whiskers."""
    x = Scale(0, 1, 1, 215)
    parts = [
        f'<line class="grid" x1="{x(at):.0f}" y1="1" x2="{x(at):.0f}" y2="33"/>'
        for at in (0, 0.25, 0.5, 0.75, 1)
    ]
    for kind, y, (mean, low, high) in (("old", 4, before), ("new", 19, after)):
        left, right, middle = f"{x(low):.1f}", f"{x(high):.1f}", y + 5.5
        parts.append(
            f'<rect class="bar {kind}" x="1" y="{y}" width="{x(mean) - 1:.1f}" height="11"/>'
            f'<path class="reach" d="M{left},{middle - 3}v6M{left},{middle}H{right}m0,-3v6"/>'
        )
    return _picture(218, 34, description, parts)


def _limits(values: np.ndarray, within_one: bool = True) -> tuple[float, float]:
    """From 0 to 1 where the values allow it, else from tick to tick around them."""
    low, high = float(values.min()), float(values.max())
    if within_one and low >= 0 and high <= 1:
        return 0.0, 1.0
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = _tick_step((high - low) / 5)
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _tick_step(least: float) -> float:
    """The smallest step not below ``least`` that is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(
        next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)
    )


def _ticks(scale: Scale) -> list[float]:
    # Limits that were moved out to ticks span at most seven of their steps.
    step = _tick_step((scale.high - scale.low) / 7)
    first = np.ceil(scale.low / step - 1e-9)
    n_ticks = int(np.floor(scale.high / step + 1e-9) - first) + 1
    # Rounding takes off the noise of the product and the sign of a negative zero.
    return [float(round((first + i) * step, 12)) + 0.0 for i in range(n_ticks)]


def _axes(frame: Frame, x_name: str, y_name: str, x_ticks: bool = True) -> str:
    """Grid lines, numbers at the ticks, and the names of both axes."""
    x, y = frame
    parts = []
    for value in _ticks(y):
        at = y(value)
        parts.append(
            f'<line class="grid" x1="{x.start}" y1="{at:.1f}" x2="{x.stop}" y2="{at:.1f}"/>'
            f'<text class="tick end" x="{x.start - 8}" y="{at + 4:.1f}">{_tick_text(value)}</text>'
        )
    for value in _ticks(x) if x_ticks else []:
        at = x(value)
        parts.append(
            f'<line class="grid" x1="{at:.1f}" y1="{y.start}" x2="{at:.1f}" y2="{y.stop}"/>'
            f'<text class="tick mid" x="{at:.1f}" y="{y.start + 18}">{_tick_text(value)}</text>'
        )
    centre_x, centre_y = (x.start + x.stop) / 2, (y.start + y.stop) / 2
    parts.append(
        f'<text class="axis mid" x="{centre_x}" y="392">{escape(x_name)}</text>'
    )
    turn = f'transform="translate(14,{centre_y}) rotate(-90)"'
    parts.append(f'<text class="axis mid" {turn}>{escape(y_name)}</text>')
    return "".join(parts)


def _tick_text(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _picture(width: int, height: int, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(description)}" viewBox="0 0 {width} {height}">'
        + "".join(parts)
        + "</svg>"
    )
