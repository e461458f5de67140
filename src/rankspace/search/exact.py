"""Exact nearest-neighbour search: matrix products, a bound on their rounding, exact re-scoring."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.optional import require
from .._engine.parallel import Step
from .._engine.parallel.transport import mapped_file
from .._engine.rows import float_rows
from .._engine.vectors import as_rows, check_squares, map_rows, power_of_two
from ..relevance.rows import indptr_of
from .blocks import QueryBlock
from .candidates import ITEM_BLOCK, over_fetched, propose
from .ranking import Ranking


def as_vectors(X: Any, name: str) -> np.ndarray:
    """A finite matrix of float32 (also for float16) or float64."""
    X = as_rows(X, name)
    if getattr(X, "dtype", None) == np.float16:
        X = map_rows(np.asanyarray(X), lambda rows: rows.astype(np.float32))
    return np.asarray(float_rows(X, name), order="C")


class ExactSearch(Step):
    """Exact nearest-neighbour search, by Euclidean distance or by minus the inner product.

    The name of a similarity goes into rankings.

    Squared distances are ``|q|^2 + (|x|^2 - 2 q'x)``; the bracket orders the items, and only it is
    computed for all of them. Vectors far from the origin lose its digits, so it is computed from
    the centre of the items. Vectors so short or so long that their squares leave the range of their
    precision are divided by a power of two, which rounds nothing, and queries with them: see
    `in_unit`.
    """

    def __init__(
        self,
        vectors: np.ndarray,
        *,
        ids: np.ndarray | None = None,
        inner_product: bool = False,
        similarity: str | None = None,
        backend: str = "exact",
    ) -> None:
        self.similarity = similarity
        self.ids = ids
        self.inner_product = inner_product
        self.unit = 1.0
        self._measure(vectors)
        if not inner_product and not has_safe_squares(self.longest, vectors.dtype):
            self.unit = power_of_two(vectors)
            self._measure(vectors / self.unit)
        if inner_product:
            check_squares(vectors, "items ranked by inner products")
        self._faiss: Any = self._build_faiss() if backend == "faiss" else None

    def _measure(self, vectors: np.ndarray) -> None:
        """Keep the vectors, their centre, and their squared distances from it."""
        self.vectors = vectors
        if self.inner_product:
            self.centre = np.zeros(vectors.shape[1])
        else:
            self.centre = centre_of(vectors)
        self.centred_items: Any = vectors
        if self.centre.any():
            self.centred_items = CentredRows(vectors, self.centre)
            # Vectors in a file stay there and are centred block by block.
            if mapped_file(vectors) is None:
                self.centred_items = self.centred_items[:]
        squares = np.empty(len(vectors), dtype=vectors.dtype)
        for rows in _slices(len(vectors)):
            block = self.centred_items[rows]
            with np.errstate(over="ignore"):
                squares[rows] = np.einsum("ij,ij->i", block, block)
        self.norms = np.zeros_like(squares) if self.inner_product else squares
        self.longest = float(np.sqrt(squares.max(initial=0)))

    def in_unit(self, queries: np.ndarray) -> np.ndarray:
        """Queries in the unit of the vectors."""
        if self.inner_product:
            check_squares(queries, "queries ranked by inner products")
            return queries
        if self.unit != 1:
            queries = queries / self.unit
        with np.errstate(over="ignore"):
            longest = np.sqrt(_squared_norms(queries).max(initial=0.0))
        if not longest < np.sqrt(np.finfo(self.vectors.dtype).max) / 4:
            raise ValueError(
                f"queries must be of about the size of the items, {self.unit:.3g}: their distances "
                f"overflow in {self.vectors.dtype}. Check that both are scaled alike."
            )
        return queries

    @property
    def n_items(self) -> int:
        return len(self.vectors)

    def __getstate__(self) -> dict[str, Any]:
        # A FAISS index is not sent to a worker but built there.
        return {**vars(self), "_faiss": self._faiss is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._faiss = self._build_faiss() if state["_faiss"] else None

    # ------------------------------------------------------------------ rankings

    def map_block(self, block: QueryBlock, state: tuple[int | None, bool]) -> Ranking:
        """Rank items for a block of queries; ``state`` is k and whether that is a short list."""
        k, short = state
        rank = self._rank_nearest if short else self._rank_all
        items, keys = rank(block.queries, block.query_items, k)
        return self.ranking(items, keys, block.query_ids)

    def ranking(
        self,
        items: list[np.ndarray],
        keys: list[np.ndarray],
        query_ids: np.ndarray | None,
    ) -> Ranking:
        """A `Ranking` of sorted lists; squared distances become distances."""
        distances = np.concatenate(keys)
        if not self.inner_product:
            distances = np.sqrt(distances) * self.unit
        indptr = indptr_of([row.size for row in items])
        return Ranking(
            indptr,
            np.concatenate(items),
            distances,
            self.n_items,
            query_ids,
            self.ids,
            self.similarity,
        )

    def _rank_nearest(
        self, queries: np.ndarray, query_items: np.ndarray, k: int | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lists of the k nearest items; queries that rounding leaves uncertain sort all items."""
        nearest, distances, certain = self.nearest(
            queries, query_items, k or self.n_items
        )
        items = list(nearest)
        keys = list(distances)
        for q in np.flatnonzero(~certain):
            one = slice(q, q + 1)
            (items[q],), (keys[q],) = self._rank_all(queries[one], query_items[one], k)
        return items, keys

    def _rank_all(
        self, queries: np.ndarray, query_items: np.ndarray, k: int | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lists of all items, or of the first k."""
        items = []
        keys = []
        for order, key, own in zip(*self.sort_all(queries), query_items, strict=True):
            if own >= 0:
                others = order != own
                order, key = order[others], key[others]
            items.append(order[:k])
            keys.append(key[:k])
        return items, keys

    # ------------------------------------------------------------------ nearest items

    def _centre_queries(self, queries: np.ndarray) -> np.ndarray:
        return CentredRows(queries, self.centre)[:].astype(
            self.vectors.dtype, copy=False
        )

    def _rounding(self, queries: np.ndarray, dtype: Any) -> np.ndarray:
        """Bound on the error of a computed ``|x|^2 - 2 q'x`` for each query.

        A sum of n terms is off by at most n u times the sum of their sizes; one more u stands for
        each rounding of the centred vectors, and the factor 2 for what the first order leaves out.
        """
        unit = np.finfo(dtype).eps / 2
        lengths = np.sqrt(_squared_norms(queries))
        size = 2 * lengths * self.longest
        if not self.inner_product:
            size += self.longest**2
        return 2 * (queries.shape[1] + 4) * unit * size

    def nearest(
        self, queries: np.ndarray, query_items: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The k nearest items of each query, their keys, and a certificate that none is missing."""
        from .._engine.kernels.sorting import sort_rows
        from .._engine.kernels.topk import exact_distances

        centred = self._centre_queries(queries)
        find = self._propose if self._faiss is None else self._propose_faiss
        n_candidates = min(over_fetched(k), self.n_items)
        items, bound = find(centred, query_items, n_candidates)
        distances = np.empty(items.shape)
        exact_distances(queries, self.vectors, items, self.inner_product, distances)
        # Candidates are in order of their numbers, and so are those at equal distance.
        order, mask = sort_rows(distances)
        order = order[:, :k] & mask
        items = np.take_along_axis(items, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        error = self._rounding(centred, self.centred_items.dtype)
        if not self.inner_product:
            bound = bound + _squared_norms(centred)
        certain = distances[:, k - 1] < bound - error
        return items, distances, certain

    def _propose(
        self, centred: np.ndarray, query_items: np.ndarray, n_candidates: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates by number, and the largest of their approximate keys."""
        factors = centred * self.centred_items.dtype.type(
            -1 if self.inner_product else -2
        )
        return propose(
            factors, self.centred_items, self.norms, query_items, n_candidates
        )

    def _build_faiss(self) -> Any:
        faiss = require("faiss", extra="index")
        kind = faiss.IndexFlatIP if self.inner_product else faiss.IndexFlatL2
        index = kind(self.vectors.shape[1])
        for rows in _slices(self.n_items):
            index.add(np.ascontiguousarray(self.centred_items[rows], dtype=np.float32))
        return index

    def _propose_faiss(
        self, centred: np.ndarray, query_items: np.ndarray, n_candidates: int
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, items = self._faiss.search(
            np.ascontiguousarray(centred, dtype=np.float32), n_candidates
        )
        items[items == query_items[:, None]] = -1
        items.sort(axis=1)
        bound = keys[:, -1].astype(np.float64)
        if self.inner_product:
            bound = -bound
        else:
            bound -= _squared_norms(centred)
        # FAISS computes in single precision whatever the vectors have.
        return items, bound - self._rounding(centred, np.float32)

    def sort_all(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All items of each query by distance and index, with exact keys for near ties."""
        from .._engine.kernels.topk import settle_ties

        centred = np.subtract(queries, self.centre, dtype=np.float64)
        keys = np.empty((len(queries), self.n_items))
        for start in range(0, self.n_items, ITEM_BLOCK):
            rows = slice(start, start + ITEM_BLOCK)
            block = np.subtract(self.vectors[rows], self.centre, dtype=np.float64)
            keys[:, rows] = centred @ block.T
            if self.inner_product:
                keys[:, rows] *= -1
            else:
                keys[:, rows] *= -2
                keys[:, rows] += _squared_norms(block)
        if not self.inner_product:
            keys += _squared_norms(centred)[:, None]
            np.maximum(keys, 0, out=keys)
        order = np.argsort(keys, axis=1)
        keys = np.take_along_axis(keys, order, axis=1)
        tolerance = 2 * self._rounding(centred, np.float64)
        touched = np.zeros(len(queries), dtype=bool)
        settle_ties(
            queries, self.vectors, order, keys, tolerance, self.inner_product, touched
        )
        for q in np.flatnonzero(touched):
            again = np.lexsort((order[q], keys[q]))
            order[q], keys[q] = order[q][again], keys[q][again]
        return order, keys


class CentredRows:
    """Vectors minus a centre, rounded once; computed when they are sliced."""

    def __init__(self, vectors: np.ndarray, centre: np.ndarray) -> None:
        self.vectors = vectors
        self.centre = centre
        self.dtype = vectors.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        block = self.vectors[rows]
        if not self.centre.any():
            return block
        centred = np.empty_like(block)
        # In small blocks: the differences in double precision would take twice the memory.
        for part in _slices(len(block)):
            centred[part] = np.subtract(block[part], self.centre, dtype=np.float64)
        return centred


def centre_of(vectors: np.ndarray) -> np.ndarray:
    """The mean of the vectors, or the origin if that is not far outside their spread.

    The mean is rounded to a power of two of about the spread, so that integers stay integers and
    their ties stay ties.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = _mean_and_spread(vectors, 1.0)
    unit = 1.0
    if not has_safe_squares(spread, np.float64):
        unit = power_of_two(vectors)
        mean, spread = _mean_and_spread(vectors, unit)
    if np.linalg.norm(mean) <= 2 * spread:
        return np.zeros(vectors.shape[1])
    if spread == 0:
        return mean * unit
    grid = 2.0 ** np.floor(np.log2(spread / np.sqrt(vectors.shape[1])))
    return np.round(mean / grid) * grid * unit


def _mean_and_spread(vectors: np.ndarray, unit: float) -> tuple[np.ndarray, float]:
    """The mean of vectors, and their root mean squared distance from it, in a unit."""
    total = np.zeros(vectors.shape[1])
    squares = 0.0
    for rows in _slices(len(vectors)):
        block = np.subtract(vectors[rows], vectors[0], dtype=np.float64)
        if unit != 1:
            block /= unit
        total += block.sum(axis=0)
        squares += np.einsum("ij,ij->", block, block)
    shift = total / len(vectors)
    square = squares / len(vectors) - shift @ shift
    return vectors[0].astype(np.float64) / unit + shift, float(
        np.sqrt(np.maximum(square, 0.0))
    )


def has_safe_squares(length: float, dtype: Any) -> bool:
    """Whether vectors of a length have squares that neither overflow nor lose digits."""
    limit = 2.0 ** (np.finfo(dtype).maxexp // 3)
    return bool(1 / limit < length < limit)


def _squared_norms(vectors: np.ndarray) -> np.ndarray:
    """Squared lengths, summed in double precision."""
    return np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)


def _slices(n: int) -> list[slice]:
    return [slice(start, start + 8192) for start in range(0, n, 8192)]
