"""Tables as aligned text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

Row = Sequence[object]


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
