"""The reruns of the PARCA paper: how data are prepared and split, and that recipes run in small."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import mutual_info_classif

from experiments import load_recipe, reproduce
from experiments.protocols import prepared
from experiments.protocols.prepared import Prepared, information_gain, prepare
from experiments.protocols.ratios import (
    SHRINKAGES,
    discriminant,
    learn,
    one_piece,
    split_rows,
    validation_folds,
)
from rankspace import Index, Relevance, evaluate
from rankspace.datasets import Dataset

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
    prepare.cache_clear()


def texts():
    """Eighty texts of two classes, told apart by two words of four."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    lines = [
        " ".join(
            ["the", "hockey" if y else "disk"] * rng.integers(1, 4)
            + list(rng.choice(["people", "writes", "article"], 3))
            + [f"name{chr(97 + i % 26)}{chr(97 + i // 26)}"]
        )
        for i, y in enumerate(labels)
    ]
    return Dataset("few", texts=[*lines, lines[0]], labels=np.append(labels, 0))


def test_rows_have_unit_length_and_classes_their_share(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(
        prepared, "open_dataset", lambda name: Dataset(name, X, labels=y)
    )
    whole = prepare("iris", per_class=20)
    np.testing.assert_allclose(np.linalg.norm(whole.X, axis=1), 1)
    assert np.bincount(whole.y).tolist() == [20, 20, 20]


def test_information_gain_is_mutual_information(rng):
    y = rng.integers(0, 3, 200)
    counts = rng.poisson(0.5 + (y[:, None] == np.arange(4)), size=(200, 4))
    expected = mutual_info_classif(counts > 0, y, discrete_features=True)
    np.testing.assert_allclose(information_gain(counts, y), expected, atol=1e-9)


def test_texts_become_their_most_telling_words(monkeypatch):
    monkeypatch.setattr(prepared, "open_texts", lambda name: texts())
    whole = prepare("few", n_words=2)
    assert whole.words.tolist() == ["disk", "hockey"]
    assert whole.X.shape == (80, 2)  # the duplicate is gone
    np.testing.assert_allclose(np.asarray(whole.X.power(2).sum(axis=1)), 1)


def test_a_split_has_a_share_of_each_class_and_at_least_two_rows():
    y = np.repeat([0, 1, 2], [100, 50, 10])
    rows, others = split_rows(y, 0.1, 0)
    assert np.bincount(y[rows]).tolist() == [10, 5, 2]
    np.testing.assert_array_equal(
        np.sort(np.concatenate((rows, others))), np.arange(160)
    )
    assert (split_rows(y, 0.1, 1)[0] != rows).any()


def unequal_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [40, 20, 8, 5])
    return rng.normal(size=(73, 6)) + 3 * rng.normal(size=(4, 6))[y], y


def assert_same_directions(found, expected):
    for a, b in zip(found, expected, strict=True):
        cosine = abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)
        assert cosine == pytest.approx(1, abs=1e-6)


def test_textbook_lda_is_that_of_scikit_learn():
    X, y = unequal_classes()
    found = discriminant(X, y, eps=0, form="textbook")
    expected = LinearDiscriminantAnalysis(n_components=2).fit(X, y).scalings_[:, :2].T
    assert_same_directions(found, expected)


@pytest.mark.parametrize("form", ["data", "class means", "textbook"])
@pytest.mark.parametrize("n_features", [6, 90])
def test_lda_is_the_generalised_eigenproblem_of_its_definition(form, n_features):
    X, y = unequal_classes()
    X = np.hstack([X, np.random.default_rng(1).normal(size=(73, n_features - 6))])
    within, between = np.zeros((2, n_features, n_features))
    means = [X[y == label].mean(axis=0) for label in range(4)]
    centre = np.mean(means, axis=0) if form == "class means" else X.mean(axis=0)
    for label, mean in enumerate(means):
        inner = X[y == label] - mean
        within += inner.T @ inner
        weight = len(inner) if form == "textbook" else 1
        between += weight * np.outer(mean - centre, mean - centre)
    within += 0.3 * np.trace(within) / n_features * np.eye(n_features)
    expected = scipy.linalg.eigh(between, within)[1][:, :-3:-1].T
    found = discriminant(X, y, eps=0.3, form=form)
    assert_same_directions(found, expected)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-7)


def test_shrinkage_and_gamma_are_chosen_on_held_out_training_rows(monkeypatch):
    X, y = unequal_classes()
    folds = validation_folds(y, 3)
    assert len(folds) == 5
    for rows, others in folds:
        np.testing.assert_array_equal(
            np.sort(np.concatenate((rows, others))), np.arange(y.size)
        )
    errors = {}
    for eps in SHRINKAGES:
        values = []
        for rows, others in folds:
            Z = X @ discriminant(X[rows], y[rows], eps=eps).T
            relevance = Relevance.from_labels(y[rows], query_labels=y[others])
            ranking = Index(Z[rows]).rank(Z[others])
            report = evaluate(ranking, relevance, "ranking-error")
            values.append(others.size * report.means["ranking-error"])
        errors[eps] = sum(values)
    best = min(errors, key=errors.get)
    found = discriminant(X, y, seed=3)
    np.testing.assert_allclose(found, discriminant(X, y, eps=best))
    method = {"estimator": "ITML", "fixed": {"gammas": [0.1, 10.0], "max_iter": 5}}
    L = learn(method, Prepared(X, y, None), np.arange(y.size), 3)
    candidates = [
        learn(
            {"estimator": "ITML", "fixed": {"gamma": gamma, "max_iter": 5}},
            Prepared(X, y, None),
            np.arange(y.size),
            3,
        )
        for gamma in (0.1, 10.0)
    ]
    assert any(np.array_equal(L, other) for other in candidates)


def test_folds_that_teach_nothing_are_left_out():
    assert validation_folds(np.array([0, 0, 0, 0, 0]), 0) == []
    assert len(validation_folds(np.array([0, 0, 1, 1]), 0)) == 4


@pytest.mark.parametrize(
    "name", ["PARCA", "LogisticPARCA", "NCA", "LDA", "ITML", "PCA"]
)
def test_methods_learn(name):
    whole = prepare("wine")
    rows = split_rows(whole.y, 0.2, 0)[0]
    fixed = {"LDA": {"eps": 0.001}, "LogisticPARCA": {"beta": 0.0}}.get(name, {})
    L = learn({"estimator": name, "fixed": fixed}, whole, rows, 0)
    assert L.shape == (13 if name == "ITML" else 2, 13)
    assert np.isfinite(L).all()


def test_a_piece_is_the_ranking_error_of_held_out_rows():
    error, n = one_piece({"name": "wine"}, {"estimator": "PCA"}, 0.1, 3, 50)
    whole = prepare("wine")
    rows, others = split_rows(whole.y, 0.1, 3)
    L = PCA(2).fit(whole.X[rows]).components_
    relevance = Relevance.from_labels(whole.y[rows], query_labels=whole.y[others[:50]])
    ranking = Index(whole.X[rows] @ L.T).rank(whole.X[others[:50]] @ L.T)
    expected = evaluate(ranking, relevance, "ranking-error").means["ranking-error"]
    assert error == pytest.approx(expected)
    assert n == rows.size


def test_curves_and_views_in_small(tmp_path):
    recipe = load_recipe("parca-figure-3")
    methods = [m for m in recipe.content["methods"] if m["label"] in ("PARCA", "LDA")]
    wine = {"label": "Wine", "name": "wine"}
    view = {
        "name": "view",
        "dataset": "Wine",
        "ratio": 0.1,
        "methods": ["PARCA", "LDA"],
    }
    content = {
        **recipe.content,
        "datasets": [wine],
        "methods": methods,
        "views": [view],
    }
    recipe = replace(recipe, content=content).with_options(
        {"n_splits": 2, "ratios": [0.1, 0.2]}
    )
    outcome = reproduce(recipe, tmp_path, n_jobs=1)
    errors, gaps, p_values = outcome.tables
    assert p_values.title == "Wine: p (Holm) of these differences"
    assert list(errors.header) == ["method", "10 % (n = 18)", "20 % (n = 36)"]
    assert [row[0] for row in errors.rows] == ["PARCA", "LDA"]
    assert all(
        0 < float(cell.split(" ± ")[0]) < 1 for row in errors.rows for cell in row[1:]
    )
    parca, lda = (
        np.array(
            [
                one_piece({"name": "wine"}, method, 0.1, split, 2000)[0]
                for split in range(2)
            ]
        )
        for method in methods
    )
    assert [row[0] for row in gaps.rows] == ["LDA"]
    gap = lda - parca
    expected_p = scipy.stats.ttest_rel(lda, parca).pvalue
    assert float(p_values.rows[0][1]) == pytest.approx(expected_p, abs=1e-4)
    assert gaps.rows[0][1] == f"{gap.mean():+.3f} ± {gap.std(ddof=1) / np.sqrt(2):.3f}"
    home = tmp_path / "parca-figure-3"
    for name in ("curves", "view"):
        assert (home / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_times_in_small(tmp_path):
    recipe = load_recipe("parca-table-2")
    assert len(recipe.content["datasets"]) == 11
    methods = [
        m for m in recipe.content["methods"] if m["label"] in ("LDA", "Logistic PARCA")
    ]
    wine = {"label": "Wine", "name": "wine"}
    recipe = replace(
        recipe, content={**recipe.content, "datasets": [wine], "methods": methods}
    )
    (times,) = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert list(times.header) == ["method", "Wine (18 x 13)"]
    assert [row[0] for row in times.rows] == ["LDA", "Logistic PARCA"]
    assert float(times.rows[0][1]) >= 0
    assert float(times.rows[1][1]) > 0


def test_clusters_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(prepared, "open_texts", lambda name: texts())
    rng = np.random.default_rng(0)
    images = Dataset("dots", rng.random((60, 6)) + np.eye(3, 6)[np.arange(60) % 3])
    labelled = replace(images, labels=np.arange(60) % 3)
    monkeypatch.setattr(prepared, "open_dataset", lambda name: labelled)
    recipe = load_recipe("parca-clusters")
    common = {"n_components": 2, "ratio": 0.5}
    sets = [
        {"label": "Few", "name": "few", "n_words": 4, "picture": "words", **common},
        {"label": "Dots", "name": "dots", "shape": [2, 3], "picture": "dots", **common},
    ]
    recipe = replace(recipe, content={**recipe.content, "datasets": sets})
    outcome = reproduce(recipe, tmp_path, n_jobs=1)
    summary, topics = outcome.tables
    assert [row[0] for row in summary.rows] == ["Few", "Dots"]
    assert sum(int(n) for n in summary.rows[0][-1].split(", ")) == 4
    assert {"disk", "hockey"} <= set(
        ", ".join(row[1] for row in topics.rows).split(", ")
    )
    assert sorted(outcome.pictures) == ["dots", "words"]
