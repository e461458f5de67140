"""How much memory do data larger than it take?

8.6 GB of single-precision vectors lie in a .npy file: 8.4 million items of 256 features in 100
classes, and 2,000 separate queries. GMML learns from all of them, MLR from batches of 6 queries
against all items, FRML from 400 queries by `partial_fit` on the first runs of rows; the vectors are
mapped by GMML's metric into a second file, and that is searched. "RssAnon": the most anonymous
memory of the process in the step, read twenty times a second from /proc/self/status; pages of
mapped files, which the system takes back when it needs them, do not count. "above start": without
what Python and the libraries held before the first step. `--rows` makes a smaller problem,
`--folder` keeps files and finished steps for the next run.
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

D, CLASSES, QUERIES, SOME, SOUGHT, CHUNK, RUNS = 256, 100, 2000, 400, 200, 65_536, 16
HEADER = ["step", "data, GB", "seconds", "RssAnon, MB", "above start, MB"]


def rss_anon() -> float:
    """Anonymous resident memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    raise OSError("/proc/self/status has no RssAnon: run on Linux.")


class Watched:
    """Times steps and watches their memory; steps that a folder has are not done again."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder / "steps.json"
        self.rows = json.loads(self.kept.read_text()) if self.kept.exists() else []
        self.start = rss_anon()

    def step(self, name: str, gigabytes: float, work: Callable[[], Any]) -> None:
        """Do the work, unless it is done."""
        if name in [row[0] for row in self.rows]:
            return
        most, done = [rss_anon()], threading.Event()

        def watch() -> None:
            while not done.wait(0.05):
                most[0] = max(most[0], rss_anon())

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        done.set()
        thread.join()
        peak = most[0]
        self.rows.append(
            [name, gigabytes, seconds, round(peak), round(peak - self.start)]
        )
        self.kept.write_text(json.dumps(self.rows))
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
    """Items in a file, queries in memory, and the steps over them."""

    def __init__(self, folder: Path, n: int) -> None:
        self.folder, self.n = folder, n
        self.path, self.mapped = folder / "items.npy", folder / "mapped.npy"
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
        model = GMML().fit(self.path, self.relevance, queries=self.Q)
        model.metric_.save(self.folder / "gmml.safetensors")

    def mlr(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MLR(
                batch_size=6, tol=0.1, max_iter=2, max_memory=1024, random_state=0
            )
            model.fit(self.path, self.relevance, queries=self.Q)

    def frml(self) -> None:
        model, X = FRML(32, random_state=0), np.load(self.path, mmap_mode="r")
        for at in range(0, min(self.n, RUNS * CHUNK), CHUNK):
            part = self.labels[at : at + CHUNK]
            some = Relevance.from_labels(part, query_labels=self.query_labels[:SOME])
            model.partial_fit(X[at : at + CHUNK], some, queries=self.Q[:SOME])

    def transform(self) -> None:
        to_npy(load_metric(self.folder / "gmml.safetensors"), self.path, self.mapped)

    def search(self) -> None:
        points = load_metric(self.folder / "gmml.safetensors").transform(
            self.Q[:SOUGHT]
        )
        ranking = Index(self.mapped).rank(points, 10)
        share = np.mean(
            self.labels[ranking.items] == np.repeat(self.query_labels[:SOUGHT], 10)
        )
        print(
            f"share of relevant items among the first ten: {share:.3f}", file=sys.stderr
        )


def option(name: str, default: Any) -> Any:
    """Take a word and its value out of the command line."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = sys.argv.pop(at + 1)
    sys.argv.pop(at)
    return value


def main() -> None:
    n, size = int(option("--rows", 8_400_000)), D * 4 / 1e9
    kept = option("--folder", None)
    with TemporaryDirectory() as temporary:
        folder = Path(kept or temporary)
        watched, problem = Watched(folder), Problem(folder, n)
        problem.write()
        for name, work in (
            ("GMML.fit", problem.gmml),
            ("MLR.fit, batch_size=6, 2 rounds", problem.mlr),
            ("export.to_npy by the metric of GMML", problem.transform),
            (f"Index.rank of {SOUGHT} queries, k=10", problem.search),
        ):
            watched.step(name, n * size, work)
        name = f"FRML.partial_fit, {RUNS} runs of 65,536 rows"
        watched.step(name, min(n, RUNS * CHUNK) * size, problem.frml)
    publish("Data larger than memory", HEADER, watched.rows)


if __name__ == "__main__":
    main()
