"""Export to DuckDB: a table of mapped vectors in a file."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

from .._engine.files import PathLike
from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from .arrays import Progress
from .items import ItemBlock, Items


def to_duckdb(
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
    """Store mapped items in a DuckDB file, for exact search.

    The table has the columns ``id``, ``embedding`` of type ``FLOAT[n]`` and, if there are payloads,
    ``payload``, which is JSON. It is created and filled in one transaction.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path or duckdb.DuckDBPyConnection
        The database file, whose other tables stay unchanged, or an open connection to it.
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
        The SQL query to search by: its parameters are a query's vector from
        ``metric.embed_queries``, as a list, and the number of items.

    Notes
    -----
    DuckDB lets one process write to a file, and no other read it meanwhile. Cursors of the same
    process search the old table until the new one is complete.

    Examples
    --------
    >>> import duckdb
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_duckdb
    >>> metric, connection = LinearMetric([[1.0, 0.0]]), duckdb.connect()
    >>> X = [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]]
    >>> sql = to_duckdb(metric, X, connection, ids=["a", "b", "c"])
    >>> connection.execute(sql, [metric.embed_queries([[2.9, 0.0]])[0].tolist(), 2]).fetchall()
    [('c',), ('b',)]
    """
    items = Items(metric, vectors, ids, payload, block_size)
    duckdb = require("duckdb", extra="duckdb")
    if isinstance(path, duckdb.DuckDBPyConnection):
        _fill(duckdb, items, path, table, replace, progress)
    else:
        with closing(duckdb.connect(path)) as connection:
            _fill(duckdb, items, connection, table, replace, progress)
    distance = "array_distance"
    if metric.inner_product:
        distance = "array_negative_inner_product"
    return (
        f"SELECT id FROM {_quoted(table)} "
        f"ORDER BY {distance}(embedding, ?::FLOAT[{items.width}]) LIMIT ?"
    )


def _fill(
    duckdb: Any,
    items: Items,
    connection: Any,
    table: str,
    replace: bool,
    progress: Progress | None,
) -> None:
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    try:
        if replace:
            cursor.execute(f"DROP TABLE IF EXISTS {_quoted(table)}")
        _create(duckdb, cursor, items, table)
        for block in items.blocks(progress):
            cursor.register("rankspace_block", _arrow_table(items, block))
            cursor.execute(f"INSERT INTO {_quoted(table)} FROM rankspace_block")
            cursor.unregister("rankspace_block")
        cursor.execute("COMMIT")
    except BaseException:
        # A full disk has ended the transaction already.
        with suppress(duckdb.TransactionException):
            cursor.execute("ROLLBACK")
        raise


def _create(duckdb: Any, cursor: Any, items: Items, table: str) -> None:
    id_type = "BIGINT" if items.ids is None else "VARCHAR"
    payload = "" if items.payload is None else ", payload JSON NOT NULL"
    try:
        cursor.execute(
            f"CREATE TABLE {_quoted(table)} (id {id_type} PRIMARY KEY, "
            f"embedding FLOAT[{items.width}] NOT NULL{payload})"
        )
    except duckdb.CatalogException as error:
        raise ValueError(
            f"table must be new: {table} exists. Pass replace=True to replace it."
        ) from error


def _arrow_table(items: Items, block: ItemBlock) -> Any:
    import pyarrow as pa

    flat = pa.array(block.vectors.ravel())
    columns = {
        "id": pa.array(block.names, pa.int64() if items.ids is None else pa.string()),
        "embedding": pa.FixedSizeListArray.from_arrays(flat, items.width),
    }
    if block.payloads is not None:
        columns["payload"] = pa.array(block.payloads, pa.string())
    return pa.table(columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
