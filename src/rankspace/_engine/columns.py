"""Tables of vectors, ids and texts: parquet and Arrow files, and dataframes, read in batches.

Only the columns that are asked for are read, and a batch of them is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .files import foreign_bytes
from .optional import require

TABLE_SUFFIXES = (".parquet", ".arrow", ".feather")
ID_COLUMNS = ("_id", "id", "ids", "item_id", "doc_id", "docid", "query_id", "qid")
# How types of numbers begin in polars and pyarrow, and NumPy's code of their kind.
NUMERIC = {
    "int": "i",
    "uint": "u",
    "float": "f",
    "double": "f",
    "half": "f",
    "bool": "b",
}
BATCH = 1024  # rows
# Of a parquet file that is read ahead, so that a row group need not be in memory.
READ_AHEAD_BYTES = 2**20
# How Arrow's files for random access start, and its streams end.
FILE_START = b"ARROW1"
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


@dataclass(frozen=True)
class Table:
    """Columns of files or of a dataframe.

    Parameters
    ----------
    name : str
        What messages call it.
    schema : pyarrow.Schema
        Names and types of the columns.
    n_rows : int
        Number of rows.
    batches : callable
        Called with names of columns; yields record batches of at most `BATCH` rows.
    """

    name: str
    schema: Any
    n_rows: int
    batches: Callable[[Sequence[str]], Iterator[Any]]

    def column(self, chosen: str | None, kind: str, candidates: Sequence[str]) -> str:
        """The chosen column, or the only candidate; the error lists what there is."""
        if chosen is not None:
            check_column(self.name, chosen, self.schema.names)
            return chosen
        return only(self.name, candidates, kind)

    def strings(self, column: str) -> list[str]:
        """The values of a column as text; none may be missing."""
        values: list[str] = []
        for batch in self.batches([column]):
            for value in batch.column(0).to_pylist():
                values.append(as_text(self.name, column, len(values), value))
        return values

    @property
    def text_columns(self) -> list[str]:
        """The columns of texts."""
        return [field.name for field in self.schema if _is_text(field.type)]

    def texts(self, columns: Sequence[str]) -> list[dict[str, str]]:
        """The texts of each row by column, without those that are missing."""
        rows: list[dict[str, str]] = []
        for batch in self.batches(columns):
            for row in batch.to_pylist():
                rows.append(
                    {name: row[name] for name in columns if row[name] is not None}
                )
        return rows


def as_text(name: Any, column: str, row: int, value: Any) -> str:
    """A value as text; bytes are UTF-8."""
    if value is None:
        raise ValueError(
            f"{name} must have a value in {column!r} for each row: row {row} has none."
        )
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def only(name: Any, candidates: Sequence[str], kind: str) -> str:
    """The only candidate; an error that lists them if there are more, or none."""
    if len(candidates) != 1:
        raise ValueError(
            f"{name} must hold one {kind}: got {', '.join(candidates) or 'none'}. Name it with "
            "column=..., or --column on the command line; or write one to a file of its own."
        )
    return candidates[0]


def check_column(name: Any, column: str | None, columns: Iterable[str]) -> None:
    """Raise unless a table has a column, if one is named."""
    known = list(columns)
    if column is not None and column not in known:
        raise ValueError(
            f"{name} has no column {column!r}: it has {', '.join(known) or 'none'}."
        )


def _check_unique(name: Any, columns: Iterable[Any]) -> None:
    """Raise if two columns have the same name."""
    known = sorted(map(str, columns))
    twice = [one for one, following in pairwise(known) if one == following]
    if twice:
        raise ValueError(
            f"{name} must name each of its columns differently: got {twice[0]!r} twice."
        )


# ---------------------------------------------------------------------- vectors and ids


def id_column(table: Table, chosen: str | None = None) -> str | None:
    """The column that holds row ids: the chosen one, or the first that is named like one."""
    if chosen is not None:
        return table.column(chosen, "column of ids", [])
    return first_id_column(table.schema.names)


def first_id_column(columns: Iterable[str]) -> str | None:
    """The column that is named like row ids, if there is one."""
    known = set(columns)
    return next((name for name in ID_COLUMNS if name in known), None)


class VectorColumns:
    """Rows of vectors in a table: a column of lists of numbers, or all columns of numbers.

    Parameters
    ----------
    table : Table
        The table.
    column : str, optional
        The column of lists, needed if there are several.
    """

    def __init__(self, table: Table, column: str | None = None) -> None:
        self.table = table
        lists = [field.name for field in table.schema if _is_vector(field.type)]
        self.columns: list[str] = []
        self._read = self._list_rows
        if lists or column is not None:
            self.columns = [table.column(column, "column of vectors", lists)]
            self.dtype = self._list_type()
        else:
            self._read = self._number_rows
            names = first_id_column(table.schema.names)
            fields = [f for f in table.schema if f.name != names and _is_number(f.type)]
            self.columns = [field.name for field in fields]
            kinds = [field.type.to_pandas_dtype() for field in fields]
            self.dtype = np.result_type(*kinds) if kinds else np.dtype(float)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and width; of one dimension if there is no vector."""
        first = next(iter(self), None)
        if first is None:
            return (0,)
        return (self.table.n_rows, first.shape[1])

    def __iter__(self) -> Iterator[np.ndarray]:
        if not self.columns:
            return
        width = None
        for batch in self.table.batches(self.columns):
            if not batch.num_rows:
                continue
            rows = self._read(batch)
            if width not in (None, rows.shape[1]):
                raise self._uneven([width, rows.shape[1]])
            width = rows.shape[1]
            yield rows

    def _list_type(self) -> np.dtype:
        column = self.columns[0]
        kind = self.table.schema.field(column).type
        if not _is_vector(kind):
            raise ValueError(
                f"{self.table.name} must hold lists of numbers in {column!r}: got {kind}."
            )
        return np.dtype(kind.value_type.to_pandas_dtype())

    def _list_rows(self, batch: Any) -> np.ndarray:
        import pyarrow.compute as pc

        column = batch.column(0)
        widths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(widths) != 1 or widths[0] is None:
            raise self._uneven(widths)
        values = pc.list_flatten(column)
        if values.null_count:
            raise ValueError(
                f"{self.table.name} must hold vectors without missing numbers: got some in "
                f"{self.columns[0]!r}."
            )
        try:
            return values.to_numpy().reshape(len(column), widths[0])
        except ValueError as error:
            raise ValueError(f"{self.table.name} is damaged: {error}.") from error

    def _uneven(self, widths: Sequence[Any]) -> ValueError:
        shown = ", ".join(map(str, widths[:5])).replace("None", "missing")
        return ValueError(
            f"{self.table.name} must hold vectors of the same width: got widths {shown}."
        )

    def _number_rows(self, batch: Any) -> np.ndarray:
        rows = np.empty((batch.num_rows, len(self.columns)), dtype=self.dtype)
        for i, column in enumerate(batch.columns):
            if column.null_count and self.dtype.kind != "f":
                raise ValueError(
                    f"{self.table.name} must hold a number in each row of "
                    f"{self.columns[i]!r}: got missing values."
                )
            rows[:, i] = column.to_numpy(zero_copy_only=False)
        return rows


def _is_vector(kind: Any) -> bool:
    from pyarrow import types

    is_list = (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
    return is_list and _is_number(kind.value_type)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind))


# ---------------------------------------------------------------------- files


def open_table(files: Sequence[Path]) -> Table:
    """The rows of parquet or Arrow files, one file after the other; their columns are the same."""
    require("pyarrow", extra="parquet")
    schemas, counts = zip(*map(_describe, files), strict=True)
    _check_unique(files[0], schemas[0].names)
    name = str(files[0] if len(files) == 1 else files[0].parent)
    for path, schema in zip(files, schemas, strict=True):
        _check_same_columns(files[0], schemas[0], path, schema)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for path, count in zip(files, counts, strict=True):
            yield from _counted(path, _file_batches(path, columns), count)

    return Table(name, schemas[0], sum(counts), batches)


def _counted(path: Path, batches: Iterator[Any], count: int) -> Iterator[Any]:
    """Batches that must have as many rows as the file declares; a damaged one may have others."""
    n_rows = 0
    for batch in batches:
        n_rows += batch.num_rows
        yield batch
    if n_rows != count:
        raise ValueError(
            f"{path} is damaged: it declares {count} rows, and has {n_rows}."
        )


def _check_same_columns(first: Path, expected: Any, path: Path, schema: Any) -> None:
    # Notes of a writer, such as those of pandas, may differ.
    if schema.equals(expected, check_metadata=False):
        return
    known = {field.name: field.type for field in expected}
    for field in schema:
        if known.pop(field.name, None) != field.type:
            known[field.name] = field.type
            break
    raise ValueError(
        f"files of {path.parent} must have the same columns: {first.name} and {path.name} differ "
        f"in {', '.join(known) or 'their order'}."
    )


def _describe(path: Path) -> tuple[Any, int]:
    """Schema and number of rows of a file."""
    if path.suffix == ".parquet":
        with foreign_bytes(path, "a parquet file"), _parquet(path) as file:
            return file.schema_arrow, file.metadata.num_rows
    with foreign_bytes(path, "an Arrow file"), _arrow(path) as reader:
        return reader.schema, sum(batch.num_rows for batch in _arrow_batches(reader))


def _file_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    kind = "an Arrow file"
    found = _read_arrow(path, columns)
    if path.suffix == ".parquet":
        kind = "a parquet file"
        found = _read_parquet(path, columns)
    while True:
        with foreign_bytes(path, kind):
            batch = next(found, None)
        if batch is None:
            return
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    with _parquet(path) as file:
        yield from file.iter_batches(BATCH, columns=list(columns))


def _parquet(path: Path) -> Any:
    pq = require("pyarrow.parquet", extra="parquet")
    return pq.ParquetFile(path, buffer_size=READ_AHEAD_BYTES, pre_buffer=False)


def _read_arrow(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    with _arrow(path) as reader:
        numbers = [reader.schema.get_field_index(name) for name in columns]
    with _arrow(path, numbers) as reader:
        for batch in _arrow_batches(reader):
            # Arrow reads beyond the end of arrays whose lengths or offsets are wrong.
            batch.validate(full=True)
            yield batch.select(list(columns))


def _arrow(path: Path, columns: Sequence[int] | None = None) -> Any:
    """A reader of an Arrow file in either format of Arrow: for random access, or a stream."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=columns)
    source = pa.memory_map(str(path))
    if source.read(len(FILE_START)) == FILE_START:
        return pa.ipc.open_file(source, options=options)
    source.seek(max(0, source.size() - len(STREAM_END)))
    if source.read() != STREAM_END:
        # One that is cut between two batches would be read as if it were whole.
        raise ValueError("the stream has no end")
    source.seek(0)
    return pa.ipc.open_stream(source, options=options)


def _arrow_batches(reader: Any) -> Iterator[Any]:
    if not hasattr(reader, "num_record_batches"):
        yield from reader
        return
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


# ---------------------------------------------------------------------- dataframes


def has_vector_column(frame: Any) -> bool:
    """Whether a pandas, polars or pyarrow table has a column that is no feature.

    Then it holds vectors as files do, in a column of lists or beside the ids. Whole numbers in a
    column that is named like ids are ids if all other columns are floats. Any other table of
    numbers only is a matrix already.
    """
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):
        return True
    if not hasattr(frame, "columns") or not hasattr(frame, "__arrow_c_stream__"):
        return False
    kinds = _kinds(frame)
    ids = first_id_column(kinds)
    own = kinds.pop(ids) if ids is not None else "f"
    if own in "iu" and set(kinds.values()) == {"f"}:
        return True
    return not {own, *kinds.values()} <= set("biuf")


def feature_columns(frame: Any) -> list[str] | None:
    """Names of the columns of a dataframe without that of ids, if all are numbers."""
    if hasattr(frame, "collect"):
        return None
    kinds = _kinds(frame)
    ids = first_id_column(kinds)
    names = [name for name in kinds if name != ids]
    are_numbers = all(kinds[name] in "biuf" for name in names)
    return names if names and are_numbers else None


def _kinds(frame: Any) -> dict[str, str]:
    """The kind of each column, as NumPy codes it: b, i, u or f for numbers, else O."""
    if not hasattr(frame, "schema"):
        codes = [getattr(kind, "kind", "O") for kind in frame.dtypes]
        return dict(zip(map(str, frame.columns), codes, strict=True))
    schema = frame.schema
    pairs = schema.items() if hasattr(schema, "items") else _arrow_types(schema)
    return {name: _numeric_code(str(kind).lower()) for name, kind in pairs}


def _arrow_types(schema: Any) -> Iterator[tuple[str, Any]]:
    return zip(schema.names, schema.types, strict=True)


def _numeric_code(kind: str) -> str:
    for name, code in NUMERIC.items():
        if kind.startswith(name):
            return code
    return "O"


def frame_table(frame: Any, name: str) -> Table:
    """A pandas, polars or pyarrow table, or a lazy one of polars, which is collected."""
    pa = require("pyarrow", extra="parquet")
    if hasattr(frame, "collect"):
        frame = frame.collect()
    table = frame
    if not isinstance(frame, pa.Table):
        try:
            table = pa.table(_plain_columns(frame, name))
        except (pa.ArrowException, TypeError) as error:
            raise ValueError(
                f"{name} must be a dataframe of numbers, texts and lists of numbers: {error}."
            ) from error

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        yield from table.select(list(columns)).to_batches(max_chunksize=BATCH)

    return Table(name, table.schema, table.num_rows, batches)


def _plain_columns(frame: Any, name: str) -> Any:
    """The columns of a pandas frame without its index; any other frame as it is."""
    if not hasattr(frame, "iloc"):
        return frame
    _check_unique(name, frame.columns)
    return {str(column): frame[column].array for column in frame.columns}
