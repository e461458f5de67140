"""HTML elements of the report page: escaped text, numbers, names, tables, the page itself."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable
from importlib.resources import files

from ...evaluation.measures import MEASURES

MAX_DESCRIPTION = 140  # characters of a text in a list

# Control characters are not allowed in HTML, and UTF-8 has no lone surrogates.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def text(value: object) -> str:
    """Escape text for HTML; forbidden characters become question marks."""
    return html.escape(_FORBIDDEN.sub("?", str(value)))


def number(value: float) -> str:
    """Format a number: three decimals, one from 100 on, a dash for NaN; zero has no sign."""
    if math.isnan(value):
        return "–"
    if abs(value) >= 100:
        return f"{value:,.1f}".replace("-", "−")
    return f"{value:z.3f}".replace("-", "−")


def signed(value: float) -> str:
    """Format a number with its sign; zero has none."""
    rounded = float(f"{value:.3f}")
    if rounded == 0:
        return number(0.0)
    sign = "+" if rounded > 0 else ""
    return sign + number(value)


def interval(limits: tuple[float, float], form: Callable[[float], str] = number) -> str:
    """Format a confidence interval: ``0.61 to 0.67``."""
    return f"{form(limits[0])} to\u00a0{form(limits[1])}"


def p_text(p: float) -> str:
    """Format a p-value, without line breaks: ``= 0.031`` or ``< 0.001``."""
    if p < 0.001:
        return "<\u00a00.001"
    return f"=\u00a0{p:.3f}"


def count(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 query``, ``1,200 queries``."""
    if n == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{n:,} {noun[:-1]}ies"
    return f"{n:,} {noun}s"


def shorten(description: str) -> str:
    """Truncate a long description to one line."""
    line = " ".join(str(description).split())
    if len(line) > MAX_DESCRIPTION:
        return line[: MAX_DESCRIPTION - 1] + "…"
    return line


def measure_label(name: str) -> str:
    """The label of a measure: ``NDCG@10 (linear gain)`` for ``ndcg-linear@10``.

    Unknown names stay unchanged.
    """
    stem, at, cutoff = name.partition("@")
    label = MEASURES[stem].label if stem in MEASURES else stem
    label, space, kind = label.partition(" (")
    return label + at + cutoff + space + kind


def measure_meaning(name: str) -> str:
    """A short definition of a measure; empty for unknown names."""
    stem, _, cutoff = name.partition("@")
    if stem not in MEASURES:
        return ""
    meaning = MEASURES[stem].meaning
    if cutoff and "ndcg" in stem:
        meaning += " in the first {k}"
    return meaning.replace("{k}", cutoff)


def section(name: str, heading: str, body: str) -> str:
    """A section with a heading; ``name`` is its id and its style class."""
    return (
        f'<section class="{name}" aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>'
        f"{body}</section>"
    )


def table(
    caption: str, heads: Iterable[str], rows: Iterable[str], kind: str = ""
) -> str:
    """A table that scrolls on narrow screens; heads and rows are HTML cells."""
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def column(name: str, kind: str = "") -> str:
    """The header cell of a column."""
    return f'<th scope="col" class="{kind}">{text(name)}</th>'


def tile(term: str, value: str, detail: str) -> str:
    """A headline number: its name, its value and a small line below."""
    return (
        f"<div><dt>{text(term)}</dt>"
        f"<dd>{text(value)}<small>{text(detail)}</small></dd></div>"
    )


def page(title: str, head: str, sections: list[str], foot: str, style: str) -> str:
    """A self-contained HTML document without scripts; ``style`` is added to ``page.css``."""
    css = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{text(title)}</title>",
            f"<style>{css}{style}</style>",
            "</head>",
            "<body>",
            f"<header>{head}</header>",
            "<main>",
            *sections,
            "</main>",
            f"<footer>{foot}</footer>",
            "</body>",
            "</html>",
            "",
        ]
    )
