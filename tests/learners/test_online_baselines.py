"""OASIS, LORETA and ITML against plain loops of their formulas."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import ITML, LORETA, OASIS, BilinearMetric, Euclidean, Relevance
from rankspace._engine.kernels.online import oasis
from rankspace.learners.online_baselines import draw_triplets, move_against
from rankspace.learners.solvers.log_det import LogDetProjections
from rankspace.learners.solvers.warp.descent import Progress


@parametrize_with_checks(
    [ITML(n_pairs=100, tol=0.1), OASIS(n_triplets=500), LORETA(2, n_triplets=500)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_triplets_are_of_a_query_something_relevant_and_something_not(wine):
    _, y = wine
    queries, pos, neg = draw_triplets(Relevance.from_labels(y), 2000, 0)
    assert (y[queries] == y[pos]).all()
    assert (queries != pos).all()
    assert (y[queries] != y[neg]).all()
    assert np.unique(neg).size > 150
    again = draw_triplets(Relevance.from_labels(y), 2000, 0)
    np.testing.assert_array_equal(neg, again[2])


def plain_oasis(Q, X, queries, pos, neg, C):
    M = np.eye(X.shape[1])
    for q, p, n in zip(Q[queries], X[pos], X[neg], strict=True):
        hinge = max(0.0, 1 - q @ M @ p + q @ M @ n)
        V = np.outer(q, p - n)
        M += min(C, hinge / np.sum(V**2)) * V
    return M


@pytest.mark.parametrize("C", [0.05, 10.0])
def test_oasis_is_its_formula(C, rng):
    X, Q = rng.normal(size=(20, 4)), rng.normal(size=(6, 4))
    triplets = [rng.integers(0, n, 200) for n in (6, 20, 20)]
    triplets[2] = (triplets[1] + 1 + triplets[2] % 19) % 20
    M = np.eye(4)
    n_violators = oasis(Q, X, *triplets, C, M)
    np.testing.assert_allclose(M, plain_oasis(Q, X, *triplets, C), atol=1e-10)
    assert 0 < n_violators < 200


def test_loreta_steps_against_the_gradient_of_its_loss(rng):
    """A short step along V C V' changes W by minus the step times its tangent part."""
    from reference import frml as reference

    F, q, w = rng.normal(size=(5, 2)), rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    gradient = (
        -sum(np.outer(a, b) + np.outer(b, a) for a, b in zip(q, w, strict=True)) / 2
    )
    c = np.repeat((-0.25, 0.25), 3)
    progress = Progress(F, F.copy(), multiplier=1e-4)
    move_against(progress, np.concatenate((q + w, q - w)), c)
    expected = reference.tangent(F, gradient)
    moved = progress.F @ progress.F.T - F @ F.T
    np.testing.assert_allclose(
        moved / np.linalg.norm(moved), -expected / np.linalg.norm(expected), atol=1e-4
    )
    assert progress.squares == pytest.approx(np.sum(expected**2))
    length = 1e-4 * 0.01 * np.linalg.norm(F @ F.T) / np.linalg.norm(expected)
    np.testing.assert_allclose(
        moved, -length * expected, atol=1e-3 * np.abs(moved).max()
    )


@pytest.mark.parametrize("n_useless", [0, 4])
def test_loreta_of_full_rank_learns_as_well_as_of_low_rank(n_useless, wine):
    X, y = wine
    noise = np.random.default_rng(1).normal(size=(len(X), n_useless))
    best = LORETA(4, n_triplets=40_000, random_state=0).fit(X, y).score(X, y)
    X = np.hstack((X, noise))
    for unit in (1, 1e3):
        model = LORETA(n_triplets=40_000, random_state=0).fit(unit * X, y)
        assert model.score(unit * X, y) > best - 0.01


@pytest.mark.parametrize("step", [1e-3, 1e3, 1e8])
def test_loreta_takes_steps_of_any_length(step, wine):
    model = LORETA(step=step, n_triplets=10_000, random_state=0).fit(*wine)
    assert np.isfinite(model.metric_.query_map).all()


def slack_problem(V, similar, u, gamma):
    """The minimiser and the minimum of ITML's objective, by a general convex solver."""
    import cvxpy

    d = V.shape[1]
    A, slack = cvxpy.Variable((d, d), PSD=True), cvxpy.Variable(len(V))
    signs = np.where(similar, 1.0, -1.0)
    distances = cvxpy.hstack([cvxpy.sum(cvxpy.multiply(np.outer(v, v), A)) for v in V])
    divergence = cvxpy.trace(A) - cvxpy.log_det(A) - d
    penalty = cvxpy.sum(slack / u - cvxpy.log(slack) + np.log(u) - 1)
    problem = cvxpy.Problem(
        cvxpy.Minimize(divergence + gamma * penalty),
        [cvxpy.multiply(signs, distances - slack) <= 0],
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return A.value, problem.value


def slack_objective(A, slack, u, gamma):
    divergence = np.trace(A) - np.linalg.slogdet(A)[1] - len(A)
    return divergence + gamma * np.sum(slack / u - np.log(slack / u) - 1)


GAMMAS = (0.1, 1.0, 10.0, 100.0)
PROBLEMS = [(*size, gamma) for size in ((12, 4), (6, 8)) for gamma in GAMMAS]


@pytest.mark.parametrize(("n_pairs", "d", "gamma"), [*PROBLEMS, (80, 3, 5.0)])
def test_itml_solves_its_problem(n_pairs, d, gamma, rng):
    """With one block of pairs, with several, and with fewer pairs than features."""
    V = rng.normal(size=(n_pairs, d))
    similar = np.arange(n_pairs) % 2 == 0
    u = np.where(similar, 1.0, 6.0)
    expected, minimum = slack_problem(V, similar, u, gamma)
    projections = LogDetProjections(V, similar, u, gamma)
    for _ in range(3000):
        projections.cycle()
    A, slack = projections.matrix, projections.bounds
    assert slack_objective(A, slack, u, gamma) == pytest.approx(minimum, rel=1e-4)
    np.testing.assert_allclose(A, expected, atol=1e-3 * np.abs(expected).max())


def test_itml_tells_that_it_has_not_converged(wine):
    message = (
        r"stopped after 2 passes over the pairs .* tol=0.001. Raise max_iter or tol"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        ITML(n_pairs=200, max_iter=2, random_state=0).fit(*wine)


def test_itml_meets_its_constraints_and_its_duals_are_the_matrix(rng):
    V = rng.normal(size=(12, 4))
    similar = np.arange(12) < 6
    projections = LogDetProjections(V, similar, np.where(similar, 1.0, 6.0), 1.0)
    for _ in range(2000):
        projections.cycle()
    A, slack = projections.matrix, projections.bounds
    distances = np.einsum("ij,jk,ik->i", V, A, V)
    assert (distances[similar] <= slack[similar] + 1e-6).all()
    assert (distances[~similar] >= slack[~similar] - 1e-6).all()
    assert np.linalg.eigvalsh(A).min() > 0
    signed = np.where(similar, 1, -1) * projections.duals
    np.testing.assert_allclose(
        np.linalg.inv(A), np.eye(4) + V.T @ (signed[:, None] * V), rtol=1e-8
    )


@pytest.mark.parametrize(
    "model",
    [
        OASIS(n_triplets=20_000, random_state=0),
        LORETA(5, n_triplets=20_000, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_similarities_learn_in_any_unit(model, wine):
    X, y = wine
    score = model.fit(X, y).score(X, y)
    assert isinstance(model.metric_, BilinearMetric)
    assert score > Euclidean().fit(X, y).score(X, y) + 0.03
    assert model.fit(100 * X, y).score(100 * X, y) == pytest.approx(score, abs=0.01)
    assert not hasattr(model, "transform")
    single = model.fit(X.astype(np.float32), y).metric_
    assert single.query_map.dtype == single.item_map.dtype == np.float32


@pytest.mark.parametrize(
    "model",
    [OASIS(n_triplets=5000), LORETA(5, n_triplets=5000), ITML(n_pairs=200)],
    ids=lambda model: type(model).__name__,
)
def test_separate_queries(model, wine):
    X, y = wine
    relevance = Relevance.from_labels(y, query_labels=y[:50])
    model.fit(X, relevance, queries=X[:50] + 0.1)
    assert model.score(X, relevance, queries=X[:50] + 0.1) > 0.8


def test_itml_learns(wine):
    X, y = wine
    model = ITML(0.1, random_state=0).fit(X, y)
    assert model.score(X, y) > Euclidean().fit(X, y).score(X, y) + 0.05
    assert model.components_.shape == (13, 13)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OASIS(C=0), "C == 0, must be > 0"),
        (LORETA(14), "at most the number of features, 13: got 14"),
        (LORETA(0), "n_components == 0, must be >= 1"),
        (LORETA(step=-1), "step == -1, must be > 0"),
        (ITML(gamma=0), "gamma == 0, must be > 0"),
        (ITML(n_pairs=1), "n_pairs == 1, must be >= 2"),
    ],
)
def test_bad_parameters(model, message, wine):
    with pytest.raises(ValueError, match=message):
        model.fit(*wine)


def test_points_without_length_or_difference_are_refused():
    with pytest.raises(ValueError, match="rows that are not zero: all are"):
        OASIS().fit(np.zeros((4, 2)), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="rows that differ: all are equal"):
        ITML().fit(np.ones((4, 2)), [0, 0, 1, 1])
