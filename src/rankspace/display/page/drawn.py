"""Displays drawn into a page: SVG without names of its own, in the colours of the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from ..figures import COLOURS

_BLACK = "#000000"
_STYLE: dict[str, Any] = {
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.framealpha": 0.0,
    "legend.edgecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "rankspace",
    "text.parse_math": False,
}
_FONT = "font-family"


def can_draw() -> bool:
    """Whether matplotlib, the extra ``plot``, is installed."""
    return find_spec("matplotlib") is not None


def plain(name: str) -> str:
    """A name without what XML cannot hold."""
    kept = (c if c.isprintable() else "?" for c in str(name))
    return "".join(kept).encode("utf-8", "replace").decode("utf-8")


def inline(draw: Callable[[], Any], name: str, description: str) -> str:
    """A display as an element of a page.

    Parameters
    ----------
    draw : callable
        Draws, and returns the figure.
    name : str
        Goes before all ids of the picture, so that two of them do not meet.
    description : str
        For those who cannot see it.

    Returns
    -------
    str
    """
    import matplotlib.pyplot as plt

    written = StringIO()
    with warnings.catch_warnings(), plt.style.context(_STYLE, after_reset=True):
        warnings.simplefilter("ignore")  # of letters that the measuring font lacks
        figure = draw()
        figure.savefig(written, format="svg", metadata={"Date": None})
        plt.close(figure)
    root = ElementTree.fromstring(written.getvalue())
    for element in root.iter():
        _adapt(element, name)
    kept = [child for child in root if child.tag not in ("metadata", "style")]
    picture = ElementTree.Element(
        "svg",
        {
            "class": "drawn",
            "role": "img",
            "aria-label": description,
            "fill": "currentColor",
            "viewBox": root.get("viewBox", ""),
        },
    )
    picture.extend(kept)
    return ElementTree.tostring(picture, encoding="unicode")


def _adapt(element: Any, name: str) -> None:
    """Take namespaces off, make ids unique, and colours those of the page, in place."""
    element.tag = element.tag.rpartition("}")[2]
    for child in [c for c in element if c.tag.endswith("}style")]:
        element.remove(child)  # rules here would hold for the whole page
    attributes = {
        key.rpartition("}")[2]: value for key, value in element.attrib.items()
    }
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id" and value.startswith("class "):
            element.set("class", f"point k{value.removeprefix('class ')}")
        elif key == "id":
            element.set(key, f"{name}-{value}")
        else:
            value = (
                value.replace("#", f"#{name}-")
                if key in ("href", "clip-path")
                else value
            )
            element.set(key, _colours(value) if key == "style" else value)


def _colours(style: str) -> str:
    """A style in which black is the ink of the page, and its letters are those of the page."""
    parts = (part for part in style.split("; ") if not part.startswith(_FONT))
    style = "; ".join(parts).replace(_BLACK, "currentColor")
    for number, colour in enumerate(COLOURS):
        style = style.replace(colour, f"var(--c{number})")
    return style
