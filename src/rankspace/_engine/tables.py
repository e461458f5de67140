"""Tables as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

Row = Sequence[object]


def as_text(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Columns aligned by spaces: words to the left, numbers to the right."""
    numeric = [
        all(isinstance(row[i], int | float) for row in rows) and i > 0
        for i in range(len(header))
    ]
    cells = [list(header), *([_show(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if numeric[i] else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_markdown(header: Sequence[str], rows: Sequence[Row]) -> str:
    """A Markdown table."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    cells = [header, rule, *([_show(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def as_csv(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Comma-separated values with every digit kept."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([header, *rows])
    return stream.getvalue()


def _show(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.4f}" if abs(cell) < 1000 else f"{cell:.1f}"
    return str(cell)
