"""Export to SQLite with the extension sqlite-vec: a table of mapped vectors in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .._engine.files import PathLike
from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from .arrays import Progress
from .items import Items

MAX_COMPONENTS = 8192  # limit of sqlite-vec
WAIT_SECONDS = 60.0  # for another process that writes to the file


def to_sqlite_vec(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike,
    *,
    table: str = "items",
    ids: Any = None,
    payload: Any = None,
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> str:
    """Store mapped items in an SQLite file, for exact search by the extension sqlite-vec.

    The virtual table has the columns ``id``, ``embedding`` and, if there are payloads, ``payload``,
    which is JSON. It is created and filled in one transaction. The file is set to write-ahead
    logging, so that others can search an old table in the meantime.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path
        The database file; its other tables stay unchanged.
    table : str, default="items"
        Name of the table.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, or row numbers.
    payload : sequence of dict, optional
        What to store beside each item, in the column ``payload``.
    replace : bool, default=False
        Replace an existing table of that name.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    str
        The SQL query to search by: its parameters are the bytes of a query's vector from
        ``metric.embed_queries``, in float32, and the number of items.

    Notes
    -----
    sqlite-vec has no inner product. Under a `BilinearMetric` items get one more column, which gives
    all of them the same length, and the query adds a zero: then the Euclidean distance ranks as the
    inner product does. Rounding errors are smallest for queries about as long as the longest item;
    their length does not change the order.

    Examples
    --------
    >>> from contextlib import closing
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_sqlite_vec
    >>> from rankspace.export.sqlite_vec import connect
    >>> metric = LinearMetric([[1.0, 0.0]])
    >>> X = [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]]
    >>> sql = to_sqlite_vec(metric, X, "my.db", ids=["a", "b", "c"])
    >>> query = metric.embed_queries([[2.9, 0.0]])[0].astype(np.float32)
    >>> with closing(connect("my.db")) as connection:
    ...     [row[0] for row in connection.execute(sql, (query.tobytes(), 2))]
    ['c', 'b']
    """
    items = Items(metric, vectors, ids, payload, block_size)
    definition = _Table(items, table)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        # Others read the old table until the transaction ends.
        connection.execute("BEGIN IMMEDIATE")
        try:
            definition.create(connection, replace)
            for rows in definition.rows(progress):
                connection.executemany(definition.insert(), rows)
            connection.execute("COMMIT")
        except BaseException:
            # A full disk has ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return definition.select()


def connect(path: PathLike) -> Any:
    """Open an SQLite file with sqlite-vec, each statement being a transaction of its own."""
    extension = require("sqlite_vec", extra="sqlite-vec")
    connection = _sqlite3().connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    connection.enable_load_extension(True)
    extension.load(connection)
    connection.enable_load_extension(False)
    return connection


def _sqlite3() -> Any:
    """Python's SQLite, or another build of it where Python's loads no extensions."""
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    return require("pysqlite3", extra="sqlite-vec")


class _Table:
    """SQL statements that create, fill and search a table, and its rows."""

    def __init__(self, items: Items, name: str) -> None:
        if not name or "\0" in name or name.lower().startswith("sqlite_"):
            raise ValueError(
                f"table must be a name that SQLite takes for a table: got {name!r}."
            )
        self.items = items
        self.name = name
        self.padded = bool(items.metric.inner_product)
        self.width = items.width + self.padded
        if self.width > MAX_COMPONENTS:
            raise ValueError(
                f"sqlite-vec takes vectors of up to {MAX_COMPONENTS} components: got "
                f"{self.width}. Learn fewer components."
            )

    @property
    def quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    def create(self, connection: Any, replace: bool) -> None:
        known = "SELECT 1 FROM sqlite_master WHERE lower(name) = lower(?)"
        if connection.execute(known, (self.name,)).fetchone():
            if not replace:
                raise ValueError(
                    f"table must be new: {self.name} exists. Pass replace=True to replace it."
                )
            connection.execute(f"DROP TABLE {self.quoted}")
        id_type = "integer" if self.items.ids is None else "text"
        payload = "" if self.items.payload is None else ", +payload text"
        connection.execute(
            f"CREATE VIRTUAL TABLE {self.quoted} USING vec0("
            f"id {id_type} primary key, embedding float[{self.width}]{payload})"
        )

    def insert(self) -> str:
        if self.items.payload is None:
            return f"INSERT INTO {self.quoted} (id, embedding) VALUES (?, ?)"
        return f"INSERT INTO {self.quoted} (id, embedding, payload) VALUES (?, ?, ?)"

    def rows(self, progress: Progress | None) -> Iterator[Iterator[tuple[Any, ...]]]:
        """The rows of each block: id, vector and payload."""
        longest = self._longest() if self.padded else 0.0
        for block in self.items.blocks(progress):
            vectors = block.vectors
            if self.padded:
                vectors = _of_equal_length(vectors, longest)
            columns = [block.names, map(np.ndarray.tobytes, vectors)]
            if block.payloads is not None:
                columns.append(block.payloads)
            yield zip(*columns, strict=True)

    def _longest(self) -> float:
        return max(_squares(block.vectors).max() for block in self.items.blocks())

    def select(self) -> str:
        query = "CAST(? || zeroblob(4) AS BLOB)" if self.padded else "?"
        return (
            f"SELECT id FROM {self.quoted} WHERE embedding MATCH {query} AND k = ? "
            "ORDER BY distance"
        )


def _squares(vectors: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)


def _of_equal_length(vectors: np.ndarray, longest: float) -> np.ndarray:
    """Vectors with one more column, so that all have this squared length."""
    column = np.sqrt(np.maximum(longest - _squares(vectors), 0))
    return np.column_stack((vectors, column)).astype(np.float32)
