"""Vector files: the same vectors from every format, and row ids where the format has them."""

import json
import os
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from rankspace import (
    FRML,
    GMML,
    LGMML,
    AsymmetricMetric,
    BilinearMetric,
    Euclidean,
    Index,
    LinearMetric,
    Ranking,
    Relevance,
)
from rankspace._engine import vectors as _vectors
from rankspace._engine.vectors import (
    SUFFIXES,
    VectorBlocks,
    as_rows,
    map_npy,
    read_names,
    read_vectors,
)
from rankspace.cli.main import main
from vector_writers import write_table, write_vectors

KINDS = [kind.removeprefix(".") for kind in SUFFIXES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_same_vectors_from_every_kind_of_file(tmp_path, rng, kind, dtype):
    vectors = rng.normal(size=(7, 3)).astype(dtype)
    path = tmp_path / f"x.{kind}"
    write_vectors(path, vectors)
    found = read_vectors(path)
    assert found.dtype == (np.float32 if dtype == np.float16 else dtype)
    np.testing.assert_array_equal(found, vectors)
    blocks = VectorBlocks(path, size=3)
    assert [len(block) for block in blocks] == [3, 3, 1]
    np.testing.assert_array_equal(np.vstack(list(blocks)), vectors)


def npy_bytes(header):
    """A .npy file with this header and 8 bytes of numbers."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)


DAMAGED_NPY = {
    "empty": b"",
    "only a magic": b"\x93NUMPY",
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(200),
    "more rows than bytes": npy_bytes(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999, 1)}"
    ),
    "a negative shape": npy_bytes(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 1)}"
    ),
    "a type that is none": npy_bytes(
        "{'descr': ('<f8',), 'fortran_order': False, 'shape': (1, 1)}"
    ),
    "a header cut short": npy_bytes("{'descr': '<f8', 'fortran_order"),
    "a header in words": npy_bytes(
        "{'descr': [('a', )], 'fortran_order': 0, 'shape': 1}"
    ),
    "a deep header": npy_bytes("(" * 110),
}


@pytest.mark.parametrize("case", DAMAGED_NPY)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_damaged_npy_files_are_a_value_error(tmp_path, kind, case):
    path = tmp_path / f"x.{kind}"
    path.write_bytes(DAMAGED_NPY[case])
    if kind == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", DAMAGED_NPY[case])
    with pytest.raises(ValueError, match=rf"x.{kind} must be a .{kind} file"):
        read_vectors(path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_of_every_format_is_a_value_error(tmp_path, kind):
    whole = tmp_path / f"x.{kind}"
    write_vectors(whole, np.eye(2), ["b", "a"])
    content = whole.read_bytes()
    for end in range(0, len(content), 7):
        whole.write_bytes(content[:end])
        with pytest.raises(ValueError, match="must be a"):
            read_vectors(whole)


def test_types_that_numpy_has_not_are_a_value_error(tmp_path):
    header = b'{"x":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(
        ValueError, match=r"must be a safetensors file of a type|real numbers"
    ):
        read_vectors(path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array("a"), r"one id for each of 2 rows: got ids of shape \(\)"),
        (np.array(["a"]), r"one id for each of 2 rows: got ids of shape \(1,\)"),
    ],
)
def test_ids_that_do_not_name_the_rows_are_refused(tmp_path, ids, message):
    np.savez(tmp_path / "x.npz", x=np.eye(2), ids=ids)
    with pytest.raises(ValueError, match=message):
        read_names(tmp_path / "x.npz")


@pytest.mark.parametrize("order", ["<", ">"])
def test_ids_that_are_no_characters_are_refused(tmp_path, order):
    ids = np.array([b"\xff" * 4, b"abcd"]).view(f"{order}U1")
    np.savez(tmp_path / "x.npz", x=np.eye(2), ids=ids)
    with pytest.raises(ValueError, match="its text is no Unicode"):
        read_names(tmp_path / "x.npz")
    np.save(tmp_path / "labels.npy", ids)
    with pytest.raises(ValueError, match="its text is no Unicode"):
        map_npy(tmp_path / "labels.npy")


def test_ids_that_are_objects_are_refused(tmp_path):
    """As the ids of a Relevance are, which one would save beside the vectors."""
    np.savez(tmp_path / "v.npz", v=np.eye(2), ids=np.array(["a", "b"], dtype=object))
    with pytest.raises(ValueError, match=r"write texts as np\.array\(ids, dtype=str\)"):
        read_names(tmp_path / "v.npz")


def test_ids_are_text(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.eye(2), ids=np.array([b"a", b"b"]))
    assert read_names(tmp_path / "x.npz") == ["a", "b"]
    write_table(tmp_path / "x.parquet", {"id": ["a", None], "v": [[1.0], [2.0]]})
    with pytest.raises(ValueError, match="row 1 has none"):
        read_names(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["npz", "parquet", "arrow", "feather"])
def test_row_ids_beside_the_vectors(tmp_path, kind):
    write_vectors(tmp_path / f"x.{kind}", np.eye(2), ["b", "a"])
    assert read_names(tmp_path / f"x.{kind}") == ["b", "a"]
    write_vectors(tmp_path / f"y.{kind}", np.eye(2))
    assert read_names(tmp_path / f"y.{kind}") is None
    assert read_names(tmp_path / "z.npy") is None


def test_a_table_of_numbers_is_a_matrix(tmp_path):
    write_table(tmp_path / "x.parquet", {"id": [5, 6], "a": [1.0, 2.0], "b": [3, 4]})
    np.testing.assert_array_equal(
        read_vectors(tmp_path / "x.parquet"), [[1, 3], [2, 4]]
    )
    assert read_names(tmp_path / "x.parquet") == ["5", "6"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npz", {"a": np.eye(2), "b": np.eye(3)}, "must hold one matrix: got a, b"),
        ("x.npz", {"a": np.ones(2)}, "must hold one matrix: got none"),
        ("x.npz", {"a": np.array([[object()]])}, "must be a .npz file of plain arrays"),
        ("x.npy", b"no", "must be a .npy file"),
        ("x.npz", b"no", "must be a .npz file of plain arrays"),
        (
            "x.safetensors",
            {"a": np.eye(2), "b": np.eye(3)},
            "must hold one matrix: got a, b",
        ),
        ("x.safetensors", b"no", "must be a safetensors file"),
        (
            "x.parquet",
            {"v": [[1.0], [1.0, 2.0]]},
            "vectors of the same width: got widths 1, 2",
        ),
        (
            "x.parquet",
            {"v": [[1.0], None]},
            "vectors of the same width: got widths 1, missing",
        ),
        (
            "x.parquet",
            {"v": [[1.0]], "w": [[1.0]]},
            "must hold one column of vectors: got v, w",
        ),
        ("x.parquet", {"text": ["a"]}, "must hold a matrix"),
        ("x.parquet", b"no", "must be a parquet file"),
        ("x.npz", {"a": np.array([[np.inf]])}, "must hold finite numbers"),
        (
            "x.pickle",
            b"no",
            r"a file of .npy, .npz, .safetensors, .parquet, .*: got .*x.pickle",
        ),
    ],
)
def test_files_that_cannot_be_read_raise_one_sentence(tmp_path, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".safetensors":
        safetensors.numpy.save_file(content, path)
    else:
        write_table(path, content)
    with pytest.raises(ValueError, match=message):
        read_vectors(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file(tmp_path, kind):
    if kind in ("parquet", "arrow", "feather"):
        pytest.importorskip("pyarrow")
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / f"none.{kind}")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[parquet\]'"):
        read_vectors(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_row_ids_match_those_of_the_qrels(tmp_path, rng, kind, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Q = rng.normal(size=(40, 3)), rng.normal(size=(12, 3))
    write_vectors(tmp_path / f"X.{kind}", X, [f"d{i}" for i in range(40)])
    write_vectors(tmp_path / f"Q.{kind}", Q, [f"q{i}" for i in range(12)])
    near = np.argsort(((Q[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 0]
    (tmp_path / "qrels").write_text(
        "".join(f"q{q} 0 d{i} 1\n" for q, i in enumerate(near))
    )
    words = [f"X.{kind}", "--queries", f"Q.{kind}", "--qrels", "qrels"]
    assert (
        main(["fit", *words, "--method", "listwise", "--output", "m.safetensors"]) == 0
    )
    assert main(["rank", *words[:3], "-k", "1", "--output", "run.trec"]) == 0
    assert main(["evaluate", "run.trec", "qrels", "--measures", "p@1", "--json"]) == 0
    found = capsys.readouterr().out
    found = found[found.index("{") :]
    assert json.loads(found)["measures"]["p@1"]["mean"] == 1


@pytest.mark.parametrize("verb", ["fit", "tune"])
@pytest.mark.parametrize(
    ("qrels", "ids", "message"),
    [
        ("7 0 99 1\n", None, "'99'"),
        ("77 0 1 1\n", None, "'77'"),
        (
            "7 0 1 1\n",
            ["a", *map(str, range(1, 39)), "a"],
            "must not repeat a name: got 'a' again",
        ),
    ],
)
def test_unknown_and_repeated_row_ids(
    tmp_path, monkeypatch, capsys, verb, qrels, ids, message
):
    monkeypatch.chdir(tmp_path)
    write_vectors(tmp_path / "X.npz", np.eye(40), ids)
    write_vectors(tmp_path / "Q.npz", np.eye(12, 40))
    (tmp_path / "qrels").write_text(qrels)
    words = [verb, "X.npz", "--queries", "Q.npz", "--qrels", "qrels", "--output", "m"]
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_and_a_learner_read_every_kind_of_file(tmp_path, rng, kind):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    path = tmp_path / f"x.{kind}"
    write_vectors(path, X, [f"d{i}" for i in range(30)])
    index = Index(path)
    assert index.rank(X[:2], 3).items.tolist() == Index(X).rank(X[:2], 3).items.tolist()
    if kind in ("npz", "parquet", "arrow", "feather"):
        assert index.rank(X[:1], 1).ids(0) == ["d0"]
        assert index.add(path, ids=[f"e{i}" for i in range(30)]).n_items == 60
    else:
        assert index.ids is None
    expected = GMML().fit(X, y).metric_.components
    np.testing.assert_array_equal(GMML().fit(path, y).metric_.components, expected)


def test_other_files_are_no_vectors(tmp_path):
    with pytest.raises(
        ValueError, match=r"a file of .npy, .npz, .safetensors, .parquet"
    ):
        Index(tmp_path / "x.txt")


@pytest.mark.parametrize("size", [(384,), (2, 3, 64)])
@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist])
def test_errors_give_the_shape_and_no_numbers(rng, size, form):
    """No message is longer for larger data."""
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    wrong = form(rng.normal(size=size))
    fitted = GMML().fit(X, y)
    lists = LGMML(n_metrics=2).fit(X, rng.integers(0, 2, 30), qid=np.arange(30) // 10)
    calls = [
        lambda: Index(wrong),
        lambda: Index(X).rank(wrong),
        lambda: Index(X).add(wrong),
        lambda: fitted.transform(wrong),
        lambda: fitted.metric_.transform(wrong),
        lambda: fitted.rank(wrong, X),
        lambda: fitted.score(wrong, y),
        lambda: FRML().fit(wrong, y),
        lambda: lists.predict(wrong),
        lambda: lists.metric_.scores(wrong),
        lambda: fitted.metric_.distances(wrong, X),
    ]
    if len(size) == 3:
        calls += [lambda: fitted.metric_.embed_queries(wrong)]
    for call in calls:
        with pytest.raises(ValueError, match=r"got shape|features") as told:
            call()
        assert len(str(told.value)) < 200


def test_errors_of_row_numbers_and_lists_give_no_numbers(rng):
    relevance = Relevance.from_labels(np.arange(400) % 2)
    with pytest.raises(TypeError, match=r"got shape \(2, 400\)"):
        relevance.take_queries(rng.integers(0, 9, (2, 400)))
    with pytest.raises(ValueError, match="got 500 numbers, the last 499"):
        Ranking(np.arange(500), np.arange(3), np.zeros(3), 3)


@pytest.mark.parametrize(
    "metric",
    [
        LinearMetric([[1.0, 2.0]]),
        BilinearMetric([[1.0, 2.0]], [[3.0, 4.0]], query_offset=[5.0]),
        AsymmetricMetric([[1.0, 2.0]], [[3.0, 4.0]], query_offset=[5.0]),
    ],
)
def test_one_vector_is_mapped_to_one_vector(metric):
    for embed in (metric.embed_queries, metric.embed_items):
        one = embed([6.0, 7.0])
        assert one.shape == (1,)
        assert one == embed([[6.0, 7.0]])[0]
    with pytest.raises(ValueError, match="must have 2 features: got 3"):
        metric.embed_queries([1.0, 2.0, 3.0])


# ---------------------------------------------------------------------- shards and chunks


def save_shards(folder, X):
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(np.array_split(X, 3)):
        np.save(folder / f"part-{number}.npy", part)


def test_dask_arrays_of_one_name_are_not_taken_for_each_other(rng):
    array = pytest.importorskip("dask.array")
    first, second = rng.normal(size=(2, 50, 4))
    for X in (first, second):
        named = array.from_array(X, chunks=(20, 2), name="X")
        np.testing.assert_array_equal(as_rows(named), X)


def test_a_changed_dask_array_is_read_again(rng):
    """A graph whose source changes keeps its name."""
    array = pytest.importorskip("dask.array")
    source = rng.normal(size=(50, 4))
    y = np.arange(50) % 2
    scores = []
    for _ in range(2):
        X = array.map_blocks(source.copy, chunks=source.shape, dtype=float, name="X")
        assert Euclidean().fit(X, y).score(X, y) == Euclidean().fit(source, y).score(
            source, y
        )
        scores.append(Euclidean().fit(X, y).score(X, y))
        source[:, 0] = 10 * y
    assert scores[0] != scores[1]


def test_chunks_must_be_as_large_as_they_are_declared(rng):
    array = pytest.importorskip("dask.array")
    rows = rng.normal(size=(5, 2))
    X = array.map_blocks(rows.copy, chunks=((7,), (2,)), dtype=float)
    with pytest.raises(ValueError, match=r"declares, \(7, 2\): it has \(5, 2\)"):
        as_rows(X)


def test_a_shard_replaced_by_one_of_the_same_size_and_time_is_read_again(tmp_path, rng):
    first, second = rng.normal(size=(2, 30, 4))
    for X in (first, second):
        save_shards(tmp_path / "x", X)
        for path in (tmp_path / "x").iterdir():
            os.utime(path, ns=(10**18, 10**18))
        np.testing.assert_array_equal(as_rows(tmp_path / "x"), X)


def test_a_folder_is_joined_in_one_file_however_often_it_is_read(tmp_path, rng):
    X = rng.normal(size=(30, 4))
    save_shards(tmp_path / "x", X)
    before = as_rows(tmp_path / "x")
    again = as_rows(tmp_path / "x")
    assert before.filename == again.filename


def test_threads_may_join_a_folder_at_the_same_time(tmp_path, rng, monkeypatch):
    """Each meets the others halfway, when all of them have written some rows."""
    X = rng.normal(size=(3000, 8))
    save_shards(tmp_path / "x", X)
    meeting = threading.Barrier(4, timeout=60)
    row_blocks = _vectors._row_blocks

    def slow_blocks(shards):
        for number, block in enumerate(row_blocks(shards)):
            if number == 1:
                meeting.wait()
            yield block

    monkeypatch.setattr(_vectors, "_row_blocks", slow_blocks)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(as_rows(tmp_path / "x").copy()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    for rows in found:
        np.testing.assert_array_equal(rows, X)
    assert not [path for path in tmp_path.iterdir() if path.name != "x"]


JOIN = """
import sys
from pathlib import Path
from rankspace._engine import vectors
class Forgetful(type(Path())):
    def exists(self):  # so that what was joined already is joined again
        return False
vectors.scratch_folder = lambda: Forgetful(sys.argv[2])
for _ in range(20):
    print(vectors.as_rows(sys.argv[1]).sum())
"""


def test_processes_may_join_a_folder_at_the_same_time(tmp_path):
    """In a scratch folder of all of them, where files are replaced while others read them."""
    X = np.ones((2000, 8))
    save_shards(tmp_path / "x", X)
    (tmp_path / "scratch").mkdir()
    words = [sys.executable, "-c", JOIN, tmp_path / "x", tmp_path / "scratch"]
    processes = [
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert output.split() == ["16000.0"] * 20
    assert len(list((tmp_path / "scratch").iterdir())) == 1


def test_masked_numbers_are_refused(rng):
    """NumPy keeps the numbers under a mask, which would be used without a word."""
    X = np.ma.array(rng.normal(size=(9, 2)), mask=False)
    assert Index(X).rank(X, 1).items.tolist() == list(range(9))
    X[3, 1] = np.ma.masked
    for use in (Index, lambda rows: GMML().fit(rows, np.arange(9) % 2)):
        with pytest.raises(ValueError, match="must not hold masked numbers"):
            use(X)
