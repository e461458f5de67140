"""Compiled kernels: where their code is cached, and what a cache that fails costs."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankspace

SOURCE = Path(rankspace.__file__).parent.parent
KERNELS = Path(rankspace.__file__).parent / "_engine" / "kernels"

DOUBLE = """
from rankspace._engine.compiled import kernel
from {callee} import one

@kernel
def double(x):
    return 2 * x * one()
"""
ONE = """
from rankspace._engine.compiled import kernel

@kernel
def one():
    return {value}
"""
# Prints the answers of a kernel, and how often its code came from the cache.
ASK = """
from kernel_double import double
answers = [double(x) for x in {values}]
hits = sum(double.stats.cache_hits.values())
print(*answers, "hits", hits)
"""


@pytest.fixture
def module(tmp_path):
    """A folder with a module of one kernel, which calls a kernel of another module."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "kernel_double.py").write_text(DOUBLE.format(callee="kernel_one"))
    (folder / "kernel_one.py").write_text(ONE.format(value=1))
    return folder


def ask(module, values=(3,), **environment):
    """Answers of the kernel in a new process."""
    environ = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("NUMBA_CACHE")
    }
    source = Path(rankspace.__file__).parent.parent
    environ["PYTHONPATH"] = os.pathsep.join([str(source), str(module)])
    result = subprocess.run(
        [sys.executable, "-c", ASK.format(values=list(values))],
        env=environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip(), result.stderr


def ask_here(module, monkeypatch, values=(3,)):
    """Answers of the kernel in this process, imported anew, and how many came from the cache."""
    monkeypatch.syspath_prepend(str(module))
    double = importlib.import_module("kernel_double").double
    answers = [double(x) for x in values]
    hits = sum(double.stats.cache_hits.values())
    for name in ("kernel_double", "kernel_one"):
        del sys.modules[name]
    return answers, hits


TWO_CLOSURES = """
import math
import sys
from rankspace._engine.compiled import kernel

@kernel
def plus(x):
    return x + 10

@kernel
def minus(x):
    return x - 10

def closure_of(change):
    @kernel
    def inner(x):
        total = 1.0 * x
{many_lines}
        return change(x) + 0 * total

    @kernel
    def outer(x):
        return inner(x)

    return outer

closures = {{"plus": closure_of(plus), "minus": closure_of(minus)}}
print(*[closures[name](1) for name in sys.argv[1:]])
"""


@pytest.mark.long
def test_closures_that_different_processes_cached_are_not_confused(tmp_path):
    """Alone in its process, each would have the same name for the linker."""
    script = tmp_path / "closures.py"
    # So that the compiler does not write it into its caller.
    long = "\n".join(f"        total += math.sin(total + {i})" for i in range(50))
    script.write_text(TWO_CLOSURES.format(many_lines=long))

    def answers(*names):
        environ = os.environ | {"PYTHONPATH": str(SOURCE)}
        command = [sys.executable, str(script), *names]
        result = subprocess.run(
            command, env=environ, capture_output=True, text=True, check=True
        )
        return [float(number) for number in result.stdout.split()]

    assert answers("plus") == [11]
    assert answers("minus") == [-9]
    assert answers("plus", "minus") == [11, -9]


def test_no_kernel_bypasses_the_cache_with_fallback():
    files = list(KERNELS.glob("*.py"))
    assert files
    assert not [path.name for path in files if "njit" in path.read_text()]


def test_second_start_takes_the_code_from_the_cache(module):
    assert ask(module) == ("6 hits 0", "")
    assert ask(module) == ("6 hits 1", "")


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "noise"])
def test_damaged_cache_is_compiled_anew(module, monkeypatch, suffix, damage):
    ask_here(module, monkeypatch)
    for path in (module / "__pycache__").glob(f"*{suffix}"):
        content = path.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 255])
        path.write_bytes(
            {
                "empty": b"",
                "cut": content[:middle],
                "flip": flipped + content[middle + 1 :],
                "noise": b"\x93 no pickle at all",
            }[damage]
        )
    assert ask_here(module, monkeypatch) == ([6], 0)
    assert ask_here(module, monkeypatch) == ([6], 1)


def test_code_of_another_signature_is_not_run(module, monkeypatch):
    # Two processes that save at once can leave the code of one under the name of the other.
    ask_here(module, monkeypatch, values=[3, 1.5])
    first, second = sorted((module / "__pycache__").glob("kernel_double.double*.nbc"))
    second.write_bytes(first.read_bytes())
    assert ask_here(module, monkeypatch, values=[3, 1.5])[0] == [6, 3.0]
    assert ask_here(module, monkeypatch, values=[1.5])[0] == [3.0]


def test_change_in_a_called_kernel_is_seen(module):
    assert ask(module)[0].startswith("6 ")
    (module / "kernel_one.py").write_text(ONE.format(value=10))
    assert ask(module)[0] == "60 hits 0"


CLOSURES = """
from rankspace._engine.compiled import kernel

@kernel
def one():
    return 1

@kernel
def two():
    return 2

def times(factor):
    @kernel
    def multiply(x):
        return x * factor()
    return multiply

same, double = times(one), times(two)
"""


def test_closures_are_cached_apart(module):
    (module / "kernel_double.py").write_text(CLOSURES)
    assert ask(module, values=[3]) == ("6 hits 0", "")
    swapped = CLOSURES.replace("same, double = ", "double, same = ")
    (module / "kernel_double.py").write_text(swapped)
    assert ask(module, values=[3])[0] == "3 hits 0"
    assert ask(module, values=[3]) == ("3 hits 1", "")


def test_a_kernel_that_calls_another_closure_is_not_taken_from_the_cache(module):
    ask_both = "import kernel_double as k; print(k.same(3), k.double(3), end=' ')\n"
    (module / "kernel_double.py").write_text(CLOSURES)
    (module / "both.py").write_text(ask_both)
    for _ in range(2):
        environ = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(SOURCE), str(module)])
        }
        command = [sys.executable, str(module / "both.py")]
        result = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert result.stdout == "3 6 ", result.stderr


def test_compilation_says_so_where_somebody_watches(module, monkeypatch):
    # As in an interactive session; without, nothing is written (see the other tests).
    monkeypatch.setattr(sys.modules[__name__], "ASK", "import sys\nsys.ps1 = ''" + ASK)
    assert "compiling" in ask(module)[1]
    assert ask(module) == ("6 hits 1", "")


as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or not shutil.which("setpriv"),
    reason="only root can become another user",
)


def run_as(user, folder, *command):
    """Run Python as a user who has no home, may read everything, and write in one folder only."""
    os.chown(folder, user, user)
    source = Path(rankspace.__file__).parent.parent
    reads = "-all,+dac_read_search"
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    become += [f"--inh-caps={reads}", f"--ambient-caps={reads}"]
    return subprocess.run(
        [*become, sys.executable, *command],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(source),
            "TMPDIR": str(folder),
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@as_root
def test_demo_without_home_or_a_writable_installation(tmp_path):
    result = run_as(
        65534, tmp_path, "-m", "rankspace.cli", "demo", "--output", "demo.html"
    )
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    check_private_cache(tmp_path / "rankspace-kernels-65534")


def check_private_cache(cache):
    """A cache that only its user can write, with the code of a kernel."""
    assert cache.stat().st_mode & 0o777 == 0o700
    assert list(cache.glob("**/*.nbi"))


# Ranks on the command line, then prints the largest resident memory of this process, in kB.
RANK_AND_MEASURE = """
import sys
from rankspace.cli.main import main
code = main(sys.argv[1:])
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
raise SystemExit(code)
"""


@as_root
def test_rank_of_100_000_vectors_in_a_container_of_512_mb(tmp_path, rng):
    np.save(tmp_path / "X.npy", rng.normal(size=(100_000, 64)).astype(np.float32))
    np.save(tmp_path / "Q.npy", rng.normal(size=(1_000, 64)).astype(np.float32))
    words = ["rank", "X.npy", "--queries", "Q.npy", "--output", "run.trec"]
    result = run_as(65534, tmp_path, "-c", RANK_AND_MEASURE, *words)
    assert result.returncode == 0, result.stderr
    with open(tmp_path / "run.trec") as lines:
        assert sum(1 for _ in lines) == 100 * 1_000
    assert int(result.stdout.split()[-1]) < 512 * 1024
    assert "Warning" not in result.stderr
    check_private_cache(tmp_path / "rankspace-kernels-65534")


RANK = """
import numpy as np, rankspace
X = np.arange(12.0).reshape(4, 3)
print(rankspace.Index(X).rank(X[:1], 2).items.tolist())
"""


@as_root
@pytest.mark.parametrize("prepared", ["by root", "writable by others", "a file"])
def test_cache_that_others_can_write_is_not_used(tmp_path, prepared):
    cache = tmp_path / "rankspace-kernels-65534"
    if prepared == "a file":
        cache.write_text("")
    else:
        cache.mkdir()
        cache.chmod(0o777)
    if prepared == "writable by others":
        os.chown(cache, 65534, 65534)
    result = run_as(65534, tmp_path, "-c", RANK)
    assert result.stdout == "[0, 1]\n", result.stderr
    assert result.stderr.count("compiled code cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in result.stderr
    assert cache.is_file() or not list(cache.iterdir())


@as_root
def test_user_without_an_entry_leaves_no_folder_behind(tmp_path):
    result = run_as(54321, tmp_path, "-c", RANK)
    assert result.stdout == "[0, 1]\n", result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rankspace-kernels-54321"]
