"""The graph-Laplacian regulariser of MLR and FRML against cvxpy, with the graph by brute force."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import FRML, MLR, GraphMLR, Relevance, load_metric
from rankspace.learners.solvers.graph import mutual_neighbors
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
    np.testing.assert_array_equal(mutual_neighbors(csr_array(X), 4), edges)
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
    for learner in (GraphMLR, FRML):
        with pytest.raises(ValueError, match=message):
            learner(**options).fit(*wine)


# ---------------------------------------------------------------------- FRML


def triplet_program(X, relevance, graph_reg):
    """The least mean loss of all triplets plus that of the graph's edges, and its parts of W."""
    W = cp.Variable((X.shape[1],) * 2, PSD=True)
    hinges = []
    for q, row in enumerate(relevance.query_items):
        if not relevance.trainable[q]:
            continue
        near = [np.outer(X[row] - X[i], X[row] - X[i]) for i in relevance.relevant(q)]
        far = [np.outer(X[row] - X[i], X[row] - X[i]) for i in relevance.irrelevant(q)]
        losses = [cp.pos(1 + cp.sum(cp.multiply(W, a - b))) for a in near for b in far]
        hinges.append(cp.sum(losses) / len(losses))
    gaps = [X[i] - X[j] for i, j in edges_by_sorting(X, 3)]
    G = np.mean([np.outer(g, g) for g in gaps], axis=0)
    loss = cp.sum(hinges) / len(hinges) + graph_reg * cp.sum(cp.multiply(W, G))
    return W, loss


def test_frml_with_a_graph_nears_the_optimum_of_the_program():
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, *[-1] * 6])
    X = rng.normal(size=(15, 3)) + 1.5 * np.eye(3)[y % 3]
    relevance = Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")
    options = {"rank_weights": "uniform", "reg": 0.0, "validation_fraction": 0}
    model = FRML(
        3, graph_reg=0.5, n_neighbors=3, n_triplets=60_000, random_state=0, **options
    ).fit(X, relevance)
    W, loss = triplet_program(X / model.scale_, relevance, 0.5)
    best = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    W.value = model.get_mahalanobis_matrix() * model.scale_**2
    assert best < 0.7
    assert best - 1e-6 <= loss.value < best + 0.02 * (1 - best)
    plain = FRML(3, n_triplets=60_000, random_state=0, **options).fit(X, relevance)
    W.value = plain.get_mahalanobis_matrix() * model.scale_**2
    assert loss.value > best + 0.1 * (1 - best)


@pytest.mark.parametrize("options", [{}, {"n_shards": 2}, {"solver": "paper"}])
def test_frml_takes_rows_without_a_label(options, wine, tmp_path):
    X, y = wine
    y = np.where(np.arange(len(y)) % 5 > 0, -1, y)
    relevance = Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")
    options = {"n_triplets": 640, "random_state": 0, **options}
    model = FRML(2, graph_reg=1.0, **options).fit(X, relevance)
    sparse = FRML(2, graph_reg=1.0, **options).fit(csr_array(X), relevance)
    assert sparse.components_.shape == model.components_.shape
    plain = FRML(2, **options).fit(X, relevance)
    assert not np.allclose(model.components_, plain.components_)
    model.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(loaded.rank(X, X).items, model.rank(X, X).items)
