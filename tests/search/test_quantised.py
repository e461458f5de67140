"""Quantised search beside plain loops over components and bits."""

import numpy as np
import pytest

from rankspace import BilinearMetric, Index, LinearMetric
from rankspace.search import QuantisedMetric
from rankspace.search.quantised import bytes_per_vector

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8)) * np.linspace(3, 0.1, 8)
Q = rng.normal(size=(25, 8)) * np.linspace(3, 0.1, 8)
A, B = rng.normal(size=(2, 6, 8))
BILINEAR = BilinearMetric(A, B)
LINEAR = LinearMetric(B)


def stored(vectors, storage):
    """Items as they are stored, one component after the other."""
    found = np.empty_like(vectors)
    for column in range(vectors.shape[1]):
        step = max(abs(v) for v in vectors[:, column]) / 127
        for row in range(len(vectors)):
            value = vectors[row, column]
            if storage == "int8":
                found[row, column] = round(value / step) * step
            else:
                found[row, column] = float(np.float16(value))
    return found


@pytest.mark.parametrize("storage", ["float16", "int8"])
@pytest.mark.parametrize("metric", [BILINEAR, LINEAR])
def test_items_are_rounded_and_queries_are_not(metric, storage):
    items = stored(metric.embed_items(X), storage)
    queries = metric.embed_queries(Q)
    quantised = QuantisedMetric(metric, X, storage)
    np.testing.assert_allclose(quantised.embed_items(X), items, atol=1e-12)
    ranking = quantised.index(X).rank(Q, 10)
    for query, (found, distances) in zip(queries, ranking, strict=True):
        expected = np.linalg.norm(query - items, axis=1)
        if metric.inner_product:
            expected = -items @ query
        order = np.argsort(expected, kind="stable")[:10]
        np.testing.assert_array_equal(found, order)
        np.testing.assert_allclose(distances, expected[order])


@pytest.mark.parametrize("metric", [BILINEAR, LINEAR])
def test_bits_choose_candidates_that_are_rescored(metric):
    items, queries = metric.embed_items(X), metric.embed_queries(Q)
    ranking = QuantisedMetric(metric, X, "binary").index(X).rank(Q, 5)
    for query, (found, _) in zip(queries, ranking, strict=True):
        agreeing = [sum((query > 0) == (item > 0)) for item in items]
        candidates = np.argsort(-np.array(agreeing), kind="stable")[:20]
        distances = np.linalg.norm(query - items[candidates], axis=1)
        if metric.inner_product:
            distances = -items[candidates] @ query
        order = np.lexsort((candidates, distances))[:5]
        np.testing.assert_array_equal(found, candidates[order])


def test_few_items_are_all_rescored():
    index = QuantisedMetric(BILINEAR, X[:12], "binary").index(X[:12])
    expected = Index(X[:12], BILINEAR)
    for k in (5, None):
        np.testing.assert_array_equal(index.rank(Q, k).items, expected.rank(Q, k).items)


def test_single_precision_stays_single_and_full_storage_changes_nothing():
    metric = BilinearMetric(A.astype("f4"), B.astype("f4"))
    single = X.astype("f4")
    for storage in ("float32", "float16", "int8"):
        quantised = QuantisedMetric(metric, single, storage)
        assert quantised.embed_items(single).dtype == np.float32
        assert quantised.embed_queries(single).dtype == np.float32
    full = QuantisedMetric(metric, single, "float32").embed_items(single)
    np.testing.assert_array_equal(full, metric.embed_items(single))


def test_bytes():
    found = [bytes_per_vector(130, s) for s in ("float32", "float16", "int8", "binary")]
    assert found == [520, 260, 130, 17]


def test_wrong_storage_is_named():
    with pytest.raises(ValueError, match=r"storage must be one of float32.*got 'int4'"):
        QuantisedMetric(BILINEAR, X, "int4")
    huge = QuantisedMetric(LinearMetric(np.eye(8)), X, "float16")
    with pytest.raises(
        ValueError, match="half precision needs components up to 65,504"
    ):
        huge.embed_items(1e6 * X)
