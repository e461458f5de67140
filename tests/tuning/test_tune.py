"""What `tune` promises: gains that hold for new queries, or the identity."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from planted import nearest, planted, unit_length
from rankspace import (
    BilinearMetric,
    Index,
    LinearMetric,
    ListwiseMap,
    Relevance,
    compare,
    evaluate,
    tune,
)
from rankspace._engine.parallel import Threads
from rankspace.relevance.splits import fold_queries
from rankspace.tuning import stages, tuner
from rankspace.tuning.candidates import BASELINE, Candidate, candidates

MEASURE = "ndcg-linear@10"


class FixedWeights(BaseEstimator):
    """An estimator that learns nothing: its metric weighs the features as it is told."""

    def __init__(self, weights):
        self.weights = weights

    def fit(self, X, relevance, queries=None):
        self.metric_ = LinearMetric(np.diag(self.weights))
        return self


@pytest.fixture(autouse=True)
def two_candidates(monkeypatch):
    """Two listwise maps, so that tests are fast."""
    query_map = ListwiseMap(0.003, sides="query", random_state=0)
    use_candidates(
        monkeypatch,
        Candidate("shared", ListwiseMap(0.003, random_state=0)),
        Candidate("query", query_map),
    )


def use_candidates(monkeypatch, *some):
    monkeypatch.setattr(tuner, "candidates", lambda *sizes: list(some))


def names_of(report):
    return [trial.name for trial in report.trials]


def n_held_out(report):
    return int((~np.isnan(report.before.values[MEASURE])).sum())


# ---------------------------------------------------------------------- the result


def test_a_planted_metric_is_found_and_helps_new_queries():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, random_state=0)
    assert tuned.report.chosen == "shared"
    assert tuned.report.verdict.startswith("Significantly better: shared")
    new = np.random.default_rng(1).normal(size=(60, 6))
    lists = nearest(new, X, np.repeat([2.0, 0.1], 3))
    judgments = Relevance.from_lists(lists.tolist(), n_items=300)
    before = evaluate(Index(X).rank(new, 10), judgments, MEASURE)
    after = evaluate(Index(X, tuned.metric).rank(new, 10), judgments, MEASURE)
    assert after.means[MEASURE] > before.means[MEASURE] + 0.2


def test_random_judgments_give_the_identity():
    """Of ten data sets at most one may be a false positive."""
    false_positives = 0
    for seed in range(10):
        X, relevance, Q = planted(seed, informative=False)
        tuned = tune(X, relevance, queries=Q, random_state=seed)
        if tuned.report.chosen != BASELINE:
            false_positives += 1
            continue
        assert isinstance(tuned.metric, LinearMetric)
        np.testing.assert_array_equal(tuned.metric.components, np.eye(6))
    assert false_positives <= 1


def test_judgments_of_other_queries_give_the_identity():
    X, relevance, Q = planted()
    lists = [relevance.relevant(q).tolist() for q in np.roll(np.arange(60), 7)]
    permuted = Relevance.from_lists(lists, n_items=300)
    tuned = tune(X, permuted, queries=Q, random_state=0)
    assert tuned.report.chosen == BASELINE
    np.testing.assert_array_equal(tuned.metric.components, np.eye(6))


def test_equal_seeds_give_equal_results():
    X, relevance, Q = planted()
    one = tune(X, relevance, queries=Q, random_state=3)
    other = tune(X, relevance, queries=Q, random_state=3)
    np.testing.assert_array_equal(one.metric.components, other.metric.components)
    np.testing.assert_array_equal(
        one.report.after.values[MEASURE], other.report.after.values[MEASURE]
    )


@pytest.mark.parametrize("n_threads", [2, 3, 4])
def test_the_number_of_threads_does_not_change_the_result(n_threads, monkeypatch):
    X, relevance, Q = planted()
    tuned = []
    for n in (1, n_threads):
        monkeypatch.setattr(
            "rankspace.tuning.cross_validation.current_backend", lambda n=n: Threads(n)
        )
        tuned.append(tune(X, relevance, queries=Q, random_state=0))
    one, other = tuned
    np.testing.assert_array_equal(one.metric.components, other.metric.components)
    for mine, theirs in zip(one.report.trials, other.report.trials, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_class_labels_and_queries_that_are_rows():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) * [1, 1, 9, 9] + 2 * np.eye(4)[y]
    tuned = tune(X, y, measure="map", random_state=0)
    assert tuned.report.chosen == "shared"
    assert tuned.report.measure == "map"


def test_the_result_may_be_a_map_of_the_queries_only(monkeypatch):
    query_map = ListwiseMap(0.003, sides="query")
    use_candidates(monkeypatch, Candidate("query", query_map))
    X, relevance, Q = planted()
    tuned = tune(unit_length(X), relevance, queries=unit_length(Q), random_state=0)
    assert tuned.report.chosen == "query"
    assert isinstance(tuned.metric, BilinearMetric)


def test_vectors_of_different_norms_get_a_map_shared_by_both_sides(monkeypatch):
    monkeypatch.setattr(tuner, "candidates", lambda *sizes: candidates(*sizes)[:2])
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, random_state=0)
    assert "shared by both sides" in tuned.report.chosen
    assert isinstance(tuned.metric, LinearMetric)
    assert {BASELINE, tuned.report.chosen} < set(names_of(tuned.report))


# ---------------------------------------------------------------------- held-out values


def test_held_out_values_come_from_metrics_that_never_saw_these_queries():
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    for train, test in fold_queries(np.arange(60), None, 5, seed):
        model = ListwiseMap(0.003, random_state=0)
        model.fit(X, relevance.take_queries(train), queries=Q[train])
        ranking = Index(X, model.metric_).rank(Q[test], 10)
        expected = evaluate(ranking, relevance.take_queries(test), MEASURE)
        np.testing.assert_allclose(
            report.trials[1].values[test], expected.values[MEASURE]
        )
        assert {*train, *test} == set(range(60))
        assert not {*train} & {*test}


def test_no_query_helps_to_select_its_own_metric(monkeypatch):
    """The two halves of the queries need different metrics: each gets the wrong one."""
    X, _, Q = planted(n_queries=40)
    weights = np.array([[1, 1, 1, 0.7, 0.7, 0.7], [0.7, 0.7, 0.7, 1, 1, 1]])
    halves = [np.arange(20), np.arange(20, 40)]
    lists = [
        *nearest(Q[halves[0]], X, weights[0]).tolist(),
        *nearest(Q[halves[1]], X, weights[1]).tolist(),
    ]
    folds = [(halves[1], halves[0]), (halves[0], halves[1])]
    monkeypatch.setattr(tuner, "fold_queries", lambda *data: folds)
    use_candidates(
        monkeypatch,
        Candidate("for the first half", FixedWeights(weights[0])),
        Candidate("for the second half", FixedWeights(weights[1])),
    )
    judgments = Relevance.from_lists(lists, n_items=300)
    report = tune(X, judgments, queries=Q, random_state=0).report
    _, first, second = report.trials
    after = report.after.values[MEASURE]
    np.testing.assert_array_equal(after[halves[0]], second.values[halves[0]])
    np.testing.assert_array_equal(after[halves[1]], first.values[halves[1]])
    assert first.values[halves[0]].mean() == pytest.approx(1)
    assert report.chosen == BASELINE


def test_dev_queries_are_held_out_and_the_others_used_for_training():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, dev=np.arange(40, 60), random_state=0)
    values = tuned.report.before.values[MEASURE]
    assert np.isnan(values[:40]).all()
    assert not np.isnan(values[40:]).any()
    assert tuned.report.chosen == "shared"
    model = ListwiseMap(0.003, random_state=0).fit(X, relevance, queries=Q)
    np.testing.assert_allclose(tuned.metric.components, model.components_)


def test_halves_of_the_dev_queries_select_for_each_other(monkeypatch):
    diagonal = Candidate("a diagonal", ListwiseMap(0.003), "diagonal")
    use_candidates(monkeypatch, diagonal)
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, dev=np.arange(20), random_state=0).report
    assert report.chosen == "a diagonal"
    np.testing.assert_array_equal(report.after.values[MEASURE], report.trials[1].values)


def test_ignored_items_are_in_no_ranking():
    X, relevance, Q = planted()
    rng = np.random.default_rng(0)
    qrels = {}
    for q in range(60):
        qrels[f"{q}"] = {f"{i}": 0 for i in rng.permutation(300)[:15]}
        qrels[f"{q}"] |= {f"{i}": 1 for i in relevance.relevant(q)}
    judged = Relevance.from_qrels(
        qrels,
        item_ids=[f"{i}" for i in range(300)],
        query_ids=[f"{q}" for q in range(60)],
        unjudged="ignore",
    )
    report = tune(X, judged, queries=Q, random_state=0).report
    assert report.chosen != BASELINE
    discounts = 1 / np.log2(np.arange(10) + 2)
    for q in (0, 17, 59):
        items = np.array([int(i) for i in qrels[f"{q}"]])
        order = items[np.argsort(((X[items] - Q[q]) ** 2).sum(axis=1))]
        gains = np.array([qrels[f"{q}"][f"{i}"] for i in order], dtype=float)
        ideal = discounts @ np.sort(gains)[::-1][:10]
        expected = discounts[: gains[:10].size] @ gains[:10] / ideal
        assert report.before.values[MEASURE][q] == pytest.approx(expected)


# ---------------------------------------------------------------------- groups of queries


def seen_and_new_queries():
    """80 queries that share relevant items, and 40 with an item of their own.

    Features 0 and 1 matter most to the former, 2 and 3 to the latter, 4 and 5 to none.
    """
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(400, 6)), rng.normal(size=(120, 6))
    Q[:80, :4] = np.repeat(Q[:20, :4], 4, axis=0)
    shared = nearest(Q[:80, :4], X[:200, :4], [1, 1, 0.2, 0.2], 3)
    new = 200 + np.arange(40)
    Q[80:] = X[new] + [0.5, 0.5, 0, 0, 1, 1] * rng.normal(size=(40, 6))
    lists = [*shared.tolist(), *([item] for item in new.tolist())]
    return X, Relevance.from_lists(lists, n_items=400), Q


@pytest.mark.parametrize("harmful", [True, False])
@pytest.mark.parametrize("generalise", [True, False])
def test_queries_with_new_items_are_not_harmed(harmful, generalise, monkeypatch):
    """A metric that ignores what matters to them gives way to its fallback.

    The fallback is better for new items in any case, so generalise selects it.
    """
    X, judgments, Q = seen_and_new_queries()
    bold = [1, 1, 0.1, 0.1, 0.1, 0.1] if harmful else [1, 1, 0.8, 0.8, 0.1, 0.1]
    fallback = Candidate("gentle", FixedWeights([1, 1, 1, 1, 0.3, 0.3]))
    first = Candidate("bold", FixedWeights(bold), fallback=fallback)
    use_candidates(monkeypatch, first)
    options = {"queries": Q, "generalise": generalise, "random_state": 0}
    report = tune(X, judgments, **options).report
    np.testing.assert_array_equal(report.seen, np.arange(120) < 80)
    assert report.chosen == ("gentle" if harmful or generalise else "bold")
    assert ("gentle" in names_of(report)) == (harmful or generalise)
    assert report.comparisons["seen"].difference[MEASURE] > 0
    assert report.comparisons["new"].difference[MEASURE] > 0


# ---------------------------------------------------------------------- what is tried


@pytest.mark.parametrize("large", [True, False])
def test_with_many_queries_one_fold_may_be_enough(large, monkeypatch):
    monkeypatch.setattr(tuner, "is_large", lambda *sizes: large)

    def count(informative=True, **options):
        X, relevance, Q = planted(informative=informative)
        options |= {"queries": Q, "random_state": 0}
        return n_held_out(tune(X, relevance, **options).report)

    assert count() == 60
    name = "MANY_QUERIES_LARGE_DATA" if large else "MANY_QUERIES"
    monkeypatch.setattr(tuner, name, 60)
    assert count() == 20
    assert count(n_folds=3) == 60
    assert count(informative=False) == 60
    assert count(informative=False, dev=np.arange(20)) == 20


def test_other_methods_follow_if_no_map_is_significantly_better(monkeypatch):
    use_candidates(
        monkeypatch,
        Candidate("a map", ListwiseMap(0.003)),
        Candidate("a diagonal", ListwiseMap(0.003), "diagonal"),
    )

    def names(informative, **options):
        X, relevance, Q = planted(informative=informative)
        report = tune(X, relevance, queries=Q, random_state=0, **options).report
        assert report.skipped == []
        return names_of(report)

    assert names(True) == [BASELINE, "a map"]
    assert names(True, exhaustive=True) == [BASELINE, "a map", "a diagonal"]
    assert names(False) == [BASELINE, "a map", "a diagonal"]
    assert names(True, methods=["diagonal"]) == [BASELINE, "a diagonal"]


@pytest.mark.parametrize("first_fold", [True, False])
@pytest.mark.parametrize("exhaustive", [True, False])
@pytest.mark.parametrize(
    "methods", [["listwise"], ["diagonal"], ["listwise", "mlr"], []]
)
def test_all_tests_together_spend_the_significance_level(
    methods, first_fold, exhaustive
):
    todo = [Candidate(method, ListwiseMap(), method) for method in methods]
    plan = stages.plan_stages(todo, 3, first_fold, exhaustive)
    assert sum(stage.alpha for stage in plan) == pytest.approx(0.025)
    assert all(stage.alpha > 0 for stage in plan)
    assert plan[-1].folds == range(3)
    assert {c.name for stage in plan for c in stage.candidates} == set(methods)


def test_smaller_regs_are_tried_while_they_are_clearly_better(monkeypatch):
    weaker = None
    for reg in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0):
        model = ListwiseMap(reg)
        weaker = Candidate(f"reg {reg:g}", model, less_regularised=weaker)
    strong = Candidate("reg 100", ListwiseMap(100.0))
    use_candidates(monkeypatch, strong, weaker)
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    names = names_of(report)
    assert names[:3] == [BASELINE, "reg 100", "reg 10"]
    assert 3 < len(names) < 12
    assert report.chosen in names[-2:]
    X, relevance, Q = planted(informative=False)
    assert len(tune(X, relevance, queries=Q, random_state=0).report.trials) <= 4


# ---------------------------------------------------------------------- budget


def test_a_budget_skips_candidates_and_the_report_names_them():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, budget=1e-9, random_state=0)
    assert tuned.report.skipped == ["shared", "query"]
    assert tuned.report.chosen == BASELINE
    assert "Skipped for lack of time: shared, query." in str(tuned)


def test_if_time_is_up_after_one_fold_it_gets_the_whole_significance_level(monkeypatch):
    monkeypatch.setattr(tuner, "MANY_QUERIES", 60)
    monkeypatch.setattr(stages, "FIRST_FOLD_SHARE", 1e-9)  # which no p-value reaches
    answers = iter([True, True, True])  # two candidates on one fold, and more folds
    monkeypatch.setattr(stages.Budget, "allows", lambda *call: next(answers, False))
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, budget=1e9, random_state=0).report
    assert n_held_out(report) == 20
    assert report.chosen == "shared"
    assert report.skipped == []


# ---------------------------------------------------------------------- the report


def test_the_report_shows_p_values_and_intervals_of_held_out_queries():
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    expected = compare(report.before, report.after)
    found = report.comparisons["all"]
    assert found.p_value[MEASURE] == expected.p_value[MEASURE] < 0.001
    assert found.interval[MEASURE] == expected.interval[MEASURE]
    low, high = found.interval[MEASURE]
    assert low < found.difference[MEASURE] < high
    values = [getattr(report, name).values[MEASURE] for name in ("before", "after")]
    for group, mask in (("seen", report.seen), ("new", ~report.seen)):
        difference = np.mean(values[1][mask] - values[0][mask])
        comparison = report.comparisons[group]
        assert comparison.difference[MEASURE] == pytest.approx(difference)
        assert comparison.n_queries[MEASURE] == mask.sum()
    text = str(report)
    assert "held-out queries" in text
    assert f"{found.before[MEASURE]:.4f}" in text
    assert f"{found.difference[MEASURE]:.4f}" in text


def test_the_report_goes_to_json():
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    content = json.loads(report.to_json())
    assert content["chosen"] == "shared"
    assert set(content["groups"]) <= {"all", "seen", "new"}
    assert content["groups"]["all"]["n_queries"] == 60
    assert [row["name"] for row in content["trials"]] == [BASELINE, "shared", "query"]
    means = [np.mean(trial.values) for trial in report.trials]
    assert [row["mean"] for row in content["trials"]] == pytest.approx(means)


def test_progress_is_called_with_steps_and_fractions():
    steps = []
    X, relevance, Q = planted()
    tune(
        X,
        relevance,
        queries=Q,
        random_state=0,
        progress=lambda *step: steps.append(step),
    )
    assert steps[0] == ("shared", 0.0)
    assert steps[-1] == ("refitting on all queries", 1.0)
    fractions = [fraction for _, fraction in steps]
    assert fractions == sorted(fractions)


@pytest.mark.parametrize("separate", [True, False])
def test_rankings_are_those_of_the_evaluated_metric(separate):
    """Items have their numbers in X, even if held-out queries are rows of X."""
    X, relevance, Q = planted()
    if not separate:
        X, Q = np.random.default_rng(0).normal(size=(90, 4)), None
        relevance = np.digitize(X[:, 0], [-0.5, 0.5])
    report = tune(X, relevance, queries=Q, random_state=0).report
    before, after = report.rankings
    points = X if Q is None else Q
    for query in range(20):
        items, distances = before[query]
        assert items.size == 10
        expected = np.linalg.norm(X[items] - points[query], axis=1)
        np.testing.assert_allclose(distances, expected, rtol=1e-9)
        assert separate or query not in items
    if separate:  # otherwise the ideal ranking includes held-out queries
        values = evaluate(after, report.relevance, MEASURE).values[MEASURE]
        np.testing.assert_allclose(values, report.after.values[MEASURE])


def test_the_page_shows_which_queries_gain_and_lose(tmp_path):
    X, relevance, Q = planted()
    lists = [[], *(relevance.relevant(q).tolist() for q in range(1, 60))]
    without_first = Relevance.from_lists(lists, n_items=300)
    report = tune(X, without_first, queries=Q, random_state=0).report
    report.write_page(
        tmp_path / "page.html",
        title="a page",
        texts=[f"item <{i}>" for i in range(300)],
        query_texts=[f"wish {q}" for q in range(60)],
    )
    page = (tmp_path / "page.html").read_text()
    gains = report.after.values[MEASURE] - report.before.values[MEASURE]
    best = np.flatnonzero(gains > gains.max() - 1e-9) + 1  # query 0 has no judgments
    shown = page.split("Most improved")[1].split("</summary>")[0]
    assert any(f">{query}: wish {query} " in shown for query in best)
    assert "item &lt;" in page
    assert "Most harmed" in page
    assert "with new relevant items" in page
    assert report.verdict.split(",")[0] in page
    assert all(trial.name in page for trial in report.trials[1:])


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "nope"}, "measure must be one of"),
        ({"methods": ["magic"]}, "methods must be one of"),
        ({"n_folds": 0}, "n_folds must lie between 2 and 60"),
        ({"n_folds": 1}, "n_folds must lie between 2 and 60"),
        ({"dev": [0, 1]}, "dev must name at least 10 queries"),
    ],
)
def test_wrong_options_are_errors(options, message):
    X, relevance, Q = planted()
    with pytest.raises(ValueError, match=message):
        tune(X, relevance, queries=Q, **options)


def test_wrong_data_are_errors():
    X, relevance, Q = planted()
    with pytest.raises(ValueError, match=r"at least 10 queries .* got 2"):
        tune(X, relevance.take_queries([0, 1]), queries=Q[:2])
    with pytest.raises(ValueError, match=r"so shape \(60, 6\): got \(60, 5\)"):
        tune(X, relevance, queries=Q[:, :5])
    with pytest.raises(ValueError, match="queries that are not rows of X"):
        tune(X, relevance)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        tune(X, relevance, queries=Q)


@pytest.mark.parametrize("name", ["X", "queries"])
def test_zero_vectors_among_unit_vectors_are_errors(name):
    X, relevance, Q = planted()
    vectors = {"X": unit_length(X), "queries": unit_length(Q)}
    vectors[name][[3, 5]] = 0
    message = f"{name} must not contain zero vectors .* got 2, the first in row 3"
    with pytest.raises(ValueError, match=message):
        tune(vectors["X"], relevance, queries=vectors["queries"])
