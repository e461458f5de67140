"""What does one evaluation of PARCA's loss and gradient cost, against that of scikit-learn's NCA?

K = 2, ten classes of equal size, double precision; each number is the best of five in a process of
its own, whose peak memory counts everything: Python, libraries, data. NCA is asked through the
function that its `fit` hands to L-BFGS, and holds several n x n matrices. "Over exp" is our time
over that of the least there is to do on the same threads: n^2 exponentials, in blocks, and the two
products with X. The last row has sparse X, 1 % of it not 0.
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
        X *= np.sqrt(3 / (DENSITY * d))  # rows of about unit length, as the dense ones
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
    model, same_class = NeighborhoodComponentsAnalysis(), y[:, None] == y
    model.n_iter_ = 0
    return lambda: model._loss_grad_lbfgs(A.ravel(), X, same_class, -1.0)


def least(n: int, d: int, sparse: bool) -> Callable[[], Any]:
    X, _, A = data(n, d, sparse)
    size = max(8, 2**16 // n)
    block = -np.random.default_rng(0).random((size, n))

    def some(n_blocks: int) -> None:
        out = np.empty_like(block)
        for _ in range(n_blocks):
            np.exp(block, out=out)

    def call() -> None:
        X.T @ (X @ A.T)
        list(thread_map(some, [-(-n // size // 16)] * 16, depth=8))

    return call


def measure(kind: str, n: int, d: int, sparse: bool) -> None:
    """Print seconds of one evaluation, and MB at the peak of this process."""
    call = {"ours": ours, "nca": nca, "least": least}[kind](n, d, sparse)
    start = time.perf_counter()
    call()
    seconds = best_seconds(call, 3 if time.perf_counter() - start > 5 else 5)
    print(
        json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000])
    )


def apart(kind: str, n: int, d: int, sparse: bool) -> tuple[float, float]:
    """The same in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--one",
        kind,
        str(n),
        str(d),
        str(int(sparse)),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = json.loads(found.stdout.splitlines()[-1])
    return seconds, peak


def row(n: int, d: int, *, rival: bool, sparse: bool = False) -> list[Any]:
    seconds, peak = apart("ours", n, d, sparse)
    least_seconds = apart("least", n, d, sparse)[0]
    theirs = apart("nca", n, d, sparse) if rival else ("", "")
    ratio = theirs[0] / seconds if rival else ""
    over = seconds / least_seconds
    return [
        n,
        d,
        seconds,
        theirs[0],
        ratio,
        over,
        round(peak),
        round(theirs[1]) if rival else "",
    ]


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
        "n", "d", "PARCA, s", "NCA, s", "NCA / PARCA", "over exp", "PARCA peak, MB", "NCA peak, MB",
    ]  # fmt: skip
    publish("PARCA: one evaluation of loss and gradient", header, rows)


if __name__ == "__main__":
    main()
