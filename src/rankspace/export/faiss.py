"""Export to FAISS: an index that maps raw vectors itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from .._engine.optional import require
from .._engine.vectors import BLOCK, VectorBlocks, stored_names
from ..metrics.embedding import EmbeddingMetric
from ..search.quantised import OVERSAMPLING
from .arrays import Progress, blocks_of, open_blocks, sample_centre
from .items import Items
from .sidecar import NamedItems, Sidecar, read_beside

INDEXES = ("exact", "hnsw", "ivf")
STORAGES = ("float32", "float16", "int8", "binary")
SCALE_ROWS = 65_536  # sample that the ranges of int8 are taken from
HNSW_LINKS = 32  # of each node of the graph
EF_CONSTRUCTION = 200  # candidates for the links of a node
# FAISS advises 39 to 256 training vectors for each k-means cell.
MIN_ROWS_PER_CELL = 39
MAX_ROWS_PER_CELL = 256
# Recall is measured on so many sample queries, at this length of their lists.
N_SAMPLE_QUERIES = 256
DEPTH = 10


def to_faiss(
    metric: EmbeddingMetric,
    vectors: Any,
    path: PathLike | None = None,
    *,
    ids: Any = None,
    payload: Any = None,
    index: str = "exact",
    storage: str = "float32",
    queries: Any = None,
    recall: float = 0.99,
    random_state: int = 0,
    block_size: int = BLOCK,
    progress: Progress | None = None,
) -> Any:
    """Build a FAISS index that maps vectors itself.

    The index is an ``IndexPreTransform``: search it with unmapped queries. It compares inner
    products under a `BilinearMetric`, else squared Euclidean distances. Under the cosine, it brings
    vectors to unit length before it maps them. Under a `LinearMetric`, ``index.add`` takes more
    unmapped items. The other metrics map items differently from queries: add more items by
    ``index.index.add(metric.embed_items(X))``.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to rank by.
    vectors : path or array-like of shape (n_items, n_features)
        The items: an array, a dataframe, or a file, folder or pattern of vectors.
    path : path, optional
        Also write the index to this file, for ``faiss.read_index``. A file of that name is replaced
        once the new one is complete.
    ids : array-like of str, optional
        Names of the items; by default those that their file or table holds, if there is a path.
        They are written beside the index, which then holds keys in an ``IndexIDMap``: read both by
        `read_faiss`. Without names the index holds row numbers.
    payload : sequence of dict, optional
        What to store beside each item, as `ids`.
    index : {"exact", "hnsw", "ivf"}, default="exact"
        Exhaustive search, an HNSW graph, or an inverted file of k-means cells.
    storage : {"float32", "float16", "int8", "binary"}, default="float32"
        What the exhaustive index keeps of each number. "int8" has 256 levels over the range of
        each dimension. "binary" keeps signs and two numbers for each item (RaBitQ), and rescores
        four candidates for each item wanted by full vectors, which the index keeps, too. `tune`
        reports what they lose; signs alone, which it tests, lose a little more than RaBitQ.
    queries : path or array-like of shape (n_queries, n_query_features), optional
        Sample queries to tune an approximate search on; items by default.
    recall : float, default=0.99
        Required recall of the ten nearest items: ``efSearch`` or ``nprobe`` is doubled until the
        sample queries miss at most half as many as allowed, and stored in the index.
    random_state : int, default=0
        Seed of the k-means cells and of the sample queries.
    block_size : int, default=8192
        Rows per block.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    faiss.IndexPreTransform

    Notes
    -----
    FAISS computes in single precision. If items lie far from the origin, the index centres them.

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
    _check_settings(index, storage, recall)
    faiss = require("faiss", extra="faiss")
    blocks = open_blocks(metric, vectors, block_size)
    named = _named_items(metric, vectors, ids, payload, path)
    if storage == "float32":
        store = _empty_store(faiss, metric, blocks, index, random_state)
    else:
        store = _quantised_store(faiss, metric, storage)
    keyed = store if named is None else faiss.IndexIDMap(store)
    maps = _item_maps(faiss, metric, blocks)
    loader = _with_maps(faiss, maps, keyed)
    n_train = _n_training_rows(store, index, storage)
    if n_train:
        loader.train(_single(blocks.sample(n_train, random_state)))
    for start, block in blocks_of(metric, blocks, progress):
        _add(loader, _single(block), start, named)
    if not metric.symmetric:
        maps = [
            *_unit_length(faiss, metric, metric.query_map.shape[1]),
            _linear(faiss, metric.query_map, metric.query_offset),
        ]
    if index != "exact":
        source = blocks
        if queries is not None:
            source = VectorBlocks(queries)
        sample = source.sample(N_SAMPLE_QUERIES, random_state)
        _tune_effort(store, index, _mapped(_single(sample), maps), recall)
    searcher = _with_maps(faiss, maps, keyed)
    if path is not None:
        _write(faiss, searcher, named, path)
    return searcher


def _check_settings(index: str, storage: str, recall: float) -> None:
    check_choice(index, "index", INDEXES)
    check_choice(storage, "storage", STORAGES)
    if storage != "float32" and index != "exact":
        raise ValueError(
            f"storage {storage!r} can only be used with index 'exact': got {index!r}."
        )
    if not 0 < recall <= 1:
        raise ValueError(f"recall must be above 0 and at most 1: got {recall}.")


def _n_training_rows(store: Any, index: str, storage: str) -> int:
    """How many items the ranges of numbers, or the k-means cells, are fitted to."""
    if index == "ivf":
        return int(store.nlist) * MAX_ROWS_PER_CELL
    if storage != "float32":
        return SCALE_ROWS
    return 0


def read_faiss(path: PathLike) -> tuple[Any, Sidecar]:
    """Read an index that `to_faiss` wrote with ids or a payload.

    Parameters
    ----------
    path : path
        The file of the index.

    Returns
    -------
    index : faiss.IndexPreTransform
        Search it with unmapped queries; it finds keys.
    items : Sidecar
        Turns keys into ids, rows and payloads.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import read_faiss, to_faiss
    >>> texts = [{"text": "far"}, {"text": "near"}]
    >>> metric = LinearMetric([[1.0, 0.0]])
    >>> _ = to_faiss(metric, [[0.0, 9.0], [2.0, 0.0]], "my.faiss", ids=["a", "b"], payload=texts)
    >>> index, items = read_faiss("my.faiss")
    >>> _, keys = index.search(metric.transform([[1.9, 0.0]]).repeat(2, axis=1), 1)
    >>> items.names(keys), items.payload[items.row(keys[0, 0])]
    ([['b']], {'text': 'near'})
    """
    faiss = require("faiss", extra="faiss")

    def read() -> tuple[Any, Sidecar]:
        index = faiss.read_index(str(path))
        return index, Sidecar(path, _first_key(faiss, index, path))

    return read_beside(read)


def _first_key(faiss: Any, index: Any, path: PathLike) -> int:
    keyed = faiss.downcast_index(getattr(index, "index", index))
    if not hasattr(keyed, "id_map"):
        raise ValueError(
            f"{path} must be an index written with ids: it has none, and finds row numbers."
        )
    return int(keyed.id_map.at(0))


def _named_items(
    metric: EmbeddingMetric, vectors: Any, ids: Any, payload: Any, path: PathLike | None
) -> NamedItems | None:
    if ids is None and path is not None:
        ids = stored_names(vectors)
    if ids is None and payload is None:
        return None
    if path is None:
        raise ValueError(
            "ids and payload are written beside an index file: pass its path, too."
        )
    return NamedItems(Items(metric, vectors, ids, payload, BLOCK), path)


def _add(loader: Any, block: np.ndarray, start: int, named: NamedItems | None) -> None:
    if named is None:
        loader.add(block)
        return
    first = named.first_key + start
    loader.add_with_ids(block, np.arange(first, first + len(block)))


def _write(faiss: Any, searcher: Any, named: NamedItems | None, path: PathLike) -> None:
    """Write the index after its ids, which go by another name than those of an earlier index."""
    if named is not None:
        named.write()
    with replacing(path) as stream:
        faiss.write_index(searcher, faiss.PyCallbackIOWriter(stream.write))
    if named is not None:
        named.remove_others()


def _empty_store(
    faiss: Any,
    metric: EmbeddingMetric,
    blocks: VectorBlocks,
    index: str,
    random_state: int,
) -> Any:
    width = len(metric.item_map)
    metric_type = faiss.METRIC_L2
    if metric.inner_product:
        metric_type = faiss.METRIC_INNER_PRODUCT
    if index == "exact":
        return faiss.IndexFlat(width, metric_type)
    if index == "hnsw":
        store = faiss.IndexHNSWFlat(width, HNSW_LINKS, metric_type)
        store.hnsw.efConstruction = EF_CONSTRUCTION
        return store
    n_cells = int(4 * np.sqrt(blocks.n_rows))
    n_cells = max(1, min(n_cells, blocks.n_rows // MIN_ROWS_PER_CELL))
    quantizer = faiss.IndexFlat(width, metric_type)
    store = faiss.IndexIVFFlat(quantizer, width, n_cells, metric_type)
    store.cp.seed = random_state
    store.cp.min_points_per_centroid = 1  # or it warns about small corpora
    return store


def _quantised_store(faiss: Any, metric: EmbeddingMetric, storage: str) -> Any:
    """An empty exhaustive index of numbers with fewer bits."""
    metric_type = faiss.METRIC_L2
    if metric.inner_product:
        metric_type = faiss.METRIC_INNER_PRODUCT
    width = len(metric.item_map)
    if storage == "binary":
        signs = _sign_store(faiss, width, metric_type)
        vectors = faiss.IndexFlat(width, metric_type)
        store = faiss.IndexRefine(signs, vectors)
        store.own_fields = store.own_refine_index = True
        signs.this.disown()
        vectors.this.disown()
        store.k_factor = OVERSAMPLING
        return store
    kinds = {
        "float16": faiss.ScalarQuantizer.QT_fp16,
        "int8": faiss.ScalarQuantizer.QT_8bit,
    }
    return faiss.IndexScalarQuantizer(width, kinds[storage], metric_type)


def _sign_store(faiss: Any, width: int, metric_type: int) -> Any:
    """An empty index of one bit for each number and two numbers for each item (RaBitQ)."""
    if not hasattr(faiss, "IndexRaBitQ"):
        raise ValueError(
            f"storage 'binary' needs faiss-cpu 1.11 or later: got {faiss.__version__}."
        )
    return faiss.IndexRaBitQ(width, metric_type)


def _item_maps(faiss: Any, metric: EmbeddingMetric, blocks: VectorBlocks) -> list[Any]:
    maps = [_linear(faiss, metric.item_map)]
    # Only a symmetric metric can centre, as queries must be shifted in the same way.
    if metric.symmetric:
        centre = sample_centre(metric, blocks)
        if centre.any():
            maps.insert(0, _centring(faiss, centre))
    return [*_unit_length(faiss, metric, metric.n_features), *maps]


def _unit_length(faiss: Any, metric: EmbeddingMetric, n_features: int) -> list[Any]:
    """The map of vectors to unit length, under the cosine; it leaves zero vectors unchanged."""
    if metric.similarity != "cosine":
        return []
    return [faiss.NormalizationTransform(n_features, 2.0)]


def _linear(faiss: Any, matrix: np.ndarray, offset: np.ndarray | None = None) -> Any:
    n_components, n_features = matrix.shape
    transform = faiss.LinearTransform(n_features, n_components, offset is not None)
    faiss.copy_array_to_vector(_single(matrix).ravel(), transform.A)
    if offset is not None:
        faiss.copy_array_to_vector(_single(offset), transform.b)
    transform.is_trained = True
    return transform


def _centring(faiss: Any, centre: np.ndarray) -> Any:
    transform = faiss.CenteringTransform(centre.size)
    faiss.copy_array_to_vector(_single(centre), transform.mean)
    transform.is_trained = True
    return transform


def _with_maps(faiss: Any, maps: list[Any], store: Any) -> Any:
    index = faiss.IndexPreTransform(store)
    for transform in reversed(maps):
        index.prepend_transform(transform)
    return index


def _mapped(queries: np.ndarray, maps: list[Any]) -> np.ndarray:
    if queries.shape[1] != maps[0].d_in:
        raise ValueError(
            f"queries must have {maps[0].d_in} features as the metric takes: got "
            f"{queries.shape[1]}. Without queries=, items are used."
        )
    for transform in maps:
        queries = transform.apply(queries)
    return queries


def _tune_effort(store: Any, index: str, queries: np.ndarray, recall: float) -> None:
    """Double ``efSearch`` or ``nprobe`` until at most half of the allowed misses occur."""
    if index == "hnsw":
        holder, name = store.hnsw, "efSearch"
        effort, limit = 4 * DEPTH, store.ntotal
        exact = store.storage  # the flat index of the same vectors
    else:
        holder, name = store, "nprobe"
        effort, limit = 1, store.nlist
        exact = store  # exact with all cells probed, which is set next
    depth = min(DEPTH, store.ntotal)
    setattr(holder, name, limit)
    _, nearest = exact.search(queries, depth)
    while effort < limit:
        setattr(holder, name, effort)
        _, items = store.search(queries, depth)
        hits = (items[:, :, None] == nearest[:, None, :]).any(axis=2)
        if 1 - hits.mean() <= (1 - recall) / 2:
            return
        effort *= 2
    setattr(holder, name, limit)


def _single(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.float32)
