"""Functions as measures: the same numbers as the kernels of the same measures."""

import numpy as np
import pytest

from rankspace import Index, Ranking, Relevance, evaluate


def reciprocal(grades, ideal):
    """Reciprocal rank of the first item with a grade above 0."""
    hits = np.flatnonzero(grades > 0)
    return 1 / (1 + hits[0]) if hits.size else 0.0


def dcg_ratio(grades, ideal):
    """NDCG with linear gain."""
    discount = 1 / np.log2(np.arange(2, max(grades.size, ideal.size) + 2))
    gains = np.maximum(grades, 0) @ discount[: grades.size]
    return gains / (ideal @ discount[: ideal.size])


def first_place(grades, ideal):
    """Position of the best item, an error."""
    return float(1 + np.argmax(grades))


first_place.larger_is_better = False


def random_problem(rng):
    """Grades of all three kinds, lists that lack items, and queries that are items."""
    grades = rng.choice([np.nan, -1.0, 0.0, 0.5, 1.0, 3.0], size=(4, 6))
    distances = rng.choice([1.0, 2.0, 3.0, np.inf], size=(4, 6))
    relevance = Relevance.from_lists(
        [{i: g for i, g in enumerate(row) if g == g} for row in grades],
        n_items=6,
        query_rows=rng.permutation(6)[:4],
        unjudged=rng.choice(["irrelevant", "ignore"]),
    )
    return Ranking.from_distances(distances), relevance


@pytest.mark.parametrize("empty", ["skip", 0.0])
def test_functions_see_what_kernels_see(rng, empty):
    for _ in range(50):
        measures = [dcg_ratio, "ndcg-linear"]
        values = evaluate(*random_problem(rng), measures, empty=empty).values
        np.testing.assert_allclose(
            values["dcg_ratio"], values["ndcg-linear"], atol=1e-12
        )


def test_lists_and_judgments_are_matched_by_id():
    relevance = Relevance.from_qrels(
        {"x": {"a": 1}, "y": {"b": 2}}, item_ids=["a", "b", "c"]
    )
    ranking = Ranking.from_distances(
        [[0.1, 0.2, 0.3]], query_ids=["x"], item_ids=["c", "a", "b"]
    )
    report = evaluate(ranking, relevance, [reciprocal, "mrr"])
    assert report.values["reciprocal"].tolist() == [0.5, 0.0]
    assert report.values["mrr"].tolist() == [0.5, 0.0]


def test_blocks_and_workers_score_functions(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 4, 40)
    relevance = Relevance.from_labels(y)
    blocks = Index(X).blocks(X, query_items=np.arange(40))
    report = evaluate(blocks, relevance, [reciprocal, first_place, "mrr"])
    np.testing.assert_allclose(report.values["reciprocal"], report.values["mrr"])
    assert report.smaller_is_better == {"first_place"}


def without_return(grades, ideal):
    grades.sum()


@pytest.mark.parametrize(
    ("measures", "options", "message"),
    [
        (lambda grades, ideal: 1.0, {}, "got a lambda. Write a def"),
        (lambda: None, {}, "got a lambda"),
        ([reciprocal, reciprocal], {}, "different names: got reciprocal, reciprocal"),
        (reciprocal, {"ties": "mean"}, "needs measures by name: got reciprocal"),
        (np.multiply.outer, {}, "returned array"),
        (without_return, {}, "without_return returned None"),
        ([], {}, "name at least one measure"),
    ],
)
def test_bad_measures_stop(measures, options, message):
    ranking = Ranking.from_distances([[0.1, 0.2]])
    relevance = Relevance.from_lists([[0]], n_items=2)
    with pytest.raises(ValueError, match=message):
        evaluate(ranking, relevance, measures, **options)
