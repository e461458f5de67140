"""Search index for local metrics, which are not distances of two mapped vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._engine.parallel.threads import thread_map
from .._engine.vectors import check_no_overflow

if TYPE_CHECKING:
    from ..search.ranking import Ranking

BLOCK = 2**21  # numbers in a block of work


class QueryAnchored(Protocol):
    """What the index needs of a local metric that measures from queries."""

    def _embed_items(self, X: Any) -> np.ndarray:
        """Items mapped by all metrics, of shape (n_items, n_components, n_metrics)."""

    def _embed_queries(self, Q: Any) -> tuple[np.ndarray, np.ndarray]:
        """Queries mapped likewise, and the weights of metrics (n_queries, n_metrics)."""

    def _apply_kernel(self, squares: np.ndarray) -> np.ndarray:
        """Kernel values of squared distances."""


class LocalIndex:
    """Exact search under a local metric that measures from queries, as `Index` is under others."""

    def __init__(self, X: Any, metric: QueryAnchored) -> None:
        self.metric = metric
        self.items = metric._embed_items(X)

    def distances(self, Q: Any) -> np.ndarray:
        """Distances from each query to each item."""
        points, weights = self.metric._embed_queries(Q)
        return self._distances(points, weights)

    def blocks(
        self, Q: Any, k: int | None = None, *, query_items: Any = None
    ) -> Iterator[Ranking]:
        """Rankings of blocks of queries, each query's own item left out."""
        from ..search.ranking import Ranking

        points, weights = self.metric._embed_queries(Q)
        excluded = _excluded(query_items, len(points))
        step = max(1, BLOCK // len(self.items))

        def rank_block(start: int) -> Ranking:
            block = slice(start, start + step)
            distances = self._distances(points[block], weights[block])
            for row, item in zip(distances, excluded[block], strict=True):
                if item >= 0:
                    row[item] = np.inf
            ranking = Ranking.from_distances(distances)
            if k is None:
                return ranking
            return ranking.top(k)

        yield from thread_map(rank_block, range(0, len(points), step))

    def rank(self, Q: Any, k: int | None = None) -> Ranking:
        """Rank the nearest items of each query."""
        from ..search.ranking import Ranking

        return Ranking.join(list(self.blocks(Q, k)))

    def rerank(
        self, Q: Any, candidates: Ranking | Sequence[Any], *, query_items: Any = None
    ) -> Ranking:
        """Rerank candidate items of each query, its own item left out."""
        from ..search.index import candidate_lists
        from ..search.ranking import Ranking

        points, weights = self.metric._embed_queries(Q)
        lists = candidate_lists(candidates, len(points), len(self.items))
        excluded = _excluded(query_items, len(points))
        pairs = []
        for q, listed in enumerate(lists):
            items = listed[listed != excluded[q]]
            distances = self._to_items(points[q], weights[q], self.items[items])
            order = np.lexsort((items, distances))
            pairs.append((items[order], distances[order]))
        return Ranking.from_pairs(pairs, len(self.items))

    def _distances(self, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
        pairs = zip(points, weights, strict=True)
        return np.stack([self._to_items(*pair, self.items) for pair in pairs])

    def _to_items(
        self, point: np.ndarray, weights: np.ndarray, items: np.ndarray
    ) -> np.ndarray:
        """Distances from one query to items, in blocks that bound the memory."""
        step = max(16, BLOCK // point.size)
        distances = np.empty(len(items))
        for start in range(0, len(items), step):
            block = slice(start, start + step)
            squares = np.sum((items[block] - point) ** 2, axis=1)
            distances[block] = self.metric._apply_kernel(squares) @ weights
        check_no_overflow(distances, "distances")
        return distances


def _excluded(query_items: Any, n_queries: int) -> np.ndarray:
    """The item to leave out for each query, or -1."""
    if query_items is None:
        return np.full(n_queries, -1)
    return np.asarray(query_items)
