"""Interleaving: two rankings shown as one, so that clicks say which of them users prefer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Interleaving:
    """Lists interleaved from two rankings by team draft, see `Ranking.interleave`.

    Parameters
    ----------
    ranking : Ranking
        The lists to show; their distances are positions, from 0.
    teams : ndarray of int
        For each entry of these lists, the ranking that it was taken from: 0 is the first, 1 the
        other.

    Examples
    --------
    >>> from rankspace import Ranking
    >>> first = Ranking.from_run({"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> other = Ranking.from_run({"q": {"c": 3.0, "a": 2.0, "b": 1.0}})
    >>> shown = first.interleave(other, seed=0)
    >>> shown.ranking.ids(0), shown.teams
    (['c', 'a', 'b'], array([1, 0, 1]))
    >>> shown.wins({"q": ["c"]})
    array([1])
    """

    ranking: Any
    teams: np.ndarray

    def wins(self, clicks: Any) -> np.ndarray:
        """Credit clicks to the rankings that the clicked items were taken from.

        Parameters
        ----------
        clicks : mapping of query to items, or iterable of (query, item)
            Names of the clicked items of each query, or numbers without ids. A second click on an
            item counts as one.

        Returns
        -------
        ndarray of shape (n_queries,)
            For each query 1 if the other ranking has more clicks, -1 if the first has, or 0.
        """
        clicked = _by_query(clicks)
        balance = np.zeros(self.ranking.n_queries, dtype=np.int64)
        for query in range(self.ranking.n_queries):
            items = clicked.pop(self.ranking.query_id(query), set())
            if items:
                balance[query] = self._balance(query, items)
        if clicked:
            raise ValueError(
                f"clicks must be on queries that were shown: got {min(clicked)!r}."
            )
        return np.sign(balance)

    def _balance(self, query: int, clicked: set[str]) -> int:
        """Clicks on items of the other ranking, less those on items of the first."""
        start, end = self.ranking.indptr[query : query + 2]
        shown = dict(
            zip(self.ranking.ids(query), self.teams[start:end].tolist(), strict=True)
        )
        unknown = clicked - shown.keys()
        if unknown:
            raise ValueError(
                "clicks must be on items that were shown for the query: got "
                f"{min(unknown)!r} for {self.ranking.query_id(query)!r}. Interleave with the seed "
                "and the length of the list that was shown."
            )
        return sum(2 * shown[item] - 1 for item in clicked)


def _by_query(clicks: Any) -> dict[str, set[str]]:
    """Names of the clicked items of each query."""
    pairs: Iterable[Any] = clicks
    if isinstance(clicks, Mapping):
        pairs = [(query, item) for query, items in clicks.items() for item in items]
    found: dict[str, set[str]] = {}
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(
                "clicks must be a mapping of queries to items, or pairs (query, item): got "
                f"{pair!r}."
            )
        found.setdefault(str(pair[0]), set()).add(str(pair[1]))
    return found


def team_draft(
    first: Sequence[int], other: Sequence[int], length: int, coins: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Interleave two lists of at least so many items: what to show, and the team of each.

    The team with fewer items takes its best one that is not shown yet; if they have equally many,
    the next coin decides (0 for the first).
    """
    lists = (first, other)
    places = [0, 0]
    sizes = [0, 0]
    shown: list[int] = []
    teams: list[int] = []
    seen: set[int] = set()
    while len(shown) < length:
        team = int(sizes[1] < sizes[0])
        if sizes[0] == sizes[1]:
            team = int(coins[sizes[0]])
        while lists[team][places[team]] in seen:
            places[team] += 1
        item = lists[team][places[team]]
        seen.add(item)
        shown.append(item)
        teams.append(team)
        sizes[team] += 1
    return shown, teams
