"""Fields in `tune`: their weights, what each contributes, and documents that lack one."""

import re

import numpy as np
import pytest

from rankspace import Fields, Index, Relevance, evaluate, load_metric, tune
from rankspace.learners import families

MEASURE = "ndcg-linear@10"
N = 90


@pytest.fixture(autouse=True)
def few_strengths(monkeypatch):
    """Three strengths instead of eight, so that tests are fast."""
    monkeypatch.setattr(families, "TOTAL_REGS", (24.0, 2.4, 0.24))


def data(seed=0, weights=(3.0, 0.5), lacking=0.0):
    rng = np.random.default_rng(seed)
    X = {"title": rng.normal(size=(200, 6)), "body": rng.normal(size=(200, 5))}
    Q = {"title": rng.normal(size=(N, 6)), "body": rng.normal(size=(N, 5))}
    X["title"][rng.random(200) < lacking] = np.nan
    scale = np.repeat(weights, (6, 5))
    scores = (np.asarray(Fields(Q)) * scale) @ np.asarray(Fields(X)).T
    near = np.argsort(-scores, axis=1)[:, :3]
    return X, Relevance.from_lists(near, n_items=200), Q


def learned(X, relevance, Q, **options):
    return tune(X, relevance, queries=Q, random_state=0, **options)


def score(X, metric, Q, relevance, similarity=None):
    ranking = Index(X, metric, similarity=similarity).rank(Q, 10)
    return evaluate(ranking, relevance, MEASURE).means[MEASURE]


@pytest.mark.parametrize("lacking", [0.0, 0.3])
def test_weights_of_fields_are_learned_and_each_is_left_out(lacking, tmp_path):
    X, relevance, Q = data(lacking=lacking)
    dev = np.arange(50, N)
    tuned = learned(X, relevance, Q, dev=dev)
    assert tuned.decision == "ship"
    items, queries = Fields(X), np.asarray(Fields(Q))[dev]
    judged = relevance.take_queries(dev)
    whole = score(np.asarray(items), tuned.metric, queries, judged)
    unchanged = score(np.asarray(items), None, queries, judged, "dot")
    everything = tuned.report.question("all")
    assert everything.tuned == pytest.approx(whole)
    assert everything.unchanged == pytest.approx(unchanged)
    for row, columns in zip(
        tuned.report.signals, (slice(0, 6), slice(6, 11)), strict=True
    ):
        zero_items, zero_queries = np.asarray(items).copy(), queries.copy()
        zero_items[:, columns] = 0
        zero_queries[:, columns] = 0
        without = score(zero_items, tuned.metric, zero_queries, judged)
        assert row.gain == pytest.approx(whole - without)
    title, body = tuned.report.signals
    assert (title.signal, body.signal) == ("field title", "field body")
    assert 0.75 < title.weight < 0.95
    assert title.weight + body.weight == pytest.approx(1)
    assert title.outcome == (
        f"{items.n_missing['title']} documents lack it" if lacking else ""
    )
    tuned.metric.save(tmp_path / "m")
    found = load_metric(tmp_path / "m")
    assert found.parameters["fields"] == {"title": 6, "body": 5}
    np.testing.assert_array_equal(found.item_map, np.eye(11))


def test_one_vector_of_a_query_serves_all_fields():
    rng = np.random.default_rng(0)
    X = {"title": rng.normal(size=(200, 5)), "body": rng.normal(size=(200, 5))}
    Q = rng.normal(size=(N, 5))
    near = np.argsort(-(Q @ np.asarray(Fields({"t": X["title"]})).T), axis=1)[:, :3]
    one = learned(X, near, Q)
    both = learned(Fields(X), near, Fields({"title": Q, "body": Q}))
    np.testing.assert_array_equal(one.metric.query_map, both.metric.query_map)
    assert one.report.signals[0].weight > 0.9


def test_fields_that_mean_nothing_change_nothing():
    """Shuffled documents in a field whose weight is learned."""
    for seed in range(3):
        X, relevance, Q = data(seed, weights=(1.0, 0.0))
        tuned = learned(X, relevance, Q)
        assert tuned.report.signals[1].weight < 0.1
        assert tuned.report.signals[1].gain_low <= 0 < tuned.report.signals[0].gain_low


def test_a_field_that_ranks_better_alone_is_named():
    """Judgments by one field alone; nothing can be learned that beats it."""
    rng = np.random.default_rng(0)
    X = {"good": rng.normal(size=(200, 6)), "noise": rng.normal(size=(200, 40))}
    Q = {"good": rng.normal(size=(N, 6)), "noise": rng.normal(size=(N, 40))}
    scores = (
        np.asarray(Fields({"good": Q["good"]}))
        @ np.asarray(Fields({"good": X["good"]})).T
    )
    near = np.argsort(-scores, axis=1)[:, :3]
    tuned = learned(X, near, Q)
    (note,) = [note for note in tuned.report.notes if "alone, unmapped" in note]
    assert note.startswith("Field good alone, unmapped, scores higher than this answer")
    everything = tuned.report.question("all")
    alone = evaluate(
        Index(X["good"], similarity="cosine").rank(Q["good"], 10),
        Relevance.from_lists(near, n_items=200),
        MEASURE,
    )
    gain = float(re.search(r"all queries ([+-][\d.]+)", note)[1])
    assert gain == pytest.approx(alone.means[MEASURE] - everything.tuned, abs=6e-5)


def test_runs_and_smaller_vectors_go_with_fields():
    X, relevance, Q = data(weights=(3.0, 0.0))
    rng = np.random.default_rng(0)
    runs = {"noise": rng.normal(size=(N, 200))}
    tuned = learned(X, relevance, Q, runs=runs, n_components=8)
    names = [row.signal for row in tuned.report.signals]
    assert names[:2] == ["field title", "field body"]
    assert "noise" in names
    # Fields were compared with the map, before runs had a weight.
    rivals = [note for note in tuned.report.notes if "alone, unmapped" in note]
    assert all("higher than this answer without runs (" in note for note in rivals)
    assert tuned.metric.item_map.shape == (8, 11)
    assert "Join the fields of documents and of queries first" in str(tuned)


def test_ids_beside_fields_must_be_those_of_the_judgments():
    X, _, Q = data()
    items, names = [f"d{i}" for i in range(200)], [f"q{i}" for i in range(N)]
    both = {}
    for side, (blocks, ids) in {"X": (X, items), "queries": (Q, names)}.items():
        named = {name: (block, ids) for name, block in blocks.items()}
        both[side] = Fields.from_ids(named, ids)
    by_id = {name: {items[0]: 1} for name in names}
    for kind, ids in (("item", (items[::-1], names)), ("query", (items, names[::-1]))):
        relevance = Relevance.from_qrels(by_id, item_ids=ids[0], query_ids=ids[1])
        with pytest.raises(ValueError, match=f"^{kind}_ids of the judgments must be"):
            tune(relevance=relevance, **both)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"X": {"title": np.ones((9, 2)), "body": np.ones((8, 2))}},
            "same number of rows",
        ),
        ({"queries": None}, "fields need separate queries"),
        ({"queries": {"title": np.ones((N, 6))}}, "got title 6 for title 6, body 5"),
        ({"queries": np.ones((N, 6))}, "got title 6, body 6 for title 6, body 5"),
        ({"similarity": "euclidean"}, "fields are compared by similarity 'cosine'"),
        (
            {"methods": ["separate"]},
            "fields need the method 'query' alone: got .'separate'",
        ),
    ],
)
def test_wrong_fields_are_named(changes, message):
    X, relevance, Q = data()
    options = {"X": X, "relevance": relevance, "queries": Q, **changes}
    with pytest.raises(ValueError, match=message):
        tune(**options)
