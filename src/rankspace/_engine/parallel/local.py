"""Work in this process: in one thread, or in as many as there are cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from .sums import total_of
from .threads import n_threads, single_products, team

AHEAD = 4  # blocks for each thread that are done before their turn


class Step(Protocol):
    """The heavy part of a learner, as a sum over blocks of its data.

    It may also have ``opened(state)``, which makes out of the state of a round what all blocks of
    the round share, and ``part(blocks)``, a step with only the data that these blocks need.
    """

    def local_step(self, block: Any, state: Any) -> Any:
        """What a block gives: sums that `plus` can add."""


def opened(step: Any, state: Any) -> Any:
    """What all blocks of a round share."""
    return step.opened(state) if hasattr(step, "opened") else state


class Threads:
    """Blocks in threads of this process; with one thread, one after the other.

    Parameters
    ----------
    n : int, optional
        Threads at most; by default the cores this process may use.
    """

    remote = False

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    @property
    def n_parts(self) -> int:
        """How many blocks can be worked on at once."""
        return n_threads() if self.n is None else self.n

    def total(
        self, step: Step, blocks: Sequence[Any], state: Any = None, *, at_once: int | None = None
    ) -> Any:
        """The sum of ``local_step`` over all blocks, at most ``at_once`` of them held."""
        return total_of(self.each(step, blocks, state, at_once=at_once))

    def each(
        self, step: Step, blocks: Sequence[Any], state: Any = None, *, at_once: int | None = None
    ) -> Iterator[Any]:
        """What each block gives, in their order."""
        n = min(self.n_parts, len(blocks), at_once or len(blocks))
        ahead = min(AHEAD * n, at_once or AHEAD * n)
        # One thread a product, whoever asks: products round otherwise with several.
        with single_products():
            ready = opened(step, state)
            if n <= 1:
                for block in blocks:
                    yield step.local_step(block, ready)
            else:
                yield from _windowed(lambda block: step.local_step(block, ready), blocks, n, ahead)


def _windowed(
    work: Callable[[Any], Any], blocks: Sequence[Any], n: int, ahead: int
) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    with team(n) as pool:
        try:
            for block in blocks:
                if len(waiting) >= max(n, ahead):
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, block))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
