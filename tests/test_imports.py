"""Who imports whom, and what importing costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rankspace

PACKAGE = Path(rankspace.__file__).parent

# From the ground up: a module may import from its own layer and from those before it.
LAYERS = [
    {
        "_kernels",
        "_text",
        "_files",
        "_tables",
        "_progress",
        "_threads",
        "_vector_files",
        "_vectors",
        "_choices",
        "_verbs",
    },
    {"_backends"},
    {"_qrels", "_judgments"},
    {"_judgment_table"},
    {"relevance", "ranking"},
    {"_held_out", "_rows", "_ranked"},
    {"results", "_space", "_scaling", "_feature_scaling", "_local_distances"},
    {"measures", "search", "datasets"},
    {"_near_items"},
    {"metric", "_local_index", "local_metric", "two_map_metric", "neighbors"},
    {"export"},
    {"_solvers"},
    {"_base"},
    {"baselines", "baselines_online", "frml", "gmml", "lgmml", "listwise", "mlr", "parca"},
    {"mlr_path", "mlr_robust", "logistic_parca"},
    {"_figures", "_drawn", "_svg", "_page", "_displays", "_feature_displays", "plots", "_study"},
    {"_report_parts"},
    {"report"},
    {"_candidates", "tune_report"},
    {"_trials"},
    {"_choosing"},
    {"tuning"},
    {"experiments", "_on_cluster", "_inputs"},
    {"demo", "cli_export", "cli_fit", "cli_tune"},
    {"cli"},
]


def layer_of(module):
    for number, names in enumerate(LAYERS):
        if module in names:
            return number
    raise AssertionError(f"{module} stands in no layer: add it to LAYERS")


def imported_modules(path):
    """First names of the modules of this package that a file imports, at any depth."""
    home = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = home[: len(home) - node.level + 1]
        full = [*base, *(node.module or "").split(".")]
        names = [full[0]] if full[0] else [alias.name for alias in node.names]
        yield from (name for name in names if not name.startswith("__"))


FILES = [p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.name != "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downwards(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imported_modules(path):
        assert layer_of(module) <= layer_of(own), f"{own} imports {module}"


def run(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
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
        "import rankspace.cli, rankspace.demo;"
        "print('numba' in sys.modules)"
    )
    assert run(code) == ["False"]


def test_public_names_are_sorted_and_exist():
    assert rankspace.__all__ == sorted(rankspace.__all__, key=lambda n: (not n.isupper(), n))
    for name in rankspace.__all__:
        assert getattr(rankspace, name) is not None
    assert set(rankspace.__all__) <= set(dir(rankspace))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = rankspace.nothing


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
