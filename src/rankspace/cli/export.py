"""The command ``rankspace export``: vector stores, ONNX and .npy files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from typing import Any

from .._engine.credentials import hide_credentials
from .._engine.optional import require
from .options import add_verb, as_json, index_body_file, query_metric_file
from .progress import Progress

SERVERS = ("pgvector", "qdrant")
# What stores without ids are written for: programs that know rows only.
ROWS_ONLY = ("npy", "query-side", "onnx")
# The programs whose errors are told as theirs, and the packages that raise them.
PROGRAMS = {
    "pgvector": "PostgreSQL",
    "qdrant": "Qdrant",
    "lancedb": "LanceDB",
    "sqlite-vec": "SQLite",
    "duckdb": "DuckDB",
    "faiss": "FAISS",
    "usearch": "USearch",
}
PACKAGES = ("psycopg", "qdrant_client", "lancedb", "sqlite3", "pysqlite3", "_duckdb")


def add_export(verbs: Any) -> None:
    """Add the verb ``export``."""
    parser = add_verb(
        verbs,
        export,
        "export a metric to a vector store",
        "Write a metric, or items mapped by it, in the format of another program.",
        "rankspace export my.safetensors --to faiss --vectors corpus.npy --output my.faiss",
    )
    parser.add_argument("metric", metavar="METRIC", help="metric file")
    parser.add_argument("--to", required=True, choices=tuple(TARGETS), help="format")
    parser.add_argument(
        "--vectors",
        help="items: file of vectors, BEIR folder, or name of a data set",
    )
    parser.add_argument("--ids", help="file of item ids, one per line")
    parser.add_argument(
        "--output",
        dest="place",
        help="file to write; for qdrant and lancedb, the folder of a local store",
    )
    parser.add_argument("--url", help="address of the server, for pgvector and qdrant")
    parser.add_argument(
        "--index",
        choices=("exact", "hnsw", "ivf"),
        default="exact",
        help="type of index, for faiss and pgvector; only faiss has ivf",
    )
    parser.add_argument(
        "--storage",
        choices=("float32", "float16", "int8", "binary"),
        default="float32",
        help="what faiss (an exact index), pgvector or qdrant keeps of each number",
    )
    parser.add_argument(
        "--queries",
        help=".npy file of example queries, to calibrate an approximate FAISS index",
    )
    parser.add_argument(
        "--recall",
        type=float,
        default=0.99,
        help="recall@10 that an approximate FAISS index must reach",
    )
    parser.add_argument(
        "--table", default="items", help="name of the table or collection"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace an existing table"
    )
    parser.add_argument(
        "--side",
        choices=("items", "queries"),
        help="side to map, for npy and onnx; needed if the metric maps the sides differently",
    )


def export(options: argparse.Namespace) -> str:
    """Export a metric to a vector store."""
    from ..metrics import load_metric

    _check_options(options)
    metric = load_metric(options.metric)
    with Progress("rankspace export") as progress:
        search = _fill(metric, options, progress)
    place = options.place or hide_credentials(options.url, options.url)
    if options.json:
        return as_json({"to": options.to, "output": place, "search": search})
    return f"exported {metric!r} to {place}; search: {search}"


def _fill(metric: Any, options: argparse.Namespace, progress: Progress) -> str:
    """Fill the store; what its program complains of, such as a full disk, is a ValueError."""
    try:
        return TARGETS[options.to](metric, options, progress.show)
    except Exception as error:
        package = type(error).__module__.partition(".")[0]
        # Those in C++ and Rust raise RuntimeError.
        foreign = package in PACKAGES or isinstance(error, RuntimeError)
        if not foreign or options.to not in PROGRAMS:
            raise
        raise ValueError(f"{PROGRAMS[options.to]} says: {error}") from error


def _check_options(options: argparse.Namespace) -> None:
    if options.storage != "float32" and options.to not in ("faiss", *SERVERS):
        raise ValueError(
            "--storage can only be used with --to faiss, pgvector or qdrant: got --to "
            f"{options.to}."
        )
    if options.url is not None and options.to not in SERVERS:
        raise ValueError(
            f"--url can only be used with --to pgvector or qdrant: got --to {options.to}."
        )
    if (options.place is None) == (options.url is None):
        if options.to in SERVERS:
            raise ValueError(f"--to {options.to} needs either --output or --url.")
        raise ValueError(f"--to {options.to} needs --output.")
    if options.ids is not None and options.to in ROWS_ONLY:
        raise ValueError(
            f"--ids cannot be used with --to {options.to}: items have row numbers from 0, in the "
            "order of the vectors."
        )
    if options.to != "onnx" and options.vectors is None:
        raise ValueError(f"--to {options.to} needs items: pass --vectors.")


def _faiss(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_faiss

    items = _items(options)
    to_faiss(
        metric,
        items.vectors,
        options.place,
        ids=items.ids,
        payload=items.payload,
        index=options.index,
        storage=options.storage,
        queries=options.queries,
        recall=options.recall,
        progress=progress,
    )
    reader = f"faiss.read_index({options.place!r})"
    if items.is_named:
        reader = f"rankspace.export.read_faiss({options.place!r})[0]"
    return f"{reader}.search(queries, k), with unmapped queries"


def _usearch(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_usearch

    items = _items(options)
    settings = {"ids": items.ids, "payload": items.payload, "progress": progress}
    to_usearch(metric, items.vectors, options.place, **settings)
    reader = f"usearch.index.Index.restore({options.place!r})"
    if items.is_named:
        reader = f"rankspace.export.read_usearch({options.place!r})[0]"
    return f"{reader}.search(query, k), with queries mapped by the metric"


def _lancedb(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_lancedb

    settings = _table_settings(options, progress)
    distance = to_lancedb(metric, database=options.place, **settings)
    search = f"distance_type({distance!r}), with queries mapped by the metric"
    return search + _unnamed(settings)


def _sqlite_vec(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_sqlite_vec

    settings = _table_settings(options, progress)
    return to_sqlite_vec(metric, path=options.place, **settings) + _unnamed(settings)


def _duckdb(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_duckdb

    settings = _table_settings(options, progress)
    return to_duckdb(metric, path=options.place, **settings) + _unnamed(settings)


def _bulk(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from .._engine.files import write_text
    from ..export import to_bulk

    settings = _table_settings(options, progress)
    del settings["replace"]
    settings["index"] = settings.pop("table")
    body = to_bulk(metric, path=options.place, engine=options.to, **settings)
    created_by = write_text(index_body_file(options.place), as_json(body) + "\n")
    search = f"index created by {created_by}, with queries mapped by the metric"
    return search + _unnamed(settings)


def _npy(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_npy
    from .show import search_by

    vectors = _items(options).vectors
    to_npy(metric, vectors, options.place, side=options.side, progress=progress)
    return search_by(metric, options.side)


def _query_side(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_query_side

    vectors = _items(options).vectors
    exported = to_query_side(metric, vectors, options.place, progress=progress)
    query_metric = query_metric_file(options.place)
    exported.metric.save(query_metric)
    return f"inner product with queries mapped by {query_metric}"


def _onnx(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_onnx
    from .show import search_by

    to_onnx(metric, options.place, side=options.side)
    search = search_by(metric, options.side)
    if search.endswith("unmapped items"):
        return f"{search}, for queries mapped by the model"
    return f"{search} between vectors mapped by the model"


def _pgvector(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_pgvector, to_sql

    settings = _table_settings(options, progress)
    settings |= {"index": options.index, "storage": options.storage}
    if options.url is None:
        search = to_sql(metric, path=options.place, **settings)
        return search + _unnamed(settings)
    search = to_pgvector(metric, connection=options.url, **settings)
    return search + _unnamed(settings)


def _qdrant(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_qdrant
    from ..export.arrays import comparison

    settings = _table_settings(options, progress)
    settings["collection"] = settings.pop("table")
    settings["storage"] = options.storage
    where: dict[str, Any] = {"path": options.place}
    if options.place is None:
        # The check asks in a thread, whose errors would be printed with the address.
        where = {"url": options.url, "check_compatibility": False}
    qdrant = require("qdrant_client", extra="qdrant")
    with closing(qdrant.QdrantClient(**where)) as client:
        to_qdrant(metric, client=client, **settings)
    return f"{comparison(metric)} to queries mapped by the metric" + _unnamed(settings)


def _unnamed(settings: dict[str, Any]) -> str:
    """What to say of items without ids."""
    if settings["ids"] is not None:
        return ""
    return "; items are named by row numbers, from 0, unless --ids names them"


def _table_settings(options: argparse.Namespace, progress: Any) -> dict[str, Any]:
    """What all stores with tables take."""
    items = _items(options)
    return {
        "vectors": items.vectors,
        "ids": items.ids,
        "payload": items.payload,
        "table": options.table,
        "replace": options.replace,
        "progress": progress,
    }


def _items(options: argparse.Namespace) -> Any:
    from .inputs import read_items

    return read_items(options.vectors, options.ids)


TARGETS: dict[str, Callable[[Any, argparse.Namespace, Any], str]] = {
    "faiss": _faiss,
    "onnx": _onnx,
    "pgvector": _pgvector,
    "qdrant": _qdrant,
    "lancedb": _lancedb,
    "sqlite-vec": _sqlite_vec,
    "duckdb": _duckdb,
    "usearch": _usearch,
    "elasticsearch": _bulk,
    "opensearch": _bulk,
    "milvus": _bulk,
    "npy": _npy,
    "query-side": _query_side,
}
