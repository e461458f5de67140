"""Live indexes: a vector store that is searched where it is, and never read whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from threading import RLock
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._engine.parallel.interruption import check_interruption
from .._engine.similarity import unit_rows
from ..relevance.rows import as_ids, indptr_of
from .exact import as_vectors
from .index import QUERY_BLOCK, Index
from .ranking import Ranking

FETCHED = 1000  # documents in one request

Lists = list[tuple[list[Any], np.ndarray]]  # ids and scores for each query


@runtime_checkable
class LiveIndex(Protocol):
    """Live index: what `tune` asks of a vector store that stays where it is.

    Any object with these three methods will do. `rankspace.export` has those of FAISS, pgvector and
    Qdrant, and of a TREC run beside a file of vectors. An attribute ``similarity``, if there is
    one, is the default of ``tune(similarity=...)``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace.search import LiveIndex
    >>> class Store:
    ...     def __init__(self, X):
    ...         self.X = X
    ...     def search(self, Q, k):
    ...         scores = Q @ self.X.T
    ...         ids = np.argsort(-scores, axis=1)[:, :k]
    ...         return ids, np.take_along_axis(scores, ids, axis=1)
    ...     def fetch(self, ids):
    ...         return self.X[ids]
    ...     def sample(self, n, seed):
    ...         return np.random.default_rng(seed).permutation(self.X)[:n]
    >>> isinstance(Store(np.eye(3)), LiveIndex)
    True
    """

    def search(self, Q: np.ndarray, k: int) -> tuple[Any, Any]:
        """The nearest documents of each query.

        Parameters
        ----------
        Q : ndarray of shape (n_queries, n_features)
            Queries; by cosine, of unit length.
        k : int
            How many documents; fewer if there are no more.

        Returns
        -------
        ids : sequence of n_queries sequences of int or str
            Ids of documents, nearest first.
        scores : sequence of n_queries sequences of float
            Their scores, larger is nearer.
        """

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        """Vectors of documents, in the order of their ids; a row of NaN where there is none."""

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Vectors of ``n`` random documents, or of all in their order if there are no more."""


def in_order(ids: Iterable[Any]) -> list[Any]:
    """Ids sorted so that numbers at their ends count up, as rows of a corpus mostly do."""
    return sorted(ids, key=lambda id: (len(str(id)), str(id)))


class LiveVectors:
    """Vectors of the documents of a live index: each has a number, and is read when asked for.

    Documents get the first numbers in the order of ``ids``, and further ones as searches find
    them. ``n_items`` is the number that there is room for; ``sample`` are vectors of documents that
    have no number.
    """

    def __init__(
        self, index: LiveIndex, ids: Sequence[Any], sample: np.ndarray
    ) -> None:
        self.index = index
        self.ids = list(ids)
        self.sample = sample
        self.dtype = sample.dtype
        self._numbers = {id: number for number, id in enumerate(self.ids)}
        self._lock = RLock()
        self.reserve(0)

    def reserve(self, n_more: int) -> None:
        """Make room for documents that searches will find. Done once, before any is read."""
        self.n_items = len(self.ids) + n_more
        self._rows = np.full(self.n_items, -1)
        self._stored = np.empty((0, self.sample.shape[1]), dtype=self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Documents that there is room for, and features."""
        return self.n_items, self.sample.shape[1]

    def __len__(self) -> int:
        return self.n_items

    @property
    def n_read(self) -> int:
        """How many vectors were read."""
        return len(self._stored)

    def numbers(self, ids: Sequence[Any]) -> np.ndarray:
        """Numbers of documents."""
        with self._lock:
            for id in ids:
                if id not in self._numbers:
                    self._numbers[id] = len(self.ids)
                    self.ids.append(id)
            return np.array([self._numbers[id] for id in ids], dtype=np.int64)

    def __getitem__(self, numbers: Any) -> np.ndarray:
        numbers = np.asarray(numbers)
        with self._lock:
            missing = np.unique(numbers[self._rows[numbers] < 0])
            if missing.size:
                vectors = fetched(self.index, [self.ids[n] for n in missing.tolist()])
                self._rows[missing] = len(self._stored) + np.arange(missing.size)
                self._stored = np.concatenate((self._stored, vectors), dtype=self.dtype)
            return self._stored[self._rows[numbers]]


class SampledCorpus:
    """The numbers of a corpus so small that the sample of a live index is all of it.

    Samples have no ids, so an id that a search finds is matched by its vector.
    """

    def __init__(self, index: LiveIndex, vectors: np.ndarray) -> None:
        self.index = index
        self.vectors = vectors
        self.n_items = self.n_read = len(vectors)
        self._names = np.array([f"document {n}" for n in range(len(vectors))], object)
        self._numbers: dict[Any, int] = {}
        self._unnamed: dict[bytes, list[int]] = {}
        for number in range(len(vectors)):
            self._unnamed.setdefault(vectors[number].tobytes(), []).append(number)
        self._lock = RLock()

    @property
    def ids(self) -> list[Any]:
        """Ids of the documents that a search found or a judgment named; else their number."""
        return list(self._names)

    def numbers(self, ids: Sequence[Any]) -> np.ndarray:
        """Numbers of documents."""
        with self._lock:
            unknown = [id for id in dict.fromkeys(ids) if id not in self._numbers]
            if unknown:
                self._match(unknown)
            return np.array([self._numbers[id] for id in ids], dtype=np.int64)

    def _match(self, ids: list[Any]) -> None:
        ids = in_order(ids)
        vectors = fetched(self.index, ids).astype(self.vectors.dtype, copy=False)
        last = -1
        for id, vector in zip(ids, vectors, strict=True):
            waiting = self._unnamed.get(vector.tobytes())
            if not waiting:
                raise ValueError(
                    f"fetch must give the vectors that sample gives, which was all "
                    f"{self.n_items} documents: that of {id!r} is not among them. Tune while the "
                    "index does not change."
                )
            # Documents of equal vectors: ids that are row numbers tell, or those that sort as rows.
            following = [number for number in waiting if number > last]
            number = id if id in waiting else min(following or waiting)
            if len(waiting) == 1:
                last = number
            waiting.remove(number)
            self._numbers[id] = number
            self._names[number] = id


class LiveSearch:
    """Search of a live index by the numbers of its documents, in the place of an `Index`."""

    def __init__(
        self, index: LiveIndex, documents: LiveVectors | SampledCorpus, similarity: str
    ) -> None:
        self.index = index
        self.documents = documents
        self.similarity = similarity
        self.n_searches = 0
        self._found: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self._depth = 0
        self._lock = RLock()

    def __len__(self) -> int:
        return self.documents.n_items

    def remember(self, Q: np.ndarray, lists: Lists, depth: int) -> None:
        """Keep the lists of queries that are searched for again and again."""
        self._depth = depth
        for query, (ids, scores) in zip(Q, lists, strict=True):
            self._found[query.tobytes()] = (self.documents.numbers(ids), scores)

    def rank(self, Q: np.ndarray, k: int, *, query_items: Any = None) -> Ranking:
        """Rank the nearest documents of each query; lists may be shorter than ``k``."""
        items: list[Any] = [None] * len(Q)
        scores: list[Any] = [None] * len(Q)
        is_new = np.ones(len(Q), dtype=bool)
        for number, query in enumerate(Q):
            if k <= self._depth and query.tobytes() in self._found:
                found = self._found[query.tobytes()]
                items[number], scores[number] = found[0][:k], found[1][:k]
                is_new[number] = False
        numbers = np.flatnonzero(is_new)
        lists = searched(self.index, Q[numbers], k, self.similarity, self._lock)
        self.n_searches += numbers.size
        for number, (ids, values) in zip(numbers.tolist(), lists, strict=True):
            items[number], scores[number] = self.documents.numbers(ids), values
        return Ranking(
            indptr_of([row.size for row in items]),
            np.concatenate([np.zeros(0, dtype=np.int64), *items]),
            -np.concatenate([np.zeros(0), *scores]),
            len(self),
            similarity=self.similarity,
        )

    def rerank(
        self, Q: np.ndarray, candidates: Sequence[Any], *, query_items: Any = None
    ) -> Ranking:
        """Rank given candidates of each query by vectors that are read for it."""
        items = np.unique(np.concatenate(candidates)).astype(np.int64)
        vectors = self._vectors(items)
        lists = [np.searchsorted(items, row) for row in candidates]
        found = Index(vectors, similarity=self.similarity).rerank(Q, lists)
        return replace(found, items=items[found.items], n_items=len(self))

    def _vectors(self, items: np.ndarray) -> np.ndarray:
        if isinstance(self.documents, SampledCorpus):
            return self.documents.vectors[items]
        return self.documents[items]

    def names(self) -> np.ndarray:
        """Ids of all documents with a number, as text."""
        return as_ids(self.documents.ids)


def searched(
    index: LiveIndex, Q: np.ndarray, k: int, similarity: str, lock: Any = None
) -> Lists:
    """Ids and scores of the nearest documents of each query, nearest first."""
    lists: Lists = []
    if similarity == "cosine" and len(Q):
        Q = unit_rows(Q, "queries")
    for start in range(0, len(Q), QUERY_BLOCK):
        check_interruption()
        block = np.ascontiguousarray(Q[start : start + QUERY_BLOCK])
        # Clients of stores need not be safe to use from several threads at a time.
        with lock or RLock():
            answer = index.search(block, k)
        pairs = _checked_answer(answer, len(block))
        lists += [_checked_list(*pair, k) for pair in pairs]
    return lists


def _checked_answer(answer: Any, n: int) -> Iterator[tuple[Any, Any]]:
    """The ids and scores of each of ``n`` queries."""
    is_pair = isinstance(answer, Sequence) and len(answer) == 2
    if not is_pair or not all(hasattr(part, "__len__") for part in answer):
        raise ValueError(
            "search must give two sequences, lists of ids and lists of scores: got "
            f"{type(answer).__name__}."
        )
    ids, scores = answer
    if len(ids) != n or len(scores) != n:
        raise ValueError(
            f"search must answer each of {n} queries: got {len(ids)} lists of ids and "
            f"{len(scores)} of scores."
        )
    return zip(ids, scores, strict=True)


def _checked_list(ids: Any, scores: Any, k: int) -> tuple[list[Any], np.ndarray]:
    """Ids as Python objects, and scores that do not rise."""
    ids = list(map(_checked_id, [] if ids is None else ids))
    values = _float_array(scores, "scores of search")
    if values.shape != (len(ids),) or not np.isfinite(values).all():
        raise ValueError(
            f"search must give each of {len(ids)} ids of a list a score that is a number: got "
            f"{np.ravel(values).tolist()[:3]}."
        )
    if (values[1:] > values[:-1]).any():
        raise ValueError(
            "scores of search must fall, as larger is nearer: got "
            f"{values.tolist()[:3]}. Pass minus the distances."
        )
    return ids[:k], values[:k]


def _checked_id(id: Any) -> int | str:
    """An id as a Python object."""
    if isinstance(id, np.generic):
        id = id.item()
    if not isinstance(id, int | str):
        raise ValueError(f"search must give ids that are int or str: got {id!r}.")
    return id


def _float_array(values: Any, name: str) -> np.ndarray:
    """Real numbers, in single precision if they are so."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array
        return array.astype(object).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers, as many in each row: got {type(values).__name__} of others."
        ) from error


def fetched(index: LiveIndex, ids: Sequence[Any]) -> np.ndarray:
    """Vectors of documents; a document that the index does not have is an error."""
    blocks = []
    for start in range(0, len(ids), FETCHED):
        check_interruption()
        block = list(ids[start : start + FETCHED])
        vectors = _float_array(index.fetch(block), "vectors of fetch")
        if vectors.ndim != 2 or len(vectors) != len(block):
            raise ValueError(
                f"fetch must give a vector for each of {len(block)} ids: got an array of shape "
                f"{vectors.shape}."
            )
        blocks.append(vectors)
    found = np.concatenate(blocks)
    missing = np.flatnonzero(np.isnan(found).any(axis=1))
    if missing.size:
        raise ValueError(
            f"judged documents must be in the index: {missing.size} of {len(ids)} are not, such "
            f"as {ids[missing[0]]!r}. Leave out their judgments."
        )
    return as_vectors(found, "vectors of the index")
