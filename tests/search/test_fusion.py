"""Fusion of rankings beside plain loops over dictionaries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankspace import Ranking

HOW = ["none", "minmax", "zscore"]

runs = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(
        st.sampled_from(list("abcdefg")), st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0])
    ),
    min_size=1,
)


def normalised(scores, how):
    """The scores of one list, and that of an absent item."""
    if how == "minmax" and scores:
        low, high = min(scores), max(scores)
        scores = [0.5 if high == low else (s - low) / (high - low) for s in scores]
    if how == "zscore" and scores:
        mean = sum(scores) / len(scores)
        sd = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
        scores = [0.0 if sd < 1e-9 else (s - mean) / sd for s in scores]
    return scores, min([0.0, *scores])


def slow_fuse(runs, weights, how, k):
    """Scores by query and item, one list at a time."""
    fused = {}
    for query in dict.fromkeys(q for run in runs.values() for q in run):
        total = {}
        for run in runs.values():
            row = run.get(query, {})
            first = sorted(row, key=lambda item: (-row[item], item))[:k]
            for item in first:
                total.setdefault(item, 0.0)
        for name, run in runs.items():
            row = run.get(query, {})
            first = sorted(row, key=lambda item: (-row[item], item))[:k]
            scores, absent = normalised([row[item] for item in first], how[name])
            own = dict(zip(first, scores, strict=True))
            for item in total:
                total[item] += weights[name] * own.get(item, absent)
        fused[query] = total
    return fused


@settings(deadline=None, max_examples=150)
@given(runs, runs, st.sampled_from(HOW), st.sampled_from(HOW), st.integers(1, 8))
def test_fused_scores_are_those_of_a_plain_loop(a, b, how_a, how_b, k):
    # Rankings without a common query are refused.
    both = {"a": {"q0": {}, **a}, "b": {"q0": {}, **b}}
    weights = {"a": 1.0, "b": 0.3}
    how = {"a": how_a, "b": how_b}
    rankings = {name: Ranking.from_run(run) for name, run in both.items()}
    found = Ranking.fuse(rankings, weights, normalise=how, k=k).to_run()
    expected = slow_fuse(both, weights, how, k)
    assert set(found) == set(expected)
    for query, row in expected.items():
        assert found[query] == pytest.approx(row, abs=1e-12)


def test_reciprocal_ranks_are_summed():
    first = Ranking.from_run({"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 1.0}})
    second = Ranking.from_run({"q": {"c": 9.0, "d": 8.0}})
    found = Ranking.fuse({"first": first, "second": second}).to_run()
    assert found["q"] == pytest.approx(
        {"c": 1 / 63 + 1 / 61, "a": 1 / 61, "b": 1 / 62, "d": 1 / 62}
    )
    assert list(found["q"]) == ["c", "a", "b", "d"]
    assert found["r"] == pytest.approx({"a": 1 / 61})


def test_only_the_first_k_of_each_list_take_part():
    ranking = Ranking.from_run({"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}})
    found = Ranking.fuse({"one": ranking}, {"one": 2.0}, k=3)
    assert found.ids(0) == ["a", "b", "c"]
    np.testing.assert_allclose(found.distances, [-2.0, -1.0, 0.0])


def test_rankings_without_ids_are_matched_by_number():
    one = Ranking.from_distances([[0.1, 0.2, 0.3]])
    two = Ranking.from_distances([[0.3, 0.2, 0.1]])
    fused = Ranking.fuse({"one": one, "two": two}, {"one": 1.0, "two": 3.0})
    np.testing.assert_array_equal(fused.items, [2, 1, 0])
    short = Ranking.from_distances([[0.3, 0.2]])
    with pytest.raises(ValueError, match=r"same numbers of queries.*one 1 and 3"):
        Ranking.fuse({"one": one, "two": short})


def test_row_numbers_are_the_ids_of_a_ranking_without():
    index = Ranking.from_distances([[0.1, 0.2, 0.3]])
    run = Ranking.from_run({"0": {"2": 1.0}})
    fused = Ranking.fuse({"index": index, "run": run}, {"index": 1.0, "run": 9.0})
    assert fused.ids(0)[0] == "2"


def test_rankings_that_share_no_ids_are_refused():
    """Else the one without ids counts for nothing, and the other is the result."""
    table = [[0.1, 0.2, 0.3]]
    run = Ranking.from_run({"q": {"a": 1.0}})
    unnamed = Ranking.from_distances(table)
    with pytest.raises(ValueError, match=r"query ids of the ranking 'b'.*0 of 1 are"):
        Ranking.fuse({"a": unnamed, "b": run})
    with pytest.raises(ValueError, match=r"item ids of the ranking 'other'.*0 of 3"):
        run.interleave(Ranking.from_distances(table, query_ids=["q"]), 0)


def test_lists_are_taken_and_put_on_ids():
    ranking = Ranking.from_run({"q": {"a": 2.0, "b": 1.0}, "r": {"b": 5.0}})
    assert ranking.take_queries([1, 0]).to_run() == {
        "r": {"b": 5.0},
        "q": {"a": 2.0, "b": 1.0},
    }
    placed = ranking.on_ids(["s", "r"], ["c", "b", "a"])
    assert placed.to_run() == {"s": {}, "r": {"b": 5.0}}
    assert placed.items.tolist() == [1]
    with pytest.raises(ValueError, match=r"item_ids must have all items.*'a'"):
        ranking.on_ids(["q"], ["b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"a": 1.0}}, r"weights must have one for each ranking, a, b"),
        ({"weights": {"a": 1.0, "b": -1.0}}, r"at least 0: got -1 for 'b'"),
        ({"weights": {"a": 1.0, "b": np.nan}}, r"at least 0: got nan"),
        (
            {"weights": {"a": 1, "b": 1}, "normalise": "max"},
            r"normalise of 'a' must be",
        ),
        ({"weights": {"a": 1, "b": 1}, "normalise": {"a": "none"}}, r"'b' has none"),
        ({"k": 0}, "k must be a whole number from 1"),
    ],
)
def test_wrong_options_are_named(options, message):
    ranking = Ranking.from_run({"q": {"a": 1.0}})
    with pytest.raises(ValueError, match=message):
        Ranking.fuse({"a": ranking, "b": ranking}, **options)


def test_lists_that_cannot_be_summed_are_refused():
    endless = Ranking([0, 1], [0], [-np.inf], 1)
    with pytest.raises(ValueError, match="must be finite"):
        Ranking.fuse({"a": endless})
    twice = Ranking([0, 2], [0, 0], [0.1, 0.2], 1)
    with pytest.raises(ValueError, match="list an item once: got 0 twice"):
        Ranking.fuse({"a": twice})
    with pytest.raises(ValueError, match="at least one ranking"):
        Ranking.fuse({})
    with pytest.raises(ValueError, match=r"mapping of names to rankings.*got list"):
        Ranking.fuse([endless])
    with pytest.raises(ValueError, match=r"a Ranking each: got dict for .run."):
        Ranking.fuse({"run": {"q": {"a": 1.0}}})
    with pytest.raises(ValueError, match=r"a run must be .*: got list"):
        Ranking.from_run([1.0])


@settings(deadline=None, max_examples=50)
@given(runs, runs, st.sampled_from(HOW), st.booleans())
def test_parts_of_a_fused_score_sum_to_it(a, b, how, by_ranks):
    rankings = {
        name: Ranking.from_run({"q0": {"a": 1.0}, **run})
        for name, run in (("a", a), ("b", b))
    }
    weights = None if by_ranks else {"a": 1.0, "b": 0.3}
    fused = Ranking.fuse(rankings, weights, normalise=how)
    for query, row in fused.to_run().items():
        for item, score in row.items():
            parts = Ranking.explain_fusion(
                rankings, query, item, weights, normalise=how
            )
            assert list(parts) == ["a", "b"]
            assert sum(parts.values()) == pytest.approx(score, abs=1e-9)


def test_a_score_that_is_not_fused_has_no_parts():
    rankings = {"a": Ranking.from_run({"q": {"x": 2.0, "y": 1.0}, "p": {"z": 1.0}})}
    assert Ranking.explain_fusion(rankings, "q", "x") == {"a": 1 / 61}
    for query, item, message in [
        ("q", "z", "among the first 100 of a ranking for query 'q': got 'z'"),
        ("o", "x", "query must be one of the rankings: got 'o'"),
        ("q", "w", "item must be one of the rankings: got 'w'"),
    ]:
        with pytest.raises(ValueError, match=message):
            Ranking.explain_fusion(rankings, query, item)
