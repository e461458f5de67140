"""The figures and tables of the L-GMML paper, each run in small."""

from dataclasses import replace

import pytest

from experiments import load_recipe, reproduce

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")


def small(name, content, **options):
    recipe = load_recipe(name)
    return replace(
        recipe,
        options={**recipe.options, **options},
        content={**recipe.content, **content},
    )


def test_local_metrics_gain_with_their_number(tmp_path):
    problem = load_recipe("lgmml-figure-2").content["problems"][0]
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


def test_time_against_features_in_small(tmp_path):
    methods = load_recipe("lgmml-figure-4").content["methods"]
    methods = [*methods[:2], {**methods[3], "last": 10}]
    options = {"dimensions": [5, 40], "n_items": 120, "n_classes": 6}
    recipe = small("lgmml-figure-4", {"methods": methods}, **options)
    (table,) = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert table.rows[2][2] == "–"
    assert all(float(row[1]) > 0 for row in table.rows)
    assert (tmp_path / "lgmml-figure-4" / "seconds.png").is_file()


def test_queries_by_example_in_small(tmp_path, data_folder):
    recipe = load_recipe("lgmml-figure-5")
    isolet = {**recipe.content["problems"][1], "n_items": 400, "n_components": 10}
    methods = [
        m for m in recipe.content["methods"] if m["label"] in ("Euclidean", "L-GMML")
    ]
    content = {"problems": [isolet], "methods": methods}
    (table,) = reproduce(
        small("lgmml-figure-5", content, n_seeds=1), tmp_path, n_jobs=1
    ).tables
    euclidean, local = (float(row[1].split(" ± ")[0]) for row in table.rows)
    assert local > euclidean + 0.05
    assert table.rows[1][4] == "2.6"


def test_trees_in_small(tmp_path, data_folder):
    pytest.importorskip("lightgbm")
    recipe = load_recipe("lgmml-table-4")
    ohsumed = {**recipe.content["problems"][2], "folds": 1, "published": True}
    (table,) = reproduce(
        small("lgmml-table-4", {"problems": [ohsumed]}, n_splits=1), tmp_path, n_jobs=1
    ).tables
    scores = {row[0]: float(row[2]) for row in table.rows}
    # Fold 1 trains on S1 to S3 and tests on S5.
    assert scores["LGMML, as it comes"] > scores["L-GMML, paper's form"] > 0.25
    assert (
        scores["L-GMML, paper's form"] > scores["L-GMML, paper's form, equal weights"]
    )
    assert table.rows[1][6:8] == ("0.4417 ± 0.0131", "0.4513 ± 0.0196")
