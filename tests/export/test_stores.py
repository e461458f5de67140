"""What every vector store must keep: one contract, with all of them."""

import re
import signal
import subprocess
import sys
from contextlib import closing, contextmanager

import numpy as np
import pytest

import vector_stores
from rankspace import AsymmetricMetric, BilinearMetric, Index, LinearMetric
from vector_stores import STORES, open_store

K = 10
BLOCK = 20
ODD = [
    "it's \t n\u00b0",
    '"; DROP TABLE items; --',
    "a\\b\n",
    " ",
    "\U0001f600",
    "0012",
]


@pytest.fixture(params=list(STORES))
def kind(request):
    pytest.importorskip(STORES[request.param].package)
    return request.param


@pytest.fixture
def address(kind, request):
    if kind != "pgvector":
        return ""
    import psycopg

    uri = request.getfixturevalue("server").get_uri()
    with psycopg.connect(uri) as connection:
        connection.execute("DROP TABLE IF EXISTS items")
    return uri


@pytest.fixture
def store(kind, address, tmp_path):
    opened = open_store(kind, tmp_path, address)
    yield opened
    opened.close()


def make_metric(kind):
    name, _, similarity = kind.partition(" ")
    rng = np.random.default_rng(3)
    options = {"similarity": similarity} if similarity else {}
    if name == "linear":
        return LinearMetric(rng.standard_normal((5, 12)), **options)
    maps, offset = rng.standard_normal((2, 5, 12)), rng.standard_normal(5)
    if name == "bilinear":
        return BilinearMetric(*maps, query_offset=offset, **options)
    return AsymmetricMetric(*maps, query_offset=offset, **options)


def make_items(n, seed):
    return np.random.default_rng(seed).standard_normal((n, 12)).astype("f4")


def names_of(label, n):
    return [f"{label} {i}" for i in range(n)]


def nearest(metric, X, names, Q):
    ranking = Index(X.astype(float), metric, ids=names).rank(Q.astype(float), K)
    return [ranking.ids(query)[:K] for query in range(len(Q))]


@pytest.mark.parametrize(
    "metric", ["linear", "bilinear", "asymmetric", "linear cosine", "bilinear cosine"]
)
def test_every_store_finds_what_index_finds(store, metric):
    metric, X, Q = make_metric(metric), make_items(300, 0), make_items(12, 1)
    names = ODD + names_of("item", 300 - len(ODD))
    payload = [{"text": f"{name} \u4e00", "deep": [{"a": None}, 1.5]} for name in names]
    payload[3] = {}
    store.fill(metric, X, ids=names, payload=payload, block_size=70)
    assert store.search(metric, Q, K) == nearest(metric, X, names, Q)
    found = store.search(metric, X[: len(ODD)], 300)
    assert all(sorted(names) == sorted(row) for row in found)
    for row in [*range(len(ODD)), 299]:
        assert store.payload(names[row]) == payload[row]


# These are replaced without being asked to, as all files are.
FILES = ("faiss", "usearch", "elasticsearch", "opensearch", "milvus")


class Stop(Exception):
    pass


def test_an_export_that_fails_at_any_block_loses_nothing(store, tmp_path):
    metric, Q = make_metric("linear"), make_items(3, 1)
    old, new = make_items(60, 2), make_items(5 * BLOCK, 3)
    old_names, new_names = names_of("old", 60), names_of("new", 5 * BLOCK)
    store.fill(metric, old, ids=old_names, payload=[{"of": n} for n in old_names])
    kept = nearest(metric, old, old_names, Q)
    options = {"ids": new_names, "replace": True, "block_size": BLOCK}
    for stop in range(1, 6):

        def fail(done, stop=stop):
            assert store.search(metric, Q, K) == kept
            if done >= stop / 5:
                raise Stop(f"at {done}")

        with pytest.raises(Stop, match=f"at {stop / 5}"):
            store.fill(metric, new, progress=fail, **options)
        assert store.search(metric, Q, K) == kept
        assert store.payload("old 7") == {"of": "old 7"}
        broken = new.copy()
        broken[stop * BLOCK - 1, 2] = np.nan
        with pytest.raises(ValueError, match="must hold finite numbers"):
            store.fill(metric, broken, **options)
        assert store.search(metric, Q, K) == kept
    store.fill(metric, new, **options)
    assert store.search(metric, Q, K) == nearest(metric, new, new_names, Q)


@contextmanager
def files_of_at_most(n_bytes):
    """This process can write no file beyond a size, as on a disk that is nearly full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("kind", [k for k in STORES if k != "pgvector"])
def test_an_export_that_cannot_be_written_loses_nothing(kind, tmp_path):
    pytest.importorskip(STORES[kind].package)
    metric, rng = LinearMetric(np.eye(64)), np.random.default_rng(0)
    Q, old, new = (rng.standard_normal((n, 64)).astype("f4") for n in (3, 20, 800))
    old_names, new_names = names_of("old", 20), names_of("new", 800)
    with closing(open_store(kind, tmp_path, "folder")) as store:
        store.fill(metric, old, ids=old_names)
        # Each store has errors of its own.
        with files_of_at_most(2**17), pytest.raises(Exception) as raised:  # noqa: PT011
            store.fill(metric, new, ids=new_names, replace=True)
        # What it says is why, not what could not be done after it.
        assert not re.search("rollback|delete", str(raised.value), re.IGNORECASE)
        assert store.search(metric, Q, K) == nearest(metric, old, old_names, Q)
        store.fill(metric, old[::-1], ids=old_names, replace=True)
        assert store.search(metric, Q, K) == nearest(metric, old[::-1], old_names, Q)
        assert store.generations() == 1


def test_an_export_that_is_killed_leaves_the_old_data(kind, address, tmp_path):
    address = "folder" if kind == "qdrant" else address
    metric, Q = make_metric("linear"), make_items(3, 1)
    old, new = make_items(20, 2), make_items(20, 3)
    old_names, new_names = names_of("old", 20), names_of("new", 20)
    metric.save(tmp_path / "metric")
    np.save(tmp_path / "new.npy", new)
    store = open_store(kind, tmp_path, address)
    store.fill(metric, old, ids=old_names)
    store.close()
    script = [sys.executable, vector_stores.__file__, kind, tmp_path, address]
    done = subprocess.run(script, check=False)
    assert done.returncode == -signal.SIGKILL
    store = open_store(kind, tmp_path, address)
    assert store.search(metric, Q, K) == nearest(metric, old, old_names, Q)
    # What it left is no obstacle, and is removed.
    store.fill(metric, new, ids=new_names, replace=True)
    assert store.search(metric, Q, K) == nearest(metric, new, new_names, Q)
    assert store.generations() == 1
    store.close()


def test_bad_items_are_refused_before_anything_is_written(store, tmp_path):
    metric, X = make_metric("linear"), make_items(3, 0)
    for change, message in [
        ({"ids": ["a", "b", "a"]}, "ids must not repeat a name: got 'a' again"),
        ({"ids": ["a", "b\0", "c"]}, "ids must be text without NUL"),
        ({"ids": ["a", "\ud800", "c"]}, "ids must be text without .* lone surrogates"),
        ({"payload": [{}]}, "payload must have 3 entries: got 1"),
        ({"payload": {"a": 1}}, "payload must be a list .* got dict"),
        ({"payload": [{}, 7, {}]}, "payload must hold dicts .* got 7 in row 1"),
        ({"payload": [{}, {1: 2}, {}]}, "payload must hold dicts .* in row 1"),
        ({"payload": [{}, {"a": np.nan}, {}]}, "what JSON can hold, in row 1"),
        ({"payload": [{}, {"a": {1, 2}}, {}]}, "what JSON can hold, in row 1"),
        ({"payload": [{}, {"a": "\udfff"}, {}]}, "JSON can hold, in row 1"),
    ]:
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ValueError, match=message):
            store.fill(metric, X, **{"ids": ["a", "b", "c"], **change})
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", [k for k in STORES if k not in FILES])
def test_an_existing_table_is_replaced_when_asked_to(store):
    metric = make_metric("linear")
    store.fill(metric, make_items(12, 0), ids=names_of("old", 12))
    with pytest.raises(ValueError, match=r"must be new: items exists\. Pass replace="):
        store.fill(metric, make_items(12, 1), ids=names_of("new", 12))
    # Another width, and payloads where there were none.
    wider, names = LinearMetric(np.eye(12)), names_of("new", 13)
    X = make_items(13, 1)
    store.fill(wider, X, ids=names, payload=[{"a": n} for n in names], replace=True)
    assert store.search(wider, X[:2], K) == nearest(wider, X, names, X[:2])
    assert store.payload("new 12") == {"a": "new 12"}
