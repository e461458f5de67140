"""Tables as aligned text, Markdown, CSV, LaTeX, HTML for notebooks, and data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from .optional import require

Row = Sequence[object]
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
SPECIAL = re.compile("|".join(map(re.escape, LATEX)))
# Colours are those of the notebook around: light and dark themes need no rules of their own.
STYLE = (
    ".rankspace-view{font-size:.9em;overflow-x:auto}.rankspace-view table{border-collapse:collapse;"
    "font-variant-numeric:tabular-nums}.rankspace-view th,.rankspace-view td{padding:.2em .8em;"
    "text-align:right;border-bottom:1px solid rgba(128,128,128,.35);color:inherit;"
    "background:transparent}.rankspace-view th:first-child,.rankspace-view td:first-child"
    "{text-align:left}.rankspace-view p{margin:.4em 0}"
)


def as_text(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Columns aligned by spaces: numbers to the right, the first column and words to the left.

    NaN is a dash.
    """
    columns = []
    for i, column in enumerate(zip(header, *map(_format_row, rows), strict=True)):
        width = max(map(len, column))
        align = str.ljust
        if i > 0 and all(isinstance(row[i], int | float) for row in rows):
            align = str.rjust
        columns.append([align(cell, width) for cell in column])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:]])


def as_markdown(header: Sequence[str], rows: Sequence[Row]) -> str:
    """A Markdown table."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [header, rule, *map(_format_row, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def as_csv(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Comma-separated values with all digits of numbers."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


def as_latex(header: Sequence[str], rows: Sequence[Row], caption: str = "") -> str:
    """A LaTeX table, which needs the package booktabs."""
    head, *lines = map(_latex_row, [header, *rows])
    title = [rf"\caption{{{_escape_latex(caption)}}}"] if caption else []
    return "\n".join(
        [
            r"\begin{table}",
            *title,
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(row: Row) -> str:
    return " & ".join(map(_escape_latex, _format_row(row))) + r" \\"


def _escape_latex(text: str) -> str:
    return SPECIAL.sub(lambda found: LATEX[found[0]], text)


def as_frame(header: Sequence[str], rows: Sequence[Row]) -> Any:
    """A pandas DataFrame whose index is the first column."""
    pandas = require("pandas", extra="frames")
    frame = pandas.DataFrame(list(rows), columns=list(header))
    return frame.set_index(header[0])


def as_html(
    header: Sequence[str],
    rows: Sequence[Row],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> str:
    """A small table for notebooks, with lines of text before and after it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = [
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in map(_format_row, rows)
    ]
    first, last = (
        "".join(f"<p>{escape(line)}</p>" for line in part if line)
        for part in (before, after)
    )
    return (
        f'<div class="rankspace-view"><style>{STYLE}</style>{first}<table><thead><tr>{head}</tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table>{last}</div>"
    )


def _format_row(row: Row) -> list[str]:
    return [_format_cell(cell) for cell in row]


def _format_cell(cell: object) -> str:
    if not isinstance(cell, float):
        return str(cell)
    if cell != cell:
        return "-"
    if abs(cell) < 1000:
        return f"{cell:z.4f}"  # zero has no sign
    return f"{cell:.1f}"
