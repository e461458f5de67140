"""Export to Elasticsearch, OpenSearch and Milvus: a file for their bulk interface."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from .arrays import Progress
from .items import ItemBlock, Items

MAX_COMPONENTS = {"elasticsearch": 4096, "opensearch": 16_000, "milvus": 32_768}
MAX_ID_BYTES = 512
INDEX = re.compile(r"[a-z0-9][a-z0-9_.-]{0,254}")
COLLECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")  # of Milvus


def to_bulk(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike,
    *,
    engine: str = "elasticsearch",
    index: str = "items",
    ids: Any = None,
    payload: Any = None,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write mapped items as a file for the bulk interface of Elasticsearch, OpenSearch or Milvus.

    The documents have the fields ``embedding`` and, if there are payloads, ``payload``, which is
    stored and not searched. For Milvus the file is its row-based JSON, with ids in the field
    ``id``. Under the cosine, vectors have unit length before they are mapped. The file was not
    tried with a server here: the format is that of the documentation of each.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path
        The file to write, of JSON lines, or for Milvus of JSON.
    engine : {"elasticsearch", "opensearch", "milvus"}, default="elasticsearch"
        Elasticsearch 8.11 or newer, OpenSearch 2.17 or newer, or Milvus 2.3 or newer.
    index : str, default="items"
        Name of the index or collection. To replace one, load another and let an alias name it.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, or row numbers.
    payload : sequence of dict, optional
        What to store beside each item.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    dict
        The body of the request that creates the index or collection, with the comparison of
        vectors: inner products under a `BilinearMetric`, else Euclidean distances. Send it before
        the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_bulk
    >>> body = to_bulk(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0]], "items.ndjson", ids=["a"])
    >>> body["mappings"]["properties"]["embedding"]["similarity"]
    'l2_norm'
    >>> print(Path("items.ndjson").read_text())
    {"index": {"_index": "items", "_id": "a"}}
    {"embedding": [2.0]}
    <BLANKLINE>
    """
    check_choice(engine, "engine", MAX_COMPONENTS)
    items = Items(metric, vectors, ids, payload, block_size)
    _check(items, engine, index)
    if engine == "milvus":
        _write_rows(items, path, progress)
        return _collection(items, index)
    with replacing(path) as stream:
        for block in items.blocks(progress):
            stream.write(_lines(block, index).encode())
    return _body(items, engine)


def _check(items: Items, engine: str, index: str) -> None:
    if engine == "milvus":
        if not COLLECTION.fullmatch(index):
            raise ValueError(
                "index must be letters, digits and _ for milvus, and begin with no digit: got "
                f"{index!r}."
            )
    elif not INDEX.fullmatch(index):
        raise ValueError(
            "index must be lower-case letters, digits and _.-, and begin with one of the first "
            f"two: got {index!r}."
        )
    limit = MAX_COMPONENTS[engine]
    if items.width > limit:
        raise ValueError(
            f"{engine} takes vectors of up to {limit} components: got {items.width}. Learn fewer "
            "components."
        )
    for name in [] if items.ids is None else items.ids:
        if not 0 < len(name.encode()) <= MAX_ID_BYTES:
            raise ValueError(
                f"ids must have 1 to {MAX_ID_BYTES} bytes for {engine}: got {name!r:.60}."
            )


def _lines(block: ItemBlock, index: str) -> str:
    """An action and a document for each item."""
    lines = []
    for name, fields in zip(block.names, _fields(block), strict=True):
        action = {"index": {"_index": index, "_id": str(name)}}
        lines.append(f"{json.dumps(action, ensure_ascii=False)}\n{{{fields}}}\n")
    return "".join(lines)


def _fields(block: ItemBlock) -> Iterator[str]:
    """The vector and the payload of each item as the inside of a JSON object."""
    for row, vector in enumerate(block.vectors):
        # The shortest digits that give the same single precision.
        numbers = ", ".join(map(str, vector))
        fields = f'"embedding": [{numbers}]'
        if block.payloads is not None:
            fields += f', "payload": {block.payloads[row]}'
        yield fields


def _body(items: Items, engine: str) -> dict[str, Any]:
    inner = items.metric.inner_product
    embedding: dict[str, Any]
    if engine == "elasticsearch":
        similarity = "max_inner_product" if inner else "l2_norm"
        embedding = {"type": "dense_vector", "dims": items.width, "index": True}
        embedding["similarity"] = similarity
    else:
        embedding = {"type": "knn_vector", "dimension": items.width}
        embedding["space_type"] = "innerproduct" if inner else "l2"
    fields = {"embedding": embedding}
    if items.payload is not None:
        fields["payload"] = {"type": "object", "enabled": False}
    body: dict[str, Any] = {"mappings": {"properties": fields}}
    if engine == "opensearch":
        body["settings"] = {"index": {"knn": True}}
    return body


# ---------------------------------------------------------------------- Milvus


def _write_rows(items: Items, path: PathLike, progress: Progress | None) -> None:
    """Row-based JSON: an object with one list, of an object for each item."""
    with replacing(path) as stream:
        stream.write(b'{"rows": [\n')
        separator = ""
        for block in items.blocks(progress):
            for name, fields in zip(block.names, _fields(block), strict=True):
                key = json.dumps(name, ensure_ascii=False)
                stream.write(f'{separator}{{"id": {key}, {fields}}}'.encode())
                separator = ",\n"
        stream.write(b"\n]}\n")


def _collection(items: Items, name: str) -> dict[str, Any]:
    """The request that creates a collection with an index, by version 2 of the REST interface."""
    key: dict[str, Any] = {"fieldName": "id", "dataType": "Int64", "isPrimary": True}
    if items.ids is not None:
        key["dataType"] = "VarChar"
        key["elementTypeParams"] = {"max_length": MAX_ID_BYTES}
    width = {"dim": items.width}
    vector = {"fieldName": "embedding", "dataType": "FloatVector"}
    fields: list[dict[str, Any]] = [key, {**vector, "elementTypeParams": width}]
    if items.payload is not None:
        fields.append({"fieldName": "payload", "dataType": "JSON"})
    index = {"fieldName": "embedding", "indexName": "embedding"}
    index["metricType"] = "IP" if items.metric.inner_product else "L2"
    schema = {"autoId": False, "enableDynamicField": False, "fields": fields}
    return {"collectionName": name, "schema": schema, "indexParams": [index]}
