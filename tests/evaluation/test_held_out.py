"""Held-out evaluation of metrics, and of memory, beside plain indexes and plain loops."""

import numpy as np
import pytest

from rankspace import BilinearMetric, Index, LinearMetric, Relevance, evaluate
from rankspace.evaluation.held_out import TOP, Judge, judged_share
from rankspace.evaluation.memory import WEIGHTS, memory_values
from rankspace.relevance.splits import hold_out

MEASURE = "ndcg-linear@10"
SIMILARITIES = ["cosine", "dot", "euclidean"]


def problem(seed=0, n_items=80, n_queries=40, d=6, **options):
    """Items and queries of different lengths, with graded judgments."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(n_items, d)), rng.normal(size=(n_queries, d))
    X *= rng.uniform(0.5, 3, size=(n_items, 1))
    Q *= rng.uniform(0.5, 3, size=(n_queries, 1))
    Q[20:] = Q[:20] + 0.3 * Q[20:]  # so that half of the queries resemble another
    lists = []
    for query in range(n_queries):
        nearest = np.argsort(((X - Q[query]) ** 2).sum(axis=1))
        items = np.append(nearest[[0, 3, 7]], rng.integers(n_items))
        lists.append({int(item): float(rng.integers(1, 4)) for item in items})
    return X, Q, Relevance.from_lists(lists, n_items=n_items, **options)


def split_of(X, Q, relevance):
    return hold_out(X, relevance, Q, np.arange(20), np.arange(20, len(Q)))


def evaluated(ranking, relevance, measure):
    return evaluate(ranking, relevance, measure).values[measure]


# ---------------------------------------------------------------------- scores


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("measure", [MEASURE, "map", "ndcg@3", "r@30"])
def test_scores_are_those_of_an_index(similarity, measure):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    found = Judge(split, similarity, measure).baseline()
    ranking = Index(X, similarity=similarity).rank(split.points)
    np.testing.assert_allclose(
        found.values, evaluated(ranking, split.judged, measure), rtol=1e-12
    )
    items = ranking.items.reshape(20, -1)[:, :TOP]
    np.testing.assert_array_equal(found.tops, items)
    distances = ranking.distances.reshape(20, -1)[:, :TOP]
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_map_of_the_queries_is_judged_on_the_index_of_the_baseline(similarity, rng):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    query_map = np.eye(6) + rng.normal(size=(6, 6)) / 2
    metric = BilinearMetric(query_map, np.eye(6), similarity=similarity)
    judge = Judge(split, similarity, "map")
    found = judge.score(metric)
    ranking = Index(X, metric).rank(split.points)
    np.testing.assert_allclose(found.values, evaluated(ranking, split.judged, "map"))
    items = ranking.items.reshape(20, -1)[:, :TOP]
    np.testing.assert_array_equal(found.tops, items)
    assert not np.allclose(found.values, judge.baseline().values)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_map_of_both_sides_is_judged_on_an_index_of_its_own(similarity, rng):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    maps = np.eye(6) + rng.normal(size=(2, 6, 6)) / 2
    if similarity == "dot":
        metric = BilinearMetric(*maps, similarity="dot")
    else:
        metric = LinearMetric(maps[0], similarity=similarity)
    found = Judge(split, similarity, "map").score(metric)
    ranking = Index(X, metric).rank(split.points)
    np.testing.assert_allclose(found.values, evaluated(ranking, split.judged, "map"))


def test_an_index_of_another_similarity_does_not_serve_a_map(rng):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    metric = BilinearMetric(np.eye(6), np.eye(6), similarity="dot")
    found = Judge(split, "euclidean", "map").score(metric)
    ranking = Index(X, metric).rank(split.points)
    np.testing.assert_allclose(found.values, evaluated(ranking, split.judged, "map"))


@pytest.mark.parametrize("measure", ["first-rank", "ranking-error"])
def test_errors_are_negated_so_that_larger_is_better(measure):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    found = Judge(split, "euclidean", measure).baseline()
    ranking = Index(X).rank(split.points)
    expected = evaluated(ranking, split.judged, measure)
    np.testing.assert_allclose(found.values, -expected)
    assert (expected > 0).any()
    assert (found.tops >= 0).all()


def test_lists_reach_below_the_items_that_a_query_ignores():
    """Twelve of the nearest items are ignored: the first ten that count come after them."""
    X, Q, _ = problem()
    order = np.argsort(((Q[:, None] - X) ** 2).sum(axis=2), axis=1)
    relevance = Relevance.from_lists(order[:, :14].tolist(), n_items=80)
    mask = np.zeros(80, dtype=bool)
    mask[order[25, :12]] = True
    ignored = relevance._ignoring(mask)
    split = split_of(X, Q, ignored)
    found = Judge(split, "euclidean", MEASURE).baseline()
    whole = Index(X).rank(split.points)
    np.testing.assert_allclose(found.values, evaluated(whole, split.judged, MEASURE))
    assert found.values[5] == 1.0  # the two that are left come first


def test_with_unjudged_items_left_out_only_judged_ones_are_ranked():
    X, Q, _ = problem()
    rng = np.random.default_rng(0)
    lists = [rng.choice(80, size=6, replace=False) for _ in range(40)]
    relevance = Relevance.from_lists(
        [row[:2] for row in lists],
        [row[2:] for row in lists],
        n_items=80,
        unjudged="ignore",
    )
    found = Judge(split_of(X, Q, relevance), "euclidean", "map").baseline()
    for query in range(20, 40):
        row = lists[query]
        order = row[np.argsort(((X[row] - Q[query]) ** 2).sum(axis=1))]
        hits = np.isin(order, row[:2])
        precisions = np.cumsum(hits) / np.arange(1, 7)
        assert found.values[query - 20] == pytest.approx(precisions[hits].mean())
        assert found.tops[query - 20].tolist() == [*order.tolist(), -1, -1, -1, -1]


def test_items_have_their_numbers_in_X_when_rows_are_held_out():
    X, _, _ = problem()
    y = np.arange(80) % 4
    held_out = np.arange(0, 80, 3)
    train = np.setdiff1d(np.arange(80), held_out)
    split = hold_out(X, Relevance.from_labels(y), None, train, held_out)
    found = Judge(split, "euclidean", MEASURE).baseline()
    for number, query in enumerate(held_out):
        order = train[np.argsort(((X[train] - X[query]) ** 2).sum(axis=1))]
        np.testing.assert_array_equal(found.tops[number], order[:TOP])


def test_queries_that_ignore_different_numbers_of_items_keep_their_places():
    X, Q, _ = problem()
    order = np.argsort(((Q[:, None] - X) ** 2).sum(axis=2), axis=1)
    sizes = np.resize([3, 60, 5, 20, 4], len(Q))
    lists = [order[query, :size].tolist() for query, size in enumerate(sizes)]
    mask = np.random.default_rng(0).random(80) < 0.7
    relevance = Relevance.from_lists(lists, n_items=80)._ignoring(mask)
    found = Judge(split_of(X, Q, relevance), "euclidean", MEASURE).baseline()
    for query in range(20, 40):
        judged = set(lists[query])
        left = [i for i in order[query].tolist() if not (mask[i] and i in judged)]
        assert found.tops[query - 20].tolist() == left[:TOP]


# ---------------------------------------------------------------------- judged share


def test_judged_share_counts_shown_items_that_somebody_judged():
    relevance = Relevance.from_lists([[0, 1], [2]], [[5], []], n_items=20)
    tops = np.full((2, TOP), -1)
    tops[0, :4] = [0, 5, 7, 8]
    tops[1, :2] = [2, 0]
    assert judged_share(tops, relevance) == pytest.approx(3 / 6)
    assert np.isnan(judged_share(np.full((2, TOP), -1), relevance))


def test_class_labels_judge_every_item():
    relevance = Relevance.from_labels([0, 0, 1, 1, 1])
    tops = np.full((5, TOP), -1)
    tops[:, 0] = [4, 3, 0, 1, 2]
    assert judged_share(tops, relevance) == 1.0


# ---------------------------------------------------------------------- memory


def plain_memory(X, Q, relevance, train, query, weight, similarity):
    """Scores of all documents: similarity plus what the nearest past query of each adds."""

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    scale = 1.0
    if similarity != "cosine":
        lengths = [np.mean([np.linalg.norm(v) for v in part]) for part in (Q[20:], X)]
        scale = lengths[0] * lengths[1]
    taught = {past: set(relevance.relevant(past).tolist()) for past in train}
    scores = []
    for item in range(len(X)):
        score = {
            "cosine": cosine(Q[query], X[item]),
            "dot": Q[query] @ X[item],
            "euclidean": -np.sum((Q[query] - X[item]) ** 2) / 2,
        }[similarity]
        best = 0.0
        for past in train:
            if item in taught[past]:
                best = max(best, cosine(Q[query], Q[past]) - 0.5)
        scores.append(score + weight * scale * best)
    return np.array(scores)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_memory_is_that_of_plain_loops(similarity):
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    index = Index(X, similarity=similarity)
    found = memory_values(index, split, similarity, MEASURE)
    assert found.shape == (len(WEIGHTS), 20)
    baseline = Judge(split, similarity, MEASURE).baseline().values
    np.testing.assert_allclose(found[WEIGHTS.index(0)], baseline)
    for weight, values in zip(WEIGHTS, found, strict=True):
        for query in range(20, 40):
            settings = (X, Q, relevance, range(20), query, weight, similarity)
            order = np.argsort(-plain_memory(*settings))[:10]
            items, grades = relevance.judged(query)
            gains = dict(zip(items.tolist(), grades.tolist(), strict=True))
            discounts = 1 / np.log2(np.arange(2, 12))
            shown = [gains.get(int(item), 0.0) for item in order]
            best = np.sort(grades)[::-1]
            expected = shown @ discounts / (best @ discounts[: best.size])
            assert values[query - 20] == pytest.approx(expected)
    assert not np.allclose(found[0], found[-1])


def test_memory_needs_past_queries_and_a_cut_off():
    X, Q, relevance = problem()
    split = split_of(X, Q, relevance)
    assert np.isnan(memory_values(Index(X), split, "euclidean", "map")).all()
    rows = Relevance.from_labels(np.arange(80) % 4)
    split = hold_out(X, rows, None, np.arange(60), np.arange(60, 80))
    found = memory_values(Index(split.X), split, "euclidean", MEASURE)
    assert found.shape == (len(WEIGHTS), 20)
    assert np.isnan(found).all()


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_a_zero_query_resembles_no_past_query(similarity):
    X, Q, relevance = problem()
    Q[[3, 25]] = 0
    split = split_of(X, Q, relevance)
    index = Index(X, similarity=similarity)
    found = memory_values(index, split, similarity, MEASURE)
    baseline = Judge(split, similarity, MEASURE).baseline().values
    np.testing.assert_allclose(found[:, 5], np.full(len(WEIGHTS), baseline[5]))
