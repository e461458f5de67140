"""MLR with one weight for each block of columns, against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

from rankspace import MLR, MLRCV, Relevance, load_metric
from reference import mlr as reference

BLOCKS = ["b", "a", "b", "b", "c"]


def problem(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(10) % 3
    X = rng.normal(size=(10, 5)) + 1.5 * rng.normal(size=(3, 5))[y] * [1, 1, 1, 0, 0]
    X -= X.mean(axis=0)
    return X / np.sqrt(2 * X.var(axis=0).sum()), y


def one_weight_a_block(W):
    """Constraints in the words of the definition."""
    off = [W[i, j] == 0 for i in range(5) for j in range(i)]
    same = [W[0, 0] == W[2, 2], W[0, 0] == W[3, 3]]
    return [*off, *same, cp.diag(W) >= 0]


@pytest.mark.parametrize(
    ("regularizer", "value", "seed"),
    [
        ("trace", cp.trace, 0),
        ("trace", cp.trace, 1),
        ("frobenius", lambda W: 0.5 * cp.sum_squares(W), 0),
    ],
)
def test_the_optimum_is_that_of_another_solver(regularizer, value, seed):
    X, y = problem(seed)
    relevance = Relevance.from_labels(y)
    queries = reference.queries_of(X, relevance, "auc")
    best, W, _ = reference.solve(queries, 5, 5.0, value, one_weight_a_block)
    model = MLR(
        5.0, measure="auc", constraint="blocks", blocks=BLOCKS, tol=1e-4,
        regularizer=regularizer,
    ).fit(X, y)  # fmt: skip
    assert model.objective_ == pytest.approx(best, abs=1e-3)
    found = model.get_mahalanobis_matrix() * model.scale_**2
    np.testing.assert_allclose(np.diag(found), np.diag(W), atol=0.05 * np.trace(W))
    weights = [model.block_weights_[name] for name in BLOCKS]
    np.testing.assert_allclose(np.diag(found), np.array(weights) * model.scale_**2)


def test_one_column_a_block_is_diagonal_and_one_block_a_multiple_of_the_identity(wine):
    X, y = wine
    options = {"measure": "auc", "tol": 1e-4}
    blocks = MLR(constraint="blocks", blocks=np.arange(13), **options).fit(X, y)
    diagonal = MLR(constraint="diagonal", **options).fit(X, y)
    assert blocks.objective_ == pytest.approx(diagonal.objective_, abs=0.2)
    one = MLR(constraint="blocks", blocks=["all"] * 13, **options).fit(X, y)
    W = one.get_mahalanobis_matrix()
    np.testing.assert_allclose(W, one.block_weights_["all"] * np.eye(13))


def test_a_prior_is_projected_on_blocks(wine):
    X, y = wine
    model = MLR(
        1e-6, measure="auc", constraint="blocks", blocks=np.arange(13) // 5,
        regularizer="frobenius", prior=np.diag(np.arange(13.0)),
    ).fit(X, y)  # fmt: skip
    assert list(model.block_weights_.values()) == pytest.approx([2.0, 7.0, 11.0])


def test_blocks_are_saved_searched_and_cloned(wine, tmp_path):
    X, y = wine
    model = MLR(constraint="blocks", blocks=np.arange(13) // 5, measure="auc")
    assert clone(model).fit(X, y).n_components is None
    model.fit(X, y).metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(loaded.rank(X, X).items, model.rank(X, X).items)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "blocks"}, "block of each of 13 features: got none"),
        ({"constraint": "blocks", "blocks": [1, 2]}, r"got shape \(2,\)"),
        ({"blocks": np.arange(13)}, "blocks needs constraint='blocks'"),
    ],
)
def test_bad_blocks_stop(options, message, wine):
    with pytest.raises(ValueError, match=message):
        MLR(**options).fit(*wine)
    assert MLRCV((1000,), measure="auc", random_state=0).fit(*wine).C_ == 1000
