"""Items to be ranked by a metric that is no distance of two vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._engine.parallel.threads import thread_map
from ..search.ranking import Ranking
from .local_distances import BLOCK, KERNELS


class LocalIndex:
    """Items under a metric that measures from the query: what `Index` is to a linear metric."""

    def __init__(self, X: Any, metric: Any) -> None:
        if metric.has_anchors:
            raise ValueError(
                "this metric measures from anchors, not from queries: use scores."
            )
        self.metric = metric
        self.embedded = self._embed(metric._checked(X, "X"))

    def _embed(self, X: np.ndarray) -> np.ndarray:
        m, r, d = self.metric.factors.shape
        stacked = self.metric.factors.transpose(1, 0, 2).reshape(r * m, d)
        return (self.metric.scaling.apply(X) @ stacked.T.astype(X.dtype)).reshape(
            len(X), r, m
        )

    def _queries(self, Q: Any) -> tuple[np.ndarray, np.ndarray]:
        Q = self.metric._checked(Q, "Q")
        return self._embed(Q), self.metric.weights_at(self.metric.scaling.apply(Q))

    def _one(self, point: np.ndarray, weights: np.ndarray, items: Any) -> np.ndarray:
        chosen = self.embedded[items]
        step = max(16, BLOCK // point.size)
        found = np.empty(len(chosen))
        for start in range(0, len(chosen), step):
            squares = np.sum((chosen[start : start + step] - point) ** 2, axis=1)
            found[start : start + step] = KERNELS[self.metric.kernel](squares) @ weights
        return found

    def distances(self, Q: Any) -> np.ndarray:
        """Distances of each query from each item."""
        points, weights = self._queries(Q)
        every = slice(None)
        return np.stack(
            [self._one(*pair, every) for pair in zip(points, weights, strict=True)]
        )

    def blocks(
        self, Q: Any, k: int | None = None, *, query_items: Any = None
    ) -> Iterator[Ranking]:
        """Rankings of blocks of queries, without the item that each query is."""
        points, weights = self._queries(Q)
        own = (
            np.full(len(points), -1) if query_items is None else np.asarray(query_items)
        )
        step = max(1, BLOCK // len(self.embedded))

        def work(start: int) -> Ranking:
            part = range(start, min(start + step, len(points)))
            table = np.stack(
                [self._one(points[q], weights[q], slice(None)) for q in part]
            )
            for row, item in zip(table, own[start : start + step], strict=True):
                if item >= 0:
                    row[item] = np.inf
            ranking = Ranking.from_distances(table)
            return ranking if k is None else ranking.top(k)

        yield from thread_map(work, range(0, len(points), step))

    def rank(self, Q: Any, k: int | None = None) -> Ranking:
        """The nearest items of each query."""
        return Ranking.join(list(self.blocks(Q, k)))

    def rerank(
        self, Q: Any, candidates: Ranking | Sequence[Any], *, query_items: Any = None
    ) -> Ranking:
        """Given items of each query, sorted, without the item that the query is."""
        points, weights = self._queries(Q)
        lists = [
            np.asarray(c[0] if isinstance(candidates, Ranking) else c)
            for c in candidates
        ]
        if len(lists) != len(points):
            raise ValueError(
                f"candidates must have a list for each of {len(points)} queries: got {len(lists)}."
            )
        own = (
            np.full(len(points), -1) if query_items is None else np.asarray(query_items)
        )
        found = []
        for point, weight, items, mine in zip(points, weights, lists, own, strict=True):
            items = items[items != mine].astype(np.int64)
            distances = self._one(point, weight, items)
            order = np.lexsort((items, distances))
            found.append((items[order], distances[order]))
        return Ranking.from_pairs(found, len(self.embedded))
