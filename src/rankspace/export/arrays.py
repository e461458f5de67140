"""Export to arrays and .npy files: mapped vectors, or unchanged items for query-side search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, check_suffix, is_stream, replacing
from .._engine.similarity import check_no_zeros, unit_rows
from .._engine.vectors import BLOCK, VectorBlocks
from ..metrics.embedding import BilinearMetric, EmbeddingMetric
from ..metrics.kernel import KernelMetric
from ..search.exact import centre_of

SIDES = ("items", "queries")
SAMPLE = 10_000  # rows that the centre is estimated from

Progress = Callable[[float], Any]


class QuerySide(NamedTuple):
    """Unchanged items, and the metric applied on the query side by inner product.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_features + 1)
        The unchanged vectors, under the cosine at unit length, and one more column, or two under
        the cosine; memory-mapped if they were written to a file. A bilinear metric needs no column.
    metric : BilinearMetric
        Ranks ``items`` as the original metric ranks the vectors. Search them by inner product for
        what its `embed_queries` returns.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_query_side
    >>> exported = to_query_side(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0], [3.0, 5.0]])
    >>> exported.metric.rank([[2.5, 9.0]], exported.items).items
    array([1, 0])
    """

    items: np.ndarray
    metric: BilinearMetric


def to_npy(
    metric: EmbeddingMetric | KernelMetric,
    vectors: Any,
    path: PathLike,
    *,
    side: str | None = None,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write mapped vectors to a .npy file, block by block.

    Search them by inner product under a `BilinearMetric`, else by Euclidean distance. Under the
    cosine, vectors have unit length before they are mapped. Only one block is held in memory,
    however large the files are.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric, AsymmetricMetric or KernelMetric
        The metric that maps the vectors.
    vectors : path or array-like of shape (n, n_features)
        A .npy file, or the vectors themselves. float32 and float16 give float32.
    path : path
        The file to write; it is replaced once the new one is complete.
    side : {"items", "queries"}, optional
        Whether the vectors are items or queries; needed unless the metric maps both alike.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    tuple of int
        The shape of the mapped vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_npy
    >>> to_npy(LinearMetric([[2.0, 1.0]]), np.eye(2), "mapped.npy")
    (2, 1)
    >>> np.load("mapped.npy")
    array([[2.],
           [1.]])
    """
    _check_maps(metric)
    check_suffix(path, "mapped vectors", ("", ".npy"))
    side = check_side(metric, side)
    blocks = _open_blocks(metric, vectors, block_size, side)
    embed = metric.embed_items if side == "items" else metric.embed_queries
    width = _write(metric, blocks, embed, path, progress)
    return blocks.n_rows, width


def to_query_side(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike | None = None,
    *,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> QuerySide:
    """Apply the metric on the query side, so that item vectors are stored unchanged.

    For ``W = L'L`` the nearest item is the one with the largest ``2 (W q)'x - x'Wx``. So items keep
    their vector and get one more column, ``-x'Wx``, and a query becomes ``[2 W q, 1]``: the inner
    product ranks as the metric does, and a newly learned metric changes only that column. With
    separate maps, A of queries and B of items, ``W`` is ``B'A`` and ``B'B`` in the two terms. A
    `BilinearMetric` needs no column.

    Under the cosine, ``x`` and ``q`` are at unit length. A second column then gives all items the
    same length, so that stores which compare by cosine or Euclidean distance rank them alike.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path, optional
        The .npy file to write the items to, block by block; by default they are kept in memory.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    QuerySide

    Notes
    -----
    If the items lie far from the origin, ``x`` and ``q`` are centred in the formula. This does not
    change the order, and avoids rounding errors in the column.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_query_side
    >>> X = np.array([[0.0, 9.0], [1.0, 0.0], [2.0, 5.0]])
    >>> items, metric = to_query_side(LinearMetric([[1.0, 0.0]]), X)
    >>> items
    array([[ 0.,  9.,  0.],
           [ 1.,  0., -1.],
           [ 2.,  5., -4.]])
    >>> query = metric.embed_queries([[0.9, 0.0]])
    >>> query
    array([[1.8, 0. , 1. ]])
    >>> np.argsort(-items @ query[0])
    array([1, 0, 2])
    """
    if path is not None and is_stream(path):
        raise ValueError(
            f"path must be a regular file, as the items are read back from it: got {path}."
        )
    if path is not None:
        check_suffix(path, "items", ("", ".npy"))
    blocks = open_blocks(metric, vectors, block_size)
    if metric.inner_product:
        queries = _inner_product_queries(metric)
        widen = partial(_unmapped, metric=metric)
    else:
        centre = sample_centre(metric, blocks)
        queries = _distance_queries(metric, centre)
        widen = partial(_widen, metric=metric, centre=centre)
    if path is None:
        rows = [widen(block) for _, block in blocks_of(metric, blocks, progress)]
        return QuerySide(np.concatenate(rows), queries)
    _write(metric, blocks, widen, path, progress)
    return QuerySide(np.load(path, mmap_mode="r"), queries)


def open_blocks(
    metric: Any, vectors: Any, size: int, side: str = "items"
) -> VectorBlocks:
    """Open vectors in blocks, after checking that the metric can map them."""
    check_metric(metric)
    return _open_blocks(metric, vectors, size, side)


def _open_blocks(metric: Any, vectors: Any, size: int, side: str) -> VectorBlocks:
    blocks = VectorBlocks(vectors, size)
    n_features = metric.n_features
    if side == "queries" and not metric.symmetric:
        n_features = metric.query_map.shape[1]
    if blocks.n_features != n_features:
        raise ValueError(
            f"{blocks.name} must have {n_features} features as the metric takes: got "
            f"{blocks.n_features}."
        )
    return blocks


def check_side(metric: EmbeddingMetric | KernelMetric, side: str | None) -> str:
    """The side to map; it must be given if the metric maps items and queries differently."""
    if side is None and metric.symmetric:
        return "items"
    if side is None:
        raise ValueError(
            "side must be items or queries, as the metric maps them differently: got none. Say "
            "which of them the vectors are."
        )
    check_choice(side, "side", SIDES)
    return side


def check_metric(metric: Any) -> None:
    """Raise unless the metric maps items and queries to vectors."""
    if isinstance(metric, KernelMetric):
        raise ValueError(
            "metric must be one linear map: got a KernelMetric. Store what it maps items to, by "
            "metric.embed_items(X), to_npy or rankspace transform, and map queries in the same way "
            "or, unless its kernel is precomputed, by to_onnx."
        )
    _check_maps(metric)


def _check_maps(metric: Any) -> None:
    if isinstance(metric, KernelMetric):
        return
    if not isinstance(metric, EmbeddingMetric):
        raise ValueError(
            "metric must be a LinearMetric, BilinearMetric or AsymmetricMetric, which map items "
            f"to vectors: got {type(metric).__name__}."
        )


def comparison(metric: EmbeddingMetric | KernelMetric) -> str:
    """How to compare mapped vectors."""
    return "inner product" if metric.inner_product else "Euclidean distance"


def blocks_of(
    metric: EmbeddingMetric | KernelMetric,
    blocks: VectorBlocks,
    progress: Progress | None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Each block with the number of its first row; reports progress after each."""
    start = 0
    for block in blocks:
        if metric.similarity == "cosine":
            # Here, where a message can number the rows from the first of all.
            check_no_zeros(block, blocks.name, start)
        yield start, block
        start += len(block)
        if progress is not None:
            progress(start / blocks.n_rows)


def sample_centre(metric: EmbeddingMetric, blocks: VectorBlocks) -> np.ndarray:
    """The centre of the items that the metric maps, or the origin; see `centre_of`."""
    sample = blocks.sample(SAMPLE)
    if metric.similarity != "cosine":
        return centre_of(sample)
    # Zero vectors are an error, which `blocks_of` raises with their row among all.
    present = sample[sample.any(axis=1)]
    if not len(present):
        return np.zeros(blocks.n_features)
    return centre_of(unit_rows(present, blocks.name))


def _unmapped(block: np.ndarray, metric: EmbeddingMetric) -> np.ndarray:
    """Rows as the metric maps them: at unit length under the cosine."""
    return unit_rows(block, "vectors") if metric.similarity == "cosine" else block


def _widen(
    block: np.ndarray, metric: EmbeddingMetric, centre: np.ndarray
) -> np.ndarray:
    """Rows with one more column, minus their squared norm under the metric.

    Under the cosine a second one gives all rows the same length.
    """
    rows = _unmapped(block, metric)
    mapped = np.subtract(rows, centre, dtype=np.float64) @ metric.item_map.T
    squares = np.einsum("ij,ij->i", mapped, mapped)
    # Subtracted from 0, as negating a zero would write -0.
    columns = [0 - squares]
    if metric.similarity == "cosine":
        # No unit vector has a longer image.
        longest = np.linalg.norm(metric.item_map, 2) * (1 + np.linalg.norm(centre))
        columns.append(np.sqrt(np.maximum(longest**4 - squares**2, 0)))
    return np.column_stack((rows, np.transpose(columns).astype(rows.dtype)))


def _distance_queries(metric: EmbeddingMetric, centre: np.ndarray) -> BilinearMetric:
    """The map of queries ``q`` to ``[2 B'(A q + a - B centre), 1]``."""
    twice = 2 * metric.item_map.T.astype(np.float64)
    query_offset = twice @ (metric.query_offset - metric.item_map @ centre)
    query_map = twice @ metric.query_map
    constants = [1.0]
    if metric.similarity == "cosine":
        constants.append(0.0)
    padding = np.zeros((len(constants), query_map.shape[1]))
    return _query_metric(
        metric,
        np.vstack((query_map, padding)),
        np.append(query_offset, constants),
    )


def _inner_product_queries(metric: EmbeddingMetric) -> BilinearMetric:
    """The map of queries ``q`` to ``B'(A q + a)``."""
    transposed = metric.item_map.T.astype(np.float64)
    return _query_metric(
        metric, transposed @ metric.query_map, transposed @ metric.query_offset
    )


def _query_metric(
    metric: EmbeddingMetric, query_map: np.ndarray, query_offset: np.ndarray
) -> BilinearMetric:
    parameters = {**metric.parameters, "query_side": True}
    # Items that are exported for the cosine have one length, so that it is the inner product.
    similarity = "cosine" if metric.similarity == "cosine" else "dot"
    exported = BilinearMetric(
        query_map,
        np.eye(len(query_map)),
        query_offset=query_offset,
        similarity=similarity,
        parameters=parameters,
    )
    exported.card = metric.card
    exported.query_sample = metric.query_sample
    return exported


def _write(
    metric: EmbeddingMetric | KernelMetric,
    blocks: VectorBlocks,
    embed: Callable[[np.ndarray], np.ndarray],
    path: PathLike,
    progress: Progress | None,
) -> int:
    """Write the mapped rows block by block, and return their width."""
    width = 0
    with replacing(path) as stream:
        for start, block in blocks_of(metric, blocks, progress):
            rows = embed(block)
            if start == 0:
                width = rows.shape[1]
                _write_header(stream, (blocks.n_rows, width), rows.dtype)
            stream.write(np.ascontiguousarray(rows).data)
    return width


def _write_header(stream: IO[bytes], shape: tuple[int, int], dtype: Any) -> None:
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
