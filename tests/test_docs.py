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
    if name == "rankspace.learners.torch":
        pytest.importorskip("torch")
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
RUN = [*GUIDE, ROOT / "CONTRIBUTING.md"]


NUMBER = re.compile(r"-?\d+\.\d+")


def assert_prints(printed, shown):
    """The page shows what was printed, up to its first line of dots and to the last digits."""
    shown, *cut = re.split(r"^\.\.\.$", shown, flags=re.M)
    words = NUMBER.sub("#", shown).split()
    found = NUMBER.sub("#", printed).split()
    assert (found[: len(words)] if cut else found) == words
    # Other machines multiply in another order, which moves the last digits.
    values = [np.array(NUMBER.findall(text), dtype=float) for text in (printed, shown)]
    np.testing.assert_allclose(values[0][: values[1].size], values[1], atol=0.01)


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_code_of_the_pages_runs_and_prints_what_they_show(
    page, tmp_path, monkeypatch, capsys
):
    """A block of text right after a block of code is what the code prints."""
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    space = {}
    blocks = r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?"
    for code, shown in re.findall(blocks, page.read_text(), re.S):
        capsys.readouterr()
        exec(compile(code, page.name, "exec"), space)
        if shown:
            assert_prints(capsys.readouterr().out, shown)


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


def test_the_readme_shows_what_its_commands_print(tmp_path, monkeypatch, capsys):
    """The Python code learns the same metric as the first command, which is not run again."""
    page = ROOT / "README.md"
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("faiss")
    (code,) = code_blocks(page)
    exec(compile(code, page.name, "exec"), {})
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.S)
    first, *others = commands_of(blocks[1])
    assert first[0] == "tune"
    printed = {}
    for words in others:
        capsys.readouterr()
        assert main(words) == 0
        printed[words[0]] = capsys.readouterr().out
    shown = re.search(r"```text\n(.*?)```", page.read_text(), re.S)[1]
    assert_prints(printed["compare"], shown)


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
    """The words of each command of a console block, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.startswith("$ rankspace ")]
    return [shlex.split(line, comments=True)[2:] for line in commands]


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


# Sphinx writes pages of these names itself, and ours would be lost.
SPHINX_PAGES = {"search", "genindex", "modindex", "py-modindex", "opensearch"}


def test_no_page_has_the_name_of_one_of_sphinx():
    docs = ROOT / "docs"
    ours = [page for page in docs.rglob("*.*") if docs / "_build" not in page.parents]
    assert not SPHINX_PAGES & {page.stem for page in ours}


def toctree_entries(page):
    """Names of the pages that a page lists in its tables of contents."""
    blocks = re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    return [re.sub(r".*<(.*)>", r"\1", name) for name in names]


def test_every_guide_is_in_the_navigation_once():
    listed = [name for page in GUIDE for name in toctree_entries(page)]
    own = [name for name in listed if (ROOT / "docs" / f"{name}.md") in GUIDE]
    assert sorted(own) == sorted({page.stem for page in GUIDE} - {"index"})


def test_links_of_the_pages_lead_to_files():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        if page.exists():
            prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
            for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", prose):
                known = link.startswith(("http", "auto_examples/", "generated/"))
                assert known or (page.parent / link).exists(), f"{page.name}: {link}"


def test_anchors_of_the_readme_are_headings():
    page = ROOT / "README.md"
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    for link, anchor in re.findall(r"\]\(([^)\s#]+)#([^)]+)\)", page.read_text()):
        headings = re.findall(r"^#+ (.*)$", (ROOT / link).read_text(), re.M)
        slugs = [re.sub(r"[^\w\- ]", "", line.lower()) for line in headings]
        assert anchor in [slug.replace(" ", "-") for slug in slugs]


def test_the_page_of_learners_has_all_of_them():
    """A row each, whose columns lists, sparse and partial_fit agree with the code."""
    page = ROOT / "docs" / "learners.md"
    if not page.exists():
        pytest.skip("the documentation is not beside the tests")
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines()]
    table = {row[0].strip("`"): row[1:] for row in rows if len(row) == 9}
    learners = {
        name: getattr(rankspace, name)
        for name in rankspace.__all__
        if inspect.isclass(getattr(rankspace, name))
        and issubclass(getattr(rankspace, name), rankspace.BaseRanker)
        and name not in ("BaseRanker", "LinearRanker")
    }
    assert set(table) == {"learner", *learners}
    for name, learner in learners.items():
        lists, sparse, _, _, partial, *_ = (cell == "yes" for cell in table[name])
        assert lists == learner._accepts_lists
        assert sparse == bool(learner._accepts_sparse)
        assert partial == hasattr(learner, "partial_fit")
