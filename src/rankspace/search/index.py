"""Exact nearest items under a metric."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np

from .._engine.parallel import Step
from .._engine.parallel.threads import n_threads
from ..relevance.rows import check_ids
from .blocks import RankedBlocks
from .exact import Space, as_vectors, centre_of, shifted
from .ranking import Ranking

QUERY_BLOCK = 256


class Embedding(Protocol):
    """What a metric offers for search: maps under which it is a plain distance or inner product."""

    inner_product: bool
    symmetric: bool  # whether queries are mapped as items are

    def embed_items(self, X: Any) -> np.ndarray:
        """Vectors of items."""

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Vectors of queries."""


class Index:
    """Items ready to be searched.

    The order is exact: items are found by matrix products, over-fetched, and their distances
    computed anew in double precision; a bound on the rounding of the products shows for each query
    that nothing nearer was missed, and the query is searched in double precision if it does not.
    Items at equal distance come in the order of their index.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        Items. Floats keep their precision, float16 is read as float32. Not copied if no metric
        is given: do not change it afterwards.
    metric : LinearMetric, BilinearMetric or AsymmetricMetric, optional
        What to measure by; plain Euclidean distance by default.
    ids : array-like of str, optional
        Names of the items, which come back in every `Ranking`.
    backend : {"exact", "faiss"}, default="exact"
        Who proposes candidates: our own blocks, or FAISS (extra ``index``).
    max_memory : int, default=256
        Working memory of one search in MiB, beside the vectors and the lists returned.

    Notes
    -----
    Top-k of m queries takes O(m n d) time in matrix products. Lists of all items are products in
    double precision and a sort for each query.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Index
    >>> index = Index(np.array([[0.0], [1.0], [3.0]]), ids=["a", "b", "c"])
    >>> ranking = index.rank([[2.9]], k=2)
    >>> ranking.ids(0)
    ['c', 'b']
    """

    def __init__(
        self,
        X: Any,
        metric: Embedding | None = None,
        *,
        ids: Any = None,
        backend: Literal["exact", "faiss"] = "exact",
        max_memory: int = 256,
    ) -> None:
        if backend not in ("exact", "faiss"):
            raise ValueError(f"backend must be 'exact' or 'faiss': got {backend!r}.")
        if max_memory < 1:
            raise ValueError(f"max_memory must be at least 1 MiB: got {max_memory}.")
        if metric is not None and not hasattr(metric, "embed_items"):
            raise ValueError(
                f"metric must map items to vectors, and {type(metric).__name__} does not: use its "
                "own rank, or rerank for a shortlist of another index."
            )
        self.metric = metric
        self.backend = backend
        self.max_memory = max_memory
        X = as_vectors(X, "X")
        # A linear metric does not see a common shift, but its products lose digits to one.
        linear = metric is not None and metric.symmetric
        self._origin = centre_of(X) if linear else np.zeros(X.shape[1])
        self._parts = [self._embed_items(X)]
        self.ids = check_ids(ids, self.n_items, "ids")
        self._space: Space | None = None
        self._searching: _Search | None = None

    def _embed_items(self, X: np.ndarray) -> np.ndarray:
        if X.shape[1] != self._origin.size:
            raise ValueError(
                f"X must have {self._origin.size} features as the index has: got {X.shape[1]}."
            )
        return (
            X
            if self.metric is None
            else self.metric.embed_items(shifted(X, self._origin))
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(len(part) for part in self._parts)

    def __len__(self) -> int:
        return self.n_items

    def add(self, X: Any, ids: Any = None) -> Index:
        """Append items.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            More items.
        ids : array-like of str, optional
            Their names; needed if the index has names.

        Returns
        -------
        Index
            This index.
        """
        part = self._embed_items(as_vectors(X, "X"))
        if (ids is None) != (self.ids is None):
            raise ValueError("ids must be given for all items or for none.")
        if self.ids is not None:
            added = np.asarray(ids).astype(str)
            joined = np.concatenate((self.ids, added))
            self.ids = check_ids(joined, self.n_items + len(part), "ids")
        self._parts.append(part)
        self._space = None
        return self

    def rank(
        self,
        Q: Any = None,
        k: int | None = None,
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> Ranking:
        """List the nearest items of each query.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features), optional
            Queries. By default the items themselves, each left out of its own list.
        k : int, optional
            Length of the lists; by default all items.
        query_items : array-like of shape (n_queries,), optional
            The item that each query is, or -1; it is left out of the list. With ``Q`` left out it
            says which items are the queries.
        query_ids : array-like of str, optional
            Names of the queries. If queries are items, they have the names of these.

        Returns
        -------
        Ranking
        """
        blocks = list(self.blocks(Q, k, query_items=query_items, query_ids=query_ids))
        return Ranking.join(blocks)

    def blocks(
        self,
        Q: Any = None,
        k: int | None = None,
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> RankedBlocks:
        """Rank in blocks of queries, for lists too many to hold; see `rank`.

        Returns
        -------
        iterator of Ranking
            The lists of the next queries. `evaluate` takes it as it is, and on a cluster judges
            lists where they are made.
        """
        space = self._ready()
        queries, own = self._queries(Q, query_items)
        names = self._query_names(query_ids, Q, own, len(queries))
        if k is not None and not (isinstance(k, Integral) and k >= 1):
            raise ValueError(f"k must be a whole number of at least 1: got {k}.")
        short = k is not None and 8 * k < space.n_items
        width = (k + 10 + k // 8) if short and k is not None else 2 * space.n_items
        block = max(
            1, min(QUERY_BLOCK, self.max_memory * 2**20 // (16 * width * n_threads()))
        )
        slices = [
            slice(start, start + block) for start in range(0, len(queries), block)
        ]
        parts = [
            (queries[s], own[s], None if names is None else names[s]) for s in slices
        ]
        return RankedBlocks(self._search(), parts, (k, short))

    def _search(self) -> _Search:
        space = self._ready()
        if self._searching is None or self._searching.space is not space:
            self._searching = _Search(space, self.ids)
        return self._searching

    def rerank(
        self,
        Q: Any,
        candidates: Ranking | Sequence[Any],
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> Ranking:
        """Sort given items for each query; the cost depends on their number alone.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
            Queries.
        candidates : Ranking or sequence of array-like of int
            The items to sort for each query, such as a shortlist or all that were judged.
        query_items : array-like of shape (n_queries,), optional
            The item that each query is, or -1; it is left out of the list.
        query_ids : array-like of str, optional
            Names of the queries; those of a Ranking by default.

        Returns
        -------
        Ranking

        Examples
        --------
        >>> import numpy as np
        >>> from rankspace import Index
        >>> Index(np.array([[0.0], [1.0], [3.0]])).rerank([[2.9]], [[0, 2]]).items
        array([2, 0])
        """
        from .._engine.kernels.topk import exact_pairs

        queries, own = self._queries(Q, query_items)
        owner, items = self._candidates(candidates, len(queries))
        if query_ids is None and isinstance(candidates, Ranking):
            query_ids = candidates.query_ids
        names = check_ids(query_ids, len(queries), "query_ids")
        others = items != own[owner]
        owner, items = owner[others], items[others]
        space, keys = self._ready(), np.empty(items.size)
        exact_pairs(queries, space.vectors, owner, items, space.inner_product, keys)
        order = np.lexsort((items, keys, owner))
        ends = np.cumsum(np.bincount(owner, minlength=len(queries)))[:-1]
        return self._ranking(
            np.split(items[order], ends), np.split(keys[order], ends), names
        )

    def _candidates(
        self, candidates: Any, n_queries: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of query and item, or the error that says what is wrong with them."""
        if isinstance(candidates, Ranking):
            lists = np.split(candidates.items, candidates.indptr[1:-1])
        else:
            lists = [
                np.asarray(row, dtype=None if len(row) else np.int64)
                for row in candidates
            ]
        if len(lists) != n_queries:
            raise ValueError(
                f"candidates must have a list for each of {n_queries} queries: got {len(lists)}."
            )
        if any(row.ndim != 1 or row.dtype.kind not in "iu" for row in lists):
            bad = next(
                row for row in lists if row.ndim != 1 or row.dtype.kind not in "iu"
            )
            raise ValueError(
                "candidates must be a list of item numbers for each query: got an array of "
                f"{bad.dtype} of shape {bad.shape}."
            )
        items = np.concatenate(lists)
        if items.size and not 0 <= items.min() <= items.max() < self.n_items:
            raise ValueError(
                f"candidates must be item numbers from 0 to {self.n_items - 1}: got "
                f"{items.min()} to {items.max()}."
            )
        return np.repeat(np.arange(n_queries), [row.size for row in lists]), items

    def _ready(self) -> Space:
        if self._space is None:
            if len(self._parts) > 1:
                self._parts = [np.concatenate(self._parts)]
            inner_product = self.metric is not None and self.metric.inner_product
            self._space = Space(
                self._parts[0], inner_product=inner_product, backend=self.backend
            )
        return self._space

    def _queries(self, Q: Any, query_items: Any) -> tuple[np.ndarray, np.ndarray]:
        own = None if query_items is None else np.asarray(query_items)
        if own is not None and own.size:
            lowest = 0 if Q is None else -1
            if (
                own.dtype.kind not in "iu"
                or not lowest <= own.min() <= own.max() < self.n_items
            ):
                raise ValueError(
                    f"query_items must be whole numbers from {lowest} to {self.n_items - 1}: got "
                    f"{own.min()} to {own.max()}."
                )
        if Q is None:
            if self.metric is not None and not self.metric.symmetric:
                raise ValueError(
                    "the metric maps queries in another way: pass them as Q."
                )
            own = np.arange(self.n_items) if own is None else own
            return self._parts[0][own], own
        Q = as_vectors(Q, "Q")
        if self.metric is None and Q.shape[1] != self._origin.size:
            raise ValueError(
                f"Q must have {self._origin.size} features as the index has: got {Q.shape[1]}."
            )
        linear = self.metric is not None and self.metric.symmetric
        queries = shifted(Q, self._origin) if linear else Q
        queries = queries if self.metric is None else self.metric.embed_queries(queries)
        own = np.full(len(queries), -1) if own is None else own
        if own.shape != (len(queries),):
            raise ValueError(
                f"query_items must have one entry for each of {len(queries)} queries: got shape "
                f"{own.shape}."
            )
        return queries, own

    def _query_names(
        self, query_ids: Any, Q: Any, own: np.ndarray, n_queries: int
    ) -> np.ndarray | None:
        if query_ids is None and Q is None and self.ids is not None:
            return self.ids[own]
        return check_ids(query_ids, n_queries, "query_ids")

    def _ranking(
        self, items: list[np.ndarray], keys: list[np.ndarray], names: np.ndarray | None
    ) -> Ranking:
        return self._search().ranking(items, keys, names)


class _Search(Step):
    """Lists of nearest items in a space; all that a search of some queries needs."""

    def __init__(self, space: Space, ids: np.ndarray | None) -> None:
        self.space, self.ids = space, ids

    def map_block(
        self, block: tuple[Any, ...], state: tuple[int | None, bool]
    ) -> Ranking:
        """Rank for a block of queries, of which some may be items."""
        (queries, own, names), (k, short) = block, state
        items, distances = (self._nearest if short else self._all)(queries, own, k)
        return self.ranking(items, distances, names)

    def _nearest(
        self, queries: np.ndarray, own: np.ndarray, k: int | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lists of the k nearest items, from candidates whose distances are computed anew."""
        found, distances, certain = self.space.nearest(
            queries, own, k or self.space.n_items
        )
        items, values = list(found), list(distances)
        for q in np.flatnonzero(~certain):
            (items[q],), (values[q],) = self._all(queries[q : q + 1], own[q : q + 1], k)
        return items, values

    def _all(
        self, queries: np.ndarray, own: np.ndarray, k: int | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lists of all items, or of the first k."""
        order, keys = self.space.sort_all(queries)
        items, values = [], []
        for row, key, mine in zip(order, keys, own, strict=True):
            others = slice(None) if mine < 0 else row != mine
            items.append(row[others][:k])
            values.append(key[others][:k])
        return items, values

    def ranking(
        self, items: list[np.ndarray], keys: list[np.ndarray], names: np.ndarray | None
    ) -> Ranking:
        """Ready lists; squared distances become distances."""
        distances = np.concatenate(keys)
        if not self.space.inner_product:
            distances = np.sqrt(distances)
        indptr = np.concatenate(([0], np.cumsum([row.size for row in items])))
        n = self.space.n_items
        return Ranking(indptr, np.concatenate(items), distances, n, names, self.ids)
