"""Plain files of vectors: mapped by the metric, or left as they are beside one more column."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, NamedTuple

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from .._engine.vectors import BLOCK, VectorBlocks
from ..metrics.embedding import BilinearMetric, EmbeddingMetric
from ..search.exact import centre_of
from ._checks import open_blocks

SIDES = ("items", "queries")
SAMPLE = 10_000  # rows that settle the centre

Progress = Callable[[float], Any]


class QuerySide(NamedTuple):
    """Items that stay as they are, and what their queries become.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_features + 1)
        The vectors as they were and one more column; a map of the file if they were written. Of a
        bilinear metric, without the column.
    metric : BilinearMetric
        Ranks ``items`` as the metric did: its `embed_queries` gives what to search them for by
        inner product.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_query_side
    >>> frozen = to_query_side(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0], [3.0, 5.0]])
    >>> frozen.metric.rank([[2.5, 9.0]], frozen.items).items
    array([1, 0])
    """

    items: np.ndarray
    metric: BilinearMetric


def to_npy(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike,
    *,
    side: str = "items",
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> None:
    """Write mapped vectors to a .npy file, block by block.

    Search them by Euclidean distance under a `LinearMetric`, by inner product under a
    `BilinearMetric`. Memory is that of one block, however large the files are.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What maps them.
    vectors : path or array-like of shape (n, n_features)
        A .npy file, or the vectors themselves. float32 and float16 give float32.
    path : path
        The file to write; it is replaced once the new one is complete.
    side : {"items", "queries"}, default="items"
        What the vectors are; a linear metric maps both alike.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_npy
    >>> to_npy(LinearMetric([[2.0, 1.0]]), np.eye(2), "mapped.npy")
    >>> np.load("mapped.npy")
    array([[2.],
           [1.]])
    """
    check_choice(side, "side", SIDES)
    blocks = open_blocks(metric, vectors, block_size, side)
    _write(
        blocks,
        metric.embed_items if side == "items" else metric.embed_queries,
        path,
        progress,
    )


def to_query_side(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike | None = None,
    *,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> QuerySide:
    """Leave the items as they are and put the whole metric on the side of the queries.

    For ``W = L'L`` the nearest item is the one with the largest ``2 (W q)'x - x'Wx``. So items keep
    their vector and get one more column, ``-x'Wx``, and a query becomes ``[2 W q, 1]``: the inner
    product ranks as the metric does, and when the metric is learned anew, that column is all that
    changes. With two maps, A of queries and B of items, ``W`` is ``B'A`` and ``B'B``. A
    `BilinearMetric` needs no column.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What ranks.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    path : path, optional
        The .npy file to write the items to, block by block; by default they stay in memory.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    QuerySide

    Notes
    -----
    ``x`` and ``q`` are taken from a point amid the items if these lie far from the origin: it does
    not change the order, and saves the column from losing its digits.

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
    blocks = open_blocks(metric, vectors, block_size)
    embed: Callable[[np.ndarray], np.ndarray]
    if metric.inner_product:
        asked, embed = _inner_queries(metric), _same
    else:
        centre = centre_of(blocks.sample(SAMPLE))
        asked, embed = _distance_queries(metric, centre), _Widened(metric, centre)
    if path is None:
        return QuerySide(np.concatenate([embed(block) for block in blocks]), asked)
    _write(blocks, embed, path, progress)
    return QuerySide(np.load(path, mmap_mode="r"), asked)


class _Widened:
    """Rows with one more column, minus their squared length under a metric."""

    def __init__(self, metric: EmbeddingMetric, centre: np.ndarray) -> None:
        self.metric = metric
        self.centre = centre

    def __call__(self, block: np.ndarray) -> np.ndarray:
        mapped = self.metric.embed_items(
            np.subtract(block, self.centre, dtype=np.float64)
        )
        squares = np.einsum("ij,ij->i", mapped, mapped)
        return np.column_stack((block, (0 - squares).astype(block.dtype)))


def _same(block: np.ndarray) -> np.ndarray:
    return block


def _distance_queries(metric: EmbeddingMetric, centre: np.ndarray) -> BilinearMetric:
    """``q`` to ``[2 B'(A q + a - B centre), 1]``."""
    twice = 2 * metric.item_map.T.astype(np.float64)
    offset = twice @ (metric.query_offset - metric.item_map @ centre)
    left = twice @ metric.query_map
    left = np.vstack((left, np.zeros(left.shape[1])))
    return BilinearMetric(
        left,
        np.eye(len(left)),
        query_offset=np.append(offset, 1.0),
        parameters=_frozen_parameters(metric),
    )


def _inner_queries(metric: EmbeddingMetric) -> BilinearMetric:
    """``q`` to ``B'(A q + a)``."""
    back = metric.item_map.T.astype(np.float64)
    return BilinearMetric(
        back @ metric.query_map,
        np.eye(len(back)),
        query_offset=back @ metric.query_offset,
        parameters=_frozen_parameters(metric),
    )


def _frozen_parameters(metric: EmbeddingMetric) -> dict[str, Any]:
    return {**metric.parameters, "frozen": True}


def _write(
    blocks: VectorBlocks,
    embed: Callable[[np.ndarray], np.ndarray],
    path: PathLike,
    progress: Progress | None,
) -> None:
    done = 0
    with replacing(path) as stream:
        for block in blocks:
            rows = embed(block)
            if not done:
                _write_header(stream, (blocks.n_rows, rows.shape[1]), rows.dtype)
            stream.write(np.ascontiguousarray(rows).data)
            done += len(rows)
            if progress is not None:
                progress(done / blocks.n_rows)


def _write_header(stream: IO[bytes], shape: tuple[int, int], dtype: Any) -> None:
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
