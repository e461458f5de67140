import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets

from rankspace import datasets
from rankspace.datasets import Dataset, list_datasets
from rankspace.datasets._catalogue import CATALOGUE
from rankspace.datasets._dataset import consecutive, labelled
from rankspace.datasets._fetch_tables import COUNTS
from rankspace.datasets._folder import check_equal
from rankspace.relevance.relevance import Relevance


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """No data set is there, and downloads would go to a folder of the test."""
    monkeypatch.delenv("RANKSPACE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rankspace"


# ---------------------------------------------------------------------- Dataset


def test_part_of_classes():
    X = scipy.sparse.csr_array(np.eye(5))
    splits = {"train": np.array([0, 1, 4]), "test": np.array([2, 3])}
    texts = list("abcde")
    dataset = labelled("toy", X, np.array([0, 1, 0, 1, 0]), splits=splits, texts=texts)
    part = dataset.part("train")
    assert repr(part) == "Dataset('toy', 3 items x 5 features, 3 queries)"
    assert part.texts == ["a", "b", "e"]
    assert part.labels.tolist() == [0, 1, 0]
    assert part.relevance.relevant(0).tolist() == [2]
    np.testing.assert_array_equal(part.X.toarray(), np.eye(5)[[0, 1, 4]])
    assert part.splits == {}


def test_part_of_lists():
    grades, qid = np.array([1.0, 0, 2, 0]), np.array([7, 7, 9, 9])
    relevance = Relevance.from_groups(grades, qid)
    dataset = Dataset("toy", np.eye(4), relevance, qid=qid, grades=grades)
    part = dataset.part([2, 3])
    np.testing.assert_array_equal(part.X, dataset.part(qid == 9).X)
    assert part.qid.tolist() == [9, 9]
    assert part.grades.tolist() == [2, 0]
    assert part.relevance.query_ids.tolist() == ["9"]


def test_part_of_separate_queries():
    relevance = Relevance.from_lists([[0], [2]], n_items=3)
    dataset = Dataset("toy", np.eye(3), relevance, queries=np.ones((2, 3)))
    part = dataset.part([1])
    assert part.X.shape == (3, 3)
    assert part.queries.shape == (1, 3)
    assert part.relevance.relevant(0).tolist() == [2]


def test_part_without_vectors_and_judgments():
    assert Dataset("toy", texts=["a", "b"]).part([1]).texts == ["b"]
    assert Dataset("toy", query_texts=["a", "b"]).part([1]).query_texts == ["b"]
    assert repr(Dataset("toy", texts=["a", "b"])) == "Dataset('toy', 2 texts)"


def test_unknown_part():
    dataset = labelled(
        "toy", np.eye(2), np.array([0, 0]), splits=consecutive({"a": 1, "b": 1})
    )
    with pytest.raises(
        ValueError, match="which must be a split of toy, one of a, b: got 'c'"
    ):
        dataset.part("c")


def test_folds_shift_the_parts():
    dataset = Dataset(
        "toy", splits=consecutive(dict.fromkeys(("S1", "S2", "S3", "S4", "S5"), 1))
    )
    folds = [{k: v.tolist() for k, v in dataset.fold(i).items()} for i in range(1, 6)]
    assert folds[0] == {"train": [0, 1, 2], "vali": [3], "test": [4]}
    assert folds[1] == {"train": [1, 2, 3], "vali": [4], "test": [0]}
    assert [fold["test"] for fold in folds] == [[4], [0], [1], [2], [3]]


@pytest.mark.parametrize("number", [0, 6])
def test_unknown_fold(number):
    dataset = Dataset(
        "toy", splits=consecutive(dict.fromkeys(("S1", "S2", "S3", "S4", "S5"), 1))
    )
    with pytest.raises(ValueError, match=f"fold of toy, from 1 to 5: got {number}"):
        dataset.fold(number)
    with pytest.raises(ValueError, match=r"from 1 to 0: got 1. The splits are none"):
        Dataset("toy").fold(1)


# ---------------------------------------------------------------------- bundled


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("wine", (178, 13), 3),
        ("wdbc", (569, 30), 2),
        ("digits", (1797, 64), 10),
        ("balance_scale", (625, 4), 3),
    ],
)
def test_bundled(name, shape, n_classes):
    dataset = getattr(datasets, f"load_{name}")()
    assert dataset.X.shape == shape
    assert np.unique(dataset.labels).size == n_classes
    assert len(dataset.feature_names) == shape[1]
    assert dataset.relevance.trainable.all()


def test_balance_scale_is_the_file(data_folder):
    path = data_folder / "uci-balance-scale" / "balance-scale.data"
    table = np.loadtxt(path, delimiter=",", dtype=str)
    dataset = datasets.load_balance_scale()
    np.testing.assert_array_equal(dataset.labels, table[:, 0])
    np.testing.assert_array_equal(dataset.X, table[:, 1:].astype(float))


# ---------------------------------------------------------------------- the folder


def functions_of(prefix):
    return {
        name.removeprefix(prefix)
        for name in datasets.__all__
        if name.startswith(prefix)
    }


def test_list_names_every_function():
    assert {row.name for row in list_datasets()} == functions_of(
        "load_"
    ) | functions_of("fetch_")
    assert datasets.__all__ == sorted(datasets.__all__)


def test_list_says_what_is_there(empty_folder):
    assert {row.name for row in list_datasets() if row.available} == functions_of(
        "load_"
    )


def test_list_finds_the_folder(data_folder):
    assert all(row.available for row in list_datasets())


def test_import_is_light():
    code = (
        "import sys, rankspace.datasets; "
        "heavy = {'numba', 'sklearn', 'pandas', 'scipy.io'} & sys.modules.keys(); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def fail_to_reach(**_):
    raise URLError("no route to host")


REMOTE = {
    "covertype": "fetch_covtype",
    "ionosphere": "fetch_openml",
    "isolet": "fetch_openml",
    "mnist": "fetch_openml",
    "usps": "fetch_openml",
}


@pytest.mark.parametrize("name", sorted(functions_of("fetch_")))
def test_missing_files_are_named(empty_folder, monkeypatch, name):
    for function in REMOTE.values():
        monkeypatch.setattr(sklearn.datasets, function, fail_to_reach)
    with pytest.raises(FileNotFoundError) as caught:
        getattr(datasets, f"fetch_{name}")()
    message = str(caught.value)
    assert CATALOGUE[name].files[0] in message
    assert str(empty_folder) in message
    assert "set RANKSPACE_DATA to a folder" in message
    assert ("The download failed: <urlopen error no route to host>" in message) == (
        name in REMOTE
    )


def test_timeout_is_put_back(empty_folder, monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail_to_reach)
    before = socket.getdefaulttimeout()
    with pytest.raises(FileNotFoundError):
        datasets.fetch_ionosphere()
    assert socket.getdefaulttimeout() == before


def test_named_folder_goes_before_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=r"elsewhere: letor4-mq2008/S1"):
        datasets.fetch_mq2008()


def test_home_is_the_last_resort(monkeypatch):
    monkeypatch.delenv("RANKSPACE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert datasets._folder.data_folder() == Path.home() / ".cache" / "rankspace"


def test_unknown_versions(empty_folder):
    with pytest.raises(
        ValueError, match="version must be one of query-level-norm, minimum"
    ):
        datasets.fetch_ohsumed("raw")


def test_sizes_are_checked():
    check_equal("toy", "rows", 3, 3)
    with pytest.raises(
        ValueError, match=r"the rows of toy must be 3: got 4\. A file is damaged"
    ):
        check_equal("toy", "rows", 3, 4)


# ---------------------------------------------------------------------- downloads


def usps_table(order):
    counts = COUNTS["usps"]
    digits = np.concatenate(
        [np.repeat(np.arange(1, 11), counts[part]) for part in order]
    )
    return SimpleNamespace(
        data=np.zeros((9298, 256)), target=digits.astype(str).astype(object)
    )


def test_download_of_usps(empty_folder, monkeypatch):
    asked = {}

    def fetch(**options):
        asked.update(options)
        return usps_table(["train", "test"])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    dataset = datasets.fetch_usps()
    assert np.unique(dataset.labels).tolist() == list(range(10))
    assert {k: v.size for k, v in dataset.splits.items()} == {
        "train": 7291,
        "test": 2007,
    }
    assert asked["data_home"] == empty_folder / "scikit-learn"


def test_download_in_another_order_has_no_parts(empty_folder, monkeypatch):
    table = usps_table(["test", "train"])
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: table)
    assert datasets.fetch_usps().splits == {}


def test_download_of_another_size(empty_folder, monkeypatch):
    table = SimpleNamespace(
        data=np.zeros((3, 34)), target=np.array(["g", "b", "g"], dtype=object)
    )
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: table)
    with pytest.raises(
        ValueError, match=r"of ionosphere must be \(351, 34\): got \(3, 34\)"
    ):
        datasets.fetch_ionosphere()


def test_download_of_covertype(empty_folder, monkeypatch):
    counts = COUNTS["covertype"]["all"]
    labels = np.repeat(np.arange(1, 8), counts)
    table = SimpleNamespace(data=np.zeros((labels.size, 54)), target=labels)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda **_: table)
    assert datasets.fetch_covertype().X.dtype == np.float32


@pytest.mark.usefixtures("data_folder")
def test_the_sample_of_scifact_is_one():
    """Texts, judgments and directions of the vectors are those of the whole collection."""
    sample, whole = datasets.load_scifact_sample(), datasets.fetch_scifact()
    place = {name: i for i, name in enumerate(whole.relevance.item_ids)}
    rows = [place[name] for name in sample.relevance.item_ids]
    np.testing.assert_array_equal(sample.relevance.query_ids, whole.relevance.query_ids)
    assert sample.query_texts == whole.query_texts
    assert all(
        whole.texts[i].startswith(t) for i, t in zip(rows, sample.texts, strict=True)
    )
    assert np.einsum("ij,ij->i", sample.X, whole.X[rows]).min() > 0.999
    assert np.einsum("ij,ij->i", sample.queries, whole.queries).min() > 0.999
    for query in range(sample.relevance.n_queries):
        found = sample.relevance.item_ids[sample.relevance.relevant(query)]
        expected = whole.relevance.item_ids[whole.relevance.relevant(query)]
        assert set(found) == set(expected)
    for name, queries in whole.splits.items():
        np.testing.assert_array_equal(sample.splits[name], queries)


def test_the_sample_of_scifact_stays_small():
    folder = Path(datasets.__file__).with_name("scifact_sample")
    assert (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 2e6
    )
    sample = datasets.load_scifact_sample()
    np.testing.assert_allclose(np.linalg.norm(sample.X, axis=1), 1, atol=1e-6)
    assert sample.X.dtype == np.float32


LABELS = np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"X": np.zeros((4, 2))}, "its items: got X of 4, labels of 3, relevance of 3"),
        ({"labels": LABELS[:2]}, "its items: got X of 3, labels of 2, relevance of 3"),
        (
            {"texts": ["a"]},
            "its items: got X of 3, labels of 3, texts of 1, relevance of 3",
        ),
        (
            {"queries": np.zeros((2, 2))},
            "its queries: got queries of 2, relevance of 3",
        ),
        (
            {"splits": {"test": [0, 3]}},
            "split 'test' of new must be numbers from 0 to 2: got 0 to 3",
        ),
        (
            {"splits": {"test": [0.5]}},
            "split 'test' of new must be a 1-d array of whole numbers: got float64",
        ),
    ],
)
def test_parts_of_a_data_set_must_agree(fields, message):
    given = {"X": np.zeros((3, 2)), "labels": LABELS, **fields}
    with pytest.raises(ValueError, match=re.escape(message)):
        Dataset("new", relevance=Relevance.from_labels(LABELS), **given)


@pytest.mark.parametrize("rows", [[3], [-1], [0.5], [True, False]])
def test_parts_are_of_rows_that_exist(rows):
    dataset = Dataset("new", np.zeros((3, 2)), Relevance.from_labels(LABELS))
    with pytest.raises(ValueError, match="must"):
        dataset.part(rows)
