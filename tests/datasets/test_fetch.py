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
