"""The papers' own forms: FRML's Algorithm 1, LMNN as its special case, options of LGMML."""

import numpy as np
import pytest
from sklearn.base import clone

from rankspace import FRML, LGMML, LMNN, Relevance
from rankspace.learners.solvers.geometric.lists import Lists, high_counts, with_high
from rankspace.learners.solvers.geometric.metric_weights import (
    WarpOptions,
    shared_warp,
)
from rankspace.learners.solvers.warp.paper import algorithm_1
from reference import frml as reference

# ---------------------------------------------------------------------- FRML


def printed(F, V, c):
    """Algorithm 1 as it is printed: S = A1'A2."""
    inverse = np.linalg.pinv(F)
    A1, A2 = inverse @ (V * c), inverse @ V
    hat, S = F @ A1, A1.T @ A2
    return F + (V * c - hat / 2 + (0.375 * hat - V * c / 2) @ S) @ A2.T


def test_algorithm_1_is_the_retraction_and_as_printed_it_is_not(rng):
    F, V = rng.normal(size=(6, 3)), rng.normal(size=(6, 4))
    c = rng.normal(size=4) / 10
    A = np.linalg.pinv(F) @ V
    inner, S = algorithm_1(A, c, printed=False)
    W, _ = reference.retract(F @ F.T, F, (V * c) @ V.T)
    moved = F @ inner + V @ S
    np.testing.assert_allclose(moved @ moved.T, W, atol=1e-12)
    inner, S = algorithm_1(A, c, printed=True)
    np.testing.assert_allclose(F @ inner + V @ S, printed(F, V, c), atol=1e-12)
    assert np.abs(printed(F, V, c) - moved).max() > 1e-4


class PlainPaper(reference.FactoredFRML):
    """Constant steps along the retraction of Lemma 3.2, or as printed, by whole matrices."""

    solver = "paper"

    def take_step(self):
        V, c = self.gradient_terms()
        W, c = self.F @ self.F.T, -self.step * c
        if self.solver == "printed":
            self.F = printed(self.F, V, c)
        else:
            self.F = reference.retract(W, self.F, (V * c) @ V.T)[1]
        self.n_triplets += self.batch_size


@pytest.mark.parametrize("solver", ["paper", "printed"])
def test_the_descent_is_that_of_plain_loops(solver, rng):
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 4)) + y[:, None]
    start = rng.normal(size=(2, 4))
    options = {"gamma": 4, "reg": 0.05, "step": 0.02, "n_triplets": 200}
    model = FRML.paper(2, solver=solver, init=start, random_state=0, **options)
    model.fit(X, y)
    scaled = (X - X.mean(axis=0)) / model.scale_
    del options["n_triplets"]
    first = start.T * model.scale_
    twin = PlainPaper(
        scaled,
        Relevance.from_labels(y),
        first,
        seed=model._state.seed,
        batch_size=5,
        **options,
    )
    twin.solver = solver
    F = twin.run(200) / model.scale_
    expected = F @ F.T
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), expected, rtol=1e-6)


def test_frml_paper_learns_and_its_settings_are_the_papers(wine):
    X, y = wine
    model = FRML.paper(3, n_triplets=20_000, random_state=0)
    assert (model.solver, model.batch_size, model.init) == ("paper", 5, "normal")
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert len({row["multiplier"] for row in model.history_}) == 1
    assert clone(model).get_params() == model.get_params()


def test_paper_solvers_say_what_they_cannot_do(wine):
    with pytest.raises(ValueError, match="requires n_shards=1 and"):
        FRML.paper(3, n_shards=2).fit(*wine)
    with pytest.raises(ValueError, match="regularizer='frobenius'"):
        FRML.paper(3, regularizer="frobenius").fit(*wine)
    with pytest.raises(ValueError, match="solver must be one of"):
        FRML(3, solver="sgd").fit(*wine)


def lmnn_loss(X, y, W, n_targets, push):
    """The loss of LMNN by loops, X at unit mean squared distance."""
    relevance = Relevance.from_labels(y)
    total = 0.0
    for q in range(len(X)):
        others = X - X[q]
        plain, learned = (others**2).sum(axis=1), np.sum(others @ W * others, axis=1)
        relevant = relevance.relevant(q)
        targets = relevant[np.argsort(plain[relevant], kind="stable")][:n_targets]
        for target in targets:
            hinges = 1 + learned[target] - learned[relevance.irrelevant(q)]
            total += (1 - push) * learned[target] + push * np.maximum(hinges, 0).sum()
    return total / len(X)


def test_lmnn_is_a_special_case_of_frml(rng):
    """Section 4.1 of the FRML paper: full rank, target neighbours, equal weights of all ranks."""
    y = np.arange(45) % 3
    X = rng.normal(size=(45, 4)) + 0.8 * np.eye(4)[y]
    push, n_irrelevant = 0.5, 30
    reg = (1 - push) / (1 - push + push * n_irrelevant)
    model = FRML(
        rank_weights="uniform",
        n_targets=2,
        init="identity",
        reg=reg,
        validation_fraction=0,
        n_triplets=200_000,
        random_state=0,
    ).fit(X, y)
    exact = LMNN(2, push=push, tol=1e-9, max_iter=1000).fit(X, y)
    scaled = X / model.scale_
    losses = [
        lmnn_loss(scaled, y, W * model.scale_**2, 2, push)
        for W in (
            model.get_mahalanobis_matrix(),
            exact.get_mahalanobis_matrix(),
            0 * np.eye(4),
        )
    ]
    found, best, nothing = losses
    assert best == pytest.approx(exact.loss_, rel=1e-6)
    assert best <= found < best + 0.02 * (nothing - best)


# ---------------------------------------------------------------------- LGMML


def some_lists():
    grades = np.array([4, 3, 2, 0, 2, 2, 1, 1, 0, 1, 0, 0], dtype=float)
    return Lists(np.array([0, 4, 9, 12]), np.arange(12), grades, np.ones(3))


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        ("upper", [2, 2, 1]),
        ("highest", [1, 2, 1]),
        (3, [2, 2, 1]),
        (1, [3, 4, 1]),
        (0, [3, 4, 1]),
        (9, [1, 2, 1]),
    ],
)
def test_documents_that_count_as_alike(high, expected):
    lists = with_high(some_lists(), high)
    assert high_counts(lists).tolist() == expected
    assert high_counts(lists.take(np.array([2, 0]))).tolist() == [
        expected[2],
        expected[0],
    ]


def test_first_weights_scale_warp(rng):
    """Scores are linear in the weights, so a larger start, margin and step change the unit only."""
    lists, H = some_lists(), rng.random((12, 3))
    plain = shared_warp(H, lists, WarpOptions(0.1, 0.5, 20, 0))
    scaled = shared_warp(H, lists, WarpOptions(0.4, 2.0, 20, 0, 4.0))
    np.testing.assert_allclose(scaled, 4 * plain)
    other = shared_warp(H, lists, WarpOptions(0.1, 0.5, 20, 0, 4.0))
    assert not np.allclose(other, 4 * plain)


def test_options_of_the_paper_reach_the_fit(rng):
    X, qid = rng.normal(size=(60, 3)), np.arange(60) // 10
    grades = rng.integers(0, 4, 60)
    plain = LGMML.paper(4, random_state=0).fit(X, grades, qid=qid).predict(X)
    for change in ({"high": "highest"}, {"high": 2}, {"init_weight": 5.0}):
        model = LGMML.paper(4, random_state=0, **change).fit(X, grades, qid=qid)
        assert not np.allclose(model.predict(X), plain)
    same = LGMML.paper(4, random_state=0, high="upper", init_weight=1.0)
    np.testing.assert_array_equal(same.fit(X, grades, qid=qid).predict(X), plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"high": "top"}, "high must be one of"),
        ({"init_weight": 0}, "init_weight == 0"),
    ],
)
def test_bad_options_of_lgmml(options, message, wine):
    with pytest.raises(ValueError, match=message):
        LGMML.paper(2, **options).fit(*wine)
