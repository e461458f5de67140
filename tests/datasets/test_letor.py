import gzip
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from rankspace._engine.kernels import letor as kernels
from rankspace.datasets import _letor, read_letor


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_letor, "BLOCK_BYTES", 200)


def write(folder, text, name="data.txt"):
    path = folder / name
    path.write_bytes(
        gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    )
    return path


def random_text(rng, n_rows=60, n_features=12):
    lines = []
    for row in range(n_rows):
        indices = np.flatnonzero(rng.random(n_features) < 0.6) + 1
        values = [f"{i}:{9 * rng.normal():.{rng.integers(0, 8)}f}" for i in indices]
        lines.append(
            f"{rng.integers(5)} qid:{row // 7 + 3} {' '.join(values)} # docid = d{row}"
        )
    return "\n".join(lines) + "\n"


def read_values(folder, words):
    text = "".join(f"0 qid:1 1:{word}\n" for word in words)
    return read_letor(write(folder, text)).X[:, 0]


def assert_bits(found, expected):
    np.testing.assert_array_equal(
        found.view(np.int64), np.array(expected).view(np.int64)
    )


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_equals_scikit_learn(tmp_path, rng, small_blocks, name, n_jobs):
    path = write(tmp_path, random_text(rng), name)
    dataset = read_letor(path, n_jobs=n_jobs)
    X, grades, qid = load_svmlight_file(path, query_id=True, zero_based=False)
    np.testing.assert_array_equal(dataset.X, X.toarray())
    np.testing.assert_array_equal(dataset.grades, grades)
    np.testing.assert_array_equal(dataset.qid, qid)
    assert dataset.relevance.n_queries == np.unique(qid).size
    assert dataset.texts is None


def test_equals_scikit_learn_on_real_files(data_folder):
    path = data_folder / "letor4-mq2008" / "S1.txt.gz"
    X, grades, qid = load_svmlight_file(
        path, query_id=True, zero_based=False, n_features=46
    )
    dataset = read_letor(path, n_features=46)
    assert_bits(dataset.X, X.toarray())
    np.testing.assert_array_equal(dataset.grades, grades)
    np.testing.assert_array_equal(dataset.qid, qid)


DECIMALS = st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?",
    fullmatch=True,
).filter(lambda word: np.isfinite(float(word)))
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
LONG = st.builds(
    "{}.{}".format, st.integers(0, 10**9), st.integers(10**7, 10**9)
)  # 16 to 18 digits


@settings(max_examples=60, deadline=None)
@given(words=st.lists(DECIMALS | FLOATS | LONG, min_size=1, max_size=20))
def test_numbers_are_those_of_float(tmp_path_factory, words):
    folder = tmp_path_factory.mktemp("numbers")
    assert_bits(read_values(folder, words), [float(word) for word in words])


@pytest.mark.parametrize(
    "word",
    [
        "0",
        "-0",
        "-0.0",
        "+3",
        ".5",
        "5.",
        "1e-300",
        "-1E+22",
        "1e23",
        "8.5e-320",
        "4.9e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "9007199254740992.5",
        "1234567890123456789",
        "0.1000000000000000055511151231257827",
        "0000000000000000000000000000.25",
        "1e-99999",
        "9007199254740993.0000000000000001",
    ],
)
def test_number(tmp_path, word):
    assert_bits(read_values(tmp_path, [word]), [float(word)])


def test_wide_division_is_right_where_it_is_certain(rng):
    mantissas = rng.integers(2**53, 10**18, 20_000).tolist()
    cases = list(zip(mantissas, rng.integers(0, 23, 20_000).tolist(), strict=True))
    found = [kernels.decimal(mantissa, -power) for mantissa, power in cases]
    certain = np.array([flag for _, flag in found])
    exact = np.array([float(f"{mantissa}e-{power}") for mantissa, power in cases])
    assert certain.mean() > 0.9
    assert_bits(np.array([value for value, _ in found])[certain], exact[certain])


def test_many_numbers_for_python(tmp_path, rng):
    words = [f"{m}e-30" for m in rng.integers(10**17, 10**18, 3 * _letor.FIRST_HARD)]
    assert_bits(read_values(tmp_path, words), [float(word) for word in words])


def test_grades_are_numbers_too(tmp_path):
    path = write(tmp_path, "0.5 qid:1 1:1\n1.00000000000000000000001e-30 qid:1 1:1\n")
    np.testing.assert_array_equal(read_letor(path).grades, [0.5, 1e-30])


def test_float32(tmp_path):
    path = write(tmp_path, "1 qid:1 1:0.1 2:1e-30\n")
    X = read_letor(path, dtype=np.float32).X
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, np.array([[0.1, 1e-30]], dtype=np.float32))


def test_blanks_comments_and_line_ends(tmp_path):
    text = (
        "# head\r\n\r\n  1\tqid:4  1:2 \t 3:4\r\n \n0 qid:4#none\n2 qid:5 2:1 # é # x"
    )
    dataset = read_letor(write(tmp_path, text), comments=True)
    np.testing.assert_array_equal(dataset.X, [[2, 0, 4], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(dataset.qid, [4, 4, 5])
    assert dataset.texts == ["", "none", "é # x"]
    assert dataset.relevance.item_ids is None


def test_documents_are_named_where_names_differ(tmp_path, rng, small_blocks):
    dataset = read_letor(write(tmp_path, random_text(rng)), comments=True)
    assert dataset.texts[:2] == ["docid = d0", "docid = d1"]
    assert dataset.relevance.item_ids.tolist() == [f"d{row}" for row in range(60)]


def test_repeated_names_stay_comments(tmp_path):
    path = write(tmp_path, "1 qid:1 1:1 # docid = a\n1 qid:2 1:1 # docid = a\n")
    dataset = read_letor(path, comments=True)
    assert dataset.relevance.item_ids is None
    assert dataset.texts == ["docid = a", "docid = a"]


def test_width_grows_from_block_to_block(tmp_path, small_blocks):
    lines = [f"1 qid:1 {row + 1}:{row + 1}" for row in range(400)]
    dataset = read_letor(write(tmp_path, "\n".join(lines)))
    np.testing.assert_array_equal(dataset.X, np.diag(np.arange(1.0, 401.0)))


def test_line_longer_than_a_block(tmp_path, small_blocks):
    pairs = " ".join(f"{i}:{i}" for i in range(1, 301))
    dataset = read_letor(write(tmp_path, f"1 qid:1 {pairs}\n2 qid:1 {pairs}"))
    np.testing.assert_array_equal(dataset.X, [np.arange(1, 301)] * 2)


def test_n_features_pads(tmp_path):
    assert read_letor(write(tmp_path, "1 qid:1 1:1\n"), n_features=300).X.shape == (
        1,
        300,
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1 1:2", "must have qid:<number> after the grade: got '1:2'"),
        ("1", "must have qid:<number> after the grade: got the end of the line"),
        (
            "1 qid: 1:2",
            "must have a whole number of at most 18 digits as qid: got 'qid:'",
        ),
        (
            "1 qid:x 1:2",
            "must have a whole number of at most 18 digits as qid: got 'qid:x'",
        ),
        (
            "1 qid:1.5 1:2",
            "must have a whole number of at most 18 digits as qid: got 'qid:1.5'",
        ),
        (
            "1 qid:1234567890123456789 1:2",
            "must have a whole number of at most 18 digits as qid",
        ),
        ("x qid:1 1:2", "must have finite decimal numbers that fit float64: got 'x'"),
        ("1 qid:1 1:", "must have finite decimal numbers that fit float64: got '1:'"),
        (
            "1 qid:1 1:2e",
            "must have finite decimal numbers that fit float64: got '1:2e'",
        ),
        ("1 qid:1 1:.", "must have finite decimal numbers that fit float64: got '1:.'"),
        (
            "1 qid:1 1:1.2.3",
            "must have finite decimal numbers that fit float64: got '1:1.2.3'",
        ),
        (
            "1 qid:1 1:1_0",
            "must have finite decimal numbers that fit float64: got '1:1_0'",
        ),
        (
            "1 qid:1 1:nan",
            "must have finite decimal numbers that fit float64: got '1:nan'",
        ),
        (
            "1 qid:1 1:-inf",
            "must have finite decimal numbers that fit float64: got '1:-inf'",
        ),
        (
            "1 qid:1 1:1e400",
            "must have finite decimal numbers that fit float64: got '1e400'",
        ),
        (
            "nan qid:1 1:1",
            "must have finite decimal numbers that fit float64: got 'nan'",
        ),
        ("1 qid:1 0:2", "must count features from 1: got '0:2'"),
        (
            "1 qid:1 2:1 1:1",
            "must have ascending feature indices, each once: got '1:1'",
        ),
        (
            "1 qid:1 2:1 2:1",
            "must have ascending feature indices, each once: got '2:1'",
        ),
        ("1 qid:1 -1:1", "must have <index>:<value> pairs after its head: got '-1:1'"),
        (
            "1 qid:1 1:1 word",
            "must have <index>:<value> pairs after its head: got 'word'",
        ),
        ("1 qid:1 1 :1", "must have <index>:<value> pairs after its head: got '1'"),
        (
            "1 qid:1 1:1 9999999:1",
            "must have no feature index above 10000: got '9999999:1'",
        ),
    ],
)
@pytest.mark.parametrize("n_before", [0, 30])
def test_malformed_line(tmp_path, small_blocks, line, what, n_before):
    path = write(
        tmp_path, "\n1 qid:1 1:1 # fine\n" * n_before + line + "\n1 qid:1 1:1\nbad\n"
    )
    with pytest.raises(
        ValueError, match="^" + re.escape(f"{path}, line {2 * n_before + 1} {what}")
    ):
        read_letor(path)


def test_index_above_n_features(tmp_path):
    path = write(tmp_path, "1 qid:1 1:1\n1 qid:1 3:1\n")
    what = "line 2 must have no feature index above 2: got '3:1'. Pass a larger n_features."
    with pytest.raises(ValueError, match=re.escape(f"{path}, {what}") + "$"):
        read_letor(path, n_features=2)


def test_number_beyond_float32(tmp_path):
    with pytest.raises(
        ValueError, match=r"line 1 must have finite .* fit float32: got '1e39'"
    ):
        read_letor(write(tmp_path, "1 qid:1 1:1e39\n"), dtype=np.float32)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_empty_file(tmp_path, text, name):
    with pytest.raises(
        ValueError, match="must have at least one line: got an empty file"
    ):
        read_letor(write(tmp_path, text, name))


def test_cut_file(tmp_path, rng):
    path = write(tmp_path, random_text(rng, 2000), "data.txt.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(
        ValueError, match=r"damaged or cut short after line [1-9]\d+ .*Fetch"
    ):
        read_letor(path)


def test_file_that_is_not_packed(tmp_path):
    path = tmp_path / "data.txt.gz"
    path.write_text("1 qid:1 1:1\n")
    with pytest.raises(ValueError, match="damaged or cut short after line 0"):
        read_letor(path)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"dtype": int}, "dtype must be float64 or float32: got int64"),
        ({"n_features": 0}, "n_features must be at least 1: got 0"),
        ({"n_jobs": 0}, "n_jobs must be at least 1: got 0"),
        ({"max_memory": 0}, "max_memory must be at least 1 MiB: got 0"),
    ],
)
def test_bad_options(tmp_path, options, what):
    with pytest.raises(ValueError, match=what):
        read_letor(write(tmp_path, "1 qid:1 1:1\n"), **options)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_letor(tmp_path / "none.txt")


# ---------------------------------------------------------------------- size


def wide_line(n_before, n_after):
    line = "0 qid:1 1:1\n"
    return line * n_before + "1 qid:1 9999:1\n" + line * n_after


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_large_index_cannot_take_all_memory(tmp_path, n_jobs):
    path = write(tmp_path, wide_line(20_000, 40_000), "bomb.txt.gz")
    assert path.stat().st_size < 2000
    what = (
        f"{path} must not make X larger than 1024 MiB: its first 60001 rows with 9999 columns "
        "do, and line 20001 has the largest feature index, 9999. Mend the line, or pass a larger "
        "max_memory."
    )
    with pytest.raises(ValueError, match=re.escape(what)):
        read_letor(path, n_jobs=n_jobs)


def test_large_index_in_another_block(tmp_path, small_blocks):
    path = write(tmp_path, wide_line(200, 200))
    with pytest.raises(ValueError, match="line 201 has the largest feature index"):
        read_letor(path, max_memory=1)
    assert read_letor(path, max_memory=31).X.shape == (401, 9999)


def test_too_many_rows_for_n_features(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1\n" * 300)
    with pytest.raises(ValueError, match="300 rows with 1000 columns do, and n_feat"):
        read_letor(path, n_features=1000, max_memory=1)
    assert read_letor(path, n_features=1000, max_memory=3).X.shape == (300, 1000)
    X = read_letor(path, n_features=400, max_memory=1, dtype=np.float32).X
    assert X.shape == (300, 400)


def test_text_that_unpacks_out_of_proportion(tmp_path, monkeypatch):
    path = write(tmp_path, "\n" * 3_000_000 + "1 qid:1 1:1\n", "bomb.txt.gz")
    with pytest.raises(ValueError, match="must not unpack to more than 1 MiB"):
        read_letor(path, max_memory=1)
    monkeypatch.setattr(_letor, "LARGE_BYTES", 1 << 20)
    with pytest.raises(ValueError, match=r"of \d+ bytes must not unpack to more than"):
        read_letor(path)
    assert read_letor(path, max_memory=3).X.shape == (1, 1)


def test_larger_files_may_be_larger(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(_letor, "LARGE_BYTES", 1)
    path = write(tmp_path, random_text(rng, 500), "data.txt.gz")
    assert read_letor(path).X.shape == (500, 12)


def test_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_letor, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(_letor, "LINE_BYTES", 1 << 20)
    path = write(tmp_path, "1 qid:1 1:1\n" + "7" * (3 << 20), "bomb.txt.gz")
    with pytest.raises(ValueError, match="line 2 must not exceed 1 MiB"):
        read_letor(path)


def test_indices_that_descend_never_leave_the_array(tmp_path):
    # Room is made for the last index of each line.
    path = write(tmp_path, "1 qid:1 1:1\n1 qid:1 9000:1 2:1\n")
    with pytest.raises(ValueError, match="line 2 must have ascending feature indices"):
        read_letor(path)


@pytest.mark.parametrize(
    ("line", "width"),
    [("1 qid:1", 0), ("1 qid:1 003:1 # 7:1", 3), ("7 qid:12 2:10 12:5", 12)],
)
def test_width_of_a_line(tmp_path, line, width):
    assert read_letor(write(tmp_path, f"{line}\n")).X.shape == (1, width)


PEAK = """
import resource, sys
from rankspace.datasets import read_letor
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
read_letor(sys.argv[2])
before = peak()
X = read_letor(sys.argv[1], n_jobs=1).X
print((peak() - before) / X.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory in units of Linux")
def test_matrix_is_built_once(tmp_path):
    # 160 MB of X.
    wide = write(tmp_path, wide_line(1000, 1000), "wide.txt.gz")
    narrow = write(tmp_path, "1 qid:1 1:1\n", "narrow.txt.gz")
    result = subprocess.run(
        [sys.executable, "-c", PEAK, str(wide), str(narrow)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(result.stdout) < 1.3
