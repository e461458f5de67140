"""Parsing of qrels: judgments by name from TREC or BEIR files, mappings and dataframes."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._engine.files import PathLike, malformed, read_lines

Judgment = tuple[Any, Any, float]

QUERY_COLUMNS = ("query-id", "query_id", "qid", "query", "topic")
ITEM_COLUMNS = (
    "corpus-id",
    "corpus_id",
    "item_id",
    "doc_id",
    "docid",
    "docno",
    "item",
    "doc",
)
GRADE_COLUMNS = ("score", "grade", "relevance", "rel", "label")
COLUMNS = (QUERY_COLUMNS, ITEM_COLUMNS, GRADE_COLUMNS)


def judgments_of(qrels: Any) -> list[Judgment]:
    """(query id, item id, grade) triples from qrels in any form."""
    if isinstance(qrels, str | os.PathLike):
        return read_qrels(qrels)
    if isinstance(qrels, Mapping):
        return _mapping_judgments(qrels)
    if hasattr(qrels, "columns"):
        return _frame_judgments(qrels)
    raise TypeError(
        "qrels must be a path, a mapping {query: {item: grade}} or a dataframe: got "
        f"{type(qrels).__name__}."
    )


def read_qrels(path: PathLike) -> list[Judgment]:
    """Read a qrels file in the format of TREC or BEIR, or a CSV with a header; plain or gzipped."""
    judgments: list[Judgment] = []
    separator = None
    places = None
    for number, line in read_lines(path):
        if not judgments and places is None:
            separator = _separator(path, number, line)
            fields = _fields(path, number, line, separator)
            places = _header_places(path, number, fields)
            if places is not None:
                continue
        fields = _fields(path, number, line, separator)
        if places is None:
            judgment = _by_position(path, number, line, fields)
        else:
            judgment = _by_header(path, number, fields, places)
        judgments.append(judgment)
    return judgments


def _fields(path: PathLike, number: int, line: str, separator: str | None) -> list[str]:
    if separator != ",":
        return line.split(separator)
    return split_csv(path, number, line)


def split_csv(
    path: PathLike, number: int, line: str, separator: str = ","
) -> list[str]:
    """The fields of one line of a CSV file, perhaps in quotes."""
    try:
        (fields,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except csv.Error as error:
        raise malformed(path, number, f"is not a line of a table ({error})") from error
    return fields


def _separator(path: PathLike, number: int, line: str) -> str | None:
    """What separates the columns, by the first line: tabs, the commas of a header, or spaces."""
    if "\t" in line:
        return "\t"
    if _is_header(_fields(path, number, line, ",")):
        return ","
    return None


def _is_header(fields: list[str]) -> bool:
    """Whether the first line names columns: it has no grade."""
    named = any(field.lower() in QUERY_COLUMNS for field in fields)
    return named and _grade(fields[-1]) is None


def _header_places(
    path: PathLike, number: int, fields: list[str]
) -> tuple[int, ...] | None:
    """Positions of query, item and grade, and the number of columns; None without a header."""
    if not _is_header(fields):
        return None
    names = [field.lower() for field in fields]
    try:
        found = [_column(names, accepted) for accepted in COLUMNS]
    except ValueError as error:
        raise malformed(path, number, f"is a header, and {error}"[:-1]) from None
    return (*map(names.index, found), len(names))


def _by_header(
    path: PathLike, number: int, fields: list[str], places: tuple[int, ...]
) -> Judgment:
    query, item, grade, n_columns = places
    if len(fields) != n_columns:
        problem = f"must have {n_columns} columns, as the header: got {len(fields)}"
        raise malformed(path, number, problem)
    value = _finite_grade(path, number, fields[grade])
    return fields[query].strip(), fields[item].strip(), value


def _by_position(path: PathLike, number: int, line: str, fields: list[str]) -> Judgment:
    if len(fields) not in (3, 4):
        problem = f"must have 3 or 4 columns: got {len(fields)}"
        if "," in line:
            problem += (
                "; a table separated by commas must start with a header, such as "
                "query-id,corpus-id,score"
            )
        raise malformed(path, number, problem)
    return fields[0], fields[-2], _finite_grade(path, number, fields[-1])


def _finite_grade(path: PathLike, number: int, text: str) -> float:
    grade = _grade(text)
    if grade is None:
        raise malformed(path, number, f"must end in a grade: got {text!r}")
    if not math.isfinite(grade):
        raise malformed(path, number, f"must have a finite grade: got {text!r}")
    return grade


def _grade(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mapping_judgments(qrels: Mapping[Any, Any]) -> list[Judgment]:
    judgments = []
    for query, row in qrels.items():
        grades = row if isinstance(row, Mapping) else dict.fromkeys(row, 1.0)
        for item, grade in grades.items():
            judgments.append((str(query), str(item), float(grade)))
    return judgments


def _frame_judgments(frame: Any) -> list[Judgment]:
    # In a pyarrow table, columns are the data, and column_names their names.
    names = list(getattr(frame, "column_names", frame.columns))
    columns = [
        np.asarray(frame[_column(names, accepted)]).tolist() for accepted in COLUMNS
    ]
    for number, row in enumerate(zip(*columns, strict=True)):
        if any(value is None or value != value for value in row):
            raise ValueError(
                f"a dataframe of qrels must not hold missing values: row {number} has one."
            )
    return [(str(q), str(i), float(g)) for q, i, g in zip(*columns, strict=True)]


def _column(names: list[str], accepted: tuple[str, ...]) -> str:
    for name in accepted:
        if name in names:
            return name
    raise ValueError(
        f"qrels must have a column named one of {', '.join(accepted)}: got "
        f"{', '.join(map(str, names))}."
    )
