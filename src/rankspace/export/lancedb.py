"""Export to LanceDB: a table of mapped vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from .arrays import Progress
from .items import Items


def to_lancedb(
    metric: EmbeddingMetric,
    vectors: Any,
    database: Any,
    *,
    table: str = "items",
    ids: Any = None,
    payload: Any = None,
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> str:
    """Store mapped items in a LanceDB table.

    It has the columns ``id``, ``vector`` and, if there are payloads, ``payload``, which is JSON.
    The rows are one version of the table: others see all of them, or none. Under the cosine,
    vectors have unit length before they are mapped.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    database : path or lancedb connection
        The folder of the database, or what ``lancedb.connect`` returned.
    table : str, default="items"
        Name of the table.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, or row numbers.
    payload : sequence of dict, optional
        What to store beside each item, in the column ``payload``.
    replace : bool, default=False
        Replace an existing table of that name by a new version. Open tables read the old one until
        their ``checkout_latest()``, and ``optimize()`` removes it after a week.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    {"l2", "dot"}
        The distance to search by, which LanceDB does not store with a table:
        ``table.search(metric.embed_queries(Q)[0]).distance_type(...)``.

    Examples
    --------
    >>> import lancedb
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_lancedb
    >>> metric, database = LinearMetric([[1.0, 0.0]]), lancedb.connect("store")
    >>> to_lancedb(metric, [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]], database, ids=["a", "b", "c"])
    'l2'
    >>> search = database.open_table("items").search(metric.embed_queries([[2.9, 0.0]])[0])
    >>> [row["id"] for row in search.distance_type("l2").limit(2).to_list()]
    ['c', 'b']
    """
    items = Items(metric, vectors, ids, payload, block_size)
    lancedb = require("lancedb", extra="lancedb")
    if isinstance(database, str | os.PathLike):
        database = lancedb.connect(database)
    if not replace and table in _tables(database):
        raise ValueError(
            f"table must be new: {table} exists. Pass replace=True to replace it."
        )
    failure: list[BaseException] = []
    batches = _batches(items, progress, failure)
    mode = "overwrite" if replace else "create"
    try:
        database.create_table(table, data=batches, schema=_schema(items), mode=mode)
    except Exception:
        # Of an error in the batches, LanceDB keeps nothing but the text.
        if failure:
            raise failure[0] from None
        raise
    return "dot" if metric.inner_product else "l2"


def _tables(database: Any) -> set[str]:
    names: set[str] = set()
    page = None
    while True:
        listed = database.list_tables(page_token=page)
        names.update(listed.tables)
        page = listed.page_token
        if not page:
            return names


def _schema(items: Items) -> Any:
    import pyarrow as pa

    id_type = pa.int64() if items.ids is None else pa.string()
    fields = [
        pa.field("id", id_type, nullable=False),
        pa.field("vector", pa.list_(pa.float32(), items.width)),
    ]
    if items.payload is not None:
        fields.append(pa.field("payload", pa.string()))
    return pa.schema(fields)


def _batches(
    items: Items, progress: Progress | None, failure: list[BaseException]
) -> Iterator[Any]:
    """The items as record batches; keeps what stops them in ``failure``."""
    import pyarrow as pa

    schema = _schema(items)
    try:
        for block in items.blocks(progress):
            flat = pa.array(block.vectors.ravel())
            vectors = pa.FixedSizeListArray.from_arrays(flat, items.width)
            columns = [pa.array(block.names, schema.field("id").type), vectors]
            if block.payloads is not None:
                columns.append(pa.array(block.payloads, pa.string()))
            yield pa.record_batch(columns, schema=schema)
    except BaseException as error:
        failure.append(error)
        raise
