"""How long do small fits of MLR take, with the code of this commit and of another one?

{balance, ionosphere, wine, WDBC}, standardised, by {auc, map, mrr, ndcg, p@3} and C from 1 to 10^4,
to tol = 0.01. Seconds are processor time on one thread, the least of two fits after a first one
that compiles; with `--base FOLDER`, the source of another commit, each of its fits is next to ours.
"Gap" is the certificate: equal certificates are gaps of at most 0.01 from both. Fits that do not
get there in 200 rounds keep their gap. The last row is the median of "before / now"; the goal of
2.3 is missed. The table is from a busy machine, where the fits of both took turns. Arguments: names
of sets.

Profile of what is left: for small C the rounds, of which the oracle takes nearly a half, products
and sums a fifth, packing and sorting a fifth (WDBC, map, C = 100); for large C the inner steps, of
which the eigenproblem takes a half and the quadratic program a quarter (ionosphere, auc, C = 10^4).
Inner steps are as many as before: Anderson acceleration and a quasi-Newton dual were not tried.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish

ROOT = Path(__file__).parent.parent
SETS = ("balance", "ionosphere", "wine", "WDBC")
MEASURES = ("auc", "map", "mrr", "ndcg", "p@3")
CS = (1.0, 10.0, 100.0, 1000.0, 10_000.0)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
TOL = 0.01


def timed_fit(X: np.ndarray, y: np.ndarray, measure: str, C: float) -> dict[str, Any]:
    """Processor seconds, gap, rounds and inner steps of a fit."""
    from rankspace import MLR

    model = MLR(C, measure=measure, tol=TOL)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    steps = sum(row["inner_iterations"] for row in model.history_)
    result = {"seconds": seconds, "gap": float(model.gap_), "rounds": model.n_iter_}
    return {**result, "steps": steps}


def serve(path: str) -> None:
    """Time one fit for each line of input: set, measure and C."""
    warnings.simplefilter("ignore")
    data = np.load(path)
    for line in sys.stdin:
        name, measure, C = json.loads(line)
        result = timed_fit(data[f"{name} X"], data[f"{name} y"], measure, C)
        print(json.dumps(result), flush=True)


def started(source: Path, path: Path) -> subprocess.Popen[str]:
    """A process that fits with the code of a source folder, on one thread."""
    command = [sys.executable, __file__, "--serve", str(path)]
    environment = os.environ | {"PYTHONPATH": str(source)} | dict.fromkeys(THREADS, "1")
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, text=True
    )


def fitted(process: subprocess.Popen[str], case: tuple[str, str, float]) -> Any:
    """Result of a case in another process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(case), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def least(processes: dict[str, Any], case: tuple[str, str, float]) -> dict[str, Any]:
    """The faster of two fits by each process, in turns."""
    best: dict[str, Any] = {}
    for _ in range(2):
        for name, process in processes.items():
            result = fitted(process, case)
            if name not in best or result["seconds"] < best[name]["seconds"]:
                best[name] = result
    return best


def cells(result: dict[str, Any]) -> list[Any]:
    return [result["seconds"], result["gap"], result["rounds"], result["steps"]]


def rows_of(processes: dict[str, Any], names: list[str]) -> list[list[Any]]:
    """A row for each case, and the median ratio."""
    rows: list[list[Any]] = []
    for name in names:
        for measure in MEASURES:
            fitted_first = (name, measure, 10.0)
            for process in processes.values():
                fitted(process, fitted_first)  # compiles
            for C in CS:
                found = least(processes, (name, measure, C))
                row = [name, measure, C, *cells(found["now"])]
                if "before" in found:
                    row += cells(found["before"])
                    row.append(found["before"]["seconds"] / found["now"]["seconds"])
                rows.append(row)
                print(row, flush=True)
    if "before" in processes:
        ratio = float(np.median([row[-1] for row in rows]))
        rows.append(["median", "", "", *[""] * (len(rows[0]) - 4), ratio])
    return rows


def prepared(path: Path) -> None:
    """Write the standardised rows of all sets to a file, which all processes read."""
    from _sets import problem

    arrays = {}
    for name in SETS:
        arrays[f"{name} X"], arrays[f"{name} y"] = problem(name).prepared()
    np.savez(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--base", type=Path, help="source folder of another commit")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.serve:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sets.npz"
        prepared(path)
        processes = {"now": started(ROOT / "src", path)}
        if options.base:
            processes["before"] = started(options.base, path)
        names = [name for name in options.names if name in SETS] or list(SETS)
        rows = rows_of(processes, names)
        for process in processes.values():
            process.communicate()
    header = ["data", "measure", "C", "seconds", "gap", "rounds", "inner steps"]
    if options.base:
        header += [f"{name}, before" for name in header[3:]] + ["before / now"]
    publish("MLR: small fits, before and now", header, rows)


if __name__ == "__main__":
    main()
