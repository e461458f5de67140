"""Click logs: impressions and clicks of documents, counted into grades by query and document."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.checks import check_count
from .._engine.columns import TABLE_SUFFIXES, open_table
from .._engine.files import PathLike, malformed, read_lines
from .qrels import ITEM_COLUMNS, QUERY_COLUMNS, split_csv
from .rows import number_by_appearance

# What a log calls its columns; the time is needed for a split by time only.
COLUMNS = {
    "query": QUERY_COLUMNS,
    "document": (*ITEM_COLUMNS, "document"),
    "position": ("position", "rank", "shown_position"),
    "clicked": ("clicked", "click"),
    "time": ("time", "timestamp", "date"),
}
LAST_POSITION = 2.0**53  # larger numbers are not exact
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}

Log = dict[str, list[Any]]


def grades_of_clicks(
    log: Any,
    min_impressions: int,
    propensities: Any,
    since: Any,
    until: Any,
) -> dict[str, dict[str, float]]:
    """Clicks of each document that was shown for a query, ``{query: {document: clicks}}``.

    With propensities, a click counts one over the probability that its position was examined.
    """
    check_count(min_impressions, "min_impressions")
    by_time = since is not None or until is not None
    columns = read_log(log, by_time)
    clicked = np.array([_clicked(value) for value in columns["clicked"]])
    positions = _positions(columns["position"])
    worth = clicked / _propensities(positions, propensities)
    kept = np.ones(clicked.size, dtype=bool)
    if by_time:
        kept = _in_period(columns["time"], since, until)
    queries, query_names = number_by_appearance(list(map(str, columns["query"])))
    items, item_names = number_by_appearance(list(map(str, columns["document"])))
    pairs = queries * len(item_names) + items
    shown, entries = np.unique(pairs[kept], return_inverse=True)
    impressions = np.bincount(entries, minlength=shown.size)
    clicks = np.bincount(entries, worth[kept], minlength=shown.size)
    often = impressions >= min_impressions
    if not often.any():
        raise ValueError(
            f"the log must show some document at least {min_impressions} times for a query: got "
            f"{impressions.max(initial=0)} times at most. Lower min_impressions, or widen the time."
        )
    grades: dict[str, dict[str, float]] = {}
    numbers = np.divmod(shown[often], len(item_names))
    for query, item, grade in zip(*numbers, clicks[often].tolist(), strict=True):
        grades.setdefault(str(query_names[query]), {})[str(item_names[item])] = grade
    return grades


def read_log(log: Any, with_time: bool) -> Log:
    """The columns of a log: a CSV or parquet file, or a dataframe."""
    wanted = [name for name in COLUMNS if with_time or name != "time"]
    if hasattr(log, "columns"):
        columns = _read_dataframe(log, wanted)
    elif not isinstance(log, str | os.PathLike):
        raise TypeError(
            f"a click log must be a dataframe or a file: got {type(log).__name__}."
        )
    elif Path(log).suffix in TABLE_SUFFIXES:
        columns = _read_parquet(log, wanted)
    else:
        columns = _read_csv(log, wanted)
    for kind, values in columns.items():
        if any(map(_is_missing, values)):
            raise ValueError(
                f"a click log must have a {kind} in each row: one lacks it."
            )
    return columns


def _is_missing(value: Any) -> bool:
    """Whether there is no value: None, NaN, or what pandas has in their place."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value)


def _read_dataframe(log: Any, wanted: Sequence[str]) -> Log:
    """A pandas or polars dataframe, or an Arrow table."""
    names = list(getattr(log, "column_names", log.columns))
    found = _named(names, wanted)
    return {kind: _values(log[column]) for kind, column in found.items()}


def _read_parquet(path: PathLike, wanted: Sequence[str]) -> Log:
    """A parquet or Arrow file, batch by batch."""
    table = open_table([Path(path)])
    found = _named(table.schema.names, wanted)
    columns: Log = {kind: [] for kind in wanted}
    for batch in table.batches(list(found.values())):
        for kind, values in zip(found, batch.columns, strict=True):
            columns[kind] += values.to_pylist()
    return columns


def _values(column: Any) -> list[Any]:
    """The values of a column of a dataframe as Python objects."""
    values = np.asarray(column)
    if values.dtype.kind == "M":
        # Nanoseconds would become whole numbers.
        values = values.astype("datetime64[us]")
    found: list[Any] = values.tolist()
    return found


def _read_csv(path: PathLike, wanted: Sequence[str]) -> Log:
    """A table with a header, separated by commas or tabs; plain or gzipped."""
    columns: Log = {kind: [] for kind in wanted}
    places: dict[str, int] | None = None
    separator, width = ",", 0
    for number, line in read_lines(path):
        if places is None:
            separator = "\t" if "\t" in line else ","
        fields = split_csv(path, number, line, separator)
        if places is None:
            names = [field.lower() for field in fields]
            found = _named(names, wanted)
            places = {kind: names.index(column) for kind, column in found.items()}
            width = len(fields)
            continue
        if len(fields) != width:
            problem = f"must have {width} columns, as the header: got {len(fields)}"
            raise malformed(path, number, problem)
        for kind, place in places.items():
            columns[kind].append(fields[place].strip())
    return columns


def _named(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """The column of each kind."""
    found = {}
    for kind in wanted:
        accepted = [name for name in COLUMNS[kind] if name in names]
        if not accepted:
            raise ValueError(
                f"a click log must have a column of the {kind}, named one of "
                f"{', '.join(COLUMNS[kind])}: got {', '.join(map(str, names))}."
            )
        found[kind] = accepted[0]
    return found


def _clicked(value: Any) -> float:
    """1 or 0."""
    number = WORDS.get(str(value).lower())
    if number is None:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = -1.0
    if number not in (0.0, 1.0):
        raise ValueError(
            f"clicked must be 0 or 1, as each row is one time that a document was shown: got "
            f"{value!r}."
        )
    return number


def _positions(values: list[Any]) -> np.ndarray:
    try:
        positions = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"positions must be whole numbers from 1: got {values[0]!r}."
        ) from None
    # Also false for NaN and infinity.
    right = (positions >= 1) & (positions <= LAST_POSITION)
    wrong = ~right | (positions != np.round(positions))
    if wrong.any():
        raise ValueError(
            f"positions must be whole numbers from 1: got {positions[wrong][0]:g}."
        )
    return positions.astype(np.int64)


def _propensities(positions: np.ndarray, propensities: Any) -> np.ndarray:
    """The probability that each impression was examined."""
    if propensities is None:
        return np.ones(positions.size)
    try:
        table = np.asarray(propensities, dtype=float)
    except (TypeError, ValueError):
        table = np.array([np.nan])  # no probability
    if table.ndim != 1 or not ((table > 0) & (table <= 1)).all():
        raise ValueError(
            "propensities must be probabilities above 0 of the positions from 1 on: got "
            f"{propensities!r}."
        )
    if positions.max(initial=0) > table.size:
        raise ValueError(
            f"propensities must have one for each position: got {table.size}, and a document at "
            f"position {positions.max()}."
        )
    found: np.ndarray = table[positions - 1]
    return found


def _in_period(values: list[Any], since: Any, until: Any) -> np.ndarray:
    """Mask of the times from ``since`` on and before ``until``."""
    read: Callable[[Any], float] = _seconds
    given = [limit for limit in (since, until) if limit is not None]
    if all(isinstance(limit, Real) for limit in given):
        read = _number
    times = np.array([read(value) for value in values])
    kept = np.ones(times.size, dtype=bool)
    if since is not None:
        kept &= times >= read(since)
    if until is not None:
        kept &= times < read(until)
    return kept


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"times must be numbers if since and until are: got {value!r}."
        ) from None


def _seconds(value: Any) -> float:
    """Seconds of a date or time; one without a zone is UTC."""
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if not isinstance(value, date):
            value = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(
            f"times must be dates such as 2026-03-31 or 2026-03-31T18:00 if since and until are: "
            f"got {value!r}."
        ) from None
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return float((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
