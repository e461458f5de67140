"""Votes of the nearest items against plain counting and scikit-learn."""

from collections import Counter

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from rankspace import (
    Euclidean,
    Index,
    LinearMetric,
    Ranking,
    class_shares,
    knn_error,
    leave_one_out,
)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return rng.normal(size=(60, 4)) + 0.8 * y[:, None], y


def test_shares_are_counts_of_the_nearest(points):
    X, y = points
    ranking = Index(X[:40]).rank(X[40:])
    classes, shares = class_shares(ranking, y[:40], 7)
    np.testing.assert_array_equal(classes, [0, 1, 2])
    for (items, _), row in zip(ranking, shares, strict=True):
        counts = Counter(y[:40][items[:7]].tolist())
        np.testing.assert_allclose(row, [counts[c] / 7 for c in range(3)])


def test_shares_without_the_query_itself(points):
    X, y = points
    with_own, without = (
        class_shares(Index(X).rank(X), y, 1, own_votes=own)[1] for own in (1, 0)
    )
    np.testing.assert_array_equal(with_own.argmax(axis=1), y)
    nearest = Index(X).rank(k=1).items
    np.testing.assert_array_equal(without.argmax(axis=1), y[nearest])


@pytest.mark.parametrize("k", [1, 5])
def test_leave_one_out_errors_are_those_of_scikit_learn(points, k):
    X, y = points
    L = np.random.default_rng(1).normal(size=(2, 4))
    report = leave_one_out(X, y, LinearMetric(L), ks=(1, 5))
    scores = cross_val_score(KNeighborsClassifier(k), X @ L.T, y, cv=LeaveOneOut())
    if k == 1:
        assert report.means["knn-error@1"] == pytest.approx(1 - scores.mean())
    # Ties of votes are settled otherwise there.
    assert report.means[f"knn-error@{k}"] == pytest.approx(1 - scores.mean(), abs=0.05)
    assert f"knn-error@{k}" in report.smaller_is_better


def test_leave_one_out_measures_are_those_of_ranking_all_others(points):
    X, y = points
    report = leave_one_out(X, y, ks=(3,), measures="map")
    assert report.means["map"] == pytest.approx(Euclidean().fit(X, y).score(X, y))
    lists = Index(X).rank()
    expected = np.mean(
        [np.mean(y[items[:3]] == y[q]) for q, (items, _) in enumerate(lists)]
    )
    assert report.means["p@3"] == pytest.approx(expected)
    assert set(report.values) == {"map", "p@3", "ndcg-mlr@3", "knn-error@3"}


def test_bad_sizes(points):
    X, y = points
    ranking = Index(X).rank(X[:2], 5)
    with pytest.raises(ValueError, match=r"k must be from 1 to .* got k=6 and 5 items"):
        class_shares(ranking, y, 6)
    with pytest.raises(
        ValueError, match=r"class of each of 60 items: got shape \(3,\)"
    ):
        class_shares(ranking, y[:3], 2)
    for ks in ((60,), (), (0,)):
        with pytest.raises(ValueError, match="numbers of neighbours from 1 to 59"):
            leave_one_out(X, y, ks=ks)


def test_singletons_are_left_out_of_measures_but_not_of_errors():
    report = leave_one_out(np.arange(5.0)[:, None], [0, 0, 1, 1, 2], ks=(1,))
    assert np.isnan(report.values["map"]).tolist() == [False] * 4 + [True]
    assert report.values["knn-error@1"][4] == 1


def test_a_neighbour_votes_once():
    ranking = Ranking.from_pairs([(np.array([1, 1, 0]), np.arange(3.0))], 2)
    message = "a list must not name an item twice: that of query '0' does"
    with pytest.raises(ValueError, match=message):
        knn_error(ranking, [0, 1], 2, query_labels=[1])
