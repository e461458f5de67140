"""Exports by the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from rankspace import Index, LinearMetric, load_metric
from rankspace.cli import main as cli
from rankspace.export import read_faiss, to_faiss
from vector_stores import STORES
from vector_writers import write_table

K = 10
TABLES = ("qdrant", "lancedb", "sqlite-vec", "duckdb")


def answer(capsys, *words):
    assert cli.main(["export", "m", *" ".join(words).split()]) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def files(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = rng.standard_normal((400, 8)).astype(np.float32)
    np.save("X.npy", X)
    metric = LinearMetric(rng.standard_normal((5, 8)))
    metric.save("m")
    (tmp_path / "ids").write_text("\n".join(f"d{i}" for i in range(400)))
    return metric, X


def expected(files):
    metric, X = files
    return Index(X, metric).rank(X[:20], K).items.reshape(-1, K)


@pytest.mark.parametrize("index", ["exact", "hnsw", "ivf"])
def test_to_faiss(files, capsys, index):
    faiss = pytest.importorskip("faiss")
    text = answer(capsys, "--to faiss --vectors X.npy --output i --index", index)
    assert "search: faiss.read_index('i')" in text
    found = faiss.read_index("i").search(files[1][:20], K)[1]
    shared = [len({*a} & {*b}) for a, b in zip(found, expected(files), strict=True)]
    assert np.mean(shared) >= 0.99 * K


def test_to_npy_and_query_side(files, capsys):
    metric, X = files
    found = json.loads(answer(capsys, "--to npy --vectors X.npy --output x.npy --json"))
    assert found == {"to": "npy", "output": "x.npy", "search": "Euclidean distance"}
    np.testing.assert_allclose(
        np.load("x.npy"), metric.transform(X), rtol=1e-4, atol=1e-5
    )
    answer(capsys, "--to query-side --vectors X.npy --output items.npy")
    asked = load_metric("items.queries.safetensors")
    ranking = Index(np.load("items.npy"), asked).rank(X[:20], K)
    np.testing.assert_array_equal(ranking.items.reshape(-1, K), expected(files))


def test_ids_that_no_format_takes_are_refused_and_rows_without_ids_named(capsys):
    for target in ("npy", "query-side", "onnx"):
        words = f"export m --to {target} --vectors X.npy --output o --ids ids"
        assert cli.main(words.split()) == 2
        told = capsys.readouterr().err
        assert "items have row numbers from 0, in the order of the vectors." in told
    words = "--to pgvector --vectors X.npy --output o.sql"
    sentence = "items are named by row numbers, from 0, unless --ids names them"
    assert sentence in answer(capsys, words)
    assert sentence not in answer(capsys, words, "--ids ids")


def test_to_onnx(capsys):
    onnx = pytest.importorskip("onnx")
    answer(capsys, "--to onnx --output map.onnx")
    assert [node.op_type for node in onnx.load("map.onnx").graph.node] == ["MatMul"]


def test_to_pgvector_as_a_script(tmp_path, capsys):
    words = "--to pgvector --vectors X.npy --ids ids --table docs"
    text = answer(capsys, words, "--index hnsw --output docs.sql")
    assert 'SELECT id FROM "docs" ORDER BY embedding <-> $1::vector LIMIT $2' in text
    script = (tmp_path / "docs.sql").read_text()
    assert script.count("\n(E'd") == 400
    assert 'CREATE INDEX ON "docs" USING hnsw (embedding vector_l2_ops);' in script


def test_to_qdrant_in_a_folder(files, capsys):
    qdrant = pytest.importorskip("qdrant_client")
    metric, X = files
    np.save("few.npy", X[:12])
    words = "--to qdrant --vectors few.npy --output store --table docs"
    answer(capsys, words)
    assert cli.main(["export", "m", *words.split()]) == 2
    assert "docs exists. Pass replace=True" in capsys.readouterr().err
    answer(capsys, words, "--replace")
    client = qdrant.QdrantClient(path="store")
    found = client.query_points("docs", metric.transform(X[:1])[0], limit=K).points
    client.close()
    assert [p.id for p in found] == Index(X[:12], metric).rank(X[:1], K).items.tolist()


@pytest.fixture
def collection(files, tmp_path):
    """A BEIR folder with titles, metadata and vectors."""
    folder = tmp_path / "collection"
    folder.mkdir()
    records = [
        {"_id": f"d {i}", "title": f"T{i}", "text": "\u4e00'", "metadata": {"year": i}}
        for i in range(30)
    ]
    lines = "\n".join(map(json.dumps, records))
    (folder / "corpus.jsonl").write_text(lines)
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "x"}')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td 3\t1")
    np.save(folder / "corpus.npy", files[1][:30])
    np.save(folder / "queries.npy", files[1][:1])
    return {record.pop("_id"): record for record in records}


@pytest.mark.parametrize("target", ["faiss", "usearch", *TABLES])
def test_texts_and_metadata_of_a_folder_travel_along(
    files, collection, capsys, target, tmp_path
):
    pytest.importorskip(STORES[target].package)
    store = STORES[target](tmp_path, "folder")
    place = str(store.path)
    store.close()
    words = f"--to {target} --vectors collection --output {place}"
    answer(capsys, words)
    if target in TABLES:
        assert cli.main(["export", "m", *words.split()]) == 2
        assert "items exists. Pass replace=True" in capsys.readouterr().err
        answer(capsys, words, "--replace")
    store = STORES[target](tmp_path, "folder")
    metric, X = files
    names = list(collection)
    wanted = Index(X[:30], metric, ids=names).rank(X[:1], K).ids(0)
    assert store.search(metric, X[:1], K) == [wanted]
    assert {name: store.payload(name) for name in names[:4]} == {
        name: collection[name] for name in names[:4]
    }
    store.close()


def test_to_fewer_bits(files, capsys):
    words = "--to pgvector --vectors X.npy --output s.sql --storage float16"
    assert "::halfvec LIMIT" in answer(capsys, words)
    pytest.importorskip("faiss")
    answer(capsys, "--to faiss --vectors X.npy --output i --storage binary")


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_to_a_bulk_file(files, collection, capsys, target):
    words = f"--to {target} --vectors collection --output items.ndjson --table docs"
    text = answer(capsys, words)
    assert "index created by items.index.json" in text
    with open("items.index.json") as stream:
        assert "embedding" in json.load(stream)["mappings"]["properties"]
    with open("items.ndjson") as stream:
        lines = stream.readlines()
    assert len(lines) == 60
    assert json.loads(lines[6]) == {"index": {"_index": "docs", "_id": "d 3"}}
    assert json.loads(lines[7])["payload"] == collection["d 3"]


def test_to_a_file_of_milvus(files, collection, capsys):
    """Row-based JSON and the request of the collection, as in the documentation of Milvus 2."""
    answer(capsys, "--to milvus --vectors collection --output items.json --table docs")
    with open("items.json") as stream:
        rows = json.load(stream)["rows"]
    assert [row["id"] for row in rows] == list(collection)
    assert rows[3]["payload"] == collection["d 3"]
    with open("items.index.json") as stream:
        body = json.load(stream)
    fields = {field["fieldName"]: field for field in body["schema"]["fields"]}
    assert {name: field["dataType"] for name, field in fields.items()} == {
        "id": "VarChar",
        "embedding": "FloatVector",
        "payload": "JSON",
    }
    width = len(rows[0]["embedding"])
    assert fields["embedding"]["elementTypeParams"] == {"dim": width}
    assert body["collectionName"] == "docs"
    assert set(rows[0]) == set(fields)
    answer(capsys, "--to milvus --vectors X.npy --output rows.json")
    with open("rows.json") as stream:
        assert [row["id"] for row in json.load(stream)["rows"]] == list(range(400))


def test_a_data_set_brings_its_vectors(capsys):
    LinearMetric(np.ones((2, 13))).save("m")
    answer(capsys, "--to npy --vectors wine --output wine.npy")
    assert np.load("wine.npy").shape == (178, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--to faiss --output i", "--to faiss needs items: pass --vectors"),
        ("--to npy --vectors X.npy", "--to npy needs --output."),
        ("--to pgvector --vectors X.npy", "needs either --output or --url"),
        ("--to onnx --url x", "--url can only be used with --to pgvector or qdrant"),
        ("--to onnx --output no/where", "does not exist: create it first"),
        ("--to npy --vectors wine --output o --ids ids", "--ids cannot be used"),
        ("--to npy --vectors wine --output o", "8 features as the metric takes"),
        (
            "--to pgvector --vectors X.npy --output o --storage int8",
            "storage must be one of float32, float16, binary: got 'int8'",
        ),
        (
            "--to npy --vectors X.npy --output o --storage int8",
            "--storage can only be used with --to faiss, pgvector or qdrant",
        ),
        (
            "--to pgvector --vectors X.npy --output o --index ivf",
            "index must be one of exact, hnsw: got 'ivf'",
        ),
        (
            "--to pgvector --vectors X.npy --url postgresql:///?host=/nowhere",
            "PostgreSQL says: connection",
        ),
    ],
)
def test_export_refuses(capsys, words, message):
    if "--url" in words and "pgvector" in words:
        pytest.importorskip("psycopg")
    assert cli.main(["export", "m", *words.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("source", ["parts", "parts/*.parquet"])
def test_ids_and_texts_of_tables_travel_along(files, capsys, tmp_path, source):
    pytest.importorskip("sqlite_vec")
    metric, X = files
    names, texts = [f"d{i}" for i in range(40)], [f"t{i}" for i in range(39)] + [None]
    columns = {"id": names, "v": list(X[:40]), "text": texts, "n": range(40)}
    (tmp_path / "parts").mkdir()
    for start in (0, 25):
        part = {name: list(c)[start : start + 25] for name, c in columns.items()}
        write_table(tmp_path / "parts" / f"{start}.parquet", part)
    answer(capsys, f"--to sqlite-vec --vectors {source} --output items.db")
    store = STORES["sqlite-vec"](".", None)
    wanted = Index(X[:40], metric, ids=names).rank(X[:2], K)
    assert store.search(metric, X[:2], K) == [wanted.ids(0), wanted.ids(1)]
    assert store.payload("d7") == {"text": "t7"}
    assert store.payload("d39") == {}
    to_faiss(metric, source, "named")
    assert read_faiss("named")[1].ids == names
    assert cli.main(["rank", source, "--metric", "m", "--output", "run"]) == 0
    assert (tmp_path / "run").read_text().startswith("d0 Q0 d")


@pytest.mark.parametrize("target", ["faiss", "usearch", "lancedb", "sqlite-vec"])
def test_ids_of_a_file_are_those_of_the_store(files, capsys, target):
    store = STORES[target](".", None)
    pytest.importorskip(store.package)
    place = store.path
    answer(capsys, f"--to {target} --vectors X.npy --ids ids --output {place}")
    metric, X = files
    names = [[f"d{i}" for i in row] for row in expected(files)]
    assert store.search(metric, X[:20], K) == names


@pytest.mark.parametrize(
    ("target", "program"), [("sqlite-vec", "SQLite"), ("duckdb", "DuckDB")]
)
def test_a_file_that_is_no_database_is_a_sentence_of_its_program(
    capsys, target, program
):
    pytest.importorskip(target.replace("-", "_"))
    content = b"no database " * 1000
    Path("x").write_bytes(content)
    assert cli.main(f"export m --to {target} --vectors X.npy --output x".split()) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"rankspace export: {program} says: ")
    assert Path("x").read_bytes() == content


def test_an_error_of_rankspace_is_not_told_as_one_of_the_store(capsys, monkeypatch):
    pytest.importorskip("sqlite_vec")

    def fail(*arguments, **options):
        raise KeyError("ours")

    monkeypatch.setattr("rankspace.export.to_sqlite_vec", fail)
    words = "export m --to sqlite-vec --vectors X.npy --output x"
    assert cli.main(words.split()) == 70
    assert "a defect of rankspace" in capsys.readouterr().err
