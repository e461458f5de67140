"""GraphMLR against cvxpy on tr(W (I + reg G)), with the graph by brute force."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import MLR, GraphMLR, Relevance, load_metric
from rankspace.learners.graph_mlr import mutual_neighbors
from reference import mlr as reference
from reference.conventions import expected_failures


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [GraphMLR(max_iter=10)], expected_failed_checks=expected_failures
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def edges_by_sorting(X, k):
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    near = [set(np.argsort(row)[:k]) for row in distances]
    pairs = ((i, j) for i in range(len(X)) for j in range(i))
    return {(j, i) for i, j in pairs if i in near[j] and j in near[i]}


def test_the_graph_has_the_mutual_neighbors(rng):
    X = rng.normal(size=(40, 3))
    edges = mutual_neighbors(X, 4)
    assert set(map(tuple, edges.tolist())) == edges_by_sorting(X, 4)
    assert len(mutual_neighbors(X[:2], 4)) == 1


@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_is_that_of_the_regularised_program(seed):
    rng = np.random.default_rng(seed)
    y = np.array([0, 0, 0, 1, 1, 1, -1, -1, -1, -1])
    X = rng.normal(size=(10, 3)) + 2 * rng.normal(size=(2, 3))[np.arange(10) % 2]
    X[:6] += 1.5 * np.eye(3)[y[:6]]
    relevance = Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")
    model = GraphMLR(20.0, graph_reg=2.0, n_neighbors=3, measure="auc", tol=1e-5)
    model.fit(X, relevance)
    gaps = [X[i] - X[j] for i, j in edges_by_sorting(X, 3)]
    pairs = [X[i] - X[j] for i in range(10) for j in range(10)]
    G = 3 * np.mean([np.outer(g, g) for g in gaps], axis=0)
    M = np.eye(3) + 2.0 * G / np.mean([p @ p for p in pairs])
    queries = reference.queries_of(X, relevance, "auc")
    scale = model.scale_

    def regularizer(W):
        return scale**2 * cp.trace(M @ W)

    best, _, _ = reference.solve(queries, 3, 20.0, regularizer)
    assert model.n_edges_ == len(gaps)
    assert model.objective_ == pytest.approx(best, abs=1e-3)
    W = model.get_mahalanobis_matrix()
    slack = np.mean([max(0.0, query.most_violated(W)[0]) for query in queries])
    assert scale**2 * np.trace(M @ W) + 20 * slack == pytest.approx(best, abs=1e-3)


def test_without_weight_it_is_mlr(wine):
    X, y = wine
    plain = MLR(measure="auc").fit(X, y)
    model = GraphMLR(measure="auc", graph_reg=0).fit(X, y)
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix(), atol=1e-6
    )


def test_a_saved_metric_ranks_the_same(wine, tmp_path):
    X, y = wine
    model = GraphMLR(measure="auc").fit(X.astype(np.float32), y)
    assert model.components_.dtype == np.float32
    model.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(loaded.rank(X, X).items, model.rank(X, X).items)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph_reg": -1.0}, "graph_reg == -1.0"),
        ({"n_neighbors": 0}, "n_neighbors == 0"),
    ],
)
def test_bad_parameters_stop(options, message, wine):
    with pytest.raises(ValueError, match=message):
        GraphMLR(**options).fit(*wine)
