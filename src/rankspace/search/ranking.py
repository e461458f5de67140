"""Rankings: ordered lists of items, one for each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice
from ..relevance.rows import (
    check_ids,
    check_offsets,
    check_range,
    falls_within_rows,
    gather_rows,
    indptr_of,
    number_by_appearance,
    whole_numbers,
)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranked items of many queries and their distances, nearest first.

    Smaller is nearer. A distance is minus the cosine or dot product of unmapped vectors, minus the
    inner product of vectors mapped by a `BilinearMetric`, else a Euclidean distance. Items at equal
    distance are in the order of their index.

    Parameters
    ----------
    indptr : ndarray of shape (n_queries + 1,)
        The list of query ``q`` is ``items[indptr[q]:indptr[q + 1]]``.
    items : ndarray of int
        Rows of ``X``.
    distances : ndarray of float
        Never decreasing within a list.
    n_items : int
        Number of rows of ``X``.
    query_ids, item_ids : ndarray of str, optional
        Names of the queries and of the rows of ``X``.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What vectors were compared by, before a metric maps them; None if it is not known.
    known_by_name : bool, default=False
        Whether queries and items have numbers of this ranking only, such as those read from a run
        file. Then judgments without ids are joined by row numbers, as names.

    Examples
    --------
    >>> from rankspace import Ranking
    >>> ranking = Ranking.from_distances([[0.3, 0.1, 0.2], [0.5, 0.5, 0.1]])
    >>> items, distances = ranking[1]
    >>> items
    array([2, 0, 1])
    """

    indptr: np.ndarray
    items: np.ndarray
    distances: np.ndarray
    n_items: int
    query_ids: Any = None
    item_ids: Any = None
    similarity: str | None = None
    known_by_name: bool = False

    def __post_init__(self) -> None:
        indptr = whole_numbers(self.indptr, "indptr")
        items = whole_numbers(self.items, "items")
        distances = np.asarray(self.distances, dtype=float)
        check_offsets(indptr, items.size)
        checked = {
            "indptr": indptr,
            "items": items,
            "distances": distances,
            "query_ids": check_ids(self.query_ids, indptr.size - 1, "query_ids"),
            "item_ids": check_ids(self.item_ids, self.n_items, "item_ids"),
        }
        if self.similarity is not None:
            check_choice(self.similarity, "similarity", SIMILARITIES)
        if items.shape != distances.shape:
            raise ValueError(
                f"items and distances must be 1-d and equally long: got shapes {items.shape} and "
                f"{distances.shape}."
            )
        check_range(items, "items", 0, self.n_items)
        if np.isnan(distances).any():
            raise ValueError("distances must not be NaN.")
        if falls_within_rows(distances, indptr).any():
            raise ValueError(
                "distances must not decrease within a list: sort them first."
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_distances(
        cls, distances: Any, *, query_ids: Any = None, item_ids: Any = None
    ) -> Ranking:
        """Rank all items by a matrix of distances.

        Parameters
        ----------
        distances : array-like of shape (n_queries, n_items)
            Smaller is nearer; infinity keeps an item out of the list.
        query_ids, item_ids : array-like of str, optional
            Names.

        Returns
        -------
        Ranking
        """
        table = np.asarray(distances, dtype=float)
        if table.ndim != 2:
            raise ValueError(f"distances must be a matrix: got shape {table.shape}.")
        if np.isnan(table).any():
            raise ValueError("distances must not be NaN.")
        order = np.argsort(table, axis=1, kind="stable")
        table = np.take_along_axis(table, order, axis=1)
        listed = table < np.inf
        indptr = indptr_of(listed.sum(axis=1))
        n_items = order.shape[1]
        return cls(indptr, order[listed], table[listed], n_items, query_ids, item_ids)

    @classmethod
    def from_groups(cls, distances: Any, qid: Any, *, item_ids: Any = None) -> Ranking:
        """Rank the candidate rows of each query among themselves.

        Parameters
        ----------
        distances : array-like of shape (n_items,)
            Distance of each row from its query; for a model that gives scores, pass minus them.
        qid : array-like of shape (n_items,)
            The query of each row. Queries are numbered by first appearance.
        item_ids : array-like of str, optional
            Names of the rows.

        Returns
        -------
        Ranking

        Examples
        --------
        >>> from rankspace import Ranking
        >>> Ranking.from_groups([0.9, 0.1, 0.5], qid=["a", "a", "b"]).items
        array([1, 0, 2])
        """
        values = np.asarray(distances, dtype=float)
        codes, names = number_by_appearance(qid)
        if values.shape != codes.shape or values.ndim != 1:
            raise ValueError(
                f"distances and qid must be 1-d and equally long: got shapes {values.shape} and "
                f"{np.shape(qid)}."
            )
        order = np.lexsort((values, codes))
        indptr = indptr_of(np.bincount(codes))
        return cls(indptr, order, values[order], values.size, names, item_ids)

    @classmethod
    def from_run(cls, run: Mapping[str, Mapping[str, float]]) -> Ranking:
        """Ranking from a TREC run: scores of items by query, as retrieval tools exchange them.

        Parameters
        ----------
        run : mapping {query: {item: score}}
            A larger score is better. Items of equal score are ordered by name.

        Returns
        -------
        Ranking
        """
        names = sorted({str(item) for row in run.values() for item in row})
        number = {name: i for i, name in enumerate(names)}
        lists = []
        for row in run.values():
            items = np.array([number[str(item)] for item in row], dtype=np.int64)
            scores = np.array(list(row.values()), dtype=float)
            order = np.lexsort((items, -scores))
            lists.append((items[order], -scores[order]))
        return cls.from_named_lists(lists, [str(query) for query in run], names)

    @classmethod
    def from_pairs(
        cls,
        lists: list[tuple[np.ndarray, np.ndarray]],
        n_items: int,
        *,
        query_ids: Any = None,
        item_ids: Any = None,
    ) -> Ranking:
        """Ranking from sorted lists of (items, distances), one per query."""
        # The empty list keeps concatenate from failing where there are no queries.
        padded = [(np.zeros(0, np.int64), np.zeros(0)), *lists]
        indptr = np.cumsum([items.size for items, _ in padded])
        items = np.concatenate([items for items, _ in padded])
        distances = np.concatenate([distances for _, distances in padded])
        return cls(indptr, items, distances, n_items, query_ids, item_ids)

    @classmethod
    def from_named_lists(
        cls,
        lists: list[tuple[np.ndarray, np.ndarray]],
        query_ids: Sequence[str],
        item_ids: Sequence[str],
    ) -> Ranking:
        """Ranking from sorted lists of (items, distances) that name all queries and items."""
        ranking = cls.from_pairs(
            lists, len(item_ids), query_ids=query_ids, item_ids=item_ids
        )
        return replace(ranking, known_by_name=True)

    @classmethod
    def join(cls, blocks: Sequence[Ranking]) -> Ranking:
        """Concatenate blocks of queries over the same items."""
        lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
        names = [block.query_ids for block in blocks if block.query_ids is not None]
        first = blocks[0]
        for block in blocks:
            if block.n_items != first.n_items or not _same_ids(block, first):
                raise ValueError("blocks must rank the same items.")
            if block.similarity != first.similarity:
                raise ValueError(
                    f"blocks must rank by the same similarity: got {first.similarity} and "
                    f"{block.similarity}."
                )
        if names and len(names) < len(blocks):
            raise ValueError("either all blocks must have query_ids, or none.")
        return cls(
            indptr_of(lengths),
            np.concatenate([block.items for block in blocks]),
            np.concatenate([block.distances for block in blocks]),
            first.n_items,
            np.concatenate(names) if names else None,
            first.item_ids,
            first.similarity,
            first.known_by_name,
        )

    @property
    def n_queries(self) -> int:
        """Number of lists."""
        return self.indptr.size - 1

    def __len__(self) -> int:
        return self.n_queries

    def __getitem__(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Items and distances of one query."""
        query = range(self.n_queries)[query]
        entries = slice(self.indptr[query], self.indptr[query + 1])
        return self.items[entries], self.distances[entries]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return (self[query] for query in range(self.n_queries))

    def ids(self, query: int) -> list[str]:
        """Names of the items listed for one query, or their numbers as text."""
        items, _ = self[query]
        if self.item_ids is not None:
            items = self.item_ids[items]
        return [str(item) for item in items]

    def query_id(self, query: int) -> str:
        """Name of a query, or its number as text."""
        return str(query if self.query_ids is None else self.query_ids[query])

    def top(self, k: int) -> Ranking:
        """Cut every list after ``k`` items."""
        if k < 0:
            raise ValueError(f"k must not be negative: got {k}.")
        lengths = np.minimum(np.diff(self.indptr), k)
        indptr, at = gather_rows(self.indptr[:-1], lengths)
        return replace(
            self, indptr=indptr, items=self.items[at], distances=self.distances[at]
        )

    def to_run(self) -> dict[str, dict[str, float]]:
        """TREC run: scores (minus the distances) by name, ``{query: {item: score}}``."""
        run = {}
        for query, (_, distances) in enumerate(self):
            scores = (-distances).tolist()
            run[self.query_id(query)] = dict(zip(self.ids(query), scores, strict=True))
        return run

    def __repr__(self) -> str:
        return f"Ranking({self.n_queries} queries, {self.items.size} entries, {self.n_items} items)"


def _same_ids(a: Ranking, b: Ranking) -> bool:
    if a.item_ids is None or b.item_ids is None:
        return a.item_ids is b.item_ids
    return a.item_ids is b.item_ids or np.array_equal(a.item_ids, b.item_ids)
