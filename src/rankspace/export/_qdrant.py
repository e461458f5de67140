"""Qdrant: a collection of mapped vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from ..relevance.rows import check_ids
from ._arrays import Progress
from ._checks import need, open_blocks

BATCH = 256  # points of a request


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
    """Store mapped items in a collection of Qdrant.

    Points have their row numbers for ids; names go into the payload, as ``name``. Search by
    ``client.query_points(collection, metric.embed_queries(Q)[0])``: Qdrant compares Euclidean
    distances under a `LinearMetric`, inner products under a `BilinearMetric`.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What ranks.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    client : qdrant_client.QdrantClient
        Of a server, a folder or memory.
    collection : str, default="items"
        Name of the collection.
    ids : array-like of str, optional
        Names of the items.
    replace : bool, default=False
        Delete a collection of that name first.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Examples
    --------
    >>> from qdrant_client import QdrantClient
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_qdrant
    >>> metric, client = LinearMetric([[1.0, 0.0]]), QdrantClient(":memory:")
    >>> to_qdrant(metric, [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]], client, ids=["a", "b", "c"])
    >>> found = client.query_points("items", metric.embed_queries([[2.9, 0.0]])[0], limit=2)
    >>> [point.payload["name"] for point in found.points]
    ['c', 'b']
    """
    blocks = open_blocks(metric, vectors, block_size)
    names = check_ids(ids, blocks.n_rows, "ids")
    _create(metric, client, collection, replace)
    start = 0
    for block in blocks:
        stop = start + len(block)
        client.upload_collection(
            collection,
            vectors=metric.embed_items(block).astype(np.float32, copy=False),
            ids=range(start, stop),
            payload=None
            if names is None
            else [{"name": str(n)} for n in names[start:stop]],
            batch_size=BATCH,
            wait=True,
        )
        start = stop
        if progress is not None:
            progress(stop / blocks.n_rows)


def _create(
    metric: EmbeddingMetric, client: Any, collection: str, replace: bool
) -> None:
    models = need("qdrant_client.models", "qdrant-client")
    if client.collection_exists(collection):
        if not replace:
            raise ValueError(
                f"collection must be new: {collection} exists. Pass replace=True to delete it "
                "first."
            )
        client.delete_collection(collection)
    width = len(metric.item_map)
    distance = models.Distance.DOT if metric.inner_product else models.Distance.EUCLID
    client.create_collection(
        collection, models.VectorParams(size=width, distance=distance)
    )
