"""How much memory do steps need on data larger than memory?

A .npy file holds 8.6 GB of single-precision vectors: 8.4 million items of 256 features in 100
classes; there are 2,000 separate queries. GMML learns from all items, MLR from batches of 6
queries against all items, and FRML from 400 queries by `partial_fit` on the first chunks of
rows. GMML's metric maps the vectors into a second file, which is then searched. "RssAnon" is the
peak of the process's anonymous memory during the step, read twenty times per second from
/proc/self/status. It excludes pages of mapped files, which the system reclaims when it needs
them. "Above start" excludes what Python and the libraries held before the first step. `--rows`
makes a smaller problem; `--folder` keeps files and finished steps for the next run.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from _table import publish

from rankspace import FRML, GMML, MLR, Index, Relevance, load_metric
from rankspace.export import to_npy

D = 256  # features
CLASSES = 100
QUERIES = 2000
FRML_QUERIES = 400
SEARCHED = 200  # queries of the search
CHUNK = 65_536  # rows
FRML_CHUNKS = 16
HEADER = ["step", "data, GB", "seconds", "RssAnon, MB", "above start, MB"]


def rss_anon() -> float:
    """Anonymous resident memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    raise OSError("/proc/self/status has no RssAnon: run on Linux.")


class Monitor:
    """Times steps and records their peak memory; finished steps in the folder are skipped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "steps.json"
        self.rows = []
        if self.path.exists():
            self.rows = json.loads(self.path.read_text())
        self.start = rss_anon()

    def step(self, name: str, gigabytes: float, work: Callable[[], Any]) -> None:
        """Do the work, unless it is finished already."""
        if name in [row[0] for row in self.rows]:
            return
        peak = rss_anon()
        done = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.05):
                peak = max(peak, rss_anon())

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        done.set()
        thread.join()
        above = round(peak - self.start)
        self.rows.append([name, gigabytes, seconds, round(peak), above])
        self.path.write_text(json.dumps(self.rows))
        print(self.rows[-1], file=sys.stderr, flush=True)


def write_items(path: Path, n: int, centres: np.ndarray) -> None:
    """Items near the centres of their classes."""
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=n)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
    for at in range(0, n, CHUNK):
        part = labels[at : at + CHUNK]
        X[at : at + CHUNK] = (
            rng.standard_normal((part.size, D), np.float32) + centres[part]
        )
    X.flush()


class Problem:
    """Items in a file, queries in memory, and the steps of the benchmark."""

    def __init__(self, folder: Path, n: int) -> None:
        self.folder = folder
        self.n = n
        self.path = folder / "items.npy"
        self.mapped = folder / "mapped.npy"
        rng = np.random.default_rng(0)
        self.centres = (0.5 * rng.standard_normal((CLASSES, D))).astype(np.float32)
        self.query_labels = np.arange(QUERIES) % CLASSES
        noise = rng.standard_normal((QUERIES, D), np.float32)
        self.Q = noise + self.centres[self.query_labels]
        self.labels = np.random.default_rng(1).integers(CLASSES, size=n)

    @property
    def relevance(self) -> Relevance:
        return Relevance.from_labels(self.labels, query_labels=self.query_labels)

    def write(self) -> None:
        if not self.path.exists():
            write_items(self.path, self.n, self.centres)

    def gmml(self) -> None:
        model = GMML(0.5, reg=0.01).fit(self.path, self.relevance, queries=self.Q)
        model.metric_.save(self.folder / "gmml.safetensors")

    def mlr(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MLR(
                batch_size=6, tol=0.1, max_iter=2, max_memory=1024, random_state=0
            )
            model.fit(self.path, self.relevance, queries=self.Q)

    def frml(self) -> None:
        model = FRML(32, random_state=0)
        X = np.load(self.path, mmap_mode="r")
        queries = self.Q[:FRML_QUERIES]
        query_labels = self.query_labels[:FRML_QUERIES]
        for at in range(0, min(self.n, FRML_CHUNKS * CHUNK), CHUNK):
            labels = self.labels[at : at + CHUNK]
            relevance = Relevance.from_labels(labels, query_labels=query_labels)
            model.partial_fit(X[at : at + CHUNK], relevance, queries=queries)

    def transform(self) -> None:
        to_npy(load_metric(self.folder / "gmml.safetensors"), self.path, self.mapped)

    def search(self) -> None:
        metric = load_metric(self.folder / "gmml.safetensors")
        ranking = Index(self.mapped).rank(metric.transform(self.Q[:SEARCHED]), 10)
        wanted = np.repeat(self.query_labels[:SEARCHED], 10)
        precision = np.mean(self.labels[ranking.items] == wanted)
        print(f"P@10: {precision:.3f}", file=sys.stderr)


def option(name: str, default: Any) -> Any:
    """Remove an option and its value from the command line, and return the value."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = sys.argv.pop(at + 1)
    sys.argv.pop(at)
    return value


def main() -> None:
    n = int(option("--rows", 8_400_000))
    row_size = D * 4 / 1e9
    chosen = option("--folder", None)
    with TemporaryDirectory() as temporary:
        folder = Path(chosen or temporary)
        monitor = Monitor(folder)
        problem = Problem(folder, n)
        problem.write()
        for name, work in (
            ("GMML.fit", problem.gmml),
            ("MLR.fit, batch_size=6, 2 rounds", problem.mlr),
            ("export.to_npy with the metric of GMML", problem.transform),
            (f"Index.rank of {SEARCHED} queries, k=10", problem.search),
        ):
            monitor.step(name, n * row_size, work)
        name = f"FRML.partial_fit, {FRML_CHUNKS} chunks of {CHUNK:,} rows"
        monitor.step(name, min(n, FRML_CHUNKS * CHUNK) * row_size, problem.frml)
    publish("Data larger than memory", HEADER, monitor.rows)


if __name__ == "__main__":
    main()
