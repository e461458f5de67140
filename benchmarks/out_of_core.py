"""How much memory do data larger than it take?

8.6 GB of single-precision vectors lie in a .npy file: 8.4 million items of 256 features in 100
classes, and 2,000 separate queries. GMML learns from all of them, MLR from batches of 6 queries
against all items, FRML from 400 queries by `partial_fit` on runs of rows; the vectors are mapped by
GMML's metric into a second file, and that is searched. "RssAnon": the most anonymous memory of the
process in the step, read twenty times a second from /proc/self/status; pages of mapped files, which
the system takes back when it needs them, do not count. "above start": without what
Python and the libraries held before the first step. `--rows` makes a smaller problem.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from _table import publish

from rankspace import FRML, GMML, MLR, Index, Relevance
from rankspace.export import to_npy

D, CLASSES, QUERIES, SOME, CHUNK = 256, 100, 2000, 400, 65_536
HEADER = ["step", "data, GB", "seconds", "RssAnon, MB", "above start, MB"]


def rss_anon() -> float:
    """Anonymous resident memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    raise OSError("/proc/self/status has no RssAnon: run on Linux.")


class Watched:
    """Times steps and watches their memory."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self.start = rss_anon()

    @contextmanager
    def step(self, name: str, gigabytes: float) -> Iterator[None]:
        most, done = [rss_anon()], threading.Event()

        def watch() -> None:
            while not done.wait(0.05):
                most.append(max(most.pop(), rss_anon()))

        thread = threading.Thread(target=watch)
        thread.start()
        begin = time.perf_counter()
        try:
            yield
        finally:
            done.set()
            thread.join()
        seconds, peak = time.perf_counter() - begin, most[0]
        self.rows.append([name, gigabytes, seconds, round(peak), round(peak - self.start)])
        print(self.rows[-1], file=sys.stderr, flush=True)


def write_items(path: Path, n: int, centres: np.ndarray) -> np.ndarray:
    """Items near the centres of their classes; their labels."""
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=n)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
    for at in range(0, n, CHUNK):
        part = labels[at : at + CHUNK]
        X[at : at + CHUNK] = rng.standard_normal((part.size, D), np.float32) + centres[part]
    X.flush()
    return labels


def main() -> None:
    n = 8_400_000
    if "--rows" in sys.argv:
        at = sys.argv.index("--rows")
        n = int(sys.argv.pop(at + 1))
        sys.argv.pop(at)
    rng = np.random.default_rng(0)
    centres = (0.5 * rng.standard_normal((CLASSES, D))).astype(np.float32)
    query_labels = np.arange(QUERIES) % CLASSES
    Q = rng.standard_normal((QUERIES, D), np.float32) + centres[query_labels]
    watched = Watched()
    with TemporaryDirectory() as folder:
        path, mapped = Path(folder) / "items.npy", Path(folder) / "mapped.npy"
        size = n * D * 4 / 1e9
        with watched.step("write the items", size):
            labels = write_items(path, n, centres)
        relevance = Relevance.from_labels(labels, query_labels=query_labels)
        with watched.step("GMML.fit", size):
            gmml = GMML().fit(path, relevance, queries=Q)
        with watched.step("MLR.fit, batch_size=6, 4 rounds", size), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            MLR(batch_size=6, tol=0.1, max_iter=4, max_memory=1024, random_state=0).fit(
                path, relevance, queries=Q
            )
        del relevance
        with watched.step("FRML.partial_fit, runs of 65,536 rows", size):
            frml, X = FRML(32, random_state=0), np.load(path, mmap_mode="r")
            for at in range(0, n, CHUNK):
                part = labels[at : at + CHUNK]
                some = Relevance.from_labels(part, query_labels=query_labels[:SOME])
                frml.partial_fit(X[at : at + CHUNK], some, queries=Q[:SOME])
        with watched.step("export.to_npy by the metric of GMML", size):
            to_npy(gmml.metric_, path, mapped)
        with watched.step("Index.rank of 200 queries, k=10", size):
            ranking = Index(mapped).rank(gmml.transform(Q[:200]), 10)
        share = np.mean(labels[ranking.items] == np.repeat(query_labels[:200], 10))
        print(f"share of relevant items among the first ten: {share:.3f}", file=sys.stderr)
    publish("Data larger than memory", HEADER, watched.rows)


if __name__ == "__main__":
    main()
