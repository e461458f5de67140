"""Vector stores as a service uses them: filled by an export, searched by their own clients.

As a script it starts an export that kills its own process half-way.
"""

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import numpy as np

from rankspace import export, load_metric


class Store:
    """Has one generation of items, and nothing to close."""

    def generations(self):
        return 1

    def close(self):
        pass


class Files(Store):
    """An index file, with ids beside it."""

    def __init__(self, folder, address):
        self.path = Path(folder) / "index"

    def generations(self):
        return len(list(self.path.parent.glob(".index*"))) + len(
            list(self.path.parent.glob("index.ids-*"))
        )

    def items(self):
        return self._read(self.path)[1]

    def payload(self, name):
        items = self.items()
        return items.payload[items.ids.index(name)]


class Faiss(Files):
    package = "faiss"
    _read = staticmethod(export.read_faiss)

    def fill(self, metric, X, replace=False, **options):
        export.to_faiss(metric, X, self.path, **options)

    def search(self, metric, Q, k):
        index, items = export.read_faiss(self.path)
        return items.names(index.search(np.asarray(Q, dtype="f4"), k)[1])


class Usearch(Files):
    package = "usearch"
    _read = staticmethod(export.read_usearch)

    def fill(self, metric, X, replace=False, **options):
        export.to_usearch(metric, X, self.path, **options)

    def search(self, metric, Q, k):
        index, items = export.read_usearch(self.path)
        queries = metric.embed_queries(Q).astype("f4")
        found = [index.search(query, k, exact=True).keys for query in queries]
        return items.names(found)


class Pgvector(Store):
    package = "psycopg"

    def __init__(self, folder, address):
        self.address = address

    def fill(self, metric, X, **options):
        export.to_pgvector(metric, X, self.address, **options)

    def search(self, metric, Q, k):
        operator = "<#>" if metric.inner_product else "<->"
        sql = f"SELECT id FROM items ORDER BY embedding {operator} %s::vector LIMIT %s"
        vectors = metric.embed_queries(Q).tolist()
        return [self._column(sql, str(vector), k) for vector in vectors]

    def payload(self, name):
        return self._column("SELECT payload FROM items WHERE id = %s", name)[0]

    def _column(self, sql, *values):
        import psycopg

        with psycopg.connect(self.address) as connection:
            # A reader that has to wait for the export fails.
            connection.execute("SET lock_timeout = '2s'")
            return [row[0] for row in connection.execute(sql, values).fetchall()]


class Qdrant(Store):
    package = "qdrant_client"

    def __init__(self, folder, address):
        import qdrant_client

        # The local store commits every point in a folder, which takes time.
        self.path = Path(folder) / "qdrant"
        place = {"location": ":memory:"}
        if address == "folder":
            place = {"path": str(self.path)}
        self.client = qdrant_client.QdrantClient(**place)

    def generations(self):
        return len(self.client.get_collections().collections)

    def close(self):
        self.client.close()

    def fill(self, metric, X, **options):
        export.to_qdrant(metric, X, self.client, **options)

    def search(self, metric, Q, k):
        found = [
            self.client.query_points("items", vector, limit=k).points
            for vector in metric.embed_queries(Q)
        ]
        return [[point.payload["name"] for point in points] for points in found]

    def payload(self, name):
        points = self.client.scroll("items", limit=10_000)[0]
        (record,) = [p.payload for p in points if p.payload["name"] == name]
        return {key: value for key, value in record.items() if key != "name"}


class Lancedb(Store):
    package = "lancedb"

    def __init__(self, folder, address):
        self.path = Path(folder) / "lance"

    def fill(self, metric, X, **options):
        export.to_lancedb(metric, X, self.path, **options)

    def _table(self):
        import lancedb

        return lancedb.connect(self.path).open_table("items")

    def search(self, metric, Q, k):
        table = self._table()
        distance = "dot" if metric.inner_product else "l2"
        found = [
            table.search(vector).distance_type(distance).limit(k).to_list()
            for vector in metric.embed_queries(Q).astype("f4")
        ]
        return [[row["id"] for row in rows] for rows in found]

    def payload(self, name):
        rows = self._table().to_arrow().to_pylist()
        return json.loads(next(r["payload"] for r in rows if r["id"] == name))


class SqliteVec(Store):
    package = "sqlite_vec"

    def __init__(self, folder, address):
        self.path = Path(folder) / "items.db"

    def fill(self, metric, X, **options):
        export.to_sqlite_vec(metric, X, self.path, **options)

    def search(self, metric, Q, k):
        query = "CAST(? || zeroblob(4) AS BLOB)" if metric.inner_product else "?"
        sql = f"SELECT id FROM items WHERE embedding MATCH {query} AND k = ? ORDER BY distance"
        vectors = metric.embed_queries(Q).astype("f4")
        return [self._column(sql, vector.tobytes(), k) for vector in vectors]

    def payload(self, name):
        sql = "SELECT payload FROM items WHERE id = ?"
        return json.loads(self._column(sql, name)[0])

    def _column(self, sql, *values):
        from rankspace.export.sqlite_vec import connect

        with closing(connect(self.path)) as connection:
            # A reader that has to wait for the export fails.
            connection.execute("PRAGMA busy_timeout = 0")
            return [row[0] for row in connection.execute(sql, values).fetchall()]


class Duckdb(Store):
    package = "duckdb"

    def __init__(self, folder, address):
        import duckdb

        self.path = Path(folder) / "items.duckdb"
        self.connection = duckdb.connect(self.path)

    def close(self):
        self.connection.close()

    def fill(self, metric, X, **options):
        export.to_duckdb(metric, X, self.connection, **options)

    def search(self, metric, Q, k):
        distance = "array_distance"
        if metric.inner_product:
            distance = "array_negative_inner_product"
        sql = (
            f"SELECT id FROM items ORDER BY {distance}(embedding, "
            f"?::FLOAT[{len(metric.item_map)}]) LIMIT ?"
        )
        vectors = metric.embed_queries(Q).tolist()
        return [self._column(sql, vector, k) for vector in vectors]

    def payload(self, name):
        return json.loads(
            self._column("SELECT payload FROM items WHERE id = ?", name)[0]
        )

    def _column(self, sql, *values):
        with closing(self.connection.cursor()) as cursor:
            return [row[0] for row in cursor.execute(sql, list(values)).fetchall()]


class Elasticsearch(Store):
    """A bulk file, searched as the server is asked to by the body of the index."""

    package = "numpy"
    engine = "elasticsearch"
    place = ("similarity", "max_inner_product")

    def __init__(self, folder, address):
        self.path = Path(folder) / "items.ndjson"
        self.body = Path(folder) / "body.json"

    def fill(self, metric, X, replace=False, **options):
        body = export.to_bulk(metric, X, self.path, engine=self.engine, **options)
        self.body.write_text(json.dumps(body))

    def _documents(self):
        lines = self.path.read_text().split("\n")
        assert lines.pop() == ""
        names = [json.loads(line)["index"]["_id"] for line in lines[::2]]
        return dict(zip(names, map(json.loads, lines[1::2]), strict=True))

    def search(self, metric, Q, k):
        documents = self._documents()
        items = np.array([record["embedding"] for record in documents.values()], "f4")
        queries = metric.embed_queries(Q).astype("f4")
        scores = queries @ items.T
        if not self._is_compared_by_products():
            scores = -((queries[:, None] - items) ** 2).sum(axis=2)
        order = np.argsort(-scores, axis=1)[:, :k]
        names = list(documents)
        return [[names[row] for row in rows] for rows in order]

    def _is_compared_by_products(self):
        field = json.loads(self.body.read_text())["mappings"]["properties"]["embedding"]
        return field[self.place[0]] == self.place[1]

    def payload(self, name):
        return self._documents()[name]["payload"]


class Opensearch(Elasticsearch):
    engine = "opensearch"
    place = ("space_type", "innerproduct")


class Milvus(Elasticsearch):
    """Row-based JSON, with ids among the fields."""

    engine = "milvus"

    def _documents(self):
        rows = json.loads(self.path.read_text())["rows"]
        return {record.pop("id"): record for record in rows}

    def _is_compared_by_products(self):
        (index,) = json.loads(self.body.read_text())["indexParams"]
        return {"IP": True, "L2": False}[index["metricType"]]


STORES = {
    "faiss": Faiss,
    "usearch": Usearch,
    "pgvector": Pgvector,
    "qdrant": Qdrant,
    "lancedb": Lancedb,
    "sqlite-vec": SqliteVec,
    "duckdb": Duckdb,
    "elasticsearch": Elasticsearch,
    "opensearch": Opensearch,
    "milvus": Milvus,
}


def open_store(name, folder, address):
    return STORES[name](folder, address)


def killed_half_way(done):
    """The progress of an export that is killed after its first block."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    name, folder, address = sys.argv[1:]
    open_store(name, folder, address).fill(
        load_metric(f"{folder}/metric"),
        f"{folder}/new.npy",
        ids=[f"new {i}" for i in range(len(np.load(f"{folder}/new.npy")))],
        replace=True,
        block_size=8,
        progress=killed_half_way,
    )
