"""Most violated errors of majority votes against brute force over all rankings."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankspace._engine.kernels.votes import violate_vote

IGNORED = -1


def is_error(ranking, classes, k):
    """Whether another class has as many of the first k items as class 0, that of the query."""
    first = [classes[i] for i in ranking[:k]]
    others = [first.count(c) for c in set(first) if c != 0]
    return max(others, default=0) >= first.count(0)


def pair_sum(ranking, classes, scores):
    """Mean over pairs of +-(relevant score - irrelevant score), by their order."""
    place = {item: at for at, item in enumerate(ranking)}
    items = range(len(classes))
    pairs = [(i, j) for i in items for j in items if classes[i] == 0 < classes[j]]
    gaps = [
        np.copysign(1.0, place[j] - place[i]) * (scores[i] - scores[j])
        for i, j in pairs
    ]
    return sum(gaps) / len(pairs)


def largest_violation(classes, scores, k):
    """Over all rankings: loss minus what the pairs in order lose against the best ranking."""
    rankings = list(itertools.permutations(range(len(classes))))
    best = [r for r in rankings if sorted(r, key=lambda i: classes[i] > 0) == list(r)]
    lowest = min(is_error(ranking, classes, k) for ranking in best)
    top = pair_sum(best[0], classes, scores)
    return max(
        is_error(ranking, classes, k) * (1 - lowest)
        + pair_sum(ranking, classes, scores)
        - top
        for ranking in rankings
    )


def found_violation(classes, scores, k):
    order = np.argsort(-scores, kind="stable")
    kinds = np.where(classes[order] == 0, 1, 0).astype(np.int8)
    weights = np.empty(classes.size)
    loss = violate_vote(
        -scores[order], kinds, classes[order], classes.max() + 1, k, 1.0, weights
    )
    assert weights.sum() == pytest.approx(0, abs=1e-12)
    return loss - weights @ scores[order], weights


gaps = st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.5, -1.5, 3.0, 0.1])


@settings(deadline=None, max_examples=150)
@given(
    classes=st.lists(st.integers(0, 3), min_size=2, max_size=6),
    values=st.lists(st.one_of(gaps, st.floats(-2, 2)), min_size=6, max_size=6),
    k=st.integers(1, 7),
)
def test_k_candidates_for_each_class_hold_the_most_violated_error(classes, values, k):
    classes = np.array(classes)
    assume(0 < np.sum(classes == 0) < classes.size)
    scores = np.array(values[: classes.size])
    found, _ = found_violation(classes, scores, k)
    assert found == pytest.approx(largest_violation(classes, scores, k), abs=1e-12)


def test_more_neighbours_and_classes(rng):
    """Rankings of seven items: all 5,040, some with scores close enough for the loss to matter."""
    for _ in range(6):
        classes = np.concatenate(([0, 0, 0, 1, 1], rng.integers(1, 4, 2)))
        scores = rng.normal(size=7) * rng.choice([0.1, 0.5, 1.0])
        k = int(rng.integers(3, 6))
        found, _ = found_violation(classes, scores, k)
        assert found == pytest.approx(largest_violation(classes, scores, k), abs=1e-12)


def test_one_item_of_each_other_class_is_no_majority():
    """Two relevant items win against three others of different classes: knn@5 says they lose."""
    classes, scores = (
        np.array([0, 0, 1, 2, 3]),
        np.array([50.0, 49.0, 30.0, 29.0, 28.0]),
    )
    found, weights = found_violation(classes, scores, 5)
    assert found == 0
    assert not weights.any()


def test_ignored_items_have_no_weight():
    kinds = np.array([1, IGNORED, 0, 1, 0], dtype=np.int8)
    weights = np.empty(5)
    distances = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    violate_vote(distances, kinds, np.array([0, 5, 1, 0, 1]), 6, 1, 1.0, weights)
    assert weights[1] == 0
    assert weights.any()
