"""Small valid inputs of every reader, built in code, as bytes."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from rankspace import (
    FRML,
    MLR,
    AsymmetricMetric,
    BilinearMetric,
    KernelMetric,
    LinearMetric,
    LocalMetric,
)
from rankspace.metrics.feature_scaling import FeatureScaling

LETOR = (
    "2 qid:1 1:0.5 2:-1e3 7:1 # docid = a\n"
    "0 qid:1 2:0 # b\n"
    "1 qid:2 1:.25 3:4 #c\n"
    "0 qid:2 1:7 3:1E-5\n"
)
RUN = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 a 1 7e-1 t\n"
QRELS = (
    "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\n",
    "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t0\n",
    'query-id,corpus-id,score\nq1,"a, b",1\nq2,b,0.5\n',
)
CLICKS = (
    "query,document,position,clicked,time\n"
    "q1,a,1,1,2026-01-01\n"
    'q1,"b, c",2,0,2026-01-01T12:00+02:00\n'
    "q2,a,3,true,2026-01-02\n"
)
BEIR = '{"_id": "a", "title": "A", "text": "cat"}\n{"_id": "b", "text": "d\\u00f6g"}\n'
CSV = 'id,title,text\nd1,A,"a ""cat"", asleep"\nd2,,dog\n'
SIDECAR = (
    '{"id": "a"}\n{"id": "b"}\n',
    '{"id": "a", "payload": {"text": "A"}}\n{"id": "b", "payload": {}}\n',
)
SETTINGS = (
    "max_iter=50",
    "C=1e3",
    "n_components=none",
    "warm_start=true",
    "reg=[0.1, 1]",
    'checkpoint="a/b"',
    "measure=ndcg@10",
    "random_state=-1",
    "gamma=inf",
    "init=pca",
    "a.b={c=1979-05-27}",
)


def vectors(dtype: str = "<f8") -> np.ndarray:
    """A small matrix."""
    return np.arange(12).reshape(4, 3).astype(dtype)


def npy() -> list[bytes]:
    """Files of numpy.save, of several types and orders."""
    arrays = [vectors("<f4"), vectors(">f8"), np.asfortranarray(vectors("<f2"))]
    return [_npy(array) for array in (*arrays, vectors("u1"), vectors()[:0])]


def labels() -> list[bytes]:
    """Labels as numbers and as words."""
    return [_npy(np.array(values)) for values in ([0, 1, 1, 0], ["a", "b", "a", "b"])]


def npz() -> list[bytes]:
    """Files of numpy.savez, with and without ids and compression."""
    ids = np.array(["a", "b", "c", "d"])
    plain, packed = io.BytesIO(), io.BytesIO()
    np.savez(plain, x=vectors(), ids=ids)
    np.savez_compressed(packed, x=vectors("<f4"))
    return [plain.getvalue(), packed.getvalue()]


def safetensors_vectors() -> list[bytes]:
    """Files of one matrix."""
    return [safetensors.numpy.save({"x": vectors(dtype)}) for dtype in ("<f4", "<f8")]


def parquet() -> list[bytes]:
    """Tables with a column of lists, and with columns of numbers; none without pyarrow."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return []
    return [
        _stream(lambda out, table=table: pq.write_table(table, out))
        for table in _tables()
    ]


def parquet_texts() -> list[bytes]:
    """A table of texts with ids; none without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return []
    table = pa.table({"_id": ["a", "b"], "title": ["A", None], "text": ["cat", "dog"]})
    return [_stream(lambda out: pq.write_table(table, out))]


def arrow() -> list[bytes]:
    """The same tables in both formats of Arrow, one of them compressed; none without pyarrow."""
    try:
        from pyarrow import feather, ipc
    except ImportError:
        return []

    def write(new: Any, table: Any) -> Callable[[io.BytesIO], None]:
        def write_table(out: io.BytesIO) -> None:
            with new(out, table.schema) as writer:
                writer.write_table(table, max_chunksize=3)

        return write_table

    tables = _tables()
    files = [
        _stream(write(new, t)) for new in (ipc.new_file, ipc.new_stream) for t in tables
    ]
    return [*files, _stream(lambda out: feather.write_feather(tables[0], out))]


def _tables() -> list[Any]:
    import pyarrow as pa

    rows = [list(map(float, row)) for row in vectors()]
    lists = pa.table({"id": ["a", "b", "c", "d"], "v": rows})
    numbers = pa.table(
        {"_id": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0], "y": [1, 2, 3, None]}
    )
    return [lists, numbers]


def metrics() -> list[bytes]:
    """A file of every kind of metric, with every kind of scaling."""
    rng = np.random.default_rng(0)
    maps, offset = rng.normal(size=(2, 2, 3)), rng.normal(size=2)
    found = [
        LinearMetric(maps[0], similarity="cosine", parameters={"method": "x"}),
        BilinearMetric(*maps, query_offset=offset),
        AsymmetricMetric(*maps, query_offset=offset),
        LocalMetric(rng.normal(size=(2, 2, 3)), [1.0, 2.0], kernel="paper"),
    ]
    kernels = [{"name": "rbf", "gamma": 0.5}, {"name": "poly", "degree": 2}]
    found.append(KernelMetric(maps[0], rng.normal(size=(2, 4)), kernels=kernels))
    own = [{"name": "precomputed"}]
    found.append(KernelMetric(np.zeros((3, 0)), rng.normal(size=(2, 3)), kernels=own))
    X = rng.normal(size=(8, 3))
    for kind in ("standard", "rank-gauss", "joined"):
        scaling = FeatureScaling.of(X, kind)
        d = scaling.n_scaled
        found.append(
            LocalMetric(
                rng.normal(size=(2, 1, d)),
                rng.normal(size=(3, 2)),
                anchors=rng.normal(size=(2, d)),
                linear=rng.normal(size=d),
                scaling=scaling,
                reference_profiles=rng.normal(size=(3, 2 * d)),
            )
        )
    for metric in found:
        _describe(metric)
    return [_written(metric.save) for metric in found]


def _describe(metric: Any) -> None:
    """What `tune` and the command ``fit`` add to a metric."""
    row = {"label": "all", "unchanged": 0.1, "difference": 0.1, "low": 0, "high": 0.2}
    metric.card = {"method": "MLR", "measure": "map", "questions": [row]}
    metric.parameters["fields"] = {"title": 1, "body": 2}
    metric.keep_query_sample(np.random.default_rng(1).normal(size=(5, 4)))


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Twelve points of two classes, which the fits of checkpoints learn from."""
    y = np.arange(12) % 2
    return np.random.default_rng(0).normal(size=(12, 2)) + y[:, None], y


def interrupted_fits(path: Path) -> list[Any]:
    """Learners whose fits stop early, with what lets them go on."""
    common = {"checkpoint": path, "random_state": 0}
    sampled = MLR(max_iter=2, batch_size=6, tol=1e-6, **common)
    short = {"n_triplets": 80, "check_every": 20, "batch_size": 10}
    return [
        (MLR(max_iter=2, tol=1e-6, **common), {"max_iter": 4}),
        (sampled, {"max_iter": 4}),
        (FRML(callback=lambda row: True, **short, **common), {"callback": None}),
    ]


def checkpoints() -> list[bytes]:
    """Checkpoints of fits that were stopped."""
    X, y = classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            _written(lambda path, i=i: interrupted_fits(path)[i][0].fit(X, y))
            for i in range(3)
        ]


def idx() -> list[bytes]:
    """A gzipped file of the images of MNIST: a header, and bytes."""
    return [gzip.compress(bytes(8) + bytes(range(12)), mtime=0)]


def texts(*contents: str) -> list[bytes]:
    """Plain texts, and one of them gzipped."""
    plain = [content.encode() for content in contents]
    return [*plain, gzip.compress(plain[0], mtime=0)]


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _stream(write: Callable[[io.BytesIO], Any]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _written(write: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


# What a hostile writer puts in a header.
JSON_VALUES = (
    *(None, True, -1, 0, 2**31, 2**63, 10**30, 1.5, float("nan"), "", "\u00b2", "a" * 300),
    *([], [0], [-1, 3], [3, -1], [2**62, 4], {}, {"a": 1}, "F32", "BF16", "I64", "local"),
    *([0, 8], [8, 0], "rank-gauss", "joined", "none", "paper", json.dumps({"kernel": 1})),
)  # fmt: skip
