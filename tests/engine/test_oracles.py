"""Separation oracles against brute force over all interleavings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankspace._engine.kernels.measures import KERNELS
from rankspace._engine.kernels.oracles import ORACLES, most_violated
from rankspace.learners.solvers.cutting_plane.ranking_loss import discounts_of

CUT = ["precision", "knn", "ndcg", "ndcg_mlr"]
UNCUT = ["auc", "average_precision", "reciprocal_rank", "ndcg", "ndcg_mlr"]


def score(name, negs_above, n_neg, k):
    ones = np.ones(len(negs_above))
    positions = np.arange(1, ones.size + 1) + np.asarray(negs_above)
    return KERNELS[name](positions, ones, ones, n_neg, k)


def objective(name, negs_above, pos, neg, k):
    """Loss, plus the mean over pairs of +-(pos - neg), as the definition has it."""
    loss = score(name, [0] * pos.size, neg.size, k) - score(
        name, negs_above, neg.size, k
    )
    signs = np.where(np.arange(neg.size) >= np.asarray(negs_above)[:, None], 1, -1)
    return loss + np.mean(signs * (pos[:, None] - neg))


def check(name, pos, neg, k):
    found = most_violated(name, pos, neg, k, discounts_of(name, pos.size + neg.size))
    rankings = itertools.combinations_with_replacement(range(neg.size + 1), pos.size)
    best = max(objective(name, ranking, pos, neg, k) for ranking in rankings)
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() <= neg.size
    assert objective(name, found, pos, neg, k) == pytest.approx(best, abs=1e-11)


def descending(values):
    return np.sort(np.array(values, dtype=float))[::-1].copy()


close = st.lists(st.floats(-2, 2), min_size=1, max_size=5)
tied = st.lists(st.integers(-2, 2).map(lambda i: i / 4), min_size=1, max_size=5)
apart = st.lists(st.floats(-50, 50), min_size=1, max_size=5)
scores = st.one_of(close, tied, apart).map(descending)


@settings(deadline=None, max_examples=150)
@pytest.mark.parametrize("name", CUT)
@given(pos=scores, neg=scores, k=st.integers(1, 12))
def test_of_the_first_k(name, pos, neg, k):
    check(name, pos, neg, k)


@settings(deadline=None, max_examples=150)
@pytest.mark.parametrize("name", UNCUT)
@given(pos=scores, neg=scores)
def test_of_the_whole_list(name, pos, neg):
    check(name, pos, neg, 0)


@pytest.mark.parametrize("name", ["average_precision", "ndcg", "ndcg_mlr"])
def test_divide_and_conquer_against_the_dynamic_program(name, rng):
    """Longer lists than can be enumerated: NB of each relevant item by a table over (i, NB)."""
    for _ in range(20):
        n_pos, n_neg = rng.integers(5, 40, 2)
        scale = 10.0 ** rng.integers(-2, 2)
        pos, neg = (
            descending(rng.normal(size=n_pos)),
            descending(rng.normal(size=n_neg)),
        )
        pos, neg = scale * pos, scale * neg
        discounts = discounts_of(name, n_pos + n_neg)
        found = most_violated(name, pos, neg, 0, discounts)
        sums = np.concatenate(([0], np.cumsum(neg)))
        g = np.arange(n_neg + 1)
        best = np.zeros(n_neg + 1)
        for i in range(n_pos):
            if name == "average_precision":
                reward = (i + 1) / (i + 1 + g) / n_pos
            else:
                reward = discounts[i + g] / discounts[:n_pos].sum()
            pairs = (pos[i] * (n_neg - 2 * g) + 2 * sums - sums[-1]) / (n_pos * n_neg)
            best = np.maximum.accumulate(best) + pairs - reward
        loss_of_best = score(name, [0] * n_pos, n_neg, 0)
        expected = best.max() + loss_of_best
        assert objective(name, found, pos, neg, 0) == pytest.approx(expected, abs=1e-10)


def test_of_two_equally_good_rankings_the_worse_is_taken():
    """A tie of scores, no loss to gain: the irrelevant item goes first."""
    pos = neg = np.zeros(1)
    for name in ORACLES:
        assert most_violated(name, pos, neg, 1, np.ones(2)).tolist() == [1], name


def test_separated_scores_are_left_in_order():
    pos, neg = np.array([100.0, 99.0]), np.array([-99.0, -100.0, -101.0])
    for name in ORACLES:
        found = most_violated(name, pos, neg, 2, discounts_of(name, 5))
        assert found.tolist() == [0, 0], name
