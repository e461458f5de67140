"""Who imports whom, and what importing costs."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankspace

PACKAGE = Path(rankspace.__file__).parent

# From the ground up: a room imports from rooms of the lines before its own, never beside or above.
LAYERS = [
    "_engine",
    "relevance",
    "search",
    "evaluation metrics datasets",
    "learners display export",
    "tuning",
    "cli",
]
LAYER_OF = {room: number for number, line in enumerate(LAYERS) for room in line.split()}


def module_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


def imported_modules(module):
    """Modules of this package that a module imports, at any depth, inside functions too."""
    path = FILES[module]
    home = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = home[: len(home) - node.level + 1]
        target = ".".join([*base, *(node.module or "").split(".")]).strip(".")
        for alias in node.names:
            name = f"{target}.{alias.name}".strip(".")
            yield name if name in FILES else target


def test_the_top_of_the_package_holds_rooms_only():
    entries = {path.name for path in PACKAGE.iterdir()} - {"__pycache__"}
    assert entries == {*LAYER_OF, "__init__.py", "py.typed"}


@pytest.mark.parametrize("module", sorted(set(FILES) - {""}))
def test_rooms_import_from_rooms_below(module):
    room = module.split(".")[0]
    for name in imported_modules(module):
        other = name.split(".")[0]
        if other and other != room:
            assert LAYER_OF[other] < LAYER_OF[room], f"{module} imports {name}"


def test_no_module_imports_itself_by_way_of_others():
    graph = {
        module: set(imported_modules(module)) - {"", module}
        for module in FILES
        if module
    }
    tuple(TopologicalSorter(graph).static_order())


def run(code):
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def test_import_loads_nothing_heavy_and_starts_no_thread():
    code = (
        "import sys, threading, rankspace;"
        "print(*(m for m in ('numpy', 'numba', 'sklearn', 'scipy', 'faiss') if m in sys.modules));"
        "print(threading.active_count())"
    )
    assert run(code) == ["1"]


def test_numba_is_loaded_by_the_first_evaluation_only():
    code = (
        "import sys, rankspace;"
        "[getattr(rankspace, name) for name in rankspace.__all__];"
        "import rankspace.cli.main, rankspace.cli.demo;"
        "print('numba' in sys.modules)"
    )
    assert run(code) == ["False"]


def test_public_names_are_sorted_and_exist():
    assert rankspace.__all__ == sorted(
        rankspace.__all__, key=lambda n: (not n.isupper(), n)
    )
    for name in rankspace.__all__:
        assert getattr(rankspace, name) is not None
    assert set(rankspace.__all__) <= set(dir(rankspace))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = rankspace.nothing


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
