"""Ranking measures against plain Python, enumeration of ties and trec_eval."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankspace import Ranking, Relevance, evaluate, knn_error
from rankspace._engine.kernels import measures as kernels
from rankspace._engine.kernels import ties
from rankspace.evaluation import measures as table
from reference.rankings import (
    MEASURES,
    NEED_ALL,
    lists_everything,
    nearest_vote_error,
    query_score,
    score,
    whole,
)

NAN, INF = math.nan, math.inf
TOP_MEASURES = [name for name in MEASURES if name not in NEED_ALL]


# ---------------------------------------------------------------------- random small problems


@dataclass
class Problem:
    """Rows of grades (NaN: unjudged) and distances (inf: not listed), and the rules."""

    grades: list
    distances: list
    own: list
    unjudged: str
    min_relevant_grade: float
    weights: list

    def relevance(self, **options):
        judged = [{i: g for i, g in enumerate(row) if g == g} for row in self.grades]
        return Relevance.from_lists(
            judged,
            n_items=len(self.grades[0]),
            query_rows=self.own,
            unjudged=self.unjudged,
            min_relevant_grade=self.min_relevant_grade,
            weights=self.weights,
            **options,
        )

    def ranking(self, **options):
        return Ranking.from_distances(self.distances, **options)

    def expected(self, name, ties="index"):
        rules = {
            "unjudged": self.unjudged,
            "min_relevant_grade": self.min_relevant_grade,
            "ties": ties,
        }
        rows = zip(self.grades, self.distances, self.own, strict=True)
        return [query_score(name, g, d, own=own, **rules) for g, d, own in rows]

    @property
    def is_complete(self):
        rows = zip(self.grades, self.distances, self.own, strict=True)
        return all(lists_everything(g, d, own, self.unjudged) for g, d, own in rows)

    @property
    def measures(self):
        return list(MEASURES) if self.is_complete else TOP_MEASURES


@st.composite
def problems(draw, distances=(0.0, 1.0, 2.0, INF), max_items=5):
    n_items, n_queries = draw(st.integers(1, max_items)), draw(st.integers(1, 4))

    def table(values):
        row = st.lists(st.sampled_from(values), min_size=n_items, max_size=n_items)
        return draw(st.lists(row, min_size=n_queries, max_size=n_queries))

    own = [-1] * n_queries
    if n_queries <= n_items and draw(st.booleans()):
        own = draw(st.permutations(range(n_items)))[:n_queries]
    weight = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    weights = draw(st.lists(weight, min_size=n_queries, max_size=n_queries).filter(any))
    return Problem(
        grades=table([NAN, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]),
        distances=table(distances),
        own=own,
        unjudged=draw(st.sampled_from(["irrelevant", "ignore"])),
        min_relevant_grade=draw(st.sampled_from([1.0, 2.0])),
        weights=weights,
    )


def assert_same_values(report, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(
            report.values[name], values, atol=1e-12, err_msg=name
        )


def expected_mean(values, weights):
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v == v]
    total = sum(w for _, w in pairs)
    return sum(v * w for v, w in pairs) / total if total else NAN


def test_every_measure_has_a_reference():
    assert {name.partition("@")[0] for name in MEASURES} == set(table.MEASURES)


def test_measures_that_need_complete_lists():
    assert {n for n, m in table.MEASURES.items() if m.complete} == set(NEED_ALL)


def test_every_measure_has_its_kernels():
    one_list = (np.array([2, 5]), np.array([3.0, 1.0]), np.array([3.0, 2.0, 1.0]), 7, 4)
    values = {kernel(*one_list) for kernel in kernels.KERNELS.values()}
    assert len(values) == len(kernels.KERNELS)
    assert set(kernels.KERNELS) == set(ties.KERNELS)
    assert {m.kernel for m in table.MEASURES.values()} == set(kernels.KERNELS)


@pytest.mark.parametrize("kernel", ["ndcg", "ndcg_mlr"])
@pytest.mark.parametrize("k", [0, 2, 4])
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any), st.data())
@settings(deadline=None, max_examples=25)
def test_graded_gains_in_ties_are_the_mean_over_all_orders(kernel, k, first, data):
    """Two groups of tied items, with any gains, and a relevant item that is not listed."""
    second = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any))
    ideal = np.sort(np.array([g for g in (2, *first, *second) if g], float))[::-1]
    values = []
    for left in itertools.permutations(first):
        for right in itertools.permutations(second):
            gains = np.array([*left, *right], dtype=float)
            positions = np.flatnonzero(gains) + 1
            listed = gains[gains > 0]
            values.append(kernels.KERNELS[kernel](positions, listed, ideal, 9, k))
    groups = ties.TieGroups(
        np.array([0, len(first)]),
        np.array([len(first), len(second)]),
        np.array([np.count_nonzero(first), np.count_nonzero(second)]),
        np.array([sum(first), sum(second)], dtype=float),
    )
    found = ties.KERNELS[kernel](groups, ideal, 9, k)
    assert found == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        ("exponential", [0.0, 1.0, 3.0, 7.0]),
        ("linear", [0, 1, 2, 3]),
        ("binary", [1, 1, 1, 1]),
    ],
)
def test_gains_of_grades(gain, expected):
    np.testing.assert_allclose(table.gains_of(np.arange(4.0), gain), expected)


@pytest.mark.parametrize("ties", ["index", "mean"])
@given(problem=problems())
@settings(deadline=None, max_examples=100)
def test_measures_equal_the_reference(problem, ties):
    report = evaluate(
        problem.ranking(), problem.relevance(), problem.measures, ties=ties
    )
    expected = {name: problem.expected(name, ties) for name in problem.measures}
    assert_same_values(report, expected)
    for name, values in expected.items():
        mean = expected_mean(values, problem.weights)
        assert report.means[name] == pytest.approx(mean, nan_ok=True, abs=1e-12)
        assert report.left_out[name] == sum(v != v for v in values)


@pytest.mark.parametrize("ties", ["index", "mean"])
@given(problem=problems(distances=(0.0, 1.0, 2.0)))
@settings(deadline=None, max_examples=100)
def test_measures_of_complete_lists_equal_the_reference(problem, ties):
    report = evaluate(problem.ranking(), problem.relevance(), MEASURES, ties=ties)
    assert_same_values(
        report, {name: problem.expected(name, ties) for name in MEASURES}
    )


@pytest.mark.parametrize("empty", [0, 1, 0.25])
@given(problem=problems())
@settings(deadline=None, max_examples=50)
def test_queries_with_nothing_relevant_score_what_empty_says(problem, empty):
    report = evaluate(problem.ranking(), problem.relevance(), TOP_MEASURES, empty=empty)
    for name in TOP_MEASURES:
        expected = np.nan_to_num(problem.expected(name), nan=empty)
        np.testing.assert_allclose(
            report.values[name], expected, atol=1e-12, err_msg=name
        )
        assert report.left_out[name] == 0
        assert report.means[name] == pytest.approx(
            np.average(expected, weights=problem.weights)
        )


@given(problem=problems(), cuts=st.lists(st.integers(0, 4), max_size=3))
@settings(deadline=None, max_examples=100)
def test_blocks_score_as_the_whole(problem, cuts):
    n_queries = len(problem.grades)
    bounds = sorted({0, n_queries, *(min(cut, n_queries) for cut in cuts)})
    blocks = (
        Ranking.from_distances(problem.distances[a:b])
        for a, b in itertools.pairwise(bounds)
    )
    whole_report = evaluate(problem.ranking(), problem.relevance(), problem.measures)
    in_blocks = evaluate(blocks, problem.relevance(), problem.measures)
    assert_same_values(in_blocks, whole_report.values)
    assert in_blocks.means == pytest.approx(whole_report.means, nan_ok=True)


@pytest.mark.parametrize("ties", ["index", "mean"])
@given(problem=problems(), data=st.data())
@settings(deadline=None, max_examples=100)
def test_lists_and_items_are_matched_by_name(problem, ties, data):
    """The ranking has its queries and items in another order, some of each missing, some extra."""
    n_queries, n_items = len(problem.grades), len(problem.grades[0])
    names = [f"d{i}" for i in range(n_items)]
    queries = [f"q{i}" for i in range(n_queries)]
    listed = data.draw(st.permutations([*names, "x1", "x2"]))[
        : data.draw(st.integers(1, 7))
    ]
    lists = data.draw(st.permutations([*queries, "other"]))[
        : data.draw(st.integers(1, 5))
    ]
    table = data.draw(
        st.lists(
            st.lists(
                st.sampled_from([0.0, 1.0, INF]),
                min_size=len(listed),
                max_size=len(listed),
            ),
            min_size=len(lists),
            max_size=len(lists),
        )
    )
    for mine, theirs in ((lists, queries), (listed, names)):
        # More missing ids than a few are an error: see test_matching.
        assume(len({*theirs} - {*mine}) <= 3)
    ranking = Ranking.from_distances(table, query_ids=lists, item_ids=listed)
    relevance = problem.relevance(query_ids=queries, item_ids=names)
    for mine, theirs in ((lists, queries), (listed, names)):
        if not set(mine) & set(theirs):
            with pytest.raises(ValueError, match=r"^(query|item) ids of .*: 0 of"):
                evaluate(ranking, relevance, TOP_MEASURES, ties=ties)
            return
    report = evaluate(ranking, relevance, TOP_MEASURES, ties=ties)

    columns = [*listed, *(name for name in names if name not in listed)]
    for q, query in enumerate(queries):
        grades = [
            problem.grades[q][names.index(c)] if c in names else NAN for c in columns
        ]
        distances = [INF] * len(columns)
        if query in lists:
            distances[: len(listed)] = table[lists.index(query)]
        own = columns.index(names[problem.own[q]]) if problem.own[q] >= 0 else -1
        for name in TOP_MEASURES:
            expected = query_score(
                name,
                grades,
                distances,
                own=own,
                unjudged=problem.unjudged,
                min_relevant_grade=problem.min_relevant_grade,
                ties=ties,
            )
            assert report.values[name][q] == pytest.approx(
                expected, nan_ok=True, abs=1e-12
            ), name


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([NAN, -1.0, 0.0, 1.0, 2.0]),
            st.sampled_from([0.0, 1.0, 2.0]),
        ),
        min_size=1,
        max_size=8,
    ),
    unjudged=st.sampled_from(["irrelevant", "ignore"]),
)
@settings(deadline=None, max_examples=100)
def test_candidate_lists_equal_the_reference(rows, unjudged):
    qid, grades, distances = zip(*rows, strict=True)
    relevance = Relevance.from_groups(grades, qid, unjudged=unjudged)
    report = evaluate(Ranking.from_groups(distances, qid), relevance, MEASURES)
    for q, query in enumerate(dict.fromkeys(qid)):
        mine = [(g, d) for name, g, d in rows if name == query]
        for name in MEASURES:
            expected = query_score(name, *zip(*mine, strict=True), unjudged=unjudged)
            assert report.values[name][q] == pytest.approx(
                expected, nan_ok=True, abs=1e-12
            ), name


@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    ties=st.sampled_from(["index", "mean"]),
)
@settings(deadline=None, max_examples=60)
def test_labels_equal_the_reference(labels, seed, ties):
    n = len(labels)
    distances = np.random.default_rng(seed).integers(0, 3, (n, n)).astype(float)
    report = evaluate(
        Ranking.from_distances(distances),
        Relevance.from_labels(labels),
        MEASURES,
        ties=ties,
    )
    for q in range(n):
        grades = [float(label == labels[q]) for label in labels]
        for name in MEASURES:
            expected = query_score(name, grades, distances[q], own=q, ties=ties)
            assert report.values[name][q] == pytest.approx(
                expected, nan_ok=True, abs=1e-12
            ), name


# ---------------------------------------------------------------------- worked by hand


def one_list(grades, **options):
    """Judgments of one query, and the ranking that lists the items as they stand."""
    judged = [{i: g for i, g in enumerate(grades) if g == g}]
    relevance = Relevance.from_lists(judged, n_items=len(grades), **options)
    return Ranking.from_distances([np.arange(len(grades), dtype=float)]), relevance


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auc", 2 / 4),
        ("ranking-error", 1.0),
        ("first-rank", 2.0),
        ("p@2", 1 / 2),
        ("p@10", 2 / 10),
        ("r@2", 1 / 2),
        ("map", (1 / 2 + 2 / 3) / 2),
        ("mrr", 1 / 2),
        ("knn@3", 1.0),
        ("knn@2", 0.0),
        ("ndcg@2", (1 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("ndcg", (1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3))),
        ("ndcg-linear", (1 / math.log2(3) + 2 / 2) / (2 + 1 / math.log2(3))),
        ("ndcg-mlr@2", 1 / 2),
        ("ndcg-mlr@3", (1 + 1 / math.log2(3)) / 2),
    ],
)
def test_measures_worked_by_hand(name, value):
    ranking, relevance = one_list([0, 1, 2, 0])
    assert evaluate(ranking, relevance, name).values[name] == pytest.approx([value])


@pytest.mark.parametrize(("order", "error"), [([1, 0], 0.0), ([0, 1], 2.0)])
def test_ranking_error_is_two_at_worst_and_one_by_chance(order, error):
    ranking, relevance = one_list(order)
    assert evaluate(ranking, relevance, "ranking-error").means == {
        "ranking-error": error
    }
    tied = Ranking.from_distances([[0.0, 0.0]])
    assert evaluate(tied, relevance, "ranking-error", ties="mean").means == {
        "ranking-error": 1.0
    }


def test_auc_is_the_mean_over_queries():
    """Not the area under averaged curves, which would be 0.75 here (SPEC 1.9)."""
    relevance = Relevance.from_lists([[0], [1]], n_items=2)
    ranking = Ranking.from_distances([[0.0, 1.0], [0.0, 1.0]])
    assert evaluate(ranking, relevance, "auc").means == {"auc": 0.5}


def test_one_relevant_item_alone():
    ranking, relevance = one_list([1.0])
    report = evaluate(ranking, relevance, MEASURES)
    for name in MEASURES:
        expected = score(name, [1.0], [1.0])
        assert report.values[name] == pytest.approx([expected], nan_ok=True), name
    assert report.left_out["auc"] == 1
    assert report.left_out["map"] == 0


@pytest.mark.parametrize("ties", ["index", "mean"])
def test_an_empty_list_finds_nothing(ties):
    ranking = Ranking.from_distances([[INF, INF]])
    relevance = Relevance.from_lists([[0]], n_items=2)
    report = evaluate(ranking, relevance, TOP_MEASURES, ties=ties)
    assert set(report.means.values()) == {0.0}


def test_no_queries_give_a_report_without_numbers():
    ranking = Ranking.from_pairs([], 3)
    report = evaluate(ranking, Relevance.from_lists([], n_items=3), "map auc")
    assert report.n_queries == 0
    assert all(math.isnan(mean) for mean in report.means.values())


@pytest.mark.parametrize("k", [1000, 2**40, 10**20])
def test_cut_offs_beyond_everything(k):
    ranking, relevance = one_list([0, 1, 1])
    report = evaluate(ranking, relevance, f"p@{k} r@{k} ndcg@{k} ndcg-mlr@{k} knn@{k}")
    full = evaluate(ranking, relevance, "ndcg ndcg-mlr").means
    assert list(report.means.values()) == pytest.approx(
        [2 / k, 1.0, full["ndcg"], full["ndcg-mlr"], 0.0]
    )


def test_a_row_is_not_in_its_own_list_but_its_duplicate_is():
    X = np.array([0.0, 0.0, 1.0, 2.0])
    ranking = Ranking.from_distances(np.abs(X[:, None] - X))
    report = evaluate(ranking, Relevance.from_labels([0, 0, 1, 1]), "mrr p@1")
    assert report.values["mrr"].tolist() == [1.0, 1.0, 1 / 3, 1.0]


def test_own_items_do_not_count_whether_listed_or_not():
    relevance = Relevance.from_labels([0, 0, 1])
    listed = Ranking.from_distances([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    unlisted = Ranking.from_distances([[INF, 1, 2], [1, INF, 2], [2, 1, INF]])
    assert_same_values(
        evaluate(unlisted, relevance, MEASURES),
        evaluate(listed, relevance, MEASURES).values,
    )


def test_graded_measures_use_grades_below_min_relevant_grade():
    ranking, relevance = one_list([1.0, 2.0], min_relevant_grade=2)
    report = evaluate(ranking, relevance, "ndcg-linear mrr")
    ideal = 2 + 1 / math.log2(3)
    assert report.means == pytest.approx(
        {"ndcg-linear": (1 + 2 / math.log2(3)) / ideal, "mrr": 0.5}
    )


@pytest.mark.parametrize("name", ["ndcg", "ndcg@2", "ndcg-linear"])
@pytest.mark.parametrize("ties", ["index", "mean"])
def test_grades_near_zero_still_have_a_gain(name, ties):
    ranking, relevance = one_list([0.0, 1e-20])
    assert evaluate(ranking, relevance, name, ties=ties).means == {
        name: pytest.approx(1 / math.log2(3))
    }


def test_grades_whose_gain_overflows_are_refused():
    """Not left out as if nothing were relevant."""
    ranking, relevance = one_list([0.0, 2000.0])
    with pytest.raises(ValueError, match="grade"):
        evaluate(ranking, relevance, "ndcg")


def test_zero_weight_leaves_a_query_out_of_the_mean():
    relevance = Relevance.from_lists([[0], [1]], n_items=2, weights=[3, 0])
    ranking = Ranking.from_distances([[0.0, 1.0], [0.0, 1.0]])
    assert evaluate(ranking, relevance, "mrr").means == {"mrr": 1.0}


def test_empty_fills_queries_with_nothing_relevant_only():
    """A query with nothing irrelevant has no pairs for auc: it stays left out."""
    relevance = Relevance.from_lists([[0, 1], [], [0]], n_items=2)
    ranking = Ranking.from_distances([[0.0, 1.0]] * 3)
    report = evaluate(ranking, relevance, "auc", empty=0)
    np.testing.assert_equal(report.values["auc"], [NAN, 0.0, 1.0])


def test_large_rankings_are_scored_in_threads_as_in_blocks(rng):
    n_queries, n_items = 21, 100_000
    distances = rng.integers(0, 1000, (n_queries, n_items)).astype(float)
    ranking = Ranking.from_distances(distances)
    relevance = Relevance.from_labels(
        rng.integers(0, 50, n_items), query_labels=rng.integers(0, 52, n_queries)
    )
    blocks = (Ranking.from_distances(row[None]) for row in distances)
    expected = evaluate(blocks, relevance, "auc map ndcg@10")
    assert_same_values(evaluate(ranking, relevance, "auc map ndcg@10"), expected.values)


# ---------------------------------------------------------------------- trec_eval


TREC = {
    "map": "map",
    "mrr": "recip_rank",
    "p@5": "P.5",
    "r@5": "recall.5",
    "ndcg-linear": "ndcg",
    "ndcg-linear@5": "ndcg_cut.5",
    "ndcg-linear@100": "ndcg_cut.100",
}


def random_collection(seed, max_grade=3):
    """Qrels with unjudged items and queries with nothing relevant, and a run that cuts its lists.

    trec_eval keeps scores in single precision and orders ties its own way, so scores are ranks.
    """
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(20):
        items = [f"d{i:02d}" for i in range(30)]
        grades = rng.integers(0, rng.integers(1, max_grade + 2), 30)
        qrels[f"q{q}"] = {
            item: int(grade)
            for item, grade in zip(items, grades, strict=True)
            if item == "d00" or rng.random() < 0.6
        }
        order = rng.permutation(items)[: rng.integers(1, 31)]
        run[f"q{q}"] = {str(item): float(-i) for i, item in enumerate(order)}
    return qrels, run


def trec_eval(qrels, run, measure, level=1):
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {measure}, relevance_level=level)
    found = evaluator.evaluate(run)
    return [found[query][measure.replace(".", "_")] for query in qrels]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", TREC)
def test_measures_equal_trec_eval(name, seed):
    qrels, run = random_collection(seed)
    report = evaluate(Ranking.from_run(run), Relevance.from_qrels(qrels), name, empty=0)
    expected = trec_eval(qrels, run, TREC[name])
    np.testing.assert_allclose(report.values[name], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["map", "mrr", "p@5", "r@5"])
def test_min_relevant_grade_is_the_relevance_level_of_trec_eval(name):
    qrels, run = random_collection(11)
    relevance = Relevance.from_qrels(qrels, min_relevant_grade=2)
    report = evaluate(Ranking.from_run(run), relevance, name, empty=0)
    expected = trec_eval(qrels, run, TREC[name], level=2)
    np.testing.assert_allclose(report.values[name], expected, rtol=0, atol=1e-9)


def test_exponential_gain_equals_trec_eval_on_transformed_grades():
    qrels, run = random_collection(7)
    report = evaluate(
        Ranking.from_run(run), Relevance.from_qrels(qrels), "ndcg@5", empty=0
    )
    gains = {
        q: {item: 2**grade - 1 for item, grade in row.items()}
        for q, row in qrels.items()
    }
    expected = trec_eval(gains, run, "ndcg_cut.5")
    np.testing.assert_allclose(report.values["ndcg@5"], expected, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- what is refused


ALL_NAMES = "auc, first-rank, knn@k, map, mrr, ndcg, ndcg-linear, ndcg-mlr, p@k, r@k, ranking-error"


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ("recall@3", f"measure must be one of {ALL_NAMES}: got 'recall@3'."),
        ("p@0", "the cut-off of a measure must be at least 1: got 'p@0'."),
        ("p@-1", f"measure must be one of {ALL_NAMES}: got 'p@-1'."),
        ("ndcg@1.5", f"measure must be one of {ALL_NAMES}: got 'ndcg@1.5'."),
        ("map p", "'p' needs a cut-off: write p@10 for the first 10 items."),
        (["knn"], "'knn' needs a cut-off: write knn@10 for the first 10 items."),
        ("map@10", "'map' takes no cut-off: got 'map@10'."),
        ("ranking-error@3", "'ranking-error' takes no cut-off: got 'ranking-error@3'."),
        ("", f"name at least one measure of {ALL_NAMES}."),
        ([], f"name at least one measure of {ALL_NAMES}."),
        (None, f"measures must be some of {ALL_NAMES}: got None."),
    ],
)
def test_bad_measure_names(measures, message):
    ranking, relevance = one_list([0, 1])
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(ranking, relevance, measures)


def test_measures_by_commas_spaces_or_list_named_once():
    ranking, relevance = one_list([0, 1])
    for measures in ("map, p@1 map", ["map", "p@1", "map"]):
        assert list(evaluate(ranking, relevance, measures).values) == ["map", "p@1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "random"}, "ties must be 'index' or 'mean': got 'random'."),
        ({"empty": "zero"}, "empty must be 'skip' or a number: got 'zero'."),
        ({"empty": None}, "empty must be 'skip' or a number: got None."),
    ],
)
def test_bad_options(options, message):
    ranking, relevance = one_list([0, 1])
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(ranking, relevance, "map", **options)


def test_numbers_of_numpy_are_numbers():
    ranking, relevance = one_list([0, 0])
    report = evaluate(ranking, relevance, "map", empty=np.int64(1))
    assert report.means == {"map": 1.0}


@pytest.mark.parametrize(
    ("relevant", "items"),
    [
        pytest.param([1], [1, 0, 1], id="a relevant item"),
        pytest.param([1], [0, 0, 1], id="an item outside the judgments"),
        pytest.param([2], [0, 0, 2], id="in the place of another"),
    ],
)
@pytest.mark.parametrize("name", ["map", "auc"])
def test_a_list_must_not_name_an_item_twice(relevant, items, name):
    ranking = Ranking.from_pairs([(np.array(items), np.arange(3.0))], 3)
    relevance = Relevance.from_lists([relevant], n_items=3)
    with pytest.raises(
        ValueError, match=r"^a list must not name an item twice: that of query 0"
    ):
        evaluate(ranking, relevance, name)


def test_a_list_must_not_name_a_named_item_twice():
    ranking = Ranking.from_pairs(
        [(np.array([1, 1]), np.arange(2.0))], 2, query_ids=["a"]
    )
    relevance = Relevance.from_qrels({"a": {"x": 1, "y": 0}}, item_ids=["x", "y"])
    message = "a list must not name an item twice: that of query 'a' does."
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(ranking, relevance, "map")


@pytest.mark.parametrize("name", NEED_ALL)
def test_measures_of_all_pairs_refuse_cut_lists(name):
    ranking = Ranking.from_distances([[0.0, 1.0, INF]])
    relevance = Relevance.from_lists([[0]], n_items=3)
    message = (
        f"{name} needs lists of all judged items: that of query 0 lacks some of 1 relevant and 2 "
        "irrelevant ones. Rank without k=..., or ask for measures of the top of the list."
    )
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(ranking, relevance, name)


def test_auc_takes_lists_that_lack_only_what_does_not_count():
    ranking = Ranking.from_distances([[0.0, 1.0, INF], [INF, INF, INF]])
    relevance = Relevance.from_lists(
        [[1], []], [[0], [1]], n_items=3, unjudged="ignore"
    )
    np.testing.assert_equal(
        evaluate(ranking, relevance, "auc").values["auc"], [0.0, NAN]
    )


def test_unknown_items_do_not_stand_in_for_missing_ones():
    ranking = Ranking.from_distances([[0.0, 1.0, 2.0]], item_ids=["x", "y", "a"])
    relevance = Relevance.from_lists([[0]], n_items=3, item_ids=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"^auc needs lists of all judged items"):
        evaluate(ranking, relevance, "auc")


def test_lists_and_queries_must_be_as_many():
    relevance = Relevance.from_lists([[0]], n_items=2)
    message = (
        "ranking and relevance must have the same queries: got 2 lists and 1 queries. Give both "
        "query_ids to match them by name."
    )
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(Ranking.from_distances(np.zeros((2, 2))), relevance)


def test_items_must_be_as_many():
    relevance = Relevance.from_lists([[0]], n_items=2)
    message = (
        "ranking and relevance must have the same items: got 3 and 2. Give both item_ids to match "
        "them by name."
    )
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(Ranking.from_distances(np.zeros((1, 3))), relevance)


@pytest.mark.parametrize("sizes", [[], [1], [2, 2]])
@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
def test_blocks_must_hold_a_list_for_each_query(sizes, names):
    blocks = [Ranking.from_distances(np.zeros((size, 2))) for size in sizes]
    relevance = Relevance.from_lists([[0], [1], [1]], n_items=2, query_ids=names)
    message = f"the blocks must hold one list for each of 3 queries: got {sum(sizes)}."
    with pytest.raises(ValueError, match=whole(message)):
        evaluate(blocks, relevance)


def test_a_block_may_hold_only_queries_of_zero_weight():
    relevance = Relevance.from_lists([[0], [1]], n_items=2, weights=[1, 0])
    ranking = Ranking.from_distances([[0.0, 1.0], [0.0, 1.0]])
    blocks = [Ranking.from_distances([[0.0, 1.0]]) for _ in range(2)]
    expected = evaluate(ranking, relevance, "mrr").values
    assert_same_values(evaluate(blocks, relevance, "mrr"), expected)


def test_blocks_are_matched_by_name():
    relevance = Relevance.from_lists([[0], [1]], n_items=2, query_ids=["a", "b"])
    blocks = [
        Ranking.from_distances([[1.0, 0.0]], query_ids=["b"]),
        Ranking.from_distances([[0.0, 1.0]], query_ids=["a"]),
    ]
    expected = evaluate(Ranking.join(blocks), relevance, "mrr").values
    assert expected["mrr"].tolist() == [1.0, 1.0]
    assert_same_values(evaluate(blocks, relevance, "mrr"), expected)


# ---------------------------------------------------------------------- k-NN


@given(
    n_items=st.integers(1, 6),
    n_queries=st.integers(1, 5),
    seed=st.integers(0, 10_000),
    k=st.integers(1, 6),
)
@settings(deadline=None, max_examples=100)
def test_knn_error_equals_a_plain_loop(n_items, n_queries, seed, k):
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, 4, (n_queries, n_items)).astype(float)
    labels = rng.integers(0, 3, n_items).tolist()
    truth = rng.integers(0, 4, n_queries).tolist()
    k = min(k, n_items)
    found = knn_error(Ranking.from_distances(distances), labels, k, query_labels=truth)
    assert found == pytest.approx(
        nearest_vote_error(distances.tolist(), labels, truth, k)
    )


@pytest.mark.parametrize(
    ("distances", "labels", "winner"),
    [
        pytest.param([1.0, 2.0, 3.0], ["b", "a", "a"], "a", id="most votes"),
        pytest.param([1.0, 2.0, 2.5, 3.0], ["b", "a", "a", "b"], "b", id="smaller sum"),
        pytest.param(
            [1.0, 2.0, 2.0, 3.0], ["b", "a", "a", "b"], "a", id="smaller label"
        ),
        pytest.param([-2.0, -1.0], ["b", "a"], "b", id="negative distances"),
    ],
)
def test_knn_vote(distances, labels, winner):
    ranking = Ranking.from_distances([distances])
    for label, error in (("a", winner != "a"), ("b", winner != "b")):
        assert knn_error(ranking, labels, len(labels), query_labels=[label]) == error


def test_knn_vote_at_infinite_distance():
    ranking = Ranking.from_pairs([(np.array([0, 1, 2]), np.array([1.0, 2.0, INF]))], 3)
    assert knn_error(ranking, ["a", "b", "b"], 3, query_labels=["b"]) == 0.0


def test_a_row_does_not_vote_for_itself():
    X = np.array([0.0, 1.0, 3.0])
    ranking = Ranking.from_distances(np.abs(X[:, None] - X))
    assert knn_error(ranking, ["a", "b", "a"], 1) == 1.0


@pytest.mark.parametrize("k", [0, 3])
def test_knn_needs_lists_of_k_items(k):
    ranking = Ranking.from_distances([[0.0, 1.0, 2.0], [0.0, 1.0, INF]])
    message = (
        f"k must be from 1 to the length of the shortest list: got k={k} and 2 items."
    )
    with pytest.raises(ValueError, match=whole(message)):
        knn_error(ranking, [0, 1, 0], k, query_labels=[0, 1])


def test_knn_needs_a_label_for_each_item_and_query():
    ranking = Ranking.from_distances([[0.0, 1.0, 2.0]])
    message = (
        "labels must name the class of each of 3 items and query_labels that of 1 queries: got "
        "shapes (3,) and (3,)."
    )
    with pytest.raises(ValueError, match=whole(message)):
        knn_error(ranking, [0, 1, 0], 1)


def test_knn_needs_labels_of_one_kind():
    ranking = Ranking.from_distances([[0.0, 1.0]])
    with pytest.raises(ValueError, match="both be text or both be numbers"):
        knn_error(ranking, [1, 2], 1, query_labels=["1"])
