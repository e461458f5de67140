"""Map-reduce over blocks of data, summed in a fixed order: a binary tree over the blocks.

Floating-point sums depend on their order, so the order depends on the blocks alone, not on who
computes them or when. Neighbours are added, then neighbours of these, and so on; an odd one goes up
a level unchanged. A shard is a run of 2^k blocks that starts at a multiple of 2^k, so the tree of a
shard is a branch of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

Block = TypeVar("Block")


class Step:
    """Base class of the parallel part of a computation: a map over blocks of its data."""

    def prepare(self, state: Any) -> Any:
        """Compute, once per round and worker, what all blocks share; by default the state."""
        return state

    def restrict(self, blocks: Any) -> Step:
        """A step with only the data that these blocks need; by default all of it."""
        return self

    def map_block(self, block: Any, state: Any) -> Any:
        """The result of one block, given what `prepare` returned; a sum takes it to `plus`."""
        raise NotImplementedError

    @property
    def is_shared(self) -> bool:
        """Whether all blocks use the same step, because the class does not `restrict` it."""
        return type(self).restrict is Step.restrict


def plus(a: Any, b: Any) -> Any:
    """Add two results: tuples entry by entry, others by their ``plus`` method or by ``+``.

    Neither is changed: on a cluster it may be needed again.
    """
    if hasattr(a, "plus"):
        return a.plus(b)
    if isinstance(a, tuple):
        entries = [plus(left, right) for left, right in zip(a, b, strict=True)]
        if hasattr(a, "_fields"):  # a named tuple
            return type(a)(*entries)
        return tuple(entries)
    return a + b


class Tree:
    """Sum of results that come in the order of their blocks, at most one branch per height.

    Examples
    --------
    >>> from rankspace._engine.parallel import Tree
    >>> tree = Tree()
    >>> for number in (1.0, 2.0, 3.0):
    ...     tree.add(number)
    >>> tree.total()
    6.0
    """

    def __init__(self) -> None:
        self._branches: list[tuple[int, Any]] = []

    def add(self, result: Any) -> None:
        """Add the result of the next block."""
        height = 0
        while self._branches and self._branches[-1][0] == height:
            result = plus(self._branches.pop()[1], result)
            height += 1
        self._branches.append((height, result))

    def total(self) -> Any:
        """The sum over all blocks."""
        if not self._branches:
            raise ValueError("a sum needs at least one block: got none.")
        _, total = self._branches.pop()
        while self._branches:
            total = plus(self._branches.pop()[1], total)
        return total


def total_of(results: Iterable[Any]) -> Any:
    """The sum of the results of blocks, or of whole shards."""
    tree = Tree()
    for result in results:
        tree.add(result)
    return tree.total()


def shards_of(blocks: Sequence[Block], n_shards: int) -> list[Sequence[Block]]:
    """Split blocks into at most ``n_shards`` shards of 2^k blocks; the last may be smaller."""
    size = 1
    while size * n_shards < len(blocks):
        size *= 2
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]
