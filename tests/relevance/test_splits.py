"""Splits: folds of queries and of groups, and what a held-out query may know, by brute force."""

from dataclasses import replace

import numpy as np
import pytest

from rankspace import Index, Relevance, evaluate
from rankspace.evaluation.held_out import Judge
from rankspace.learners.listwise import SIDES
from rankspace.learners.solvers.smooth.pair_loss import (
    IRRELEVANT,
    LEFT_OUT,
    RELEVANT,
    Listwise,
)
from rankspace.relevance.splits import (
    fold_groups,
    group_queries,
    hold_out,
    only_trainable,
    share_known,
)

N_ITEMS = 60
MEASURE = "ndcg-linear@10"


def vectors(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def scattered(seed=0, n_queries=60, n_items=120):
    """Queries of one to three graded items, few of them shared."""
    rng = np.random.default_rng(seed)
    lists = []
    for _ in range(n_queries):
        items = rng.choice(n_items, size=rng.integers(1, 4), replace=False)
        lists.append({int(i): float(rng.integers(0, 3)) for i in items})
    return Relevance.from_lists(lists, n_items=n_items)


def giant(n_queries=50, n_items=N_ITEMS, **options):
    """Queries of six popular items each: one group holds nearly all; ten have an own item."""
    rng = np.random.default_rng(1)
    lists = [rng.choice(n_items - 10, size=6, replace=False) for _ in range(n_queries)]
    lists += [[n_items - 10 + number] for number in range(10)]
    return Relevance.from_lists(lists, n_items=n_items, **options)


def shared_groups(relevance):
    """Union-find over queries, by all pairs: they share a relevant item, or are one."""
    own = []
    for query in range(relevance.n_queries):
        items = set(relevance.relevant(query).tolist())
        if relevance.query_items[query] >= 0:
            items.add(int(relevance.query_items[query]))
        own.append(items)
    group = list(range(relevance.n_queries))
    for a in range(relevance.n_queries):
        for b in range(a):
            if own[a] & own[b]:
                group = [group[a] if g == group[b] else g for g in group]
    return group


def same_partition(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.array_equal(found[:, None] == found, expected[:, None] == expected)


# ---------------------------------------------------------------------- groups


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_connected_by_relevant_items_only(seed):
    relevance = scattered(seed)
    found = group_queries(relevance)
    assert same_partition(found, shared_groups(relevance))
    assert 1 < np.unique(found).size < relevance.n_queries
    assert np.unique(found).tolist() == list(range(found.max() + 1))


def test_queries_that_are_rows_belong_to_the_group_of_their_item():
    lists = [[1], [], [3], [], [5], [7]]
    relevance = Relevance.from_lists(lists, n_items=9, query_rows=[0, 1, 2, 3, 4, 7])
    assert same_partition(group_queries(relevance), [0, 0, 1, 1, 2, 3])
    assert same_partition(group_queries(relevance), shared_groups(relevance))
    separate = Relevance.from_lists(lists, n_items=9)
    assert same_partition(group_queries(separate), np.arange(6))


def test_classes_are_groups():
    y = np.array([2, 0, 1, 1, 0, 2, 2])
    assert same_partition(group_queries(Relevance.from_labels(y)), y)


# ---------------------------------------------------------------------- folds of groups


@pytest.mark.parametrize("make", [scattered, giant])
@pytest.mark.parametrize("n_folds", [3, 5])
def test_no_training_query_shares_a_relevant_item_with_a_held_out_query(make, n_folds):
    relevance = make()
    Q = vectors(relevance.n_queries)
    folds = fold_groups(relevance, n_folds, seed=3)
    assert np.unique(folds.queries).tolist() == list(range(n_folds))
    for fold in range(n_folds):
        split = folds.split(vectors(relevance.n_items), relevance, Q, fold)
        taught = set()
        for query in range(split.relevance.n_queries):
            taught |= set(split.relevance.relevant(query).tolist())
        asked = 0
        for query in range(split.judged.n_queries):
            mine = split.judged.relevant(query)
            asked += mine.size
            assert taught.isdisjoint(mine.tolist())
        assert asked
        assert not share_known(split.relevance, split.judged)[
            split.judged.n_relevant > 0
        ].any()


def test_groups_stay_together_and_folds_are_of_equal_size():
    relevance = scattered()
    folds = fold_groups(relevance, 4, seed=0)
    assert (folds.items == -1).all()
    assert same_partition(folds.groups, group_queries(relevance))
    for group in np.unique(folds.groups):
        assert np.unique(folds.queries[folds.groups == group]).size == 1
    sizes = np.bincount(folds.queries, minlength=4)
    assert sizes.max() - sizes.min() <= np.bincount(folds.groups).max()
    assert not np.array_equal(folds.queries, fold_groups(relevance, 4, 1).queries)
    again = fold_groups(relevance, 4, seed=0)
    np.testing.assert_array_equal(folds.queries, again.queries)


@pytest.mark.parametrize("unlabelled", [None, 3])
@pytest.mark.parametrize("sizes", [(20, 20, 20), (50, 5, 5)])
def test_classes_are_never_cut(sizes, unlabelled):
    y = np.repeat(np.arange(3), sizes)
    X = vectors(60)
    relevance = Relevance.from_labels(y)
    if unlabelled is not None:  # the last rows have no label, and are items only
        X = np.concatenate((X, vectors(7, seed=1)))
        relevance = Relevance.from_labels(np.append(y, [3] * 7), unlabelled=3)
    assert relevance.has_classes
    folds = fold_groups(relevance, 5, seed=0)
    assert (folds.items == -1).all()
    for name in range(3):
        assert np.unique(folds.queries[y == name]).size == 1
    for fold in np.unique(folds.queries):
        split = folds.split(X, relevance, None, fold)
        held_out = np.flatnonzero(folds.queries == fold)
        rows = np.setdiff1d(np.arange(len(X)), held_out)
        np.testing.assert_array_equal(split.rows, rows)
        assert set(y[rows[rows < 60]]).isdisjoint(y[held_out])
        assert split.corpus is X
        np.testing.assert_array_equal(split.points, X[held_out])
        np.testing.assert_array_equal(split.X, X[split.rows])
        for query in range(split.judged.n_queries):
            item = split.judged.query_items[query]
            others = np.flatnonzero((y == y[item]) & (np.arange(60) != item))
            np.testing.assert_array_equal(split.judged.relevant(query), others)


# ---------------------------------------------------------------------- a group that is cut


def cut(**options):
    relevance = giant(**options)
    folds = fold_groups(relevance, 5, seed=0)
    whole = np.arange(relevance.n_queries) < 50
    return relevance, folds, whole


def test_a_group_larger_than_a_fold_is_cut_by_query_and_by_item():
    relevance, folds, whole = cut()
    assert np.bincount(folds.queries[whole]).tolist() == [10] * 5
    popular = np.unique(relevance.items[relevance.items < N_ITEMS - 10])
    sizes = np.bincount(folds.items[popular], minlength=5)
    assert sizes.max() - sizes.min() <= 1
    assert (folds.items[N_ITEMS - 10 :] == -1).all()
    # Each query that was cut off stands for itself in standard errors.
    assert np.unique(folds.groups).size == relevance.n_queries


@pytest.mark.parametrize("side", SIDES)
def test_pairs_across_the_cut_teach_nothing(side):
    """States, and a twin whose loss is a plain loop over the pairs that remain."""
    relevance, folds, _ = cut()
    X, Q = vectors(N_ITEMS), vectors(relevance.n_queries, seed=1)
    split = only_trainable(folds.split(X, relevance, Q, 2))
    train = np.flatnonzero(folds.queries != 2)
    loss = SIDES[side](X, split.queries, split.relevance, 64)
    states = loss.states(np.arange(len(split.queries)))
    expected = []
    for query in train:
        row = np.full(N_ITEMS, IRRELEVANT)
        for item in relevance.relevant(query):
            row[item] = LEFT_OUT if folds.items[item] == 2 else RELEVANT
        if (row == RELEVANT).any():
            expected.append(row)
    np.testing.assert_array_equal(states, expected)
    assert (states == LEFT_OUT).any()
    value, _ = loss.value_and_gradient(np.eye(4), Listwise(split.relevance, [0.5]))
    total = 0.0
    for query, row in zip(split.queries, expected, strict=True):
        far = ((query - X) ** 2).sum(axis=1) if side == "shared" else -2 * X @ query
        weights = np.where(row == LEFT_OUT, 0.0, np.exp(-far / 0.5))
        near = row == RELEVANT
        total += np.mean(np.log(weights.sum()) + far[near] / 0.5) - np.log(near.sum())
    assert value == pytest.approx(total / len(expected))


def test_held_out_queries_are_judged_on_held_out_items_only():
    """NDCG by brute force, with the documents of the other side removed from the ranking."""
    relevance, folds, _ = cut()
    X, Q = vectors(N_ITEMS), vectors(relevance.n_queries, seed=1)
    n_ignored = 0
    for fold in range(5):
        split = folds.split(X, relevance, Q, fold)
        found = Judge(split, "dot", MEASURE).baseline().values
        for value, query in zip(
            found, np.flatnonzero(folds.queries == fold), strict=True
        ):
            mine = relevance.relevant(query)
            kept = mine[np.isin(folds.items[mine], [-1, fold])]
            n_ignored += mine.size - kept.size
            if not kept.size:
                assert np.isnan(value)
                continue
            order = np.argsort(-(X @ Q[query]))
            order = order[~np.isin(order, np.setdiff1d(mine, kept))][:10]
            discounts = 1 / np.log2(np.arange(2, 12))
            best = discounts[: kept.size].sum()
            expected = discounts[np.isin(order, kept)].sum() / best
            assert value == pytest.approx(expected)
    assert n_ignored > 100


def test_ignored_pairs_are_neither_relevant_nor_irrelevant():
    relevance, folds, _ = cut()
    ignored = relevance._ignoring(folds.items == 1)
    for query in range(relevance.n_queries):
        mine = relevance.relevant(query)
        kept = mine[folds.items[mine] != 1]
        np.testing.assert_array_equal(ignored.relevant(query), kept)
        others = np.setdiff1d(np.arange(N_ITEMS), mine)
        np.testing.assert_array_equal(ignored.irrelevant(query), others)
        assert ignored.n_relevant[query] == kept.size
        assert ignored.n_irrelevant[query] == others.size
    assert not ignored.has_classes
    assert not relevance.has_classes
    untouched = relevance._ignoring(np.zeros(N_ITEMS, dtype=bool))
    assert untouched is relevance


def test_ignoring_items_of_rows_counts_without_their_own():
    y = np.arange(20) % 4
    relevance = Relevance.from_labels(y)._ignoring(np.arange(20) < 6)
    for query in range(20):
        np.testing.assert_array_equal(
            relevance.n_relevant[query], relevance.relevant(query).size
        )
        np.testing.assert_array_equal(
            relevance.n_irrelevant[query], relevance.irrelevant(query).size
        )


def test_candidates_that_nobody_judged_stay_irrelevant_when_others_are_ignored():
    relevance = Relevance(
        5,
        rows=np.arange(2),
        indptr=np.array([0, 3, 5]),
        items=np.array([0, 1, 2, 1, 3]),
        grades=np.array([1.0, np.nan, 1.0, np.nan, 1.0]),
        query_items=np.full(2, -1),
        background="unjudged",
    )
    ignored = relevance._ignoring(np.arange(5) == 2)
    assert ignored.irrelevant(0).tolist() == [1, 3, 4]
    assert ignored.irrelevant(1).tolist() == relevance.irrelevant(1).tolist()
    assert ignored.n_irrelevant.tolist() == [3, 4]


def test_unjudged_items_that_leave_the_list_still_leave_it():
    """With unjudged="ignore" only judged items take part, before and after."""
    relevance = Relevance.from_lists(
        [[0, 1], [1, 2]], [[3, 4], [5]], n_items=8, unjudged="ignore"
    )
    ignored = relevance._ignoring(np.isin(np.arange(8), [1, 4]))
    assert [ignored.relevant(q).tolist() for q in (0, 1)] == [[0], [2]]
    assert [ignored.irrelevant(q).tolist() for q in (0, 1)] == [[3], [5]]
    assert ignored.n_irrelevant.tolist() == [1, 1]


def test_rows_that_are_held_out_are_no_items_of_training():
    """Queries that are rows and name rows: held-out ones leave the items, others are cut."""
    rng = np.random.default_rng(0)
    lists = [rng.choice(40, size=4, replace=False) for _ in range(40)]
    lists = [row[row != query].tolist() for query, row in enumerate(lists)]
    relevance = Relevance.from_lists(lists)
    X = vectors(40)
    folds = fold_groups(relevance, 5, seed=0)
    for fold in range(5):
        held_out = np.flatnonzero(folds.queries == fold)
        split = folds.split(X, relevance, None, fold)
        np.testing.assert_array_equal(split.rows, np.setdiff1d(np.arange(40), held_out))
        for query, row in enumerate(split.rows):
            taught = split.rows[split.relevance.relevant(query)]
            mine = np.array(lists[row])
            kept = mine[(folds.items[mine] != fold) & ~np.isin(mine, held_out)]
            np.testing.assert_array_equal(taught, np.sort(kept))
        values = Judge(split, "euclidean", "map").baseline().values
        for value, query in zip(values, held_out, strict=True):
            mine = np.array(lists[query])
            kept = mine[folds.items[mine] == fold]
            order = np.argsort(np.linalg.norm(X - X[query], axis=1), kind="stable")
            dropped = np.append(np.setdiff1d(mine, kept), query)
            hits = np.isin(order[~np.isin(order, dropped)], kept)
            if not kept.size:
                assert np.isnan(value)
                continue
            precisions = np.cumsum(hits) / np.arange(1, hits.size + 1)
            assert value == pytest.approx(precisions[hits].mean())


def test_an_item_that_is_held_out_is_no_training_query():
    """Queries that are rows of a large group: what is new was not learned from as a query."""
    rng = np.random.default_rng(0)
    lists = [np.setdiff1d(rng.choice(60, size=4), query) for query in range(40)]
    relevance = Relevance.from_lists(lists, n_items=60, query_rows=np.arange(40) + 20)
    folds = fold_groups(relevance, 5, seed=0)
    held_out = np.flatnonzero(folds.items[20:] >= 0)
    assert held_out.size > 20
    assert (folds.items[:20] >= 0).any()
    np.testing.assert_array_equal(folds.items[20:][held_out], folds.queries[held_out])


# ---------------------------------------------------------------------- known and new


@pytest.mark.parametrize("separate", [True, False])
def test_known_mixed_and_new_queries(separate):
    relevance = scattered(2)
    X, Q = vectors(120), vectors(60, seed=1)
    if not separate:
        relevance = replace(relevance, query_items=np.arange(60, 120)[::-1].copy())
        Q = None
    train, held_out = np.arange(35), np.arange(35, 60)
    split = hold_out(X, relevance, Q, train, held_out)
    found = share_known(split.relevance, split.judged)
    gone = set() if separate else set(relevance.query_items[held_out].tolist())
    taught = set()
    for query in train:
        taught |= set(relevance.relevant(query).tolist())
    kinds = set()
    for share, query in zip(found, held_out, strict=True):
        mine = set(relevance.relevant(query).tolist()) - gone
        if not mine:
            assert np.isnan(share)
            continue
        assert share == pytest.approx(len(mine & taught) / len(mine))
        kinds.add("known" if share == 1 else "new" if share == 0 else "mixed")
    assert kinds == {"known", "mixed", "new"}


def test_held_out_rows_leave_the_items_and_the_judgments():
    y = np.repeat(np.arange(6), 5)
    X = vectors(30)
    held_out = np.arange(0, 30, 4)
    train = np.setdiff1d(np.arange(30), held_out)
    split = hold_out(X, Relevance.from_labels(y), None, train, held_out)
    np.testing.assert_array_equal(split.X, X[train])
    np.testing.assert_array_equal(split.points, X[held_out])
    assert split.relevance.n_items == split.judged.n_items == train.size
    for query, row in enumerate(held_out):
        np.testing.assert_array_equal(
            split.rows[split.judged.relevant(query)], train[y[train] == y[row]]
        )
    assert (share_known(split.relevance, split.judged) == 1).all()
    ranking = Judge(split, "euclidean", MEASURE).baseline()
    assert np.isin(ranking.tops[ranking.tops >= 0], train).all()


def test_evaluation_of_nothing_relevant_is_no_value():
    relevance = Relevance.from_lists([[0], [1]], n_items=4)
    ranking = Index(vectors(4)).rank(vectors(2), 4)
    values = evaluate(ranking, relevance._ignoring(np.arange(4) == 1), MEASURE)
    assert np.isnan(values.values[MEASURE]).tolist() == [False, True]
