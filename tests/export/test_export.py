"""Exports: every target ranks as `Index` does."""

import inspect
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rankspace import AsymmetricMetric, BilinearMetric, Index, LinearMetric
from rankspace.export import (
    read_faiss,
    to_bulk,
    to_duckdb,
    to_faiss,
    to_lancedb,
    to_npy,
    to_onnx,
    to_pgvector,
    to_qdrant,
    to_query_side,
    to_sql,
    to_sqlite_vec,
    to_usearch,
)
from rankspace.metrics import unchanged_metric
from rankspace.search import QuantisedMetric

K = 10


@pytest.fixture(scope="module")
def X():
    """Items of many clusters, as embeddings are, in float32."""
    rng = np.random.default_rng(1)
    centres = 2 * rng.standard_normal((60, 24))
    return (
        centres[rng.integers(60, size=3000)] + rng.standard_normal((3000, 24))
    ).astype("f4")


@pytest.fixture(scope="module")
def Q(X):
    rng = np.random.default_rng(2)
    return (X[rng.choice(3000, 100)] + 0.5 * rng.standard_normal((100, 24))).astype(
        "f4"
    )


def make_metric(kind):
    """A metric far from the identity."""
    rng = np.random.default_rng(3)
    if kind == "linear":
        return LinearMetric(rng.standard_normal((12, 24)) * np.geomspace(0.1, 3, 24))
    maps, offset = rng.standard_normal((2, 12, 24)), rng.standard_normal(12)
    if kind == "bilinear":
        return BilinearMetric(*maps, query_offset=offset)
    return AsymmetricMetric(maps[0], maps[0] + 0.5 * maps[1], query_offset=offset)


@pytest.fixture(params=["linear", "bilinear", "asymmetric"])
def metric(request):
    return make_metric(request.param)


def assert_same_lists(ranked, metric, Q, X, rtol=1e-4):
    """The ten nearest items are those of `Index`, up to ties within single precision."""
    wanted = Index(X.astype(float), metric).rank(Q.astype(float), K)
    ranked = np.asarray(ranked)
    assert ranked.shape == (len(Q), K)
    assert all(len(set(row)) == K for row in ranked.tolist())
    got = np.take_along_axis(
        metric.distances(Q.astype(float), X.astype(float)), ranked, axis=1
    )
    best = wanted.distances.reshape(ranked.shape)
    np.testing.assert_allclose(got, best, rtol=rtol)
    assert np.mean(ranked == wanted.items.reshape(ranked.shape)) > 0.99


def recall(ranked, metric, Q, X):
    wanted = Index(X, metric).rank(Q, K).items.reshape(-1, K)
    return np.mean(
        [len(set(a) & set(b)) / K for a, b in zip(ranked, wanted, strict=True)]
    )


def by_inner_product(queries, items):
    return np.argsort(-(queries @ items.T), axis=1, kind="stable")[:, :K]


# ---------------------------------------------------------------------- arrays


@pytest.mark.parametrize("block_size", [1, 7, 10_000])
def test_npy_is_written_in_blocks(metric, X, Q, tmp_path, block_size):
    np.save(tmp_path / "X.npy", X[:50])
    shares = []
    to_npy(
        metric,
        tmp_path / "X.npy",
        tmp_path / "mapped.npy",
        side="items",
        block_size=block_size,
        progress=shares.append,
    )
    to_npy(metric, Q, tmp_path / "queries.npy", side="queries", block_size=block_size)
    mapped = np.load(tmp_path / "mapped.npy", mmap_mode="r")
    assert mapped.dtype == np.float32
    assert mapped.flags.c_contiguous
    np.testing.assert_allclose(mapped, metric.embed_items(X[:50]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        np.load(tmp_path / "queries.npy"), metric.embed_queries(Q), rtol=1e-4, atol=1e-4
    )
    assert len(shares) == -(-50 // block_size)
    assert shares[-1] == 1.0
    assert {p.name for p in tmp_path.iterdir()} == {
        "X.npy",
        "mapped.npy",
        "queries.npy",
    }


@pytest.mark.parametrize(
    ("stored", "written"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u1", "f8")],
)
def test_npy_keeps_single_precision(tmp_path, stored, written):
    X = np.asfortranarray(np.arange(12).reshape(4, 3).astype(stored))
    np.save(tmp_path / "X.npy", X)
    to_npy(
        LinearMetric([[1.0, 2.0, 3.0]]),
        tmp_path / "X.npy",
        tmp_path / "out.npy",
        block_size=3,
    )
    mapped = np.load(tmp_path / "out.npy")
    assert mapped.dtype == written
    np.testing.assert_array_equal(mapped, X.astype(float) @ [[1.0], [2.0], [3.0]])


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("in_file", [True, False])
def test_query_side_search_ranks_as_the_metric(metric, X, Q, tmp_path, offset, in_file):
    X, Q = X + np.float32(offset), Q + np.float32(offset)
    path = tmp_path / "items.npy" if in_file else None
    items, query_metric = to_query_side(metric, X, path, block_size=999)
    np.testing.assert_array_equal(items[:, :24], X)
    assert items.shape[1] == 24 + (not metric.inner_product)
    assert items.dtype == np.float32
    ranked = by_inner_product(
        query_metric.embed_queries(Q.astype(float)), items.astype(float)
    )
    assert_same_lists(ranked, metric, Q, X)
    query_metric.save(tmp_path / "queries.safetensors")
    ranking = Index(items, BilinearMetric.load(tmp_path / "queries.safetensors")).rank(
        Q, K
    )
    assert recall(ranking.items.reshape(-1, K), metric, Q, X) > 0.99


def test_the_added_column_is_the_formula(X):
    metric = make_metric("linear")
    items, query_metric = to_query_side(metric, X[:20].astype(float))
    W = metric.matrix
    np.testing.assert_allclose(items[:, -1], [-x @ W @ x for x in X[:20].astype(float)])
    query = X[30].astype(float)
    np.testing.assert_allclose(
        query_metric.embed_queries([query])[0], [*(2 * W @ query), 1.0]
    )


# ---------------------------------------------------------------------- FAISS


def test_faiss_flat_takes_raw_vectors(metric, X, Q, tmp_path):
    faiss = pytest.importorskip("faiss")
    index = to_faiss(metric, X, tmp_path / "index.faiss", block_size=700)
    assert isinstance(index, faiss.IndexPreTransform)
    assert_same_lists(index.search(Q, K)[1], metric, Q, X)
    stored = faiss.read_index(str(tmp_path / "index.faiss"))
    np.testing.assert_array_equal(stored.search(Q, K)[1], index.search(Q, K)[1])
    inner = faiss.METRIC_INNER_PRODUCT if metric.inner_product else faiss.METRIC_L2
    assert stored.metric_type == inner


def test_faiss_flat_far_from_the_origin(X, Q):
    pytest.importorskip("faiss")
    metric = make_metric("linear")
    X, Q = X + np.float32(1e4), Q + np.float32(1e4)
    assert_same_lists(to_faiss(metric, X).search(Q, K)[1], metric, Q, X)


def test_more_items_can_be_added_to_faiss(metric, X, Q):
    pytest.importorskip("faiss")
    index = to_faiss(metric, X[:2000])
    if not metric.symmetric:
        index.index.add(metric.embed_items(X[2000:]))
    else:
        index.add(X[2000:])
    assert_same_lists(index.search(Q, K)[1], metric, Q, X)


@pytest.mark.parametrize("with_queries", [True, False])
@pytest.mark.parametrize("index_kind", ["hnsw", "ivf"])
def test_approximate_faiss_finds_what_it_promises(
    metric, X, Q, tmp_path, index_kind, with_queries
):
    faiss = pytest.importorskip("faiss")
    queries = Q[50:] if with_queries else None
    index = to_faiss(
        metric, X, tmp_path / "index.faiss", index=index_kind, queries=queries
    )
    assert recall(index.search(Q[:50], K)[1], metric, Q[:50], X) >= 0.99
    stored = faiss.read_index(str(tmp_path / "index.faiss"))
    np.testing.assert_array_equal(stored.search(Q, K)[1], index.search(Q, K)[1])


@pytest.mark.parametrize("index_kind", ["exact", "hnsw", "ivf"])
def test_faiss_of_few_items(metric, X, index_kind):
    pytest.importorskip("faiss")
    index = to_faiss(metric, X[:3], index=index_kind)
    ranked = index.search(X[:2], 3)[1]
    np.testing.assert_array_equal(
        ranked, np.argsort(metric.distances(X[:2], X[:3]), axis=1)
    )


# ---------------------------------------------------------------------- ONNX


@pytest.mark.parametrize("side", ["queries", "items"])
def test_onnx_maps_as_the_metric_does(metric, X, tmp_path, side):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = to_onnx(metric, tmp_path / "map.onnx", side=side)
    operators = [node.op_type for node in model.graph.node]
    shifted = metric.kind != "linear" and side == "queries"
    assert operators == (["MatMul", "Add"] if shifted else ["MatMul"])
    session = runtime.InferenceSession(
        tmp_path / "map.onnx", providers=["CPUExecutionProvider"]
    )
    (mapped,) = session.run(["mapped"], {"vectors": X})
    embed = metric.embed_queries if side == "queries" else metric.embed_items
    assert mapped.dtype == np.float32
    np.testing.assert_allclose(mapped, embed(X), rtol=1e-4, atol=1e-4)
    notes = session.get_modelmeta().custom_metadata_map
    assert notes["search"] == (
        "inner product" if metric.inner_product else "Euclidean distance"
    )


def test_queries_mapped_by_onnx_rank_as_the_metric(metric, X, Q, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = to_onnx(metric, side="queries").SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (queries,) = session.run(None, {"vectors": Q})
    items = metric.embed_items(X)
    if metric.inner_product:
        ranked = by_inner_product(queries, items)
    else:
        ranked = Index(items).rank(queries, K).items.reshape(-1, K)
    assert_same_lists(ranked, metric, Q, X)


# ---------------------------------------------------------------------- PostgreSQL


@pytest.fixture
def connection(server):
    import psycopg

    with psycopg.connect(server.get_uri()) as opened:
        opened.execute("DROP TABLE IF EXISTS items, things")
        opened.commit()
        yield opened


def fetch_lists(connection, sql, metric, Q):
    lists = []
    for vector in metric.embed_queries(Q):
        rows = connection.execute(sql, (str(vector.tolist()), K)).fetchall()
        lists.append([int(row[0]) for row in rows])
    return lists


def test_pgvector_ranks_as_the_metric(metric, X, Q, connection):
    sql = to_pgvector(metric, X, connection, block_size=700)
    assert_same_lists(fetch_lists(connection, sql, metric, Q), metric, Q, X)
    stored = connection.execute(
        "SELECT embedding FROM items WHERE id = 1234"
    ).fetchone()[0]
    np.testing.assert_allclose(
        np.fromstring(stored[1:-1], sep=","),
        metric.embed_items(X[1234:1235])[0],
        rtol=1e-4,
    )


def test_pgvector_by_a_graph(metric, X, Q, server, connection):
    sql = to_pgvector(metric, X, server.get_uri(), index="hnsw", table="things")
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET hnsw.ef_search = 200")
    plan = "\n".join(
        row[0]
        for row in connection.execute(
            f"EXPLAIN {sql}", (str(metric.embed_queries(Q)[0].tolist()), K)
        )
    )
    assert "Index Scan using things_embedding_idx" in plan
    assert recall(fetch_lists(connection, sql, metric, Q), metric, Q, X) >= 0.99


def test_pgvector_keeps_names_and_refuses_to_overwrite(X, Q, connection):
    metric = make_metric("linear")
    names = [f"it's \t n\u00b0{i}" for i in range(50)]
    sql = to_pgvector(metric, X[:50], connection, ids=names)
    rows = connection.execute(
        sql, (str(metric.embed_queries(Q)[0].tolist()), 50)
    ).fetchall()
    assert [row[0] for row in rows] == Index(X[:50], metric, ids=names).rank(Q[:1]).ids(
        0
    )
    with pytest.raises(
        ValueError, match=r"table must be new: items exists\. Pass replace=True"
    ):
        to_pgvector(metric, X[:50], connection)
    to_pgvector(metric, X[:20], connection, replace=True)
    assert connection.execute("SELECT count(*), max(id) FROM items").fetchone() == (
        20,
        19,
    )


def test_a_replaced_table_keeps_its_rights(X, connection, server, tmp_path):
    metric = make_metric("linear")
    role = 'CREATE ROLE "a\'b"'
    connection.execute(f"DO $$ BEGIN {role}; EXCEPTION WHEN OTHERS THEN END $$")
    to_pgvector(metric, X[:20], connection)
    connection.execute("GRANT SELECT ON items TO PUBLIC")
    connection.execute('GRANT INSERT, SELECT ON items TO "a\'b" WITH GRANT OPTION')
    connection.commit()
    rights = "SELECT relacl::text FROM pg_class WHERE relname = 'items'"
    before = connection.execute(rights).fetchone()
    to_pgvector(metric, X[:30], connection, replace=True, index="hnsw")
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (30,)
    assert sorted(connection.execute(rights).fetchone()) == sorted(before)
    connection.commit()
    to_sql(metric, X[:40], tmp_path / "s.sql", replace=True, index="hnsw")
    done = run_psql(server, tmp_path / "s.sql")
    assert (done.returncode, done.stderr.count("ERROR")) == (0, 0)
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (40,)
    assert sorted(connection.execute(rights).fetchone()) == sorted(before)


def test_the_longest_name_can_be_replaced(X, connection):
    connection.execute("CREATE SCHEMA IF NOT EXISTS one")
    names = ("a" * 63, "one." + "b" * 63)
    for name in names:
        for n in (10, 12, 14):
            to_pgvector(
                make_metric("linear"), X[:n], connection, table=name, replace=True
            )
            count = f"SELECT count(*) FROM {name}"
            assert connection.execute(count).fetchone() == (n,)
        connection.execute(f"DROP TABLE {name}")


def test_payloads_of_a_script_are_those_of_the_connection(X, server, tmp_path):
    import psycopg

    payload = [{"text": name, "deep": {"n": [1, None]}} for name in HOSTILE]
    script = tmp_path / "s.sql"
    metric = make_metric("linear")
    to_sql(metric, X[: len(HOSTILE)], script, payload=payload, replace=True)
    assert run_psql(server, script).returncode == 0
    with psycopg.connect(server.get_uri()) as connection:
        rows = connection.execute("SELECT payload FROM items ORDER BY id").fetchall()
    assert [row[0] for row in rows] == payload
    for text in ("\0", "\\\0"):
        with pytest.raises(
            ValueError, match=r"payload must be .* without NUL .* row 0"
        ):
            to_sql(metric, X[:1], script, payload=[{"a": {"b": text}}])
    to_sql(metric, X[:1], script, payload=[{"a": "\\u0000"}])


@pytest.mark.parametrize("index", ["exact", "hnsw"])
def test_a_script_does_what_the_connection_does(
    metric, X, server, connection, tmp_path, index
):
    names = [f"a\\b\t{i}" for i in range(40)]
    to_pgvector(metric, X[:40], connection, ids=names)
    sql = to_sql(
        metric, X[:40], tmp_path / "s.sql", ids=names, index=index, table="things"
    )
    assert ("USING hnsw" in (tmp_path / "s.sql").read_text()) == (index == "hnsw")
    server.psql((tmp_path / "s.sql").read_text())
    joined = (
        "SELECT items.embedding <-> things.embedding FROM items JOIN things USING (id)"
    )
    apart = np.array(connection.execute(joined).fetchall())
    assert apart.shape == (40, 1)
    assert apart.max() < 1e-6
    assert sql.startswith('SELECT id FROM "things" ORDER BY embedding <')


HOSTILE = [
    "; ROLLBACK; DROP TABLE victim; --",
    "'; ROLLBACK; DROP TABLE victim; --",
    "\\'; ROLLBACK; DROP TABLE victim; --",
    "\n\\.\nROLLBACK; DROP TABLE victim;\n",
    "'\n; ROLLBACK; DROP TABLE victim;\n\\! touch owned\n",
    "\\! touch owned",
    "\\\\! touch owned",
    "$$; DROP TABLE victim; $$",
    ":victim :'victim' \\gexec",
    "\u00bf\\ \x1a\x7f\r\n\t\u4e00",
]


def run_psql(server, script, *options, **changes):
    """Run a script by a real psql, in its folder."""
    command = shutil.which("psql")
    if command is None:
        command = (
            Path(inspect.getfile(type(server))).parent / "pginstall" / "bin" / "psql"
        )
    return subprocess.run(
        [command, "-X", "-q", *options, "-f", script.name, server.get_uri()],
        cwd=script.parent,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("locale", [{}, {"PGCLIENTENCODING": "SJIS", "LC_ALL": "C"}])
def test_psql_stores_hostile_ids_as_they_are(X, server, connection, tmp_path, locale):
    connection.execute("CREATE TABLE IF NOT EXISTS victim (a int)")
    connection.commit()
    metric = make_metric("linear")
    script = tmp_path / "s.sql"
    to_sql(metric, X[: len(HOSTILE)], script, ids=HOSTILE)
    for lax in ("on", "off"):
        # Settings of the server that change how backslashes in quotes are read.
        options = f"-c standard_conforming_strings={lax} -c backslash_quote=off"
        done = run_psql(server, script, **locale, PGOPTIONS=options)
        assert done.returncode == 0
        assert "ERROR" not in done.stderr
        stored = connection.execute("SELECT id FROM items").fetchall()
        assert {row[0] for row in stored} == set(HOSTILE)
        connection.execute("DROP TABLE items")
        connection.commit()
    assert not (tmp_path / "owned").exists()


def test_psql_executes_no_id_when_a_statement_fails(X, server, connection, tmp_path):
    connection.execute("CREATE TABLE IF NOT EXISTS victim (a int)")
    connection.execute("CREATE TABLE items (other int)")
    connection.commit()
    metric = make_metric("linear")
    script = tmp_path / "s.sql"
    to_sql(metric, X[: len(HOSTILE)], script, ids=HOSTILE)
    done = run_psql(server, script)
    assert done.returncode == 3
    assert done.stderr.count("ERROR") == 1
    # A client that goes on after errors still reads no id as a statement.
    text = script.read_text().replace("ON_ERROR_STOP on", "ON_ERROR_STOP off")
    script.write_text(text)
    run_psql(server, script)
    assert connection.execute("SELECT count(*) FROM victim").fetchone() == (0,)
    assert connection.execute("SELECT count(other) FROM items").fetchone() == (0,)
    assert not (tmp_path / "owned").exists()


def test_ids_that_postgresql_cannot_hold_are_refused(tmp_path):
    metric = LinearMetric([[1.0]])
    for name in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match="ids must be text without NUL"):
            to_sql(metric, [[1.0]], tmp_path / "s.sql", ids=[name])


def test_names_that_postgresql_would_cut_are_refused(tmp_path):
    metric = LinearMetric([[1.0]])
    for table in ("a" * 64, "a" * 64 + ".items", "items." + "a" * 64):
        with pytest.raises(ValueError, match="at most 63 characters"):
            to_sql(metric, [[1.0]], tmp_path / "s.sql", table=table)
        with pytest.raises(ValueError, match="at most 63 characters"):
            to_pgvector(metric, [[1.0]], "", table=table, replace=True)
    to_sql(metric, [[1.0]], tmp_path / "s.sql", table="a" * 63 + "." + "b" * 63)


def test_tables_that_pgvector_cannot_hold():
    wide = LinearMetric(np.ones((2001, 1)))
    with pytest.raises(
        ValueError, match=r"'hnsw' pgvector takes vectors of up to 2000 .* 2001"
    ):
        to_pgvector(wide, [[1.0]], "", index="hnsw")
    for table in ("Items", 'a"b', "a b", "a.b.c", ""):
        with pytest.raises(ValueError, match="table must be lower-case letters"):
            to_pgvector(wide, [[1.0]], "", table=table)


# ---------------------------------------------------------------------- Qdrant


def test_qdrant_ranks_as_the_metric(metric, X, Q):
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(":memory:")
    to_qdrant(metric, X, client, collection="docs", ids=[f"d{i}" for i in range(3000)])
    lists = []
    for vector in metric.embed_queries(Q):
        points = client.query_points("docs", vector, limit=K).points
        assert all(point.payload["name"] == f"d{point.id}" for point in points)
        lists.append([point.id for point in points])
    assert_same_lists(lists, metric, Q, X)


def test_a_collection_that_is_no_alias_is_never_deleted(X):
    qdrant = pytest.importorskip("qdrant_client")
    client, metric = qdrant.QdrantClient(":memory:"), make_metric("linear")
    params = qdrant.models.VectorParams(size=3, distance="Dot")
    for name in ("items", "others-rankspace-0123456789ab", "things-rankspace"):
        client.create_collection(name, params)
    with pytest.raises(ValueError, match=r"alias, .* items is a collection\. Export"):
        to_qdrant(metric, X[:20], client, replace=True)
    to_qdrant(metric, X[:20], client, collection="things", replace=True)
    to_qdrant(metric, X[:10], client, collection="things", replace=True)
    assert client.count("things").count == 10
    assert len(client.get_collections().collections) == 4


def test_qdrant_that_lost_points_is_not_searched(X, monkeypatch):
    qdrant = pytest.importorskip("qdrant_client")
    client, metric = qdrant.QdrantClient(":memory:"), make_metric("linear")
    to_qdrant(metric, X[:20], client)
    upload = client.upload_collection
    monkeypatch.setattr(
        client,
        "upload_collection",
        lambda *args, **options: options["ids"][0] or upload(*args, **options),
    )
    with pytest.raises(RuntimeError, match="must hold 30 points: it has 8"):
        to_qdrant(metric, X[:30], client, replace=True, block_size=8)
    assert client.count("items").count == 20
    assert len(client.get_collections().collections) == 1


def test_names_are_no_field_of_a_payload(X):
    qdrant = pytest.importorskip("qdrant_client")
    client, metric = qdrant.QdrantClient(":memory:"), make_metric("linear")
    payload = [{"text": "a"}, {"name": "b"}]
    with pytest.raises(ValueError, match=r"the field 'name', .* row 1"):
        to_qdrant(metric, X[:2], client, ids=["a", "b"], payload=payload)


# ---------------------------------------------------------------------- bulk files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": "solr"}, "engine must be one of elasticsearch, opensearch"),
        ({"index": "Items"}, "index must be lower-case letters.* got 'Items'"),
        ({"index": "_items"}, "begin with one of the first two: got '_items'"),
        ({"engine": "milvus", "index": "my-items"}, "for milvus.* got 'my-items'"),
        ({"ids": ["a" * 513]}, "ids must have 1 to 512 bytes for elasticsearch"),
        ({"ids": [""]}, "ids must have 1 to 512 bytes"),
        (
            {"metric": LinearMetric(np.ones((4097, 1)))},
            "vectors of up to 4096 components: got 4097",
        ),
    ],
)
def test_what_a_search_engine_refuses_is_refused_here(tmp_path, change, message):
    given = {"metric": LinearMetric([[1.0]]), "vectors": [[1.0]], **change}
    with pytest.raises(ValueError, match=message):
        to_bulk(path=tmp_path / "x", **given)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- ids beside a file


def test_ids_are_those_of_the_index_that_is_read(X, tmp_path):
    pytest.importorskip("faiss")
    metric = make_metric("linear")
    path = tmp_path / "i"
    to_faiss(metric, X[:20], path, ids=[f"old {i}" for i in range(20)])
    old = path.read_bytes()
    (beside,) = tmp_path.glob("i.ids-*")
    names = beside.read_bytes()
    to_faiss(metric, X[:20], path, ids=[f"new {i}" for i in range(20)])
    index, items = read_faiss(path)
    assert items.names(index.search(X[:1], 1)[1]) == [["new 0"]]
    # An index without its ids is not read with those of another.
    path.write_bytes(old)
    with pytest.raises(FileNotFoundError):
        read_faiss(path)
    beside.write_bytes(names)
    index, items = read_faiss(path)
    assert items.names(index.search(X[:2], 30)[1])[1][0] == "old 1"
    with pytest.raises(ValueError, match="key must be one of this index: got 3"):
        items.row(3)
    to_faiss(metric, X[:20], path)
    with pytest.raises(ValueError, match="index written with ids: it has none"):
        read_faiss(path)
    with pytest.raises(ValueError, match="beside an index file: pass its path"):
        to_faiss(metric, X[:2], ids=["a", "b"])


def test_an_index_that_is_replaced_while_it_is_read_is_read_again(
    X, tmp_path, monkeypatch
):
    faiss = pytest.importorskip("faiss")
    metric = make_metric("linear")
    path = tmp_path / "i"
    to_faiss(metric, X[:20], path, ids=[f"old {i}" for i in range(20)])
    read, n_read = faiss.read_index, []

    def replaced_then(name):
        index = read(name)
        if not n_read:
            to_faiss(metric, X[:20], path, ids=[f"new {i}" for i in range(20)])
        n_read.append(name)
        return index

    monkeypatch.setattr(faiss, "read_index", replaced_then)
    index, items = read_faiss(path)
    assert len(n_read) == 2
    assert items.names(index.search(X[:1], 1)[1]) == [["new 0"]]


def test_equal_exports_to_a_file_are_equal(X, tmp_path):
    pytest.importorskip("faiss")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        to_faiss(make_metric("linear"), X[:20], tmp_path / name / "i", ids=range(20))
    files = [sorted((tmp_path / name).iterdir()) for name in ("a", "b")]
    assert [f.name for f in files[0]] == [f.name for f in files[1]]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()


# ---------------------------------------------------------------------- similarity


def unequal_lengths(vectors, seed):
    """The same directions, with lengths from 0.5 to 20."""
    lengths = np.random.default_rng(seed).uniform(0.5, 20, size=(len(vectors), 1))
    return (vectors / np.linalg.norm(vectors, axis=1)[:, None] * lengths).astype("f4")


@pytest.fixture(scope="module")
def long_X(X):
    return unequal_lengths(X[:800], 4)


@pytest.fixture(scope="module")
def long_Q(Q):
    return unequal_lengths(Q[:40], 5)


@pytest.fixture(
    params=[
        *("unchanged cosine", "unchanged dot", "unchanged euclidean"),
        *("linear cosine", "bilinear cosine", "asymmetric cosine", "asymmetric"),
    ]
)
def any_metric(request):
    kind, _, similarity = request.param.partition(" ")
    if kind == "unchanged":
        return unchanged_metric(24, similarity)
    metric = make_metric(kind)
    if not similarity:
        return metric
    arrays = {name: getattr(metric, name) for name in metric.arrays}
    return type(metric)(**arrays, similarity=similarity)


def test_faiss_under_each_similarity(any_metric, long_X, long_Q, tmp_path):
    faiss = pytest.importorskip("faiss")
    to_faiss(any_metric, long_X, tmp_path / "f", block_size=300)
    index = faiss.read_index(str(tmp_path / "f"))
    assert_same_lists(index.search(long_Q, K)[1], any_metric, long_Q, long_X)
    inner = index.metric_type == faiss.METRIC_INNER_PRODUCT
    assert inner == any_metric.inner_product


@pytest.mark.parametrize("index_kind", ["hnsw", "ivf"])
def test_approximate_faiss_under_the_cosine(long_X, long_Q, index_kind):
    pytest.importorskip("faiss")
    metric = unchanged_metric(24, "cosine")
    index = to_faiss(metric, long_X, index=index_kind, queries=long_Q)
    assert recall(index.search(long_Q, K)[1], metric, long_Q, long_X) >= 0.99


def test_onnx_and_npy_under_each_similarity(any_metric, long_X, long_Q, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    to_npy(any_metric, long_X, tmp_path / "items.npy", side="items", block_size=300)
    model = to_onnx(any_metric, side="queries").SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (queries,) = session.run(None, {"vectors": long_Q})
    notes = session.get_modelmeta().custom_metadata_map
    assert notes["similarity"] == any_metric.similarity
    items = np.load(tmp_path / "items.npy").astype(float)
    nearness = queries @ items.T
    if notes["search"] == "Euclidean distance":
        nearness = -((queries[:, None] - items) ** 2).sum(axis=2)
    ranked = np.argsort(-nearness, axis=1)[:, :K]
    assert_same_lists(ranked, any_metric, long_Q, long_X)


def test_a_zero_vector_stays_zero_in_onnx():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = to_onnx(unchanged_metric(24, "cosine"), side="queries").SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (mapped,) = session.run(None, {"vectors": np.zeros((1, 24), dtype="f4")})
    np.testing.assert_array_equal(mapped, 0)


def test_query_side_search_under_each_similarity(any_metric, long_X, long_Q, tmp_path):
    items, query_metric = to_query_side(any_metric, long_X, tmp_path / "i.npy")
    queries = query_metric.embed_queries(long_Q.astype(float))
    ranked = by_inner_product(queries, items.astype(float))
    assert_same_lists(ranked, any_metric, long_Q, long_X, rtol=1e-3)
    ranking = query_metric.rank(long_Q.astype(float), items.astype(float), K)
    assert recall(ranking.items.reshape(-1, K), any_metric, long_Q, long_X) > 0.99
    if any_metric.similarity == "cosine":
        lengths = np.linalg.norm(items, axis=1)
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-5)


def test_a_map_of_the_queries_searches_unmapped_items_by_cosine(long_X, long_Q):
    maps = np.random.default_rng(0).standard_normal((24, 24)), np.eye(24)
    metric = BilinearMetric(*maps, similarity="cosine")
    store = Index(long_X, similarity="cosine")
    lists = store.rank(metric.embed_queries(long_Q), K).items.reshape(-1, K)
    assert_same_lists(lists, metric, long_Q, long_X)


def test_qdrant_under_each_similarity(any_metric, long_X, long_Q):
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(":memory:")
    to_qdrant(any_metric, long_X, client)
    lists = []
    for vector in any_metric.embed_queries(long_Q):
        points = client.query_points("items", vector, limit=K).points
        lists.append([point.id for point in points])
    assert_same_lists(lists, any_metric, long_Q, long_X)


def test_pgvector_under_each_similarity(any_metric, long_X, long_Q, connection):
    sql = to_pgvector(any_metric, long_X, connection)
    assert ("<#>" if any_metric.inner_product else "<->") in sql
    lists = fetch_lists(connection, sql, any_metric, long_Q)
    assert_same_lists(lists, any_metric, long_Q, long_X)


def test_a_zero_vector_is_named_by_its_row_in_the_file(long_X, tmp_path):
    broken = long_X.copy()
    broken[650] = 0
    np.save(tmp_path / "X.npy", broken)
    for metric in (
        unchanged_metric(24, "cosine"),
        LinearMetric(np.eye(24), similarity="cosine"),
    ):
        for export in (partial(to_npy, side="items"), to_query_side, to_sql):
            with pytest.raises(ValueError, match=r"X\.npy must not .* row 650 is zero"):
                export(metric, tmp_path / "X.npy", tmp_path / "out.npy", block_size=300)


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("module", "extra", "export"),
    [
        ("faiss", "faiss", to_faiss),
        ("onnx", "onnx", lambda metric, X: to_onnx(metric)),
        ("psycopg", "pgvector", partial(to_pgvector, connection="")),
        ("lancedb", "lancedb", partial(to_lancedb, database="no")),
        ("sqlite_vec", "sqlite-vec", partial(to_sqlite_vec, path="no")),
        ("duckdb", "duckdb", partial(to_duckdb, path="no")),
        ("usearch.index", "usearch", partial(to_usearch, path="no")),
    ],
)
def test_a_missing_package_names_the_extra(X, monkeypatch, module, extra, export):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    message = rf"{package}: pip install 'rankspace\[{extra}\]'"
    with pytest.raises(ImportError, match=message):
        export(make_metric("linear"), X)
    assert not Path("no").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"vectors": np.ones((3, 5))},
            "vectors must have 24 features as the metric takes: got 5",
        ),
        (
            {"vectors": np.ones(3)},
            r"vectors must hold a matrix of real numbers.*shape \(3,\)",
        ),
        ({"vectors": np.full((3, 24), np.nan)}, "vectors must hold finite numbers"),
        ({"vectors": np.ones((0, 24))}, "vectors must hold at least one vector"),
        (
            {"metric": "euclidean"},
            "metric must be a LinearMetric, BilinearMetric or AsymmetricMetric.*got str",
        ),
        ({"block_size": 0}, "block_size must be at least 1 row: got 0"),
    ],
)
def test_wrong_vectors_leave_no_file(tmp_path, change, message):
    given = {"metric": make_metric("linear"), "vectors": np.ones((3, 24)), **change}
    for export in (to_query_side, to_npy, to_faiss, to_sql):
        if export is to_faiss:
            pytest.importorskip("faiss")
        with pytest.raises(ValueError, match=message):
            export(path=tmp_path / "out", **given)
    assert not list(tmp_path.iterdir())


def shared(found, expected):
    """Mean share of the items of each list that are in the other."""
    pairs = zip(np.asarray(found), np.asarray(expected), strict=True)
    return np.mean([np.isin(row, other).mean() for row, other in pairs])


def by_storage(metric, X, Q, storage, k=K):
    ranking = QuantisedMetric(metric, X, storage).index(X).rank(Q, k)
    return ranking.items.reshape(-1, k)


def rescored(candidates, metric, X, Q):
    """The ten nearest of the candidates by their full vectors."""
    lists = [np.asarray(row) for row in candidates]
    return Index(X, metric).rerank(Q, lists).top(K).items.reshape(-1, K)


LEAST_SHARED = {"float16": 0.99, "int8": 0.95}


@pytest.mark.parametrize("storage", ["float16", "int8", "binary"])
def test_faiss_keeps_fewer_bits(metric, X, Q, storage, tmp_path):
    """The lists of FAISS are those of a search among rounded vectors."""
    faiss = pytest.importorskip("faiss")
    small = metric.reduce(X, 8)
    index = to_faiss(small, X, tmp_path / "index.faiss", storage=storage)
    again = faiss.read_index(str(tmp_path / "index.faiss"))
    found = index.search(Q, K)[1]
    np.testing.assert_array_equal(found, again.search(Q, K)[1])
    store = faiss.downcast_index(again.index)
    exact = by_storage(small, X, Q, "float32")
    if storage == "binary":
        assert store.k_factor == 4
        by_signs = shared(by_storage(small, X, Q, storage), exact)
        assert shared(found, exact) > by_signs
        return
    assert shared(found, by_storage(small, X, Q, storage)) >= LEAST_SHARED[storage]
    assert store.code_size == {"float16": 16, "int8": 8}[storage]
    candidates = index.search(Q, 4 * K)[1]
    assert shared(rescored(candidates, small, X, Q), exact) >= 0.99


@pytest.fixture
def new_pgvector(connection):
    """A server whose pgvector has types of fewer bits."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    sql = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    version = connection.execute(sql).fetchone()[0]
    connection.commit()
    if version < "0.7":
        pytest.skip(f"needs pgvector 0.7: got {version}")
    return connection


def assert_best_of_candidates(found, metric, X, Q):
    """The ten nearest of 40 items that agree with most signs of the query, however ties fall."""
    signs = [side > 0 for side in (metric.embed_queries(Q), metric.embed_items(X))]
    distances = metric.distances(Q, X)
    for query, items in enumerate(found):
        differing = (signs[0][query] != signs[1]).sum(axis=1)
        last = np.sort(differing)[4 * K - 1]
        assert differing[items].max() <= last
        own = distances[query]
        assert (np.diff(own[items]) >= -1e-4 * np.abs(own).max()).all()
        nearer = np.flatnonzero((differing < last) & (own < own[items[-1]] - 1e-3))
        assert np.isin(nearer, items).all()


@pytest.mark.parametrize("storage", ["float16", "binary"])
@pytest.mark.parametrize("index", ["exact", "hnsw"])
def test_pgvector_keeps_fewer_bits(
    metric, X, Q, new_pgvector, server, tmp_path, storage, index
):
    small = metric.reduce(X, 8)
    # Products of blocks of other sizes may differ in the last bit.
    settings = {"storage": storage, "index": index, "block_size": 700}
    sql = to_pgvector(small, X, new_pgvector, **settings)
    new_pgvector.execute("SET hnsw.ef_search = 400")
    found = fetch_lists(new_pgvector, sql, small, Q)
    if storage == "float16":
        assert shared(found, by_storage(small, X, Q, storage)) >= 0.95
    elif index == "exact":
        assert_best_of_candidates(found, small, X, Q)
    again = to_sql(small, X, tmp_path / "s.sql", table="things", **settings)
    assert run_psql(server, tmp_path / "s.sql").returncode == 0
    same = "SELECT count(*) FROM items JOIN things USING (id, embedding)"
    assert new_pgvector.execute(same).fetchone() == (len(X),)
    assert again.count("$1::") == 1


def test_a_graph_of_fewer_bits_takes_more_components(new_pgvector):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2500), dtype="f4")
    metric = unchanged_metric(2500, "dot", X.dtype)
    for storage in ("float16", "binary"):
        sql = to_pgvector(
            metric, X, new_pgvector, storage=storage, index="hnsw", replace=True
        )
        new_pgvector.execute("SET enable_seqscan = off")
        query = (str(X[0].tolist()), 3)
        plan = new_pgvector.execute(f"EXPLAIN {sql}", query).fetchall()
        assert "items_rankspace_new" in str(plan)
        assert new_pgvector.execute(sql, query).fetchone()[0] == 0
    with pytest.raises(ValueError, match="up to 2000 components stored as"):
        to_pgvector(metric, X, new_pgvector, index="hnsw", replace=True)


def test_an_old_pgvector_is_named(X, connection):
    class Old:
        def execute(self, statement):
            pass

        def fetchone(self):
            return ("0.6.2",)

    from rankspace.export.pgvector import _check_version

    _check_version(Old(), "float32")
    with pytest.raises(
        ValueError, match=r"needs pgvector 0\.7 or later: .* has 0\.6\.2"
    ):
        _check_version(Old(), "binary")


@pytest.mark.parametrize("storage", ["float32", "float16", "int8", "binary"])
def test_qdrant_is_told_how_to_quantise(X, Q, storage):
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(":memory:")
    created = []
    create = client.create_collection
    client.create_collection = lambda *given, **options: (
        created.append(options) or create(*given, **options)
    )
    metric = make_metric("bilinear").reduce(X, 8)
    to_qdrant(metric, X[:300], client, storage=storage)
    (options,) = created
    datatype = options["vectors_config"].datatype
    assert datatype == ("float16" if storage == "float16" else None)
    quantisation = options["quantization_config"]
    kinds = {"int8": "scalar", "binary": "binary"}
    assert (quantisation is None) == (storage not in kinds)
    if quantisation is not None:
        assert kinds[storage] in quantisation.model_dump(exclude_none=True)
    found = [
        [point.id for point in client.query_points("items", vector, limit=K).points]
        for vector in metric.embed_queries(Q[:20])
    ]
    assert shared(found, by_storage(metric, X[:300], Q[:20], "float32")) >= 0.99


@pytest.mark.parametrize("export", [to_sql, to_qdrant])
def test_numbers_beyond_half_precision_are_named(X, export, tmp_path):
    metric = LinearMetric(1e6 * np.eye(24))
    place = tmp_path / "s.sql"
    if export is to_qdrant:
        place = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    with pytest.raises(ValueError, match="half precision needs components up to"):
        export(metric, X, place, storage="float16")


def test_wrong_storage_of_faiss_is_named(metric, X):
    pytest.importorskip("faiss")
    with pytest.raises(
        ValueError, match="storage must be one of float32, float16, int8, binary"
    ):
        to_faiss(metric, X, storage="int4")
    with pytest.raises(
        ValueError, match="can only be used with index 'exact': got 'hnsw'"
    ):
        to_faiss(metric, X, storage="int8", index="hnsw")
