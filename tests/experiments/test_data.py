"""Data sets of the experiments: the real files against published counts, and synthetic ones."""

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from experiments import data
from experiments.data import FETCHERS, make_gaussian_mixture, make_mlr_toy, open_dataset
from rankspace.datasets import list_datasets


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """No data set is there, and downloads would go to a folder of the test."""
    monkeypatch.delenv("RANKSPACE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rankspace"


def fail_to_reach(**_):
    raise URLError("no route to host")


def test_each_data_set_is_in_one_place():
    assert not set(FETCHERS) & {row.name for row in list_datasets()}
    assert repr(open_dataset("wine")).startswith("Dataset('wine', 178 items")
    with pytest.raises(ValueError, match="'nothing' is not a folder"):
        open_dataset("nothing")


@pytest.mark.parametrize("name", sorted(FETCHERS))
def test_missing_files_are_named(empty_folder, monkeypatch, name):
    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", fail_to_reach)
    with pytest.raises(FileNotFoundError) as caught:
        open_dataset(name)
    message = str(caught.value)
    assert f"the data set {name} needs these files under {empty_folder}: " in message
    assert "set RANKSPACE_DATA to a folder" in message
    failed = "The download failed: <urlopen error no route to host>" in message
    assert failed == (name == "twenty_newsgroups")


def test_unknown_versions(empty_folder):
    with pytest.raises(
        ValueError, match="version must be 'r8' or 'modapte': got 'r52'"
    ):
        data.fetch_reuters("r52")


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [("umist", (575, 1024), 20), ("binary_alphadigits", (1404, 320), 36)],
)
def test_images(data_folder, name, shape, n_classes):
    dataset = open_dataset(name)
    assert dataset.X.shape == shape
    assert np.isfinite(dataset.X).all()
    assert np.unique(dataset.labels).size == n_classes


def test_imagenet_folds(data_folder):
    dataset = data.fetch_imagenet_frml()
    assert dataset.X.sum(axis=1) == pytest.approx(1)
    for number in range(1, 6):
        fold = dataset.fold(number)
        assert {role: rows.size for role, rows in fold.items()} == {
            "train": 180,
            "vali": 60,
            "test": 60,
        }
        assert np.sort(np.concatenate(list(fold.values()))).tolist() == list(range(300))


def test_imagenet_rows_are_those_of_every_fold(data_folder):
    from scipy.io import loadmat

    dataset = data.fetch_imagenet_frml()
    folds = loadmat(data_folder / "imagenet-frml" / "IN300_folds.mat")["folds"][0]
    for number, fold in enumerate(folds, 1):
        rows = dataset.fold(number)["vali"]
        np.testing.assert_array_equal(dataset.X[rows], fold["Kval"].T)
        np.testing.assert_array_equal(dataset.labels[rows], fold["Yval"].ravel())


@pytest.mark.parametrize(
    ("call", "n_texts", "n_classes"),
    [
        (data.fetch_twenty_newsgroups, (11314, 7532), 20),
        (data.fetch_reuters, (5485, 2189), 8),
        (data.fetch_webkb, (2803, 1396), 4),
    ],
)
def test_texts(data_folder, call, n_texts, n_classes):
    dataset = call(vectors=False)
    assert dataset.X is None
    assert tuple(rows.size for rows in dataset.splits.values()) == n_texts
    assert np.unique(dataset.labels).size == n_classes
    assert len(dataset.texts) == sum(n_texts)
    assert dataset.part("test").relevance.n_items == n_texts[1]


def test_tfidf_knows_training_texts_alone(data_folder):
    dataset = data.fetch_webkb()
    train = dataset.part("train")
    n_texts_of_word = (train.X > 0).sum(axis=0)
    assert np.min(n_texts_of_word) >= 3
    assert len(dataset.feature_names) == dataset.X.shape[1]
    norms = np.sqrt(np.asarray(dataset.X.multiply(dataset.X).sum(axis=1))).ravel()
    assert norms[norms > 0] == pytest.approx(1)


def test_modapte_grades_by_shared_topics(data_folder):
    dataset = data.fetch_reuters("modapte", vectors=False)
    assert {part: rows.size for part, rows in dataset.splits.items()} == {
        "train": 9603,
        "test": 3299,
    }
    assert dataset.texts[0].startswith("BAHIA COCOA REVIEW")
    relevance = dataset.relevance
    # 7775 training and 3019 test texts have a topic: the counts of the split's author.
    topical = np.diff(relevance.indptr)[relevance.rows] > 0
    assert (topical[:9603].sum(), topical[9603:].sum()) == (7775, 3019)
    assert relevance.grades.max() > 1
    items, grades = relevance.judged(0)
    for item, grade in zip(items[:20], grades[:20], strict=True):
        others, back = relevance.judged(item)
        assert back[others == 0] == grade


def test_mslr_sample_has_each_query_once(data_folder):
    dataset = data.fetch_mslr_sample()
    assert dataset.X.shape[1] == 136
    assert dataset.relevance.n_queries == 165
    assert set(np.unique(dataset.grades)) == {0, 1, 2, 3, 4}
    # A query that came from two files would stand in two runs of rows.
    assert 1 + np.count_nonzero(np.diff(dataset.qid)) == 165


def test_lightgbm_example(data_folder):
    dataset = data.fetch_lightgbm_example()
    assert dataset.X.shape == (3773, 300)
    assert dataset.part("train").relevance.n_queries == 201
    assert dataset.part("test").relevance.n_queries == 50
    assert set(np.unique(dataset.grades)) == {0, 1, 2, 3, 4}


def test_cal500(data_folder):
    dataset = data.fetch_cal500()
    assert dataset.X.shape == (502, 68)
    assert (dataset.relevance.n_relevant == 25).all()
    _, grades = dataset.relevance.judged(0)
    assert np.bincount(grades.astype(int)).tolist() == [0, 15, 10]


def test_speed_dating(data_folder):
    dataset = data.fetch_speed_dating()
    relevance = dataset.relevance
    assert dataset.X.shape == (551, 41) == (551, len(dataset.feature_names))
    assert np.isfinite(dataset.X).all()
    assert relevance.n_relevant.sum() == 1380
    assert relevance.n_irrelevant.sum() == 8368 - 1380
    assert relevance.unjudged == "ignore"
    assert len(dataset.splits) == 21
    gender = dataset.X[:, 0]
    for person in range(551):
        partners, grades = relevance.judged(person)
        assert (gender[partners] != gender[person]).all()
        for partner in partners[grades == 1]:
            assert person in relevance.relevant(partner)


def test_speed_dating_has_no_answer_among_its_features(data_folder):
    names = data.fetch_speed_dating().feature_names
    after = (
        "dec",
        "dec_o",
        "match",
        "like",
        "prob",
        "attr",
        "attr_o",
        "match_es",
        "satis_2",
    )
    assert not set(names) & set(after)
    assert not [name for name in names if name.endswith(("_2", "_3", "_s", "_o"))]


def neighbour_accuracy(X, labels):
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(distances, np.inf)
    return (labels[distances.argmin(axis=1)] == labels).mean()


def test_mlr_toy_needs_the_vertical_axis_alone():
    dataset = make_mlr_toy(300, n_classes=3, random_state=0)
    assert np.bincount(dataset.labels).tolist() == [100, 100, 100]
    assert neighbour_accuracy(dataset.X, dataset.labels) < 0.8
    assert neighbour_accuracy(dataset.X[:, 1:], dataset.labels) > 0.9


def test_mixture_has_centres_of_each_grade():
    dataset = make_gaussian_mixture(
        4, n_classes=3, n_samples=240, spread=1e-6, random_state=0
    )
    for grade in range(3):
        points = np.unique(np.round(dataset.X[dataset.grades == grade], 3), axis=0)
        assert len(points) == 4
    assert dataset.relevance.n_queries == 10
    np.testing.assert_array_equal(dataset.labels, dataset.grades)


def test_download_of_newsgroups(empty_folder, monkeypatch):
    sizes = {"train": 11314, "test": 7532}

    def fetch(*, subset, **_):
        n = sizes[subset]
        target = np.arange(n) % 2
        return SimpleNamespace(
            data=["word"] * n, target=target, target_names=["a", "b"]
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", fetch)
    dataset = data.fetch_twenty_newsgroups(vectors=False)
    assert dataset.labels[:3].tolist() == ["a", "b", "a"]
    assert dataset.X is None


@pytest.mark.parametrize("make", [make_mlr_toy, make_gaussian_mixture])
def test_the_seed_decides(make):
    first = make(random_state=0).X
    again = make(random_state=np.random.default_rng(0)).X
    other = make(random_state=1).X
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_mlr_toy, {"n_samples": 1}, "n_samples must be at least 2: got 1"),
        (make_mlr_toy, {"n_classes": 1}, "n_classes must be at least 2: got 1"),
        (
            make_gaussian_mixture,
            {"n_centers": 0},
            "n_centers must be at least 1: got 0",
        ),
        (
            make_gaussian_mixture,
            {"n_samples": 8},
            "n_samples must be at least 10: got 8",
        ),
        (
            make_gaussian_mixture,
            {"n_queries": 0},
            "n_queries must be at least 1: got 0",
        ),
    ],
)
def test_bad_sizes(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("name", "options", "shape", "n_train", "n_test"),
    [
        ("crowdflower", {}, (9902, 384), 157, 104),
        ("crowdflower", {"vectors": "wordllama"}, (9902, 256), 157, 104),
        ("checkthat", {}, (10375, 384), 997, 199),
        ("checkthat", {"vectors": "wordllama"}, (10375, 256), 997, 199),
        ("stackfaq", {}, (719, 384), 752, 497),
        ("stackfaq", {"document": "answer"}, (719, 384), 752, 497),
    ],
)
def test_collections(data_folder, name, options, shape, n_train, n_test):
    dataset = open_dataset(name, **options)
    assert dataset.X.shape == shape
    assert dataset.part("train").relevance.n_queries == n_train
    assert dataset.part("test").relevance.n_queries == n_test
    assert np.linalg.norm(dataset.X, axis=1) == pytest.approx(1, abs=1e-3)
    assert dataset.relevance.trainable.all()


def test_answers_are_other_vectors_than_questions_with_answers(data_folder):
    both = open_dataset("stackfaq")
    answers = open_dataset("stackfaq", document="answer")
    np.testing.assert_array_equal(both.queries, answers.queries)
    assert (both.X != answers.X).any(axis=1).all()


def test_intents(data_folder):
    dataset = open_dataset("clinc")
    assert dataset.X.shape == (22500, 384)
    _, counts = np.unique(dataset.labels[dataset.splits["test"]], return_counts=True)
    assert counts.tolist() == [30] * 150
