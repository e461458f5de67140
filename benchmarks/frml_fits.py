"""How long does a fit of FRML take, and how good is its metric, before and now?

Default FRML of rank 30 on 10,000 rows of MNIST (pixels), the training part of IsoLet (170 principal
components) and three quarters of the digits, gamma = 1 and 25; means over five seeds, with the
standard error of MAP, of the test rows (2,000 of MNIST's) that rank the training rows. Seconds are
processor time on one thread, after a fit that compiles. With `--base FOLDER`, the source of another
commit, each of its fits is next to ours: "before / now" is the ratio of seconds, "change" that of
MAP, both paired by seed. Goals: at least 2 on MNIST and IsoLet with MAP not lower by more than
0.003, not below 1 on digits, and gamma = 25 cheaper than gamma = 1. Arguments: names of sets.
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
SETS = ("MNIST", "IsoLet", "digits")
GAMMAS = (1, 25)
SEEDS = range(5)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
N_MNIST, N_MNIST_TEST = 10_000, 2000


def mnist() -> Any:
    from rankspace.datasets import fetch_mnist

    data = fetch_mnist()
    train, test = data.part("train"), data.part("test")
    rows = np.random.default_rng(0).permutation(len(train.X))[:N_MNIST]
    X = np.asarray(train.X[rows], dtype=np.float64)
    Q = np.asarray(test.X[:N_MNIST_TEST], dtype=np.float64)
    return X, Q, train.labels[rows], test.labels[:N_MNIST_TEST]


def isolet() -> Any:
    from sklearn.decomposition import PCA

    from rankspace.datasets import fetch_isolet

    data = fetch_isolet()
    train, test = data.part("train"), data.part("test")
    pca = PCA(170, svd_solver="full").fit(train.X)
    return pca.transform(train.X), pca.transform(test.X), train.labels, test.labels


def digits() -> Any:
    from sklearn.model_selection import train_test_split

    from rankspace.datasets import load_digits

    data = load_digits()
    return train_test_split(data.X, data.labels, test_size=0.25, random_state=0)


LOADERS = {"MNIST": mnist, "IsoLet": isolet, "digits": digits}


def timed_fit(parts: Any, gamma: float, seed: int) -> dict[str, float]:
    """Processor seconds, triplets and test MAP of a fit."""
    from rankspace import FRML, Relevance

    X, Q, y, truth = parts
    model = FRML(30, gamma=gamma, random_state=seed)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    relevance = Relevance.from_labels(y, query_labels=truth)
    score = float(model.score(X, relevance, queries=Q))
    return {"seconds": seconds, "triplets": model.n_iter_, "map": score}


def serve(path: str) -> None:
    """Time one fit for each line of input: gamma and seed."""
    from rankspace import FRML

    warnings.simplefilter("ignore")
    data = np.load(path)
    parts = [data[name] for name in ("X", "Q", "y", "truth")]
    FRML(30, n_triplets=2000).fit(parts[0], parts[2])  # compiles
    for line in sys.stdin:
        print(json.dumps(timed_fit(parts, *json.loads(line))), flush=True)


def started(source: Path, path: Path) -> subprocess.Popen[str]:
    """A process that fits with the code of a source folder, on one thread."""
    command = [sys.executable, __file__, "--serve", str(path)]
    environment = os.environ | {"PYTHONPATH": str(source)} | dict.fromkeys(THREADS, "1")
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, text=True
    )


def fitted(process: subprocess.Popen[str], gamma: float, seed: int) -> list[float]:
    """Seconds, triplets and MAP of a fit in another process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps([gamma, seed]), file=process.stdin, flush=True)
    result = json.loads(process.stdout.readline())
    return [result["seconds"], result["triplets"], result["map"]]


def error(values: np.ndarray) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def row_of(name: str, gamma: float, processes: dict[str, Any]) -> list[Any]:
    """One line of the table."""
    results = []
    for seed in SEEDS:
        found = [fitted(process, gamma, seed) for process in processes.values()]
        results.append(found)
        print(name, gamma, seed, found, flush=True)
    # Seeds, programs, and what was found.
    table = np.array(results)
    now = table[:, 0].mean(axis=0)
    score = f"{now[2]:.4f} ± {error(table[:, 0, 2]):.4f}"
    row = [name, gamma, float(now[0]), int(now[1]), score]
    if "before" in processes:
        before = table[:, 1].mean(axis=0)
        change = table[:, 0, 2] - table[:, 1, 2]
        row += [float(before[0]), int(before[1]), f"{before[2]:.4f}"]
        row += [f"{change.mean():+.4f} ± {error(change):.4f}", before[0] / now[0]]
    return row


def rows_of(name: str, base: Path | None) -> list[list[Any]]:
    """Table rows of one set."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        parts = LOADERS[name]()
        np.savez(path, **dict(zip(("X", "Q", "y", "truth"), parts, strict=True)))
        processes = {"now": started(ROOT / "src", path)}
        if base:
            processes["before"] = started(base, path)
        rows = [row_of(name, gamma, processes) for gamma in GAMMAS]
        for process in processes.values():
            process.communicate()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--base", type=Path, help="source folder of another commit")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.serve:
        serve(options.serve)
        return
    names = [name for name in options.names if name in SETS] or SETS
    rows = [row for name in names for row in rows_of(name, options.base)]
    header = ["data", "gamma", "seconds", "triplets", "MAP"]
    if options.base:
        header += ["seconds, before", "triplets, before", "MAP, before"]
        header += ["change", "before / now"]
    publish("FRML: fits before and now", header, rows)


if __name__ == "__main__":
    main()
