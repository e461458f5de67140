"""The answer that opens a report page: a decision, its reason, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .html import column, number, section, table, text

MAX_NARROW = 5  # columns that a telephone shows side by side
COMMAND = "rankspace "  # what a step that is a command starts with


class AnswerTable(NamedTuple):
    """A table of plain values: its caption, its header and its rows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


class Answer(NamedTuple):
    """A decision to show before anything else.

    ``kind`` is "better", "equal" or "worse" and sets the badge, ``badge`` is its word. Next
    steps that are commands start with "rankspace".
    """

    kind: str
    badge: str
    sentence: str
    tables: Sequence[AnswerTable]
    notes: Sequence[str]
    next_steps: Sequence[str] = ()


def answer_section(answer: Answer | None) -> str:
    """The tables of the answer, what follows from them, and how to read them."""
    if answer is None:
        return ""
    tables = "".join(_table(part) for part in answer.tables if part.rows)
    steps = "".join(map(_step, answer.next_steps))
    notes = "".join(f"<li>{text(note)}</li>" for note in answer.notes)
    body = f"{tables}<h3>How to read it</h3><ul>{notes}</ul>"
    if steps:
        body = f"{tables}<h3>Next</h3>{steps}<h3>How to read it</h3><ul>{notes}</ul>"
    return section("answer", "Why", body)


def _step(step: str) -> str:
    if step.startswith(COMMAND):
        return f'<pre class="command">{text(step)}</pre>'
    return f"<p>{text(step)}</p>"


def _table(part: AnswerTable) -> str:
    heads = [
        column(name, "left" if i == 0 else "") for i, name in enumerate(part.header)
    ]
    rows = [
        "".join(_cell(i, value) for i, value in enumerate(row)) for row in part.rows
    ]
    kind = "wide" if len(heads) > MAX_NARROW else ""
    return table(text(part.caption), heads, rows, kind)


def _cell(place: int, value: object) -> str:
    shown = str(value)
    if isinstance(value, float):
        shown = number(value)
    elif isinstance(value, int):
        shown = f"{value:,}"
    if place == 0:
        return f'<th scope="row">{text(shown)}</th>'
    return f"<td>{text(shown)}</td>"
