"""Export to Qdrant: a collection of mapped vectors, behind an alias."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

from .._engine.checks import check_choice
from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from ..search.quantised import check_half
from .arrays import Progress
from .items import ItemBlock, Items

BATCH = 256  # points per request
STORAGES = ("float32", "float16", "int8", "binary")


def to_qdrant(
    metric: EmbeddingMetric,
    vectors: Any,
    client: Any,
    *,
    collection: str = "items",
    ids: Any = None,
    payload: Any = None,
    storage: str = "float32",
    replace: bool = False,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> None:
    """Upload mapped items to a Qdrant collection.

    Row numbers are the ids of points; names of items go into the payload, as ``name``. Search by
    ``client.query_points(collection, metric.embed_queries(Q)[0])``: Qdrant compares inner products
    under a `BilinearMetric`, else Euclidean distances. Under the cosine, vectors have unit length
    before they are mapped.

    The name is an alias of a collection. A new export is uploaded to another collection, counted,
    and the alias is switched to it in one step; only then is the old collection deleted.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    client : qdrant_client.QdrantClient
        A client of a server, or of a local store in a folder or in memory.
    collection : str, default="items"
        The alias to search by.
    ids : array-like of str, optional
        Names of the items.
    payload : sequence of dict, optional
        What to store beside each item, as fields of the point's payload.
    storage : {"float32", "float16", "int8", "binary"}, default="float32"
        "float16" stores half precision. "int8" and "binary" are quantisations of Qdrant, which the
        server searches by; it keeps full vectors, too. Let it rescore candidates by them with
        ``search_params=SearchParams(quantization=QuantizationSearchParams(rescore=True,
        oversampling=4.0))``. A local store takes the configuration and searches full vectors.
    replace : bool, default=False
        Replace what an earlier export uploaded under that name.
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
    check_choice(storage, "storage", STORAGES)
    items = Items(metric, vectors, ids, payload, block_size)
    _check_fields(items)
    models = require("qdrant_client.models", extra="qdrant")
    _check_name(client, collection, replace)
    filled = f"{collection}-rankspace-{uuid4().hex[:12]}"
    client.create_collection(filled, **_configuration(models, items, storage))
    try:
        _upload(items, client, filled, storage, progress)
        _switch(models, client, collection, filled)
    except BaseException:
        client.delete_collection(filled)
        raise
    _delete_others(client, collection, filled)


def _configuration(models: Any, items: Items, storage: str) -> dict[str, Any]:
    """How vectors are stored and compared."""
    inner_product = items.metric.inner_product
    distance = models.Distance.DOT if inner_product else models.Distance.EUCLID
    datatype = models.Datatype.FLOAT16 if storage == "float16" else None
    vectors = models.VectorParams(
        size=items.width, distance=distance, datatype=datatype
    )
    quantisation = None
    if storage == "int8":
        how = models.ScalarQuantizationConfig(type=models.ScalarType.INT8)
        quantisation = models.ScalarQuantization(scalar=how)
    if storage == "binary":
        bits = models.BinaryQuantizationConfig()
        quantisation = models.BinaryQuantization(binary=bits)
    return {"vectors_config": vectors, "quantization_config": quantisation}


def _check_fields(items: Items) -> None:
    """Raise if a payload has the field of the names."""
    if items.ids is None:
        return
    for row, record in enumerate(items.payload or []):
        if "name" in record:
            raise ValueError(
                f"payload must not have the field 'name', which holds the id: row {row} has one."
            )


def _check_name(client: Any, collection: str, replace: bool) -> None:
    aliases = {alias.alias_name for alias in client.get_aliases().aliases}
    if collection in aliases:
        if not replace:
            raise ValueError(
                f"collection must be new: {collection} exists. Pass replace=True to replace it."
            )
    elif collection in _collections(client):
        raise ValueError(
            f"collection must be new or an alias, which can be switched: {collection} is a "
            "collection. Export under another name, or delete it first."
        )


def _collections(client: Any) -> list[str]:
    return [found.name for found in client.get_collections().collections]


def _upload(
    items: Items, client: Any, collection: str, storage: str, progress: Progress | None
) -> None:
    start = 0
    for block in items.blocks(progress):
        stop = start + len(block.vectors)
        if storage == "float16":
            check_half(block.vectors)
        client.upload_collection(
            collection,
            vectors=block.vectors,
            ids=range(start, stop),
            payload=_payloads(block),
            batch_size=BATCH,
            wait=True,
        )
        start = stop
    stored = client.count(collection, exact=True).count
    if stored != items.n_rows:
        raise RuntimeError(
            f"Qdrant must hold {items.n_rows} points: it has {stored}. Export them again."
        )


def _payloads(block: ItemBlock) -> list[dict[str, Any]] | None:
    if isinstance(block.names, range) and block.payloads is None:
        return None
    payloads: list[dict[str, Any]] = [{} for _ in block.names]
    if block.payloads is not None:
        payloads = list(map(json.loads, block.payloads))
    if not isinstance(block.names, range):
        for record, name in zip(payloads, block.names, strict=True):
            record["name"] = name
    return payloads


def _switch(models: Any, client: Any, collection: str, filled: str) -> None:
    """Let the alias name the new collection, in one step."""
    steps: list[Any] = []
    if collection in {alias.alias_name for alias in client.get_aliases().aliases}:
        old = models.DeleteAlias(alias_name=collection)
        steps.append(models.DeleteAliasOperation(delete_alias=old))
    new = models.CreateAlias(collection_name=filled, alias_name=collection)
    steps.append(models.CreateAliasOperation(create_alias=new))
    client.update_collection_aliases(steps)


def _delete_others(client: Any, collection: str, filled: str) -> None:
    """Delete the collections of earlier exports, those that were killed included."""
    ours = re.compile(re.escape(collection) + "-rankspace-[0-9a-f]{12}")
    for name in _collections(client):
        if name != filled and ours.fullmatch(name):
            client.delete_collection(name)
