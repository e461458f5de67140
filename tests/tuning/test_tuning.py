"""Tuning: it finds what is there, says so when nothing is, and judges no query by its own vote."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rankspace import (
    BilinearMetric,
    Index,
    LinearMetric,
    ListwiseMap,
    Ranking,
    Relevance,
    evaluate,
    load_metric,
    tune,
)
from rankspace._engine.parallel import Threads
from rankspace.cli.main import main
from rankspace.cli.tune import seconds
from rankspace.learners.hard_negatives import with_hard_negatives
from rankspace.relevance.splits import fold_queries, hold_out
from rankspace.tuning import tuner as module
from rankspace.tuning.candidates import METHODS, Candidate, candidates, suited
from rankspace.tuning.choice import Selection, judge
from rankspace.tuning.report import TrialResult
from rankspace.tuning.trials import AS_IS, CrossValidation, names_of, seen_queries
from rankspace.tuning.tuner import _looks

MEASURE = "ndcg-linear@10"


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Two maps; what all candidates do is for the recipe to show."""
    few = [
        Candidate("shared", lambda: ListwiseMap(0.003, random_state=0)),
        Candidate("query", lambda: ListwiseMap(0.003, sides="query", random_state=0)),
    ]
    monkeypatch.setattr(module, "candidates", lambda *sizes: few)


def planted(seed=0, n=300, n_queries=60, d=6, informative=True):
    """Relevant items are the nearest in three of the features, or drawn at random."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(n, d)), rng.normal(size=(n_queries, d))
    hidden = np.repeat([2.0, 0.1], d // 2)
    near = np.argsort((((Q[:, None] - X) * hidden) ** 2).sum(axis=2), axis=1)[:, :5]
    if not informative:
        near = np.array([rng.permutation(n)[:5] for _ in range(n_queries)])
    return X, Relevance.from_lists(near.tolist(), n_items=n), Q


def tried(name, values, part_of="", lead=0.0):
    """A candidate with made-up values, and no lists."""
    nothing = (np.zeros(0, np.int64), np.zeros(0))
    lists = Ranking.from_pairs([nothing] * len(values), 300)
    return TrialResult(name, values, 0.0, lists, part_of, lead)


def test_a_planted_metric_is_found_and_helps_new_queries():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, random_state=0)
    assert tuned.report.chosen == "shared"
    assert tuned.report.verdict.startswith("Better beyond chance: shared")
    found = tuned.report.comparisons["all"]
    assert found.p_value[MEASURE] < 0.001
    other = np.random.default_rng(1).normal(size=(60, 6))
    near = np.argsort(
        (((other[:, None] - X) * np.repeat([2.0, 0.1], 3)) ** 2).sum(axis=2), axis=1
    )
    unseen = Relevance.from_lists(near[:, :5].tolist(), n_items=300)
    before, after = (
        evaluate(index.rank(other, 10), unseen, MEASURE).means[MEASURE]
        for index in (Index(X), Index(X, tuned.metric))
    )
    assert after > before + 0.2


def test_noise_is_never_sold():
    """Judgments at random: of ten sets none may be better beyond chance but one by bad luck."""
    sold = 0
    for seed in range(10):
        X, relevance, Q = planted(seed, informative=False)
        tuned = tune(X, relevance, queries=Q, random_state=seed)
        sold += tuned.report.chosen != AS_IS
        if tuned.report.chosen == AS_IS:
            assert isinstance(tuned.metric, LinearMetric)
            np.testing.assert_array_equal(tuned.metric.components, np.eye(6))
    assert sold <= 1


def test_seeds_decide():
    X, relevance, Q = planted()
    a, b = (tune(X, relevance, queries=Q, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(a.metric.components, b.metric.components)
    np.testing.assert_array_equal(
        a.report.after.values[MEASURE], b.report.after.values[MEASURE]
    )


def test_held_out_queries_are_judged_by_metrics_that_never_met_them():
    """The values of a candidate, by hand: learn without a fold, rank it."""
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    for train, test in fold_queries(np.arange(60), None, 5, seed):
        model = ListwiseMap(0.003, random_state=0)
        model.fit(X, relevance.take_queries(train), queries=Q[train])
        ranking = Index(X, model.metric_).rank(Q[test], 10)
        values = evaluate(ranking, relevance.take_queries(test), MEASURE).values[
            MEASURE
        ]
        np.testing.assert_allclose(report.tried[1].values[test], values)
        assert set(train) | set(test) == set(range(60))
        assert not set(train) & set(test)


def test_no_query_has_a_say_in_what_it_is_judged_by(monkeypatch):
    """Each half of the queries likes another candidate: honest values are those of the rival."""
    X, relevance, Q = planted(n_queries=20)
    monkeypatch.setattr(module, "fold_queries", lambda *a: [
        (np.arange(10, 20), np.arange(10)), (np.arange(10), np.arange(10, 20))
    ])  # fmt: skip
    first = np.arange(20) < 10
    wanted = {
        AS_IS: np.full(20, 0.5),
        "shared": np.where(first, 0.9, 0.4) + 0.01 * np.arange(20) / 20,
        "query": np.where(first, 0.4, 0.9) + 0.01 * np.arange(20) / 20,
    }

    monkeypatch.setattr(CrossValidation, "run", lambda *call: iter(()))
    values = [tried(name, values) for name, values in wanted.items()]
    monkeypatch.setattr(CrossValidation, "tried", lambda *call: values)
    monkeypatch.setattr(module, "ALONE", 0.0)
    report = tune(X, relevance, queries=Q, random_state=0).report
    np.testing.assert_allclose(
        report.after.values[MEASURE][first], wanted["query"][first]
    )
    np.testing.assert_allclose(
        report.after.values[MEASURE][~first], wanted["shared"][~first]
    )
    assert report.chosen == AS_IS
    assert "Nothing is better beyond chance" in report.verdict


def test_candidates_that_harm_a_group_are_passed_over():
    rng = np.random.default_rng(0)
    raw, seen = np.full(100, 0.5), np.arange(100) < 80
    noise = 0.01 * rng.normal(size=100)
    greedy = tried("greedy", np.where(seen, 0.7, 0.4) + noise)
    modest = tried("modest", np.where(seen, 0.55, 0.5) + noise)
    choice = Selection([tried(AS_IS, raw), greedy, modest], seen, 1.0, False)
    assert choice.pick(np.ones(100, dtype=bool)) == 2
    assert choice.pick(seen) == 1
    assert (
        Selection(choice.tried[:2], seen, 1.0, False).pick(np.ones(100, dtype=bool))
        == 0
    )
    errors = [tried(t.name, 1 - t.values) for t in choice.tried]
    assert Selection(errors, seen, -1.0, False).pick(np.ones(100, dtype=bool)) == 2


def test_a_choice_is_clear_two_standard_errors_ahead_of_other_fits():
    noise = np.random.default_rng(0).normal(size=100)
    noise -= noise.mean()  # whose standard error is a tenth of its deviation
    raw, first = np.full(100, 0.5), np.full(100, 0.6)
    for lead, clear in ((1.5, False), (2.5, True)):
        other = first + 0.02 * (noise / noise.std() + 0.1 * lead)
        rivals = [tried(AS_IS, raw), tried("first", first), tried("other", other)]
        rivals.append(tried("part", other, "other"))
        choice = Selection(rivals, np.zeros(100, dtype=bool), 1.0, False)
        assert choice.of_all() == "other"
        assert choice.is_clear() == clear
        errors = [tried(t.name, 1 - t.values, t.part_of) for t in rivals]
        assert Selection(errors, choice.seen, -1.0, False).is_clear() == clear


def test_others_must_be_ahead_of_the_preferred_by_their_lead():
    noise = np.random.default_rng(0).normal(size=100)
    noise -= noise.mean()
    everyone, nobody = np.ones(100, dtype=bool), np.zeros(100, dtype=bool)
    first = np.full(100, 0.6)
    for lead in (1.0, 2.0):
        for ahead, expected in ((lead - 0.5, 1), (lead + 0.5, 2)):
            other = first + 0.02 * (noise / noise.std() + 0.1 * ahead)
            rivals = [tried(AS_IS, first - 0.1), tried("first", first)]
            rivals.append(tried("other", other, lead=lead))
            assert (
                Selection(rivals, nobody, 1.0, False, None, "first").pick(everyone)
                == expected
            )
            assert Selection(rivals, nobody, 1.0, False).pick(everyone) == 2
            errors = [tried(t.name, 1 - t.values, lead=t.lead) for t in rivals]
            assert (
                Selection(errors, nobody, -1.0, False, None, "first").pick(everyone)
                == expected
            )


def test_where_the_preferred_harms_nothing_bolder_is_picked():
    seen, everyone = np.arange(100) < 90, np.ones(100, dtype=bool)
    raw = np.full(100, 0.5)
    harmful, useless = (
        tried("first", np.where(seen, 0.8, 0.4)),
        tried("first", raw - 0.01),
    )
    bold, careful = tried("bold", raw + 0.2, lead=2.0), tried("careful", raw + 0.1)

    def picked(*rivals):
        choice = Selection(
            [tried(AS_IS, raw), *rivals], seen, 1.0, False, None, "first"
        )
        return choice.tried[choice.pick(everyone)].name

    assert picked(harmful, bold) == AS_IS
    assert picked(harmful, bold, careful) == "careful"
    assert picked(useless, bold) == "bold"  # which says nothing about the cost of gains


@pytest.mark.parametrize("one_length", [True, False])
def test_maps_of_the_queries_are_left_only_for_a_lead(one_length):
    whole = candidates(60, 300, 6, 0, "linear", one_length)[0]
    part = "query" if one_length else "shared"
    assert whole.preferred == whole.along[part].name
    assert (
        whole.lead
        == whole.along["weakest"].lead
        == whole.along["weakest"].weaker().lead
        == 2
    )
    assert whole.weaker() is whole.along["query"].weaker() is None
    careful = whole.careful()
    assert careful.build().unjudged_weight == 0.03
    assert list(careful.along) == ["shared", "query"]
    assert careful.preferred == careful.along[part].name
    assert careful.lead == careful.along["shared"].lead == 0
    assert careful.careful is None
    assert careful.weaker() is None


def test_a_part_that_is_chosen_is_fitted_by_itself(monkeypatch):
    X, relevance, Q = planted()  # of all lengths, for which inner products do not suit
    monkeypatch.setattr(module, "candidates", lambda *sizes: candidates(*sizes)[:2])
    tuned = tune(X, relevance, queries=Q, random_state=0)
    assert "both sides" in tuned.report.chosen
    assert isinstance(tuned.metric, LinearMetric)
    assert {"as they are", tuned.report.chosen} < {t.name for t in tuned.report.tried}


def test_parts_of_a_candidate_are_judged_as_if_fitted_by_themselves():
    X, relevance, Q = planted()
    X, Q = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, Q))
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    splits = [hold_out(X, relevance, Q, *fold) for fold in folds]
    whole = candidates(60, 300, 6, 0, "linear")[0]
    both, query, weakest, *of_weakest = whole.along.values()
    sides = [other.build().sides for other in whole.along.values()]
    assert sides == ["shared", "query", "separate", "shared", "query"]
    assert both.build().reg == query.build().reg == whole.build().reg
    assert weakest.build().reg == whole.build().reg[-1:]
    together, apart = (
        CrossValidation(splits, [test for _, test in folds], relevance, MEASURE)
        for _ in range(2)
    )
    assert list(together.run([whole], [0, 1])) == [whole.name]
    list(apart.run(list(whole.along.values()), [0, 1]))
    found = {t.name: t for t in together.tried([0, 1])}
    for name in (whole.name, weakest.name):
        assert found[name].part_of == ""
    for name in (both.name, query.name):
        assert found[name].part_of == whole.name
    for other in of_weakest:
        assert found[other.name].part_of == weakest.name
        assert other.build().reg == weakest.build().reg
    for other in apart.tried([0, 1]):
        np.testing.assert_array_equal(found[other.name].values, other.values)


def judged_alone(rivals, seen=None, alone=0.02, level=0.0, singles=("first",)):
    """What is made of candidates by two halves of the queries, the first also by itself."""
    n = len(rivals[0].values)
    half = np.arange(n) % 2 == 0
    judgments = Relevance.from_lists([[0]] * n, n_items=300)
    seen = np.ones(n, dtype=bool) if seen is None else seen
    choice = Selection(rivals, seen, 1.0, False)
    parts = [np.flatnonzero(half), np.flatnonzero(~half)]
    return judge(choice, parts, judgments, MEASURE, level, alone, singles).report


def test_the_first_is_taken_where_choosing_would_lose_what_it_gains():
    rng = np.random.default_rng(0)
    half, raw = np.arange(100) % 2 == 0, rng.uniform(0.4, 0.6, size=100)
    first = tried("first", raw + 0.05)
    fickle = [  # each is best for the half that does not choose it
        tried("one", raw + np.where(half, 0.2, -0.2) + 0.06),
        tried("other", raw + np.where(half, -0.2, 0.2) + 0.06),
    ]
    report = judged_alone([tried(AS_IS, raw), first, *fickle])
    assert report.chosen == "first"
    assert report.verdict.startswith("Better beyond chance: first")
    np.testing.assert_array_equal(report.after.values[MEASURE], first.values)
    assert [t.name for t in report.tried] == [AS_IS, "first", "one", "other"]
    assert (
        judged_alone([tried(AS_IS, raw), first, *fickle], alone=0, level=0.02).chosen
        == AS_IS
    )


def test_choosing_adds_to_the_first_and_makes_up_for_it_at_a_level_of_its_own():
    raw = np.random.default_rng(0).uniform(0.4, 0.6, size=100)
    rivals = [tried(AS_IS, raw), tried("first", raw + 0.05), tried("better", raw + 0.1)]
    assert judged_alone(rivals).chosen == "better"
    rivals[1] = tried("first", raw - 0.05)
    assert judged_alone(rivals).chosen == AS_IS
    assert judged_alone(rivals, level=0.01).chosen == "better"


def test_the_first_is_not_taken_where_it_harms_a_group():
    raw, seen = (
        np.random.default_rng(0).uniform(0.4, 0.6, size=100),
        np.arange(100) < 80,
    )
    rivals = [tried(AS_IS, raw), tried("first", raw + np.where(seen, 0.1, -0.1))]
    report = judged_alone(rivals, seen)
    assert report.chosen == AS_IS
    assert report.verdict.startswith(
        "It is better on the whole, but worse for queries with new"
    )
    assert judged_alone(rivals).chosen == "first"


def test_where_the_first_harms_a_group_others_are_tested_at_its_level():
    raw, seen = (
        np.random.default_rng(0).uniform(0.4, 0.6, size=100),
        np.arange(100) < 80,
    )
    rivals = [
        tried(AS_IS, raw), tried("first", raw + np.where(seen, 0.1, -0.1)),
        tried("careful", raw + 0.03),
    ]  # fmt: skip
    assert judged_alone(rivals, seen).chosen == "careful"
    half = np.arange(100) % 2 == 0  # and by itself where choosing loses what it gains
    fickle = [
        tried("one", raw + np.where(half, 0.2, -0.2) + 0.06),
        tried("other", raw + np.where(half, -0.2, 0.2) + 0.06),
    ]
    assert judged_alone([*rivals, *fickle], seen).chosen == AS_IS
    assert (
        judged_alone([*rivals, *fickle], seen, singles=("first", "careful")).chosen
        == "careful"
    )
    rivals[1] = tried("first", raw - 0.01)  # no better than chance: nothing follows
    assert judged_alone(rivals, seen, singles=("first", "careful")).chosen == AS_IS


def test_what_follows_a_passed_test_sells_no_more_noise():
    """150 sets of candidates that are no better than the vectors, tested at 10 and 2 %."""
    rng = np.random.default_rng(0)
    seen, sold, names = (
        np.arange(40) < 25,
        0,
        ("first", "second", "third", "fourth", "fifth"),
    )
    for _ in range(150):
        raw = rng.uniform(0.4, 0.6, size=40)
        rivals = [tried(name, raw + 0.05 * rng.normal(size=40)) for name in names]
        found = judged_alone([tried(AS_IS, raw), *rivals], seen, 0.1, 0.02, names)
        sold += found.chosen != AS_IS
    assert sold / 150 < 0.12 + 3 * np.sqrt(0.12 * 0.88 / 150)


@pytest.mark.parametrize("harm", [True, False])
@pytest.mark.parametrize("generalise", [True, False])
def test_a_careful_candidate_is_tried_where_the_first_harms_a_group(
    harm, generalise, monkeypatch
):
    X, relevance, Q = planted(n_queries=100)
    careful = Candidate("careful", ListwiseMap)
    first = Candidate("first", ListwiseMap, careful=lambda: careful)
    monkeypatch.setattr(module, "candidates", lambda *sizes: [first])
    seen = np.arange(100) < 80
    monkeypatch.setattr(module, "seen_queries", lambda *call: seen)
    raw = np.random.default_rng(0).uniform(0.4, 0.6, size=100)
    values = {
        AS_IS: raw, "first": raw + np.where(seen, 0.1, -0.1 if harm else 0.1),
        "careful": raw + 0.03,
    }  # fmt: skip
    run: list[str] = []

    def record(trial, some, folds):
        run.extend(names_of(c)[0] for c in some if names_of(c)[0] not in run)
        return iter(())

    monkeypatch.setattr(CrossValidation, "run", record)
    monkeypatch.setattr(CrossValidation, "names", lambda trial, folds: run)
    monkeypatch.setattr(
        CrossValidation,
        "_together",
        lambda trial, name, folds: tried(name, values[name]),
    )
    report = tune(X, relevance, queries=Q, generalise=generalise, random_state=0).report
    assert run == [AS_IS, "first", *(["careful"] if harm or generalise else [])]
    assert report.chosen == ("careful" if harm else "first")


def test_harm_to_a_small_group_must_be_beyond_chance():
    seen = np.arange(100) < 90
    few = np.linspace(-1, 1, 10)
    for loss, expected in ((0.4, 1), (0.55, 0)):  # of which a standard error is a fifth
        values = np.where(seen, 0.7, 0.5)
        values[~seen] += 0.1 * (few - loss)
        rivals = [tried(AS_IS, np.full(100, 0.5)), tried("map", values)]
        assert (
            Selection(rivals, seen, 1.0, False).pick(np.ones(100, dtype=bool))
            == expected
        )


@pytest.mark.parametrize("rival", [True, False])
def test_what_turns_out_to_harm_a_group_gives_way_to_the_next(rival):
    """Two that harm new queries of a half each are chosen by the other half."""
    noise = 0.05 * np.random.default_rng(0).normal(size=120)
    seen, half = np.arange(120) < 80, np.arange(120) % 2 == 0
    turns = [
        np.where(seen, 0.7, np.where(half == which, 0.3, 0.7))
        for which in (True, False)
    ]
    rivals = [
        tried(AS_IS, np.full(120, 0.5)), tried("one", turns[0] + noise),
        tried("other", turns[1] + noise), *([tried("modest", 0.55 + noise)] if rival else []),
    ]  # fmt: skip
    parts = [np.flatnonzero(half), np.flatnonzero(~half)]
    judgments = Relevance.from_lists([[0]] * 120, n_items=300)
    report, _ = judge(
        Selection(rivals, seen, 1.0, False), parts, judgments, MEASURE, 0.05
    )
    assert [t.name for t in report.tried] == [t.name for t in rivals]
    assert report.chosen == ("modest" if rival else AS_IS)
    assert report.verdict.startswith(
        "Better" if rival else "It is better on the whole, but worse"
    )


def test_generalising_chooses_by_queries_with_new_items():
    raw, seen = np.full(100, 0.5), np.arange(100) < 50
    noise = 0.01 * np.random.default_rng(0).normal(size=100)
    memory = tried("memory", np.where(seen, 0.8, 0.51) + noise)
    general = tried("general", np.where(seen, 0.55, 0.6) + noise)
    rivals = [tried(AS_IS, raw), memory, general]
    everyone = np.ones(100, dtype=bool)
    assert Selection(rivals, seen, 1.0, False).pick(everyone) == 1
    assert Selection(rivals, seen, 1.0, True).pick(everyone) == 2


@pytest.mark.parametrize("cores", [1, 2, 3, 4])
@pytest.mark.parametrize("n_folds", [1, 4, 5])
def test_a_left_over_fit_has_all_cores_and_gives_the_same(cores, n_folds, monkeypatch):
    X, relevance, Q = planted()
    folds = fold_queries(
        np.arange(60), np.arange(12) if n_folds == 1 else None, n_folds, 0
    )
    splits, tests = (
        [hold_out(X, relevance, Q, *fold) for fold in folds],
        [t for _, t in folds],
    )
    (candidate, _), shared = module.candidates(), []
    numbers = range(n_folds)

    class Watched(Threads):
        def map(self, step, blocks, state=None, *, max_in_flight=None):
            shared.append(len(blocks))
            return super().map(step, blocks, state, max_in_flight=max_in_flight)

    trial, plain = (
        CrossValidation(splits, tests, relevance, MEASURE) for _ in range(2)
    )
    for runner, backend in ((trial, Watched(cores)), (plain, Threads(1))):
        monkeypatch.setattr(
            "rankspace.tuning.trials.current_backend", lambda backend=backend: backend
        )
        list(runner.run([candidate], numbers))
    assert shared == [n_folds - (cores > 1 and n_folds % cores == 1)]
    np.testing.assert_array_equal(
        trial.tried(numbers)[0].values, plain.tried(numbers)[0].values
    )


def test_seen_queries_share_a_relevant_item_with_training():
    lists = [[0], [0, 1], [2], [3], [1, 3], [5]]
    relevance = Relevance.from_lists(lists, n_items=8)
    X, Q = np.eye(8), np.eye(8)[:6]
    split = module.hold_out(X, relevance, Q, np.array([0, 2, 3]), np.array([1, 4, 5]))
    seen = seen_queries([split], [np.array([1, 4, 5])], 6)
    assert seen.tolist() == [False, True, False, False, True, False]


def test_a_dev_split_is_judged_and_the_rest_learned_from():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, dev=np.arange(40, 60), random_state=0)
    values = tuned.report.before.values[MEASURE]
    assert np.isnan(values[:40]).all()
    assert not np.isnan(values[40:]).any()
    assert tuned.report.chosen == "shared"
    model = ListwiseMap(0.003, random_state=0).fit(X, relevance, queries=Q)
    np.testing.assert_allclose(tuned.metric.components, model.components_)


def n_judged(*data, **options) -> int:
    X, relevance, Q = data
    report = tune(X, relevance, queries=Q, random_state=0, **options).report
    return int((~np.isnan(report.before.values[MEASURE])).sum())


@pytest.mark.parametrize("large", [True, False])
def test_of_many_queries_one_fold_is_enough_if_it_is_clear(large, monkeypatch):
    monkeypatch.setattr(module, "is_large", lambda *sizes: large)
    assert n_judged(*planted()) == 60
    monkeypatch.setattr(module, "MANY_OF_LARGE" if large else "MANY_QUERIES", 60)
    assert n_judged(*planted()) == 20
    assert n_judged(*planted(), n_folds=3) == 60
    assert n_judged(*planted(informative=False)) == 60
    assert n_judged(*planted(informative=False), dev=np.arange(20)) == 20


def test_other_methods_are_tried_if_no_map_is_better_beyond_chance(monkeypatch):
    every = [
        Candidate("a map", lambda: ListwiseMap(0.003), "listwise"),
        Candidate("a diagonal", lambda: ListwiseMap(0.003), "diagonal"),
    ]
    monkeypatch.setattr(module, "candidates", lambda *sizes: every)

    def names(informative, **options) -> list[str]:
        X, relevance, Q = planted(informative=informative)
        report = tune(X, relevance, queries=Q, random_state=0, **options).report
        assert report.skipped == []
        return [t.name for t in report.tried]

    assert names(True) == [AS_IS, "a map"]
    assert names(True, exhaustive=True) == [AS_IS, "a map", "a diagonal"]
    assert names(False) == [AS_IS, "a map", "a diagonal"]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("exhaustive", [True, False])
@pytest.mark.parametrize(
    "methods", [["listwise"], ["diagonal"], ["listwise", "mlr"], []]
)
def test_all_looks_together_spend_the_level(methods, early, exhaustive):
    todo = [Candidate(method, lambda: ListwiseMap(), method) for method in methods]
    looks = _looks(todo, 3, early, exhaustive)
    assert sum(look.level for look in looks) == pytest.approx(0.025)
    assert all(look.level > 0 for look in looks)
    assert looks[-1].folds == range(3)
    assert {c.name for look in looks for c in look.candidates} == set(methods)


def test_weaker_pulls_are_tried_while_they_are_clearly_ahead(monkeypatch):
    def of_reg(reg: float) -> Candidate:
        return Candidate(
            f"reg {reg:g}", lambda: ListwiseMap(reg),
            weaker=lambda: of_reg(reg / 10) if reg > 1e-8 else None,
        )  # fmt: skip

    monkeypatch.setattr(
        module, "candidates", lambda *sizes: [of_reg(100.0), of_reg(10.0)]
    )
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, random_state=0).report
    names = [t.name for t in report.tried]
    assert names[:3] == [AS_IS, "reg 100", "reg 10"]
    assert 3 < len(names) < 12
    chosen = names.index(report.chosen)
    assert chosen in (len(names) - 1, len(names) - 2)
    X, relevance, Q = planted(informative=False)
    report = tune(X, relevance, queries=Q, random_state=0).report
    assert len(report.tried) <= 4


def test_labels_and_queries_that_are_rows():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) * [1, 1, 9, 9] + 2 * np.eye(4)[y]
    tuned = tune(X, y, measure="map", random_state=0)
    assert tuned.report.chosen == "shared"
    assert tuned.report.measure == "map"


def test_a_map_of_queries_may_be_the_answer(monkeypatch):
    few = [Candidate("query", lambda: ListwiseMap(0.003, sides="query"))]
    monkeypatch.setattr(module, "candidates", lambda *sizes: few)
    X, relevance, Q = planted()
    X, Q = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, Q))
    tuned = tune(X, relevance, queries=Q, random_state=0)
    assert tuned.report.chosen == "query"
    assert isinstance(tuned.metric, BilinearMetric)


def test_if_time_ends_between_looks_the_first_gets_the_whole_level(monkeypatch):
    monkeypatch.setattr(module, "MANY_QUERIES", 60)
    monkeypatch.setattr(module, "AT_ONE_FOLD", 1e-9)  # which no test reaches
    answers = iter(
        [True, True, True]
    )  # for two candidates on a fold, and for the other folds
    monkeypatch.setattr(module._Search, "_has_time", lambda *call: next(answers, False))
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, budget=1e9, random_state=0).report
    assert (~np.isnan(report.before.values[MEASURE])).sum() == 20
    assert report.chosen == "shared"
    assert report.skipped == []


def test_a_loss_is_not_told_as_a_small_chance():
    raw, noise = np.full(40, 0.5), 0.02 * np.random.default_rng(0).normal(size=40)
    half = np.arange(40) % 2 == 0
    rivals = [
        tried(AS_IS, raw), tried("one", np.where(half, 0.9, 0.3) + noise),
        tried("other", np.where(half, 0.3, 0.9) + noise),
    ]  # fmt: skip
    parts = [np.flatnonzero(half), np.flatnonzero(~half)]
    judgments = Relevance.from_lists([[0]] * 40, n_items=300)
    everyone = np.ones(40, dtype=bool)
    report, _ = judge(
        Selection(rivals, everyone, 1.0, False), parts, judgments, MEASURE, 0.05
    )
    assert report.chosen == AS_IS
    assert "one-sided p = 1, asked for is 0.05" in report.verdict


def test_queries_count_by_their_weight():
    half = np.arange(40) % 2 == 0
    rivals = [
        tried(AS_IS, np.full(40, 0.5)), tried("one", np.where(half, 0.8, 0.5)),
        tried("other", np.where(half, 0.5, 0.7)),
    ]  # fmt: skip
    everyone = np.ones(40, dtype=bool)
    for weights, expected in (
        (None, 1),
        (np.where(half, 1.0, 2.0), 2),
        (np.zeros(40), 1),
    ):
        assert (
            Selection(rivals, everyone, 1.0, False, weights).pick(everyone) == expected
        )


def test_items_that_do_not_count_stand_in_no_list():
    X, relevance, Q = planted()
    rng = np.random.default_rng(0)
    qrels = {
        f"{q}": {
            **{f"{i}": 0 for i in rng.permutation(300)[:15]},
            **{f"{i}": 1 for i in relevance.relevant(q)},
        }
        for q in range(60)
    }
    ids = [f"{i}" for i in range(300)]
    judged = Relevance.from_qrels(
        qrels, item_ids=ids, query_ids=[f"{q}" for q in range(60)], unjudged="ignore"
    )
    report = tune(X, judged, queries=Q, random_state=0).report
    assert report.chosen != AS_IS
    for q in (0, 17, 59):
        places = [int(i) for i in qrels[f"{q}"]]
        order = sorted(places, key=lambda i: np.sum((X[i] - Q[q]) ** 2))
        gains = np.array([qrels[f"{q}"][f"{i}"] for i in order], dtype=float)
        discounts = 1 / np.log2(np.arange(10) + 2)
        ideal = discounts @ np.sort(gains)[::-1][:10]
        expected = discounts[: gains[:10].size] @ gains[:10] / ideal
        assert report.before.values[MEASURE][q] == pytest.approx(expected)


def test_what_is_learned_from_is_judged_or_near():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(2500, 8)), rng.normal(size=(20, 8))
    near = np.argsort(((Q[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 5:8]
    relevance = Relevance.from_lists(near.tolist(), n_items=2500)
    assert with_hard_negatives(X, relevance, Q) == (X, relevance)  # for lengths differ
    X, Q = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, Q))
    few, part = with_hard_negatives(X, relevance, Q)
    assert np.unique(near).size < len(few) <= np.unique(near).size + 1000
    assert part.n_items == len(few)
    for q in range(20):
        np.testing.assert_array_equal(few[part.relevant(q)], X[relevance.relevant(q)])
        nearest = np.argsort(-X @ Q[q])[:20]
        assert all((few == X[item]).all(axis=1).any() for item in nearest)
    own = replace(relevance, query_items=np.arange(20))
    assert with_hard_negatives(X, own, Q) == (X, own)
    assert with_hard_negatives(X, own, None) == (X, own)


def test_a_budget_leaves_candidates_out_and_says_so():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, budget=1e-9, random_state=0)
    assert tuned.report.skipped == ["shared", "query"]
    assert tuned.report.chosen == AS_IS
    assert "No time was left for: shared, query." in str(tuned)


def test_the_report_prints_and_goes_to_json():
    X, relevance, Q = planted()
    tuned = tune(X, relevance, queries=Q, random_state=0)
    text = str(tuned)
    assert "held-out queries" in text
    assert "shared" in text
    content = json.loads(tuned.report.to_json())
    assert content["chosen"] == "shared"
    assert set(content["groups"]) <= {"all", "seen", "new"}
    assert content["groups"]["all"]["n_queries"] == 60
    assert [row["name"] for row in content["tried"]] == [AS_IS, "shared", "query"]


def test_steps_are_told():
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
    assert steps[-1] == ("fitting the choice on all queries", 1.0)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((200, 1400, 384), ("listwise", "diagonal")),
        ((2000, 100_000, 768), ("listwise",)),
        ((50, 500, 128), METHODS),
    ],
)
def test_candidates_suit_the_size(sizes, expected):
    found = candidates(*sizes, 0, "linear")
    assert len({c.name for c in found}) == len(found)
    assert {c.method for c in found} == set(METHODS)
    names = " ".join(name for c in found for name in names_of(c))
    assert all(
        where in names for where in ("both sides", "queries only", "for each side")
    )
    assert suited(*sizes) == expected


def test_pulls_get_weaker_and_end():
    first = candidates(100, 1000, 32, 0, "linear")[0]
    assert first.build().reg == [0.8, 0.024]
    assert first.weaker() is None
    weakest = first.along["weakest"]
    pulls, candidate = [], weakest
    while candidate is not None:
        pulls.append(candidate.build().reg)
        assert candidate.build().gain == "linear"
        candidate = candidate.weaker()
    np.testing.assert_allclose(np.ravel(pulls), [0.024, 0.008, 0.0024, 0.0008])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_queries": 2}, "at least 10 queries .* got 2"),
        ({"width": 5}, r"queries must have .* so shape \(60, 6\): got \(60, 5\)"),
        ({"hole": True}, "contains NaN"),
        ({"lost": True}, "queries that are no rows of X: pass their vectors"),
        ({"measure": "nope"}, "measure must be one of"),
        ({"methods": ["magic"]}, "methods must be one of"),
        (
            {"zeros": "items"},
            "X must not hold zeros among vectors of unit .* got 2, .* row 3",
        ),
        (
            {"zeros": "queries"},
            "queries must not hold zeros among vectors of unit .* got 2",
        ),
        ({"n_folds": 1}, "n_folds must lie between 2 and 60"),
        ({"dev": [0, 1]}, "dev must name at least 10 queries"),
    ],
)
def test_clear_sentences(change, message):
    X, relevance, Q = planted()
    if "n_queries" in change:
        relevance, Q = relevance.take_queries([0, 1]), Q[:2]
    if "width" in change:
        Q = Q[:, :5]
    if "zeros" in change:
        X, Q = (V / np.linalg.norm(V, axis=1, keepdims=True) for V in (X, Q))
        {"items": X, "queries": Q}[change["zeros"]][[3, 5]] = 0
    if "hole" in change:
        X[3, 2] = np.nan
    options = {
        k: v for k, v in change.items() if k in ("measure", "n_folds", "dev", "methods")
    }
    with pytest.raises(ValueError, match=message):
        tune(X, relevance, queries=None if "lost" in change else Q, **options)


def test_only_the_methods_that_were_asked_for_are_tried(monkeypatch):
    every = [
        Candidate("a map", lambda: ListwiseMap(1.0), "listwise"),
        Candidate("a diagonal", lambda: ListwiseMap(1.0), "diagonal"),
    ]
    monkeypatch.setattr(module, "candidates", lambda *sizes: every)
    X, relevance, Q = planted()
    report = tune(X, relevance, queries=Q, methods=["diagonal"], random_state=0).report
    assert [t.name for t in report.tried] == [AS_IS, "a diagonal"]


# ---------------------------------------------------------------------- its lists and its page


@pytest.mark.parametrize("separate", [True, False])
def test_lists_are_those_of_the_metric_that_judged(separate):
    """Items are numbered as in X, also where the held-out queries are rows of it."""
    X, relevance, Q = planted()
    if not separate:
        X, Q = np.random.default_rng(0).normal(size=(90, 4)), None
        relevance = np.digitize(X[:, 0], [-0.5, 0.5])
    report = tune(X, relevance, queries=Q, random_state=0).report
    before, after = report.rankings
    for query in range(20):
        point = (X if Q is None else Q)[query]
        items, distances = before[query]
        assert items.size == 10
        expected = np.linalg.norm(X[items] - point, axis=1)
        np.testing.assert_allclose(distances, expected, rtol=1e-9)
        assert Q is not None or query not in items
    values = evaluate(after, report.relevance, MEASURE).values[MEASURE]
    if separate:  # else the ideal list differs: held-out queries stand in no list
        np.testing.assert_allclose(values, report.after.values[MEASURE])


def test_the_page_shows_who_gains_and_who_loses(tmp_path):
    X, relevance, Q = planted()
    blind = Relevance.from_lists(
        [[], *(relevance.relevant(q).tolist() for q in range(1, 60))], n_items=300
    )
    report = tune(X, blind, queries=Q, random_state=0).report
    report.write_page(
        tmp_path / "page.html", title="a page",
        texts=[f"item <{i}>" for i in range(300)], query_texts=[f"wish {q}" for q in range(60)],
    )  # fmt: skip
    page = (tmp_path / "page.html").read_text()
    gains = report.after.values[MEASURE] - report.before.values[MEASURE]
    best = (
        np.flatnonzero(gains > gains.max() - 1e-9) + 1
    )  # query 0, with nothing to find, is out
    shown = page.split("Most improved")[1].split("</summary>")[0]
    assert any(f">{query}: wish {query} " in shown for query in best)
    assert "item &lt;" in page
    assert "Most harmed" in page
    assert "with new relevant items" in page
    assert report.verdict.split(",")[0] in page
    assert "listwise" not in page  # only what was tried
    assert all(t.name in page for t in report.tried[1:])


# ---------------------------------------------------------------------- the command


@pytest.fixture
def files(tmp_path):
    X, relevance, Q = planted()
    np.save(tmp_path / "corpus.npy", X)
    np.save(tmp_path / "queries.npy", Q)
    lines = [f"{q} 0 {i} 1" for q in range(60) for i in relevance.relevant(q)]
    (tmp_path / "qrels.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def tune_by_command(files, *more):
    return main([
        "tune", str(files / "corpus.npy"), "--queries", str(files / "queries.npy"),
        "--qrels", str(files / "qrels.txt"), "--output", str(files / "m.safetensors"), *more,
    ])  # fmt: skip


def test_the_command_writes_the_metric_and_says_what_it_is_worth(files, capsys):
    assert tune_by_command(files) == 0
    text = capsys.readouterr().out
    assert "Better beyond chance: shared" in text
    X, relevance, Q = planted()
    expected = tune(X, relevance, queries=Q, random_state=0).metric
    stored = load_metric(files / "m.safetensors")
    np.testing.assert_allclose(stored.components, expected.components)


def test_the_command_writes_a_page(files, capsys):
    assert tune_by_command(files, "--report", str(files / "page.html")) == 0
    assert (
        capsys.readouterr()
        .out.rstrip()
        .endswith("m.safetensors and " + str(files / "page.html"))
    )
    assert "rankspace tune: corpus" in (files / "page.html").read_text()
    assert tune_by_command(files, "--report", str(files / "no" / "page.html")) == 2
    assert "does not exist: create it first" in capsys.readouterr().err


def test_the_command_prints_json(files, capsys):
    assert tune_by_command(files, "--json", "--measure", "map", "--budget", "5m") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["measure"] == "map"
    assert content["output"].endswith("m.safetensors")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wine", "--qrels", "x"], "--qrels goes with a file of vectors"),
        (["mq2008-like"], "mq2008-like"),
        (["wine", "--dev", "nope"], "splits of wine are none: got 'nope'"),
    ],
)
def test_the_command_refuses_with_a_sentence(words, message, tmp_path, capsys):
    assert main(["tune", *words, "--output", str(tmp_path / "m.safetensors")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "number"), [("90", 90), ("60s", 60), ("1.5m", 90), ("2h", 7200)]
)
def test_times(text, number):
    assert seconds(text) == number


def test_a_time_that_is_none(files, capsys):
    with pytest.raises(SystemExit):
        tune_by_command(files, "--budget", "soon")
    assert "must be a time such as 60s" in capsys.readouterr().err
