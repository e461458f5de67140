"""How does exact search depend on k and on the number of columns, compared with FAISS and NumPy?

The k nearest of 100,000 single-precision items for 1,000 queries, and for one, with all threads.
NumPy is the product in blocks of queries, `argpartition`, and a sort of the k found. Seconds are
the least of five wall-clock times, of 50 for one query. Each program is a process of its own, and
they take turns, so that other work on the machine delays all alike. "/ fastest other" compares with
the faster of FAISS and NumPy; the goal is 1.1. With `--base FOLDER`, the source of another commit,
"before / now" is the ratio of its seconds to ours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish

HERE = Path(__file__).parent.parent / "src"
N_ITEMS, N_QUERIES, REPEATS = 100_000, 1000, 5
COLUMNS = (64, 128, 768)
LENGTHS = (10, 100, 1000)
QUERY_BLOCK = 256

Search = Callable[[np.ndarray, int], Any]


def numpy_search(X: np.ndarray) -> Search:
    """Search by products and `argpartition`."""
    norms = np.einsum("ij,ij->i", X, X)

    def search(Q: np.ndarray, k: int) -> list[np.ndarray]:
        found = []
        for start in range(0, len(Q), QUERY_BLOCK):
            keys = Q[start : start + QUERY_BLOCK] @ X.T
            keys *= -2
            keys += norms
            nearest = np.argpartition(keys, k - 1, axis=1)[:, :k]
            order = np.argsort(np.take_along_axis(keys, nearest, axis=1), axis=1)
            found.append(np.take_along_axis(nearest, order, axis=1))
        return found

    return search


def search_of(program: str, X: np.ndarray) -> Search:
    """The search of a program, with its index built."""
    if program == "numpy":
        return numpy_search(X)
    if program == "faiss":
        import faiss

        faiss.omp_set_num_threads(os.cpu_count())
        flat = faiss.IndexFlatL2(X.shape[1])
        flat.add(X)
        return flat.search
    from rankspace import Index

    return Index(X).rank


def serve(program: str, n_columns: int) -> None:
    """Time one search for each line of input: the number of queries, and k."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ITEMS, n_columns), dtype=np.float32)
    Q = rng.standard_normal((N_QUERIES, n_columns), dtype=np.float32)
    search = search_of(program, X)
    for line in sys.stdin:
        n_queries, k = map(int, line.split())
        start = time.perf_counter()
        search(Q[:n_queries], k)
        print(time.perf_counter() - start, flush=True)


def started(program: str, source: Path, n_columns: int) -> subprocess.Popen[str]:
    """A process that times searches."""
    command = [sys.executable, __file__, "--serve", program, str(n_columns)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, text=True
    )


def timed(process: subprocess.Popen[str], n_queries: int, k: int) -> float:
    """Seconds of a search in another process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(n_queries, k, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def rows_of(n_columns: int, base: Path | None) -> list[list[Any]]:
    """Table rows of one number of columns."""
    sources = {"rankspace": HERE, "faiss": HERE, "numpy": HERE}
    if base:
        sources["before"] = base
    processes = {
        name: started(name, source, n_columns) for name, source in sources.items()
    }
    rows = []
    for n_queries in (N_QUERIES, 1):
        for k in LENGTHS:
            least = dict.fromkeys(processes, float("inf"))
            # One query takes milliseconds, which other work easily delays.
            repeats = REPEATS if n_queries > 1 else 10 * REPEATS
            for repeat in range(repeats + 1):
                for name, process in processes.items():
                    seconds = timed(process, n_queries, k)
                    if repeat > 0:
                        least[name] = min(least[name], seconds)
            rows.append([n_columns, n_queries, k, *ratios(least)])
    for process in processes.values():
        process.communicate()
    return rows


def ratios(seconds: dict[str, float]) -> list[float]:
    """Seconds of each program, and how ours compare."""
    ours, flat, plain = seconds["rankspace"], seconds["faiss"], seconds["numpy"]
    cells = [ours, flat, plain, ours / min(flat, plain)]
    if "before" in seconds:
        cells.append(seconds["before"] / ours)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=Path, help="source folder of another commit")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]))
        return
    rows = [row for n in COLUMNS for row in rows_of(n, options.base)]
    header = ["columns", "queries", "k", "rankspace, s", "FAISS, s", "NumPy, s"]
    header.append("/ fastest other")
    if options.base:
        header.append("before / now")
    publish(
        f"Exact search of {N_ITEMS:,} items by k and columns, seconds", header, rows
    )


if __name__ == "__main__":
    main()
