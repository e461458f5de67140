"""Measures that are given to MLR as functions: the oracle, the learner, and what is refused."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import scale

from rankspace import MLR, MLRCV, Relevance, RobustMLR
from rankspace._engine.kernels.oracles import additive_oracle
from rankspace.datasets import load_wine


def average_precision(n_relevant, n_irrelevant):
    """Relevant item i (from 1) at position i + g adds i / (i + g) / P."""
    i = np.arange(1, n_relevant + 1)[:, None]
    return i / (i + np.arange(n_irrelevant + 1)) / n_relevant


def rank_biased_precision(n_relevant, n_irrelevant, patience=0.8):
    """A reader looks at the next item with this probability (Moffat & Zobel 2008)."""
    places = np.arange(n_relevant)[:, None] + np.arange(n_irrelevant + 1)
    return (1 - patience) * patience**places


def grows(n_relevant, n_irrelevant):
    return np.tile(np.arange(n_irrelevant + 1.0), (n_relevant, 1))


def value_by_definition(measure, positions, n_neg):
    """The measure of a list whose relevant items stand at these positions, item by item."""
    if measure is average_precision:
        return np.mean([i / place for i, place in enumerate(positions, 1)])
    return sum(0.2 * 0.8 ** (place - 1) for place in positions)


def objective(measure, negs_above, pos, neg):
    first = range(1, pos.size + 1)
    places = [i + g for i, g in zip(first, negs_above, strict=True)]
    loss = value_by_definition(measure, first, neg.size)
    loss -= value_by_definition(measure, places, neg.size)
    pairs = [
        (p - n) * (1 if j >= g else -1)
        for p, g in zip(pos, negs_above, strict=True)
        for j, n in enumerate(neg)
    ]
    return loss + np.mean(pairs)


scores = st.lists(st.floats(-2, 2), min_size=1, max_size=5).map(
    lambda values: np.sort(np.array(values))[::-1].copy()
)


@pytest.mark.parametrize("measure", [average_precision, rank_biased_precision])
@given(pos=scores, neg=scores)
def test_the_oracle_is_the_best_of_all_rankings(measure, pos, neg):
    found = additive_oracle(pos, neg, measure(pos.size, neg.size))
    rankings = itertools.combinations_with_replacement(range(neg.size + 1), pos.size)
    best = max(objective(measure, ranking, pos, neg) for ranking in rankings)
    assert objective(measure, found, pos, neg) == pytest.approx(best, abs=1e-11)
    assert (np.diff(found) >= 0).all()


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    return scale(data.X)[::2], data.labels[::2]


@pytest.mark.parametrize("learner", [MLR, RobustMLR])
def test_map_as_a_function_learns_what_map_learns(wine, learner):
    own = learner(measure=average_precision).fit(*wine)
    built_in = learner(measure="map").fit(*wine)
    np.testing.assert_allclose(
        own.get_mahalanobis_matrix(), built_in.get_mahalanobis_matrix(), atol=1e-8
    )
    assert own.metric_.parameters["measure"] == "average_precision"


def test_map_as_a_function_learns_the_same_from_judged_lists(wine):
    X, y = wine
    labels = Relevance.from_labels(y)
    lists = [labels.relevant(q)[:5].tolist() for q in range(len(y))]
    others = [labels.irrelevant(q)[:7].tolist() for q in range(len(y))]
    judged = Relevance.from_lists(lists, others, unjudged="ignore")
    own = MLR(measure=average_precision).fit(X, judged)
    built_in = MLR(measure="map").fit(X, judged)
    np.testing.assert_allclose(own.components_, built_in.components_, atol=1e-8)


def test_a_new_measure_is_optimised(wine):
    X, y = wine
    model = clone(MLR(measure=rank_biased_precision)).fit(X, y)
    assert model.gap_ <= model.tol

    def mean_value(distances):
        np.fill_diagonal(distances, np.inf)
        order = np.argsort(distances, axis=1)[:, :-1]
        same = y[order] == y[:, None]
        return np.mean((0.2 * 0.8 ** np.arange(order.shape[1]) * same).sum(axis=1))

    before = ((X[:, None] - X) ** 2).sum(axis=2)
    mapped = model.transform(X)
    after = ((mapped[:, None] - mapped) ** 2).sum(axis=2)
    assert mean_value(after) > mean_value(before) + 0.01
    assert pickle.loads(pickle.dumps(model)).gap_ == model.gap_


def test_what_is_no_such_table_is_refused(wine):
    with pytest.raises(ValueError, match="do not grow"):
        MLR(measure=grows).fit(*wine)
    with pytest.raises(ValueError, match="one row for each relevant item"):
        MLR(measure=lambda n_relevant, n_irrelevant: [1.0]).fit(*wine)
    with pytest.raises(ValueError, match="scoring must name a measure"):
        MLRCV(measure=average_precision).fit(*wine)


def test_mlrcv_takes_one_with_a_scoring(wine):
    model = MLRCV((10, 100), measure=average_precision, scoring="map", random_state=0)
    assert model.fit(*wine).C_ in (10, 100)
