"""What `tune` promises: gains that hold for new queries and documents, or the vectors unchanged."""

import itertools
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from planted import hidden, topics, unit_length
from rankspace import BilinearMetric, Index, LinearMetric, Relevance, evaluate, tune
from rankspace._engine.parallel import Threads, check_interruption, interrupted_by
from rankspace.evaluation import cross_validation
from rankspace.evaluation.significance import ClusteredMean
from rankspace.learners import families
from rankspace.learners.solvers.smooth.pair_loss import Listwise
from rankspace.tuning import trials
from rankspace.tuning.selection import Verdict

MEASURE = "ndcg-linear@10"
REGS = (24.0, 2.4, 0.24)


@pytest.fixture(autouse=True)
def few_strengths(monkeypatch):
    """Three strengths instead of eight, so that tests are fast."""
    monkeypatch.setattr(families, "TOTAL_REGS", REGS)


def classes(n_classes=12, per_class=10, d=8, seed=0):
    """Labelled rows: classes are apart in half of the features, the others are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_classes * per_class) % n_classes
    means = rng.normal(size=(n_classes, d)) * np.repeat([1.0, 0.0], d // 2)
    X = means[y] + rng.normal(size=(y.size, d)) * np.repeat([0.3, 2.0], d // 2)
    return X, y


def learned(X, relevance, Q=None, **options):
    return tune(X, relevance, queries=Q, random_state=0, **options)


def row(tuned, label):
    return tuned.report.question(label)


def mean_score(X, metric, Q, relevance):
    return evaluate(Index(X, metric).rank(Q, 10), relevance, MEASURE).means[MEASURE]


# ---------------------------------------------------------------------- gains


def test_a_hidden_map_is_found_and_helps_fresh_queries():
    X, relevance, Q = hidden(n_queries=200)
    known, fresh = np.arange(100), np.arange(100, 200)
    tuned = learned(X, relevance.take_queries(known), Q[known])
    assert (tuned.decision, tuned.improved) == ("ship", True)
    assert isinstance(tuned.metric, BilinearMetric)
    assert tuned.metric.similarity == "cosine"
    judged = relevance.take_queries(fresh)
    before = evaluate(Index(X, similarity="cosine").rank(Q[fresh], 10), judged, MEASURE)
    gain = mean_score(X, tuned.metric, Q[fresh], judged) - before.means[MEASURE]
    assert gain > 0.1
    estimate = row(tuned, "all")
    assert estimate.low - 0.05 < gain < estimate.high + 0.05
    assert estimate.unchanged == pytest.approx(before.means[MEASURE], abs=0.1)
    assert estimate.difference == pytest.approx(estimate.tuned - estimate.unchanged)


def test_permuted_judgments_keep_the_vectors():
    decisions = []
    for seed in range(10):
        X, relevance, Q = hidden(seed, informative=False)
        tuned = tune(X, relevance, queries=Q, random_state=seed)
        decisions.append(tuned.decision)
        if tuned.decision == "keep":
            np.testing.assert_array_equal(tuned.metric.query_map, np.eye(6))
            assert not tuned.improved
    assert decisions.count("keep") >= 9


@pytest.mark.parametrize(
    ("prefer", "decision"), [("both", "keep"), ("known", "known only"), ("new", "keep")]
)
def test_harm_to_new_documents_is_seen(prefer, decision):
    X, relevance, Q = topics()
    tuned = learned(X, relevance, Q, prefer=prefer)
    assert tuned.decision == decision
    if prefer == "known":
        assert row(tuned, "known").difference > 0.05
        assert row(tuned, "new").outcome == "harmed"
        assert row(tuned, "new").high < 0
        assert row(tuned, "new").n_groups == 40
    fresh_X, fresh, fresh_Q = topics(seed=1)
    metric = learned(X, relevance, Q, prefer="known").metric
    before = Index(fresh_X, similarity="cosine").rank(fresh_Q, 10)
    loss = evaluate(before, fresh, MEASURE).means[MEASURE]
    assert mean_score(fresh_X, metric, fresh_Q, fresh) < loss - 0.05


@pytest.mark.parametrize("dev", [None, np.arange(30)])
def test_a_query_that_is_asked_again_is_no_further_evidence(dev):
    X, relevance, Q = hidden(n_queries=40)
    again = np.tile(np.arange(40), 3)
    if dev is not None:
        dev = np.flatnonzero(np.isin(again, dev))
    tuned = learned(X, relevance.take_queries(again), Q[again], dev=dev)
    asked = again if dev is None else again[dev]
    assert row(tuned, "all").n_queries == asked.size
    assert row(tuned, "all").n_groups == np.unique(asked).size
    difference = (
        tuned.report.after.values[MEASURE] - tuned.report.before.values[MEASURE]
    )
    means = [difference[asked == query].mean() for query in np.unique(asked)]
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    if dev is None:
        error *= np.sqrt(1 + 1 / 5)
    half = (row(tuned, "all").high - row(tuned, "all").low) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, len(means) - 1) * error)


def test_the_best_of_several_families_gains_most_where_preferred():
    def result(**gains):
        estimates = {k: ClusteredMean(v, 0.01, 90, 90) for k, v in gains.items()}
        return SimpleNamespace(verdict=Verdict("ship", 0.0, estimates, {}))

    a = result(all=0.3, known=0.2, new=0.1)
    b = result(all=0.2, known=0.1, new=0.3)
    unmeasured = [result(all=0.2), result(all=0.3)]
    assert trials.best_result([a, b], "both") is a
    assert trials.best_result([b, a], "known") is a
    assert trials.best_result([a, b], "new") is b
    assert trials.best_result(unmeasured, "new") is unmeasured[1]


def test_memory_is_what_known_documents_gain_without_learning():
    X, relevance, Q = topics()
    report = learned(X, relevance, Q, prefer="known").report
    known, new = report.question("known"), report.question("new")
    assert known.memory > known.unchanged + 0.1
    assert new.memory == pytest.approx(new.unchanged, abs=0.1)
    assert new.memory < known.memory


# ---------------------------------------------------------------------- labels


def test_classes_that_are_held_out_are_a_question_of_their_own():
    X, y = classes()
    tuned = learned(X, y)
    assert tuned.decision == "ship"
    assert isinstance(tuned.metric, LinearMetric)
    assert tuned.report.similarity == "euclidean"
    assert [row.label for row in tuned.report.questions] == [
        "all queries",
        "known classes",
        "new classes",
    ]
    assert row(tuned, "new").n_groups == 12
    assert row(tuned, "new").difference > 0
    assert row(tuned, "known").difference > 0
    assert np.isnan(row(tuned, "known").memory)


def test_a_few_classes_cannot_be_held_out_and_the_examples_decide():
    X, y = classes(n_classes=3, per_class=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned = learned(X, y)
    new = row(tuned, "new")
    assert new.outcome == "not measurable"
    assert np.isnan([new.unchanged, new.tuned, new.difference, new.low]).all()
    assert tuned.decision == "ship"
    assert row(tuned, "known").difference > 0


def test_rows_without_a_label_are_items_only():
    X, y = classes()
    y = np.where(np.arange(y.size) % 6 == 5, -1, y)
    relevance = Relevance.from_labels(y, unlabelled=-1)
    tuned = learned(X, relevance)
    assert row(tuned, "all").n_queries == (y >= 0).sum()
    assert row(tuned, "new").label == "new classes"
    assert row(tuned, "new").n_groups == np.unique(y[y >= 0]).size


# ---------------------------------------------------------------------- dev


def test_nothing_is_learned_from_dev_queries_unless_asked_for():
    X, relevance, Q = hidden()
    dev = np.arange(60, 90)
    tuned = learned(X, relevance, Q, dev=dev)
    assert tuned.decision == "ship"
    assert tuned.report.judged_on == "dev queries"
    np.testing.assert_array_equal(tuned.report.query_numbers, dev)
    changed_Q = Q.copy()
    changed_Q[dev] += 1e-3 * changed_Q[dev][::-1]
    other = [relevance.relevant(q).tolist() for q in range(60)]
    other += [[(3 * q) % 200, q] for q in range(30)]
    changed = Relevance.from_lists(other, n_items=200)
    others = learned(X, relevance.take_queries(np.arange(60)), Q[:60])
    numbers = [r.everything for r in tuned.report.path]
    assert numbers == [r.everything for r in others.report.path]
    again = learned(X, changed, changed_Q, dev=dev)
    assert numbers == [r.everything for r in again.report.path]
    np.testing.assert_array_equal(tuned.metric.query_map, others.metric.query_map)
    refitted = learned(X, relevance, Q, dev=dev, refit_on_dev=True)
    assert not np.array_equal(refitted.metric.query_map, tuned.metric.query_map)
    assert str(refitted.decision) == tuned.decision
    mask = np.isin(np.arange(90), dev)
    same = learned(X, relevance, Q, dev=mask)
    np.testing.assert_array_equal(same.metric.query_map, tuned.metric.query_map)


def test_dev_queries_are_judged_by_the_metric_of_the_others():
    X, relevance, Q = hidden()
    dev = np.arange(60, 90)
    tuned = learned(X, relevance, Q, dev=dev)
    expected = mean_score(X, tuned.metric, Q[dev], relevance.take_queries(dev))
    assert row(tuned, "all").tuned == pytest.approx(expected)


def test_labels_of_dev_rows_are_not_learned_from():
    X, y = classes()
    dev = np.arange(0, 120, 5)
    rest = np.setdiff1d(np.arange(120), dev)
    tuned = learned(X, y, dev=dev)
    others = learned(X[rest], y[rest])
    assert tuned.decision == others.decision == "ship"
    np.testing.assert_array_equal(tuned.metric.components, others.metric.components)
    numbers = [r.everything for r in tuned.report.path]
    assert numbers == [r.everything for r in others.report.path]
    judged = Relevance.from_labels(y[rest], query_labels=y[dev])
    expected = mean_score(X[rest], tuned.metric, X[dev], judged)
    assert row(tuned, "all").tuned == pytest.approx(expected)
    assert row(tuned, "known").n_queries == dev.size


def test_dev_rows_of_a_class_that_is_held_out_are_new():
    X, y = classes(n_classes=24, per_class=6)
    dev = np.flatnonzero(y < 11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned = learned(X, y, dev=dev)
    assert row(tuned, "new").n_queries == dev.size
    assert row(tuned, "new").n_groups == 11
    assert row(tuned, "known").n_queries == 0
    baseline = evaluate(
        Index(X).rank(X, 10, query_items=np.arange(y.size)),
        Relevance.from_labels(y),
        MEASURE,
    )
    expected = baseline.values[MEASURE][dev].mean()
    assert row(tuned, "new").unchanged == pytest.approx(expected)
    one = learned(X, y, dev=np.flatnonzero(y < 2))
    assert row(one, "all").n_queries == 12
    assert row(one, "new").outcome == "not measurable"


def test_dev_queries_for_known_documents_alone_say_so():
    """Queries for new documents are missing, not just too few groups of them."""
    X, relevance, Q = topics()
    tuned = learned(X, relevance, Q, dev=np.arange(0, Q.shape[0], 4))
    assert (row(tuned, "new").n_queries, row(tuned, "new").n_groups) == (0, 0)
    assert any("new documents. That takes" in note for note in tuned.report.notes)


def test_dev_rows_that_leave_nothing_relevant_are_named():
    """Pairs, of which dev has one half: the other half has nothing to learn from."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    for dev in (np.arange(30), np.arange(60)):
        with pytest.raises(ValueError, match=r"it names .* and leaves 0"):
            tune(X, np.arange(60) % 30, dev=dev)


@pytest.mark.parametrize("n_items", [1, 2])
def test_a_fold_that_leaves_nothing_to_learn_from_measures_nothing(n_items):
    """All queries are for one or two documents: where these are held out, nothing is taught."""
    X, _, Q = hidden()
    tuned = learned(X, [[q % n_items] for q in range(len(Q))], Q)
    assert row(tuned, "all").n_queries == len(Q)
    assert row(tuned, "new").outcome == "not measurable"


# ---------------------------------------------------------------------- similarity


def stretched(X, seed=3):
    return X * np.random.default_rng(seed).uniform(0.5, 20, size=(len(X), 1))


def test_one_warning_names_both_baselines_if_lengths_differ_and_nothing_was_said():
    X, relevance, Q = hidden()
    X, Q = stretched(X), stretched(Q)
    with pytest.warns(UserWarning, match="differ in length") as caught:
        tuned = learned(X, relevance, Q, budget=0)
    assert len(caught) == 1
    message = str(caught[0].message)
    for similarity in ("cosine", "euclidean"):
        ranking = Index(X, similarity=similarity).rank(Q, 10)
        score = evaluate(ranking, relevance, MEASURE).means[MEASURE]
        assert f"{score:.3f} by {similarity}" in message
    assert caught[0].filename == __file__
    assert tuned.report.similarity == "cosine"
    assert "cosine" in str(tuned).splitlines()[0]


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_nothing_is_warned_of_if_the_similarity_was_named(similarity):
    X, relevance, Q = hidden()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned = learned(stretched(X), relevance, Q, similarity=similarity, budget=0)
        learned(X, relevance, stretched(Q), budget=0)  # rankings by both are the same
        learned(*classes(), budget=0)
    assert tuned.report.similarity == tuned.metric.similarity == similarity


def test_under_the_cosine_lengths_change_nothing():
    X, relevance, Q = hidden()
    plain = learned(X, relevance, Q)
    other = learned(stretched(X), relevance, stretched(Q), similarity="cosine")
    np.testing.assert_allclose(
        plain.metric.query_map, other.metric.query_map, atol=1e-6
    )
    assert row(plain, "all").tuned == pytest.approx(row(other, "all").tuned, abs=1e-3)


# ---------------------------------------------------------------------- nothing to do, no time


@pytest.mark.parametrize("tolerance", [0.01, 0.0])
def test_a_perfect_baseline_is_answered_at_once(tolerance, monkeypatch):
    monkeypatch.setattr(families.ListwiseFamily, "metrics", None)
    rng = np.random.default_rng(0)
    X = unit_length(rng.normal(size=(100, 6)))
    relevance = Relevance.from_lists(np.arange(40)[:, None], n_items=100)
    tuned = learned(X, relevance, X[:40], tolerance=tolerance)
    assert tuned.decision == "keep"
    assert "nothing to gain" in tuned.report.sentence
    assert tuned.report.before.means[MEASURE] == 1
    json.loads(tuned.report.to_json())


def test_an_error_of_one_is_not_taken_for_a_perfect_score():
    X, relevance, Q = hidden()
    assert learned(X, relevance, Q, measure="ranking-error").report.path


@pytest.mark.parametrize("method", ["query", "mlr", "diagonal", "frml"])
def test_a_fit_is_interrupted_between_its_steps(method):
    X, relevance, Q = topics()
    calls = []

    def check():
        calls.append(None)
        if len(calls) == 12:
            raise TimeoutError

    (family,) = families.families([method], "cosine", MEASURE, True, 0)
    path = family.metrics(X.astype(np.float32), relevance, Q.astype(np.float32))
    with interrupted_by(check), pytest.raises(TimeoutError):
        next(path)
    assert len(calls) == 12
    check_interruption()  # the check is gone


def test_a_budget_that_is_too_small_keeps_and_names_what_was_skipped():
    X, relevance, Q = hidden()
    tuned = learned(X, relevance, Q, methods=["query", "shared"], budget=1e-9)
    labels = ["map of the queries", "map shared by queries and items"]
    assert tuned.report.skipped == labels
    assert tuned.decision == "keep"
    assert f"time budget ended before the {labels[0]} was" in str(tuned)


def clock(monkeypatch):
    """A clock that goes one second on whenever it is asked."""
    ticks = itertools.count()
    fake = SimpleNamespace(time=lambda: next(ticks))
    monkeypatch.setattr(trials, "time", fake)
    return ticks


def test_a_search_that_runs_out_of_time_is_stopped(monkeypatch):
    ticks = clock(monkeypatch)
    X, relevance, Q = hidden()
    monkeypatch.setattr(cross_validation, "current_backend", lambda: Threads(1))
    tuned = learned(X, relevance, Q, budget=100)
    assert tuned.report.skipped == ["map of the queries"]
    assert next(ticks) <= 100
    assert learned(X, relevance, Q, budget=10_000).improved


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("labels", [True, False])
def test_the_budget_leaves_time_to_learn_from_all_queries(labels, n_folds, monkeypatch):
    """Costs are counted, as distances that the loss is computed from."""
    costs = {"validation": 0, "learning": 0}
    step = "validation"
    evaluate_rows, learn = Listwise.__call__, families.Family.metric

    def counted(self, distances, states, block):
        costs[step] += distances.size
        return evaluate_rows(self, distances, states, block)

    def learn_from_all(*settings):
        nonlocal step
        step = "learning"
        return learn(*settings)

    monkeypatch.setattr(Listwise, "__call__", counted)
    monkeypatch.setattr(families.Family, "metric", learn_from_all)
    deadlines = []
    fake = SimpleNamespace(time=lambda: 0.0)
    monkeypatch.setattr(trials, "time", fake)
    init = trials.Deadline.__init__

    def noted(self, seconds):
        deadlines.append(seconds)
        init(self, seconds)

    monkeypatch.setattr(trials.Deadline, "__init__", noted)
    X, relevance, Q = (*classes(3, 40), None) if labels else hidden()
    assert learned(X, relevance, Q, n_folds=n_folds, budget=100).improved
    share = costs["learning"] / (costs["learning"] + costs["validation"])
    assert 100 * share < 100 - deadlines[0]
    assert deadlines[0] > 25


def test_progress_is_called_with_steps_and_fractions():
    steps = []
    learned(*hidden(), progress=lambda *step: steps.append(step))
    assert steps[0] == ("cross-validating: map of the queries", 0.0)
    assert steps[-1] == ("learning from all queries", 1.0)
    fractions = [fraction for _, fraction in steps]
    assert fractions == sorted(fractions)


# ---------------------------------------------------------------------- methods


def test_several_methods_are_tested_with_holms_correction():
    X, relevance, Q = hidden()
    tuned = learned(X, relevance, Q, methods=["shared", "query", "shared"])
    names = [r.family for r in tuned.report.path if r.family]
    shared, query = "map shared by queries and items", "map of the queries"
    assert names == [shared] * 3 + [query] * 3
    assert tuned.improved
    chosen = [r for r in tuned.report.path if r.chosen]
    assert len(chosen) == 1
    alone = [learned(X, relevance, Q, methods=[m]) for m in ("shared", "query")]
    best = max(alone, key=lambda t: row(t, "all").difference)
    np.testing.assert_array_equal(tuned.metric.query_map, best.metric.query_map)
    assert tuned.report.p_value == best.report.p_value


def test_a_gain_that_ships_alone_may_not_ship_as_one_of_two(monkeypatch):
    X, relevance, Q = hidden()
    alone = {m: learned(X, relevance, Q, methods=[m]) for m in ("shared", "query")}
    p_values = {method: tuned.report.p_value for method, tuned in alone.items()}
    best = min(p_values, key=p_values.get)
    level = 1.5 * p_values[best]
    monkeypatch.setattr(trials, "ALPHA", level)
    assert learned(X, relevance, Q, methods=[best]).improved
    assert not learned(X, relevance, Q, methods=["shared", "query"]).improved


def test_maps_that_only_some_folds_choose_are_not_shipped(monkeypatch):
    X, relevance, Q = hidden()
    monkeypatch.setattr(trials, "choose_strength", lambda *_: 0)
    tuned = learned(X, relevance, Q)
    assert tuned.report.p_value < 0.001
    assert tuned.decision == "keep"
    assert "rests on maps that only some folds choose." in tuned.report.sentence
    assert tuned.report.path[0].chosen


@pytest.mark.parametrize("method", families.METHODS)
def test_every_method_can_be_asked_for(method):
    X, relevance, Q = hidden(n_items=60, n_queries=40)
    tuned = learned(X, relevance, Q, methods=[method], n_folds=2)
    assert {r.family for r in tuned.report.path} <= {
        "",
        {**families.LISTWISE, **families.OTHERS}[method],
    }
    assert tuned.metric.similarity == "cosine"


# ---------------------------------------------------------------------- forms of the data


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("informative", [True, False])
def test_single_precision_stays_single(similarity, informative):
    X, relevance, Q = hidden(informative=informative)
    options = {"similarity": similarity, "tolerance": 0.1}
    metric = learned(X.astype("f4"), relevance, Q.astype("f4"), **options).metric
    assert metric.query_map.dtype == np.float32
    assert learned(X, relevance, Q, **options).metric.query_map.dtype == np.float64


def test_files_and_mapped_arrays_are_accepted(tmp_path):
    X, relevance, Q = hidden()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Q.npy", Q)
    expected = learned(X, relevance, Q)
    mapped = learned(np.load(tmp_path / "X.npy", mmap_mode="r"), relevance, Q)
    named = learned(tmp_path / "X.npy", relevance, tmp_path / "Q.npy")
    for other in (mapped, named):
        np.testing.assert_array_equal(expected.metric.query_map, other.metric.query_map)


def test_judgments_by_id_and_as_lists_of_rows():
    X, relevance, Q = hidden()
    expected = learned(X, relevance, Q)
    lists = [relevance.relevant(q).tolist() for q in range(90)]
    ids = {
        "item_ids": [f"d{i}" for i in range(200)],
        "query_ids": [f"q{q}" for q in range(90)],
    }
    mapping = {f"q{q}": {f"d{i}": 1 for i in row} for q, row in enumerate(lists)}
    pandas = pytest.importorskip("pandas")
    pairs = [(q, i, g) for q, row in mapping.items() for i, g in row.items()]
    frame = pandas.DataFrame(pairs, columns=["query_id", "doc_id", "relevance"])
    for judgments, options in ((mapping, ids), (frame, ids), (lists, {})):
        found = learned(X, judgments, Q, **options)
        np.testing.assert_array_equal(expected.metric.query_map, found.metric.query_map)
        assert found.decision == expected.decision


def test_queries_without_judgments_are_left_out_and_keep_their_numbers():
    X, relevance, Q = hidden()
    lists = [relevance.relevant(q).tolist() for q in range(90)]
    lists = [[], *lists[1:50], [], *lists[51:]]
    report = learned(X, Relevance.from_lists(lists, n_items=200), Q).report
    np.testing.assert_array_equal(
        report.query_numbers, np.setdiff1d(np.arange(90), [0, 50])
    )
    assert report.question("all").n_queries == 88


def test_only_judged_items_count_if_the_others_are_to_be_ignored():
    X, relevance, Q = hidden()
    rng = np.random.default_rng(0)
    mine = [relevance.relevant(q) for q in range(90)]
    others = [np.setdiff1d(rng.choice(200, size=15), row) for row in mine]
    judged = Relevance.from_lists(mine, others, n_items=200, unjudged="ignore")
    tuned = learned(X, judged, Q)
    scores = []
    for query, (good, bad) in enumerate(zip(mine, others, strict=True)):
        row_of = np.concatenate((good, bad))
        order = row_of[np.argsort(-(X[row_of] @ Q[query]))][:10]
        discounts = 1 / np.log2(np.arange(2, 2 + order.size))
        scores.append(discounts[np.isin(order, good)].sum() / discounts[:3].sum())
    assert row(tuned, "all").unchanged == pytest.approx(np.mean(scores))
    assert np.isnan(row(tuned, "all").memory)


@pytest.mark.parametrize("measure", ["map", "first-rank"])
def test_any_measure_can_be_improved(measure):
    X, relevance, Q = hidden()
    tuned = learned(X, relevance, Q, measure=measure)
    everything = row(tuned, "all")
    ranking = Index(X, similarity="cosine").rank(Q)
    expected = evaluate(ranking, relevance, measure).means[measure]
    assert everything.unchanged == pytest.approx(expected)
    assert tuned.decision == "ship"
    assert everything.low <= everything.difference <= everything.high
    assert (everything.difference < 0) == (measure == "first-rank")


@pytest.mark.parametrize("budget", [None, 0])
def test_values_and_lists_of_the_report_say_what_they_are(budget):
    X, relevance, Q = hidden()
    report = learned(X, relevance, Q, measure="first-rank", budget=budget).report
    for part, ranking in zip(
        (report.before, report.after), report.rankings, strict=True
    ):
        assert part.smaller_is_better == {"first-rank"}
        assert part.similarity == ranking.similarity == "cosine"


# ---------------------------------------------------------------------- the same again


def test_equal_seeds_give_identical_results():
    X, relevance, Q = hidden(n_queries=70)
    one, other = (learned(X, relevance, Q) for _ in range(2))
    np.testing.assert_array_equal(one.metric.query_map, other.metric.query_map)
    content = [json.loads(tuned.report.to_json()) for tuned in (one, other)]
    for part in content:
        del part["seconds"]
    assert content[0] == content[1]


def test_the_number_of_threads_does_not_change_the_result(monkeypatch):
    X, relevance, Q = hidden(n_queries=70)
    tuned = []
    for n in (1, 3):
        monkeypatch.setattr(cross_validation, "current_backend", lambda n=n: Threads(n))
        tuned.append(learned(X, relevance, Q))
    one, other = tuned
    np.testing.assert_array_equal(one.metric.query_map, other.metric.query_map)
    assert one.report.path == other.report.path


def test_lists_take_the_number_of_items_from_the_vectors():
    X, relevance, Q = hidden()
    lists = [relevance.relevant(q) for q in range(90)]
    expected = learned(X, relevance, Q)
    tuned = learned(X, Relevance.from_lists(lists), Q)
    np.testing.assert_array_equal(tuned.metric.query_map, expected.metric.query_map)
    assert tuned.report.questions == expected.report.questions


def test_judged_at_10_stands_beside_both_scores():
    X, relevance, Q = hidden()
    report = learned(X, relevance, Q).report
    named = [set(relevance.relevant(q).tolist()) for q in range(90)]
    known = report.known == 1
    assert known.any()
    assert not known.all()
    for name, asked in (("all", known | True), ("known", known)):
        shares = []
        for ranking in report.rankings:
            tops = [items for items, _ in ranking]
            hits = [len(named[q] & set(tops[q].tolist())) for q in range(90)]
            shares.append(np.mean(np.array(hits)[asked]) / 10)
        row = report.question(name)
        assert [row.judged_unchanged, row.judged_tuned] == pytest.approx(shares)
    assert str(report).count("judged@10") == 3
    assert report.path[0].judged == report.question("all").judged_unchanged
    labelled = learned(*classes()).report
    assert "judged@10" not in str(labelled)


# ---------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"budget": "60s"},
            TypeError,
            r"budget must be a number of seconds, such as 60: got .60s.",
        ),
        (
            {"budget": -1},
            ValueError,
            r"budget must be a number of seconds, 0 or more: got -1",
        ),
        ({"budget": np.nan}, ValueError, "budget must be a number of seconds"),
        ({"methods": "query"}, ValueError, "methods must be a list of some of query"),
        ({"methods": []}, ValueError, "methods must be a list"),
        ({"methods": ["magic"]}, ValueError, "methods must be one of query, shared"),
        ({"methods": [["query"]]}, ValueError, "methods must be one of query, shared"),
        ({"queries": np.ones(6)}, ValueError, "^queries must be a matrix"),
        ({"queries": np.ones((90, 5))}, ValueError, r"\(90, 6\): got \(90, 5\)"),
        ({"queries": np.ones((80, 6))}, ValueError, r"\(90, 6\): got \(80, 6\)"),
        ({"queries": None}, ValueError, "Pass their vectors as queries"),
        ({"n_folds": 91}, ValueError, "n_folds must be at most .* 90: got 91"),
        ({"n_folds": 1}, ValueError, "n_folds == 1, must be >= 2"),
        ({"prefer": "all"}, ValueError, "prefer must be one of both, known, new"),
        ({"similarity": "cos"}, ValueError, "similarity must be one of cosine"),
        ({"tolerance": 2}, ValueError, "tolerance == 2, must be <= 1"),
        ({"measure": "nope"}, ValueError, "measure must be one of"),
        ({"measure": len}, ValueError, "measures must be some of .* got <built-in"),
        ({"measure": "map ndcg@10"}, ValueError, "measure must be one measure"),
        ({"dev": [0, 1]}, ValueError, "dev must name at least 10 queries"),
        ({"dev": range(85)}, ValueError, "dev must name at least 10 queries"),
        ({"dev": np.arange(60, 100)}, ValueError, "from 0 to 89: got 60 to 99"),
        ({"dev": np.ones(50, bool)}, ValueError, "a mask must have 90 entries: got 50"),
        ({"dev": [0.5] * 20}, ValueError, "dev must be a 1-d array of whole numbers"),
        (
            {"methods": ["diagonal"], "similarity": "dot"},
            ValueError,
            "'diagonal' learns a distance, so it needs similarity cosine or euclidean",
        ),
        (
            {"methods": ["query"], "similarity": "euclidean"},
            ValueError,
            "'query' needs similarity dot or cosine: got 'euclidean'",
        ),
    ],
)
def test_misuse_is_named_in_one_sentence(options, error, message):
    X, relevance, Q = hidden()
    with pytest.raises(error, match=message):
        tune(X, relevance, **{"queries": Q, **options})


def test_wrong_judgments_are_named():
    X, relevance, Q = hidden()
    with pytest.raises(ValueError, match=r"at least 10 queries .* got 2"):
        tune(X, relevance.take_queries([0, 1]), queries=Q[:2])
    with pytest.raises(ValueError, match="got 9 among 90 queries"):
        tune(X, relevance, queries=Q[np.arange(90) % 9])
    with pytest.raises(ValueError, match="need item_ids and query_ids"):
        tune(X, {"a": ["b"]}, queries=Q)
    with pytest.raises(ValueError, match="got 200 items and 150 rows"):
        tune(X[:150], relevance, queries=Q)
    with pytest.raises(TypeError, match=r"judgments must be a Relevance.* got None"):
        tune(X, None, queries=Q)
    with pytest.raises(ValueError, match="candidate lists"):
        tune(X, Relevance.from_groups(np.arange(200) % 3, np.arange(200) // 10))
    with pytest.raises(ValueError, match="'query' needs separate queries"):
        tune(X, np.arange(200) % 12, methods=["query"], similarity="cosine")
    with pytest.raises(ValueError, match=r"X must be finite: row \d+ contains NaN"):
        tune(np.where(X > 0.9, np.nan, X), relevance, queries=Q)


@pytest.mark.parametrize("name", ["X", "queries"])
def test_zero_vectors_have_no_cosine(name):
    X, relevance, Q = hidden()
    vectors = {"X": X, "queries": Q}
    vectors[name][3] = 0
    with pytest.raises(ValueError, match=f"^{name} must not contain zero .* row 3"):
        tune(vectors["X"], relevance, queries=vectors["queries"])
    for similarity in ("dot", "euclidean"):
        tune(vectors["X"], relevance, queries=vectors["queries"], similarity=similarity)
