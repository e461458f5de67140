"""Lazy search in blocks of queries, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._engine.parallel import current_backend
from .._engine.parallel.threads import thread_map
from .ranking import Ranking


class QueryBlock(NamedTuple):
    """Some of the queries of a search."""

    queries: np.ndarray
    query_items: np.ndarray  # the item that each query is, or -1
    query_ids: np.ndarray | None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)


class RankingBlocks(Iterator[Ranking]):
    """Iterator over the rankings of blocks of queries, each searched when it is needed.

    Parameters
    ----------
    search : object
        With ``map_block(block, state)``, which ranks items for one block.
    blocks : sequence of QueryBlock
        The queries.
    state : object
        What all blocks share.
    """

    def __init__(self, search: Any, blocks: Sequence[QueryBlock], state: Any) -> None:
        self.search = search
        self.blocks = blocks
        self.state = state
        self._rankings: Iterator[Ranking] | None = None

    @property
    def started(self) -> bool:
        """Whether a ranking was taken already."""
        return self._rankings is not None

    def __next__(self) -> Ranking:
        if self._rankings is None:
            self._rankings = self._start()
        return next(self._rankings)

    def _start(self) -> Iterator[Ranking]:
        backend = current_backend()
        if backend.remote:
            return backend.map(self.search, self.blocks, self.state)
        return thread_map(self._rank, self.blocks)

    def _rank(self, block: QueryBlock) -> Ranking:
        return self.search.map_block(block, self.state)
