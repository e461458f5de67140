import gzip
import json
import shutil

import numpy as np
import pytest

from rankspace.datasets import read_beir
from vector_writers import write_vectors

DOCUMENTS = [
    {"_id": "d1", "title": "One", "text": "first"},
    {"_id": "d2", "title": "", "text": "second"},
    {"_id": 3, "text": "third"},
]
QUERIES = [{"_id": q, "text": f"about {q}"} for q in ("q1", "q2", "q3", "q4")]
HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path):
    """Three documents, four queries of which one has no judgment, two splits."""
    folder = tmp_path / "toy"
    (folder / "qrels").mkdir(parents=True)
    write_records(folder / "corpus.jsonl", DOCUMENTS)
    write_records(folder / "queries.jsonl", QUERIES)
    (folder / "qrels" / "train.tsv").write_text(
        HEADER + "q4\td1\t2\nq1\td2\t1\nq1\t3\t0\n"
    )
    (folder / "qrels" / "test.tsv").write_text(HEADER + "q3\t3\t1\n")
    return folder


def write_records(path, records):
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(
        gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    )


def add_vectors(folder, corpus=(3, 4), queries=(4, 4), dtype=np.float16):
    for stem, shape in (("corpus", corpus), ("queries", queries)):
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        np.save(folder / f"{stem}_small.npy", values)


def test_texts_and_judgments(folder):
    dataset = read_beir(folder)
    assert dataset.name == "toy"
    assert dataset.X is None
    assert dataset.queries is None
    assert dataset.texts == ["One first", "second", "third"]
    assert dataset.query_texts == ["about q1", "about q3", "about q4"]
    assert dataset.relevance.query_ids.tolist() == ["q1", "q3", "q4"]
    assert dataset.relevance.item_ids.tolist() == ["d1", "d2", "3"]
    assert [dataset.relevance.relevant(q).tolist() for q in range(3)] == [[1], [2], [0]]
    assert {k: v.tolist() for k, v in dataset.splits.items()} == {
        "test": [1],
        "train": [0, 2],
    }


def test_part_keeps_all_documents(folder):
    part = read_beir(folder).part("train")
    assert part.query_texts == ["about q1", "about q4"]
    assert len(part.texts) == part.relevance.n_items == 3
    assert part.relevance.query_ids.tolist() == ["q1", "q4"]


def test_one_split(folder):
    dataset = read_beir(folder, split="test")
    assert dataset.query_texts == ["about q3"]
    assert list(dataset.splits) == ["test"]


def test_unknown_split(folder):
    with pytest.raises(ValueError, match="split must be one of test, train: got 'dev'"):
        read_beir(folder, split="dev")


def test_qrels_at_the_root(folder):
    (folder / "qrels" / "train.tsv").rename(folder / "qrels.tsv")
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    dataset = read_beir(folder)
    assert dataset.splits == {}
    assert dataset.query_texts == ["about q1", "about q4"]


def test_packed_files(folder):
    expected = read_beir(folder).texts
    (folder / "corpus.jsonl").unlink()
    write_records(folder / "corpus.jsonl.gz", DOCUMENTS)
    assert read_beir(folder).texts == expected


def test_embeddings_of_judged_queries(folder):
    add_vectors(folder)
    dataset = read_beir(folder)
    assert dataset.X.dtype == dataset.queries.dtype == np.float32
    np.testing.assert_array_equal(dataset.queries[:, 0], [0, 8, 12])
    np.testing.assert_array_equal(dataset.part("test").queries[:, 0], [8])


def test_double_precision_stays(folder):
    add_vectors(folder, dtype=np.float64)
    assert read_beir(folder).X.dtype == np.float64


def test_choice_of_embeddings(folder):
    add_vectors(folder)
    np.save(folder / "corpus_large.npy", np.ones((3, 4)))
    with pytest.raises(
        ValueError, match=r"got corpus_large.npy, corpus_small.npy, queries_small"
    ):
        read_beir(folder)
    dataset = read_beir(
        folder, embeddings=("corpus_large.npy", folder / "queries_small.npy")
    )
    assert dataset.X.sum() == 12


def test_embeddings_of_one_side(folder):
    add_vectors(folder)
    (folder / "queries_small.npy").unlink()
    with pytest.raises(
        ValueError, match=r"one queries\*.npy, or .npz or .safetensors: got corpus_sm"
    ):
        read_beir(folder)


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        (
            {"corpus": (2, 4)},
            r"one row for each of 3 lines of the texts: got shape \(2, 4\)",
        ),
        (
            {"queries": (3, 4)},
            r"one row for each of 4 lines of the texts: got shape \(3, 4\)",
        ),
        (
            {"corpus": (3,)},
            r"must hold a matrix of real numbers.*got float16 of shape \(3,\)",
        ),
        ({"queries": (4, 5)}, "same number of columns: got 4 and 5"),
    ],
)
def test_bad_embeddings(folder, shapes, what):
    add_vectors(folder, **shapes)
    with pytest.raises(ValueError, match=what):
        read_beir(folder)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "line 2 must be a JSON object: Expecting"),
        ("[1]", "line 2 must be an object with _id and text: got"),
        ('{"_id": "d2"}', "line 2 must be an object with _id and text: got"),
    ],
)
def test_malformed_record(folder, line, what):
    (folder / "corpus.jsonl").write_text(f'{{"_id": "d1", "text": "x"}}\n{line}\n')
    with pytest.raises(ValueError, match=f"corpus.jsonl, {what}"):
        read_beir(folder)


def test_empty_corpus(folder):
    (folder / "corpus.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"corpus.jsonl must have at least one line"):
        read_beir(folder)


def test_repeated_id(folder):
    write_records(folder / "corpus.jsonl", [*DOCUMENTS, DOCUMENTS[0]])
    with pytest.raises(ValueError, match="item_ids must not repeat a name"):
        read_beir(folder)


@pytest.mark.parametrize(
    ("line", "what"), [("q9\td1\t1", "'q9'"), ("q1\td9\t1", "'d9'")]
)
def test_unknown_names(folder, line, what):
    (folder / "qrels" / "test.tsv").write_text(HEADER + line)
    with pytest.raises(ValueError, match=f"Only in the judgments: {what}"):
        read_beir(folder)
    assert read_beir(folder, unknown="drop").query_texts[0] == "about q1"


def test_two_grades_of_a_pair(folder):
    (folder / "qrels" / "test.tsv").write_text(HEADER + "q1\td2\t2\n")
    with pytest.raises(ValueError, match="query q1 and document d2 have 2 and 1"):
        read_beir(folder)


def test_malformed_qrels(folder):
    (folder / "qrels" / "test.tsv").write_text(HEADER + "q1\td2\tx\n")
    with pytest.raises(
        ValueError, match=r"test.tsv, line 2 must end in a grade: got 'x'"
    ):
        read_beir(folder)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_missing_texts(folder, name):
    (folder / name).unlink()
    with pytest.raises(
        FileNotFoundError, match=f"must hold {name} or {name}.gz: got neither"
    ):
        read_beir(folder)


def test_missing_judgments(folder):
    for path in (folder / "qrels").iterdir():
        path.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"must hold qrels/<split>.tsv or qrels.tsv"
    ):
        read_beir(folder)


def test_cut_corpus(folder):
    (folder / "corpus.jsonl").unlink()
    path = folder / "corpus.jsonl.gz"
    write_records(path, DOCUMENTS * 100)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match="damaged or cut short after line"):
        read_beir(folder)


def test_everything_may_be_gzipped(folder):
    plain = read_beir(folder)
    for path in [*folder.glob("*.jsonl"), *folder.glob("qrels/*.tsv")]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = read_beir(folder)
    assert packed.texts == plain.texts
    assert list(packed.splits) == list(plain.splits)
    np.testing.assert_array_equal(packed.relevance.items, plain.relevance.items)


def test_one_gzipped_file_of_judgments(folder):
    judged = read_beir(folder)
    lines = [
        f"{judged.relevance.query_ids[q]}\t{judged.relevance.item_ids[i]}\t1"
        for q in range(judged.relevance.n_queries)
        for i in judged.relevance.relevant(q)
    ]
    shutil.rmtree(folder / "qrels")
    (folder / "qrels.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    found = read_beir(folder)
    assert found.splits == {}
    assert found.relevance.n_relevant.sum() == len(lines)


@pytest.mark.parametrize("kind", ["npz", "safetensors", "parquet"])
def test_embeddings_in_other_files(folder, kind):
    X, Q = np.arange(12.0).reshape(3, 4), np.ones((4, 4))
    for stem, vectors in (("corpus", X), ("queries", Q)):
        write_vectors(folder / f"{stem}.{kind}", vectors)
    chosen = ("corpus.parquet", "queries.parquet") if kind == "parquet" else None
    np.testing.assert_array_equal(read_beir(folder, embeddings=chosen).X, X)
