"""PARCA: loss against plain loops and finite differences, starts, solvers, cross-validation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rankspace import Relevance
from rankspace.learners.solvers.points import Points
from rankspace.learners.solvers.smooth import pair_ratio
from rankspace.learners.solvers.smooth.components import (
    FLOOR,
    START_LENGTHS,
    MapLoss,
    RegularizedLoss,
    multi_start,
    start_of,
)
from rankspace.learners.solvers.smooth.cross_validation import (
    CrossValidated,
    ranking_errors,
)
from rankspace.learners.solvers.smooth.lbfgs import Minimum, minimize_lbfgs
from rankspace.learners.solvers.smooth.minibatch import minimize_adam
from rankspace.learners.solvers.smooth.pair_ratio import PairRatio
from rankspace.relevance.splits import Split, cross_validation_splits
from reference.parca import log_ratio, slopes


def lists_of(kind, rng):
    """Relevance of 14 items: labels, lists with and without judged irrelevant items, grades."""
    weights = rng.random(14) + 0.5
    if kind == "labels":
        return Relevance.from_labels(np.arange(14) % 3, weights=weights)
    relevant = [np.sort(rng.choice(14, 4, replace=False)) for _ in range(14)]
    if kind == "lists":
        return Relevance.from_lists(relevant, weights=weights)
    if kind == "grades":
        graded = [{int(j): float(1 + j % 3) for j in items} for items in relevant]
        return Relevance.from_lists(graded, min_relevant_grade=2.0)
    others = [np.setdiff1d(np.arange(14), items)[::2] for items in relevant]
    return Relevance.from_lists(relevant, others, unjudged="ignore", weights=weights)


def usable(relevance):
    return relevance.take_queries(np.flatnonzero(relevance.trainable))


def embedded(relevance, rng, K=2, size=1.0):
    return Points(
        np.zeros((relevance.n_items, 1)), relevance.query_items, relevance.n_items
    ), (size * rng.normal(size=(relevance.n_items, K)))


@pytest.mark.parametrize("kind", ["labels", "lists", "grades", "judged"])
@pytest.mark.parametrize("K", [1, 3])
def test_value_and_gradient_match_plain_loops(kind, K, rng):
    relevance = usable(lists_of(kind, rng))
    points, Z = embedded(relevance, rng, K)
    value, gradient = PairRatio(points, relevance).value_and_gradient(Z)

    def slow(Z):
        return log_ratio(Z[relevance.query_items], Z, relevance)

    assert value == pytest.approx(slow(Z), rel=1e-12)
    np.testing.assert_allclose(gradient, slopes(slow, Z), rtol=1e-6, atol=1e-8)


def test_separate_queries_and_some_of_them(rng):
    relevance = Relevance.from_labels(np.arange(9) % 3, query_labels=[0, 1, 2, 0, 1])
    points = Points(np.zeros((14, 1)), 9 + np.arange(5), 9)
    Z, numbers = rng.normal(size=(14, 2)), np.array([0, 3, 4])
    ratio = PairRatio(points, relevance)
    value, gradient = ratio.value_and_gradient(Z, numbers)

    def slow(Z):
        return log_ratio(Z[9:], Z[:9], relevance, numbers)

    assert value == pytest.approx(slow(Z), rel=1e-12)
    np.testing.assert_allclose(gradient, slopes(slow, Z), rtol=1e-6, atol=1e-8)
    assert (gradient[[10, 11]] == 0).all()


def test_queries_without_weight_do_not_count(rng):
    relevance = Relevance.from_labels(np.arange(12) % 3)
    points, Z = embedded(relevance, rng)
    some = np.arange(12) < 6
    weighted = replace(relevance, weights=some.astype(float))
    found = PairRatio(points, weighted).value_and_gradient(Z)
    expected = PairRatio(points, relevance).value_and_gradient(Z, np.flatnonzero(some))
    assert found[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(found[1], expected[1])


@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0, 1e4, 1e8])
def test_nothing_overflows(size, rng):
    """Squared distances of 1e16 are far beyond what can be exponentiated."""
    relevance = Relevance.from_labels(np.arange(12) % 3)
    points, Z = embedded(relevance, rng, size=size)
    value, gradient = PairRatio(points, relevance).value_and_gradient(Z)
    assert value == pytest.approx(log_ratio(Z, Z, relevance), rel=1e-9, abs=1e-12)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-12 * max(1, size))


def test_block_sizes_change_nothing(monkeypatch, rng):
    relevance = Relevance.from_labels(rng.integers(0, 4, 150))
    points, Z = embedded(relevance, rng)
    whole = PairRatio(points, relevance).value_and_gradient(Z)
    monkeypatch.setattr(pair_ratio, "PAIRS", 1000)
    monkeypatch.setattr(pair_ratio, "BLOCK_BYTES", 1)
    monkeypatch.setattr(pair_ratio, "FEWEST", 2)
    parts = PairRatio(points, relevance).value_and_gradient(Z)
    assert parts[0] == pytest.approx(whole[0], rel=1e-13)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-10, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_laws(seed):
    """Rotating, moving, reordering and relabelling the points leave the loss unchanged."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(18) % 3)
    relevance = Relevance.from_labels(y)
    points, Z = embedded(relevance, rng)
    value, gradient = PairRatio(points, relevance).value_and_gradient(Z)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    turned = PairRatio(points, relevance).value_and_gradient(Z @ turn)
    moved = PairRatio(points, relevance).value_and_gradient(Z + rng.normal(size=2))
    order = rng.permutation(18)
    ordered = PairRatio(points, Relevance.from_labels(y[order])).value_and_gradient(
        Z[order]
    )
    named = PairRatio(points, Relevance.from_labels(np.array(list("zxy"))[y]))
    renamed = named.value_and_gradient(Z)
    for found, expected in (
        (turned, gradient @ turn),
        (moved, gradient),
        (ordered, gradient[order]),
        (renamed, gradient),
    ):
        assert found[0] == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(found[1], expected, rtol=1e-7, atol=1e-10)


# ---------------------------------------------------------------------- a map of the points


def problem(rng, n=30, d=5, sparse=False, dtype=np.float64):
    y = np.arange(n) % 3
    X = (rng.normal(size=(n, d)) + 2 * np.eye(3, d)[y]).astype(dtype)
    if sparse:
        X = scipy.sparse.csr_array(np.where(X > 0.5, X, 0).astype(dtype))
    relevance = Relevance.from_labels(y)
    return MapLoss(Points(X, relevance.query_items, n), relevance)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_by_the_map(sparse, rng):
    loss = RegularizedLoss(problem(rng, sparse=sparse), 0.1)
    A = rng.normal(size=(2, 5))
    expected = slopes(lambda A: loss.value_and_gradient(A)[0], A)
    np.testing.assert_allclose(
        loss.value_and_gradient(A)[1], expected, rtol=1e-6, atol=1e-8
    )


def test_the_floor_bounds_the_loss(rng):
    """Two points a class on a line far apart: log F falls without end, the loss does not."""
    X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), [0, 0, 1, 1]
    relevance = Relevance.from_labels(y)
    loss = MapLoss(Points(X, relevance.query_items, 4), relevance)
    value, gradient = loss.value_and_gradient(np.array([[100.0]]))
    assert value == pytest.approx(np.log(FLOOR))
    assert gradient == pytest.approx(0)
    A = np.array([[0.75]])
    expected = slopes(lambda A: loss.value_and_gradient(A)[0], A)
    assert np.log(FLOOR) + 0.01 < loss.value_and_gradient(A)[0] < -10
    np.testing.assert_allclose(loss.value_and_gradient(A)[1], expected, rtol=1e-5)


def test_single_precision_data(rng):
    loss = problem(np.random.default_rng(1), dtype=np.float64)
    single = problem(np.random.default_rng(1), dtype=np.float32)
    A = rng.normal(size=(2, 5))
    (value, gradient), found = loss.value_and_gradient(A), single.value_and_gradient(A)
    assert found[0] == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-3, atol=1e-4)
    assert found[1].dtype == np.float64


def test_lbfgs_finds_the_global_minimum_of_a_small_problem(rng):
    """One component of two features: a fine grid of angles and lengths, after a coarse one."""
    X, y = rng.normal(size=(24, 2)) * (3, 1), np.arange(24) % 2
    X[:, 1] += 2 * y
    relevance = Relevance.from_labels(y)
    loss = RegularizedLoss(
        MapLoss(Points(X, relevance.query_items, 24), relevance), 0.05
    )
    found = minimize_lbfgs(
        loss.value_and_gradient, np.array([[0.3, 0.3]]), tol=1e-12, max_iter=200
    )

    def value(angle, length):
        A = length * np.array([[np.cos(angle), np.sin(angle)]])
        return loss.value_and_gradient(A)[0]

    coarse = product(np.linspace(0, np.pi, 45), np.linspace(0.1, 3, 30))
    _, angle, length = min((value(*point), *point) for point in coarse)
    assert 1.5 <= angle <= 1.8
    assert 0.3 <= length <= 0.8
    fine = product(np.linspace(1.5, 1.8, 61), np.linspace(0.3, 0.8, 51))
    grid = min(value(*point) for point in fine)
    assert grid - 2e-3 < found.loss <= grid
    assert found.converged
    assert np.diff(found.losses).max() <= 0
    assert np.abs(loss.value_and_gradient(found.parameters)[1]).max() < 1e-4


# ---------------------------------------------------------------------- starts


def test_the_discriminant_start_is_that_of_lda(rng):
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 4)) @ np.diag([5.0, 1.0, 1.0, 1.0])
    X[:, 1] += 3 * y
    X -= X.mean(axis=0)
    relevance = Relevance.from_labels(y)
    points = Points(X, relevance.query_items, 400)
    found = start_of("lda", points, relevance, 1, 0)[0]
    expected = LinearDiscriminantAnalysis().fit(X, y).scalings_[:, 0]
    cosine = found @ expected / np.linalg.norm(found) / np.linalg.norm(expected)
    assert abs(cosine) > 0.99
    lists = Relevance.from_lists([np.flatnonzero(y == label) for label in y])
    again = start_of("lda", points, lists, 1, 0)[0]
    np.testing.assert_allclose(np.abs(again), np.abs(found), rtol=1e-8)


def test_a_start_gets_the_best_of_a_few_lengths(rng):
    loss = RegularizedLoss(problem(rng), 0.01)
    directions = rng.normal(size=(2, 5))
    chosen = loss.rescale_start(directions)
    unit = directions / np.sqrt(
        np.mean(np.sum(loss.loss.embed(directions) ** 2, axis=1))
    )
    values = [loss.value_and_gradient(t * unit)[0] for t in START_LENGTHS]
    np.testing.assert_allclose(chosen, START_LENGTHS[int(np.argmin(values))] * unit)


def test_multi_start_continues_from_the_best_start():
    calls = []

    def run(start, max_iter, tol=None):
        calls.append((float(start[0]), max_iter, tol))
        return Minimum(start + 10, -float(start[0]), [0.0] * max_iter, False, max_iter)

    starts = {"a": np.array([1.0]), "b": np.array([2.0])}
    name, found = multi_start(starts, run, 50, first_tol=0.1)
    assert name == "b"
    assert calls == [(1.0, 5, 0.1), (2.0, 5, 0.1), (12.0, 45, None)]
    assert len(found.losses) == found.n_steps == 50


# ---------------------------------------------------------------------- batches and trials


def test_adam_on_batches_reaches_the_loss_of_lbfgs(rng):
    loss = RegularizedLoss(problem(rng, n=600, d=8), 0.01)
    start = loss.rescale_start(rng.normal(size=(2, 8)))
    full = minimize_lbfgs(loss.value_and_gradient, start, tol=1e-9, max_iter=300)
    part = minimize_adam(loss, start, 600, batch_size=100, max_iter=300, seed=0)
    assert loss.value_and_gradient(part.parameters)[0] == pytest.approx(
        full.loss, abs=0.02
    )
    assert part.loss == pytest.approx(loss.value_and_gradient(part.parameters)[0])


def test_every_query_is_held_out_once(rng):
    relevance, X = Relevance.from_labels(np.arange(40) % 4), rng.normal(size=(40, 3))
    splits = cross_validation_splits(X, relevance, None, 0)
    rows = np.concatenate([split.points for split in splits])
    assert len(splits) == 5
    np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(X[:, 0]))
    for split in splits:
        both = np.concatenate((split.X, split.points))
        np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(X[:, 0]))
        assert split.relevance.trainable.all()


def test_separate_queries_are_held_out_and_items_stay(rng):
    relevance = Relevance.from_labels(np.arange(9) % 3, query_labels=np.arange(20) % 3)
    X, Q = rng.normal(size=(9, 2)), rng.normal(size=(20, 2))
    for split in cross_validation_splits(X, relevance, Q, 0):
        assert split.X is X
        assert len(split.queries) == split.relevance.n_queries == 16


def test_large_sets_need_no_second_fold(rng):
    relevance, X = (
        Relevance.from_labels(np.arange(6000) % 4),
        rng.normal(size=(6000, 1)),
    )
    (split,) = cross_validation_splits(X, relevance, None, 0)
    assert len(split.points) == 1000


def test_nothing_can_be_held_out_of_two_points():
    assert (
        cross_validation_splits(
            np.eye(3), Relevance.from_labels([0, 0, 1]).take_queries([0]), None, 0
        )
        == []
    )


def test_a_cross_validated_error_is_the_mean_over_all_held_out_queries(rng):
    relevance, X = Relevance.from_labels(np.arange(12) % 3), rng.normal(size=(12, 2))
    splits = cross_validation_splits(X, relevance, None, 0)
    errors = [ranking_errors(s, np.array([[2.0, i]])) for i, s in enumerate(splits)]
    found = CrossValidated.from_errors(2.0, errors)
    values = np.concatenate(errors)
    assert values.size == 12
    assert found.setting == 2.0
    assert found.error == pytest.approx(values.mean())
    assert found.standard_error == pytest.approx(values.std() / np.sqrt(values.size))


def test_ranking_errors_by_hand():
    judged = Relevance.from_labels([0, 1, 0], query_labels=[0])
    split = Split(
        np.array([[0.0], [1.0], [2.0]]), None, None, np.array([[0.4]]), judged
    )
    # Of two pairs one is misordered, the half that chance gives.
    assert ranking_errors(split, np.eye(1)) == pytest.approx([1.0])


def test_a_map_to_zero_has_an_infinite_error(rng):
    relevance, X = Relevance.from_labels(np.arange(12) % 3), rng.normal(size=(12, 2))
    splits = cross_validation_splits(X, relevance, None, 0)
    errors = [ranking_errors(split, np.zeros((1, 2))) for split in splits]
    assert CrossValidated.from_errors(1.0, errors).error == np.inf
