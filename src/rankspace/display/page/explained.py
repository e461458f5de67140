"""Why a query gained or lost: the score of its relevant item, explained in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...metrics.explanation import Explanation, Part, top_parts
from .html import number, signed

SHOWN = 3  # directions and judgments of each score
# From the numbers of a query and an item to what to say of their score.
Explain = Callable[[int, int], Sequence[str]]


def explanation_lines(found: Explanation, names: tuple[str, str]) -> list[str]:
    """What moved a score, as sentences."""
    before, after = names
    lines = [
        f"Its score: {number(found.baseline)} {before}, {number(found.score)} {after}; change "
        f"{signed(found.difference)}."
    ]
    directions = top_parts(found.directions, SHOWN, _others(found.directions))
    lines.append(f"By direction: {_listed(directions)}.")
    if found.fields:
        lines.append(f"By field: {_listed(found.fields)}.")
    if found.judgments:
        *judgments, rest = found.judgments
        shown = [*judgments[:SHOWN], _rest(judgments[SHOWN:], rest)]
        lines.append(f"By what was judged: {_listed(shown)}.")
    return lines


def _others(parts: Sequence[Part]) -> str:
    return f"{len(parts) - SHOWN:,} others"


def _rest(others: Sequence[Part], rest: Part) -> Part:
    """What the judgments that are not shown contribute, with what no judgment explains."""
    more = sum(part.contribution for part in others)
    return Part("all else", more + rest.contribution)


def _listed(parts: Sequence[Part]) -> str:
    return "; ".join(f"{name} {signed(value)}" for name, value in parts)
