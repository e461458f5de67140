"""FAISS indexes that take vectors as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from .._engine.vectors import BLOCK, VectorBlocks
from ..metrics.embedding import EmbeddingMetric
from ..search.exact import centre_of
from ._arrays import SAMPLE, Progress
from ._checks import need, open_blocks

INDEXES = ("exact", "hnsw", "ivf")
N_LINKS, EFFORT_OF_BUILDING = (
    32,
    200,
)  # of each node of a graph, and candidates for them
LEAST_ROWS_A_CELL, MOST_ROWS_A_CELL = 39, 256  # that FAISS likes to train on
N_EXAMPLES, DEPTH = (
    256,
    10,
)  # queries, and the length of their lists, that settle the effort


def to_faiss(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike | None = None,
    *,
    index: str = "exact",
    queries: Any = None,
    recall: float = 0.99,
    random_state: int = 0,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> Any:
    """Build a FAISS index that maps vectors itself.

    The index is an ``IndexPreTransform``: search it with queries as they are. Under a
    `LinearMetric` it compares squared Euclidean distances, and more items may be added as they are.
    Under a `BilinearMetric` it compares inner products, under a `AsymmetricMetric` distances; items are
    mapped in another way than queries, so add more of them by
    ``index.index.add(metric.embed_items(X))``.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What ranks.
    vectors : path or array-like of shape (n_items, n_features)
        The items: a .npy file, or an array.
    path : path, optional
        Also write the index to this file, for ``faiss.read_index``.
    index : {"exact", "hnsw", "ivf"}, default="exact"
        Compare with all items, or search a graph or cells of k-means.
    queries : path or array-like of shape (n_queries, n_query_features), optional
        Examples of queries, to settle the effort of a search that is not exact; items by default.
    recall : float, default=0.99
        Share of the true ten nearest that such a search is to find: ``efSearch`` or ``nprobe`` is
        doubled until the examples miss at most half as many as allowed, and stored in the index.
    random_state : int, default=0
        Seed of the cells and of the examples.
    block_size : int, default=8192
        Rows at a time.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    faiss.IndexPreTransform

    Notes
    -----
    FAISS computes in single precision. Items far from the origin are centred first, by the index.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_faiss
    >>> X = np.array([[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]], dtype=np.float32)
    >>> index = to_faiss(LinearMetric([[1.0, 0.0]]), X)
    >>> index.search(X[:1], 3)[1]
    array([[0, 1, 2]])
    """
    check_choice(index, "index", INDEXES)
    if not 0 < recall <= 1:
        raise ValueError(f"recall must be above 0 and at most 1: got {recall}.")
    faiss = need("faiss", "faiss-cpu")
    blocks = open_blocks(metric, vectors, block_size)
    store = _empty_store(faiss, metric, blocks, index, random_state)
    maps = _item_maps(faiss, metric, blocks)
    loader = _wrap(faiss, maps, store)
    if index == "ivf":
        loader.train(
            _single(blocks.sample(store.nlist * MOST_ROWS_A_CELL, random_state))
        )
    for block in blocks:
        loader.add(_single(block))
        if progress is not None:
            progress(loader.ntotal / blocks.n_rows)
    if not metric.symmetric:
        maps = [_linear(faiss, metric.query_map, metric.query_offset)]
    if index != "exact":
        asked = blocks if queries is None else VectorBlocks(queries)
        examples = _single(asked.sample(N_EXAMPLES, random_state))
        _settle_effort(store, index, _mapped(examples, maps), recall)
    built = _wrap(faiss, maps, store)
    if path is not None:
        with replacing(path) as stream:
            faiss.write_index(built, faiss.PyCallbackIOWriter(stream.write))
    return built


def _empty_store(
    faiss: Any,
    metric: EmbeddingMetric,
    blocks: VectorBlocks,
    index: str,
    random_state: int,
) -> Any:
    width = len(metric.item_map)
    measure = faiss.METRIC_INNER_PRODUCT if metric.inner_product else faiss.METRIC_L2
    if index == "exact":
        return faiss.IndexFlat(width, measure)
    if index == "hnsw":
        store = faiss.IndexHNSWFlat(width, N_LINKS, measure)
        store.hnsw.efConstruction = EFFORT_OF_BUILDING
        return store
    n_cells = int(4 * np.sqrt(blocks.n_rows))
    n_cells = max(1, min(n_cells, blocks.n_rows // LEAST_ROWS_A_CELL))
    store = faiss.IndexIVFFlat(faiss.IndexFlat(width, measure), width, n_cells, measure)
    store.cp.seed = random_state
    store.cp.min_points_per_centroid = 1  # or it complains of small corpora
    return store


def _item_maps(faiss: Any, metric: EmbeddingMetric, blocks: VectorBlocks) -> list[Any]:
    if not metric.symmetric:
        return [_linear(faiss, metric.item_map)]
    centre = centre_of(blocks.sample(SAMPLE))
    centring = [_centring(faiss, centre)] if centre.any() else []
    return [*centring, _linear(faiss, metric.item_map)]


def _linear(faiss: Any, matrix: np.ndarray, offset: np.ndarray | None = None) -> Any:
    made = faiss.LinearTransform(matrix.shape[1], matrix.shape[0], offset is not None)
    faiss.copy_array_to_vector(_single(matrix).ravel(), made.A)
    if offset is not None:
        faiss.copy_array_to_vector(_single(offset), made.b)
    made.is_trained = True
    return made


def _centring(faiss: Any, centre: np.ndarray) -> Any:
    made = faiss.CenteringTransform(centre.size)
    faiss.copy_array_to_vector(_single(centre), made.mean)
    made.is_trained = True
    return made


def _wrap(faiss: Any, maps: list[Any], store: Any) -> Any:
    index = faiss.IndexPreTransform(store)
    for each in reversed(maps):
        index.prepend_transform(each)
    return index


def _mapped(queries: np.ndarray, maps: list[Any]) -> np.ndarray:
    if queries.shape[1] != maps[0].d_in:
        raise ValueError(
            f"queries must have {maps[0].d_in} features as the metric takes: got "
            f"{queries.shape[1]}. Without queries, items stand for them."
        )
    for each in maps:
        queries = each.apply(queries)
    return queries


def _settle_effort(store: Any, index: str, asked: np.ndarray, recall: float) -> None:
    """Double the effort of a search until it misses at most half of what it may."""
    graph = index == "hnsw"
    holder, name = (store.hnsw, "efSearch") if graph else (store, "nprobe")
    most = store.ntotal if graph else store.nlist
    depth = min(DEPTH, store.ntotal)
    setattr(holder, name, most)
    # Through all cells a search is exact; a graph has the vectors beside it.
    _, nearest = (store.storage if graph else store).search(asked, depth)
    effort = 4 * DEPTH if graph else 1
    while effort < most:
        setattr(holder, name, effort)
        _, found = store.search(asked, depth)
        shared = (found[:, :, None] == nearest[:, None, :]).any(axis=2)
        if 1 - shared.mean() <= (1 - recall) / 2:
            return
        effort *= 2
    setattr(holder, name, most)


def _single(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.float32)
