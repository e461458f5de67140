"""The fetchers on the real files, held against the published counts."""

import numpy as np
import pytest

from rankspace import datasets


@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "splits"),
    [
        ("ionosphere", (351, 34), 2, {}),
        ("isolet", (7797, 617), 26, {"train": 6238, "test": 1559}),
        ("covertype", (581012, 54), 7, {}),
        ("mnist", (70000, 784), 10, {"train": 60000, "test": 10000}),
        ("usps", (9298, 256), 10, {"train": 7291, "test": 2007}),
        ("umist", (575, 1024), 20, {}),
        ("binary_alphadigits", (1404, 320), 36, {}),
    ],
)
def test_tables(data_folder, name, shape, n_classes, splits):
    dataset = getattr(datasets, f"fetch_{name}")()
    assert dataset.X.shape == shape
    assert np.isfinite(dataset.X).all()
    assert np.unique(dataset.labels).size == n_classes
    assert {part: rows.size for part, rows in dataset.splits.items()} == splits


def test_mnist_pixels(data_folder):
    dataset = datasets.fetch_mnist()
    means = [
        dataset.X[dataset.splits[part]].mean(dtype=float) for part in ("train", "test")
    ]
    assert means == pytest.approx([33.318, 33.791], abs=5e-4)


def test_imagenet_folds(data_folder):
    dataset = datasets.fetch_imagenet_frml()
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

    dataset = datasets.fetch_imagenet_frml()
    folds = loadmat(data_folder / "imagenet-frml" / "IN300_folds.mat")["folds"][0]
    for number, fold in enumerate(folds, 1):
        rows = dataset.fold(number)["vali"]
        np.testing.assert_array_equal(dataset.X[rows], fold["Kval"].T)
        np.testing.assert_array_equal(dataset.labels[rows], fold["Yval"].ravel())


@pytest.mark.parametrize(
    ("call", "n_texts", "n_classes"),
    [
        (datasets.fetch_twenty_newsgroups, (11314, 7532), 20),
        (datasets.fetch_reuters, (5485, 2189), 8),
        (datasets.fetch_webkb, (2803, 1396), 4),
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
    dataset = datasets.fetch_webkb()
    train = dataset.part("train")
    n_texts_of_word = (train.X > 0).sum(axis=0)
    assert np.min(n_texts_of_word) >= 3
    assert len(dataset.feature_names) == dataset.X.shape[1]
    norms = np.sqrt(np.asarray(dataset.X.multiply(dataset.X).sum(axis=1))).ravel()
    assert norms[norms > 0] == pytest.approx(1)


def test_modapte_grades_by_shared_topics(data_folder):
    dataset = datasets.fetch_reuters("modapte", vectors=False)
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


@pytest.mark.parametrize("version", ["query-level-norm", "minimum"])
def test_ohsumed(data_folder, version):
    dataset = datasets.fetch_ohsumed(version)
    assert dataset.X.shape == (16140, 45)
    assert np.bincount(dataset.grades.astype(int)).tolist() == [11303, 2585, 2252]
    assert dataset.relevance.n_queries == 106
    assert dataset.texts[0].startswith("docid = ")
    test = dataset.part(dataset.fold(1)["test"])
    assert test.qid[0] == 85


def test_mq2008(data_folder):
    dataset = datasets.fetch_mq2008()
    assert dataset.X.shape == (15211, 46)
    assert [rows.size for rows in dataset.splits.values()] == [
        2933,
        3635,
        3062,
        2707,
        2874,
    ]
    assert np.bincount(dataset.grades.astype(int)).tolist() == [12279, 2001, 931]
    assert dataset.relevance.n_queries == 784
    for number in range(1, 6):
        fold = {role: dataset.qid[rows] for role, rows in dataset.fold(number).items()}
        assert not np.intersect1d(fold["train"], fold["test"]).size
        assert sum(rows.size for rows in fold.values()) == 15211


def test_mslr_sample_has_each_query_once(data_folder):
    dataset = datasets.fetch_mslr_sample()
    assert dataset.X.shape[1] == 136
    assert dataset.relevance.n_queries == 165
    assert set(np.unique(dataset.grades)) == {0, 1, 2, 3, 4}
    # A query that came from two files would stand in two runs of rows.
    assert 1 + np.count_nonzero(np.diff(dataset.qid)) == 165


def test_lightgbm_example(data_folder):
    dataset = datasets.fetch_lightgbm_example()
    assert dataset.X.shape == (3773, 300)
    assert dataset.part("train").relevance.n_queries == 201
    assert dataset.part("test").relevance.n_queries == 50
    assert set(np.unique(dataset.grades)) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("name", "n_items", "n_judgments", "splits"),
    [
        ("scifact", 5183, 1258, {"train": 809, "test": 300}),
        ("nfcorpus", 3395, 133794, {"train": 2563, "dev": 324, "test": 323}),
        ("cranfield", 1400, 1612, {}),
        ("npl", 11426, 2083, {}),
    ],
)
def test_retrieval(data_folder, name, n_items, n_judgments, splits):
    dataset = getattr(datasets, f"fetch_{name}")()
    assert dataset.X.shape == (n_items, 384)
    assert dataset.X.dtype == dataset.queries.dtype == np.float32
    assert dataset.relevance.items.size == n_judgments
    assert (
        len(dataset.queries) == len(dataset.query_texts) == dataset.relevance.n_queries
    )
    assert {part: rows.size for part, rows in dataset.splits.items()} == splits
    for vectors in (dataset.X, dataset.queries):
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-3)


def test_vectors_stand_beside_their_texts(data_folder):
    """nDCG@10 of the cosine on SciFact's test queries, as the data folder documents it."""
    part = datasets.fetch_scifact().part("test")
    order = np.argsort(-part.queries @ part.X.T, axis=1, kind="stable")[:, :10]
    discounts = 1 / np.log2(np.arange(2, 12))
    values = []
    for query, items in enumerate(order):
        relevant = part.relevance.relevant(query)
        values.append(
            discounts[np.isin(items, relevant)].sum() / discounts[: relevant.size].sum()
        )
    assert np.mean(values) == pytest.approx(0.6457, abs=5e-4)


def test_cal500(data_folder):
    dataset = datasets.fetch_cal500()
    assert dataset.X.shape == (502, 68)
    assert (dataset.relevance.n_relevant == 25).all()
    _, grades = dataset.relevance.judged(0)
    assert np.bincount(grades.astype(int)).tolist() == [0, 15, 10]


def test_speed_dating(data_folder):
    dataset = datasets.fetch_speed_dating()
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
    names = datasets.fetch_speed_dating().feature_names
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
