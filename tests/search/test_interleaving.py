"""Interleaving: team draft against its published steps, fairness, and the credit of clicks."""

import itertools
from collections import Counter

import numpy as np
import pytest

from rankspace import Ranking


def published_steps(first, other, length, coins):
    """Team draft as Radlinski, Kurup and Joachims (2008) write it."""
    shown, team_a, team_b = [], set(), set()
    coins = iter(coins)
    while len(shown) < length:
        first_may = len(team_a) < len(team_b)
        if len(team_a) == len(team_b):
            first_may = next(coins) == 0
        if first_may:
            item = next(x for x in first if x not in shown)
            team_a.add(item)
        else:
            item = next(x for x in other if x not in shown)
            team_b.add(item)
        shown.append(item)
    return shown, [int(item in team_b) for item in shown]


def random_rankings(rng, n_queries=30, n_items=12):
    return [
        Ranking.from_distances(rng.random((n_queries, n_items))).top(8)
        for _ in range(2)
    ]


@pytest.mark.parametrize("k", [None, 1, 5, 99])
def test_lists_are_those_of_the_published_steps(k, rng):
    first, other = random_rankings(rng)
    found = first.interleave(other, 3, k=k)
    length = min(k or 8, 8)
    at = 0
    for query in range(30):
        items, positions = found.ranking[query]
        teams = found.teams[at : at + length]
        at += length
        # The coin of a round shows in its first team.
        coins = teams[::2].tolist()
        shown, expected = published_steps(
            first[query][0].tolist(), other[query][0].tolist(), length, coins
        )
        assert items.tolist() == shown
        assert teams.tolist() == expected
        assert positions.tolist() == list(range(length))
    assert at == found.teams.size


def test_coins_are_fair_and_the_seed_decides(rng):
    first, other = random_rankings(rng, n_queries=400)
    found = first.interleave(other, 0, k=4)
    teams = found.teams.reshape(400, 4)
    counts = Counter(map(tuple, teams.tolist()))
    assert set(counts) == {
        (*a, *b) for a, b in itertools.product([(0, 1), (1, 0)], repeat=2)
    }
    # 100 expected each, with a standard deviation below 9.
    assert min(counts.values()) > 65
    again = first.interleave(other, 0, k=4)
    assert np.array_equal(again.ranking.items, found.ranking.items)
    assert not np.array_equal(first.interleave(other, 1, k=4).teams, found.teams)


def test_items_and_queries_are_matched_by_name():
    first = Ranking.from_run({"p": {"a": 2, "b": 1}, "q": {"c": 2, "b": 1}})
    other = Ranking.from_run({"q": {"c": 1, "d": 2}, "p": {"b": 9, "a": 8}})
    found = first.interleave(other, 0)
    assert set(found.ranking.ids(0)) == {"a", "b"}
    assert found.ranking.query_id(1) == "q"
    # A query that one of them lacks has nothing to compare.
    assert not first.interleave(other.take_queries([0]), 0).ranking[0][0].size


def test_wins_are_counted_by_hand():
    first = Ranking.from_run({q: {"a": 3, "b": 2, "c": 1} for q in "pqrs"})
    other = Ranking.from_run({q: {"c": 3, "b": 2, "a": 1} for q in "pqrs"})
    found = first.interleave(other, 5, k=2)
    clicks = [("p", "a"), ("p", "a"), ("q", "c"), ("r", "a"), ("r", "c")]
    assert found.wins(clicks).tolist() == [-1, 1, 0, 0]
    by_query = {"p": ["a"], "q": ["c"], "r": ["a", "c"], "s": []}
    assert found.wins(by_query).tolist() == [-1, 1, 0, 0]


def test_clicks_by_number():
    first = Ranking.from_distances([[0.1, 0.2, 0.3]])
    other = Ranking.from_distances([[0.3, 0.2, 0.1]])
    assert first.interleave(other, 1, k=2).wins([(0, 2)]).tolist() == [1]


def test_bad_clicks():
    first = Ranking.from_run({"q": {"a": 3, "b": 2, "c": 1}})
    found = first.interleave(first, 0, k=2)
    with pytest.raises(ValueError, match="on queries that were shown: got 'x'"):
        found.wins([("x", "a")])
    with pytest.raises(ValueError, match="were shown for the query: got 'c' for 'q'"):
        found.wins([("q", "c")])
    with pytest.raises(ValueError, match="or pairs"):
        found.wins(["qa"])
    twice = Ranking.from_pairs([(np.array([1, 1]), np.arange(2.0))], 2)
    with pytest.raises(ValueError, match="must list an item once"):
        twice.interleave(twice, 0)
    with pytest.raises(ValueError, match="k must be a whole number"):
        first.interleave(first, 0, k=0)


def test_a_better_ranking_wins(rng):
    relevant = rng.integers(20, size=300)
    noise = rng.random((300, 20))
    bad = Ranking.from_distances(noise)
    good = Ranking.from_distances(noise - 0.5 * (np.arange(20) == relevant[:, None]))
    found = bad.interleave(good, 0, k=10)
    clicks = []
    for query in range(300):
        if relevant[query] in found.ranking[query][0]:
            clicks.append((query, relevant[query]))
    wins = found.wins(clicks)
    assert (wins == 1).sum() > 1.5 * (wins == -1).sum()
