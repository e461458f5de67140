"""`tune` against a live index: equal to `tune` with all vectors, which it never reads."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankspace import Index, Relevance, tune, use_backend
from rankspace.evaluation.held_out import rank_for
from rankspace.search.live import LiveSearch, LiveVectors, SampledCorpus, in_order
from rankspace.tuning.live import live_task

N, D = 2600, 6


class Store:
    """An exact live index of rows, which counts what is asked of it."""

    def __init__(self, X, similarity="cosine"):
        self.X = X
        self.similarity = similarity
        self.exact = Index(X, similarity=similarity)
        self.read = set()

    def search(self, Q, k):
        ranking = self.exact.rank(Q, min(k, len(self.X)))
        lists = list(ranking)
        return [items for items, _ in lists], [-keys for _, keys in lists]

    def fetch(self, ids):
        self.read.update(ids)
        return self.X[np.array(ids)]

    def sample(self, n, seed):
        if n >= len(self.X):
            return self.X
        rows = np.random.default_rng(seed).choice(len(self.X), n, replace=False)
        return self.X[rows]


def problem(n, similarity="cosine"):
    """Vectors, queries, and what is near by half of the features."""
    rng = np.random.default_rng(3)
    X, Q = rng.normal(size=(n, D)), rng.normal(size=(60, D))
    if similarity == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    what_matters = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    near = np.argsort(-(Q * what_matters) @ X.T, axis=1)[:, :4]
    near[20:40, :2] = near[:20, :2]  # queries that share documents, so there are groups
    return X, Q, near


OPTIONS = {"n_folds": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("n", "similarity"), [(N, "cosine"), (200, "cosine"), (N, "dot")]
)
def test_it_is_tune_with_all_vectors(n, similarity):
    X, Q, near = problem(n, similarity)
    judged = Relevance.from_lists(near, n_items=n)
    whole = tune(X, judged, queries=Q, similarity=similarity, **OPTIONS)
    store = Store(X, similarity)
    live = tune(store, judged, queries=Q, **OPTIONS)
    assert live.decision == whole.decision != "keep"
    assert live.report.similarity == similarity
    np.testing.assert_allclose(live.metric.query_map, whole.metric.query_map, atol=1e-6)
    for name in ("all", "known", "new"):
        ours, theirs = live.report.question(name), whole.report.question(name)
        if similarity == "dot":
            # The unit of the memory is the mean length of vectors, here of a sample.
            ours, theirs = ours._replace(memory=0), theirs._replace(memory=0)
        np.testing.assert_allclose(ours[1:9], theirs[1:9], atol=1e-6)
    shown, expected = live.report.rankings[1], whole.report.rankings[1]
    assert shown.ids(5) == [str(n) for n in expected.items[50:60]]
    np.testing.assert_allclose(shown.distances, expected.distances, atol=1e-6)
    assert (n == 200) == (len(store.read) == n)


@pytest.mark.parametrize("unjudged", ["irrelevant", "ignore"])
def test_dev_queries_and_ignored_documents(unjudged):
    X, Q, near = problem(N)
    far = np.random.default_rng(0).integers(N, size=(60, 6))
    judged = Relevance.from_lists(
        near, [np.setdiff1d(*rows) for rows in zip(far, near, strict=True)], n_items=N
    )
    judged = replace(judged, unjudged=unjudged)
    options = {"queries": Q, "dev": np.arange(30), **OPTIONS}
    whole = tune(X, judged, similarity="cosine", **options)
    live = tune(Store(X), judged, **options)
    assert live.decision == whole.decision
    ours, theirs = live.report.question("all"), whole.report.question("all")
    np.testing.assert_allclose(ours[1:7], theirs[1:7], atol=1e-6)


def test_judgments_in_every_form_are_the_same():
    X, Q, near = problem(200)
    names = [f"q{q}" for q in range(60)]
    by_id = {
        name: {int(n): 1 for n in row} for name, row in zip(names, near, strict=True)
    }
    rows = [(q, n, 1) for q, row in by_id.items() for n in row]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "grade"])
    values = []
    for judged in (near, by_id, frame, Relevance.from_qrels(by_id, query_ids=names)):
        tuned = tune(Store(X), judged, queries=Q, query_ids=names, **OPTIONS)
        values.append(tuned.report.before.means)
    table = pd.DataFrame({"id": names, "vector": list(Q)})
    values.append(tune(Store(X), by_id, queries=table, **OPTIONS).report.before.means)
    assert values[1:] == values[:-1]
    with pytest.raises(ValueError, match="query_ids must be those that are stored"):
        tune(Store(X), by_id, queries=table, query_ids=names[::-1])
    judged = Relevance.from_qrels(by_id, query_ids=names[::-1])
    with pytest.raises(ValueError, match="query_ids of the judgments must be those"):
        tune(Store(X), judged, queries=table)


def test_documents_of_equal_vectors_are_told_apart_by_row():
    X = np.eye(3)[[0, 1, 1, 2]]
    documents = SampledCorpus(Store(X), X)
    assert documents.numbers([2, 1, 0]).tolist() == [2, 1, 0]
    documents.index = Store(2 * X)
    with pytest.raises(ValueError, match="does not change"):
        documents.numbers([3])


class Named(Store):
    """Documents by names, which count up with the rows."""

    def search(self, Q, k):
        ids, scores = super().search(Q, k)
        return [[f"d{item}" for item in row] for row in ids], scores

    def fetch(self, ids):
        return self.X[[int(name[1:]) for name in ids]]


def test_a_judged_document_keeps_its_row_beside_one_of_the_same_vector():
    """Else folds of documents would be others than those of all vectors."""
    X, Q, near = problem(200)
    twin = int(near[0, 0])
    # Far from all queries: searches find neither of the last two pairs.
    far = -np.repeat(Q.mean(axis=0)[None], 2, axis=0) * [[1.0], [1.0001]]
    X = np.concatenate((X, X[[twin]], far, far))
    near = np.where(near == twin, 200, near)
    near[0, 1:3] = 203, 204
    judged = [[f"d{item}" for item in row] for row in near]
    task, _ = live_task(Named(X), judged, Q, "cosine", "ndcg@10", None, 0)
    by_row = Relevance.from_lists(near, n_items=len(X))
    np.testing.assert_array_equal(task.relevance.items, by_row.items)


def test_numbers_follow_ids_that_count():
    assert in_order(["d10", "d9", "d2"]) == ["d2", "d9", "d10"]


def test_lists_are_as_long_as_a_measure_needs_without_ignored_documents():
    X, Q, near = problem(N)
    store = Store(X)
    documents = LiveVectors(store, range(N), X)
    search = LiveSearch(store, documents, "cosine")
    judged = Relevance.from_lists(near, n_items=N)._ignoring(np.arange(N) % 2 == 0)
    ours = rank_for(search, Q, judged, "ndcg@10")
    theirs = rank_for(store.exact, Q, judged, "ndcg@10")
    np.testing.assert_array_equal(ours.items, theirs.items)


# ---------------------------------------------------------------------- refused


def refused(match, index=None, judged=None, **options):
    X, Q, near = problem(60)
    settings = {"queries": Q, **OPTIONS, **options}
    with pytest.raises(ValueError, match=match):
        tune(index or Store(X), near if judged is None else judged, **settings)


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ({"methods": ["shared"]}, "learns a map of the queries"),
        ({"n_components": 2}, "n_components cannot be used with a live index"),
        ({"runs": {"memory": "memory"}}, "runs cannot be used with a live index"),
        ({"item_ids": ["a"]}, "item_ids cannot be used with a live index"),
        ({"queries": None}, "pass queries"),
        ({"measure": "map"}, "a measure of the first ranks"),
        ({"measure": "ndcg@10 map"}, "one measure"),
        ({"similarity": "euclidean"}, "cosine, dot"),
        ({"queries": np.ones((60, 2))}, "as wide as the vectors of the index, 6"),
    ],
)
def test_what_takes_the_whole_corpus_stops_with_a_sentence(option, match):
    refused(match, **option)


def test_judgments_that_do_not_fit_are_refused():
    refused("each of 60 queries: got 2", judged=[[1], [2]])
    refused("need query_ids", judged={"q": ["d"]})
    refused("which are numbers: got 'd'", judged=[["d"]] * 60)
    labels = Relevance.from_labels(np.arange(60) % 2, query_labels=np.arange(60) % 2)
    refused("judgments of single documents", judged=labels)
    with pytest.raises(TypeError, match=r"^judgments must be a Relevance"):
        tune(Store(problem(60)[0]), None, queries=np.ones((60, D)))


class Wrong(Store):
    """A store that answers wrongly."""

    def __init__(self, X, **wrong):
        super().__init__(X)
        self.wrong = wrong

    def search(self, Q, k):
        ids, scores = super().search(Q, k)
        return self.wrong.get("search", lambda *found: found)(ids, scores)

    def fetch(self, ids):
        return self.wrong.get("fetch", lambda found: found)(super().fetch(ids))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"search": lambda ids, s: (ids, [-row for row in s])}, "larger is nearer"),
        ({"search": lambda ids, s: (ids[1:], s)}, "must answer each of 60"),
        ({"search": lambda ids, s: (ids, [row[1:] for row in s])}, "a score that is"),
        ({"search": lambda ids, s: ([[]] * 60, [[]] * 60)}, "none for any query"),
        ({"search": lambda ids, s: ([row[::-1] for row in ids], s)}, "another order"),
        ({"search": lambda ids, s: None}, "two sequences, .*: got NoneType"),
        ({"search": lambda ids, s: (3, 4)}, "two sequences, .*: got tuple"),
        (
            {"search": lambda ids, s: ([[[i] for i in row] for row in ids], s)},
            "int or str",
        ),
        (
            {"search": lambda ids, s: (ids, [None] * 60)},
            "scores of search must be num|a score",
        ),
        (
            {"search": lambda ids, s: (ids, [np.inf * abs(row) for row in s])},
            "a score that is",
        ),
        ({"fetch": lambda found: np.full(found.shape, "x")}, "fetch must be numbers"),
        ({"fetch": lambda found: found[1:]}, "a vector for each of"),
        ({"fetch": lambda found: [found[0], found[0][1:]]}, "as many in each row"),
        ({"fetch": lambda found: np.nan * found}, "must be in the index"),
    ],
)
def test_a_store_that_answers_wrongly_is_named(wrong, match):
    refused(match, index=Wrong(problem(60)[0], **wrong))


def test_an_empty_store_is_refused():
    empty = Store(problem(60)[0])
    empty.sample = lambda n, seed: np.zeros((0, D))
    refused("it gave none|at least", index=empty)


def test_a_cluster_is_refused():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.Client(
            processes=False, n_workers=1, dashboard_address=None
        ) as client,
        use_backend(client),
    ):
        refused("tune it without a cluster")
