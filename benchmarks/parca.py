"""How long does one evaluation of PARCA's loss and gradient take, compared with scikit-learn's NCA?

K = 2, ten classes of equal size, double precision. Each number is the best of five in its own
process, whose peak memory includes Python, libraries and data. NCA is called through the
function that its `fit` passes to L-BFGS; it holds several n x n matrices. "Time / minimum"
compares our time with the least possible work on the same threads: n^2 exponentials, in blocks,
and the two products with X. In the last row X is sparse, with 1 % non-zeros.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from _table import best_seconds, publish

from rankspace import Relevance
from rankspace._engine.parallel.threads import thread_map
from rankspace.learners.solvers.points import Points
from rankspace.learners.solvers.smooth.components import MapLoss

DENSITY = 0.01


def data(n: int, d: int, sparse: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if sparse:
        X = scipy.sparse.random_array((n, d), density=DENSITY, rng=rng, format="csr")
        X *= np.sqrt(3 / (DENSITY * d))  # about unit-length rows, like the dense ones
    else:
        X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.arange(n) % 10, rng.normal(size=(2, d))


def ours(n: int, d: int, sparse: bool) -> Callable[[], Any]:
    X, y, A = data(n, d, sparse)
    relevance = Relevance.from_labels(y)
    loss = MapLoss(Points(X, relevance.query_items, n), relevance)
    return lambda: loss.value_and_gradient(A)


def nca(n: int, d: int, sparse: bool) -> Callable[[], Any]:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    X, y, A = data(n, d, sparse)
    model = NeighborhoodComponentsAnalysis()
    same_class = y[:, None] == y
    model.n_iter_ = 0
    return lambda: model._loss_grad_lbfgs(A.ravel(), X, same_class, -1.0)


def minimum(n: int, d: int, sparse: bool) -> Callable[[], Any]:
    """The least possible work: n^2 exponentials and two products with X."""
    X, _, A = data(n, d, sparse)
    size = max(8, 2**16 // n)
    block = -np.random.default_rng(0).random((size, n))

    def exponentials(n_blocks: int) -> None:
        out = np.empty_like(block)
        for _ in range(n_blocks):
            np.exp(block, out=out)

    def call() -> None:
        X.T @ (X @ A.T)
        list(thread_map(exponentials, [-(-n // size // 16)] * 16, depth=8))

    return call


def measure(kind: str, n: int, d: int, sparse: bool) -> None:
    """Print the seconds of one evaluation, and the peak memory of this process in MB."""
    call = {"ours": ours, "nca": nca, "minimum": minimum}[kind](n, d, sparse)
    start = time.perf_counter()
    call()
    slow = time.perf_counter() - start > 5
    seconds = best_seconds(call, 3 if slow else 5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([seconds, peak]))


def in_new_process(kind: str, n: int, d: int, sparse: bool) -> tuple[float, float]:
    """Seconds and peak memory of `measure` in a new process."""
    arguments = [kind, str(n), str(d), str(int(sparse))]
    command = [sys.executable, __file__, "--one", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = json.loads(process.stdout.splitlines()[-1])
    return seconds, peak


def row(n: int, d: int, *, rival: bool, sparse: bool = False) -> list[Any]:
    seconds, peak = in_new_process("ours", n, d, sparse)
    ratio = seconds / in_new_process("minimum", n, d, sparse)[0]
    if not rival:
        return [n, d, seconds, "", "", ratio, round(peak), ""]
    theirs, their_peak = in_new_process("nca", n, d, sparse)
    speedup = theirs / seconds
    return [n, d, seconds, theirs, speedup, ratio, round(peak), round(their_peak)]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        kind, n, d, sparse = sys.argv[2:]
        measure(kind, int(n), int(d), sparse == "1")
        return
    rows = [row(5000, 784, rival=True)]
    rows += [row(n, 784, rival=n <= 2500) for n in (1250, 2500, 10_000, 20_000)]
    rows += [row(5000, d, rival=True) for d in (50, 3000)]
    rows.append(row(5000, 10_000, rival=False, sparse=True))
    header = [
        "n",
        "d",
        "PARCA, s",
        "NCA, s",
        "NCA / PARCA",
        "time / minimum",
        "PARCA peak, MB",
        "NCA peak, MB",
    ]
    publish("PARCA: one evaluation of loss and gradient", header, rows)


if __name__ == "__main__":
    main()
