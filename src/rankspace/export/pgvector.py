"""Export to PostgreSQL with pgvector: a table of mapped vectors, or an SQL script for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.credentials import hide_credentials
from .._engine.files import PathLike, replacing
from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from ..search.quantised import OVERSAMPLING, check_half
from .arrays import Progress
from .items import ItemBlock, Items, as_json

STORAGES = ("float32", "float16", "binary")
# Limits of pgvector: of its types, and of its index by what the index holds.
MAX_COMPONENTS = 16_000
MAX_INDEXED = {"float32": 2_000, "float16": 4_000, "binary": 64_000}
INDEXES = ("exact", "hnsw")
NEEDED_VERSION = (0, 7)  # of pgvector, for halfvec and bits
# Signature, flags and extension length; then the trailer, a field count of -1.
BINARY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
BINARY_TRAILER = b"\xff\xff"
NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
NUL_IN_JSON = re.compile(r"(?<!\\)(\\\\)*\\u0000")
ESCAPED = re.compile(r"[\x01-\x1f\x7f'\\]")  # in quotes: control characters, ' and \
MAX_NAME = 63  # bytes of a name in PostgreSQL, which cuts longer ones short
ROWS_PER_INSERT = 100  # of a script, so that no statement is long
BESIDE = "_rankspace_new"  # ends the name of a table that is to replace another
# Whoever may use the old table may use the new one.
GRANT = """DO $grants$ DECLARE g record; BEGIN
FOR g IN SELECT privilege_type AS what, is_grantable AS also,
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS who
  FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = to_regclass('{old}') LOOP
EXECUTE 'GRANT ' || g.what || ' ON {new} TO ' || g.who
  || CASE WHEN g.also THEN ' WITH GRANT OPTION' ELSE '' END;
END LOOP; END $grants$"""
# Commands of psql: UTF-8, whatever the locale, and no further statement after an error.
PROLOGUE = "\\encoding UTF8\n\\set ON_ERROR_STOP on\nBEGIN;\n"


@dataclass(frozen=True)
class _Table:
    """SQL statements that create, fill and search a table."""

    name: str
    width: int
    inner_product: bool
    id_type: str
    has_payload: bool
    replace: bool
    storage: str = "float32"

    @property
    def quoted(self) -> str:
        return _quoted(self.name)

    @property
    def type(self) -> str:
        """The type of the vectors; bits are only in an index, beside full vectors."""
        return "halfvec" if self.storage == "float16" else "vector"

    @property
    def operator(self) -> str:
        return "<#>" if self.inner_product else "<->"

    def bits(self, vector: str) -> str:
        """The signs of a vector."""
        return f"binary_quantize({vector})::bit({self.width})"

    @property
    def filled(self) -> str:
        """The table that is filled: this one, or one beside it that replaces it."""
        if not self.replace:
            return self.quoted
        schema, dot, table = self.name.rpartition(".")
        return _quoted(f"{schema}{dot}{table[: MAX_NAME - len(BESIDE)]}{BESIDE}")

    @property
    def columns(self) -> str:
        return "id, embedding, payload" if self.has_payload else "id, embedding"

    def create(self) -> list[str]:
        payload = ", payload jsonb NOT NULL" if self.has_payload else ""
        return [
            "CREATE EXTENSION IF NOT EXISTS vector",
            f"CREATE TABLE {self.filled} (id {self.id_type} PRIMARY KEY, "
            f"embedding {self.type}({self.width}) NOT NULL{payload})",
        ]

    def finish(self, index: str) -> list[str]:
        """Statements after the rows: readers of an old table wait for the last three only."""
        statements = []
        if index == "hnsw":
            statements.append(self.create_index())
        if self.replace:
            name = self.quoted.rpartition(".")[2]
            statements += [
                GRANT.format(old=self.quoted, new=self.filled),
                f"DROP TABLE IF EXISTS {self.quoted}",
                f"ALTER TABLE {self.filled} RENAME TO {name}",
            ]
        return statements

    def copy(self) -> str:
        return f"COPY {self.filled} ({self.columns}) FROM STDIN WITH (FORMAT BINARY)"

    def insert(self, block: ItemBlock, rows: slice) -> str:
        """A statement that adds rows, with all ids, vectors and payloads in quotes."""
        vectors = block.vectors[rows]
        # Nine digits reproduce single precision.
        numbers = ",".join(["%.9g"] * vectors.shape[1])
        values = [
            f"({_literal(name)},'[{numbers % tuple(vector)}]'"
            for name, vector in zip(block.names[rows], vectors.tolist(), strict=True)
        ]
        if block.payloads is not None:
            payloads = map(_literal, block.payloads[rows])
            values = [f"{v},{p}" for v, p in zip(values, payloads, strict=True)]
        return f"INSERT INTO {self.filled} ({self.columns}) VALUES\n" + ",\n".join(
            f"{value})" for value in values
        )

    def create_index(self) -> str:
        kind = "ip" if self.inner_product else "l2"
        key = f"embedding {self.type}_{kind}_ops"
        if self.storage == "binary":
            key = f"({self.bits('embedding')}) bit_hamming_ops"
        return f"CREATE INDEX ON {self.filled} USING hnsw ({key})"

    def select(self, vector: str, limit: str) -> str:
        if self.storage == "binary":
            return self._rescored(vector, limit)
        return (
            f"SELECT id FROM {self.quoted} ORDER BY embedding {self.operator} "
            f"{vector}::{self.type} LIMIT {limit}"
        )

    def _rescored(self, vector: str, limit: str) -> str:
        """A search by signs, with several candidates for each item wanted, rescored."""
        query, k = "(SELECT v FROM query)", "(SELECT k FROM query)"
        near = f"{self.bits('embedding')} <~> {self.bits(query)}"
        return (
            f"WITH query AS (SELECT {vector}::vector AS v, {limit}::bigint AS k) "
            f"SELECT id FROM (SELECT id, embedding FROM {self.quoted} "
            f"ORDER BY {near} LIMIT {OVERSAMPLING} * {k}) AS near "
            f"ORDER BY embedding {self.operator} {query} LIMIT {k}"
        )


def to_pgvector(
    metric: EmbeddingMetric,
    vectors: Any,
    connection: Any,
    *,
    table: str = "items",
    ids: Any = None,
    payload: Any = None,
    index: str = "exact",
    storage: str = "float32",
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
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    connection : psycopg.Connection or str
        An open connection of psycopg 3, or an address such as ``postgresql://localhost/search``.
    table : str, default="items"
        Name of the table, or ``schema.table``, in lower case.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, or row numbers.
    payload : sequence of dict, optional
        What to store beside each item, in the column ``payload`` of type ``jsonb``.
    index : {"exact", "hnsw"}, default="exact"
        Exhaustive search, or an HNSW graph. Raise ``hnsw.ef_search`` in the session if its recall
        is too low.
    storage : {"float32", "float16", "binary"}, default="float32"
        "float16" stores ``halfvec``, whose graph takes 4,000 components instead of 2,000. "binary"
        searches by the signs of components, in a graph of bits if there is one, and rescores four
        candidates for each item wanted by their full vectors, which stay in the table. Both need
        pgvector 0.7.
    replace : bool, default=False
        Replace an existing table of that name. The new one is filled beside it, so that the old one
        is searched until the last moment. Rights on it are granted anew; views of it are an error.
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
    items = Items(metric, vectors, ids, payload, block_size)
    definition = _table(items, table, index, storage, replace)
    psycopg = require("psycopg", extra="pgvector")
    session = connection
    if isinstance(connection, str):
        session = _connect(psycopg, connection)
    try:
        with session.transaction(), session.cursor() as cursor:
            create_extension, create_table = definition.create()
            cursor.execute(create_extension)
            _check_version(cursor, storage)
            cursor.execute(create_table)
            with cursor.copy(definition.copy()) as copy:
                copy.write(BINARY_HEADER)
                for block in items.blocks(progress):
                    copy.write(_binary(block, storage))
                copy.write(BINARY_TRAILER)
            for statement in definition.finish(index):
                cursor.execute(statement)
    except psycopg.errors.DuplicateTable as error:
        if replace:
            raise
        raise ValueError(
            f"table must be new: {table} exists. Pass replace=True to replace it."
        ) from error
    finally:
        if session is not connection:
            session.close()
    return definition.select("%s", "%s")


def _check_version(cursor: Any, storage: str) -> None:
    """Raise if the extension is too old for the storage."""
    if storage == "float32":
        return
    cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    version = cursor.fetchone()[0]
    if tuple(map(int, version.split(".")[:2])) < NEEDED_VERSION:
        raise ValueError(
            f"storage {storage!r} needs pgvector 0.7 or later: the server has {version}. Update "
            "it, or pass storage='float32'."
        )


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
    payload: Any = None,
    index: str = "exact",
    storage: str = "float32",
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
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path
        The script to write.
    table : str, default="items"
        Name of the table, or ``schema.table``, in lower case.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, or row numbers.
    payload : sequence of dict, optional
        What to store beside each item, in the column ``payload`` of type ``jsonb``.
    index : {"exact", "hnsw"}, default="exact"
        Exhaustive search, or an HNSW graph.
    storage : {"float32", "float16", "binary"}, default="float32"
        "float16" stores ``halfvec``, whose graph takes 4,000 components instead of 2,000. "binary"
        searches by the signs of components, in a graph of bits if there is one, and rescores four
        candidates for each item wanted by their full vectors, which stay in the table. Both need
        pgvector 0.7.
    replace : bool, default=False
        Replace an existing table of that name. The new one is filled beside it, so that the old one
        is searched until the last moment. Rights on it are granted anew; views of it are an error.
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
    items = Items(metric, vectors, ids, payload, block_size)
    definition = _table(items, table, index, storage, replace)
    with replacing(path) as stream:
        stream.write(PROLOGUE.encode())
        for statement in definition.create():
            stream.write(f"{statement};\n".encode())
        for block in items.blocks(progress):
            if storage == "float16":
                check_half(block.vectors)
            for start in range(0, len(block.vectors), ROWS_PER_INSERT):
                rows = slice(start, start + ROWS_PER_INSERT)
                stream.write(f"{definition.insert(block, rows)};\n".encode())
        for statement in definition.finish(index):
            stream.write(f"{statement};\n".encode())
        stream.write(b"COMMIT;\n")
    return definition.select("$1", "$2")


def _quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))


def _table(items: Items, name: str, index: str, storage: str, replace: bool) -> _Table:
    check_choice(index, "index", INDEXES)
    check_choice(storage, "storage", STORAGES)
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
    limit = MAX_COMPONENTS
    if index == "hnsw":
        limit = min(limit, MAX_INDEXED[storage])
    if items.width > limit:
        raise ValueError(
            f"with index={index!r} pgvector takes vectors of up to {limit} components stored as "
            f"{storage!r}: got {items.width}. Reduce the metric, or pass index='exact'."
        )
    _check_no_nul(items)
    id_type = "bigint" if items.ids is None else "text"
    has_payload = items.payload is not None
    inner_product = items.metric.inner_product
    settings = (has_payload, replace, storage)
    return _Table(name, items.width, inner_product, id_type, *settings)


def _check_no_nul(items: Items) -> None:
    """Raise if a text of a payload has a character that PostgreSQL cannot hold."""
    for row, record in enumerate(items.payload or []):
        if NUL_IN_JSON.search(as_json(record)):
            raise ValueError(
                f"payload must be text without NUL characters for PostgreSQL: row {row} has one."
            )


def _binary(block: ItemBlock, storage: str) -> bytes:
    """Rows in the binary COPY format: fields, each preceded by its length in bytes."""
    n, width = block.vectors.shape
    number: np.dtype[Any] = np.dtype(">f4")
    if storage == "float16":
        check_half(block.vectors)
        number = np.dtype(">f2")
    vector = [
        ("bytes", ">i4"),
        ("width", ">i2"),
        ("unused", ">i2"),
        ("values", number, (width,)),
    ]
    fields = np.zeros(n, dtype=vector)
    fields["bytes"] = 4 + number.itemsize * width
    fields["width"] = width
    fields["values"] = block.vectors
    n_fields = b"\0\2" if block.payloads is None else b"\0\3"
    content = []
    for row, (name, field) in enumerate(zip(block.names, fields, strict=True)):
        key = name.to_bytes(8, "big") if isinstance(name, int) else name.encode()
        content += [n_fields, len(key).to_bytes(4, "big"), key, field.tobytes()]
        if block.payloads is not None:
            # The first byte is the version of jsonb.
            text = b"\1" + block.payloads[row].encode()
            content += [len(text).to_bytes(4, "big"), text]
    return b"".join(content)


def _literal(name: Any) -> str:
    """A row number, or an id in quotes; PostgreSQL reads it alike under all its settings."""
    if isinstance(name, int):
        return str(name)
    escaped = ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02x}", name)
    return f"E'{escaped}'"
