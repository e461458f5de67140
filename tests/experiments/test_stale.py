"""Results whose code has changed are found, and are stale only if a number moved."""

import dataclasses
import json
import subprocess

import pytest

from experiments import list_recipes, load_recipe, stale
from experiments.numbers import printed
from experiments.run import HOME
from experiments.stale import (
    changed_modules,
    check_result,
    compute_cell,
    digest,
    main,
    read_digests,
    write_digests,
)

NAME = "frml-figure-1"
CODE = """
def f(x):
    return x + 1
"""
REWRITTEN = """
'''A module.'''
def f(x):
    '''Add one.'''

    # As the paper has it.
    return (x + 1)
"""


def test_comments_docstrings_and_layout_are_not_in_a_digest():
    assert digest(CODE) == digest(REWRITTEN) != digest(CODE.replace("1", "2"))
    assert digest("def f():\n    'a'") == digest("def f():\n    'b'")


WITH_CELL = [name for name in list_recipes() if load_recipe(name).cell]


def test_most_recipes_have_a_cell():
    assert len(WITH_CELL) >= 18


@pytest.mark.parametrize("name", WITH_CELL)
def test_a_cell_is_in_the_results(name):
    recipe = load_recipe(name)
    results = HOME / "results" / name / "results.json"
    if not results.exists():
        pytest.skip("the recipe has not been run")
    content = json.loads(results.read_text("utf-8"))
    assert float(printed(content, recipe.cell["place"], name))
    only = recipe.only_cell()
    assert set(only.options) == set(recipe.options)


@pytest.mark.parametrize("name", WITH_CELL)
def test_digests_are_of_what_a_recipe_runs(name):
    recipe = load_recipe(name)
    if not (HOME / "results" / name / "code.txt").exists():
        pytest.skip("the result is stale: nobody knows the code that wrote it")
    kept = read_digests(HOME / "results" / name / "code.txt")
    assert {"experiments.run", f"recipes/{name}.toml"} <= set(kept)
    assert f"experiments.protocols.{recipe.protocol}" in kept


def test_a_cell_is_computed_by_its_recipe():
    assert compute_cell(load_recipe(NAME)) == "2.5008"


def test_a_module_that_changed_or_is_gone_is_found():
    kept = {"experiments.run": stale._digest_of("experiments.run")}
    assert changed_modules(kept) == ()
    others = {"experiments.tables": "0", "rankspace.nothing": "0"}
    assert changed_modules({**kept, **others}) == tuple(others)


def test_digests_are_read_as_they_were_written(tmp_path):
    names = ["experiments", "experiments.run", "a.b.c", "recipes/mlr-figure-1.toml"]
    digests = dict.fromkeys(names, "0f0f")
    write_digests(tmp_path / "code.txt", digests)
    assert read_digests(tmp_path / "code.txt") == digests


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A results folder of one recipe, whose cell takes no time to compute."""
    home = tmp_path / NAME
    home.mkdir()
    for file in ("results.json", "code.txt"):
        (home / file).write_text((HOME / "results" / NAME / file).read_text("utf-8"))
    found = {"number": "2.5008", "digests": {"experiments.run": "new"}}
    monkeypatch.setattr(stale, "_compute_in_process", lambda name: found)
    return tmp_path


def keep(folder, digests):
    write_digests(folder / NAME / "code.txt", digests)


def test_unchanged_code_computes_nothing(folder, monkeypatch):
    keep(folder, {"experiments.run": stale._digest_of("experiments.run")})
    monkeypatch.setattr(stale, "_compute_in_process", None)
    assert str(check_result(NAME, folder)) == f"{NAME}: as committed"


def test_a_number_that_stays_renews_the_digests(folder):
    keep(folder, {"experiments.run": "old"})
    state = check_result(NAME, folder)
    assert (state.verdict, state.changed) == ("as committed", ("experiments.run",))
    kept = read_digests(folder / NAME / "code.txt")
    assert kept == {"experiments.run": "new"}


def test_a_number_that_moved_is_stale_until_it_is_run_anew(folder):
    keep(folder, {"experiments.run": "old"})
    results = folder / NAME / "results.json"
    results.write_text(results.read_text().replace("2.5008", "2.5010"))
    for _ in range(2):
        state = check_result(NAME, folder)
        assert state.verdict == "stale"
        assert "was 2.5010 and is 2.5008 (changed: experiments.run)" in str(state)


@pytest.mark.parametrize("seconds", ["0.02", "0.9"])
def test_times_move_by_a_factor(seconds):
    assert not stale._moved("0.1", seconds, is_time=True)
    assert stale._moved("0.1", "1.01", is_time=True)
    assert stale._moved("0.01", "0.0009", is_time=True)


def test_other_settings_than_those_that_were_run_are_stale(folder, monkeypatch):
    monkeypatch.setattr(stale, "_compute_in_process", None)
    keep(folder, {f"recipes/{NAME}.toml": "old"})
    state = check_result(NAME, folder)
    assert (state.verdict, state.reason) == ("stale", "its recipe has changed")
    keep(folder, {"experiments.run": "old"})
    results = folder / NAME / "results.json"
    content = json.loads(results.read_text())
    content["options"]["seed"] = 1
    results.write_text(json.dumps(content))
    assert check_result(NAME, folder).reason == "it was run with other options"


def test_a_recipe_without_a_cell_or_results_is_not_checked(folder, monkeypatch):
    keep(folder, {})
    (folder / NAME / "results.json").unlink()
    assert str(check_result(NAME, folder)) == f"{NAME}: not checked, it has no results"
    recipe = dataclasses.replace(load_recipe(NAME), cell={})
    monkeypatch.setattr(stale, "load_recipe", lambda name: recipe)
    assert check_result(NAME, folder).reason == "its recipe has no [cell]"


def test_missing_data_are_named_and_change_nothing(folder, monkeypatch):
    keep(folder, {"experiments.run": "old"})

    def fail(name):
        message = "Traceback\nFileNotFoundError: the data set x needs y\n"
        raise subprocess.CalledProcessError(1, "python", stderr=message)

    monkeypatch.setattr(stale, "_compute_in_process", fail)
    state = check_result(NAME, folder)
    assert state.verdict == "not checked"
    assert state.reason == "FileNotFoundError: the data set x needs y"
    assert read_digests(folder / NAME / "code.txt") == {"experiments.run": "old"}


def test_the_command_checks_and_computes(folder, monkeypatch, capsys):
    assert main(["--cell", NAME]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["number"] == "2.5008"
    assert "experiments.protocols.warp_loss" in found["digests"]
    states = {"a": stale.State("a", "as committed"), "b": stale.State("b", "stale")}
    monkeypatch.setattr(stale, "check_result", states.get)
    assert [main(["a"]), main(["a", "b"])] == [0, 1]
    assert capsys.readouterr().out == "a: as committed\na: as committed\nb: stale\n"


OF_PAPERS = [
    name for name in list_recipes() if name not in ("embeddings", "signals", "sizes")
]


@pytest.mark.parametrize("name", OF_PAPERS)
def test_results_of_other_settings_than_the_recipe_are_marked(name):
    """The page of all results says which of them must be rerun."""
    home = HOME / "results" / name
    page = (HOME / "README.md").read_text("utf-8")
    (row,) = [
        line for line in page.splitlines() if line.startswith(f"| [`{name}`]")
    ] or [""]
    if not (home / "results.json").exists():
        assert not row or "**not yet run**" in row
        return
    known = (home / "code.txt").exists()
    settings = f"recipes/{name}.toml"
    is_of_recipe = known and read_digests(home / "code.txt")[
        settings
    ] == stale._digest_of(settings)
    options = json.loads((home / "results.json").read_text("utf-8"))["options"]
    is_of_recipe = is_of_recipe and options == load_recipe(name).options
    assert ("**to be rerun**" in row) == (not is_of_recipe)
