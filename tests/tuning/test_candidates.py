"""Tuning candidates, their cross-validation, and their training data."""

from dataclasses import replace

import numpy as np
import pytest

from planted import planted, unit_length
from rankspace import Relevance
from rankspace.learners.hard_negatives import with_hard_negatives
from rankspace.relevance.splits import hold_out
from rankspace.tuning.candidates import METHODS, candidates, suitable_methods
from rankspace.tuning.cross_validation import CrossValidation, seen_queries

MEASURE = "ndcg-linear@10"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((200, 1400, 384), ("listwise", "diagonal")),
        ((2000, 100_000, 768), ("listwise",)),
        ((50, 500, 128), METHODS),
    ],
)
def test_candidates_suit_the_size_of_the_data(sizes, expected):
    found = candidates(*sizes, 0, "linear")
    assert len({c.name for c in found}) == len(found)
    assert {c.method for c in found} == set(METHODS)
    names = " ".join(part.name for c in found for part in c.with_parts)
    for words in ("shared by both sides", "queries only", "separate for each side"):
        assert words in names
    assert suitable_methods(*sizes) == expected


def test_regs_decrease_and_end():
    first = candidates(100, 1000, 32, 0, "linear")[0]
    assert first.build().reg == [0.8, 0.024]
    assert first.less_regularised is None
    assert first.parts["query"].less_regularised is None
    regs, candidate = [], first.parts["weakest"]
    while candidate is not None:
        regs.append(candidate.build().reg)
        assert candidate.build().gain == "linear"
        assert candidate.margin == 2
        candidate = candidate.less_regularised
    np.testing.assert_allclose(np.ravel(regs), [0.024, 0.008, 0.0024, 0.0008])


@pytest.mark.parametrize(("equal_norms", "side"), [(True, "query"), (False, "shared")])
def test_query_maps_are_preferred_for_vectors_of_equal_norm(equal_norms, side):
    first = candidates(60, 300, 6, 0, "linear", equal_norms)[0]
    assert first.preferred == first.parts[side].name
    assert first.margin == 2
    fallback = first.fallback
    assert fallback.build().unjudged_weight == 0.03
    assert list(fallback.parts) == ["shared", "query"]
    assert fallback.preferred == fallback.parts[side].name
    assert fallback.margin == fallback.parts["shared"].margin == 0
    assert fallback.fallback is None
    assert fallback.less_regularised is None


def test_parts_of_a_fit_equal_candidates_fitted_alone():
    X, relevance, Q = planted()
    X, Q = unit_length(X), unit_length(Q)
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    splits = [hold_out(X, relevance, Q, *fold) for fold in folds]
    tests = [test for _, test in folds]
    whole = candidates(60, 300, 6, 0, "linear")[0]
    parts = list(whole.parts.values())
    sides = [part.build().sides for part in parts]
    assert sides == ["shared", "query", "separate", "shared", "query"]
    for part in parts[:2]:
        assert part.build().reg == whole.build().reg
        assert part.part_of == whole.name
    for part in parts[2:]:
        assert part.build().reg == whole.build().reg[-1:]
        assert part.part_of == ("" if part is parts[2] else parts[2].name)
    together = CrossValidation(splits, tests, relevance, MEASURE)
    alone = CrossValidation(splits, tests, relevance, MEASURE)
    assert list(together.run([whole], [0, 1])) == [whole.name]
    list(alone.run(parts, [0, 1]))
    found = {trial.name: trial for trial in together.trials([0, 1])}
    for trial in alone.trials([0, 1]):
        np.testing.assert_array_equal(found[trial.name].values, trial.values)


def test_seen_queries_have_a_relevant_item_of_a_training_query():
    lists = [[0], [0, 1], [2], [3], [1, 3], [5]]
    relevance = Relevance.from_lists(lists, n_items=8)
    train, test = np.array([0, 2, 3]), np.array([1, 4, 5])
    split = hold_out(np.eye(8), relevance, np.eye(8)[:6], train, test)
    seen = seen_queries([split], [test], 6)
    assert seen.tolist() == [False, True, False, False, True, False]


def test_training_uses_judged_items_and_hard_negatives():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(2500, 8)), rng.normal(size=(20, 8))
    near = np.argsort(((Q[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 5:8]
    relevance = Relevance.from_lists(near.tolist(), n_items=2500)
    assert with_hard_negatives(X, relevance, Q) == (X, relevance)  # norms differ
    X, Q = unit_length(X), unit_length(Q)
    few, judgments = with_hard_negatives(X, relevance, Q)
    assert np.unique(near).size < len(few) <= np.unique(near).size + 1000
    assert judgments.n_items == len(few)
    for q in range(20):
        expected = X[relevance.relevant(q)]
        np.testing.assert_array_equal(few[judgments.relevant(q)], expected)
        nearest = np.argsort(-X @ Q[q])[:20]
        assert all((few == X[item]).all(axis=1).any() for item in nearest)
    own = replace(relevance, query_items=np.arange(20))
    assert with_hard_negatives(X, own, Q) == (X, own)
    assert with_hard_negatives(X, own, None) == (X, own)
