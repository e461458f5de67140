"""Exact search against sorting all distances."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from rankspace import (
    AsymmetricMetric,
    BilinearMetric,
    Fields,
    Index,
    LinearMetric,
    Ranking,
)
from rankspace.search import exact
from rankspace.search import index as search


def brute(Q, X, own=None):
    """All items by distance and index, in double precision."""
    distances = cdist(np.asarray(Q, dtype=float), np.asarray(X, dtype=float))
    if own is not None:
        distances[np.arange(len(Q)), own] = np.inf
    return Ranking.from_distances(distances)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(
        found.distances, expected.distances, rtol=1e-12, atol=1e-12
    )


@st.composite
def integer_problems(draw):
    """Small integer coordinates: distances are exact, and ties are everywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(1, 300)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    offset = draw(st.sampled_from([0, 1000]))
    return (rng.integers(0, 4, (n, d)) + offset).astype(dtype), draw(st.integers(1, n))


@settings(deadline=None, max_examples=60)
@given(integer_problems(), st.booleans())
def test_order_and_ties_are_exact(problem, own):
    X, k = problem
    if own and len(X) > 1:
        expected = brute(X, X, np.arange(len(X)))
        assert_same(Index(X).rank(k=k), expected.top(k))
        assert_same(Index(X).rank(), expected)
    else:
        assert_same(Index(X).rank(X, k), brute(X, X).top(k))


@pytest.mark.parametrize("backend", ["exact", "faiss"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 1e4])
@pytest.mark.parametrize("metric", [None, LinearMetric.identity(16)])
def test_exact_far_from_the_origin(rng, backend, dtype, offset, metric):
    if backend == "faiss":
        pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    X = (rng.normal(size=(5000, 16)) + offset).astype(dtype)
    Q = (rng.normal(size=(300, 16)) + offset).astype(dtype)
    expected = brute(Q, X).top(10)
    found = Index(X, metric, backend=backend).rank(Q, 10)
    np.testing.assert_array_equal(found.items, expected.items)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_items_far_from_the_origin(rng, dtype):
    X = (rng.normal(size=(2000, 8)) + 1e4).astype(dtype)
    Q = (rng.normal(size=(20, 8)) + 1e4).astype(dtype)
    np.testing.assert_array_equal(Index(X).rank(Q).items, brute(Q, X).items)


def test_queries_in_double_precision_among_single_ones(rng):
    X = (rng.normal(size=(3000, 8)) + 1e4).astype(np.float32)
    Q = rng.normal(size=(50, 8)) + 1e4
    np.testing.assert_array_equal(Index(X).rank(Q, 5).items, brute(Q, X).top(5).items)


def test_a_query_whose_candidates_are_not_certain_is_searched_anew(rng):
    """A thousand items within rounding of each other: the products cannot tell them apart."""
    X = rng.normal(size=(4000, 6)).astype(np.float32)
    X[1000:2000] = X[0] + rng.integers(-2, 3, (1000, 6)).astype(
        np.float32
    ) * np.float32(1e-7)
    Q = X[:1] + np.float32(0.01)
    space = exact.ExactSearch(X)
    assert not space.nearest(Q, np.array([-1]), 10)[2].any()
    np.testing.assert_array_equal(Index(X).rank(Q, 10).items, brute(Q, X).top(10).items)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 6))
def test_linear_metric_ranks_as_its_distances(seed, k, rank):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(400, 5)), rng.normal(size=(7, 5))
    metric = LinearMetric(rng.normal(size=(rank, 5)))
    expected = Ranking.from_distances(metric.distances(Q, X))
    np.testing.assert_array_equal(metric.rank(Q, X, k).items, expected.top(k).items)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40))
@pytest.mark.parametrize("kind", [BilinearMetric, AsymmetricMetric])
def test_metrics_of_two_maps_rank_as_their_distances(kind, seed, k):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(400, 5)) + 10, rng.normal(size=(7, 3))
    metric = kind(
        rng.normal(size=(4, 3)),
        rng.normal(size=(4, 5)),
        query_offset=rng.normal(size=4),
    )
    expected = Ranking.from_distances(metric.distances(Q, X)).top(k)
    found = metric.rank(Q, X, k)
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)


def test_a_query_is_left_out_of_its_list_and_its_duplicates_are_not():
    X = np.array([[0.0], [0.0], [1.0]])
    ranking = Index(X).rank(k=2)
    assert [items.tolist() for items, _ in ranking] == [[1, 2], [0, 2], [0, 1]]
    assert ranking[0][1].tolist() == [0.0, 1.0]


def test_some_items_as_queries(rng):
    X = rng.normal(size=(200, 3))
    rows = np.array([5, 170, 3])
    assert_same(Index(X).rank(query_items=rows, k=7), brute(X[rows], X, rows).top(7))


def test_added_items_are_found(rng):
    X = rng.normal(size=(500, 4)).astype(np.float32)
    for metric in (None, LinearMetric(rng.normal(size=(2, 4)))):
        index = Index(X[:100], metric, ids=[f"a{i}" for i in range(100)])
        index.rank(X[:3], 4)
        index.add(X[100:], ids=[f"b{i}" for i in range(400)])
        whole = Index(X, metric)
        np.testing.assert_array_equal(
            index.rank(X[:9], 4).items, whole.rank(X[:9], 4).items
        )
        assert len(index) == 500
        assert index.rank(X[200:201], 1).ids(0) == ["b100"]


def test_ids_come_back(rng):
    X = rng.normal(size=(4, 2))
    index = Index(X, ids=list("abcd"))
    assert index.rank(X[2:3], k=1, query_ids=["q"]).to_run() == {"q": {"c": -0.0}}
    assert index.rank().query_ids.tolist() == list("abcd")


def test_columns_in_another_order_are_refused(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.normal(size=(9, 2)), columns=["a", "b"])
    index = Index(X)
    assert index.rank(X, 1).items.tolist() == list(range(9))
    message = "must have the columns of X, in their order: got 'b' in the place of 'a'"
    with pytest.raises(ValueError, match=f"Q {message}"):
        index.rank(X[["b", "a"]])
    with pytest.raises(ValueError, match=f"X {message}"):
        index.add(X[["b", "a"]])
    fields = {name: X[[name]] for name in X}
    index = Index(Fields(fields))
    with pytest.raises(ValueError, match="got 'b of 1' in the place of 'a of 1'"):
        index.rank(Fields(dict(reversed(fields.items()))))
    pytest.importorskip("pyarrow")
    for ids in (range(9), list("ABCDEFGHI")):
        index = Index(X.assign(id=ids))
        assert index.rank(X, 1).items.tolist() == list(range(9))
        with pytest.raises(ValueError, match=f"Q {message}"):
            index.rank(X[["b", "a"]])


def test_half_precision_is_read(rng):
    X = rng.normal(size=(300, 8)).astype(np.float16)
    np.testing.assert_array_equal(
        Index(X).rank(X[:9], 3).items, brute(X[:9], X).top(3).items
    )


def test_blocks_are_parts_of_the_whole(rng, monkeypatch):
    X = rng.normal(size=(700, 3))
    whole = Index(X).rank()
    blocks = list(Index(X, max_memory=1).blocks())
    assert len(blocks) > 10
    assert_same(Ranking.join(blocks), whole)
    monkeypatch.setattr(search, "QUERY_BLOCK", 7)
    np.testing.assert_array_equal(Index(X).rank(k=5).items, whole.top(5).items)


def test_integers_are_not_moved_off_their_grid(rng):
    X = rng.integers(1000, 1016, (50, 4)).astype(float)
    centre = exact.centre_of(X)
    assert centre.any()
    np.testing.assert_array_equal(centre, np.round(centre))


def test_faiss_absent_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[index\]'"):
        Index([[0.0], [1.0]], backend="faiss").rank([[0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Index([[np.nan]]), "contains NaN"),
        (lambda: Index([[np.inf]]), "contains infinity"),
        (lambda: Index(np.empty((0, 3))), "at least one row and one feature"),
        (lambda: Index([[1.0]], backend="annoy"), "backend must be 'exact' or 'faiss'"),
        (lambda: Index([[1.0]], max_memory=0), "at least 1 MiB: got 0"),
        (lambda: Index([[1.0], [2.0]], ids=["a"]), "ids must have 2 entries"),
        (lambda: Index([[1.0], [2.0]], ids=["a", "a"]), "ids must not repeat a name"),
        (lambda: Index([[1.0]]).rank([[1.0, 2.0]]), "Q must have 1 features"),
        (
            lambda: Index([[1.0]]).rank([[1.0]], k=0),
            "k must be a whole number of at least 1: got 0",
        ),
        (
            lambda: Index([[1.0]]).rank([[1.0]], query_items=[3]),
            "query_items must be whole numbers from -1 to 0: got 3",
        ),
        (
            lambda: Index([[1.0]]).rank(query_items=[-1]),
            "whole numbers from 0 to 0: got -1 to -1",
        ),
        (
            lambda: Index([[1.0]]).rank([[1.0]], query_items=[0.5]),
            "must be whole numbers",
        ),
        (
            lambda: Index([[1.0]]).rank([[1.0]], k=1.5),
            "whole number of at least 1: got 1.5",
        ),
        (
            lambda: Index([[1.0]]).rank([[1.0]], query_items=[0, 0]),
            "one entry for each of 1 queries",
        ),
        (lambda: Index([[1.0]]).add([[1.0, 2.0]]), "X must have 1 features"),
        (lambda: Index([[1.0]], ids=["a"]).add([[1.0]]), "for all items or for none"),
        (
            lambda: Index([[1.0]], ids=["a"]).add([[1.0]], ids=["a"]),
            "must not repeat a name",
        ),
        (
            lambda: Index([[1.0]], LinearMetric([[1.0, 1.0]])),
            "X must have 2 features: got 1",
        ),
        (
            lambda: Index([[1.0]], BilinearMetric([[1.0]], [[1.0]])).rank(),
            "pass the queries as Q",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_addition_changes_nothing():
    index = Index([[0.0], [1.0]], ids=["a", "b"])
    with pytest.raises(ValueError, match="must not repeat"):
        index.add([[5.0]], ids=["a"])
    assert index.rank([[5.0]]).ids(0) == ["b", "a"]


def test_reranking_all_items_is_ranking_them():
    rng = np.random.default_rng(0)
    X, Q = (
        rng.integers(0, 3, (40, 3)).astype(float),
        rng.integers(0, 3, (7, 3)).astype(float),
    )
    for metric in (
        None,
        LinearMetric(rng.normal(size=(2, 3))),
        BilinearMetric(
            rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), query_offset=[1.0, 0.5]
        ),
        AsymmetricMetric(
            rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), query_offset=[1.0, 0.5]
        ),
    ):
        index = Index(X, metric)
        own = np.array([3, -1, 5, -1, -1, 7, 0])
        full = index.rank(Q, query_items=own)
        again = index.rerank(Q, [rng.permutation(40) for _ in Q], query_items=own)
        np.testing.assert_array_equal(again.items, full.items)
        np.testing.assert_allclose(again.distances, full.distances, atol=1e-6)


def test_reranking_a_shortlist_keeps_its_items_and_names():
    X = np.arange(6.0)[:, None]
    shortlist = Index(X, ids=list("abcdef")).rank(
        [[0.2], [4.8]], 3, query_ids=["p", "q"]
    )
    found = Index(X, LinearMetric([[-2.0]]), ids=list("abcdef")).rerank(
        [[4.8], [0.2]], shortlist
    )
    assert [found.ids(0), found.ids(1)] == [["c", "b", "a"], ["d", "e", "f"]]
    assert found.query_id(1) == "q"
    assert Index(X).rerank([[0.0], [1.0]], [[], [2]]).items.tolist() == [2]


def test_reranking_matches_items_and_lists_by_id():
    """By number, the lists of a run would be those of other queries and items."""
    X, Q = np.arange(6.0)[:, None], np.array([[0.2], [4.8]])
    ids = list("fedcba")
    index = Index(X, ids=ids)
    expected = index.rank(Q, 3, query_ids=["p", "q"])
    run = Ranking.from_run(dict(reversed(expected.to_run().items())))
    reversed_ids = Index(X[::-1], ids=ids[::-1]).rank(Q, 3)
    found = index.rerank(Q, run, query_ids=["p", "q"])
    np.testing.assert_array_equal(found.items, expected.items)
    assert found.query_ids.tolist() == ["p", "q"]
    np.testing.assert_array_equal(index.rerank(Q, reversed_ids).items, expected.items)
    placed = run.on_ids(["p", "q"], ids)
    np.testing.assert_array_equal(Index(X).rerank(Q, placed).items, expected.items)
    numbers = Ranking.from_run({"1": {"5": 1.0, "4": 2.0}, "0": {"0": 1.0}})
    found = Index(X).rerank(Q, numbers, query_ids=[0, 1])
    assert found.to_run().keys() == {"0", "1"}
    assert found.ids(1) == ["5", "4"]


def test_reranking_does_not_join_a_run_by_position():
    X, Q = np.arange(6.0)[:, None], np.array([[0.2], [4.8]])
    index = Index(X, ids=list("fedcba"))
    run = Ranking.from_run({"q": {"a": 1.0}, "p": {"f": 1.0}})
    with pytest.raises(ValueError, match="in an order of their own: pass query_ids"):
        index.rerank(Q, run)
    with pytest.raises(ValueError, match="must have all items that are listed"):
        Index(X).rerank(Q, run, query_ids=["p", "q"])
    others = [f"q{number}" for number in range(9)]
    with pytest.raises(ValueError, match=r"query ids of the queries.*0 of 9 are"):
        index.rerank(np.ones((9, 1)), run, query_ids=others)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0]], "a list for each of 2 queries: got 1"),
        ([[0], [6]], "item numbers from 0 to 5: got 0 to 6"),
        ([[0], [-1]], "item numbers from 0 to 5: got -1 to 0"),
        (
            [[0.5], [1]],
            r"item numbers for each query: got an array of float64 of shape \(1,\)",
        ),
        ([["a"], [1]], r"item numbers for each query: got an array of <U1"),
        ([[[0]], [1]], r"got an array of int64 of shape \(1, 1\)"),
    ],
)
def test_reranking_refuses_bad_candidates(candidates, message):
    with pytest.raises(ValueError, match=message):
        Index(np.arange(6.0)[:, None]).rerank([[0.0], [1.0]], candidates)


# ---------------------------------------------------------------------- any unit


@pytest.mark.parametrize("k", [-700, -540, -500, -40, 40, 500, 700])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_unit_of_the_vectors_does_not_matter(k, offset, rng):
    X, Q = rng.normal(size=(60, 3)) + offset, rng.normal(size=(5, 3)) + offset
    unit = 2.0**k
    expected = brute(Q, X)
    index = Index(unit * X)
    candidates = [rng.permutation(60)[:9] for _ in Q]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        full = index.rank(unit * Q)
        near = index.rank(unit * Q, 4)
        own = index.rank(query_items=[3, 7])
        again = index.rerank(unit * Q, candidates)
    np.testing.assert_array_equal(full.items, expected.items)
    np.testing.assert_allclose(full.distances / unit, expected.distances, rtol=1e-10)
    np.testing.assert_array_equal(near.items, expected.top(4).items)
    np.testing.assert_allclose(near.distances / unit, expected.top(4).distances)
    others = brute(X[[3, 7]], X, [3, 7])
    listed = np.isfinite(others.distances)
    np.testing.assert_array_equal(own.items, others.items[listed])
    places = Index(X).rerank(Q, candidates)
    np.testing.assert_array_equal(again.items, places.items)


@pytest.mark.parametrize("k", [-100, -70, 70, 100])
def test_the_unit_of_single_precision_does_not_matter(k, rng):
    X = rng.normal(size=(60, 3)).astype(np.float32)
    unit = np.float32(2.0**k)
    for n in (None, 4):
        expected = Index(X).rank(X[:9], n)
        found = Index(unit * X).rank(unit * X[:9], n)
        np.testing.assert_array_equal(found.items, expected.items)


def test_equal_vectors_of_any_size_are_tied():
    for value in (0.0, 1e-200, 1.0, 1e200):
        ranking = Index(np.full((4, 3), value)).rank(k=2)
        np.testing.assert_array_equal(ranking.items, [1, 2, 0, 2, 0, 1, 0, 1])
        assert not ranking.distances.any()


def test_queries_far_beyond_the_items_are_refused(rng):
    X = rng.normal(size=(9, 3))
    for index, Q in ((Index(X), 1e200 * X), (Index(1e-200 * X), X)):
        with pytest.raises(ValueError, match="queries must be of about the size of"):
            index.rank(Q)
        with pytest.raises(ValueError, match="queries must be of about the size of"):
            index.rerank(Q, [[0, 1]] * 9)
    np.testing.assert_array_equal(
        Index(X).rank(1e-200 * X).items, Index(X).rank(0 * X).items
    )


def test_inner_products_out_of_range_are_refused(rng):
    X = rng.normal(size=(9, 3))
    metric = BilinearMetric(np.eye(3), np.eye(3))
    expected = Index(X, metric).rank(X).items
    for unit in (2.0**-490, 2.0**490):
        found = Index(unit * X, metric).rank(unit * X).items
        np.testing.assert_array_equal(found, expected)
    for unit in (1e-200, 1e200):
        with pytest.raises(ValueError, match="items ranked by inner products must be"):
            Index(unit * X, metric).rank(X)
        with pytest.raises(ValueError, match="queries ranked by inner products must"):
            Index(X, metric).rank(unit * X)
    assert Index(0 * X, metric).rank(0 * X).items.size == 81
