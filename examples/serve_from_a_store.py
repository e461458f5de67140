"""
From texts and judgments to a service
=====================================

Scientific claims are answered by the titles of abstracts. A metric is tuned on some claims, the
mapped abstracts go to PostgreSQL and LanceDB, and a service of 30 lines answers other claims from
either. It gives the same ten abstracts as an exact search in memory.

``python examples/serve_from_a_store.py`` needs ``pip install '.[lancedb]'``; with
``--postgres postgresql://localhost/search`` also ``.[pgvector]``. With ``--model NAME`` texts are
embedded here (``.[text]``), else the vectors that come with the sample are used.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import numpy as np

from rankspace import Index, load_metric, tune
from rankspace.datasets import embed_texts, load_scifact_sample
from rankspace.export import to_lancedb, to_pgvector

K = 10

# %%
# The service: it loads the metric, which takes milliseconds, and maps each query. Two functions
# search the stores for a mapped vector.


def lancedb_search(folder, distance):
    import lancedb

    table = lancedb.connect(folder).open_table("abstracts")

    def search(vector):
        rows = table.search(vector).distance_type(distance).limit(K).to_list()
        return [(row["id"], json.loads(row["payload"])["title"]) for row in rows]

    return search


def postgres_search(address, sql):
    import psycopg

    def search(vector):
        with psycopg.connect(address) as connection:
            found = connection.execute(sql, (str(vector.tolist()), K)).fetchall()
            titles = dict(
                connection.execute(
                    "SELECT id, payload->>'title' FROM abstracts WHERE id = ANY(%s)",
                    ([row[0] for row in found],),
                ).fetchall()
            )
        return [(name, titles[name]) for (name,) in found]

    return search


def service(metric_file, search):
    metric = load_metric(metric_file)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            query = metric.embed_queries(np.array(json.loads(body), dtype=np.float32))
            answer = json.dumps(search(query)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments):
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


# %%
# Texts become vectors, and judgments a metric.


def vectors_of(sample, model, folder):
    if model is None:
        return sample.X, sample.queries
    embed_texts(sample.texts, model, folder / "corpus.npy")
    embed_texts(sample.query_texts, model, folder / "queries.npy", side="queries")
    return np.load(folder / "corpus.npy"), np.load(folder / "queries.npy")


def learn(sample, X, Q, metric_file, **settings):
    train = sample.splits["train"]
    relevance = sample.relevance.take_queries(train)
    tuned = tune(X, relevance, queries=Q[train], n_folds=3, random_state=0, **settings)
    tuned.metric.save(metric_file)
    return tuned


# %%
# The stores get ids and titles with the mapped vectors. Running this again replaces the tables
# while the service answers from the old ones.


def fill_stores(metric, sample, X, folder, postgres):
    items = {
        "ids": sample.relevance.item_ids,
        "payload": [{"title": title} for title in sample.texts],
        "replace": True,
    }
    distance = to_lancedb(metric, X, folder / "store", table="abstracts", **items)
    searches = {"LanceDB": lancedb_search(folder / "store", distance)}
    if postgres is not None:
        sql = to_pgvector(metric, X, postgres, table="abstracts", **items)
        searches["PostgreSQL"] = postgres_search(postgres, sql)
    return searches


def ask(server, query):
    url = f"http://127.0.0.1:{server.server_port}"
    with urlopen(Request(url, json.dumps(query.tolist()).encode())) as answer:
        return json.load(answer)


def main(folder, postgres=None, model=None, n_queries=20, **settings):
    sample = load_scifact_sample()
    X, Q = vectors_of(sample, model, folder)
    tuned = learn(sample, X, Q, folder / "metric.safetensors", **settings)
    print(f"decision: {tuned.decision}")
    test = sample.splits["test"][:n_queries]
    ranking = Index(X, tuned.metric, ids=sample.relevance.item_ids).rank(Q[test], K)
    stores = fill_stores(tuned.metric, sample, X, folder, postgres)
    for name, search in stores.items():
        server = service(folder / "metric.safetensors", search)
        Thread(target=server.serve_forever).start()
        answers = [ask(server, Q[query]) for query in test]
        server.shutdown()
        server.server_close()
        same = [
            [found for found, _ in answer] == list(ranking.ids(i))
            for i, answer in enumerate(answers)
        ]
        print(f"{name}: {sum(same)} of {len(same)} lists are those of Index")
        print(f"  {sample.query_texts[test[0]]}\n  -> {answers[0][0][1]}")
        if not all(same):
            raise SystemExit(f"{name} finds other abstracts")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--postgres", help="address of a PostgreSQL with pgvector")
    parser.add_argument("--model", help="a model of sentence-transformers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        main(Path(name), options.postgres, options.model)
