"""Rankings: ordered lists of items, one for each query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice, check_count
from .._engine.tables import as_html
from ..relevance.joins import Side, few, join_error, row_names, stray_ids
from ..relevance.rows import (
    as_ids,
    check_ids,
    check_offsets,
    check_range,
    falls_within_rows,
    gather_rows,
    indptr_of,
    number_by_appearance,
    places,
    row_numbers,
    take_or_none,
    whole_numbers,
)
from .fusion import (
    DEPTH,
    FusionTable,
    fusion_table,
    fusion_weights,
    normalisations,
    reciprocal_ranks,
)
from .interleaving import Interleaving, team_draft

SHOWN = 5  # queries, and items of each, that a notebook shows


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
        if not isinstance(run, Mapping):
            raise ValueError(
                f"a run must be {{query: {{item: score}}}}: got {type(run).__name__}."
            )
        if not all(isinstance(row, Mapping) for row in run.values()):
            raise ValueError(
                "a run must be {query: {item: score}}: got a query whose list has no scores."
            )
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

    @classmethod
    def fuse(
        cls,
        rankings: Mapping[str, Ranking],
        weights: Mapping[str, float] | None = None,
        *,
        normalise: str | Mapping[str, str] = "minmax",
        k: int = DEPTH,
    ) -> Ranking:
        """Fuse rankings of the same queries: hybrid search by a weighted sum of scores.

        A score is minus the distance. Only the first ``k`` items of each list take part. An item
        that is not among them has the score 0 in this list, or the lowest score of the list if
        that is negative; so a query without a list loses nothing.

        Parameters
        ----------
        rankings : mapping of str to Ranking
            Rankings by name. With ids, queries and items are matched by these.
        weights : mapping of str to float, optional
            Weight of each ranking, at least 0, for scores that are normalised like this. By default
            reciprocal rank fusion, which needs none: the sum of ``1 / (60 + rank)``.
        normalise : {"minmax", "none", "zscore"} or mapping, default="minmax"
            What is done with the scores of each list, or of each list of a ranking by its name:
            "minmax" maps the first ``k`` to 0 to 1 (equal scores to 1/2), "zscore" to mean 0 and
            variance 1 (equal scores to 0), "none" leaves them.
        k : int, default=100
            Number of first items of each list that are normalised and fused.

        Returns
        -------
        Ranking
            Lists of all items among the first ``k`` of any ranking; a distance is minus the sum.

        Examples
        --------
        >>> from rankspace import Ranking
        >>> dense = Ranking.from_run({"q": {"a": 0.9, "b": 0.8, "c": 0.7}})
        >>> lexical = Ranking.from_run({"q": {"c": 12.0, "b": 8.0}})
        >>> rankings = {"dense": dense, "bm25": lexical}
        >>> fused = Ranking.fuse(rankings, {"dense": 1.0, "bm25": 0.25})
        >>> fused.ids(0), fused.distances
        (['a', 'b', 'c'], array([-1.  , -0.5 , -0.25]))
        >>> Ranking.fuse(rankings).ids(0)
        ['c', 'b', 'a']
        """
        first, table, factors = _fusion(rankings, weights, normalise, k)
        items, distances = table.ranked(table.sums(factors))
        return replace(
            first,
            indptr=table.indptr,
            items=items,
            distances=distances,
            similarity=None,
        )

    @classmethod
    def explain_fusion(
        cls,
        rankings: Mapping[str, Ranking],
        query: Any,
        item: Any,
        weights: Mapping[str, float] | None = None,
        *,
        normalise: str | Mapping[str, str] = "minmax",
        k: int = DEPTH,
    ) -> dict[str, float]:
        """Explain a fused score: what each ranking contributes to that of an item for a query.

        Parameters
        ----------
        rankings, weights, normalise, k
            As in `fuse`.
        query, item : str or int
            Ids, or numbers if the rankings have no ids.

        Returns
        -------
        dict of str to float
            By the name of the ranking. Their sum is the score, minus the distance of `fuse`.

        Examples
        --------
        >>> from rankspace import Ranking
        >>> dense = Ranking.from_run({"q": {"a": 0.9, "b": 0.8, "c": 0.7}})
        >>> lexical = Ranking.from_run({"q": {"c": 12.0, "b": 8.0}})
        >>> rankings = {"dense": dense, "bm25": lexical}
        >>> Ranking.explain_fusion(rankings, "q", "c", {"dense": 1.0, "bm25": 0.25})
        {'dense': 0.0, 'bm25': 0.25}
        """
        first, table, factors = _fusion(rankings, weights, normalise, k)
        number = _number_of(query, first.query_ids, first.n_queries, "query")
        entries = slice(table.indptr[number], table.indptr[number + 1])
        found = _number_of(item, first.item_ids, first.n_items, "item")
        (place,) = np.nonzero(table.items[entries] == found)
        if not place.size:
            raise ValueError(
                f"item must be among the first {k} of a ranking for query {query!r}: got {item!r}."
            )
        values = table.columns[:, entries][:, place[0]] * np.array(factors)
        return dict(zip(rankings, values.tolist(), strict=True))

    def interleave(
        self, other: Ranking, seed: int, *, k: int | None = None
    ) -> Interleaving:
        """Interleave with another ranking by team draft, to learn from clicks which is better.

        In turns, each ranking adds its best item that is not in the list yet; a coin decides who
        begins each round. So both have the same chance of every position, and the ranking whose
        items get more clicks is preferred. Show each list once: take a new seed for each search.

        Parameters
        ----------
        other : Ranking
            A ranking of the same queries. With ids, queries and items are matched by these.
        seed : int
            Seed of the coins. The same seed gives the same lists.
        k : int, optional
            Length of the lists; by default, and at most, that of the shorter list of a query.

        Returns
        -------
        Interleaving
            With ``ranking`` to show, and ``wins`` to credit clicks.

        Examples
        --------
        >>> from rankspace import Ranking
        >>> first = Ranking.from_distances([[0.1, 0.2, 0.3]])
        >>> other = Ranking.from_distances([[0.3, 0.2, 0.1]])
        >>> first.interleave(other, seed=1).ranking.items
        array([0, 2, 1])
        """
        if k is not None:
            check_count(k, "k")
        a, b = _on_common_ids({"self": self, "other": other})
        rng = np.random.default_rng(seed)
        lists, teams = [], []
        for (first, _), (second, _) in zip(a, b, strict=True):
            for items in (first, second):
                if np.unique(items).size < items.size:
                    raise ValueError(
                        "a ranking to interleave must list an item once for a query."
                    )
            length = min(first.size, second.size, k or first.size)
            coins = rng.integers(2, size=length // 2 + 1).tolist()
            shown, team = team_draft(first.tolist(), second.tolist(), length, coins)
            lists.append((np.array(shown, dtype=np.int64), np.arange(float(length))))
            teams += team
        merged = Ranking.from_pairs(
            lists, a.n_items, query_ids=a.query_ids, item_ids=a.item_ids
        )
        return Interleaving(merged, np.array(teams, dtype=np.int64))

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

    def take_queries(self, queries: Any) -> Ranking:
        """Keep the lists of some queries, in the given order.

        Parameters
        ----------
        queries : array-like of int or bool
            Numbers of the queries, or a mask.

        Returns
        -------
        Ranking
        """
        numbers = row_numbers(queries, self.n_queries)
        lengths = np.diff(self.indptr)[numbers]
        indptr, at = gather_rows(self.indptr[numbers], lengths)
        return replace(
            self,
            indptr=indptr,
            items=self.items[at],
            distances=self.distances[at],
            query_ids=take_or_none(self.query_ids, numbers),
        )

    def on_ids(self, query_ids: Any, item_ids: Any) -> Ranking:
        """The same lists with queries and items numbered by the places of their ids.

        Parameters
        ----------
        query_ids, item_ids : array-like of str
            All ids, in order. A query that this ranking has no list for gets an empty one; lists
            of other queries are left out.

        Returns
        -------
        Ranking
        """
        wanted, items = as_ids(query_ids), as_ids(item_ids)
        own_queries = _names(self.query_ids, self.n_queries)
        own_items = _names(self.item_ids, self.n_items)
        numbers = places(own_items, items)[self.items]
        if numbers.size and numbers.min() < 0:
            name = own_items[self.items[numbers.argmin()]]
            raise ValueError(
                f"item_ids must have all items that are listed: got no {name!r}."
            )
        lists = places(wanted, own_queries)
        # An empty list at the end, for queries without one.
        starts = self.indptr[lists]
        lengths = np.where(lists >= 0, np.append(np.diff(self.indptr), 0)[lists], 0)
        indptr, at = gather_rows(starts, lengths)
        return Ranking(
            indptr,
            numbers[at],
            self.distances[at],
            len(items),
            wanted,
            items,
            self.similarity,
        )

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

    def _repr_html_(self) -> str:
        """The first items of the first queries."""
        shown = range(min(self.n_queries, SHOWN))
        rows = [
            (self.query_id(query), ", ".join(self.ids(query)[:SHOWN]))
            for query in shown
        ]
        rest = self.n_queries - len(shown)
        more = [f"and {rest:,} more queries"] if rest else []
        header = ["query", f"first {SHOWN} items"]
        return as_html(header, rows, before=[repr(self)], after=more)


def _fusion(
    rankings: Mapping[str, Ranking],
    weights: Mapping[str, float] | None,
    normalise: str | Mapping[str, str],
    k: int,
) -> tuple[Ranking, FusionTable, list[float]]:
    """A ranking with the ids of all, the scores to fuse, and the weight of each ranking."""
    check_count(k, "k")
    if not isinstance(rankings, Mapping):
        raise ValueError(
            "rankings must be a mapping of names to rankings, such as {'bm25': ranking}: got "
            f"{type(rankings).__name__}."
        )
    if not rankings:
        raise ValueError("rankings must name at least one ranking: got none.")
    names = list(rankings)
    for name, ranking in rankings.items():
        if not isinstance(ranking, Ranking):
            raise ValueError(
                f"rankings must hold a Ranking each: got {type(ranking).__name__} for {name!r}. "
                "Ranking.from_run has scores by id, and read_trec_run those of a file."
            )
    aligned = _on_common_ids(rankings)
    first = aligned[0]
    if weights is None:
        return first, reciprocal_ranks(aligned, first.n_items, k), [1.0] * len(names)
    factors = fusion_weights(weights, names)
    how = normalisations(normalise, names)
    return first, fusion_table(aligned, first.n_items, how, k), factors


def _number_of(name: Any, ids: np.ndarray | None, n: int, kind: str) -> int:
    """The number of a query or an item, by its id if there are ids."""
    known = _names(ids, n).tolist()
    if str(name) not in known:
        raise ValueError(f"{kind} must be one of the rankings: got {name!r}.")
    return known.index(str(name))


def _on_common_ids(rankings: Mapping[str, Ranking]) -> list[Ranking]:
    """Rankings whose queries and items have the same numbers, matched by id if there are ids."""
    found = list(rankings.values())
    named = [r.query_ids is not None or r.item_ids is not None for r in found]
    if not any(named):
        sizes = {name: (r.n_queries, r.n_items) for name, r in rankings.items()}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name} {q} and {n}" for name, (q, n) in sizes.items())
            raise ValueError(
                "rankings without ids must have the same numbers of queries and items: got "
                f"{shown}."
            )
        return found
    queries: dict[str, None] = {}
    items: dict[str, None] = {}
    for name, ranking in rankings.items():
        side = f"the ranking {name!r}"
        own_queries = _names(ranking.query_ids, ranking.n_queries)
        own_items = _names(ranking.item_ids, ranking.n_items)
        _check_shared("query", Side(side, own_queries.tolist()), queries)
        if any(r.item_ids is None for r in found):
            # Row numbers stand for ids here, which may be other names.
            _check_shared("item", Side(side, own_items.tolist()), items)
        queries.update(dict.fromkeys(own_queries))
        items.update(dict.fromkeys(own_items))
    return [ranking.on_ids(list(queries), list(items)) for ranking in found]


def _check_shared(kind: str, own: Side, others: Collection[str]) -> None:
    """Raise if a ranking has no id of the rankings before it."""
    if own.ids and others and not set(own.ids) & set(others):
        raise join_error(kind, own, Side("the rankings before it", others))


def shortlist(
    ranking: Ranking, n_items: int, ids: Any = None, query_ids: Any = None
) -> Ranking:
    """A ranking with the item numbers of an index, and a list for each of its queries in order.

    Ids of both sides are matched. Of a run file, whose order is its own, they must be.
    """
    queries, items = ranking.query_ids, ranking.item_ids
    if ranking.known_by_name and query_ids is None:
        raise ValueError(
            "candidates of a run are in an order of their own: pass query_ids, the ids of the rows "
            "of Q, or candidates.on_ids(query_ids, item_ids)."
        )
    if ranking.known_by_name and ids is None:
        ids = row_names(n_items)
    if queries is not None and query_ids is not None:
        queries = as_ids(query_ids)
        wanted = Side("the queries", queries.tolist())
        listed = Side("the candidates", ranking.query_ids.tolist())
        if len(stray_ids(wanted, listed)) > few(queries.size):
            raise join_error("query", wanted, listed)
    if items is not None and ids is not None:
        items = as_ids(ids)
    if queries is ranking.query_ids and items is ranking.item_ids:
        return ranking
    return ranking.on_ids(
        _names(queries, ranking.n_queries), _names(items, ranking.n_items)
    )


def _names(ids: np.ndarray | None, n: int) -> np.ndarray:
    """Ids, or row numbers as text."""
    return as_ids(row_names(n)) if ids is None else ids


def _same_ids(a: Ranking, b: Ranking) -> bool:
    if a.item_ids is None or b.item_ids is None:
        return a.item_ids is b.item_ids
    return a.item_ids is b.item_ids or np.array_equal(a.item_ids, b.item_ids)
