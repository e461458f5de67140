"""Fusion with runs in `tune`: beside `Ranking.fuse`, and where runs mean nothing."""

import numpy as np
import pytest

from planted import hidden, topics
from rankspace import Index, Ranking, Relevance, evaluate, rank_memory, tune
from rankspace.datasets import write_trec_run
from rankspace.evaluation.held_out import without_ignored
from rankspace.learners import families
from rankspace.tuning import signals

N = 90  # queries
MEASURE = "ndcg-linear@10"
REGS = (24.0, 2.4, 0.24)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fewer strengths and resamples, so that tests are fast."""
    monkeypatch.setattr(families, "TOTAL_REGS", REGS)
    monkeypatch.setattr(signals, "RESAMPLES", 20)


def noisy_run(relevance, seed=0, noise=1.0, scale=1.0, informative=True):
    """Scores of all items: random, and higher for relevant ones."""
    rng = np.random.default_rng(seed)
    scores = noise * rng.normal(size=(relevance.n_queries, relevance.n_items))
    for query in range(relevance.n_queries):
        if informative:
            scores[query, relevance.relevant(query)] += 2.0
    return scale * scores


def mixed(seed=0, informative=True):
    """Of three relevant items, two are near under a map, and one is known to the run only."""
    X, relevance, Q = hidden(seed, informative=informative)
    others = np.random.default_rng(seed + 50).permutation(200)[:N]
    lists = [
        [*relevance.relevant(query)[:2], other] for query, other in enumerate(others)
    ]
    return X, Relevance.from_lists(lists, n_items=200), Q


def learned(X, relevance, Q, runs, **options):
    return tune(X, relevance, queries=Q, runs=runs, random_state=0, **options)


def row(tuned, name):
    return next(r for r in tuned.report.signals if r.signal == name)


def values(ranking, relevance):
    return evaluate(ranking, relevance, MEASURE).values[MEASURE]


# ---------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("normalise", ["none", "minmax", "zscore"])
@pytest.mark.parametrize("informative", [True, False])
def test_what_was_tested_is_what_fuse_computes(normalise, informative):
    """The values of dev queries, and what each signal adds, by public functions alone."""
    X, relevance, Q = mixed(informative=informative)
    dev = np.arange(60, N)
    scores = noisy_run(relevance)
    tuned = learned(X, relevance, Q, {"a": scores}, dev=dev, normalise=normalise)
    assert tuned.decision == "ship"
    assert list(tuned.weights) == ["vectors", "a"]
    assert tuned.normalise == {"vectors": normalise, "a": normalise}
    vectors = Index(X, tuned.metric).rank(Q[dev], 100)
    run = Ranking.from_distances(-scores[dev])
    judged = relevance.take_queries(dev)
    weights = tuned.weights

    def fused(vectors, run_weight, vector_weight=1.0):
        given = {"vectors": vector_weight, "a": run_weight}
        rankings = {"vectors": vectors, "a": run}
        return values(Ranking.fuse(rankings, given, normalise=normalise), judged)

    expected = fused(vectors, weights["a"])
    np.testing.assert_allclose(tuned.report.after.values[MEASURE], expected)
    assert tuned.report.question("all").tuned == pytest.approx(expected.mean())
    without = fused(vectors, 0.0)
    assert row(tuned, "a").gain == pytest.approx((expected - without).mean())
    alone = fused(vectors, weights["a"], 0.0)
    assert row(tuned, "vectors").gain == pytest.approx((expected - alone).mean())
    if informative:
        unchanged = Index(X, similarity="cosine").rank(Q[dev], 100)
        unmapped = fused(unchanged, weights["a"])
        label = "their map (map of the queries)"
        assert row(tuned, label).gain == pytest.approx((expected - unmapped).mean())
    assert row(tuned, "a").outcome == "used"
    assert row(tuned, "a").gain_low > 0


def test_cross_validated_values_are_of_maps_and_weights_of_the_other_folds(monkeypatch):
    studies = []
    whole = signals._Study.whole
    monkeypatch.setattr(
        signals._Study, "whole", lambda s: studies.append(s) or whole(s)
    )
    X, relevance, Q = hidden()
    scores = noisy_run(relevance, noise=1.5)
    learned(X, relevance, Q, {"a": scores})
    folds = studies[0].judged.evidence.folds
    changed = scores.copy()
    changed[folds == 2] = noisy_run(relevance, seed=9)[folds == 2]
    learned(X, relevance, Q, {"a": changed})
    one, other = (s.crossed["all"][1, folds == 2] for s in studies)
    np.testing.assert_allclose(one, other, rtol=0.1)  # units are of all queries


def test_the_scale_of_a_run_is_taken_up_by_its_weight():
    X, relevance, Q = mixed()
    scores = noisy_run(relevance)
    one = learned(X, relevance, Q, {"a": scores}, normalise="none")
    other = learned(X, relevance, Q, {"a": 1000 * scores}, normalise="none")
    assert one.weights["a"] == pytest.approx(1000 * other.weights["a"])
    for name in ("gain", "gain_low", "gain_high"):
        expected = getattr(row(one, "a"), name)
        assert getattr(row(other, "a"), name) == pytest.approx(expected)


def test_runs_that_mean_nothing_are_not_used():
    n_used = 0
    for seed in range(3):
        X, relevance, Q = hidden(seed)
        run = noisy_run(relevance, seed, informative=False)
        tuned = learned(X, relevance, Q, {"noise": run})
        assert row(tuned, "noise").weight_low == 0
        used = "noise" in tuned.weights
        n_used += used
        if not used:
            alone = learned(X, relevance, Q, None)
            assert tuned.weights == {"vectors": 1.0}
            assert tuned.report.question("all") == alone.report.question("all")
            np.testing.assert_array_equal(
                tuned.metric.query_map, alone.metric.query_map
            )
    assert n_used <= 1


def test_a_run_may_help_where_no_map_does():
    X, relevance, Q = hidden(informative=False)
    tuned = learned(X, relevance, Q, {"a": noisy_run(relevance)})
    assert tuned.decision == "ship"
    assert tuned.report.sentence.startswith("Ship it (unchanged vectors + a)")
    np.testing.assert_array_equal(tuned.metric.query_map, np.eye(6))
    text = str(tuned)
    assert "Search unchanged vectors, as you do now." in text
    assert "Fuse the first 100 of each list" in text
    assert "transform" not in text
    chosen = [r.strength for r in tuned.report.path if r.chosen]
    assert chosen == ["unchanged"]


def test_a_copy_of_a_run_adds_nothing():
    X, relevance, Q = mixed()
    scores = noisy_run(relevance)
    tuned = learned(
        X, relevance, Q, {"a": scores, "b": scores, "c": noisy_run(relevance, 5)}
    )
    assert list(tuned.weights) == ["vectors", "a", "c"]
    assert row(tuned, "b").outcome == "not used: no significant gain"


def test_memory_is_the_run_of_past_queries():
    X, relevance, Q = topics()
    dev = np.arange(0, len(Q), 4)
    options = {"dev": dev, "prefer": "known", "methods": ["query"]}
    tuned = learned(X, relevance, Q, {"memory": "memory"}, **options)
    assert tuned.normalise["memory"] == "none"
    past = np.setdiff1d(np.arange(len(Q)), dev)
    run = rank_memory(Q[dev], Q[past], relevance.take_queries(past), 1000)
    vectors = Index(X, tuned.metric).rank(Q[dev], 100)
    rankings = {"vectors": vectors, "memory": run}
    fused = Ranking.fuse(rankings, tuned.weights, normalise=tuned.normalise)
    judged = relevance.take_queries(dev)
    np.testing.assert_allclose(
        tuned.report.after.values[MEASURE], values(fused, judged)
    )


def test_memory_that_harms_new_documents_is_not_used():
    """Topics whose queries are nearer to queries for other topics than to their document."""
    X, relevance, Q = topics()
    known = learned(X, relevance, Q, {"memory": "memory"}, prefer="known")
    both = learned(X, relevance, Q, {"memory": "memory"})
    assert "memory" in known.weights
    assert both.decision == "keep" or both.report.question("new").outcome != "harmed"


def test_items_that_a_fold_ignores_take_no_place():
    rng = np.random.default_rng(0)
    relevance = Relevance.from_lists(rng.integers(0, 12, (5, 3)), n_items=12)
    ignored = rng.random(12) < 0.4
    judged = relevance._ignoring(ignored)
    ranking = Ranking.from_distances(rng.normal(size=(5, 12)))
    found = without_ignored(ranking, judged)
    for query, (items, distances) in enumerate(ranking):
        own = np.isin(items, relevance.relevant(query)) & ignored[items]
        np.testing.assert_array_equal(found[query][0], items[~own])
        np.testing.assert_array_equal(found[query][1], distances[~own])
    assert without_ignored(ranking, relevance) is ranking


# ---------------------------------------------------------------------- forms of a run


def test_runs_may_be_rankings_files_mappings_or_scores(tmp_path):
    X, _, Q = hidden()
    ids = {
        "item_ids": [f"d{i}" for i in range(200)],
        "query_ids": [f"q{q}" for q in range(N)],
    }
    lists = hidden()[1]
    qrels = {f"q{q}": {f"d{i}": 1 for i in lists.relevant(q)} for q in range(N)}
    scores = noisy_run(lists)
    named = Ranking.from_distances(
        -scores, query_ids=ids["query_ids"], item_ids=ids["item_ids"]
    )
    shuffled = named.take_queries(np.random.default_rng(0).permutation(N))
    write_trec_run(shuffled, tmp_path / "a.run")
    forms = [
        scores,
        Ranking.from_distances(-scores),
        shuffled,
        named.to_run(),
        tmp_path / "a.run",
    ]
    found = [learned(X, qrels, Q, {"a": run}, **ids) for run in forms]
    for other in found[1:]:
        assert other.weights == pytest.approx(found[0].weights)
        assert other.report.signals == found[0].report.signals


def test_queries_without_a_list_lose_nothing():
    X, relevance, Q = hidden(informative=False)
    run = Ranking.from_distances(-noisy_run(relevance)).to_run()
    half = {query: row for query, row in run.items() if int(query) % 2}
    tuned = learned(X, relevance, Q, {"a": half})
    before, after = tuned.report.before, tuned.report.after
    difference = after.values[MEASURE] - before.values[MEASURE]
    assert (difference[::2] == 0).all()
    assert difference[1::2].mean() > 0.1


def named(scores, items, queries):
    return Ranking.from_distances(-scores, query_ids=queries, item_ids=items)


GOOD = np.zeros((N, 200))
ITEMS = [str(i) for i in range(200)]
QUERIES = [str(q) for q in range(N)]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (GOOD, "runs must be a mapping of names to rankings.*: got ndarray"),
        ({}, "runs must be a mapping of names to rankings"),
        ({"vectors": GOOD}, "runs must have names other than 'vectors'"),
        ({3: GOOD}, "runs must have names other than"),
        ({"a": GOOD[:80]}, "must have as many queries as were passed, 90: got 80"),
        ({"a": GOOD[:, :9]}, "must have as many items as were passed, 200: got 9"),
        ({"a": np.where(GOOD == 0, np.nan, 1)}, "must be finite, or -inf"),
        ({"a": GOOD[0]}, "the run 'a' must be a Ranking, a TREC run file"),
        ({"a": 3}, "the run 'a' must be a Ranking, a TREC run file"),
        (
            {"a": named(GOOD, [f"x{i}" for i in ITEMS], QUERIES)},
            "item ids of the run 'a' must be among those of the items: 0 of 200 are",
        ),
        (
            {"a": named(GOOD, [*ITEMS[1:], "stray"], QUERIES)},
            "199 of 200 are. Only in the run 'a': 'stray'",
        ),
        (
            {"a": named(GOOD, ITEMS, [f"x{q}" for q in QUERIES])},
            "query ids of the judged queries must be among those of the run 'a': 0 of 90",
        ),
        ({"a": np.full((N, 200), -np.inf)}, "the run 'a' must list an item"),
        (
            {"a": Ranking(np.arange(N + 1), [0] * N, [-np.inf] * N, 200)},
            "scores of rankings to fuse must be finite",
        ),
    ],
)
def test_wrong_runs_are_named_in_one_sentence(runs, message):
    X, relevance, Q = hidden()
    with pytest.raises(ValueError, match=message):
        learned(X, relevance, Q, runs)


def test_wrong_settings_are_named():
    X, relevance, Q = hidden()
    with pytest.raises(
        ValueError, match=r"runs need a measure of the first ranks.*'map'"
    ):
        learned(X, relevance, Q, {"a": GOOD}, measure="map")
    with pytest.raises(
        ValueError, match="normalise must be one of none, minmax, zscore"
    ):
        learned(X, relevance, Q, {"a": GOOD}, normalise="max")
    with pytest.raises(ValueError, match="runs need separate queries"):
        tune(X, np.arange(200) % 12, runs={"a": GOOD})
    mine = [[(q + 50) % 100] for q in range(N)]
    few = Relevance.from_lists(
        mine, [[100 + q] for q in range(N)], n_items=200, unjudged="ignore"
    )
    with pytest.raises(ValueError, match="runs need judgments where unjudged"):
        learned(X, few, Q, {"a": GOOD})
    with pytest.raises(FileNotFoundError):
        learned(X, relevance, Q, {"a": "missing.run"})
