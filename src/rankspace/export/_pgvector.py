"""PostgreSQL with pgvector: a table of mapped vectors, by a connection or as a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from .._engine.vectors import BLOCK, VectorBlocks
from ..metrics.embedding import EmbeddingMetric
from ..relevance.rows import check_ids
from ._arrays import Progress
from ._checks import need, open_blocks

INDEXES = ("exact", "hnsw")
WIDEST, WIDEST_INDEXED = 16_000, 2_000  # what pgvector stores, and what it indexes
BINARY_HEADER, BINARY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")


@dataclass(frozen=True)
class _Table:
    """The statements that make and search a table."""

    name: str
    width: int
    inner_product: bool
    id_type: str

    @property
    def quoted(self) -> str:
        return ".".join(f'"{part}"' for part in self.name.split("."))

    def create(self, replace: bool) -> list[str]:
        dropped = [f"DROP TABLE IF EXISTS {self.quoted}"] if replace else []
        return [
            "CREATE EXTENSION IF NOT EXISTS vector",
            *dropped,
            f"CREATE TABLE {self.quoted} (id {self.id_type} PRIMARY KEY, "
            f"embedding vector({self.width}) NOT NULL)",
        ]

    @property
    def copy(self) -> str:
        return f"COPY {self.quoted} (id, embedding) FROM STDIN"

    @property
    def index(self) -> str:
        operators = "vector_ip_ops" if self.inner_product else "vector_l2_ops"
        return f"CREATE INDEX ON {self.quoted} USING hnsw (embedding {operators})"

    def query(self, vector: str, length: str) -> str:
        operator = "<#>" if self.inner_product else "<->"
        return (
            f"SELECT id FROM {self.quoted} ORDER BY embedding {operator} {vector}::vector "
            f"LIMIT {length}"
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
    """Store mapped items in a table of PostgreSQL with the extension pgvector.

    The table has the columns ``id`` and ``embedding``. It appears whole or not at all: everything
    happens in one transaction.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What ranks.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    connection : psycopg.Connection or str
        An open connection of psycopg 3, or an address such as ``postgresql://localhost/search``.
    table : str, default="items"
        Name of the table, also as ``schema.table``, in small letters.
    ids : array-like of str, optional
        Names of the items; by default their row numbers.
    index : {"exact", "hnsw"}, default="exact"
        Compare with all items, or search a graph. Raise the setting ``hnsw.ef_search`` of the
        session if the graph finds too little.
    replace : bool, default=False
        Drop a table of that name first.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    str
        The statement that searches: its parameters are a query's vector from
        ``metric.embed_queries``, and the number of items wanted.

    Examples
    --------
    ``sql = to_pgvector(metric, X, connection)``, and then
    ``connection.execute(sql, (str(metric.embed_queries(Q)[0].tolist()), 10)).fetchall()``.

    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_pgvector
    >>> to_pgvector(LinearMetric([[1.0, 0.0]]), [[0.0, 9.0]], "", table="no table")
    Traceback (most recent call last):
    ValueError: table must be a name of small letters, digits and _, or schema.name: got 'no table'.
    """
    blocks = open_blocks(metric, vectors, block_size)
    ids = check_ids(ids, blocks.n_rows, "ids")
    made = _table(metric, table, ids, index)
    psycopg = need("psycopg", "psycopg[binary]")
    opened = psycopg.connect(connection) if isinstance(connection, str) else connection
    try:
        with opened.transaction(), opened.cursor() as cursor:
            for statement in made.create(replace):
                cursor.execute(statement)
            with cursor.copy(f"{made.copy} WITH (FORMAT BINARY)") as copy:
                copy.write(BINARY_HEADER)
                for names, rows in _rows(metric, blocks, ids, progress):
                    copy.write(_binary(names, rows))
                copy.write(BINARY_END)
            if index == "hnsw":
                cursor.execute(made.index)
    except psycopg.errors.DuplicateTable as error:
        raise ValueError(
            f"table must be new: {table} exists. Pass replace=True to drop it first."
        ) from error
    finally:
        if opened is not connection:
            opened.close()
    return made.query("%s", "%s")


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
    """Write the script that `to_pgvector` would run, for ``psql -f``.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What ranks.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    path : path
        The script to write.
    table : str, default="items"
        Name of the table, also as ``schema.table``, in small letters.
    ids : array-like of str, optional
        Names of the items; by default their row numbers.
    index : {"exact", "hnsw"}, default="exact"
        Compare with all items, or search a graph.
    replace : bool, default=False
        Drop a table of that name first.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    str
        The statement that searches, with ``$1`` for a query's vector from
        ``metric.embed_queries`` and ``$2`` for the number of items wanted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_sql
    >>> to_sql(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0]], "items.sql")
    'SELECT id FROM "items" ORDER BY embedding <-> $1::vector LIMIT $2'
    >>> print(Path("items.sql").read_text().expandtabs())
    BEGIN;
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE "items" (id bigint PRIMARY KEY, embedding vector(1) NOT NULL);
    COPY "items" (id, embedding) FROM STDIN;
    0       [2]
    \\.
    COMMIT;
    <BLANKLINE>
    """
    blocks = open_blocks(metric, vectors, block_size)
    ids = check_ids(ids, blocks.n_rows, "ids")
    made = _table(metric, table, ids, index)
    with replacing(path) as stream:
        for statement in ("BEGIN", *made.create(replace), made.copy):
            stream.write(f"{statement};\n".encode())
        for names, rows in _rows(metric, blocks, ids, progress):
            stream.write(_text(names, rows).encode())
        stream.write(b"\\.\n")
        for statement in (*([made.index] if index == "hnsw" else []), "COMMIT"):
            stream.write(f"{statement};\n".encode())
    return made.query("$1", "$2")


def _table(
    metric: EmbeddingMetric, name: str, ids: np.ndarray | None, index: str
) -> _Table:
    check_choice(index, "index", INDEXES)
    if not NAME.fullmatch(name):
        raise ValueError(
            f"table must be a name of small letters, digits and _, or schema.name: got {name!r}."
        )
    width = len(metric.item_map)
    widest = WIDEST if index == "exact" else WIDEST_INDEXED
    if width > widest:
        raise ValueError(
            f"with index={index!r} pgvector takes vectors of up to {widest} components: got "
            f"{width}. Learn fewer components, or search exactly."
        )
    return _Table(
        name, width, metric.inner_product, "bigint" if ids is None else "text"
    )


def _rows(
    metric: EmbeddingMetric,
    blocks: VectorBlocks,
    ids: np.ndarray | None,
    progress: Progress | None,
) -> Iterator[tuple[Any, np.ndarray]]:
    """Names and mapped vectors of each block."""
    start = 0
    for block in blocks:
        stop = start + len(block)
        names = range(start, stop) if ids is None else ids[start:stop].tolist()
        yield names, metric.embed_items(block).astype(np.float32, copy=False)
        start = stop
        if progress is not None:
            progress(stop / blocks.n_rows)


def _binary(names: Any, rows: np.ndarray) -> bytes:
    """Rows as COPY reads them in binary: two fields, each with its length in bytes before it."""
    n, width = rows.shape
    vector = [
        ("bytes", ">i4"),
        ("width", ">i2"),
        ("unused", ">i2"),
        ("values", ">f4", (width,)),
    ]
    fields = np.zeros(n, dtype=vector)
    fields["bytes"], fields["width"], fields["values"] = 4 + 4 * width, width, rows
    parts = []
    for name, field in zip(names, fields, strict=True):
        key = name.to_bytes(8, "big") if isinstance(name, int) else name.encode()
        parts += [b"\0\2", len(key).to_bytes(4, "big"), key, field.tobytes()]
    return b"".join(parts)


def _text(names: Any, rows: np.ndarray) -> str:
    """Rows as COPY reads them in text; nine digits hold a single-precision number."""
    form = "%s\t[" + ",".join(["%.9g"] * rows.shape[1]) + "]\n"
    return "".join(
        form % (_escaped(name), *row)
        for name, row in zip(names, rows.tolist(), strict=True)
    )


def _escaped(name: Any) -> str:
    text = str(name).replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
