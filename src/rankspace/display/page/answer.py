"""The answer that opens a report page: a decision, its reason, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .html import column, number, section, table, text


class AnswerTable(NamedTuple):
    """A table of plain values: its caption, its header and its rows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


class Answer(NamedTuple):
    """A decision to show before anything else.

    ``kind`` is "better", "equal" or "worse" and sets the badge, ``badge`` is its word.
    """

    kind: str
    badge: str
    sentence: str
    tables: Sequence[AnswerTable]
    notes: Sequence[str]


def answer_section(answer: Answer | None) -> str:
    """The tables of the answer, and what follows from them."""
    if answer is None:
        return ""
    tables = "".join(_table(part) for part in answer.tables if part.rows)
    notes = "".join(f"<li>{text(note)}</li>" for note in answer.notes)
    return section("answer", "Why", f"{tables}<ul>{notes}</ul>")


def _table(part: AnswerTable) -> str:
    heads = [column(name) for name in part.header]
    rows = [
        "".join(_cell(i, value) for i, value in enumerate(row)) for row in part.rows
    ]
    return table(text(part.caption), heads, rows)


def _cell(place: int, value: object) -> str:
    shown = number(value) if isinstance(value, float) else str(value)
    if place == 0:
        return f'<th scope="row">{text(shown)}</th>'
    return f"<td>{text(shown)}</td>"
