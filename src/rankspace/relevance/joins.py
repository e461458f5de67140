"""Joins by id: how many ids of one side the other has, and the likely cause where too few match."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

# Collections lose some documents, and systems fail on some queries: so few change no conclusion.
# Ids of another kind match by chance at best, so they leave out far more.
FEW = 3
FEW_SHARE = 0.05
SHOWN = 3  # ids of each side in a message
SURE = 5.0  # standard errors by which one numbering must fit better than another

OPTIONS = {
    "item": "item_ids in the library, --ids on the command line",
    "query": "query_ids in the library, --query-ids on the command line",
}

PLURALS = {"item": "items", "query": "queries"}


class Side(NamedTuple):
    """One side of a join: what has the ids, and the ids."""

    name: str
    ids: Collection[str]


def few(n: int) -> int:
    """How many of ``n`` ids may be left out of a join."""
    return max(FEW, int(FEW_SHARE * n))


def stray_ids(wanted: Side, known: Side) -> list[str]:
    """The wanted ids that are not known, each once."""
    return sorted(set(wanted.ids).difference(known.ids))


def check_numbering(kind: str, a: Side, b: Side) -> None:
    """Raise if one side numbers its rows from 0 and the other from 1."""
    for zero, one in ((a, b), (b, a)):
        n = n_row_numbers(zero.ids)
        if n and _counts_from_one(one.ids, n):
            raise join_error(kind, one, Side(zero.name, row_names(n)))


def check_has_rows(relevance: Any, kind: str, rows: str, way_out: str) -> None:
    """Raise if queries or items that are known by id only would be joined to rows by position."""
    ids = relevance.query_ids if kind == "query" else relevance.item_ids
    if kind not in relevance.known_by_name or ids is None:
        return
    raise ValueError(
        f"the judgments name their {PLURALS[kind]} in an order of their own "
        f"({_some(ids.tolist())}), which need not be that of {rows}. {way_out}"
    )


def warn_of_numbering(kind: str, judgments: Side, rows: Side) -> None:
    """Warn if ids of judgments are taken as row numbers, though they may count from 1.

    Nobody can tell if neither the first nor the last row is judged.
    """
    if may_count_from_one(judgments.ids, rows.ids):
        warnings.warn(
            f"{kind} ids of the judgments are taken as row numbers from 0, as in {rows.name}, but "
            f"none of them is 0. If they count from 1, each row is judged as its neighbour. Give "
            f"the {kind} ids in the order of the rows ({OPTIONS[kind]}).",
            UserWarning,
            stacklevel=4,
        )


def may_count_from_one(judged: Collection[str], rows: Collection[str]) -> bool:
    """Whether rows are numbered from 0, and judgments of them perhaps from 1."""
    distinct = set(judged)
    if not distinct or "0" in distinct or not _are_numbers(distinct):
        return False
    return n_row_numbers(rows) > 0


def check_not_shifted(
    kinds: Collection[str], pairs: np.ndarray, score: Callable[..., np.ndarray]
) -> None:
    """Raise if judgments fit far better one row earlier, by a sign test: they count from 1.

    Parameters
    ----------
    kinds : collection of str
        Which of "item" and "query" may count from 1.
    pairs : ndarray of shape (n, 2)
        Row numbers of relevant pairs of query and item.
    score : callable
        Nearness of the pairs of an array of queries and one of items.
    """
    queries, items = pairs[(pairs > 0).all(axis=1)].T
    own = score(queries, items)
    for shifted in (kinds, *([kind] for kind in kinds)):
        before = score(queries - ("query" in shifted), items - ("item" in shifted))
        n_nearer = int(np.sum(before > own))
        n_farther = int(np.sum(before < own))
        if n_nearer - n_farther > SURE * np.sqrt(n_nearer + n_farther):
            options = " and ".join(OPTIONS[kind] for kind in shifted)
            raise ValueError(
                f"{' and '.join(shifted)} ids of the judgments are taken as row numbers, from 0, "
                f"but seem to count from 1: in {n_nearer} of {n_nearer + n_farther} relevant pairs "
                "the rows before those that they name are nearer. Give the ids in the order of the "
                f"rows ({options})."
            )


def join_error(kind: str, wanted: Side, known: Side) -> ValueError:
    """The error for ids that are not known: how many, some of them, and the likely cause."""
    stray = stray_ids(wanted, known)
    unused = stray_ids(known, wanted)
    n = len(set(wanted.ids))
    shown = f"Only in {wanted.name}: {_some(stray)}"
    if unused:
        shown += f"; only in {known.name}: {_some(unused)}"
    return ValueError(
        f"{kind} ids of {wanted.name} must be among those of {known.name}: {n - len(stray)} of "
        f"{n} are. {shown}. {_cause(kind, wanted, known, stray, unused)}"
    )


def n_row_numbers(ids: Collection[str]) -> int:
    """How many rows there are if ids look like row numbers from 0, else 0.

    A ranking cut at some length does not list all rows, but most.
    """
    distinct = set(ids)
    if "0" not in distinct or not _are_numbers(distinct):
        return 0
    n = 1 + max(map(int, distinct))
    return n if 2 * len(distinct) > n else 0


def row_names(n: int) -> list[str]:
    """Row numbers from 0 as ids."""
    return [str(row) for row in range(n)]


def _counts_from_one(ids: Collection[str], n: int) -> bool:
    """Whether ids of ``n`` rows are numbers from 1 to n, though not all need be there."""
    distinct = set(ids)
    return str(n) in distinct and "0" not in distinct and _are_numbers(distinct)


def _are_numbers(ids: Iterable[str]) -> bool:
    # Longer numbers are names, and slow to read.
    return all(re.fullmatch(r"0|[1-9][0-9]{0,17}", name) for name in ids)


def _some(ids: list[str]) -> str:
    others = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(map(repr, ids[:SHOWN])) + others


# ---------------------------------------------------------------------- causes

# What ids may differ in, and a spelling in which they agree.
TYPES = {
    "they differ in case or in spaces": lambda name: name.strip().casefold(),
    "one side has read numbers as floating-point numbers": lambda name: re.sub(
        r"\.0$", "", name
    ),
}
FORMS = {
    "one side pads numbers with zeros": lambda name: re.sub(r"0*(\d+)", r"\1", name),
    "they differ in what stands before the number": lambda name: re.sub(
        r"^.*?0*(\d+)$", r"\1", name
    ),
}


def _cause(
    kind: str, wanted: Side, known: Side, stray: list[str], unused: list[str]
) -> str:
    """A sentence on the likely cause, and what to do about it."""
    give = f"Give the {kind} ids in the order of the rows ({OPTIONS[kind]})."
    sides = ((known, wanted), (wanted, known))
    for rows, other in sides:
        n_rows = n_row_numbers(rows.ids)
        if n_rows and _counts_from_one(other.ids, n_rows):
            return (
                f"The likely cause: {kind} ids of {rows.name} are row numbers, from 0, but those "
                f"of {other.name} count from 1. {give}"
            )
    problem = _spelling(TYPES, stray, unused)
    n = len(set(wanted.ids))
    many = len(stray) > min(few(n), n - 1)
    for rows, _ in sides:
        # Row numbers may look like ids without their prefix, and are not.
        if problem is None and many and n_row_numbers(rows.ids):
            return (
                f"The likely cause: {kind} ids of {rows.name} are row numbers, from 0, for want "
                f"of names. {give}"
            )
    problem = problem or _spelling(FORMS, stray, unused)
    if problem is not None:
        return f"The likely cause: {problem}. Write them alike on both sides."
    return (
        "The likely cause: the ids are of another file or another version of the collection. "
        "Check where both come from."
    )


def _spelling(
    spellings: Mapping[str, Callable[[str], str]], stray: list[str], unused: list[str]
) -> str | None:
    """The first difference of spelling that explains most of the stray ids."""
    for problem, spell in spellings.items():
        spelled = set(map(spell, unused))
        if 2 * sum(spell(name) in spelled for name in stray) > len(stray):
            return problem
    return None
