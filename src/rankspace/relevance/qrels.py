"""Parsing of qrels: judgments by name from TREC or BEIR files, mappings and dataframes."""

from __future__ import annotations

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
    """Read a qrels file in the format of TREC or BEIR, plain or gzipped."""
    judgments = []
    for number, line in read_lines(path):
        separator = "\t" if "\t" in line else None
        fields = line.split(separator)
        if len(fields) not in (3, 4):
            raise malformed(
                path, number, f"must have 3 or 4 columns: got {len(fields)}"
            )
        try:
            grade = float(fields[-1])
        except ValueError:
            if number == 1 and fields[0] in QUERY_COLUMNS:
                continue
            what = f"must end in a grade: got {fields[-1]!r}"
            raise malformed(path, number, what) from None
        if not math.isfinite(grade):
            raise malformed(
                path, number, f"must have a finite grade: got {fields[-1]!r}"
            )
        judgments.append((fields[0], fields[-2], grade))
    return judgments


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
        np.asarray(frame[_column(names, accepted)]).tolist()
        for accepted in (QUERY_COLUMNS, ITEM_COLUMNS, GRADE_COLUMNS)
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
        f"a dataframe of qrels must have a column named one of {', '.join(accepted)}: got "
        f"{', '.join(map(str, names))}."
    )
