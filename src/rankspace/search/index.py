"""Search index: exact nearest neighbours under a metric."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice
from .._engine.fields import check_same_columns, column_names
from .._engine.parallel.threads import n_threads
from .._engine.similarity import by_inner_product, check_no_zeros, unit_rows
from .._engine.vectors import map_rows, stored_names
from ..relevance.rows import as_ids, check_ids, take_or_none
from .blocks import QueryBlock, RankingBlocks
from .candidates import n_collected
from .exact import CentredRows, ExactSearch, as_vectors, centre_of
from .ranking import Ranking, shortlist

QUERY_BLOCK = 256


class Embedding(Protocol):
    """A metric that search can use: maps after which it is a plain distance or inner product."""

    similarity: str  # what unmapped vectors are compared by
    inner_product: bool  # how mapped vectors are compared; else by Euclidean distance
    symmetric: bool  # whether queries are mapped as items are

    def embed_items(self, X: Any) -> np.ndarray:
        """Vectors of items."""

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Vectors of queries."""


class Index:
    """Index for exact nearest-neighbour search.

    Matrix products find more than k candidates, whose distances are then computed in double
    precision. A bound on the rounding of the products certifies for each query that no nearer item
    was missed; queries without that certificate are searched in double precision. Items at equal
    distance come in the order of their index.

    Parameters
    ----------
    X : path or array-like of shape (n_items, n_features)
        Items, or a file of vectors. Floats keep their precision, float16 is converted to float32.
        Without a metric and the cosine the array is not copied: do not change it afterwards.
    metric : LinearMetric, BilinearMetric or AsymmetricMetric, optional
        The metric; by default the similarity of unmapped vectors.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What vectors are compared by; by default that of the metric, or "euclidean" without one.
        The cosine brings items and queries to unit length; a zero vector is an error.
    ids : array-like of str, optional
        Names of the items, which come back in every `Ranking`; by default those in the file.
    backend : {"exact", "faiss"}, default="exact"
        What finds the candidates: matrix products in blocks, or FAISS (extra ``index``).
    max_memory : int, default=256
        Working memory of one search in MiB, not counting the vectors and the lists returned.

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
        similarity: str | None = None,
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
        self.similarity = _similarity_of(metric, similarity)
        self.backend = backend
        self.max_memory = max_memory
        ids = stored_names(X) if ids is None else ids
        self._columns = column_names(X)
        X = as_vectors(X, "X")
        self._centre = np.zeros(X.shape[1])
        if self._ignores_shift:
            # A linear metric ignores a common shift, but its products lose digits to one.
            self._centre = centre_of(X)
        self._blocks = [self._embed_items(X)]
        self.ids = check_ids(ids, self.n_items, "ids")
        self._search: ExactSearch | None = None

    @property
    def _ignores_shift(self) -> bool:
        """Whether the metric is the same after a common shift, which changes lengths."""
        if self.metric is None or getattr(self.metric, "nonlinear", False):
            return False
        return self.metric.symmetric and self.similarity != "cosine"

    def _embed_items(self, X: np.ndarray) -> np.ndarray:
        self._check_features(X, "X")
        if self.similarity == "cosine":
            check_no_zeros(X, "X")
        if self.metric is None and self.similarity != "cosine":
            return X
        return map_rows(X, self._embed_block)

    def _embed_block(self, X: np.ndarray) -> np.ndarray:
        """Vectors to compare for some items."""
        if self.metric is None:
            return unit_rows(X, "X")
        return self.metric.embed_items(CentredRows(X, self._centre)[:])

    def _unmapped(self, X: np.ndarray, name: str) -> np.ndarray:
        """Query vectors to compare without a metric."""
        return unit_rows(X, name) if self.similarity == "cosine" else X

    def _check_features(self, X: np.ndarray, name: str) -> None:
        if X.shape[1] != self._centre.size:
            raise ValueError(
                f"{name} must have {self._centre.size} features as the index has: got {X.shape[1]}."
            )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(len(block) for block in self._blocks)

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
        ids = stored_names(X) if ids is None else ids
        check_same_columns(self._columns, column_names(X), "X")
        block = self._embed_items(as_vectors(X, "X"))
        if (ids is None) != (self.ids is None):
            raise ValueError("ids must be given for all items or for none.")
        if self.ids is not None:
            joined = np.concatenate((self.ids, as_ids(ids)))
            self.ids = check_ids(joined, self.n_items + len(block), "ids")
        self._blocks.append(block)
        self._search = None
        return self

    def rank(
        self,
        Q: Any = None,
        k: int | None = None,
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> Ranking:
        """Rank the nearest items of each query.

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
    ) -> RankingBlocks:
        """Rank in blocks of queries, for lists that do not fit in memory; see `rank`.

        Returns
        -------
        iterator of Ranking
            The lists of the next queries. `evaluate` accepts it, and on a cluster scores lists on
            the workers that make them.
        """
        search = self._built()
        queries, query_items = self._queries(Q, query_items)
        if query_ids is None and Q is None and self.ids is not None:
            query_ids = self.ids[query_items]
        query_ids = check_ids(query_ids, len(queries), "query_ids")
        if k is not None and not (isinstance(k, Integral) and k >= 1):
            raise ValueError(f"k must be a whole number of at least 1: got {k}.")
        short = False
        n_entries = 2 * search.n_items
        if k is not None and 8 * k < search.n_items:
            short = True
            n_entries = n_collected(k)
        size = self._block_size(n_entries)
        blocks = []
        for start in range(0, len(queries), size):
            rows = slice(start, start + size)
            ids = take_or_none(query_ids, rows)
            blocks.append(QueryBlock(queries[rows], query_items[rows], ids))
        return RankingBlocks(search, blocks, (k, short))

    def _block_size(self, n_entries: int) -> int:
        """Queries per block, so that their list entries fit the memory of all threads."""
        n_fitting = self.max_memory * 2**20 // (16 * n_entries * n_threads())
        return max(1, min(QUERY_BLOCK, n_fitting))

    def rerank(
        self,
        Q: Any,
        candidates: Ranking | Sequence[Any],
        *,
        query_items: Any = None,
        query_ids: Any = None,
    ) -> Ranking:
        """Rerank given candidates for each query, at a cost that depends on their number alone.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
            Queries.
        candidates : Ranking or sequence of array-like of int
            The items to sort for each query, such as a shortlist or all that were judged. Items and
            lists of a Ranking are matched by id if both sides have ids, otherwise by number.
        query_items : array-like of shape (n_queries,), optional
            The item that each query is, or -1; it is left out of the list.
        query_ids : array-like of str, optional
            Names of the queries; those of a Ranking by default, whose lists are then those of the
            queries in order. Needed for a Ranking from a run file.

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

        search = self._built()
        queries, query_items = self._queries(Q, query_items)
        lists = candidate_lists(
            candidates, len(queries), self.n_items, self.ids, query_ids
        )
        owner = np.repeat(np.arange(len(queries)), [row.size for row in lists])
        items = np.concatenate(lists)
        if query_ids is None and isinstance(candidates, Ranking):
            query_ids = candidates.query_ids
        query_ids = check_ids(query_ids, len(queries), "query_ids")
        others = items != query_items[owner]
        owner, items = owner[others], items[others]
        keys = np.empty(items.size)
        exact_pairs(queries, search.vectors, owner, items, search.inner_product, keys)
        order = np.lexsort((items, keys, owner))
        ends = np.cumsum(np.bincount(owner, minlength=len(queries)))[:-1]
        return search.ranking(
            np.split(items[order], ends), np.split(keys[order], ends), query_ids
        )

    def _built(self) -> ExactSearch:
        """The search over all items, built when it is first needed."""
        if self._search is None:
            if len(self._blocks) > 1:
                self._blocks = [np.concatenate(self._blocks)]
            inner_product = by_inner_product(self.similarity)
            if self.metric is not None:
                inner_product = self.metric.inner_product
            self._search = ExactSearch(
                self._blocks[0],
                ids=self.ids,
                inner_product=inner_product,
                similarity=self.similarity,
                backend=self.backend,
            )
        return self._search

    def _queries(self, Q: Any, query_items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Embedded queries, and the item that each is; -1 for none."""
        if query_items is not None:
            query_items = self._check_query_items(query_items, 0 if Q is None else -1)
        if Q is None:
            if self.metric is not None and not self.metric.symmetric:
                raise ValueError(
                    "the metric maps queries and items differently: pass the queries as Q "
                    "(--queries on the command line)."
                )
            if query_items is None:
                query_items = np.arange(self.n_items)
            return self._built().vectors[query_items], query_items
        check_same_columns(self._columns, column_names(Q), "Q")
        queries = self._built().in_unit(self._embed_queries(as_vectors(Q, "Q")))
        if query_items is None:
            query_items = np.full(len(queries), -1)
        if query_items.shape != (len(queries),):
            raise ValueError(
                f"query_items must have one entry for each of {len(queries)} queries: got shape "
                f"{query_items.shape}."
            )
        return queries, query_items

    def _check_query_items(self, query_items: Any, lowest: int) -> np.ndarray:
        numbers = np.asarray(query_items)
        if numbers.size and (
            numbers.dtype.kind not in "iu"
            or not lowest <= numbers.min() <= numbers.max() < self.n_items
        ):
            raise ValueError(
                f"query_items must be whole numbers from {lowest} to {self.n_items - 1}: got "
                f"{numbers.min()} to {numbers.max()}."
            )
        return numbers

    def _embed_queries(self, Q: np.ndarray) -> np.ndarray:
        if self.metric is None:
            self._check_features(Q, "Q")
            return self._unmapped(Q, "Q")
        if self._ignores_shift:
            Q = CentredRows(Q, self._centre)[:]
        return self.metric.embed_queries(Q)


def candidate_lists(
    candidates: Ranking | Sequence[Any],
    n_queries: int,
    n_items: int,
    ids: Any = None,
    query_ids: Any = None,
) -> list[np.ndarray]:
    """The candidates of each query as arrays of item numbers, checked."""
    if isinstance(candidates, Ranking):
        candidates = shortlist(candidates, n_items, ids, query_ids)
        lists = np.split(candidates.items, candidates.indptr[1:-1])
    else:
        # An empty list would become an array of floats.
        lists = [
            np.asarray(row) if len(row) else np.zeros(0, np.int64) for row in candidates
        ]
    if len(lists) != n_queries:
        raise ValueError(
            f"candidates must have a list for each of {n_queries} queries: got {len(lists)}."
        )
    for row in lists:
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise ValueError(
                "candidates must be a list of item numbers for each query: got an array of "
                f"{row.dtype} of shape {row.shape}."
            )
    items = np.concatenate(lists)
    if items.size and not 0 <= items.min() <= items.max() < n_items:
        raise ValueError(
            f"candidates must be item numbers from 0 to {n_items - 1}: got {items.min()} to "
            f"{items.max()}."
        )
    return lists


def _similarity_of(metric: Embedding | None, similarity: str | None) -> str:
    """The similarity of a metric, or the one asked for without a metric."""
    if similarity is not None:
        check_choice(similarity, "similarity", SIMILARITIES)
    if metric is None:
        return similarity or "euclidean"
    if similarity not in (None, metric.similarity):
        raise ValueError(
            f"similarity must be that of the metric, {metric.similarity!r}: got {similarity!r}. "
            "Leave it out."
        )
    return metric.similarity
