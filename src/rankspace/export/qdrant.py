"""Export to Qdrant: a collection of mapped vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from ..relevance.rows import check_ids
from .arrays import Progress, blocks_of, open_blocks

BATCH = 256  # points per request


def to_qdrant(
    metric: EmbeddingMetric,
    vectors: Any,
    client: Any,
    *,
    collection: str = "items",
    ids: Any = None,
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> None:
    """Upload mapped items to a Qdrant collection.

    Row numbers are the ids of points; names of items go into the payload, as ``name``. Search by
    ``client.query_points(collection, metric.embed_queries(Q)[0])``: Qdrant compares inner products
    under a `BilinearMetric`, else Euclidean distances. Under the cosine, vectors have unit length
    before they are mapped.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    client : qdrant_client.QdrantClient
        A client of a server, or of a local store in a folder or in memory.
    collection : str, default="items"
        Name of the collection.
    ids : array-like of str, optional
        Names of the items.
    replace : bool, default=False
        Delete an existing collection of that name first.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Examples
    --------
    >>> from qdrant_client import QdrantClient
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_qdrant
    >>> metric, client = LinearMetric([[1.0, 0.0]]), QdrantClient(":memory:")
    >>> to_qdrant(metric, [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]], client, ids=["a", "b", "c"])
    >>> nearest = client.query_points("items", metric.embed_queries([[2.9, 0.0]])[0], limit=2)
    >>> [point.payload["name"] for point in nearest.points]
    ['c', 'b']
    """
    blocks = open_blocks(metric, vectors, block_size)
    names = check_ids(ids, blocks.n_rows, "ids")
    _create(metric, client, collection, replace)
    for start, block in blocks_of(metric, blocks, progress):
        stop = start + len(block)
        payload = None
        if names is not None:
            payload = [{"name": str(name)} for name in names[start:stop]]
        client.upload_collection(
            collection,
            vectors=metric.embed_items(block).astype(np.float32, copy=False),
            ids=range(start, stop),
            payload=payload,
            batch_size=BATCH,
            wait=True,
        )


def _create(
    metric: EmbeddingMetric, client: Any, collection: str, replace: bool
) -> None:
    models = require("qdrant_client.models", extra="export")
    if client.collection_exists(collection):
        if not replace:
            raise ValueError(
                f"collection must be new: {collection} exists. Pass replace=True to delete it."
            )
        client.delete_collection(collection)
    distance = models.Distance.EUCLID
    if metric.inner_product:
        distance = models.Distance.DOT
    params = models.VectorParams(size=len(metric.item_map), distance=distance)
    client.create_collection(collection, params)
