"""Live indexes of the stores that are exported to: FAISS, pgvector, Qdrant, and a TREC run.

Each has the three methods of `rankspace.search.LiveIndex`, so that `tune` learns from documents
where they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.optional import require
from .._engine.vectors import as_rows, has_equal_norms, stored_names
from ..datasets import read_trec_run
from ..relevance.rows import as_ids, places
from ..search import Index, Ranking

Found = tuple[list[list[Any]], list[list[float]]]  # ids and scores of each query

NORMS = 256  # vectors whose lengths are compared
# What pgvector's operators of a distance rank by; a Euclidean one, for vectors of equal length.
OPERATORS = {"<=>": "cosine", "<#>": "dot", "<->": "cosine"}
SAMPLED = 1.5  # times as many rows are read by pages, as pages are not equally full
SCROLLED = 1000  # points in one answer of Qdrant


class LiveFaiss:
    """A FAISS index as a live index.

    Parameters
    ----------
    index : faiss.Index
        An index that keeps vectors: flat, HNSW, IVF or quantised, also with ids of its own
        (``IndexIDMap``). An IVF index gets a direct map, by which it finds a vector by its id.
    ids : sequence of str, optional
        Names of the documents, in the order of their numbers in the index.
    similarity : {"cosine", "dot"}, optional
        What the index ranks by. By default the cosine if vectors have equal lengths, else the dot
        product.

    Examples
    --------
    >>> import faiss
    >>> import numpy as np
    >>> from rankspace.export import LiveFaiss
    >>> index = faiss.IndexFlatIP(2)
    >>> index.add(np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    >>> LiveFaiss(index, ids=["a", "b"]).search(np.array([[0.6, 0.8]]), 1)[0]
    [['b']]
    """

    def __init__(
        self,
        index: Any,
        ids: Sequence[Any] | None = None,
        similarity: str | None = None,
    ) -> None:
        self._faiss = require("faiss", extra="faiss")
        self._owner = index  # what is downcast does not keep it alive
        self.index = self._faiss.downcast_index(index)
        if isinstance(self.index, self._faiss.IndexPreTransform):
            raise ValueError(
                "a live index must hold vectors as they were embedded: this one maps them first. "
                "Pass the index below its maps, index.index, if they leave documents unchanged."
            )
        self._stored = self.index
        if hasattr(self.index, "id_map"):
            self._stored = self._faiss.downcast_index(self.index.index)
        has_lists = hasattr(self._stored, "invlists")
        if has_lists:
            self._stored.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        has_keys = has_lists or hasattr(self.index, "id_map")
        self._keys = self._own_keys() if has_keys else None
        self._names = self._checked_names(ids)
        self._numbers = {name: n for n, name in enumerate(self._names or [])}
        self.similarity = similarity or self._likely_similarity()

    def _checked_names(self, ids: Sequence[Any] | None) -> list[str] | None:
        """The ids as names, one for each document."""
        if ids is None:
            return None
        names: list[str] = as_ids(ids).tolist()
        if len(names) != self.index.ntotal:
            raise ValueError(
                f"ids must name each of {self.index.ntotal} documents: got {len(names)}."
            )
        return names

    def _own_keys(self) -> np.ndarray:
        """The keys of an index with ids of its own, or of lists, in ascending order.

        Below ids of its own, vectors are stored under their position, else under their key.
        """
        if hasattr(self.index, "id_map"):
            keys = np.asarray(self._faiss.vector_to_array(self.index.id_map))
            self._places = np.argsort(keys, kind="stable")
            return keys[self._places]
        lists = self.index.invlists
        parts = [np.zeros(0, dtype=np.int64)]
        for number in range(self.index.nlist):
            size = lists.list_size(number)
            if size:
                listed = self._faiss.rev_swig_ptr(lists.get_ids(number), size)
                parts.append(listed.copy())
        self._places = np.sort(np.concatenate(parts))
        return self._places

    def _likely_similarity(self) -> str:
        sample = self.sample(NORMS, 0)
        if len(sample) and has_equal_norms(sample):
            return "cosine"
        is_product = self.index.metric_type == self._faiss.METRIC_INNER_PRODUCT
        return "dot" if is_product else "euclidean"

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Ids and scores of the nearest documents of each query; minus a squared distance."""
        queries = np.ascontiguousarray(Q, dtype=np.float32)
        scores, keys = self.index.search(queries, min(k, self.index.ntotal))
        if self.index.metric_type != self._faiss.METRIC_INNER_PRODUCT:
            scores = -scores
        ids = []
        values = []
        for found, row in zip(keys, scores, strict=True):
            is_found = found >= 0  # FAISS fills a short list up with -1
            ids.append(self._named(found[is_found].tolist()))
            values.append(row[is_found].tolist())
        return ids, values

    def _named(self, keys: list[int]) -> list[Any]:
        if self._names is None:
            return keys
        return [self._names[key] for key in keys]

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        """Vectors of documents."""
        keys = list(ids)
        if self._names is not None:
            keys = [self._numbers.get(str(id), -1) for id in ids]
        rows = self._positions(np.array(keys, dtype=np.int64))
        vectors = np.full((rows.size, self.index.d), np.nan, dtype=np.float32)
        there = rows >= 0
        if there.any():
            vectors[there] = self._stored.reconstruct_batch(rows[there])
        return vectors

    def _positions(self, keys: np.ndarray) -> np.ndarray:
        """What vectors of keys are stored under; -1 for a key that the index does not have."""
        if self._keys is None:
            return np.where((keys >= 0) & (keys < self.index.ntotal), keys, -1)
        at = np.searchsorted(self._keys, keys).clip(0, self._keys.size - 1)
        return np.where(self._keys[at] == keys, self._places[at], -1)

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Vectors of random documents."""
        rows = chosen_rows(self.index.ntotal, n, seed)
        if self._keys is not None:
            rows = self._places[rows]
        return np.asarray(self._stored.reconstruct_batch(rows))


class LivePgvector:
    """A table of PostgreSQL with pgvector as a live index.

    Parameters
    ----------
    connection : psycopg.Connection
        A connection.
    table : str, default="items"
        Name of the table, or ``schema.table``.
    id, embedding : str
        Columns of the ids and of the vectors.
    operator : {"<=>", "<#>", "<->"}, default="<=>"
        The distance that your search orders by: cosine, negative inner product, or Euclidean for
        vectors of equal length. An index of the table is used if it is for this operator.

    Examples
    --------
    ``tuned = tune(LivePgvector(connection, "items"), judgments, queries=Q, query_ids=ids)``

    >>> from rankspace.export import LivePgvector
    >>> LivePgvector(None, "items", operator="<+>")
    Traceback (most recent call last):
    ValueError: operator must be one of <=>, <#>, <->: got '<+>'.
    """

    def __init__(
        self,
        connection: Any,
        table: str = "items",
        *,
        id: str = "id",
        embedding: str = "embedding",
        operator: str = "<=>",
    ) -> None:
        check_choice(operator, "operator", OPERATORS)
        self.connection = connection
        self.similarity = OPERATORS[operator]
        self._sql = require("psycopg.sql", extra="pgvector")
        self._parts = {
            "table": self._sql.Identifier(*table.split(".")),
            "id": self._sql.Identifier(id),
            "embedding": self._sql.Identifier(embedding),
            "operator": self._sql.SQL(operator),
        }

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        query = self._sql.SQL(statement).format(**self._parts)
        found: list[tuple[Any, ...]] = self.connection.execute(query, values).fetchall()
        return found

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Ids and scores, minus the distances, of the nearest documents of each query."""
        ids, scores = [], []
        for query in Q.astype(np.float32):
            text = _as_text(query)
            rows = self._rows(
                "SELECT {id}, {embedding} {operator} %s::vector FROM {table} "
                "ORDER BY {embedding} {operator} %s::vector LIMIT %s",
                *(text, text, k),
            )
            ids.append([_plain_id(row[0]) for row in rows])
            scores.append([-float(row[1]) for row in rows])
        return ids, scores

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        """Vectors of documents."""
        rows = self._rows(
            "SELECT {id}, {embedding}::text FROM {table} WHERE {id} = ANY(%s)",
            list(ids),
        )
        vectors = {_plain_id(id): _as_vector(text) for id, text in rows}
        return in_order_of(ids, vectors)

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Vectors of random documents, from pages that are read at random."""
        few = self._rows("SELECT 1 FROM {table} LIMIT %s", n + 1)
        if len(few) <= n:
            rows = self._rows("SELECT {embedding}::text FROM {table} ORDER BY {id}")
            return np.array([_as_vector(row[0]) for row in rows])
        (estimate,) = self._rows(
            "SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = to_regclass(%s)",
            self._parts["table"].as_string(self.connection),
        )[0]
        percent = 100 * SAMPLED * n / max(float(estimate), n)
        rows = self._sampled(min(percent, 100.0), seed)
        while len(rows) < n and percent < 100:
            percent *= 2
            rows = self._sampled(min(percent, 100.0), seed)
        chosen = chosen_rows(len(rows), n, seed)
        return np.array([_as_vector(rows[row][0]) for row in chosen.tolist()])

    def _sampled(self, percent: float, seed: int) -> list[tuple[Any, ...]]:
        return self._rows(
            "SELECT {embedding}::text FROM {table} TABLESAMPLE SYSTEM (%s) REPEATABLE (%s)",
            *(percent, seed),
        )


class LiveQdrant:
    """A collection of Qdrant as a live index.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
        A client.
    collection : str, default="items"
        The collection, or an alias.
    vector : str, optional
        Name of the vectors, if points have several.
    id_field : str, optional
        The field of the payload that judgments name documents by; index it in Qdrant. By default
        the ids of points.

    Notes
    -----
    Vectors of equal length that Qdrant compares by the dot product are compared by the cosine.
    Qdrant draws samples by itself, so the seed is not used.

    Examples
    --------
    >>> from qdrant_client import QdrantClient
    >>> from rankspace import BilinearMetric
    >>> from rankspace.export import LiveQdrant, to_qdrant
    >>> client, unit = QdrantClient(":memory:"), [[1.0, 0.0], [0.0, 1.0]]
    >>> to_qdrant(BilinearMetric(unit, unit), unit, client, ids=["a", "b"])
    >>> LiveQdrant(client, id_field="name").fetch(["b"])
    array([[0., 1.]], dtype=float32)
    """

    def __init__(
        self,
        client: Any,
        collection: str = "items",
        *,
        vector: str | None = None,
        id_field: str | None = None,
    ) -> None:
        self._models = require("qdrant_client.models", extra="qdrant")
        self.client = client
        self.collection = collection
        self.vector = vector
        self.id_field = id_field
        params = client.get_collection(collection).config.params.vectors
        if isinstance(params, Mapping):
            if vector not in params:
                raise ValueError(
                    f"vector must be one of {', '.join(params)}, the vectors of the points: got "
                    f"{vector!r}."
                )
            params = params[vector]
        distance = params.distance.value
        self._sign = 1.0 if distance in ("Cosine", "Dot") else -1.0
        self.similarity = "cosine"
        if distance == "Dot" and not has_equal_norms(self.sample(NORMS, 0)):
            self.similarity = "dot"

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Ids and scores of the nearest documents of each query."""
        requests = [
            self._models.QueryRequest(
                query=query.tolist(),
                limit=k,
                using=self.vector,
                with_payload=self._fields,
            )
            for query in Q.astype(np.float32)
        ]
        answers = self.client.query_batch_points(self.collection, requests=requests)
        ids = [[self._id(point) for point in answer.points] for answer in answers]
        scores = [
            [self._sign * point.score for point in answer.points] for answer in answers
        ]
        return ids, scores

    @property
    def _fields(self) -> list[str] | bool:
        """What to ask of the payload."""
        return False if self.id_field is None else [self.id_field]

    def _id(self, point: Any) -> Any:
        if self.id_field is None:
            return point.id
        return str(point.payload[self.id_field])

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        """Vectors of documents."""
        if self.id_field is None:
            points = self.client.retrieve(
                self.collection, list(ids), with_payload=False, with_vectors=True
            )
        else:
            match = self._models.MatchAny(any=list(map(str, ids)))
            field = self._models.FieldCondition(key=self.id_field, match=match)
            points = self._scrolled(self._models.Filter(must=[field]))
        vectors = {self._id(point): self._vector(point) for point in points}
        return in_order_of(ids, vectors)

    def _vector(self, point: Any) -> np.ndarray:
        vector = point.vector
        if isinstance(vector, Mapping):
            vector = vector[self.vector]
        return np.array(vector, dtype=np.float32)

    def _scrolled(self, only: Any) -> list[Any]:
        """All points that pass a filter, in the order of their ids."""
        points: list[Any] = []
        offset = None
        while True:
            found, offset = self.client.scroll(
                self.collection,
                scroll_filter=only,
                limit=SCROLLED,
                offset=offset,
                with_payload=self._fields,
                with_vectors=True,
            )
            points += found
            if offset is None:
                return points

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Vectors of random documents."""
        if self.client.count(self.collection, exact=True).count <= n:
            points = self._scrolled(None)
        else:
            drawn = self._models.SampleQuery(sample=self._models.Sample.RANDOM)
            points = self.client.query_points(
                self.collection,
                query=drawn,
                limit=n,
                with_payload=False,
                with_vectors=True,
            ).points
        return np.array([self._vector(point) for point in points])


class LiveRun:
    """The documents of a TREC run, with their vectors in a file, as a live index.

    For an engine that cannot be searched from here: what a mapped query finds is among the
    documents that the run lists for any query, so make its lists long. Only vectors of documents
    that the run lists, or that are judged, are read.

    Parameters
    ----------
    run : Ranking, path or mapping
        What the engine found: a `Ranking`, a TREC run file or ``{query: {item: score}}``.
    vectors : path or array-like of shape (n_items, n_features)
        Vectors of the corpus: a .npy file stays on disk.
    ids : sequence of str, optional
        Names of the rows; by default those in the file, or row numbers.
    similarity : {"cosine", "dot"}, default="cosine"
        What the engine compares vectors by.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace.export import LiveRun
    >>> run = {"q1": {"a": 2.0, "c": 1.0}}
    >>> live = LiveRun(run, np.eye(3), ids=["a", "b", "c"])
    >>> live.search(np.array([[0.1, 0.9, 0.2]]), 2)[0]
    [['c', 'a']]
    """

    def __init__(
        self,
        run: Any,
        vectors: Any,
        ids: Sequence[Any] | None = None,
        similarity: str = "cosine",
    ) -> None:
        check_choice(similarity, "similarity", ("cosine", "dot"))
        if isinstance(run, os.PathLike | str):
            run = read_trec_run(run)
        if isinstance(run, Mapping):
            run = Ranking.from_run(run)
        self.similarity = similarity
        names = stored_names(vectors) if ids is None else ids
        self._vectors = as_rows(vectors, "vectors")
        if names is None:
            names = range(len(self._vectors))
        self._names = as_ids(list(names))
        listed = np.unique(run.items)
        if run.item_ids is not None:
            listed = np.sort(places(run.item_ids[listed], self._names))
        if not listed.size or listed[0] < 0 or listed[-1] >= len(self._vectors):
            raise ValueError(
                f"the run must list documents among the {len(self._vectors)} vectors: some have "
                "no vector. Pass ids, the names of the rows of vectors."
            )
        self._listed = listed
        self._index = Index(self._take(listed), similarity=similarity)

    def _take(self, rows: np.ndarray) -> np.ndarray:
        vectors = np.asarray(self._vectors[rows])
        return vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Ids and scores of the nearest documents that the run lists."""
        ranking = self._index.rank(Q, min(k, self._listed.size))
        ids = [self._names[self._listed[items]].tolist() for items, _ in ranking]
        return ids, [(-distances).tolist() for _, distances in ranking]

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        """Vectors of documents."""
        rows = places(as_ids(list(ids)), self._names)
        vectors = self._take(rows)
        return np.where(rows[:, None] < 0, vectors.dtype.type(np.nan), vectors)

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Vectors of random rows of the file."""
        return self._take(chosen_rows(len(self._vectors), n, seed))


def chosen_rows(n_rows: int, n: int, seed: int) -> np.ndarray:
    """Random row numbers in ascending order, or all of them if there are no more."""
    if n >= n_rows:
        return np.arange(n_rows)
    # By hand, as drawing without replacement would permute all rows.
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(n_rows, size=n))
    while rows.size < n:
        rows = np.union1d(rows, rng.integers(n_rows, size=n - rows.size))
    return rows


def in_order_of(ids: Sequence[Any], vectors: Mapping[Any, np.ndarray]) -> np.ndarray:
    """Vectors in the order of ids; NaN for those without one."""
    if not vectors:
        return np.full((len(ids), 1), np.nan, dtype=np.float32)
    missing = np.full_like(next(iter(vectors.values())), np.nan)
    return np.array([vectors.get(id, missing) for id in ids])


def _as_text(vector: np.ndarray) -> str:
    """A vector as pgvector reads it; Python writes enough digits of each number."""
    return str(vector.tolist())


def _as_vector(text: str) -> np.ndarray:
    return np.array(text[1:-1].split(","), dtype=np.float32)


def _plain_id(id: Any) -> Any:
    """An id as a number or text; others, such as UUIDs, as text."""
    return id if isinstance(id, int) else str(id)
