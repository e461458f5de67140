"""KernelMLR against programs over tr(WK), problems whose answer is known, files and exports."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import MLR, Index, KernelMetric, KernelMLR, Relevance, load_metric
from rankspace.export import to_faiss, to_onnx
from reference import mlr as reference
from reference.conventions import expected_failures


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [KernelMLR(max_iter=20), KernelMLR(max_iter=20, n_landmarks=5)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------- the optimum


class KernelQuery:
    """A query of the primal program: rows are kernel values with all points."""

    def __init__(self, K, relevance, q, measure):
        rows = (
            relevance.query_items[q],
            relevance.relevant(q),
            relevance.irrelevant(q),
        )
        self.query = reference.Query(K[rows[0]], K[rows[1]], K[rows[2]], measure)

    def most_violated(self, W):
        return self.query.most_violated(W)


def kernel_problem(seed, kernel):
    rng = np.random.default_rng(seed)
    y = np.arange(9) % 3
    X = rng.normal(size=(9, 2)) + rng.normal(size=(3, 2))[y]
    K = kernel(X)
    J = np.eye(9) - 1 / 9
    return X, y, K / (2 * np.trace(J @ K @ J) / 9)


@pytest.mark.parametrize(
    ("seed", "kernel", "options"),
    [
        (0, lambda X: rbf_kernel(X, gamma=0.7), {"kernel": "rbf", "gamma": 0.7}),
        (
            1,
            lambda X: polynomial_kernel(X, degree=2, gamma=0.5, coef0=1),
            {"kernel": "poly", "degree": 2, "gamma": 0.5},
        ),
        (2, lambda X: X @ X.T, {"kernel": "linear"}),
    ],
)
def test_the_optimum_is_that_of_the_program_over_tr_wk(seed, kernel, options):
    X, y, K = kernel_problem(seed, kernel)
    relevance = Relevance.from_labels(y)
    # K = A A', so that W' = A' W A for rows of A as points has tr(W') = tr(W K).
    queries = [KernelQuery(K, relevance, q, "auc") for q in range(9)]
    root = scipy.linalg.sqrtm(K).real

    def trace(V):
        return cp.trace(V)

    whitened = [KernelQuery(root, relevance, q, "auc") for q in range(9)]
    best, _, _ = reference.solve(whitened, 9, 5.0, trace)
    model = KernelMLR(5.0, measure="auc", tol=1e-4, **options).fit(X, y)
    assert model.model_.objective_ == pytest.approx(best, abs=2e-3)
    # The metric as a matrix over kernel values has this objective in the primal form, too.
    L = model.metric_.components * np.sqrt(kernel(X)[0, 0] / K[0, 0]) ** 2
    slack = np.mean([max(0.0, query.most_violated(L.T @ L)[0]) for query in queries])
    value = np.trace(L.T @ L @ K) + 5.0 * slack
    assert value == pytest.approx(best, abs=2e-3)
    assert best < 5.0


def test_several_kernels_have_weights_of_landmarks():
    """Sum over kernels of ``w_p . diag(K_p)``, in the words of the definition."""
    X, y, _ = kernel_problem(3, lambda X: X @ X.T)
    grams = [rbf_kernel(X, gamma=0.5), polynomial_kernel(X, degree=2, gamma=1, coef0=1)]
    kernels = [{"name": "rbf", "gamma": 0.5}, {"name": "poly", "degree": 2, "gamma": 1}]
    options = {"measure": "auc", "constraint": "diagonal", "tol": 1e-4}
    model = KernelMLR(500.0, kernel=kernels, **options).fit(X, y)
    scale = model.model_.scale_
    values = np.hstack(grams) / scale
    relevance = Relevance.from_labels(y)
    queries = reference.queries_of(values, relevance, "auc")
    diagonal = np.concatenate([np.diag(K) for K in grams])

    def cost(W):
        return cp.sum(cp.multiply(diagonal, cp.diag(W)))

    def constraints(W):
        return [cp.multiply(W, 1 - np.eye(18)) == 0, cp.diag(W) >= 0]

    best, _, _ = reference.solve(queries, 18, 500.0, cost, constraints)
    assert best < 490
    assert model.model_.objective_ == pytest.approx(best, abs=0.1)
    L = model.metric_.components
    np.testing.assert_allclose(L.T @ L, np.diag(np.diag(L.T @ L)), atol=1e-9)


def test_one_weight_a_kernel(wine):
    X, y = wine
    kernels = [{"name": "linear"}, {"name": "rbf", "gamma": 10.0}]
    model = KernelMLR(
        kernel=kernels, constraint="blocks", n_landmarks=30, measure="auc"
    )
    model.set_params(random_state=0).fit(X, y)
    weights = model.model_.block_weights_
    # A kernel in which all points are far from all others tells nothing.
    assert weights[0] > 0
    assert weights[1] <= 1e-3 * weights[0]


# ---------------------------------------------------------------------- known answers


def exclusive_or(rng, n):
    corners = rng.choice([-1, 1], size=(n, 2))
    X = corners + 0.2 * rng.normal(size=(n, 2))
    return X, (corners[:, 0] == corners[:, 1]).astype(int)


@pytest.mark.filterwarnings("ignore:the best metric at C=1000.0 is zero")
@pytest.mark.parametrize("name", ["xor", "circles", "moons"])
def test_problems_that_no_linear_metric_solves(name, rng):
    kernel = {"kernel": "poly", "degree": 2}
    if name == "xor":
        (X, y), (X_new, y_new) = exclusive_or(rng, 100), exclusive_or(rng, 200)
    elif name == "circles":
        X, y = make_circles(100, factor=0.5, noise=0.05, random_state=0)
        X_new, y_new = make_circles(200, factor=0.5, noise=0.05, random_state=1)
    else:
        kernel = {"kernel": "rbf", "gamma": 2.0}
        X, y = make_moons(100, noise=0.05, random_state=0)
        X_new, y_new = make_moons(200, noise=0.05, random_state=1)
    linear = MLR(measure="auc").fit(X, y).score(X_new, y_new)
    exact = KernelMLR(1e4, measure="auc", **kernel).fit(X, y)
    nystroem = clone(exact).set_params(n_landmarks=40, random_state=0).fit(X, y)
    assert linear < 0.9
    for model in (exact, nystroem):
        assert model.score(X_new, y_new) > 0.99


def test_all_rows_as_landmarks_are_the_exact_form(wine):
    X, y = wine
    X, y = X[::3], y[::3]
    exact = KernelMLR(measure="auc").fit(X, y)
    nystroem = KernelMLR(measure="auc", n_landmarks=len(X), random_state=0).fit(X, y)
    distances = exact.metric_.distances(X, X)
    np.testing.assert_allclose(nystroem.metric_.distances(X, X), distances, atol=1e-6)
    linear = KernelMLR(kernel="linear", measure="auc", tol=1e-4).fit(X, y)
    plain = MLR(measure="auc", tol=1e-4).fit(X, y)
    assert linear.model_.objective_ == pytest.approx(plain.objective_, abs=0.3)


def test_a_precomputed_kernel_ranks_kernel_values(rng, tmp_path):
    X, y = make_circles(60, factor=0.5, noise=0.05, random_state=0)
    new = rng.normal(size=(5, 2))
    options = {"measure": "auc", "gamma": 1.0}
    model = KernelMLR(**options).fit(X, y)
    K, K_new = rbf_kernel(X, gamma=1.0), rbf_kernel(new, X, gamma=1.0)
    given = KernelMLR(kernel="precomputed", **options).fit(K, y)
    np.testing.assert_allclose(
        given.metric_.distances(K_new, K), model.metric_.distances(new, X), atol=1e-6
    )
    given.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    np.testing.assert_array_equal(
        loaded.rank(K_new, K).items, given.rank(K_new, K).items
    )
    with pytest.raises(ValueError, match="precomputed kernel cannot be exported"):
        to_onnx(given.metric_)
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(given, {"C": [100, 1000]}, cv=folds)
    assert search.fit(K, y).best_score_ > 0.9


# ---------------------------------------------------------------------- the metric


@pytest.fixture(scope="module")
def fitted():
    X, y = make_moons(80, noise=0.05, random_state=0)
    X = X + 100
    kernels = [
        {"name": "rbf", "gamma": 2.0},
        {"name": "linear"},
        {"name": "poly", "gamma": 1e-3},
    ]
    model = KernelMLR(kernel=kernels, constraint="diagonal", measure="auc", max_iter=20)
    return X, model.set_params(n_landmarks=20, random_state=0).fit(X, y)


def test_the_metric_is_a_feature_map_and_a_linear_metric(fitted):
    X, model = fitted
    metric = model.metric_
    values = metric.features(X)
    assert values.shape == (80, 60)
    np.testing.assert_allclose(
        values[:, :20], rbf_kernel(X, metric.landmarks, gamma=2.0)
    )
    expected = metric.linear.distances(values, values)
    np.testing.assert_allclose(metric.distances(X, X), expected, atol=1e-8)
    np.testing.assert_array_equal(
        metric.embed_items(X[3]), metric.embed_items(X[3:4])[0]
    )
    assert metric.embed_items(X.astype(np.float32)).dtype == np.float32


def test_a_saved_metric_ranks_the_same(fitted, tmp_path):
    X, model = fitted
    model.metric_.save(tmp_path / "metric.safetensors")
    loaded = load_metric(tmp_path / "metric.safetensors")
    assert isinstance(loaded, KernelMetric)
    assert loaded.kernels == model.metric_.kernels
    ranking = model.rank(X[:9], X)
    np.testing.assert_array_equal(loaded.rank(X[:9], X).items, ranking.items)
    by_index = Index(X, loaded).rank(X[:9])
    np.testing.assert_array_equal(by_index.items, ranking.items)
    order = np.argsort(model.metric_.distances(X[:9], X), axis=1, kind="stable")
    same = order == ranking.items.reshape(9, 80)
    assert same.mean() > 0.99


def test_onnx_maps_as_the_metric_does():
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = make_moons(80, noise=0.05, random_state=0)
    kernels = [
        {"name": "rbf", "gamma": 2.0},
        {"name": "linear"},
        {"name": "poly", "degree": 2},
    ]
    options = {"constraint": "diagonal", "measure": "auc", "n_landmarks": 20}
    model = KernelMLR(kernel=kernels, random_state=0, **options).fit(X + 10, y)
    session = onnxruntime.InferenceSession(to_onnx(model.metric_).SerializeToString())
    (mapped,) = session.run(None, {"vectors": (X + 10).astype(np.float32)})
    expected = model.metric_.embed_items(X + 10)
    np.testing.assert_allclose(mapped, expected, atol=2e-4 * np.abs(expected).max())


def test_other_exports_say_what_to_do(fitted):
    X, model = fitted
    with pytest.raises(ValueError, match=r"by metric\.embed_items"):
        to_faiss(model.metric_, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "sigmoid"}, "name of a kernel must be one of rbf, poly"),
        ({"kernel": []}, "kernel must be a name, or mappings"),
        ({"kernel": [{"gamma": 1.0}]}, "a kernel needs a name"),
        ({"kernel": [{"name": "rbf"}, {"name": "linear"}]}, "several kernels need constraint="),
        ({"gamma": -1.0}, "gamma above 0"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0 of a polynomial kernel"),
        ({"n_landmarks": 41}, "n_landmarks == 41, must be <= 40"),
        ({"kernel": "precomputed"}, "must be a symmetric matrix"),
        ({"constraint": "cone"}, "constraint must be one of"),
    ],
)  # fmt: skip
def test_bad_parameters_stop(options, message, rng):
    with pytest.raises(ValueError, match=message):
        KernelMLR(**options).fit(rng.normal(size=(40, 2)), np.arange(40) % 2)


def test_the_exact_form_has_a_limit(rng):
    with pytest.raises(ValueError, match="at most 2000 rows: got 2001"):
        KernelMLR().fit(rng.normal(size=(2001, 2)), np.arange(2001) % 2)


def test_kernels_must_be_positive(rng):
    K = rng.normal(size=(20, 20))
    with pytest.raises(ValueError, match="positive semi-definite: an eigenvalue is -"):
        KernelMLR(kernel="precomputed").fit(K + K.T, np.arange(20) % 2)


def test_damaged_files_are_refused(fitted, tmp_path):
    _, model = fitted
    metric = model.metric_
    rbf = {"name": "rbf"}
    given = {"name": "precomputed"}
    for kernels in ([rbf], [{"name": "sigmoid"}] * 3, [], [rbf, given], [given, rbf]):
        with pytest.raises(ValueError, match="kernel"):
            KernelMetric(metric.landmarks, metric.components, kernels=kernels)
