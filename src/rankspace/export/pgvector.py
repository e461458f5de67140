"""Export to PostgreSQL with pgvector: a table of mapped vectors, or an SQL script for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.credentials import hide_credentials
from .._engine.files import PathLike, replacing
from .._engine.optional import require
from .._engine.vectors import BLOCK, VectorBlocks, check_no_overflow
from ..metrics.embedding import EmbeddingMetric
from ..relevance.rows import check_ids
from .arrays import Progress, blocks_of, open_blocks

MAX_COMPONENTS = {"exact": 16_000, "hnsw": 2_000}  # limits of pgvector
# Signature, flags and extension length; then the trailer, a field count of -1.
BINARY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
BINARY_TRAILER = b"\xff\xff"
NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
NO_TEXT = re.compile("[\0\ud800-\udfff]")
ESCAPED = re.compile(r"[\x01-\x1f\x7f'\\]")  # in quotes: control characters, ' and \
MAX_NAME = 63  # bytes of a name in PostgreSQL, which cuts longer ones short
ROWS_PER_INSERT = 100  # of a script, so that no statement is long
# Commands of psql: UTF-8, whatever the locale, and no further statement after an error.
PROLOGUE = "\\encoding UTF8\n\\set ON_ERROR_STOP on\nBEGIN;\n"


@dataclass(frozen=True)
class _Table:
    """SQL statements that create, fill and search a table."""

    name: str
    width: int
    inner_product: bool
    id_type: str

    @property
    def quoted(self) -> str:
        return ".".join(f'"{part}"' for part in self.name.split("."))

    def create(self, replace: bool) -> list[str]:
        statements = ["CREATE EXTENSION IF NOT EXISTS vector"]
        if replace:
            statements.append(f"DROP TABLE IF EXISTS {self.quoted}")
        statements.append(
            f"CREATE TABLE {self.quoted} (id {self.id_type} PRIMARY KEY, "
            f"embedding vector({self.width}) NOT NULL)"
        )
        return statements

    def copy(self) -> str:
        return f"COPY {self.quoted} (id, embedding) FROM STDIN WITH (FORMAT BINARY)"

    def insert(self, names: Any, rows: np.ndarray) -> str:
        """A statement that adds rows, with all ids and vectors in quotes."""
        # Nine digits reproduce single precision.
        template = "(%s,'[" + ",".join(["%.9g"] * rows.shape[1]) + "]')"
        values = [
            template % (_literal(name), *row)
            for name, row in zip(names, rows.tolist(), strict=True)
        ]
        return f"INSERT INTO {self.quoted} (id, embedding) VALUES\n" + ",\n".join(
            values
        )

    def create_index(self) -> str:
        operators = "vector_l2_ops"
        if self.inner_product:
            operators = "vector_ip_ops"
        return f"CREATE INDEX ON {self.quoted} USING hnsw (embedding {operators})"

    def select(self, vector: str, limit: str) -> str:
        operator = "<#>" if self.inner_product else "<->"
        return (
            f"SELECT id FROM {self.quoted} ORDER BY embedding {operator} {vector}::vector "
            f"LIMIT {limit}"
        )


def to_pgvector(
    metric: EmbeddingMetric,
    vectors: Any,
    connection: Any,
    *,
    table: str = "items",
    ids: Any = None,
    index: str = "exact",
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> str:
    """Store mapped items in a PostgreSQL table with the pgvector extension.

    They are compared by inner product under a `BilinearMetric`, else by Euclidean distance. Under
    the cosine, vectors have unit length before they are mapped. The table has the columns ``id``
    and ``embedding``. It is created and filled in one transaction.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    connection : psycopg.Connection or str
        An open connection of psycopg 3, or an address such as ``postgresql://localhost/search``.
    table : str, default="items"
        Name of the table, or ``schema.table``, in lower case.
    ids : array-like of str, optional
        Names of the items; by default their row numbers.
    index : {"exact", "hnsw"}, default="exact"
        Exhaustive search, or an HNSW graph. Raise ``hnsw.ef_search`` in the session if its recall
        is too low.
    replace : bool, default=False
        Drop an existing table of that name first.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    str
        The SQL query to search by: its parameters are a query's vector from
        ``metric.embed_queries``, and the number of items.

    Examples
    --------
    ``sql = to_pgvector(metric, X, connection)``, and then
    ``connection.execute(sql, (str(metric.embed_queries(Q)[0].tolist()), 10)).fetchall()``.

    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_pgvector
    >>> to_pgvector(LinearMetric([[1.0, 0.0]]), [[0.0, 9.0]], "", table="no table")
    Traceback (most recent call last):
    ValueError: table must be lower-case letters, digits and _, or schema.table: got 'no table'.
    """
    blocks = open_blocks(metric, vectors, block_size)
    ids = check_ids(ids, blocks.n_rows, "ids")
    definition = _table(metric, table, ids, index)
    psycopg = require("psycopg", extra="export")
    session = connection
    if isinstance(connection, str):
        session = _connect(psycopg, connection)
    try:
        with session.transaction(), session.cursor() as cursor:
            for statement in definition.create(replace):
                cursor.execute(statement)
            with cursor.copy(definition.copy()) as copy:
                copy.write(BINARY_HEADER)
                for names, rows in _rows(metric, blocks, ids, progress):
                    copy.write(_binary(names, rows))
                copy.write(BINARY_TRAILER)
            if index == "hnsw":
                cursor.execute(definition.create_index())
    except psycopg.errors.DuplicateTable as error:
        raise ValueError(
            f"table must be new: {table} exists. Pass replace=True to drop it first."
        ) from error
    finally:
        if session is not connection:
            session.close()
    return definition.select("%s", "%s")


def _connect(psycopg: Any, address: str) -> Any:
    """Open a connection; errors do not show the password of the address."""
    try:
        return psycopg.connect(address)
    except psycopg.ProgrammingError:
        # It repeats the part of the address that it cannot read.
        problem = "connection must be an address that PostgreSQL can read: got another."
        hidden = psycopg.ProgrammingError(problem)
    except psycopg.Error as error:
        hidden = type(error)(hide_credentials(str(error), address))
    # Raised here, it does not carry the first error along.
    raise hidden


def to_sql(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike,
    *,
    table: str = "items",
    ids: Any = None,
    index: str = "exact",
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> str:
    """Write an SQL script for ``psql -f`` that creates the table of `to_pgvector`.

    It is one transaction, and psql stops at the first error. Ids and vectors are quoted: whatever
    they are, and whatever fails, they are never read as statements.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    path : path
        The script to write.
    table : str, default="items"
        Name of the table, or ``schema.table``, in lower case.
    ids : array-like of str, optional
        Names of the items; by default their row numbers.
    index : {"exact", "hnsw"}, default="exact"
        Exhaustive search, or an HNSW graph.
    replace : bool, default=False
        Drop an existing table of that name first.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    str
        The SQL query to search by, with ``$1`` for a query's vector from
        ``metric.embed_queries`` and ``$2`` for the number of items.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_sql
    >>> to_sql(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0]], "items.sql")
    'SELECT id FROM "items" ORDER BY embedding <-> $1::vector LIMIT $2'
    >>> print(Path("items.sql").read_text())
    \\encoding UTF8
    \\set ON_ERROR_STOP on
    BEGIN;
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE "items" (id bigint PRIMARY KEY, embedding vector(1) NOT NULL);
    INSERT INTO "items" (id, embedding) VALUES
    (0,'[2]');
    COMMIT;
    <BLANKLINE>
    """
    blocks = open_blocks(metric, vectors, block_size)
    ids = check_ids(ids, blocks.n_rows, "ids")
    definition = _table(metric, table, ids, index)
    with replacing(path) as stream:
        stream.write(PROLOGUE.encode())
        for statement in definition.create(replace):
            stream.write(f"{statement};\n".encode())
        for names, rows in _rows(metric, blocks, ids, progress):
            for start in range(0, len(rows), ROWS_PER_INSERT):
                part = slice(start, start + ROWS_PER_INSERT)
                stream.write(
                    f"{definition.insert(names[part], rows[part])};\n".encode()
                )
        if index == "hnsw":
            stream.write(f"{definition.create_index()};\n".encode())
        stream.write(b"COMMIT;\n")
    return definition.select("$1", "$2")


def _table(
    metric: EmbeddingMetric, name: str, ids: np.ndarray | None, index: str
) -> _Table:
    check_choice(index, "index", MAX_COMPONENTS)
    if not NAME.fullmatch(name):
        raise ValueError(
            f"table must be lower-case letters, digits and _, or schema.table: got {name!r}."
        )
    longest = max(name.split("."), key=len)
    if len(longest) > MAX_NAME:
        raise ValueError(
            f"names of tables and schemas must have at most {MAX_NAME} characters, as PostgreSQL "
            f"cuts off the rest: {longest!r} has {len(longest)}."
        )
    _check_text(ids)
    width = len(metric.item_map)
    limit = MAX_COMPONENTS[index]
    if width > limit:
        raise ValueError(
            f"with index={index!r} pgvector takes vectors of up to {limit} components: got "
            f"{width}. Learn fewer components, or pass index='exact'."
        )
    id_type = "text"
    if ids is None:
        id_type = "bigint"
    return _Table(name, width, metric.inner_product, id_type)


def _check_text(ids: np.ndarray | None) -> None:
    """Raise if an id is not text that PostgreSQL can hold."""
    names = [] if ids is None else ids.tolist()
    refused = next((name for name in names if NO_TEXT.search(name)), None)
    if refused is not None:
        raise ValueError(
            f"ids must be text without NUL characters and lone surrogates: got {refused!r}."
        )


def _rows(
    metric: EmbeddingMetric,
    blocks: VectorBlocks,
    ids: np.ndarray | None,
    progress: Progress | None,
) -> Iterator[tuple[Any, np.ndarray]]:
    """Names and mapped vectors of each block."""
    for start, block in blocks_of(metric, blocks, progress):
        names: Any = range(start, start + len(block))
        if ids is not None:
            names = ids[start : start + len(block)].tolist()
        rows = metric.embed_items(block).astype(np.float32, copy=False)
        check_no_overflow(rows, "items under the metric")
        yield names, rows


def _binary(names: Any, rows: np.ndarray) -> bytes:
    """Rows in the binary COPY format: two fields, each preceded by its length in bytes."""
    n, width = rows.shape
    vector = [
        ("bytes", ">i4"),
        ("width", ">i2"),
        ("unused", ">i2"),
        ("values", ">f4", (width,)),
    ]
    fields = np.zeros(n, dtype=vector)
    fields["bytes"] = 4 + 4 * width
    fields["width"] = width
    fields["values"] = rows
    content = []
    for name, field in zip(names, fields, strict=True):
        key = name.to_bytes(8, "big") if isinstance(name, int) else name.encode()
        content += [b"\0\2", len(key).to_bytes(4, "big"), key, field.tobytes()]
    return b"".join(content)


def _literal(name: Any) -> str:
    """A row number, or an id in quotes; PostgreSQL reads it alike under all its settings."""
    if isinstance(name, int):
        return str(name)
    escaped = ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02x}", name)
    return f"E'{escaped}'"
