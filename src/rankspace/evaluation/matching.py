"""Matching of rankings to judgments by id, and the checks that most judgments find their match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..relevance.joins import (
    Side,
    check_has_rows,
    check_not_shifted,
    check_numbering,
    few,
    join_error,
    may_count_from_one,
    n_row_numbers,
    row_names,
    stray_ids,
    warn_of_numbering,
)
from ..relevance.relevance import Relevance
from ..relevance.rows import places
from ..search.blocks import RankingBlocks
from ..search.ranking import Ranking

# Queries, and relevant items of each, by which numbering from 1 is told from numbering from 0.
CHECKED = 2000
CHECKED_ITEMS = 5
RANKING = "the ranking"
JUDGMENTS = "the judgments"


def named_like(ranking: Any, relevance: Relevance) -> Relevance:
    """Judgments with row numbers as missing ids, if the ranking knows its rows by name only."""
    if not getattr(ranking, "known_by_name", False):
        return relevance
    query_ids, item_ids = relevance.query_ids, relevance.item_ids
    if query_ids is None:
        query_ids = row_names(relevance.n_queries)
    if item_ids is None:
        item_ids = row_names(relevance.n_items)
    return replace(relevance, query_ids=query_ids, item_ids=item_ids)


def sized_like(ranking: Any, relevance: Relevance) -> Relevance:
    """Judgments with the number of items of a ranking, if `from_lists` was not told it."""
    if not relevance.n_items_is_open:
        return relevance
    source = ranking.search if isinstance(ranking, RankingBlocks) else ranking
    # A run that was read from a file knows the listed items only.
    if getattr(ranking, "known_by_name", False):
        return relevance
    n_items = getattr(source, "n_items", relevance.n_items)
    if n_items == relevance.n_items:
        return relevance
    return relevance.for_items(n_items, separate_queries=True)


def check_own_items(ranking: Any, relevance: Relevance) -> None:
    """Raise if nobody can tell whether the queries of `from_lists` are rows of X.

    Rows would be left out of their own lists. It matters where a list has the row of that number,
    and the judgments name it as relevant.
    """
    unclear = np.zeros(0, dtype=np.int64)
    if isinstance(ranking, RankingBlocks):
        # What they list is not known yet.
        if all((block.query_items < 0).all() for block in ranking.blocks):
            unclear = np.flatnonzero(relevance.is_own_relevant)
    elif isinstance(ranking, Ranking):
        unclear = _own_listed(ranking, relevance)
    if unclear.size:
        raise ValueError(
            f"the judgments and the ranking both list row {unclear[0]} for query {unclear[0]}. If "
            "the queries are not rows of X, pass n_items to Relevance.from_lists; if they are, "
            f"pass query_rows=range({relevance.n_queries}), and no row counts for itself."
        )


def _own_listed(ranking: Ranking, relevance: Relevance) -> np.ndarray:
    """Queries with the row of their number in the list, judged relevant."""
    lists = np.repeat(np.arange(ranking.n_queries), np.diff(ranking.indptr))
    queries = np.arange(max(ranking.n_queries, relevance.n_queries))
    if by_id(ranking, relevance):
        queries = places(ranking.query_ids, relevance.query_ids)
    elif ranking.n_queries != relevance.n_queries:
        return np.zeros(0, dtype=np.int64)  # an error to come
    numbers = new_items(ranking, relevance)
    items = numbers[ranking.items] if numbers.size else ranking.items
    queries = queries[lists]
    is_own = (queries >= 0) & (items >= 0) & (items == relevance.query_items[queries])
    found: np.ndarray = queries[is_own & relevance.is_own_relevant[queries]]
    return found


def by_id(ranking: Any, relevance: Relevance) -> bool:
    """Whether lists are matched to queries by id, not by position."""
    if ranking.query_ids is None:
        way_out = "Pass query_ids to what ranks them, or to Relevance.from_qrels."
        check_has_rows(relevance, "query", "the lists", way_out)
        return False
    return relevance.query_ids is not None


def list_of(ranking: Ranking, relevance: Relevance, query: int) -> int:
    """Number of the list that belongs to a query, -1 for none."""
    if not by_id(ranking, relevance):
        return query
    return int(places(relevance.query_ids[[query]], ranking.query_ids)[0])


def new_items(ranking: Ranking, relevance: Relevance) -> np.ndarray:
    """Number of each ranked item in the relevance, -1 for none; empty if the numbers agree."""
    if ranking.item_ids is not None and relevance.item_ids is not None:
        if np.array_equal(ranking.item_ids, relevance.item_ids):
            return np.zeros(0, dtype=np.int64)
        found = places(ranking.item_ids, relevance.item_ids)
        if found.size and found.max() < 0:
            raise join_error("item", *_sides(ranking.item_ids, relevance.item_ids))
        return found
    if ranking.item_ids is None:
        way_out = "Pass ids to Index, or item_ids to Relevance.from_qrels."
        check_has_rows(relevance, "item", "the ranked rows", way_out)
    if ranking.n_items != relevance.n_items:
        raise ValueError(
            f"ranking and relevance must have the same items: got {ranking.n_items} and "
            f"{relevance.n_items}. Give both item_ids to match them by name."
        )
    return np.zeros(0, dtype=np.int64)


def check_items(
    item_ids: np.ndarray | None, relevance: Relevance, listed: np.ndarray | None = None
) -> None:
    """Raise if too many items of one side are missing from a side that has ids of all items.

    A ranking that was read from a file knows only the items it lists, and judgments may know only
    the judged ones. There nobody can tell a missing item from one that was not found.

    Parameters
    ----------
    item_ids : ndarray of str or None
        The items of the ranking.
    relevance : Relevance
        The judgments.
    listed : ndarray of int, optional
        The items in some list of the ranking. By default the ranking has the ids of all items.
    """
    if item_ids is None or relevance.item_ids is None:
        return
    if np.array_equal(item_ids, relevance.item_ids):
        return
    ranking, judgments = _sides(item_ids, relevance.item_ids)
    judged = np.unique(relevance.items[~np.isnan(relevance.grades)])
    judged_side = Side(JUDGMENTS, relevance.item_ids[judged].tolist())
    for side in (judgments, judged_side):
        check_numbering("item", side, ranking)
    warn_of_numbering("item", judgments, ranking)
    n_rows = n_row_numbers(ranking.ids)
    if listed is None or listed.size < item_ids.size or n_rows:
        # Row numbers name all rows up to the last one.
        everything = Side(RANKING, {*ranking.ids, *row_names(n_rows)})
        _check_most("item", judged_side, everything)
    if judged.size < relevance.n_items:
        if listed is not None:
            ranking = Side(RANKING, item_ids[listed].tolist())
        _check_most("item", ranking, judgments)


def check_queries(
    query_ids: Iterable[np.ndarray], relevance: Relevance, listed: np.ndarray
) -> None:
    """Raise if too many judged queries have no list."""
    names = [name for block in query_ids for name in block.tolist()]
    ranking, judgments = _sides(names, relevance.query_ids)
    if listed.all():
        warn_of_numbering("query", judgments, ranking)
        return
    if not listed.any():
        raise join_error("query", judgments, ranking)
    judged = np.diff(relevance.indptr)[relevance.rows] > 0
    judgments = Side(JUDGMENTS, relevance.query_ids[judged].tolist())
    check_numbering("query", judgments, ranking)
    warn_of_numbering("query", judgments, ranking)
    _check_most("query", judgments, ranking)


def check_run_not_shifted(ranking: Ranking, relevance: Relevance) -> None:
    """Raise if a ranking of row numbers finds what judgments mean if these count from 1."""
    sides = {
        "item": (relevance.item_ids, ranking.item_ids),
        "query": (relevance.query_ids, ranking.query_ids),
    }
    if any(ids is None for pair in sides.values() for ids in pair):
        return
    kinds = [
        kind
        for kind, pair in sides.items()
        if not np.array_equal(*pair) and may_count_from_one(*pair)
    ]
    if not kinds:
        return
    to_list = _Places("query" in kinds, *sides["query"])
    to_item = _Places("item" in kinds, *sides["item"])
    table = _nearness(ranking)

    def score(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        lists, listed = to_list.of(queries), to_item.of(items)
        found = np.asarray(table[lists, listed]).ravel()
        return np.where((lists >= 0) & (listed >= 0), found, 0.0)

    queries, items = relevant_pairs(relevance).T
    pairs = np.column_stack((to_list.numbers[queries], to_item.numbers[items]))
    check_not_shifted(kinds, pairs, score)


class _Places:
    """Numbers of judged ids, and where the ranking has the row of a number; -1 for nowhere."""

    def __init__(self, by_number: bool, judged: np.ndarray, ranked: np.ndarray) -> None:
        if by_number:
            self.numbers = np.array(list(map(int, judged)))
            self.place = {int(name): at for at, name in enumerate(ranked)}
        else:
            # From 1, as a pair with a 0 has no row before it.
            self.numbers = 1 + np.arange(judged.size)
            self.place = dict(enumerate(places(judged, ranked).tolist(), 1))

    def of(self, numbers: np.ndarray) -> np.ndarray:
        found = [self.place.get(number, -1) for number in numbers.tolist()]
        return np.array(found, dtype=np.int64)


def _nearness(ranking: Ranking) -> Any:
    """Lists by items: the more, the earlier an item is listed; 0 if it is not."""
    import scipy.sparse

    lengths = np.diff(ranking.indptr)
    position = np.arange(ranking.items.size) - np.repeat(ranking.indptr[:-1], lengths)
    content = (1 / (1.0 + position), ranking.items, ranking.indptr)
    return scipy.sparse.csr_array(content, (ranking.n_queries, ranking.n_items))


def relevant_pairs(relevance: Relevance) -> np.ndarray:
    """Numbers of query and item of the relevant judgments of separate queries; not all of many."""
    n = min(relevance.n_queries, CHECKED)
    queries = np.linspace(0, relevance.n_queries - 1, n).astype(int)
    found = [[(query, item) for item in relevance.relevant(query)] for query in queries]
    pairs = [pair for row in found for pair in row[:CHECKED_ITEMS]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _check_most(kind: str, wanted: Side, known: Side) -> None:
    if len(stray_ids(wanted, known)) > few(len(set(wanted.ids))):
        raise join_error(kind, wanted, known)


def _sides(ranked: Iterable[str], judged: Iterable[str]) -> tuple[Side, Side]:
    return Side(RANKING, list(map(str, ranked))), Side(
        JUDGMENTS, list(map(str, judged))
    )
