"""Ordered lists: how they are built, cut, joined and refused."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankspace import Ranking, Relevance, evaluate
from reference.rankings import whole

INF = math.inf


def lists(ranking):
    """The lists as plain pairs of items and distances."""
    return [(items.tolist(), distances.tolist()) for items, distances in ranking]


@given(
    table=st.integers(0, 4).flatmap(
        lambda n: st.lists(
            st.lists(
                st.sampled_from([-1.0, 0.0, -0.0, 2.0, INF]), min_size=n, max_size=n
            ),
            min_size=1,
            max_size=4,
        )
    )
)
@settings(deadline=None, max_examples=100)
def test_from_distances_sorts_by_distance_then_index(table):
    ranking = Ranking.from_distances(table)
    for row, (items, distances) in zip(table, lists(ranking), strict=True):
        order = sorted(
            (i for i in range(len(row)) if row[i] < INF), key=lambda i: (row[i], i)
        )
        assert items == order
        assert distances == [row[i] for i in order]
    assert ranking.n_items == len(table[0])
    assert len(ranking) == ranking.n_queries == len(table)


@given(rows=st.lists(st.tuples(st.sampled_from("cab"), st.integers(0, 3)), max_size=9))
@settings(deadline=None, max_examples=100)
def test_from_groups_sorts_each_list_by_itself(rows):
    qid, distances = [name for name, _ in rows], [float(d) for _, d in rows]
    ranking = Ranking.from_groups(distances, qid)
    queries = list(dict.fromkeys(qid))
    assert ranking.query_ids.tolist() == queries
    for query, (items, found) in zip(queries, lists(ranking), strict=True):
        mine = [i for i, name in enumerate(qid) if name == query]
        assert items == sorted(mine, key=lambda i: (distances[i], i))
        assert found == sorted(distances[i] for i in mine)


def test_from_run_puts_the_best_score_first_and_orders_ties_by_name():
    ranking = Ranking.from_run(
        {"q2": {"b": 1.0, "a": 1.0, "c": 3.0}, "q1": {}, "q0": {"b": -1.0}}
    )
    assert [ranking.ids(q) for q in range(3)] == [["c", "a", "b"], [], ["b"]]
    assert [ranking.query_id(q) for q in range(3)] == ["q2", "q1", "q0"]
    assert ranking[0][1].tolist() == [-3.0, -1.0, -1.0]


def test_from_run_of_nothing():
    ranking = Ranking.from_run({})
    assert (ranking.n_queries, ranking.n_items) == (0, 0)


@given(
    run=st.dictionaries(
        st.sampled_from("xyz"),
        st.dictionaries(st.sampled_from("abcd"), st.integers(-3, 3).map(float)),
    )
)
@settings(deadline=None, max_examples=60)
def test_a_run_comes_back(run):
    assert Ranking.from_run(run).to_run() == run


def test_to_run_without_names_gives_numbers_as_text():
    run = Ranking.from_distances([[0.5, 0.25], [INF, 1.0]]).to_run()
    assert run == {"0": {"1": -0.25, "0": -0.5}, "1": {"1": -1.0}}
    assert list(run["0"]) == ["1", "0"]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 100])
def test_top_cuts_every_list(k):
    ranking = Ranking.from_distances(
        [[3.0, 1.0, 2.0], [INF, INF, INF], [INF, 5.0, INF]],
        query_ids=["a", "b", "c"],
        item_ids=["x", "y", "z"],
    )
    cut = ranking.top(k)
    assert lists(cut) == [
        (items[:k], distances[:k]) for items, distances in lists(ranking)
    ]
    assert cut.query_ids.tolist() == ["a", "b", "c"]
    assert cut.ids(0) == ["y", "z", "x"][:k]


def test_join_puts_blocks_one_after_another():
    table = np.array([[3.0, 1.0], [INF, INF], [0.0, 0.0]])
    blocks = [Ranking.from_distances(table[:1]), Ranking.from_distances(table[1:])]
    joined = Ranking.join(blocks)
    assert lists(joined) == lists(Ranking.from_distances(table))
    assert joined.query_ids is None


def test_join_keeps_names():
    names = {"item_ids": ["x", "y"]}
    joined = Ranking.join(
        [
            Ranking.from_distances([[3.0, 1.0]], query_ids=["a"], **names),
            Ranking.from_distances([[0.0, 1.0]], query_ids=["bcd"], **names),
        ]
    )
    assert joined.query_ids.tolist() == ["a", "bcd"]
    assert joined.ids(0) == ["y", "x"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Ranking.from_distances([[0.0, 1.0]]), id="without query names"),
        pytest.param(
            Ranking.from_distances([[0.0, 1.0, 2.0]], query_ids=["b"]), id="more items"
        ),
        pytest.param(
            Ranking.from_distances([[0.0, 1.0]], query_ids=["b"], item_ids=["y", "x"]),
            id="other items",
        ),
        pytest.param(
            Ranking.from_distances([[0.0, 1.0]], query_ids=["a"], item_ids=["x", "y"]),
            id="the same query",
        ),
    ],
)
def test_join_refuses_blocks_that_do_not_fit(other):
    first = Ranking.from_distances([[0.0, 1.0]], query_ids=["a"], item_ids=["x", "y"])
    with pytest.raises(ValueError, match="must"):
        Ranking.join([first, other])


def test_lists_are_reached_by_number():
    ranking = Ranking.from_distances([[1.0, 0.0], [0.0, 1.0]])
    assert ranking[-1][0].tolist() == ranking[np.int64(1)][0].tolist() == [0, 1]
    assert ranking.ids(0) == ["1", "0"]
    assert ranking.query_id(1) == "1"
    with pytest.raises(IndexError):
        ranking[2]


def test_repr_counts():
    ranking = Ranking.from_distances([[1.0, INF, 0.0]])
    assert repr(ranking) == "Ranking(1 queries, 2 entries, 3 items)"


def test_attributes_cannot_be_set():
    ranking = Ranking.from_distances([[1.0, 0.0]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        ranking.items = np.array([0, 1])


def test_the_matrix_of_the_caller_is_not_altered_or_held():
    table = np.array([[2.0, 1.0]])
    ranking = Ranking.from_distances(table)
    assert table.tolist() == [[2.0, 1.0]]
    table[:] = 7
    assert lists(ranking) == [([1, 0], [1.0, 2.0])]


# ---------------------------------------------------------------------- what is refused


def raw(indptr, items, distances, n_items=3):
    return Ranking(
        np.array(indptr), np.array(items), np.array(distances, dtype=float), n_items
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Ranking.from_distances([0.0, 1.0]),
            "distances must be a matrix: got shape (2,).",
        ),
        (
            lambda: Ranking.from_distances([[0.0, math.nan]]),
            "distances must not be NaN.",
        ),
        (
            lambda: Ranking.from_groups([math.nan, 1.0], [0, 0]),
            "distances must not be NaN.",
        ),
        (
            lambda: Ranking.from_run({"q": {"a": math.nan}}),
            "distances must not be NaN.",
        ),
        (
            lambda: Ranking.from_run({"q": ["a"]}),
            "a run must be {query: {item: score}}: got a query whose list has no scores.",
        ),
        (
            lambda: Ranking.from_groups([1.0, 2.0], [0]),
            "distances and qid must be 1-d and equally long: got shapes (2,) and (1,).",
        ),
        (
            lambda: raw([0, 2], [0, 1], [2.0, 1.0]),
            "distances must not decrease within a list: sort them first.",
        ),
        (
            lambda: raw([0, 1], [3], [0.0]),
            "items must be numbers from 0 to 2: got 3 to 3. Number rows from 0.",
        ),
        (
            lambda: raw([0, 1], [-1], [0.0]),
            "items must be numbers from 0 to 2: got -1 to -1. Number rows from 0.",
        ),
        (
            lambda: raw([0, 1], [1.5], [0.0]),
            "items must be a 1-d array of whole numbers: got float64 of shape (1,).",
        ),
        (
            lambda: raw([0, 2], [0, 1], [0.0]),
            "items and distances must be 1-d and equally long: got shapes (2,) and (1,).",
        ),
    ],
)
def test_bad_rankings(make, message):
    with pytest.raises(ValueError, match=whole(message)):
        make()


def test_distances_may_fall_from_one_list_to_the_next():
    assert lists(raw([0, 1, 1, 3], [0, 1, 2], [5.0, 1.0, 2.0])) == [
        ([0], [5.0]),
        ([], []),
        ([1, 2], [1.0, 2.0]),
    ]


@pytest.mark.parametrize("indptr", [[0, 5], [1, 2], [0, 2, 1, 2], [0, 1]])
def test_indptr_must_bound_the_lists(indptr):
    with pytest.raises(ValueError, match="indptr must"):
        raw(indptr, [0, 1], [0.0, 1.0])


@pytest.mark.parametrize(
    "names",
    [
        {"query_ids": ["a"]},
        {"query_ids": ["a", "b", "c"]},
        {"query_ids": ["a", "a"]},
        {"item_ids": ["x", "y"]},
        {"item_ids": ["x", "y", "z", "w"]},
        {"item_ids": ["x", "y", "x"]},
    ],
)
def test_names_must_be_as_many_as_what_they_name_and_distinct(names):
    """A kernel that is handed too few names reads beyond its arrays."""
    with pytest.raises(ValueError, match=f"{next(iter(names))} must"):
        Ranking.from_distances(np.zeros((2, 3)), **names)


def test_a_cut_ranking_scores_as_the_top_of_the_whole(rng):
    ranking = Ranking.from_distances(rng.random((6, 9)))
    relevance = Relevance.from_labels(
        rng.integers(0, 3, 9), query_labels=rng.integers(0, 3, 6)
    )
    whole_list = evaluate(ranking, relevance, "p@3 ndcg@3 r@3")
    cut = evaluate(ranking.top(3), relevance, "p@3 ndcg@3 r@3")
    for name, values in whole_list.values.items():
        np.testing.assert_equal(cut.values[name], values)
