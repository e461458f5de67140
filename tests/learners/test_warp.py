"""The parts of FRML: draws, rank weights, retraction and descent, each against a slow twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankspace import Euclidean, Relevance
from rankspace._engine.kernels.warp import (
    draw_candidates,
    draw_positives,
    draws_until,
    item_outside,
    list_violators,
    uniform,
)
from rankspace.learners.solvers.points import Points
from rankspace.learners.solvers.warp import descent as warp_descent
from rankspace.learners.solvers.warp import sampling as warp
from rankspace.learners.solvers.warp.descent import (
    Descent,
    Gradient,
    Options,
    Progress,
)
from rankspace.learners.solvers.warp.embeddings import LazyItems
from rankspace.learners.solvers.warp.factors import DenseFactor
from rankspace.learners.solvers.warp.riemannian import (
    MIN_SHARE,
    keep_rank,
    lift,
    retract,
    solve,
)
from rankspace.learners.solvers.warp.sampling import (
    nearest_positives,
    rank_weights,
    sampling_of,
)
from reference import frml as reference

seeds = st.integers(0, 2**32)


def low_rank_problem(seed):
    """A factor of rank m in d dimensions and a symmetric step of rank r, of any sign."""
    rng = np.random.default_rng(seed)
    d, m, r = int(rng.integers(2, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 8))
    m = min(m, d)
    F, V, c = rng.normal(size=(d, m)), rng.normal(size=(d, r)), rng.normal(size=r)
    smallest = np.linalg.svd(F, compute_uv=False)[-1]
    return F / smallest, V, c / max(np.linalg.norm((V * c) @ V.T), 1e-12)


# ---------------------------------------------------------------------- the manifold


@settings(deadline=None, max_examples=60)
@given(seeds, st.floats(-3, -0.5))
def test_retraction_is_that_of_the_lemma(seed, log_size):
    F, V, c = low_rank_problem(seed)
    c = 10.0**log_size * c
    moved = retract(F, V, c)
    expected, _ = reference.retract(F @ F.T, F, (V * c) @ V.T)
    np.testing.assert_allclose(
        moved @ moved.T, expected, atol=1e-10 * np.linalg.norm(expected)
    )
    assert np.linalg.matrix_rank(moved) == F.shape[1]
    assert np.linalg.eigvalsh(moved @ moved.T).min() > -1e-10 * np.linalg.norm(expected)


def metric_projection(W, m):
    """The nearest positive semi-definite matrix of rank m."""
    values, vectors = np.linalg.eigh(W)
    return (vectors[:, -m:] * np.maximum(values[-m:], 0)) @ vectors[:, -m:].T


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_retraction_is_of_second_order(seed):
    """Its distance from the metric projection of W + tangent shrinks with the cube of the step."""
    F, V, c = low_rank_problem(seed)
    m, W = F.shape[1], F @ F.T
    step = reference.tangent(F, (V * c) @ V.T)
    errors = []
    for size in (0.1, 0.05, 0.025):
        moved = retract(F, V, size * c)
        errors.append(
            np.linalg.norm(moved @ moved.T - metric_projection(W + size * step, m))
        )
    assert errors[2] <= 1.5 * errors[1] / 8 + 1e-12
    assert errors[1] <= 1.5 * errors[0] / 8 + 1e-12


def test_the_paper_as_printed_is_of_first_order_only(rng):
    """With S = A1'A2 in the place of A2'A1 the error falls with the square; ours with the cube."""
    F, V, c = (
        rng.normal(size=(6, 3)),
        rng.normal(size=(6, 4)),
        np.array([1.0, -0.5, 0.3, 0.8]),
    )

    def printed(c):
        A2 = np.linalg.pinv(F) @ V
        A1 = A2 * c
        S = A1.T @ A2
        U, hat = V * c, F @ A1
        return F + (U - hat / 2 + (0.375 * hat - U / 2) @ S) @ A2.T

    def orders(moved_by):
        step = reference.tangent(F, (V * c) @ V.T)
        errors = []
        for size in (1e-3, 1e-4):
            moved = moved_by(size * c)
            errors.append(
                np.linalg.norm(
                    moved @ moved.T - metric_projection(F @ F.T + size * step, 3)
                )
            )
        return np.log10(errors[0] / errors[1])

    assert orders(lambda c: retract(F, V, c)) == pytest.approx(3, abs=0.1)
    assert orders(printed) == pytest.approx(2, abs=0.1)


# ---------------------------------------------------------------------- weights and draws


def test_expected_truncated_loss_has_the_numbers_of_the_figure():
    """M = 50, gamma = 10, by the law of the draws; the kernels are held against the law below."""
    levels, M, most = rank_weights("reciprocal", 50), 50, 5
    draws = np.arange(1, most + 1)
    found = [
        sum((k / M) * (1 - k / M) ** (draws - 1) * levels[M // draws])
        for k in (1, 5, 9, 10, 20, 30, 40, 50)
    ]
    expected = [0.3422, 1.4856, 2.3286, 2.5008, 3.6223, 4.1041, 4.3417, 4.4992]
    np.testing.assert_allclose(found, expected, atol=5e-5)


@pytest.mark.parametrize("gamma", [1, 10])
@pytest.mark.parametrize("k", [1, 10, 30])
def test_kernels_draw_by_that_law(gamma, k):
    """One query at 0, a relevant item beside it, and k of 50 irrelevant items too near."""
    X = np.concatenate(([0.0], [0.1], np.full(k, 0.5), np.full(50 - k, 9.0)))[:, None]
    relevance = Relevance.from_lists([[1]], n_items=52, query_rows=[0])
    sampling = sampling_of(relevance, "reciprocal", gamma, seed=3)
    n = 40_000
    points, one = Points(X, relevance.query_items, 52), np.ones((1, 1))
    space = LazyItems(points, DenseFactor(points, one, one), 0.0)
    queries, _, neg, draws = space.draw(sampling, 0, n)
    most, levels = max(1, 50 // gamma), rank_weights("reciprocal", 50)
    counts = np.arange(1, most + 1)
    expected = (
        np.sum((k / 50) * (1 - k / 50) ** (counts - 1) * levels[50 // counts])
        / levels[50]
    )
    got = sampling.violator_weights(queries, neg, draws)
    assert got.mean() == pytest.approx(expected, abs=4 * got.std() / np.sqrt(n) + 1e-12)
    hits = np.bincount(neg[neg >= 0], minlength=52)
    assert not hits[2 + k :].any()
    assert not hits[:2].any()
    assert hits[2 : 2 + k].min() > 0.7 * hits.sum() / k
    assert draws[neg < 0].size == 0 or (draws[neg < 0] == most).all()


def test_number_of_draws_is_geometric():
    u = (np.arange(100_000) + 0.5) / 100_000
    drawn = np.array([draws_until(v, 0.2) for v in u])
    assert drawn.mean() == pytest.approx(5, rel=1e-3)
    assert np.mean(drawn == 1) == pytest.approx(0.2, abs=1e-4)
    assert draws_until(0.99, 1.0) == 1


def test_random_numbers_are_those_of_the_twin_and_uniform():
    numbers = np.array([uniform(7, t, d) for t in range(200) for d in range(50)])
    twin = [reference.uniform(7, t, d) for t in range(200) for d in range(50)]
    np.testing.assert_array_equal(numbers, twin)
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    assert (
        np.sum((counts - 500) ** 2 / 500) < 45
    )  # chi-squared of 19: 0.07 % of the time above
    table = numbers.reshape(200, 50)
    assert abs(np.corrcoef(table[:, 0], table[:, 1])[0, 1]) < 0.25
    assert abs(np.corrcoef(table[0], table[1])[0, 1]) < 0.5


@pytest.mark.parametrize(
    "weights", ["reciprocal", "reciprocal@3", "precision@2", "ndcg", "uniform"]
)
def test_rank_weights_are_sums_of_their_steps(weights):
    expected = np.concatenate(([0], np.cumsum(reference.alphas(weights, 9))))
    np.testing.assert_allclose(rank_weights(weights, 9), expected)


@settings(deadline=None)
@given(st.sets(st.integers(0, 19)), st.data())
def test_items_outside_a_row(excluded, data):
    others = sorted(set(range(20)) - excluded)
    items = np.array(sorted(excluded), dtype=np.int64)
    if others:
        k = data.draw(st.integers(0, len(others) - 1))
        assert item_outside(items, 0, items.size, k) == others[k]


def relevances():
    """One of each kind: labels, graded lists of rows, separate queries, judged pairs only."""
    labels = np.array([0, 1, 0, 2, 1, 0, 0, 2, 1, 0])
    graded = [{1: 3.0, 4: 1.0, 0: 2.0}, {3: 0.5, 2: 1.0}, {7: 2.0, 9: 2.0, 2: 1.0}]
    return {
        "labels": Relevance.from_labels(labels),
        "graded rows": Relevance.from_lists(graded, n_items=10, query_rows=[0, 1, 2]),
        "separate": Relevance.from_lists([[1, 2], [5]], n_items=10),
        "judged only": Relevance.from_lists(
            [[1, 2], [5, 6]],
            [[3, 0], [0, 1, 7, 8]],
            n_items=10,
            query_rows=[3, 9],
            unjudged="ignore",
        ),
    }


@pytest.mark.parametrize("listed", [2**23, 0], ids=["listed", "outside"])
@pytest.mark.parametrize("name", list(relevances()))
def test_draws_have_the_law_of_the_judgments(name, listed, monkeypatch):
    """Irrelevant items as likely as each other, relevant ones by gain; itself and others never."""
    monkeypatch.setattr(warp, "MAX_LISTED", listed)
    relevance = relevances()[name]
    sampling = sampling_of(relevance, "reciprocal", 1, seed=1)
    n = 20_000
    for q in range(relevance.n_queries):
        queries = np.full(n, q)
        pos, out = np.empty(n, dtype=np.int64), np.empty((n, 1), dtype=np.int64)
        draw_positives(1, 0, queries, sampling.positives, pos)
        draw_candidates(1, 0, 0, np.arange(n), queries, sampling.negatives, out)
        items, grades = relevance.judged(q)
        gains = np.zeros(10)
        kept = grades >= relevance.min_relevant_grade
        gains[items[kept]] = 2.0 ** grades[kept] - 1
        irrelevant = np.zeros(10)
        irrelevant[relevance.irrelevant(q)] = 1
        for drawn, shares in (
            (pos, gains / gains.sum()),
            (out[:, 0], irrelevant / irrelevant.sum()),
        ):
            seen = np.bincount(drawn, minlength=10) / n
            assert not seen[shares == 0].any()
            np.testing.assert_allclose(seen, shares, atol=0.02)


@pytest.mark.parametrize("listed", [2**23, 0], ids=["listed", "outside"])
@pytest.mark.parametrize("name", list(relevances()))
def test_violators_are_listed_in_full(name, listed, monkeypatch, rng):
    monkeypatch.setattr(warp, "MAX_LISTED", listed)
    relevance = relevances()[name]
    negatives = sampling_of(relevance, "reciprocal", 1, seed=0).negatives
    X, query, found = (
        rng.normal(size=(10, 3)),
        rng.normal(size=3),
        np.empty(10, dtype=np.int64),
    )
    near = np.sum((X - query) ** 2, axis=1) < 4
    products, squares = -2 * X @ query, np.sum(X**2, axis=1)
    for q in range(relevance.n_queries):
        count = list_violators(
            q, products, squares, 4.0 - query @ query, negatives, found
        )
        expected = [i for i in relevance.irrelevant(q) if near[i]]
        assert found[:count].tolist() == expected


def test_target_neighbours_are_the_nearest_relevant_items(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    relevance = Relevance.from_labels(y)
    points = Points(X, relevance.query_items, len(X))
    targets = nearest_positives(relevance, points, 4)
    for q in range(40):
        relevant = relevance.relevant(q)
        nearest = relevant[np.argsort(np.sum((X[relevant] - X[q]) ** 2, axis=1))[:4]]
        row = slice(targets.indptr[q], targets.indptr[q + 1])
        assert targets.items[row].tolist() == sorted(nearest)


# ---------------------------------------------------------------------- the descent


def problem(seed=0, n=60, d=7, m=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    X = (X - X.mean(axis=0)) / np.sqrt(2 * X.var(axis=0).sum())
    return X, Relevance.from_labels(y), rng.normal(size=(d, m))


def descend(X, relevance, F, n_triplets, strategy=None, monkeypatch=None, **options):
    """The library's descent; ``strategy`` forces how points are embedded."""
    laws = {k: options.pop(k) for k in ("weights", "gamma") if k in options}
    edges = np.array(options.pop("edges", ()), dtype=np.int64).reshape(-1, 2)
    sampling = sampling_of(
        relevance, **({"weights": "reciprocal", "gamma": 16} | laws), seed=5
    )
    points = Points(X, relevance.query_items, X.shape[0])
    progress = Progress(F.copy(), F.copy(), multiplier=2.0)
    if strategy is not None:
        monkeypatch.setattr(warp_descent, "choose_strategy", lambda *_: strategy)
    descent = Descent(points, sampling, Options(**options), edges)
    tally = descent.run(progress, n_triplets)
    return progress, tally


@pytest.mark.parametrize("strategy", ["lazy", "gram", "drawn"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gamma": 20, "batch_size": 5},
        {"regularizer": "frobenius", "reg": 0.2},
        {"weights": "uniform"},
        {"weights": "precision@3"},
        {"weights": "ndcg", "reg": 0.0},
        {"graph_reg": 0.5, "edges": [(0, 3), (1, 2), (5, 7)]},
    ],
    ids=str,
)
def test_descent_is_that_of_the_twin(options, strategy, monkeypatch):
    X, relevance, F = problem()
    options = {"gamma": 16} | options
    exact = {"staleness": 0.0, **options}
    progress, tally = descend(X, relevance, F, 320, strategy, monkeypatch, **exact)
    twin = reference.PlainFRML(X, relevance, F, seed=5, **options)
    expected = twin.run(320)
    np.testing.assert_allclose(progress.F, expected, rtol=1e-6, atol=1e-6)
    assert progress.distance == pytest.approx(twin.distance, rel=1e-6)
    assert progress.squares == pytest.approx(twin.squares, rel=1e-6)
    assert tally.draws == twin.n_draws
    assert np.abs(expected - F).max() > 0.1


@pytest.mark.parametrize("gamma", [1, 25])
def test_lazy_embeddings_err_by_no_more_than_their_bound(gamma, monkeypatch):
    """Distances by which violators are drawn; and what is learned, beside the exact loop."""
    X, relevance, F = problem(n=300)
    y = np.arange(300) % 3
    gaps = X - X[0]
    lengths = np.linalg.norm(gaps, axis=1)
    ages, moves = [], []
    embed, move = LazyItems._embed, LazyItems.move

    def counted(self):
        ages.append(len(moves))
        embed(self)

    def checked(self, inner, tail):
        move(self, inner, tail)
        moves.append(0)
        stale = np.linalg.norm(self.embedded - self.embedded[0], axis=1)
        exact = np.linalg.norm(gaps @ self.factor.matrix, axis=1)
        bound = 0.3 * np.linalg.norm(self.factor.matrix) * lengths
        assert (np.abs(stale - exact) <= bound + 1e-5).all()

    def score(F):
        return Euclidean().fit(X @ F, y).score(X @ F, y)

    monkeypatch.setattr(LazyItems, "_embed", counted)
    monkeypatch.setattr(LazyItems, "move", checked)
    options = {"gamma": gamma, "staleness": 0.3}
    lazy, _ = descend(X, relevance, F, 9600, "lazy", monkeypatch, **options)
    monkeypatch.undo()
    exact, _ = descend(X, relevance, F, 9600, "drawn", monkeypatch, gamma=gamma)
    assert 1 < len(ages) < len(moves) / 2
    assert score(lazy.F) == pytest.approx(score(exact.F), abs=0.01)
    assert score(lazy.F) > score(F) + 0.05


def test_steps_leave_out_triplets_that_do_not_violate():
    """A violator that was drawn among stale embeddings, but is far away by now."""
    near = np.array([[0.1, 0.0], [0.1, 0.0], [0.1, 0.0]])
    far = np.array([[0.5, 0.0], [9.0, 0.0]])
    violated = np.array([True, False, True])
    found = warp_descent._still_violated(np.vstack((near, far)), violated)
    assert found.tolist() == [True, False]


def test_the_twin_of_tall_matrices_is_the_twin_of_whole_ones():
    X, relevance, F = problem()
    whole, tall = (
        kind(X, relevance, F, seed=5, gamma=16).run(160)
        for kind in (reference.PlainFRML, reference.FactoredFRML)
    )
    np.testing.assert_allclose(tall, whole, rtol=1e-8, atol=1e-8)


def test_sparse_points_descend_as_dense_ones(monkeypatch):
    import scipy.sparse

    X, relevance, F = problem()
    X = np.where(np.abs(X) > 0.1, X, 0)
    expected, _ = descend(X, relevance, F, 960, "drawn", monkeypatch)
    for strategy in ("drawn", "gram"):
        found, _ = descend(
            scipy.sparse.csr_array(X), relevance, F, 960, strategy, monkeypatch
        )
        np.testing.assert_allclose(found.F, expected.F, rtol=1e-6, atol=1e-6)


def test_gradient_is_the_slope_of_the_loss():
    """Finite differences of the loss of one batch, triplets and their weights held fixed."""
    X, relevance, F = problem()
    edges = np.array([(0, 3), (1, 2), (5, 7)])
    options = {"reg": 0.3, "graph_reg": 0.4}
    twin = reference.PlainFRML(
        X, relevance, F, seed=5, gamma=16, edges=edges, **options
    )
    sampling = sampling_of(relevance, "reciprocal", 16, seed=5)
    points = Points(X, relevance.query_items, len(X))
    descent = Descent(points, sampling, Options(**options), edges)
    space = warp_descent.DrawnItems(points, DenseFactor(points, F, F))
    batch = space.draw(sampling, 0, 32)
    weights = sampling.violator_weights(batch.queries, batch.neg, batch.draws)
    progress = Progress(F, F)
    left, right, c, _ = descent._gradient(progress, space, batch, weights)
    drawn = descent._edges(progress, 32)
    V = X[left] - X[right]
    gradient = (V.T * c) @ V
    np.testing.assert_allclose(gradient, twin.gradient(), atol=1e-12)

    def loss(W):
        total = 0.0
        for q, pos, neg, weight in zip(
            batch.queries, batch.pos, batch.neg, weights, strict=True
        ):
            near, far = X[q] - X[pos], X[q] - X[neg]
            hinge = max(0.0, 1 + near @ W @ near - far @ W @ far) if neg >= 0 else 0.0
            total += 0.7 * weight * hinge + 0.3 * near @ W @ near
        gaps = X[drawn[:, 0]] - X[drawn[:, 1]]
        return (total + 0.4 * np.einsum("ij,jk,ik", gaps, W, gaps)) / 32

    rng = np.random.default_rng(0)
    W, E = F @ F.T, rng.normal(size=(7, 7))
    E = 1e-6 * (E + E.T)
    assert (loss(W + E) - loss(W - E)) / 2 == pytest.approx(
        np.sum(gradient * E), rel=1e-6
    )


def test_rank_one_samples_of_the_frobenius_norm_are_unbiased():
    X, relevance, F = problem()
    sampling = sampling_of(relevance, "reciprocal", 16, seed=5)
    descent = Descent(
        Points(X, relevance.query_items, len(X)),
        sampling,
        Options(0.2, "frobenius", batch_size=16),
    )
    own = []
    for n_triplets in range(0, 64_000, 16):
        own.append(descent._norm_gradient(Progress(F, F, n_triplets=n_triplets), 3))
    np.testing.assert_allclose(np.mean(own, axis=0), np.full(3, 0.2), atol=0.01)
    assert np.std(own, axis=0).min() > 0.01


def test_sampled_edges_are_unbiased():
    X, relevance, F = problem()
    edges = np.array([(0, 3), (1, 2), (5, 7), (2, 9)])
    sampling = sampling_of(relevance, "reciprocal", 16, seed=5)
    options = Options(graph_reg=0.5, batch_size=16)
    points = Points(X, relevance.query_items, len(X))
    descent = Descent(points, sampling, options, edges)
    drawn = [
        descent._edges(Progress(F, F, n_triplets=first), 16)
        for first in range(0, 32_000, 16)
    ]
    gaps = X[edges[:, 0]] - X[edges[:, 1]]
    sampled = X[np.concatenate(drawn)[:, 0]] - X[np.concatenate(drawn)[:, 1]]
    expected = gaps.T @ gaps / 4
    found = sampled.T @ sampled / len(sampled)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


def test_threads_do_not_change_the_answer(monkeypatch):
    from rankspace._engine.parallel import threads as _threads
    from rankspace.learners.solvers import points
    from rankspace.learners.solvers.warp import embeddings

    X, relevance, F = problem(n=300)
    monkeypatch.setattr(points, "BLOCK", 64)
    monkeypatch.setattr(embeddings, "SEARCH_SIZE", 5)
    monkeypatch.setattr(_threads, "WORTH_THREADS", 0)
    found = {}
    for n in (1, 3):
        monkeypatch.setattr(_threads, "n_threads", lambda n=n: n)
        for strategy in ("lazy", "gram"):
            found[n, strategy] = descend(
                X, relevance, F, 640, strategy, monkeypatch, gamma=1
            )[0].F
    np.testing.assert_array_equal(found[1, "lazy"], found[3, "lazy"])
    np.testing.assert_array_equal(found[1, "gram"], found[3, "gram"])


def test_the_way_is_chosen_by_flops_and_memory():
    def strategy(n, d, m=30, draws=1.0, memory=512):
        points = Points(np.empty((n, d)), np.arange(n), n)
        options = Options(batch_size=32, max_memory=memory)
        return warp_descent.choose_strategy(points, m, draws, options)

    assert strategy(2000, 1000, draws=500) == "gram"
    assert strategy(2000, 1000, draws=500, memory=1) == "lazy"
    assert strategy(200_000, 100, draws=3) == "drawn"
    assert strategy(5000, 20, draws=1000) == "lazy"
    assert strategy(300, 1000, m=900, draws=500) == "lazy"


def test_seeds_and_stretches(monkeypatch):
    """The same seed gives the same bits; a descent in two stretches goes on where it stopped."""
    X, relevance, F = problem()
    a, b = (descend(X, relevance, F, 640, "drawn", monkeypatch)[0].F for _ in range(2))
    np.testing.assert_array_equal(a, b)
    sampling = sampling_of(relevance, "reciprocal", 16, seed=5)
    descent = Descent(Points(X, relevance.query_items, len(X)), sampling, Options())
    progress = Progress(F.copy(), F.copy(), multiplier=2.0)
    descent.run(progress, 320)
    descent.run(progress, 320)
    np.testing.assert_array_equal(progress.F, a)


@pytest.mark.parametrize("smallest", [-1e-5, 0.0, 1e-300])
def test_a_lost_direction_is_lifted(smallest):
    """A direction that a metric in single precision has lost may look negative."""
    gram, cross = np.diag([1.0, 2.0, smallest]), np.ones((3, 2))
    A = solve(lift(gram), cross)
    np.testing.assert_allclose(A[:2], cross[:2] / [[1.0], [2.0]], rtol=0.01)
    assert np.isfinite(A).all()


def test_no_gram_matrix_is_too_small_to_lift():
    lifted = lift(np.zeros((2, 2)))
    np.testing.assert_array_equal(solve(lifted, np.zeros((2, 3))), 0)
    with pytest.raises(FloatingPointError, match="must be finite"):
        lift(np.full((2, 2), np.inf))


def damped_step(F, V, c, length):
    """The factor after the library's step of some length along ``-V diag(c) V'``."""
    lifted = lift(F.T @ F)
    A = solve(lifted, F.T @ V)
    S = c[:, None] * A.T
    moved = V @ S
    gradient = Gradient(lifted, A @ S, np.zeros(len(A)), moved.T @ moved)
    inner, tail = gradient.retraction(length)
    return F @ inner + moved @ tail


@settings(deadline=None, max_examples=60)
@given(seeds, st.floats(-8, 0), st.floats(-3, 6))
def test_a_step_of_any_length_is_bounded_by_the_damped_metric(seed, share, log_length):
    """At full rank ``W + t I``, with t the length of the step, grows by a bounded factor."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    F = np.linalg.qr(rng.normal(size=(d, d)))[0]
    F[:, -1] *= 10.0**share
    V, c = rng.normal(size=(d, 5)), rng.normal(size=5)
    length = 10.0**log_length
    moved = damped_step(F, V, c, length)
    t = length * np.linalg.norm((V * c) @ V.T)
    root = np.linalg.cholesky(F @ F.T + t * np.eye(d))
    relative = np.linalg.solve(root, moved)
    assert np.linalg.norm(relative, 2) < 3.4  # 1 + 1/2 + 3/8 + 3/2


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_short_steps_are_those_of_the_retraction(seed):
    F, V, c = low_rank_problem(seed)
    expected = -reference.tangent(F, (V * c) @ V.T)
    moved = damped_step(F, V, c, 1e-6)
    change = (moved @ moved.T - F @ F.T) / 1e-6
    scale = np.linalg.norm(F) ** 2 + 1
    np.testing.assert_allclose(change, expected, atol=1e-4 * scale)


def test_a_useless_direction_shrinks_away_and_can_come_back():
    """Its steps are short against a singular value of one, and long against one of 1e-4."""
    F = np.eye(2)
    up, down = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-0.01, 0.3])
    for _ in range(60):
        F = damped_step(F, up, down, 0.5)
    shares = np.linalg.svd(F, compute_uv=False)
    assert shares[1] < 1e-4 * shares[0]
    F = keep_rank(F)
    for _ in range(80):
        F = damped_step(F, up, -down, 0.5)
    assert F[1, 1] ** 2 > 1


def test_singular_values_stay_above_a_share_of_the_largest(rng):
    U, _, Vt = np.linalg.svd(rng.normal(size=(7, 3)), full_matrices=False)
    for smallest in (0.0, 1e-30, 1e-7):
        kept = keep_rank((U * [5.0, 1.0, smallest]) @ Vt)
        found = np.linalg.svd(kept, compute_uv=False)
        np.testing.assert_allclose(found, [5.0, 1.0, 5 * MIN_SHARE], rtol=1e-6)
    F = (U * [5.0, 1.0, 1e-3]) @ Vt
    assert keep_rank(F) is F
