"""Recipes: each one runs in small, selects models on validation data only, and can resume."""

import json
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import Recipe, list_recipes, load_recipe, reproduce
from experiments.__main__ import main
from experiments.protocols import adapters, embeddings
from experiments.protocols.knn import choose, one_piece
from experiments.protocols.matching import Interval, synthetic
from experiments.protocols.noise import noisy_wine
from experiments.protocols.retrieval import (
    _other_rows,
    distance_of,
    split_rows,
    validation_score,
)
from experiments.protocols.retrieval import one_piece as retrieval_piece
from experiments.protocols.toy import vertical_share
from experiments.protocols.warp_loss import expected as expected_loss
from experiments.protocols.warp_loss import rank_loss, truncated
from experiments.recipe import FOLDER
from rankspace import (
    BilinearMetric,
    Index,
    LinearMetric,
    ListwiseMap,
    Relevance,
    evaluate,
    knn_error,
)
from rankspace.datasets import Dataset, load_wine
from rankspace.learners.solvers.warp.sampling import rank_weights
from rankspace.relevance.splits import fold_queries

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")


OURS = ("embeddings", "signals", "sizes")  # recipes of no paper


@pytest.mark.parametrize("name", list_recipes())
def test_recipes_name_their_paper_and_its_numbers(name):
    recipe = load_recipe(name)
    venues = (", ICML 20", ", KAIS 2013, ", "SIGIR 2017, ")
    assert any(venue in recipe.paper for venue in venues) or name in OURS
    assert set(recipe.options) & {"n_splits", "seed", "n_seeds"}
    if name.startswith("parca-"):
        return  # its curves are printed without numbers
    published = recipe.content.get("paper_values", recipe.content.get("published", {}))
    assert published or "-figure-" in name or name in ("frml-table-1", *OURS)
    if "methods" in recipe.content:
        labels = [method["label"] for method in recipe.content["methods"]]
        assert set(published) - {"datasets"} <= set(labels)


def test_isolet_is_prepared_as_in_the_paper_and_nothing_is_whitened(monkeypatch):
    """Principal directions keep their spread: Euclidean distance must be that of the pixels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 6)) * [5, 4, 3, 1, 1, 1], np.arange(120) % 3
    splits = {"train": np.arange(90), "test": np.arange(90, 120)}
    fake = Dataset("fake", X + y[:, None], labels=y, splits=splits)
    monkeypatch.setattr("experiments.protocols.knn._load", lambda name: fake)
    data = {
        "name": "fake",
        "published_split": True,
        "n_components": 6,
        "standardise": False,
    }
    options = {"test_size": 0.2, "folds": 3, "votes": [1, 5]}
    found = one_piece(data, "Euclidean", {}, 0, options)
    expected = [
        knn_error(Index(fake.X[:90]).rank(fake.X[90:]), y[:90], k, query_labels=y[90:])
        for k in (1, 5)
    ]
    assert found["test"] == pytest.approx(expected)


def small_table(**options):
    """Table 2 on wine alone, by two methods."""
    recipe = load_recipe("mlr-table-2")
    content = dict(recipe.content)
    content["datasets"] = [d for d in content["datasets"] if d["name"] == "wine"]
    content["methods"] = [
        m for m in content["methods"] if m["label"] in ("MLR-AUC", "Euclidean")
    ]
    small = {"n_splits": 2, "folds": 2, "votes": [1, 3, 5], "against": "Euclidean"}
    options = {**small, **options}
    return replace(recipe, content=content, options={**recipe.options, **options})


def test_table_2_in_small(tmp_path):
    outcome = reproduce(small_table(), tmp_path, n_jobs=1)
    errors, sizes, paired = outcome.tables
    assert paired.title == "k-NN error in % on Wine, against Euclidean"
    assert [row[0] for row in paired.rows] == ["MLR-AUC", "Euclidean"]
    found = f"{paired.rows[0][1]:.1f} ± "
    assert errors.rows[0][2].startswith(found)
    assert [row[0] for row in errors.rows] == ["MLR-AUC, Wine", "Euclidean, Wine"]
    assert [row[1] for row in errors.rows] == ["1.4", "3.1"]
    assert all(float(row[2].split(" ± ")[0]) < 10 for row in errors.rows)
    assert sizes.rows[1] == ("Euclidean", "13.0")
    assert float(sizes.rows[0][1]) < 6
    home = tmp_path / "mlr-table-2"
    assert json.loads((home / "results.json").read_text())["tables"][0]["rows"][0][0]
    assert "![dimensions](dimensions.png)" in (home / "README.md").read_text()
    assert (home / "table-1.csv").read_text() == errors.to_csv()
    assert (home / "table-3.tex").read_text() == paired.to_latex()
    assert (home / "dimensions.png").read_bytes().startswith(b"\x89PNG")


def test_methods_that_a_data_set_skips(tmp_path):
    recipe = small_table()
    (wine,) = recipe.content["datasets"]
    content = {
        **recipe.content,
        "datasets": [wine, {**wine, "label": "WDBC", "name": "wdbc"}],
    }
    content["datasets"][1]["skip"] = ["MLR-AUC"]
    errors, sizes, *_ = reproduce(
        replace(recipe, content=content), tmp_path, n_jobs=1
    ).tables
    assert [row[0] for row in errors.rows] == [
        "MLR-AUC, Wine",
        "Euclidean, Wine",
        "Euclidean, WDBC",
    ]
    assert sizes.rows[0][2] == "–"
    assert (tmp_path / "mlr-table-2" / "dimensions.png").is_file()


def test_pieces_are_plain_nearest_neighbours_on_the_stated_splits():
    """Euclidean distance, redone with scikit-learn's classifier; k = 1 knows no tied votes."""
    options = {"test_size": 0.2, "folds": 3, "votes": [1]}
    found = one_piece({"name": "wine"}, "Euclidean", {}, 4, options)
    wine = load_wine()
    train, test, y_train, y_test = train_test_split(
        wine.X, wine.labels, test_size=0.2, random_state=4
    )
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    assert found["test"] == [
        pytest.approx(1 - model.fit(train, y_train).score(test, y_test))
    ]
    errors = [
        1 - model.fit(train[a], y_train[a]).score(train[b], y_train[b])
        for a, b in KFold(3, shuffle=True, random_state=4).split(train)
    ]
    assert found["validation"] == [pytest.approx(np.mean(errors))]
    assert found["dimensions"] == 13


def piece(validation, test=(0.0, 0.0), dimensions=1):
    return {"validation": validation, "test": list(test), "dimensions": dimensions}


def test_settings_are_chosen_by_validation_errors_alone():
    assert choose([piece([0.2, 0.1], (0, 0)), piece([0.1, 0.1], (1, 1))]) == (1, 1)
    assert choose([piece([0.2, 0.1]), piece([0.3, 0.1])]) == (0, 1)
    assert choose([piece([0.0, 0.0], dimensions=0), piece([0.3, 0.1])]) == (1, 1)


def test_an_interrupted_run_resumes_and_other_options_start_anew(tmp_path):
    recipe = small_table()
    reproduce(recipe, tmp_path, n_jobs=1)
    jobs = tmp_path / "mlr-table-2" / "jobs"
    before = {path: path.stat().st_mtime_ns for path in jobs.iterdir()}
    lost = next(iter(before))
    lost.unlink()
    shares = []
    reproduce(recipe, tmp_path, n_jobs=1, progress=shares.append)
    after = {path: path.stat().st_mtime_ns for path in jobs.iterdir()}
    assert shares == [1.0]
    assert [path for path in before if after[path] != before[path]] == [lost]
    reproduce(
        replace(recipe, options={**recipe.options, "folds": 3}), tmp_path, n_jobs=1
    )
    assert len(list(jobs.iterdir())) == 2 * len(before)


@pytest.mark.long
def test_processes_do_not_change_the_result(tmp_path):
    once, twice = (
        reproduce(small_table(), tmp_path / str(n), n_jobs=n) for n in (1, 2)
    )
    assert once.tables == twice.tables


def test_data_sets_without_files_are_named(tmp_path, monkeypatch):
    recipe = small_table()
    missing = {"name": "isolet", "label": "IsoLet", "published_split": True}

    def refuse(name):
        if name == "isolet":
            raise FileNotFoundError("the data set isolet needs these files")
        return load_wine()

    monkeypatch.setattr("experiments.protocols.knn.open_dataset", refuse)
    content = {**recipe.content, "datasets": [missing, *recipe.content["datasets"]]}
    outcome = reproduce(replace(recipe, content=content), tmp_path / "out", n_jobs=1)
    assert any("Left out: IsoLet" in note for note in outcome.notes)
    content["datasets"] = [missing]
    with pytest.raises(FileNotFoundError, match="isolet needs these files"):
        reproduce(replace(recipe, content=content), tmp_path / "out", n_jobs=1)


@pytest.mark.parametrize("name", ["lgmml-figure-3", "lgmml-figure-5", "lgmml-table-4"])
def test_a_recipe_without_any_of_its_files_says_what_it_would_download(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path / "nothing"))
    recipe = load_recipe(name).only_cell()
    with pytest.raises(FileNotFoundError, match=r"Left out: .* (download|made from) "):
        reproduce(recipe, tmp_path / "out", n_jobs=1)
    assert not (tmp_path / "out" / name / "results.json").exists()


def test_figure_1_mlr_keeps_to_the_vertical_axis_and_lmnn_does_not(tmp_path):
    outcome = reproduce(
        load_recipe("mlr-figure-1").with_options({"n_samples": 200}), tmp_path
    )
    table, paired = outcome.tables
    shares = {row[0]: row[1] for row in table.rows}
    assert paired.title == "MAP, 200 queries, against LMNN"
    assert [row[1] for row in paired.rows] == pytest.approx(
        [row[2] for row in table.rows]
    )
    assert paired.rows[2][7] < 1e-6
    assert shares["MLR-AUC"] > 0.9
    assert shares["MLR-MAP"] > 0.9
    assert shares["LMNN"] < 0.5
    assert (tmp_path / "mlr-figure-1" / "toy.png").is_file()


def test_the_share_of_an_axis_is_its_part_of_mean_squared_distances():
    rng = np.random.default_rng(0)
    X, L = rng.normal(size=(300, 2)), np.array([[2.0, 0.0], [0.0, 3.0]])
    gaps = (X[:, None] - X[None]) @ L.T
    expected = (gaps[..., 1] ** 2).sum() / (gaps**2).sum()
    assert vertical_share(LinearMetric(L), X) == pytest.approx(expected)


SMALL = {
    "train_users": 500,
    "train_queries": 300,
    "test_users": 400,
    "test_queries": 200,
    "noise": 0.5,
    "n_features": 10,
    "n_hidden": 1,
}


def test_table_4_in_small(tmp_path):
    recipe = load_recipe("mlr-table-4").with_options(SMALL)
    content = {**recipe.content, "problems": recipe.content["problems"][:1]}
    outcome = reproduce(replace(recipe, content=content), tmp_path, n_jobs=1)
    table, paired = outcome.tables
    found = {row[0]: [float(v) for v in row[1:4]] for row in table.rows}
    gains = {row[0]: row[4] for row in paired.rows if row[0] != "Euclidean"}
    gap = found["MLR-MAP"][1] - found["Euclidean"][1]
    assert gains["MLR-MAP"] == pytest.approx(gap, abs=0.002)
    assert found["MLR-MAP"][1] > found["Euclidean"][1] + 0.1
    assert found["MLR-AUC"][0] > found["Euclidean"][0] + 0.1
    assert abs(found["SVM-MAP"][0] - 0.5) < 0.08
    assert "500 users, 300 queries" in table.title


def test_intervals_share_no_user_and_held_out_parts_no_judgment():
    first, second = synthetic({**SMALL, "seed": 0})
    assert (len(first.X), len(second.X)) == (500, 400)
    assert not (first.X[:, None, 0] == second.X[None, :, 0]).any()
    kept, held_out = first.held_out(0.25, 0)
    assert held_out.relevance.n_queries == 75
    assert not np.intersect1d(
        kept.relevance.query_items, held_out.relevance.query_items
    ).size
    events = Interval(first.X, first.relevance, np.arange(500) % 10)
    kept, held_out = events.held_out(0.2, 0)
    assert len(held_out.X) == 100
    assert not np.intersect1d(kept.events, held_out.events).size
    assert kept.relevance.n_items == len(kept.X) == 400


def test_noise_is_drawn_as_in_the_demonstration():
    X, y = noisy_wine(96, 0)
    assert X.shape == (178, 109)
    np.testing.assert_array_equal(y, load_wine().labels)
    G = np.random.default_rng(0).standard_normal((96, 96))
    assert X[:, 13:].var() == pytest.approx(np.trace(G.T @ G) / 96, rel=0.2)


def test_the_demonstration_of_r_mlr_in_small(tmp_path):
    options = {"n_splits": 2, "n_noise": 20, "against": "Euclidean"}
    recipe = load_recipe("rmlr-demo").with_options(options)
    labels = ("R-MLR, C 1000, lambda 10", "Euclidean")
    methods = [m for m in recipe.content["methods"] if m["label"] in labels]
    recipe = replace(recipe, content={**recipe.content, "methods": methods})
    table, paired = reproduce(recipe, tmp_path, n_jobs=1).tables
    found = {row[0]: row for row in table.rows}
    assert paired.title == "MAP, 2 splits, against Euclidean"
    assert f"{paired.rows[0][1]:.3f}" == found[labels[0]][1][:5]
    assert float(found["R-MLR, C 1000, lambda 10"][1][:5]) > float(
        found["Euclidean"][1][:5]
    )
    assert found["Euclidean"][4] == "20.0 of 20"
    assert float(found["R-MLR, C 1000, lambda 10"][4].split()[0]) < 10


# ---------------------------------------------------------------------- recipes as files


def test_a_recipe_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "t"\npaper = "p"\ncost = "c"\nprotocol = "toy"\n[options]\nseed = 1\n'
    )
    recipe = load_recipe(path)
    assert recipe == Recipe("mine", "t", "p", "c", "toy", (), {"seed": 1}, {})
    assert recipe.with_options({"seed": 2}).options == {"seed": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "is not valid TOML"),
        ('title = "t"\n', "must give paper as a string"),
    ],
)
def test_bad_recipes(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_recipe(path)


def test_recipes_that_cannot_run(tmp_path):
    head = {"name": "mine", "title": "t", "paper": "p", "cost": "c"}
    with pytest.raises(
        ValueError, match=r"protocol of recipe mine must be one of .*knn"
    ):
        reproduce(Recipe(**head, protocol="nope"), tmp_path)
    with pytest.raises(ValueError, match=r"against must be the label .*: got 'nope'"):
        reproduce(small_table(against="nope"), tmp_path)
    with pytest.raises(ValueError, match="recipe mine lacks 'n_samples'"):
        reproduce(Recipe(**head, protocol="toy"), tmp_path)


@pytest.mark.parametrize("name", list_recipes())
def test_the_fields_of_recipes_are_documented(name):
    """Fields of the head, of methods, data sets and views; options belong to their protocol."""
    page = (FOLDER / "README.md").read_text()
    content = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    for key in ("methods", "datasets", "problems", "views"):
        for entry in content.pop(key, []):
            assert [field for field in entry if f"`{field}`" not in page] == []
    tables = {"options", "cell", "paper_values", "published"}
    assert all(f"`[{key}]`" in page for key in tables)
    assert [key for key in set(content) - tables if f"`{key}`" not in page] == []


def test_the_results_stay_small():
    files = [path for path in (FOLDER.parent / "results").rglob("*") if path.is_file()]
    files = [path for path in files if not {"jobs", "__pycache__"} & {*path.parts}]
    assert sum(path.stat().st_size for path in files) < 2e6


def test_unknown_names():
    with pytest.raises(
        ValueError, match="no recipe 'nope': there are embeddings, frml-figure-1, "
    ):
        load_recipe("nope")
    with pytest.raises(ValueError, match="no option 'splits': it has n_splits, "):
        load_recipe("mlr-table-2").with_options({"splits": 3})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("n_splits", 2.5, "a whole number"),
        ("n_splits", "many", "a whole number"),
        ("n_splits", True, "a whole number"),
        ("test_size", [0.2], "a number"),
        ("votes", 3, "a list of numbers"),
        ("votes", ["one"], "a list of numbers"),
        ("against", 1, "text"),
    ],
)
def test_options_have_the_types_of_their_defaults(name, value, kind):
    message = f"{name} of recipe mlr-table-2 must be {kind}: got "
    with pytest.raises(ValueError, match=re.escape(f"{message}{value!r}.")):
        load_recipe("mlr-table-2").with_options({name: value})


def test_whole_numbers_are_numbers_and_lists_take_both():
    changes = {"test_size": 1, "votes": [1, 2.5], "against": "LMNN"}
    changed = load_recipe("mlr-table-2").with_options(changes)
    assert changes.items() <= changed.options.items()


def test_a_recipe_names_the_package_it_lacks(tmp_path):
    recipe = replace(load_recipe("mlr-figure-1"), requires=("no_such_package",))
    with pytest.raises(
        ImportError,
        match="mlr-figure-1 needs no_such_package: pip install no_such_pack",
    ):
        reproduce(recipe, tmp_path)


def test_the_command_lists_and_runs(tmp_path, capsys):
    assert main([]) == 0
    assert "mlr-table-2" in capsys.readouterr().out
    assert main(["--json"]) == 0
    listed = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert listed == set(list_recipes())
    words = ["mlr-figure-1", "--folder", str(tmp_path), "--set", "n_samples=60"]
    assert main(words) == 0
    assert "written to" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["n_samples"] == 60


def test_the_command_names_the_packages_of_a_recipe(capsys):
    assert main(["lgmml-table-4", "--requirements"]) == 0
    assert capsys.readouterr().out == "lightgbm\n"
    assert main(["--requirements"]) == 0
    assert capsys.readouterr().out == "\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mlr-figure-1", "--set", "60"], "must be OPTION=VALUE"),
        (
            ["mlr-figure-1", "--set", "votes=few"],
            "votes of recipe mlr-figure-1 must be a w",
        ),
        (["nope"], "there is no recipe 'nope'"),
        (["nowhere.toml"], "No such file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------------- retrieval against rank


def labelled_blobs():
    """Three classes in six dimensions, of unequal size, with a test part."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 90, 150])
    X = rng.normal(size=(300, 6)) + 2 * rng.normal(size=(3, 6))[y]
    order = rng.permutation(300)
    splits = {"train": order[:200], "test": order[200:]}
    return labelled_dataset(X, y, splits)


def labelled_dataset(X, y, splits):
    return Dataset("blobs", X, Relevance.from_labels(y), labels=y, splits=splits)


OPTIONS = {"validation": 0.25, "seed": 3}


def test_rows_of_a_fold_are_apart_and_drawn_as_asked():
    blobs = labelled_blobs()
    data = {"folds": 4, "sample": 120, "equal_classes": True}
    tests = []
    for fold in range(4):
        rows = split_rows(blobs, data, fold, OPTIONS)
        every = np.concatenate(rows)
        assert np.bincount(blobs.labels[every]).tolist() == [40, 40, 40]
        assert np.unique(every).size == 120
        assert [part.size for part in rows] == [68, 22, 30]
        tests.append(rows.test)
    assert np.unique(np.concatenate(tests)).size == 120
    rows = split_rows(blobs, {"sample": 80, "n_queries": 50}, 0, OPTIONS)
    assert set(rows.test) <= set(blobs.splits["test"])
    assert set(rows.train) | set(rows.validation) <= set(blobs.splits["train"])
    assert (rows.train.size, rows.validation.size, rows.test.size) == (60, 20, 50)


def test_retrieval_judges_the_test_part_over_all_others(monkeypatch):
    """By hand: Euclidean distances of standardised test points from the training points."""
    blobs = labelled_blobs()
    monkeypatch.setattr("experiments.protocols.retrieval._load", lambda name: blobs)
    data = {"name": "blobs", "standardise": True}
    found = retrieval_piece(data, {"estimator": "Euclidean"}, {}, 0, OPTIONS)
    train, test = np.sort(blobs.splits["train"]), np.sort(blobs.splits["test"])
    scaler = StandardScaler().fit(blobs.X[train])
    relevance = Relevance.from_labels(
        blobs.labels[train], query_labels=blobs.labels[test]
    )
    ranking = Index(scaler.transform(blobs.X[train])).rank(
        scaler.transform(blobs.X[test])
    )
    expected = evaluate(ranking, relevance, "auc map p@1 p@10").means
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert found["size"] == "200 items x 6, 100 queries"


def test_retrieval_chooses_on_the_validation_part_alone(monkeypatch):
    """Labels of the test part may change at will: the setting stays."""
    blobs = labelled_blobs()
    settings = [{"C": 1e-9}, {"C": 0.5}]
    chosen = []
    for labels in (
        blobs.labels,
        np.where(np.isin(np.arange(300), blobs.splits["test"]), 0, blobs.labels),
    ):
        fake = labelled_dataset(blobs.X, labels, blobs.splits)
        monkeypatch.setattr(
            "experiments.protocols.retrieval._load", lambda name, fake=fake: fake
        )
        every = [{**s, "n_triplets": 3000, "random_state": 0} for s in settings]
        method = {"estimator": "OASIS"}
        chosen.append(
            [
                validation_score({"name": "blobs"}, method, setting, 0, OPTIONS)
                for setting in every
            ]
        )
    assert chosen[0] == chosen[1]
    assert chosen[0][0] != chosen[0][1]


def test_settings_for_all_folds_are_chosen_on_rows_that_no_fold_has():
    X = np.arange(600.0)[:, None]
    dataset = labelled_dataset(X, np.arange(600) % 3, {})
    data = {"sample": 300, "equal_classes": True, "folds": 5, "tuned_on": 120}
    used = set()
    for fold in range(5):
        used |= set(np.concatenate(split_rows(dataset, data, fold, OPTIONS)).tolist())
    train, validation, test = _other_rows(dataset, data, OPTIONS)
    assert len(used) == 300
    assert (train.size, validation.size, test.size) == (90, 30, 0)
    assert not used & set(np.concatenate((train, validation)).tolist())


def test_the_distance_of_a_similarity_is_that_of_its_symmetric_part(rng):
    A, B = rng.normal(size=(2, 4, 4))
    W = A.T @ B
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    W = sum(max(v, 0) * np.outer(u, u) for v, u in zip(values, vectors.T, strict=True))
    Q, X = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    expected = [[(q - x) @ W @ (q - x) for x in X] for q in Q]
    found = distance_of(BilinearMetric(A, B)).distances(Q, X)
    np.testing.assert_allclose(found**2, expected, atol=1e-9)


def test_a_recipe_against_rank_runs_in_small(monkeypatch, tmp_path):
    blobs = labelled_blobs()
    monkeypatch.setattr("experiments.protocols.retrieval._load", lambda name: blobs)
    recipe = load_recipe("frml-table-1")
    content = dict(recipe.content)
    content["datasets"] = [{"label": "Some blobs", "name": "wine", "n_components": 5}]
    kept = ("FRML-AUC", "LORETA", "Euclidean")
    methods = [dict(m) for m in content["methods"] if m["label"] in kept]
    for method in methods[:2]:
        method["fixed"] = {**method["fixed"], "n_triplets": 2000}
    content["methods"] = methods
    small = replace(
        recipe,
        content=content,
        options={
            **recipe.options,
            "ranks": [2, 4],
            "tried_ranks": [2, 3],
            "against": "FRML-AUC",
        },
    )
    outcome = reproduce(small, tmp_path, n_jobs=1)
    assert [row[:2] for row in outcome.tables[0].rows] == [
        ["FRML-AUC", "2"],
        ["FRML-AUC", "4"],
        ["FRML-AUC", "–"],
        ["LORETA", "2"],
        ["LORETA", "4"],
        ["LORETA", "–"],
        ["Euclidean", "–"],
    ]
    assert outcome.tables[0].rows[2][-1] in ("m 2", "m 3")
    titles = [table.title for table in outcome.tables[1:]]
    assert titles == [
        f"Some blobs, {name}, 100 queries, against FRML-AUC"
        for name in ("MAP", "P@1", "P@10")
    ]
    assert (tmp_path / "frml-table-1" / "some-blobs.png").is_file()
    again = reproduce(small, tmp_path, n_jobs=1)
    assert again.n_cached == 11
    assert again.tables == outcome.tables


def test_the_expected_loss_is_that_of_simulated_draws(rng):
    """Draw with replacement until a violator or the limit, and average what it costs."""
    levels = rank_loss(20)
    np.testing.assert_allclose(levels, rank_weights("reciprocal", 20))
    for gamma, k in ((1, 3), (4, 2), (4, 9)):
        costs = []
        for _ in range(4000):
            draws = rng.integers(0, 20, 20 // gamma)
            hit = np.flatnonzero(draws < k)
            costs.append(levels[20 // (hit[0] + 1)] if hit.size else 0.0)
        error = np.std(costs) / len(costs) ** 0.5
        assert expected_loss(levels, gamma)[k] == pytest.approx(
            np.mean(costs), abs=4 * error
        )
        cut = truncated(levels, gamma)
        assert cut[gamma] == levels[gamma]
        assert not cut[:gamma].any()


def test_figure_1_holds_the_numbers_of_the_specification(tmp_path):
    outcome = reproduce("frml-figure-1", tmp_path)
    rows = [row for table in outcome.tables for row in table.rows if row[-1] != "–"]
    assert len(rows) == 8
    assert all(row[3] == row[4] for row in rows)


# ---------------------------------------------------------------------- embeddings


def turned_queries():
    """Queries are their relevant document under one hidden map, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    turn = np.eye(6) + 0.4 * rng.normal(size=(6, 6))
    answers = rng.permutation(150)[:90]
    Q = X[answers] @ turn + 0.05 * rng.normal(size=(90, 6))
    relevance = Relevance.from_lists(answers[:, None].tolist(), n_items=150)
    splits = {"train": np.arange(60), "test": np.arange(60, 90)}
    return Dataset("turned", X, relevance, queries=Q, splits=splits)


def test_the_adapter_finds_a_map_of_the_queries():
    pytest.importorskip("torch", reason="torch is not installed")
    data = turned_queries()
    train = data.relevance.take_queries(np.arange(60))
    metric = adapters.adapter(data.X, train, data.queries[:60], 0)
    test = data.relevance.take_queries(np.arange(60, 90))
    found = evaluate(Index(data.X, metric).rank(data.queries[60:]), test, "mrr")
    raw = evaluate(Index(data.X).rank(data.queries[60:]), test, "mrr")
    assert found.means["mrr"] > raw.means["mrr"] + 0.05


@pytest.fixture
def embeddings_of(monkeypatch):
    """The recipe over one data set that is made here, by some of its methods."""

    def make(dataset, methods, data=None, **options):
        embeddings._problem.cache_clear()
        monkeypatch.setattr(embeddings, "_dataset", lambda data: dataset)
        recipe = load_recipe("embeddings")
        content = dict(recipe.content)
        content["datasets"] = [{"label": "Set", "name": dataset.name, **(data or {})}]
        content["methods"] = [m for m in content["methods"] if m["label"] in methods]
        recipe = replace(recipe, content=content)
        return recipe.with_options(options)

    yield make
    embeddings._problem.cache_clear()


def mean_ndcg(X, metric, queries, relevance, numbers):
    """NDCG@10 of some queries with one relevant item of grade 1 each, by its rank."""
    scores = queries[numbers] @ X.T
    if metric is not None:
        scores = metric.embed_queries(queries[numbers]) @ X.T
    total = 0.0
    for row, number in zip(scores, numbers, strict=True):
        (relevant,) = relevance.relevant(number)
        rank = 1 + (row > row[relevant]).sum()
        total += 1 / np.log2(1 + rank) if rank <= 10 else 0.0
    return total / len(numbers)


def test_a_map_is_judged_on_queries_of_folds_that_it_did_not_learn_from(
    embeddings_of, tmp_path
):
    data = turned_queries()
    recipe = embeddings_of(data, ["memory", "map, always"])
    table, goals = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert table.title == "Set (60 all, 60 new)"
    assert [row[0] for row in table.rows] == ["unchanged", "memory", "map, always"]
    X = data.X.astype("f4")
    Q = data.queries.astype("f4")
    Q /= np.linalg.norm(Q, axis=1, keepdims=True)
    train = np.arange(60)
    expected = mean_ndcg(X, None, Q, data.relevance, train)
    assert float(table.rows[0][1]) == pytest.approx(expected, abs=1e-3)
    # The folds of tune, whose seed is drawn from that of the recipe.
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    folds = fold_queries(60, 5, seed).queries
    total = 0.0
    for fold in range(5):
        part = np.flatnonzero(folds != fold)
        model = ListwiseMap(
            sides="query", similarity="cosine", gain="linear", random_state=0
        )
        model.fit(X, data.relevance.take_queries(part), queries=Q[part])
        held_out = np.flatnonzero(folds == fold)
        total += 12 * mean_ndcg(X, model.metric_, Q, data.relevance, held_out)
    assert float(table.rows[2][1].split()[0]) == pytest.approx(total / 60, abs=1e-3)
    assert table.rows[2][2] == "–"  # no two queries ask for the same document
    assert goals.rows == []


def test_the_test_part_is_scored_only_when_it_is_asked_for(embeddings_of, tmp_path):
    data = turned_queries()
    recipe = embeddings_of(data, ["memory", "map, always"], parts="both")
    train, goals, table = reproduce(recipe, tmp_path, n_jobs=1).tables
    assert train.title == "Set (60 all, 60 new)"
    assert goals.title.startswith("Goals")
    assert table.title == "Set, test part (30 all, 30 new)"
    X = data.X.astype("f4")
    Q = data.queries.astype("f4")
    Q /= np.linalg.norm(Q, axis=1, keepdims=True)
    test = np.arange(60, 90)
    expected = mean_ndcg(X, None, Q, data.relevance, test)
    assert float(table.rows[0][1]) == pytest.approx(expected, abs=1e-3)
    model = ListwiseMap(
        sides="query", similarity="cosine", gain="linear", random_state=0
    )
    model.fit(X, data.relevance.take_queries(np.arange(60)), queries=Q[:60])
    expected = mean_ndcg(X, model.metric_, Q, data.relevance, test)
    assert float(table.rows[2][1].split()[0]) == pytest.approx(expected, abs=1e-3)
    with pytest.raises(
        ValueError, match="parts must be 'train', 'test' or 'both': got 'all'"
    ):
        reproduce(embeddings_of(data, ["memory"], parts="all"), tmp_path, n_jobs=1)


def test_classes_that_are_held_out_are_not_learned_from():
    rng = np.random.default_rng(0)
    labels = np.repeat([f"class {number}" for number in range(6)], 10)
    X = rng.normal(size=(60, 4))
    places = np.tile(np.arange(10), 6)
    splits = {"train": np.flatnonzero(places < 7), "test": np.flatnonzero(places >= 7)}
    data = Dataset("intents", X, labels=labels, splits=splits)
    problem = embeddings._labelled(data, per_class=5, n_held_out=2, seed=0)
    assert len(problem.X) == 20
    assert len(problem.test.corpus) == 30
    assert len(problem.test.points) == 18
    seen = {tuple(row) for row in problem.X}
    for number, row in enumerate(X.astype("f4")):
        if tuple(row) in seen:
            assert number in splits["train"]
    learned = {labels[i] for i, row in enumerate(X.astype("f4")) if tuple(row) in seen}
    assert len(learned) == 4
    of_learned = [label in learned for label in labels[splits["test"]]]
    np.testing.assert_array_equal(problem.known, of_learned)
    # The corpus has five rows of each class, all relevant to a test row of the class.
    assert problem.test.judged.n_relevant.tolist() == [5] * 18


def answer(difference, outcome="safe"):
    return {
        "value": 0.5 + difference,
        "difference": difference,
        "outcome": outcome,
        "queries": 40,
    }


def result(decision, p_value=0.01, **answers):
    return {
        "decision": decision,
        "p_value": p_value,
        "answers": answers,
        "seconds": 1.0,
    }


def test_goals_follow_decisions_and_not_only_estimates():
    sets = [
        {"label": "A", "goal": "unharmed"},
        {"label": "B", "goal": "unharmed"},
        {"label": "C", "goal": "shipped"},
        {"label": "D", "goal": "shipped"},
    ]
    harmed = {"known": answer(0.1), "new": answer(-0.05, "harmed")}
    results = {
        "A": {"tune": result("keep", **harmed)},
        "B": {"tune": result("ship", **harmed)},
        "C": {"tune": result("keep", 0.2, known=answer(0.02))},
        "D": {"tune": result("keep", 0.001, known=answer(0.02))},
    }
    for methods, gain in zip(results.values(), (0.3, 0.06, 0.1, 0.1), strict=True):
        methods["map, always"] = result("", known=answer(gain))
    goals = embeddings._goals(sets, results)
    held = {row[0]: row[2] for row in goals.rows}
    assert [held[key] for key in list(held)[:4]] == ["yes", "no", "yes", "no"]
    # Kept vectors gain nothing: (0 + 0.1 + 0 + 0) / 4 against 0.56 / 4.
    gain, measured = "gain on known documents, tune", goals.rows[4][1]
    assert measured == "+0.0250, map taken always +0.1400 (4 sets)"
    assert held[gain] == "no"
    results["B"]["tune"] = result("ship", known=answer(0.6), new=answer(0.0))
    assert embeddings._goals(sets, results).rows[4][2] == "yes"
