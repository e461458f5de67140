"""Export to USearch: an index file of mapped vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.files import PathLike, replacing
from .._engine.optional import require
from .._engine.vectors import BLOCK
from ..metrics.embedding import EmbeddingMetric
from .arrays import Progress
from .items import Items
from .sidecar import NamedItems, Sidecar, read_beside


def to_usearch(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike,
    *,
    ids: Any = None,
    payload: Any = None,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> Any:
    """Write mapped items to a USearch index file, an HNSW graph.

    Search it for ``metric.embed_queries(Q)``. It compares inner products under a `BilinearMetric`,
    else squared Euclidean distances. Under the cosine, vectors have unit length before they are
    mapped. Ids and payloads are written beside it; without both, keys are row numbers.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path
        The file to write; it is replaced once the new one is complete.
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
    usearch.index.Index

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import read_usearch, to_usearch
    >>> metric = LinearMetric([[1.0, 0.0]])
    >>> X = [[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]]
    >>> _ = to_usearch(metric, X, "my.usearch", ids=["a", "b", "c"])
    >>> index, items = read_usearch("my.usearch")
    >>> items.names([index.search(metric.embed_queries([[2.9, 0.0]])[0], 2, exact=True).keys])
    [['c', 'b']]
    """
    usearch = require("usearch.index", extra="usearch")
    items = Items(metric, vectors, ids, payload, block_size)
    named = None
    first = 0
    if items.ids is not None or payload is not None:
        named = NamedItems(items, path)
        first = named.first_key
    compared = "ip" if metric.inner_product else "l2sq"
    index = usearch.Index(ndim=items.width, metric=compared, dtype="f32")
    for block in items.blocks(progress):
        keys = np.arange(first, first + len(block.vectors), dtype=np.uint64)
        index.add(keys, block.vectors)
        first += len(keys)
    if named is not None:
        named.write()
    with replacing(path) as stream:
        index.save(stream.name)
    if named is not None:
        named.remove_others()
    return index


def read_usearch(path: PathLike) -> tuple[Any, Sidecar]:
    """Read an index that `to_usearch` wrote with ids or a payload.

    Parameters
    ----------
    path : path
        The file of the index.

    Returns
    -------
    index : usearch.index.Index
        Search it for queries mapped by the metric; it finds keys.
    items : Sidecar
        Turns keys into ids, rows and payloads.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import read_usearch, to_usearch
    >>> _ = to_usearch(LinearMetric([[1.0, 0.0]]), [[0.0, 9.0]], "my.usearch", ids=["a"])
    >>> index, items = read_usearch("my.usearch")
    >>> len(index), items.ids
    (1, ['a'])
    """
    usearch = require("usearch.index", extra="usearch")

    def read() -> tuple[Any, Sidecar]:
        index = usearch.Index.restore(str(path))
        return index, Sidecar(path, index.keys[0])

    return read_beside(read)
