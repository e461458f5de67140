"""Texts to embed: JSON lines, CSV and parquet files."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._engine.columns import (
    TABLE_SUFFIXES,
    as_text,
    check_column,
    first_id_column,
    open_table,
)
from .._engine.files import PathLike, malformed, open_bytes, read_lines

TEXT_COLUMNS = ("text", "title", "contents", "content", "body", "query")
LONGEST_FIELD = 2**24  # characters of a CSV field; the csv module stops at 2**17


def read_texts(
    path: PathLike, column: str | None = None
) -> tuple[list[str] | None, list[str]]:
    """Read ids and texts from a JSON lines, CSV, parquet or Arrow file.

    Ids are in a column such as ``_id`` or ``id``. If there is a title, it comes before the text.

    Parameters
    ----------
    path : path
        A file that ends in .jsonl, .csv, .parquet, .arrow or .feather; the first two may be
        gzipped.
    column : str, optional
        The column of the texts; by default ``text``, or the only other one that is known.

    Returns
    -------
    ids : list of str or None
        The ids, if there are any.
    texts : list of str
        A text for each row.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankspace.datasets import read_texts
    >>> _ = Path("cats.csv").write_text('id,title,text\\nd1,A,"cat, asleep"')
    >>> read_texts("cats.csv")
    (['d1'], ['A cat, asleep'])
    """
    path = Path(path)
    names, rows = _open(path)
    column = _text_column(path, names, column)
    title = "title" if "title" in names and column == "text" else None
    ids = first_id_column(names)
    texts: list[str] = []
    found: list[str] = []
    for row, record in enumerate(rows):
        parts = [_text(path, name, row, record) for name in (title, column) if name]
        texts.append(" ".join(filter(None, parts)))
        if ids is not None:
            found.append(as_text(path, ids, row, record.get(ids)))
    if not texts:
        raise ValueError(f"{path} must have at least one text: got none.")
    return (found if ids is not None else None), texts


def _open(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The names of the columns, and the rows."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix == ".jsonl":
        return _json_lines(path)
    if suffix == ".csv":
        return _csv_rows(path)
    if path.suffix in TABLE_SUFFIXES:
        return _table_rows(path)
    raise ValueError(
        f"texts must be in a .jsonl, .csv, .parquet, .arrow or .feather file: got {path}."
    )


def _json_lines(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    records = []
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise malformed(path, number, f"must be a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise malformed(path, number, f"must be a JSON object: got {line[:60]!r}")
        records.append(record)
    names = list(dict.fromkeys(name for record in records for name in record))
    return names, iter(records)


def _csv_rows(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    csv.field_size_limit(LONGEST_FIELD)
    try:
        with (
            open_bytes(path) as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            rows = list(csv.reader(text, strict=True))
    except (csv.Error, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a CSV file in UTF-8: {error}.") from error
    rows = [row for row in rows if row]
    names = rows[0] if rows else []
    if len(set(names)) != len(names):
        raise ValueError(f"{path} must have columns of different names: got {names}.")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(names):
            raise ValueError(
                f"{path} must have {len(names)} fields in each row, as the header: row {number} "
                f"has {len(row)}."
            )
    return names, (dict(zip(names, row, strict=True)) for row in rows[1:])


def _table_rows(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    table = open_table([path])
    names = list(table.schema.names)
    wanted = [n for n in names if n in TEXT_COLUMNS or n == first_id_column(names)]
    others = [n for n in names if str(table.schema.field(n).type).endswith("string")]
    columns = list(dict.fromkeys(wanted + others))
    rows = (row for batch in table.batches(columns) for row in batch.to_pylist())
    return columns, rows


def _text_column(path: Path, names: list[str], chosen: str | None) -> str:
    if chosen is not None:
        check_column(path, chosen, names)
        return chosen
    known = [name for name in TEXT_COLUMNS if name in names]
    if "text" in known:
        return "text"
    if len(known) != 1:
        raise ValueError(
            f"{path} must have a column 'text', or name the one to embed by column: got "
            f"{', '.join(names) or 'none'}."
        )
    return known[0]


def _text(path: Path, column: str, row: int, record: dict[str, Any]) -> str:
    """A text; a missing title is no text, a missing text is an error."""
    value = record.get(column)
    if value is None and column == "title":
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{path} must have a text in {column!r} of each row: row {row} has {value!r:.60}."
        )
    return value.strip()
