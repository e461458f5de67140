"""Examples run, and documentation names what there is."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import rankspace
from rankspace import datasets, export
from rankspace.cli.main import main

MODULES = [m.name for m in pkgutil.walk_packages(rankspace.__path__, "rankspace.")]
ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(importlib.import_module(name), report=False)
    assert not failed


def public_objects():
    for module in (rankspace, datasets, export):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) or inspect.isfunction(found):
                yield pytest.param(found, id=name)
                methods = inspect.getmembers(found, inspect.isfunction)
                for method, function in methods if inspect.isclass(found) else ():
                    if (
                        not method.startswith("_")
                        and "rankspace" in function.__module__
                    ):
                        yield pytest.param(function, id=f"{name}.{method}")


def documented_parameters(text):
    """Names under the heading Parameters of a numpydoc docstring."""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n[A-Z]\w+\n-+\n|\Z)", text, re.S)
    if not section:
        return []
    lines = [
        line for line in section[1].splitlines() if line and not line.startswith(" ")
    ]
    return [n.strip() for line in lines for n in line.split(" : ")[0].split(",")]


@pytest.mark.parametrize("thing", list(public_objects()))
def test_documented_parameters_are_those_of_the_signature(thing):
    text = inspect.getdoc(thing)
    assert text, "a public name needs a docstring"
    documented = documented_parameters(text)
    if not documented or issubclass_of_tuple(thing):
        return
    actual = [name for name in inspect.signature(thing).parameters if name != "self"]
    assert documented == actual


def issubclass_of_tuple(thing):
    return inspect.isclass(thing) and issubclass(thing, tuple)


CLASSES_AND_FUNCTIONS = [p for p in public_objects() if "." not in p.id]


@pytest.mark.parametrize("thing", CLASSES_AND_FUNCTIONS)
def test_public_names_have_an_example(thing):
    exempt = ("fetch_", "DatasetInfo", "Comparison")
    if not thing.__name__.startswith(exempt):
        assert ">>>" in inspect.getdoc(thing)


def code_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.S)


GUIDE = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *GUIDE]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_code_of_the_pages_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in code_blocks(page):
        exec(compile(block, page.name, "exec"), space)


def sessions(path):
    """Examples of the page that show what Python prints, one after the other."""
    return "\n".join(re.findall(r"```pycon\n(.*?)```", path.read_text(), re.S))


@pytest.mark.parametrize("name", ["errata.md"])
def test_sessions_of_the_pages_print_what_they_show(name, tmp_path, monkeypatch):
    page = ROOT / "docs" / name
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(sessions(page), {}, name, name, 0)
    assert test.examples
    assert not doctest.DocTestRunner().run(test).failed


def test_the_readme_shows_what_its_code_prints(tmp_path, monkeypatch, capsys):
    page = ROOT / "README.md"
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    (code,) = code_blocks(page)
    exec(compile(code, page.name, "exec"), {})
    shown = re.search(r"```text\n(.*?)```", page.read_text(), re.S)[1]
    printed, number = capsys.readouterr().out, re.compile(r"-?\d+\.\d+")
    # Other machines multiply in another order, which moves the last digits.
    assert number.sub("", printed).split() == number.sub("", shown).split()
    values = [np.array(number.findall(text), dtype=float) for text in (printed, shown)]
    np.testing.assert_allclose(*values, atol=0.01)


SAME = re.compile(r"the same (?:in python|on the command line)", re.IGNORECASE)
PAIR = re.compile(
    rf"```(\w+)\n((?:(?!```).)*)```\n\n{SAME.pattern}:\n\n```(\w+)\n((?:(?!```).)*)```",
    re.IGNORECASE | re.DOTALL,
)


def pairs_of(page):
    """Pairs of examples that claim to do the same, as {language: code}."""
    found = PAIR.findall(page.read_text())
    return [{first: one, second: other} for first, one, second, other in found]


def commands_of(block):
    """The words of each command of a console block."""
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[2:] for line in lines if line.startswith("$ rankspace ")]


def test_examples_that_claim_to_do_the_same_print_the_same(
    tmp_path, monkeypatch, capsys
):
    """Every claim stands between two blocks of code; both are run."""
    monkeypatch.chdir(tmp_path)
    pages = [page for page in PAGES if page.exists()]
    if not pages:
        pytest.skip("the documentation is not beside the tests")
    pairs = [pair for page in pages for pair in pairs_of(page)]
    assert len(pairs) == sum(len(SAME.findall(page.read_text())) for page in pages)
    assert pairs
    for pair in pairs:
        for words in commands_of(pair["console"]):
            capsys.readouterr()
            assert main(words) == 0
        printed = capsys.readouterr().out
        exec(compile(pair["python"], "pair", "exec"), {})
        first, table = capsys.readouterr().out.split("\n", 1)
        # Run files do not hold the similarity.
        assert first == "similarity: euclidean"
        assert table == printed


def test_the_readme_has_the_commands_of_the_guide():
    readme, guide = ROOT / "README.md", ROOT / "docs" / "commands.md"
    if not guide.exists():
        pytest.skip("the documentation is not beside the tests")
    assert pairs_of(guide)[0]["console"] in readme.read_text()
