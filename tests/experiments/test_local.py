"""The figures and tables of the L-GMML paper, each run in small."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from experiments import load_recipe, reproduce
from experiments.data import make_class_mixture
from experiments.protocols import counts, trees
from rankspace import Relevance
from rankspace.datasets import Dataset
from rankspace.learners.solvers.geometric.metric_weights import per_list_warp

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")


def small(name, content, **options):
    recipe = load_recipe(name)
    return replace(
        recipe,
        options={**recipe.options, **options},
        content={**recipe.content, **content},
    )


def test_local_metrics_gain_with_their_number(tmp_path):
    problems = load_recipe("lgmml-figure-2").content["problems"]
    (problem,) = (p for p in problems if p["label"] == "2 centres")
    problem = {
        **problem,
        "options": {**problem["options"], "n_samples": 2000, "n_queries": 60},
    }
    recipe = small("lgmml-figure-2", {"problems": [problem]}, counts=[1, 30], n_seeds=2)
    (table,) = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert [row[0] for row in table.rows] == [
        "2 centres, paper's form",
        "2 centres, distances",
    ]
    assert all(float(row[3]) > float(row[2]) + 0.03 for row in table.rows)
    assert (tmp_path / "lgmml-figure-2" / "centres-2.png").is_file()


def test_gains_are_tested_against_a_metric_for_each_centre(tmp_path):
    problem = {
        "name": "four",
        "label": "4 classes",
        "kind": "classes",
        "centres": 4,
        "measure": "map",
        "options": {"n_classes": 4, "n_samples": 80},
    }
    recipe = small(
        "lgmml-figure-2", {"problems": [problem]}, counts=[1, 2, 4], n_seeds=2
    )
    scores, gains, _ = reproduce(recipe, tmp_path, n_jobs=1).tables
    expected = "4 classes, paper's form: gain in map over one metric, against 4 metrics"
    assert gains.title == expected
    assert [row[0] for row in gains.rows] == ["2 metrics", "4 metrics"]
    first, last = (float(scores.rows[0][i]) for i in (2, 4))
    assert gains.rows[1][1] == pytest.approx(last - first, abs=2e-3)


def test_points_of_a_class_lie_within_their_95_percent():
    mixture = make_class_mixture(3, n_samples=6000, n_features=4, random_state=0)
    assert np.bincount(mixture.labels).tolist() == [2000] * 3
    for label in range(3):
        X = mixture.X[mixture.labels == label]
        offset = X - X.mean(axis=0)
        squares = np.sum(offset @ np.linalg.inv(np.cov(X.T)) * offset, axis=1)
        # Cut at the limit, so the covariance is smaller than that of the whole class.
        assert squares.max() < 1.5 * scipy.stats.chi2.ppf(0.95, 4)
        spread = np.sqrt(np.linalg.eigvalsh(np.cov(X.T)))
        assert 0.05 < spread.min() < spread.max() < 3


def test_time_against_features_in_small(tmp_path):
    methods = load_recipe("lgmml-figure-4").content["methods"]
    methods = [*methods[:2], {**methods[-1], "last": 10}]
    options = {"dimensions": [5, 40], "n_items": 120, "n_classes": 6}
    recipe = small("lgmml-figure-4", {"methods": methods}, **options)
    (table,) = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert table.rows[2][2] == "–"
    assert all(float(row[1]) > 0 for row in table.rows)
    assert (tmp_path / "lgmml-figure-4" / "seconds.png").is_file()


def test_queries_by_example_in_small(tmp_path, data_folder):
    recipe = load_recipe("lgmml-figure-5")
    isolet = {**recipe.content["problems"][1], "n_items": 250, "n_components": 10}
    methods = [
        m for m in recipe.content["methods"] if m["label"] in ("Euclidean", "L-GMML")
    ]
    methods[1] = {**methods[1], "grid": {"t": [0.1, 0.5]}}
    content = {"problems": [isolet], "methods": methods}
    (table,) = reproduce(
        small("lgmml-figure-5", content, n_seeds=1, against=""), tmp_path, n_jobs=1
    ).tables
    euclidean, local = (float(row[1].split(" ± ")[0]) for row in table.rows)
    assert local > euclidean + 0.05
    assert table.rows[1][4].startswith("t 0.")
    assert table.rows[1][5] == "2.6"


def test_trees_in_small(tmp_path, data_folder):
    pytest.importorskip("lightgbm")
    recipe = load_recipe("lgmml-table-4")
    ohsumed = {**recipe.content["problems"][2], "folds": 1, "published": True}
    methods = []
    for method in recipe.content["methods"]:
        grid = {key: values[:1] for key, values in method.get("grid", {}).items()}
        methods.append({**method, "grid": grid} if grid else method)
    content = {"problems": [ohsumed], "methods": methods}
    table, paired = reproduce(
        small("lgmml-table-4", content, n_splits=1), tmp_path, n_jobs=1
    ).tables
    scores = {row[0]: float(row[2]) for row in table.rows}
    # Fold 1 trains on S1 to S3 and tests on S5.
    assert scores["LGMML, as it comes"] > scores["L-GMML, paper's form"] > 0.25
    assert (
        scores["L-GMML, paper's form"] > scores["L-GMML, paper's form, equal weights"]
    )
    assert (
        paired.title == "OHSUMED: NDCG@10, 22 test queries, against lambda-MART, tuned"
    )
    for row in paired.rows:
        assert row[1] == pytest.approx(scores[row[0]], abs=2e-4)


def test_leaked_weights_are_fitted_to_the_labels_of_the_test_query(monkeypatch):
    """Labels of the test part may not change what a method scores, and change these weights."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 3)), np.repeat(np.arange(20), 20)
    grades = (X[:, 0] > 0) * 1.0
    rows = np.arange(400)
    splits = {"train": rows[:200], "vali": rows[200:300], "test": rows[300:]}
    weights = []

    def kept(H, lists, options):
        weights.append(per_list_warp(H, lists, options))
        return weights[-1]

    monkeypatch.setattr(trees, "per_list_warp", kept)
    for labels in (grades, np.where(rows < 300, grades, 1 - grades)):
        relevance = Relevance.from_groups(labels, qid)
        fake = Dataset("fake", X, relevance, qid=qid, grades=labels, splits=splits)
        monkeypatch.setattr(trees, "open_dataset", lambda name, fake=fake: fake)
        trees.leaked_piece("fake", 1.0, 0.1)
    assert weights[0].shape == weights[1].shape == (5, 10)
    assert not np.allclose(*weights)


def test_numbers_of_metrics_are_tested_over_the_queries_of_folds(rng):
    """Five folds count once each, however many seeds; one test part is averaged over seeds."""
    scores = {n: [rng.normal(n, size=4) for _ in range(6)] for n in (1, 5)}
    fold = {"kind": "fold", "measure": "map"}
    table = counts._against_one("sets", fold, scores)
    assert table.title == "sets: map, 20 queries, against 1 metrics"
    pooled = {n: np.concatenate(part[:5]) for n, part in scores.items()}
    assert table.rows[1][7] == pytest.approx(
        scipy.stats.ttest_rel(pooled[5], pooled[1]).pvalue
    )
    table = counts._against_one("sets", {**fold, "kind": "splits"}, scores)
    assert table.title == "sets: map, 4 queries, against 1 metrics"
    assert table.rows[1][1] == pytest.approx(np.mean(scores[5]))
    table = counts._against_one("sets", {**fold, "kind": "isolet"}, scores)
    assert table.title == "sets: map, 6 splits, against 1 metrics"
