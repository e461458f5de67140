"""Sums in a fixed order: a binary tree over numbered blocks, whoever computes them and when.

Floating-point sums depend on their order, so the order is that of the blocks alone. Neighbours are
added, then neighbours of these, and so on; what is left over goes up as it is. A shard is a run of
2^k blocks that starts at a multiple of 2^k, so its own tree is a branch of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

Block = TypeVar("Block")


def plus(a: Any, b: Any) -> Any:
    """Two sums in one: of tuples entry by entry, of others by their ``plus``, or by ``+``.

    Neither is changed: on a cluster it may be needed again.
    """
    if hasattr(a, "plus"):
        return a.plus(b)
    if isinstance(a, tuple):
        entries = [plus(mine, other) for mine, other in zip(a, b, strict=True)]
        return type(a)(*entries) if hasattr(a, "_fields") else tuple(entries)
    return a + b


class Tree:
    """Takes what blocks give, in their order, and holds a branch of each height at most.

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

    def add(self, sums: Any) -> None:
        """Take in the next block."""
        height = 0
        while self._branches and self._branches[-1][0] == height:
            sums = plus(self._branches.pop()[1], sums)
            height += 1
        self._branches.append((height, sums))

    def total(self) -> Any:
        """The sum over all blocks."""
        if not self._branches:
            raise ValueError("a sum needs at least one block: got none.")
        _, sums = self._branches.pop()
        while self._branches:
            sums = plus(self._branches.pop()[1], sums)
        return sums


def total_of(parts: Iterable[Any]) -> Any:
    """The sum of what blocks, or whole shards, give."""
    tree = Tree()
    for part in parts:
        tree.add(part)
    return tree.total()


def shards_of(blocks: Sequence[Block], n_shards: int) -> list[Sequence[Block]]:
    """Blocks in about so many shards, each of 2^k of them but for the last."""
    size = 1
    while size * n_shards < len(blocks):
        size *= 2
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]
