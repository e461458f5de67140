"""Relevance from pairs and triplets, and the metrics that are learned from them."""

import numpy as np
import pytest

from rankspace import (
    FRML,
    GMML,
    MLR,
    PARCA,
    Euclidean,
    ListwiseMap,
    Ranking,
    Relevance,
    evaluate,
    load_metric,
)

LEARNERS = [
    FRML(2, n_triplets=640, random_state=0),
    GMML(),
    MLR(measure="auc"),
    PARCA(2),
    ListwiseMap(),
]


def judgments(relevance):
    """Each query as (row, relevant rows, irrelevant rows)."""
    return [
        (row, relevance.relevant(q).tolist(), relevance.irrelevant(q).tolist())
        for q, row in enumerate(relevance.query_items)
    ]


def test_pairs_count_for_both_rows():
    relevance = Relevance.from_pairs([[0, 2], [0, 3], [3, 2]], [1, -1, -1], n_items=5)
    assert judgments(relevance) == [(0, [2], [3]), (2, [0], [3]), (3, [], [0, 2])]
    assert relevance.trainable.tolist() == [True, True, False]
    assert relevance.queries_are_rows
    assert len(relevance) == 5


def test_pairs_in_one_direction():
    pairs = [[0, 2], [2, 0]]
    relevance = Relevance.from_pairs(pairs, [1, -1], n_items=3, symmetric=False)
    assert judgments(relevance) == [(0, [2], []), (2, [], [0])]
    with pytest.raises(ValueError, match=r"one sign: \[0, 2\] has 1 and -1"):
        Relevance.from_pairs(pairs, [1, -1], n_items=3)


def test_rows_in_no_pair_may_count_as_irrelevant():
    options = {"n_items": 4, "unjudged": "irrelevant"}
    relevance = Relevance.from_pairs([[0, 1]], [1], **options)
    assert judgments(relevance) == [(0, [1], [2, 3]), (1, [0], [2, 3])]


def test_triplets_may_contradict_each_other():
    triplets = [[0, 1, 2], [0, 2, 1], [0, 1, 2]]
    relevance = Relevance.from_triplets(triplets, n_items=3)
    assert judgments(relevance) == [(0, [1], [2]), (0, [2], [1]), (0, [1], [2])]
    ranking = Ranking.from_distances([[0.0, 1.0, 2.0]] * 3)
    assert evaluate(ranking, relevance, "auc").means["auc"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Relevance.from_pairs([[0, 1]], [0], 2), "got 0. Of 0 and 1 pass"),
        (lambda: Relevance.from_pairs([[0, 1]], [True], 2), "got True"),
        (lambda: Relevance.from_pairs([[0, 1]], [1, 1], 2), "each of 1 pairs: got shape"),
        (lambda: Relevance.from_pairs([[0, 2]], [1], 2), "from 0 to 1: got 0 to 2"),
        (lambda: Relevance.from_pairs([[1, 1]], [1], 2), r"got \[1, 1\] at row 0"),
        (lambda: Relevance.from_pairs([], [], 2), "table of 2 columns: got float64"),
        (lambda: Relevance.from_pairs([[0, 1]], [1], [2]), "number of rows of X: got list"),
        (lambda: Relevance.from_triplets([[0.0, 1, 2]], 3), "table of 3 columns"),
        (lambda: Relevance.from_triplets([[0, 1, 0]], 3), r"got \[0, 1, 0\] at row 0"),
        (lambda: Relevance.from_triplets([[0, 1, 2]], 3, weights=[0]), "all be 0"),
    ],
)  # fmt: skip
def test_bad_constraints_stop(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def problem(rng, noise=0.1):
    """Points whose first two features decide, and triplets, some of them wrong."""
    X = rng.normal(size=(30, 4))
    triplets = np.array([rng.permutation(30)[:3] for _ in range(120)])
    a, b, c = X[triplets, :2].transpose(1, 0, 2)
    nearer = np.linalg.norm(a - b, axis=1) < np.linalg.norm(a - c, axis=1)
    swapped = nearer == (rng.random(120) < noise)
    triplets[swapped, 1:] = triplets[swapped, :0:-1]
    return X, triplets


def test_mlr_on_triplets_is_the_optimum_of_their_hinge_loss(rng):
    # The tests of other versions of Python run without it.
    cp = pytest.importorskip("cvxpy")
    X, triplets = problem(rng)
    relevance = Relevance.from_triplets(triplets, len(X))
    model = MLR(5.0, measure="auc", tol=1e-4).fit(X, relevance)
    scaled = X / model.scale_
    near = scaled[triplets[:, 0]] - scaled[triplets[:, 1]]
    far = scaled[triplets[:, 0]] - scaled[triplets[:, 2]]
    W = cp.Variable((4, 4), PSD=True)
    products = np.einsum("ti,tj->tij", near, near) - np.einsum("ti,tj->tij", far, far)
    # A wrong order of the two loses 1, and moves both items by one place.
    margin = 1 + 2 * products.reshape(len(triplets), 16) @ cp.vec(W, order="C")
    objective = cp.trace(W) + 5.0 * cp.sum(cp.pos(margin)) / len(triplets)
    best = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, abs=5.0 * 2e-4)


@pytest.mark.parametrize("model", LEARNERS, ids=lambda m: type(m).__name__)
def test_learners_take_triplets_and_pairs(model, rng, tmp_path):
    X, triplets = problem(rng)
    relevance = Relevance.from_triplets(triplets, len(X))
    plain = Euclidean().fit(X, relevance).score(X, relevance)
    model.fit(X, relevance)
    assert model.score(X, relevance) > plain
    model.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(loaded.rank(X, X).items, model.rank(X, X).items)
    pairs = np.concatenate((triplets[:40, :2], triplets[40:80, ::2]))
    # A pair may be drawn as near and as far; the first answer counts.
    _, first = np.unique(np.sort(pairs), axis=0, return_index=True)
    signs = np.repeat([1, -1], 40)[first]
    assert model.fit(X, Relevance.from_pairs(pairs[first], signs, len(X))).metric_
