"""Vectors in tables: columns, folders and patterns of files, and dataframes."""

import subprocess
import sys

import numpy as np
import pytest

from rankspace import GMML, Index, tune
from rankspace._engine import columns, vectors
from rankspace._engine.vectors import (
    VectorBlocks,
    as_rows,
    is_vector_source,
    read_names,
    read_vectors,
    stored_names,
)
from vector_writers import write_table

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
SUFFIXES = ["parquet", "arrow", "feather"]


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of four rows, so that small data are read as large ones."""
    monkeypatch.setattr(columns, "BATCH", 4)
    monkeypatch.setattr(vectors, "BLOCK", 4)


def write_parts(folder, X, suffix, n_parts=3):
    folder.mkdir()
    numbers = np.array_split(np.arange(len(X)), n_parts)
    for i, rows in enumerate(numbers):
        content = {"id": [f"d{row}" for row in rows], "v": list(X[rows])}
        write_table(folder / f"part-{i}.{suffix}", content, rows_per_batch=5)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_folder_or_pattern_is_one_matrix(tmp_path, rng, suffix, dtype):
    X = rng.normal(size=(40, 3)).astype(dtype)
    write_parts(tmp_path / "x", X, suffix)
    for source in (tmp_path / "x", f"{tmp_path}/x/part-*.{suffix}"):
        found = as_rows(source)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, X)
        assert read_names(source) == [f"d{row}" for row in range(40)]
        assert is_vector_source(source)
        np.testing.assert_array_equal(np.vstack(list(VectorBlocks(source, 7))), X)
    index = Index(tmp_path / "x")
    assert index.rank(X[5:6], 1).ids(0) == ["d5"]
    y = np.arange(40) % 2
    np.testing.assert_array_equal(
        GMML().fit(tmp_path / "x", y).metric_.components,
        GMML().fit(X, y).metric_.components,
    )


FIXED = {
    "float16": pa.list_(pa.float16(), 2),
    "float32": pa.list_(pa.float32(), 2),
    "float64": pa.list_(pa.float64(), 2),
    "large": pa.large_list(pa.float32()),
}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_lists_of_each_type(tmp_path, suffix, kind):
    rows = [[np.float16(i), np.float16(-i)] for i in range(9)]
    path = tmp_path / f"x.{suffix}"
    write_table(path, {"v": pa.array(rows, FIXED[kind])})
    np.testing.assert_array_equal(as_rows(path), rows)


@pytest.mark.usefixtures("small_batches")
def test_a_column_is_named_where_several_exist(tmp_path, rng):
    first, second = rng.normal(size=(2, 9, 3))
    content = {
        "doc": list("abcdefghi"),
        "title": list(first),
        "body": list(second),
        "words": [["a"]] * 9,
    }
    path = tmp_path / "x.parquet"
    write_table(path, content)
    with pytest.raises(ValueError, match="one column of vectors: got title, body"):
        read_vectors(path)
    np.testing.assert_array_equal(read_vectors(path, column="body"), second)
    with pytest.raises(ValueError, match="no column 'text': it has doc, title, body"):
        read_vectors(path, column="text")
    with pytest.raises(
        ValueError, match=r"lists of numbers in 'words': got list<.*str"
    ):
        read_vectors(path, column="words")
    assert read_names(path) is None
    assert read_names(path, "doc") == list("abcdefghi")
    np.savez(tmp_path / "x.npz", a=first, b=second, names=list("abcdefghi"))
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.npz", column="b"), second)
    assert read_names(tmp_path / "x.npz", "names") == list("abcdefghi")


def test_files_that_do_not_fit_together_are_refused(tmp_path, rng):
    X = rng.normal(size=(6, 2))
    write_parts(tmp_path / "x", X, "parquet")
    write_table(tmp_path / "x" / "part-3.parquet", {"id": ["e"], "v": [[1]]})
    with pytest.raises(
        ValueError, match=r"same columns: part-0.* part-3.* differ in v"
    ):
        as_rows(tmp_path / "x")
    (tmp_path / "x" / "part-3.parquet").unlink()
    write_table(tmp_path / "x" / "part-3.parquet", {"id": ["e"], "v": [[1.0]]})
    with pytest.raises(ValueError, match="the same width: got widths 2, 1"):
        as_rows(tmp_path / "x")
    np.save(tmp_path / "x" / "more.npy", X)
    with pytest.raises(ValueError, match=r"of one kind: got .npy and .parquet.*'\*"):
        as_rows(tmp_path / "x")
    with pytest.raises(ValueError, match="each with some of the rows: it has none"):
        as_rows(tmp_path / "nothing-*.parquet")


@pytest.mark.parametrize("fixed", [False, True])
def test_missing_vectors_and_numbers_are_refused(tmp_path, fixed):
    kind = pa.list_(pa.int8(), 2) if fixed else pa.list_(pa.int8())
    path = tmp_path / "x.parquet"
    write_table(path, {"v": pa.array([[1, 2], None], kind)})
    with pytest.raises(ValueError, match=r"got widths 2, missing"):
        read_vectors(path)
    write_table(path, {"v": pa.array([[1, 2], [3, None]], kind)})
    with pytest.raises(ValueError, match="without missing numbers: got some in 'v'"):
        read_vectors(path)
    write_table(path, {"a": pa.array([1, None])})
    with pytest.raises(ValueError, match="a number in each row of 'a'"):
        read_vectors(path)


def test_a_stream_without_its_end_is_refused(tmp_path):
    path = tmp_path / "x.arrow"
    write_table(path, {"v": [[1.0, 2.0]] * 9})
    path.write_bytes(path.read_bytes().removesuffix(columns.STREAM_END))
    with pytest.raises(ValueError, match="the stream has no end"):
        read_vectors(path)


def rewrite(path, old, new):
    """Replace bytes that occur once in a file."""
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


def test_arrow_lists_that_reach_beyond_their_numbers_are_refused(tmp_path):
    path = tmp_path / "x.arrow"
    write_table(path, {"v": [[1.0, 2.0]] * 3})
    offsets = np.array([0, 2, 4, 6], dtype="<i4")
    hostile = np.array([0, 2, 4, 2**30], dtype="<i4")
    rewrite(path, offsets.tobytes(), hostile.tobytes())
    with pytest.raises(ValueError, match=r"must be an Arrow file.*damaged"):
        read_vectors(path)


def test_a_file_with_fewer_rows_than_it_declares_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    write_table(path, {"v": [[1.0, 2.0]] * 3, "id": ["a", "b", "c"]})
    describe = columns._describe
    monkeypatch.setattr(columns, "_describe", lambda path: (describe(path)[0], 4))
    for read in (read_vectors, read_names):
        with pytest.raises(ValueError, match="declares 4 rows, and has 3"):
            read(path)


def test_columns_of_the_same_name_are_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "x.parquet"
    table = pa.table([[[1.0]], [[2.0]]], names=["v", "v"])
    pa.parquet.write_table(table, path)
    frame = pd.DataFrame([["a", [1.0], [2.0]]], columns=["id", "v", "v"])
    for source in (path, frame):
        with pytest.raises(ValueError, match="columns differently: got 'v' twice"):
            as_rows(source)


def test_a_folder_of_texts_beside_vectors_is_a_collection(tmp_path):
    np.save(tmp_path / "corpus.npy", np.eye(2))
    assert is_vector_source(tmp_path)
    (tmp_path / "corpus.jsonl.gz").touch()
    assert not is_vector_source(tmp_path)


# ---------------------------------------------------------------------- dataframes


def frames(X):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    ids = [f"d{row}" for row in range(len(X))]
    lists = pl.DataFrame({"id": ids, "v": X.tolist()})
    yield lists
    yield lists.lazy()
    yield lists.with_columns(pl.col("v").cast(pl.Array(pl.Float64, X.shape[1])))
    yield pa.table({"id": ids, "v": X.tolist()})
    yield pd.DataFrame({"id": ids, "v": list(X)})
    yield pd.DataFrame({"id": ids, "v": list(X)}, index=np.arange(len(X)) + 5)
    yield pd.DataFrame({"id": ids, "a": X[:, 0], "b": X[:, 1]})


@pytest.mark.usefixtures("small_batches")
def test_dataframes_of_vectors(rng):
    X = rng.normal(size=(20, 2))
    y = np.arange(20) % 2
    for frame in frames(X):
        np.testing.assert_array_equal(as_rows(frame), X)
        assert stored_names(frame)[7] == "d7"
        index = Index(frame)
        assert index.rank(frame, 1).items.tolist() == list(range(20))
        assert index.ids[3] == "d3"
        np.testing.assert_array_equal(
            GMML().fit(frame, y).metric_.components,
            GMML().fit(X, y).metric_.components,
        )


def test_judgments_by_id_find_the_ids_of_tables(rng):
    """They need not be passed again; those that are passed count."""
    pl = pytest.importorskip("polars")
    X, Q = rng.normal(size=(60, 4)), rng.normal(size=(40, 4))
    near = np.argsort(-(Q * [2, 1, 0.2, 0.1]) @ X.T, axis=1)[:, :3]
    by_id = {f"q{q}": {f"d{x}": 1 for x in row} for q, row in enumerate(near)}
    items = pl.LazyFrame({"id": [f"d{row}" for row in range(60)], "v": X.tolist()})
    asked = pl.LazyFrame({"id": [f"q{row}" for row in range(40)], "v": Q.tolist()})
    options = {"similarity": "dot", "n_folds": 2, "random_state": 0}
    expected = tune(X, near, queries=Q, **options).report.question("all")
    assert (
        tune(items, by_id, queries=asked, **options).report.question("all") == expected
    )
    with pytest.raises(ValueError, match=r"by id need .*: query_ids is missing"):
        tune(items, by_id, queries=Q, **options)


def test_a_dataframe_of_numbers_stays_a_matrix_with_names(rng):
    pd = pytest.importorskip("pandas")
    X = rng.normal(size=(20, 2))
    learned = GMML().fit(pd.DataFrame(X, columns=["a", "id"]), np.arange(20) % 2)
    assert learned.feature_names_in_.tolist() == ["a", "id"]


def test_whole_numbers_named_like_ids_are_ids(rng):
    """A file of such columns has ids too; as a feature, they would decide every distance."""
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    X = rng.normal(size=(5, 2))
    frame = pd.DataFrame({"doc_id": range(100, 600, 100), "a": X[:, 0], "b": X[:, 1]})
    for table in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame)):
        np.testing.assert_array_equal(as_rows(table), X)
        assert stored_names(table) == ["100", "200", "300", "400", "500"]
    counts = frame.astype(int)
    assert as_rows(counts).shape == (5, 3)


def test_a_dataframe_of_objects_is_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="must be a dataframe of numbers, texts and"):
        as_rows(pd.DataFrame({"v": [object(), 1]}))


# ---------------------------------------------------------------------- memory

MEASURE = """
import sys
from rankspace._engine.vectors import as_rows
import pyarrow.parquet
def peak():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":") for line in status)
    return int(lines["RssAnon"].split()[0])
# What is imported on the way does not count.
as_rows(sys.argv[2])
before = peak()
from rankspace._engine import columns
largest, read = 0, columns.VectorColumns._list_rows
def watched(self, batch):
    global largest
    largest = max(largest, peak())
    return read(self, batch)
columns.VectorColumns._list_rows = watched
rows = as_rows(sys.argv[1])
print(rows.shape[0], largest - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_large_row_group_is_never_in_memory(tmp_path, rng):
    """One row group of 64 MB is read with less than that in memory, and so is a larger one."""
    X = rng.normal(size=(65_536, 128)).astype(np.float64)
    values = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 128)
    write_table(tmp_path / "x.parquet", {"v": values}, rows_per_batch=len(X))
    write_table(tmp_path / "few.parquet", {"v": values[:9_000]}, rows_per_batch=1_000)
    files = [tmp_path / "x.parquet", tmp_path / "few.parquet"]
    found = subprocess.run(
        [sys.executable, "-c", MEASURE, *files],
        capture_output=True,
        text=True,
        check=True,
    )
    n_rows, kilobytes = map(int, found.stdout.split())
    assert n_rows == len(X)
    sys.stdout.write(f"{kilobytes} kB\n")
    assert kilobytes < 32_000
