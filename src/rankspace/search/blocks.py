"""Rankings of blocks of queries that are made when they are asked for, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._engine.parallel import current
from .._engine.parallel.threads import in_threads
from .ranking import Ranking


class RankedBlocks(Iterator[Ranking]):
    """Lists of the next queries, block after block.

    Parameters
    ----------
    search : object
        With ``local_step(block, state)``, which ranks for a block of queries.
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
        backend = current()
        if backend.remote:
            return backend.each(self.search, self.parts, self.state)
        return in_threads(lambda part: self.search.local_step(part, self.state), self.parts)

    @property
    def judged_there(self) -> bool:
        """Whether lists had better be judged where they are made, for they are not made here."""
        return current().remote and self._begun is None


class JudgedSearch:
    """Ranks for a block of queries and judges the lists; only their scores come back."""

    def __init__(self, search: Any, judging: Any) -> None:
        self.search, self.judging = search, judging

    def local_step(self, block: tuple[int, Any], state: Any) -> tuple[Any, ...]:
        """Numbers of the queries, their scores, and what is to be said of their lists."""
        first, part = block
        return self.judging.of_block(self.search.local_step(part, state), first)
