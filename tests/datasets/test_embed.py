"""Embedding texts: files for `tune`, and runs that go on where they stopped."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import types
import zlib
from pathlib import Path

import numpy as np
import pytest

from rankspace.cli import main as cli
from rankspace.datasets import _embed, embed_beir, embed_texts, read_beir, read_texts

WIDTH = 6


class Model:
    """A stand-in for a SentenceTransformer: words are hashed, and prompts count as words."""

    def __init__(self, name="tiny", device=None, fail_after=None):
        self.name = name
        self.n_texts = 0
        self.fail_after = fail_after

    def encode_query(self, texts, **options):
        return self._encode([f"query: {text}" for text in texts], **options)

    def encode_document(self, texts, **options):
        return self._encode([f"passage: {text}" for text in texts], **options)

    def _encode(self, texts, batch_size, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy
        assert not show_progress_bar
        if self.fail_after is not None and self.n_texts >= self.fail_after:
            raise KeyboardInterrupt
        self.n_texts += len(texts)
        return np.array([vector_of(f"{self.name} {text}") for text in texts], "f4")


def vector_of(text):
    """A twin of the model, for one text."""
    vector = np.zeros(WIDTH)
    for word in text.split():
        vector += np.random.default_rng(zlib.crc32(word.encode())).standard_normal(
            WIDTH
        )
    return vector


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "collection"
    place.mkdir()
    with gzip.open(place / "corpus.jsonl.gz", "wt") as stream:
        for i in range(300):
            record = {"_id": f"d{i}", "title": f"T{i}", "text": f"document {i} \u4e00"}
            stream.write(json.dumps(record) + "\n")
    lines = [json.dumps({"_id": f"q{i}", "text": f"question {i}"}) for i in range(7)]
    (place / "queries.jsonl").write_text("\n".join(lines))
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td3\t1")
    return place


def expected(name="tiny"):
    documents = [
        vector_of(f"{name} passage: T{i} document {i} \u4e00") for i in range(300)
    ]
    queries = [vector_of(f"{name} query: question {i}") for i in range(7)]
    return np.array(documents), np.array(queries)


def assert_embedded(folder, dtype=np.float32, rtol=1e-6, ending="", name="tiny"):
    for stem, wanted in zip(("corpus", "queries"), expected(name), strict=True):
        stored = np.load(folder / f"{stem}{ending}.npy")
        assert stored.dtype == dtype
        np.testing.assert_allclose(stored, wanted, rtol=rtol, atol=rtol)
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-6), ("float16", 4e-3)])
def test_a_folder_gets_the_vectors_that_are_read_with_it(folder, dtype, rtol):
    shares = []
    embed_beir(folder, Model(), dtype=dtype, batch_size=4, progress=shares.append)
    assert_embedded(folder, dtype, rtol)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) == 6
    dataset = read_beir(folder)
    assert dataset.X.shape == (300, WIDTH)
    np.testing.assert_allclose(
        dataset.queries[0], expected()[1][2], rtol=rtol, atol=rtol
    )


@pytest.mark.parametrize("stop", range(0, 320, 64))
def test_an_interrupted_run_goes_on(folder, stop):
    first = Model(fail_after=stop)
    (folder / "corpus.npy").write_bytes(b"of an earlier model")
    with pytest.raises(KeyboardInterrupt):
        embed_beir(folder, first, batch_size=4)
    assert (folder / "corpus.npy").read_bytes() == b"of an earlier model"
    partial = next(folder.glob(".corpus*"))
    if stop:
        with partial.open("ab") as stream:
            stream.write(b"cut")
    second = Model()
    embed_beir(folder, second, batch_size=4)
    assert_embedded(folder)
    # One text is embedded again, to see that the model is the same; the last step is a short one.
    done = min(stop, 300)
    assert second.n_texts == 307 - done + (done > 0)


def test_a_run_of_another_model_or_other_texts_does_not_go_on(folder):
    with pytest.raises(KeyboardInterrupt):
        embed_beir(folder, Model(fail_after=128), batch_size=4)
    other = Model("other")
    embed_beir(folder, other, batch_size=4)
    assert_embedded(folder, name="other")
    assert other.n_texts == 308
    for dtype in ("float16", "float32"):
        with pytest.raises(KeyboardInterrupt):
            embed_beir(folder, Model(fail_after=128), batch_size=4)
        n_texts = 307
        if dtype == "float32":
            (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "new"}')
            n_texts = 1 + 7
        model = Model()
        embed_beir(folder, model, batch_size=4, dtype=dtype)
        assert not list(folder.glob(".*"))
        assert model.n_texts == n_texts
        assert np.load(folder / "corpus.npy").dtype == dtype


def test_a_run_that_is_killed_goes_on(folder):
    script = f"""
import sys, os, signal
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_embed import Model, embed_beir
kill = lambda done: done > 0.4 and os.kill(os.getpid(), signal.SIGKILL)
embed_beir({str(folder)!r}, Model(), batch_size=4, progress=kill)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    model = Model()
    embed_beir(folder, model, batch_size=4)
    assert_embedded(folder)
    assert model.n_texts == 307 - 128 + 1


def npy_of(array, **changes):
    """The bytes of a .npy file whose header says something else."""
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, header | changes)
    return stream.getvalue() + array.tobytes()


CRAFTED = {
    "no width": {"shape": (300, 0)},
    "one dimension": {"shape": (300,)},
    "three dimensions": {"shape": (300, 6, 1)},
    "no dimension": {"shape": ()},
    "another width": {"shape": (300, 7)},
    "a width beyond the memory": {"shape": (300, 2**60)},
    "columns first": {"fortran_order": True},
    "objects": {"descr": "|O"},
    "another precision": {"descr": "<f8"},
}


@pytest.mark.parametrize("case", [*CRAFTED, "no header", "half a header", "more rows"])
def test_a_crafted_file_of_an_interrupted_run_does_not_go_on(folder, case):
    with pytest.raises(KeyboardInterrupt):
        embed_beir(folder, Model(fail_after=128), batch_size=4)
    partial = next(folder.glob(".corpus*"))
    rows = np.concatenate([expected()[0]] * 2).astype("f4")
    content = npy_of(rows, **CRAFTED.get(case, {"shape": (300, WIDTH)}))
    if case.endswith("header"):
        content = content[: {"no header": 0, "half a header": 40}[case]] + b"(" * 500
    partial.write_bytes(content)
    embed_beir(folder, Model(), batch_size=4)
    assert_embedded(folder)


def test_a_link_that_comes_with_a_folder_is_not_written_through(folder, tmp_path):
    if not hasattr(os, "O_NOFOLLOW"):
        pytest.skip("this system has no O_NOFOLLOW")
    with pytest.raises(KeyboardInterrupt):
        embed_beir(folder, Model(fail_after=128), batch_size=4)
    partial = next(folder.glob(".corpus*"))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    partial.unlink()
    partial.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        embed_beir(folder, Model())
    assert victim.read_text() == "precious"


def test_two_processes_do_not_write_to_one_file(folder, tmp_path):
    pytest.importorskip("fcntl")

    def again(done):
        with pytest.raises(ValueError, match="another process embeds the same texts"):
            embed_beir(folder, Model())

    embed_beir(folder, Model(), progress=again)
    assert_embedded(folder)


class Odd:
    def __init__(self, rows):
        self.rows = rows

    def encode_document(self, texts, **options):
        return self.rows(len(texts))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda n: np.full((n, 2), np.nan), "must give finite vectors"),
        (lambda n: np.full((n, 2), 1e6), "finite vectors: .* numbers beyond float16"),
        (lambda n: np.ones((n + 1, 2)), r"a vector for each text: got shape \(4, 2\)"),
        (lambda n: np.ones(n), r"a vector for each text: got shape \(3,\)"),
        (lambda n: np.ones((n, 1 + (n < 3))), "vectors of one width: got 1 and 2"),
    ],
)
def test_odd_vectors_are_refused(tmp_path, rows, message):
    texts = ["a", "b", "c"]
    if "width" in message:
        texts = texts * 16 + ["d"]
    with pytest.raises(ValueError, match=message):
        embed_texts(texts, Odd(rows), tmp_path / "x.npy", dtype="float16", batch_size=3)
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": "one"}, "texts must be a list of str: got str"),
        ({"texts": [1]}, "texts must be a list of str"),
        ({"texts": []}, "texts must hold at least one text"),
        ({"side": "both"}, "side must be one of items, queries: got 'both'"),
        ({"dtype": "int8"}, "dtype must be one of float32, float16: got 'int8'"),
        ({"batch_size": 0}, "batch_size must be at least 1 text: got 0"),
        ({"path": "x.txt"}, r"vectors must end in \.npy: got x\.txt"),
    ],
)
def test_bad_arguments_are_refused_before_the_model_is_loaded(change, message):
    given = {"texts": ["a"], "model": "no such model", "path": "x.npy", **change}
    with pytest.raises(ValueError, match=message):
        embed_texts(**given)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[text\]'"):
        _embed.load_model("tiny")


# ---------------------------------------------------------------------- files of texts


def write_table(path, records):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(records), path)


def write_jsonl(path, records):
    path.write_text("\n".join(map(json.dumps, records)))


def write_csv(path, records):
    rows = [
        "id,title,text,n",
        *(f'{r["id"]},{r["title"]},"{r["text"]}",1' for r in records),
    ]
    path.write_text("\n".join(rows))


@pytest.mark.parametrize(
    ("name", "write"),
    [("x.jsonl", write_jsonl), ("x.csv", write_csv), ("x.parquet", write_table)],
)
def test_texts_and_ids_of_files(tmp_path, name, write):
    records = [{"id": "a", "title": "A", "text": "one,\n two"}]
    records += [{"id": f"b{i}", "title": "", "text": "\u4e00"} for i in range(3)]
    write(tmp_path / name, records)
    ids, texts = read_texts(tmp_path / name)
    assert ids == ["a", "b0", "b1", "b2"]
    assert texts == ["A one,\n two", *["\u4e00"] * 3]
    assert read_texts(tmp_path / name, "title")[1] == ["A", "", "", ""]
    with pytest.raises(ValueError, match="'words'"):
        read_texts(tmp_path / name, "words")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", "a", r"must be in a \.jsonl, \.csv"),
        ("x.jsonl", '{"text": 1}', "a text in 'text' of each row: row 0 has 1"),
        ("x.jsonl", '{"id": 1, "text": "a"}\n{"id": 2}', "row 1 has None"),
        ("x.jsonl", "[1]", "line 1 must be a JSON object"),
        ("x.jsonl", "", "must have a column 'text'"),
        ("x.csv", "id,text", "at least one text: got none"),
        ("x.csv", "id,text\n1,a,b", "2 fields in each row, as the header: row 1 has 3"),
        ("x.csv", "text,text\n1,a", "columns of different names"),
        ("x.csv", "id,words\n1,a", "must have a column 'text', .* got id, words"),
        ("x.csv", 'id,text\n1,"a', "must be a CSV file in UTF-8"),
        ("x.parquet", "a", "must be a parquet file"),
    ],
)
def test_damaged_files_of_texts_are_refused(tmp_path, name, content, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_texts(tmp_path / name)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """The stand-in as the package sentence_transformers."""
    package = types.ModuleType("sentence_transformers")
    package.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    monkeypatch.chdir(tmp_path)


def test_three_commands_from_texts_to_a_metric(stand_in, folder, capsys):
    assert cli.main(["embed", "collection", "--model", "tiny"]) == 0
    files = os.sep.join(["collection", "corpus.npy"])
    assert f"wrote {files} and" in capsys.readouterr().out
    assert_embedded(folder)
    assert (
        cli.main(["transform", "m", "collection/corpus.npy", "--output", "x.npy"]) == 2
    )
    words = "fit collection --method euclidean --output m"
    assert cli.main(words.split()) == 0
    words = "embed collection --model other --suffix b --dtype float16 --json"
    capsys.readouterr()
    assert cli.main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "other"
    assert_embedded(folder, np.float16, 4e-3, "_b", "other")


def test_a_file_of_texts_gets_vectors_and_ids(stand_in, tmp_path, capsys):
    write_csv(tmp_path / "x.csv", [{"id": "q1", "title": "", "text": "why"}])
    words = "embed x.csv --model tiny --side queries --output x.npy"
    assert cli.main(words.split()) == 0
    assert "wrote x.npy and x.ids.txt" in capsys.readouterr().out
    assert (tmp_path / "x.ids.txt").read_text() == "q1\n"
    np.testing.assert_allclose(
        np.load("x.npy"), [vector_of("tiny query: why")], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("x.jsonl --model m", "a file of texts needs --output"),
        (
            "x.jsonl --model m --output x.npy --suffix a",
            "--suffix can only be used with a folder",
        ),
        (
            "collection --model m --output x.npy",
            "--output can only be used with a file",
        ),
        ("collection --model m --suffix a/b", "suffix must be a part of a file name"),
        ("x.jsonl --model m --output x.txt", "must end in .npy"),
        ("no.jsonl --model m --output x.npy", "no such file"),
        ("x.jsonl --model m --output x.npy", "must have ids that fit on a line"),
    ],
)
def test_the_command_refuses(stand_in, folder, capsys, words, message, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": "a\\nb", "text": "c"}')
    assert cli.main(["embed", *words.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.glob("x.npy*"))
