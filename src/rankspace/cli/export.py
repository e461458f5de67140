"""The verb that puts a metric where vectors live: ``export``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._engine.optional import require
from .options import add_verb, as_json, check_output
from .progress import Progress

SERVERS = ("pgvector", "qdrant")


def add_export(verbs: Any) -> None:
    """The words of ``export``."""
    parser = add_verb(
        verbs,
        export,
        "put a metric where vectors live",
        "Write a metric, or items mapped by it, in the form that another program searches.",
        "rankspace export my.safetensors --to faiss --vectors corpus.npy --output my.faiss",
    )
    parser.add_argument("metric", metavar="METRIC", help="a metric file")
    parser.add_argument("--to", required=True, choices=tuple(TARGETS), help="the form")
    parser.add_argument(
        "--vectors",
        help="the items: a file of vectors, a BEIR folder, or the name of a data set",
    )
    parser.add_argument("--ids", help="names of the items of a file, a line each")
    parser.add_argument(
        "--output",
        dest="place",
        help="the file to write; with qdrant, the folder of a local store",
    )
    parser.add_argument("--url", help="address of a server, with pgvector and qdrant")
    parser.add_argument(
        "--index",
        choices=("exact", "hnsw", "ivf"),
        default="exact",
        help="how faiss and pgvector search; ivf is of faiss alone",
    )
    parser.add_argument(
        "--queries",
        help="examples of queries in a .npy, to settle the effort of a FAISS index",
    )
    parser.add_argument(
        "--recall",
        type=float,
        default=0.99,
        help="what such an index is to find of the true ten",
    )
    parser.add_argument(
        "--table", default="items", help="name of the table or collection"
    )
    parser.add_argument(
        "--replace", action="store_true", help="drop a table of that name first"
    )
    parser.add_argument(
        "--side",
        choices=("items", "queries"),
        help="whose map, with npy (items) or onnx (queries)",
    )


def export(options: argparse.Namespace) -> str:
    """Put a metric where vectors live."""
    from ..metrics import load_metric

    _check_words(options)
    metric = load_metric(options.metric)
    with Progress("rankspace export") as progress:
        search = TARGETS[options.to](metric, options, progress.show)
    place = options.place or options.url
    if options.json:
        return as_json({"to": options.to, "output": place, "search": search})
    return f"exported {metric!r} to {place}; search: {search}"


def _check_words(options: argparse.Namespace) -> None:
    if options.url is not None and options.to not in SERVERS:
        raise ValueError(
            f"--url goes with --to pgvector and qdrant: got --to {options.to}."
        )
    if (options.place is None) == (options.url is None):
        either = " or --url, and not both" if options.to in SERVERS else ""
        raise ValueError(f"--to {options.to} needs --output{either}.")
    if options.to != "onnx" and options.vectors is None:
        raise ValueError(f"--to {options.to} needs the items: pass --vectors.")
    if options.to != "qdrant":
        check_output(options.place)


def _faiss(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_faiss

    vectors, _ = _items(options)
    to_faiss(
        metric,
        vectors,
        options.place,
        index=options.index,
        queries=options.queries,
        recall=options.recall,
        progress=progress,
    )
    return f"faiss.read_index({options.place!r}).search(queries, k), with queries as they are"


def _npy(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_npy

    vectors, _ = _items(options)
    to_npy(
        metric, vectors, options.place, side=options.side or "items", progress=progress
    )
    return _measure(metric)


def _query_side(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_query_side

    vectors, _ = _items(options)
    exported = to_query_side(metric, vectors, options.place, progress=progress)
    query_metric = Path(options.place).with_suffix(".queries.safetensors")
    exported.metric.save(query_metric)
    return f"inner product with queries mapped by {query_metric}"


def _onnx(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_onnx

    to_onnx(metric, options.place, side=options.side or "queries")
    return f"{_measure(metric)} of what the model maps"


def _pgvector(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_pgvector, to_sql

    vectors, ids = _items(options)
    words: dict[str, Any] = {"table": options.table, "index": options.index, "ids": ids}
    words |= {"replace": options.replace, "progress": progress}
    if options.url is None:
        return to_sql(metric, vectors, options.place, **words)
    try:
        return to_pgvector(metric, vectors, options.url, **words)
    except require("psycopg", extra="export").Error as error:
        raise ValueError(f"PostgreSQL says: {error}") from error


def _qdrant(metric: Any, options: argparse.Namespace, progress: Any) -> str:
    from ..export import to_qdrant

    vectors, ids = _items(options)
    where = {"url": options.url} if options.place is None else {"path": options.place}
    qdrant = require("qdrant_client", extra="export")
    from qdrant_client.http.exceptions import ApiException

    try:
        client = qdrant.QdrantClient(**where)
        to_qdrant(
            metric,
            vectors,
            client,
            collection=options.table,
            ids=ids,
            replace=options.replace,
            progress=progress,
        )
        client.close()
    except (ApiException, RuntimeError) as error:
        raise ValueError(f"Qdrant says: {error}") from error
    return f"{_measure(metric)} of queries mapped by the metric"


def _items(options: argparse.Namespace) -> tuple[Any, Any]:
    from .inputs import items_of

    return items_of(options.vectors, options.ids)


def _measure(metric: Any) -> str:
    return "inner product" if metric.inner_product else "Euclidean distance"


TARGETS: dict[str, Callable[[Any, argparse.Namespace, Any], str]] = {
    "faiss": _faiss,
    "onnx": _onnx,
    "pgvector": _pgvector,
    "qdrant": _qdrant,
    "npy": _npy,
    "query-side": _query_side,
}
