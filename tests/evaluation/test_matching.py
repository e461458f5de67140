"""Rankings and judgments are joined by id: too few matches are an error that names the cause."""

import warnings

import numpy as np
import pytest

from rankspace import GMML, Index, ListwiseMap, Ranking, Relevance, evaluate, tune
from rankspace.evaluation.search_task import check_task

N_ITEMS = 40
N_QUERIES = 30


@pytest.fixture
def collection(rng):
    """Items on a line, queries beside them, and the two nearest of each as its judgments."""
    X = rng.permutation(float(N_ITEMS) + np.arange(N_ITEMS))[:, None]
    Q = X[:N_QUERIES] + 0.1
    return X, Q, np.argsort(np.abs(Q - X[:, 0]), axis=1)[:, :2]


def qrels(nearest, first=0, item="{}", query="{}"):
    """Judgments by name, numbered from ``first``."""
    return {
        query.format(q + first): [item.format(i + first) for i in items]
        for q, items in enumerate(nearest.tolist())
    }


def names(n, form="{}"):
    return [form.format(i) for i in range(n)]


def rank(collection, item="{}", query="{}", k=5):
    """The first of each list as a run file has them: only listed items have a number."""
    X, Q, _ = collection
    ranking = Index(X).rank(Q, k)
    listed, items = np.unique(ranking.items, return_inverse=True)
    return Ranking(
        ranking.indptr,
        items,
        ranking.distances,
        listed.size,
        names(N_QUERIES, query),
        [item.format(i) for i in listed.tolist()],
    )


def test_the_same_ids_join(collection):
    relevance = Relevance.from_qrels(qrels(collection[2]))
    assert evaluate(rank(collection), relevance, "r@5").means["r@5"] == 1


def test_lists_without_n_items_take_it_from_the_ranking():
    """Each query is a new vector beside the row that answers it, which is no query."""
    X = np.arange(4.0)[:, None]
    index, Q = Index(X), X[:4] + 0.1
    lists = [[0], [1], [2], [3]]
    whole = Relevance.from_lists(lists[:2], n_items=4)
    expected = evaluate(index.rank(Q[:2]), whole, "map").means
    assert expected == {"map": 1.0}
    for ranking in (index.rank(Q[:2]), index.blocks(Q[:2])):
        relevance = Relevance.from_lists(lists[:2])
        assert evaluate(ranking, relevance, "map").means == expected


def test_lists_whose_queries_may_be_rows_or_not_are_refused():
    """Rows that are queries are left out of their lists, which would leave out all answers."""
    index, Q = Index(np.arange(4.0)[:, None]), np.arange(4.0)[:, None] + 0.1
    run = Ranking.from_run({str(q): {str(q): 1.0} for q in range(4)})
    lists = [[0], [1], [2], [3]]
    named = Relevance.from_lists(lists, query_ids=["0", "1", "2", "3"])
    plain = Relevance.from_lists(lists)
    pairs = ((index.rank(Q), plain), (index.blocks(Q), plain), (run, named))
    for ranked, relevance in pairs:
        with pytest.raises(ValueError, match=r"both list row 0 for query 0.*n_items"):
            evaluate(ranked, relevance, "map")
    # Nobody needs to know where the lists leave out the row of the query.
    index = Index([[0.0], [1.0], [5.0], [6.0]])
    ours = Relevance.from_lists([[0, 1], [0, 1], [2, 3], [2, 3]])
    for rows in (index.rank(), index.blocks()):
        assert evaluate(rows, ours, "map").means == {"map": 1.0}


@pytest.mark.parametrize("kind", ["query", "item"])
def test_rows_from_0_do_not_join_ids_from_1(collection, kind):
    """Without this check, each list is scored by the judgments of its neighbour."""
    only = {"item": {"query": "q{}"}, "query": {"item": "d{}"}}[kind]
    relevance = Relevance.from_qrels(qrels(collection[2], 1, **only))
    X, Q, _ = collection
    ids = {"query": names(N_QUERIES), "item": names(N_ITEMS)}
    shifted = {"query": "q{}", "item": "d{}"}
    ids |= {
        other: [form.format(i + 1) for i in range(len(ids[other]))]
        for other, form in shifted.items()
        if other != kind
    }
    index = Index(X, ids=ids["item"])
    for ranking in (
        index.rank(Q, 5, query_ids=ids["query"]),
        index.blocks(Q, 5, query_ids=ids["query"]),
    ):
        message = (
            f"^{kind} ids of the judgments .* row numbers, from 0, .* count from 1"
        )
        with pytest.raises(ValueError, match=message):
            evaluate(ranking, relevance, "map")


def test_a_run_of_ids_from_1_does_not_join_judged_rows(collection):
    ranking = rank(collection, k=N_ITEMS)
    shifted = Ranking(
        ranking.indptr,
        ranking.items,
        ranking.distances,
        ranking.n_items,
        [f"q{q}" for q in range(N_QUERIES)],
        [str(i + 1) for i in range(N_ITEMS)],
    )
    relevance = Relevance.from_qrels(
        qrels(collection[2], query="q{}"), item_ids=names(N_ITEMS)
    )
    with pytest.raises(ValueError, match=r"^item ids of the ranking .* from 1"):
        evaluate(shifted, relevance, "map")


def test_row_numbers_do_not_stand_for_other_numbers(collection):
    """Ids that are numbers match some row numbers by chance."""
    relevance = Relevance.from_qrels(
        {f"q{q}": [str(37 * i) for i in items] for q, items in enumerate(collection[2])}
    )
    with pytest.raises(ValueError, match="are row numbers, from 0, for want") as told:
        evaluate(rank(collection, query="q{}"), relevance, "map")
    assert "--ids on the command line" in str(told.value)


@pytest.mark.parametrize(("n_listed", "stops"), [(27, False), (26, True)])
def test_a_few_judged_queries_may_lack_a_list(collection, n_listed, stops):
    X, Q, nearest = collection
    relevance = Relevance.from_qrels(qrels(nearest, query="q{}"))
    ranking = Index(X, ids=names(N_ITEMS)).rank(
        Q[:n_listed], 5, query_ids=names(n_listed, "q{}")
    )
    if stops:
        with pytest.raises(ValueError, match="among those of the ranking: 26 of 30"):
            evaluate(ranking, relevance, "map")
    else:
        assert evaluate(ranking, relevance, "map").n_unlisted == 3


def test_an_index_must_have_the_judged_items(collection):
    X, Q, nearest = collection
    relevance = Relevance.from_qrels(qrels(nearest, item="d{}"))
    ids = [*names(20, "d{}"), *names(21, "e{}")]
    index = Index(np.vstack((X, [[1e6]])), ids=ids)  # the last item is never listed
    query_ids = names(N_QUERIES)
    for search in (index.rank, index.blocks):
        ranking = search(Q, 5, query_ids=query_ids)
        with pytest.raises(ValueError, match=r"^item ids of the judgments must be"):
            evaluate(ranking, relevance, "map")


def test_a_collection_must_have_the_listed_items(collection):
    relevance = Relevance.from_qrels(
        qrels(collection[2][:5], item="d{}"), item_ids=names(N_ITEMS, "d{}")
    )
    ranking = rank(collection, item="d{}")
    half = [
        f"e{i}" if i % 2 else name for i, name in enumerate(ranking.item_ids.tolist())
    ]
    foreign = Ranking(
        ranking.indptr,
        ranking.items,
        ranking.distances,
        ranking.n_items,
        ranking.query_ids,
        half,
    )
    with pytest.raises(ValueError, match=r"^item ids of the ranking must be among"):
        evaluate(foreign, relevance, "map")


def test_a_run_that_finds_little_is_a_bad_run_and_no_bad_join(collection):
    X, Q, nearest = collection
    relevance = Relevance.from_qrels(qrels(nearest, item="d{}"))
    ranking = Index(-X, ids=names(N_ITEMS, "d{}")).rank(Q, 1)  # all lists name one item
    (item,) = set(ranking.items.tolist())
    run = Ranking(
        ranking.indptr,
        np.zeros_like(ranking.items),
        ranking.distances,
        1,
        names(N_QUERIES),
        [f"d{item}"],
    )
    assert evaluate(run, relevance, "r@1").means["r@1"] < 0.1


def test_a_run_does_not_join_unnamed_judgments_by_position(collection):
    """A run file numbers items as it meets them: those are no rows of anybody's matrix."""
    X, Q, nearest = collection
    relevance = Relevance.from_lists(nearest, n_items=N_ITEMS)
    expected = evaluate(Index(X).rank(Q, 5), relevance, "map").means
    run = rank(collection).to_run()
    backwards = Ranking.from_run(dict(reversed(run.items())))
    assert evaluate(backwards, relevance, "map").means == expected
    named = Ranking.from_run(rank(collection, "d{}").to_run())
    with pytest.raises(ValueError, match="row numbers, from 0, for want of names"):
        evaluate(named, relevance, "map")


def test_ids_of_one_side_only_are_not_joined_by_position(collection):
    """Judgments in an order of their own score as another matrix would, and nobody sees it."""
    X, Q, nearest = collection
    by_name = dict(reversed(qrels(nearest, item="d{}", query="q{}").items()))
    ids = {"item_ids": names(N_ITEMS, "d{}"), "query_ids": names(N_QUERIES, "q{}")}
    known = Relevance.from_qrels(by_name, **ids)
    assert evaluate(Index(X).rank(Q, 5), known, "r@5").means["r@5"] == 1
    every_item = dict.fromkeys(ids["item_ids"], 0) | dict.fromkeys(by_name["q29"], 1)
    found = {
        "items": Relevance.from_qrels(
            by_name | {"q29": every_item}, query_ids=ids["query_ids"]
        ),
        "queries": Relevance.from_qrels(by_name, item_ids=ids["item_ids"]),
    }
    for kind, relevance in found.items():
        message = f"name their {kind} in an order of their own"
        for ranking in (Index(X).rank(Q, 5), Index(X).blocks(Q, 5)):
            with pytest.raises(ValueError, match=message):
                evaluate(ranking, relevance, "map")
        for learn in (ListwiseMap(max_iter=1).fit, tune):
            with pytest.raises(ValueError, match=message):
                learn(X, relevance, queries=Q)
        index = Index(X, ids=ids["item_ids"])
        ranking = index.rank(Q, 5, query_ids=ids["query_ids"])
        assert evaluate(ranking, relevance, "r@5").means["r@5"] == 1
        kept = relevance.take_queries([1, 0])
        with pytest.raises(ValueError, match=message):
            evaluate(Index(X).rank(Q[:2], 5), kept, "map")


def test_ids_beside_vectors_must_be_those_of_the_judgments(collection):
    """Vectors in the order of their file, and judgments in another one, are no data set."""
    pd = pytest.importorskip("pandas")
    X, Q, nearest = collection
    by_name = qrels(nearest, item="d{}", query="q{}")
    items, queries = names(N_ITEMS, "d{}"), names(N_QUERIES, "q{}")
    shuffled = np.random.default_rng(0).permutation(N_ITEMS)
    frame = pd.DataFrame({"id": np.array(items)[shuffled], "v": list(X[shuffled])})
    asked = pd.DataFrame({"id": queries[::-1], "v": list(Q[::-1])})
    elsewhere = Relevance.from_qrels(by_name, item_ids=items, query_ids=queries)
    model = GMML(0.5, reg=0.01).fit(X, elsewhere, queries=Q)
    for learn in (model.fit, tune, model.score):
        with pytest.raises(ValueError, match="item_ids of the judgments must be those"):
            learn(frame, elsewhere, queries=Q)
        with pytest.raises(ValueError, match="query_ids of the judgments must be"):
            learn(X, elsewhere, queries=asked)
    with pytest.raises(ValueError, match=r"item_ids must be those that are stored"):
        check_task(frame, by_name, asked, item_ids=items, query_ids=queries[::-1])
    task, _ = check_task(frame, by_name, asked, "euclidean")
    assert evaluate(
        task.index().rank(task.queries, 5), task.relevance, "r@5"
    ).means == {"r@5": 1}


def test_judgments_must_be_a_relevance(collection):
    X, Q, nearest = collection
    with pytest.raises(
        TypeError, match=r"Relevance: got dict. Pass Relevance.from_lab"
    ):
        evaluate(Index(X).rank(Q, 5), qrels(nearest), "map")


@pytest.mark.parametrize("kind", ["query", "item"])
def test_numbers_that_may_count_from_1_are_named(collection, kind):
    """Where neither row 0 nor row n is judged, ids from 1 join as rows from 0 do."""
    X, Q, nearest = collection
    judged = qrels(nearest)
    if kind == "query":
        del judged["0"]
    else:
        judged = {q: [i for i in items if i != "0"] for q, items in judged.items()}
    index = Index(X, ids=names(N_ITEMS))
    ranking = index.rank(Q, 5, query_ids=names(N_QUERIES))
    message = f"{kind} ids of the judgments are taken as row numbers from 0"
    with pytest.warns(UserWarning, match=message):
        evaluate(ranking, Relevance.from_qrels(judged), "map")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(ranking, Relevance.from_qrels(qrels(nearest)), "map")
