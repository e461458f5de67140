"""Weights of fields beside a loss in loops and another solver."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from rankspace import Fields, Relevance
from rankspace.learners.fields import FLOOR, RIDGE, _problem, field_weights


def data(seed=0, weights=(3.0, 0.5, 0.0)):
    """Three fields, and relevant items that are nearest by a weighted sum of their cosines."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    items = Fields({name: rng.normal(size=(150, 5)) for name in names})
    queries = Fields({name: rng.normal(size=(60, 5)) for name in names})
    X, Q = np.asarray(items), np.asarray(queries)
    scores = (Q * np.repeat(weights, 5)) @ X.T + 0.3 * rng.normal(size=(60, 150))
    near = np.argsort(-scores, axis=1)[:, :3]
    return X, Relevance.from_lists(near, n_items=150), Q, items.widths


def slow_loss(weights, problem):
    """Cross-entropy, one query after the other."""
    total = 0.0
    for start, end in zip(problem.indptr[:-1], problem.indptr[1:], strict=True):
        scores = weights @ problem.cosines[:, start:end]
        probabilities = np.exp(scores) / np.exp(scores).sum()
        total -= problem.shares[start:end] @ np.log(probabilities)
    n = problem.indptr.size - 1
    return total / n + RIDGE / 2 * np.sum(weights**2)


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(seed):
    problem = _problem(*data())
    weights = np.random.default_rng(seed).uniform(0, 5, size=3)
    loss, gradient = problem.loss(weights)
    assert loss == pytest.approx(slow_loss(weights, problem))
    expected = approx_fprime(weights, slow_loss, 1e-7, problem)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_weights_are_those_of_another_solver():
    X, relevance, Q, widths = data()
    problem = _problem(X, relevance, Q, widths)
    found = minimize(
        slow_loss, np.ones(3), (problem,), "SLSQP", bounds=[(0, None)] * 3,
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    expected = np.maximum(found.x, FLOOR * found.x.max())
    weights = field_weights(X, relevance, Q, widths)
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=2e-4)
    assert weights[0] > 4 * weights[1]
    assert weights[2] < 0.05


def test_candidates_are_relevant_or_near_by_some_field():
    X, relevance, Q, widths = data()
    problem = _problem(X, relevance, Q, widths)
    assert problem.indptr.size == 61
    owners = np.repeat(np.arange(60), np.diff(problem.indptr))
    np.testing.assert_allclose(np.bincount(owners, problem.shares), 1.0)
    best = (Q[:, :5] @ X[:, :5].T).max(axis=1)
    tops = np.maximum.reduceat(problem.cosines[0], problem.indptr[:-1])
    np.testing.assert_allclose(tops, best)


def test_weights_that_tell_nothing_are_equal_or_at_the_floor():
    """Relevant items are the farthest by each field: every weight would be negative."""
    X, _, Q, widths = data()
    far = Relevance.from_lists(np.argsort(Q @ X.T, axis=1)[:, :2], n_items=150)
    weights = field_weights(X, far, Q, widths)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
