"""How much time does PARCA's search for its ridge take, compared with scikit-learn's NCA?

The eleven sets of the PARCA paper, prepared as in the recipe `parca-table-2`: 200 and then 1,000
random training rows (at most 70 % of a set). "Error" is the ranking error of at most 1,000 other
rows. Seconds are processor time on one thread, the least of two fits; NCA starts from PCA. With
`--base FOLDER`, the source of another commit, its fits alternate with ours: "before / now" is the
ratio of seconds.

Trials start at the components of the last, larger ridge with its curvature, and stop at a tolerance
of 0.003. A fold without a map rules a ridge out. Goals: below 0.2 s at n = 200, and at most twice
NCA's time at n = 1,000 with the ridge chosen. What is left is five folds times six to nine ridges:
an evaluation takes a quarter of NCA's time, and a whole search 450 to 1,000 of them, where NCA
stops after 22 to 50 steps. Of an evaluation at n = 800 in 784 dimensions, 2.6 ms, exponentials take
0.4, products with pairs 0.6, products with X 0.8. Single precision saved a tenth, and was left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "experiments" / "recipes" / "parca-table-2.toml"
SIZES = (200, 1000)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def rows_of(data: dict[str, Any], n: int) -> tuple[Any, ...]:
    """Training rows and other rows of a data set, with their classes."""
    from experiments.protocols.prepared import prepare, source

    whole = prepare(**source(data))
    order = np.random.default_rng(0).permutation(len(whole.y))
    n = min(n, int(0.7 * len(whole.y)))
    train, test = order[:n], order[n : n + 1000]
    return whole.X[train], whole.y[train], whole.X[test], whole.y[test]


def cpu_seconds(call: Any) -> float:
    """Processor seconds of the faster of two calls."""
    seconds = []
    for _ in range(2):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def parca_result(rows: tuple[Any, ...], reg: Any) -> dict[str, Any]:
    """Ridge, error and time of a fit."""
    from rankspace import PARCA, Index, Relevance, evaluate

    X, y, X_test, y_test = rows
    model = PARCA(reg=reg, random_state=0)
    seconds = cpu_seconds(lambda: model.fit(X, y))
    known = np.isin(y_test, y)
    members = {label: np.flatnonzero(y == label) for label in np.unique(y)}
    relevant = [members[label] for label in y_test[known]]
    relevance = Relevance.from_lists(relevant, n_items=len(y))
    ranking = Index(X @ model.components_.T).rank(X_test[known] @ model.components_.T)
    error = evaluate(ranking, relevance, "ranking-error").means["ranking-error"]
    return {"reg": model.reg_, "error": error, "seconds": seconds}


def nca_result(rows: tuple[Any, ...]) -> dict[str, Any]:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    X, y = rows[:2]
    if hasattr(X, "toarray"):
        X = X.toarray()
    model = NeighborhoodComponentsAnalysis(2, init="pca", max_iter=500, random_state=0)
    return {"seconds": cpu_seconds(lambda: model.fit(X, y))}


def in_process(source: Path, what: str, label: str, n: int, reg: Any) -> dict[str, Any]:
    """A result computed by the code of a source folder, on one thread."""
    paths = {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    environment = os.environ | paths | dict.fromkeys(THREADS, "1")
    arguments = ["--part", json.dumps([what, label, n, reg])]
    output = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output)


def part(what: str, label: str, n: int, reg: Any) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    datasets = tomllib.loads(RECIPE.read_text())["datasets"]
    data = next(data for data in datasets if data["label"] == label)
    rows = rows_of(data, n)
    return nca_result(rows) if what == "nca" else parca_result(rows, reg)


def row(label: str, n: int, base: Path | None) -> list[Any]:
    """Table row of one data set at one size."""
    now = in_process(ROOT / "src", "parca", label, n, "auto")
    given = in_process(ROOT / "src", "parca", label, n, now["reg"])["seconds"]
    nca = in_process(ROOT / "src", "nca", label, n, None)["seconds"]
    cells = [label, n, now["reg"], now["error"], now["seconds"], now["seconds"] / nca]
    cells.append(given / nca)
    if base is not None:
        before = in_process(base, "parca", label, n, "auto")
        ratio = before["seconds"] / now["seconds"]
        cells += [before["reg"], before["error"], ratio]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=Path, help="source folder of another commit")
    parser.add_argument("--part", type=json.loads)
    options, _ = parser.parse_known_args()
    if options.part:
        print(json.dumps(part(*options.part)))
        return
    labels = [data["label"] for data in tomllib.loads(RECIPE.read_text())["datasets"]]
    rows = [row(label, n, options.base) for n in SIZES for label in labels]
    header = ["data", "n at most", "ridge", "error", "seconds", "/ NCA", "given / NCA"]
    if options.base:
        header += ["ridge before", "error before", "before / now"]
    publish("PARCA: the search for the ridge", header, rows)


if __name__ == "__main__":
    main()
