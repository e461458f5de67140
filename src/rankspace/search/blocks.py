"""Rankings of blocks of queries that are made when they are asked for, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._engine.parallel import Step, current_backend
from .._engine.parallel.threads import thread_map
from .ranking import Ranking


class RankedBlocks(Iterator[Ranking]):
    """Lists of the next queries, block after block.

    Parameters
    ----------
    search : object
        With ``map_block(block, state)``, which ranks for a block of queries.
    blocks : sequence
        Blocks of queries.
    state : object
        What all blocks share.
    """

    def __init__(self, search: Any, blocks: Sequence[Any], state: Any) -> None:
        self.search, self.parts, self.state = search, blocks, state
        self._begun: Iterator[Ranking] | None = None

    def __next__(self) -> Ranking:
        if self._begun is None:
            self._begun = self._begin()
        return next(self._begun)

    def _begin(self) -> Iterator[Ranking]:
        backend = current_backend()
        if backend.remote:
            return backend.map(self.search, self.parts, self.state)
        return thread_map(
            lambda part: self.search.map_block(part, self.state), self.parts
        )

    @property
    def judged_there(self) -> bool:
        """Whether lists had better be judged where they are made, for they are not made here."""
        return current_backend().remote and self._begun is None


class JudgedSearch(Step):
    """Ranks for a block of queries and judges the lists; only their scores come back."""

    def __init__(self, search: Any, judging: Any) -> None:
        self.search, self.judging = search, judging

    def map_block(self, block: tuple[int, Any], state: Any) -> tuple[Any, ...]:
        """Numbers of the queries, their scores, and what is to be said of their lists."""
        first, part = block
        return self.judging.of_block(self.search.map_block(part, state), first)
