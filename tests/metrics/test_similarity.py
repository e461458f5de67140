"""Cosine, dot product and Euclidean distance against loops, on vectors of very different length."""

import json

import numpy as np
import pytest
import safetensors
import scipy.sparse

from rankspace import (
    AsymmetricMetric,
    BilinearMetric,
    Index,
    LinearMetric,
    Ranking,
    Relevance,
    Report,
    compare,
    evaluate,
    load_metric,
)
from rankspace.evaluation.neighbors import knn_error, leave_one_out
from rankspace.metrics import unchanged_metric

SIMILARITIES = ("cosine", "dot", "euclidean")


def vectors(n, seed, dtype=float):
    """Vectors with lengths from 0.5 to 20."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X *= rng.uniform(0.5, 20, size=n)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    return X.astype(dtype)


def length(v):
    return sum(float(value) ** 2 for value in v) ** 0.5


def plain_distance(q, x, similarity):
    """One pair: minus the similarity, or the distance."""
    product = sum(float(a) * float(b) for a, b in zip(q, x, strict=True))
    if similarity == "dot":
        return -product
    if similarity == "cosine":
        return -product / length(q) / length(x)
    return length(q - x)


def plain_distances(Q, X, similarity):
    return np.array([[plain_distance(q, x, similarity) for x in X] for q in Q])


def orders(distances):
    return np.argsort(distances, axis=1, kind="stable")


def as_rows(ranking):
    return ranking.items.reshape(len(ranking), -1)


Q, X = vectors(9, 0), vectors(150, 1)
MAPS = np.random.default_rng(2).normal(size=(2, 4, 6))
OFFSET = np.random.default_rng(3).normal(size=4)
COSINE = {
    "linear": LinearMetric(MAPS[0], similarity="cosine"),
    "bilinear": BilinearMetric(*MAPS, query_offset=OFFSET, similarity="cosine"),
    "asymmetric": AsymmetricMetric(*MAPS, query_offset=OFFSET, similarity="cosine"),
}


def test_the_three_similarities_differ_on_these_vectors():
    firsts = [
        orders(plain_distances(Q, X, similarity))[:, :10] for similarity in SIMILARITIES
    ]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (firsts[a] != firsts[b]).any(axis=1).all()


@pytest.mark.parametrize("k", [None, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_unmapped_vectors_rank_as_in_loops(similarity, dtype, k):
    items, queries = X.astype(dtype), Q.astype(dtype)
    expected = plain_distances(queries, items, similarity)
    rankings = {
        "index": Index(items, similarity=similarity).rank(queries, k),
        "metric": unchanged_metric(6, similarity).rank(queries, items, k),
    }
    for ranking in rankings.values():
        np.testing.assert_array_equal(as_rows(ranking), orders(expected)[:, :k])
        found = ranking.distances.reshape(len(queries), -1)
        np.testing.assert_allclose(
            found, np.sort(expected)[:, :k], rtol=1e-5, atol=1e-5
        )
        assert ranking.similarity == similarity
    distances = unchanged_metric(6, similarity).distances(queries, items)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_items_among_themselves_added_and_reranked(similarity):
    index = Index(X[:100], similarity=similarity).add(X[100:])
    expected = plain_distances(X, X, similarity)
    np.fill_diagonal(expected, np.inf)
    among = as_rows(index.rank(k=5))
    np.testing.assert_array_equal(among, orders(expected)[:, :5])
    own = index.rank(X, 5, query_items=np.arange(150))
    np.testing.assert_array_equal(as_rows(own), among)
    candidates = [np.arange(q, 150, 7) for q in range(len(Q))]
    reranked = index.rerank(Q, candidates)
    assert reranked.similarity == similarity
    for q, items in enumerate(candidates):
        far = plain_distances(Q[[q]], X[items], similarity)[0]
        np.testing.assert_array_equal(reranked[q][0], items[np.argsort(far)])


def test_an_index_alone_is_euclidean_and_does_not_copy():
    index = Index(X)
    assert index.similarity == "euclidean"
    assert index._blocks[0] is X
    assert Index(X, similarity="dot")._blocks[0] is X


def test_faiss_finds_the_nearest_by_cosine():
    pytest.importorskip("faiss")
    index = Index(X, similarity="cosine", backend="faiss")
    expected = orders(plain_distances(Q, X, "cosine"))[:, :10]
    np.testing.assert_array_equal(as_rows(index.rank(Q, 10)), expected)


@pytest.mark.parametrize("kind", COSINE)
def test_vectors_have_unit_length_before_the_map_and_not_after(kind):
    metric = COSINE[kind]
    query_map, item_map = (MAPS[0], MAPS[0]) if kind == "linear" else MAPS
    offset = np.zeros(4) if kind == "linear" else OFFSET
    items = np.array([item_map @ (x / length(x)) for x in X])
    queries = np.array([query_map @ (q / length(q)) + offset for q in Q])
    np.testing.assert_allclose(metric.embed_items(X), items, atol=1e-12)
    np.testing.assert_allclose(metric.embed_queries(Q), queries, atol=1e-12)
    expected = plain_distances(queries, items, "dot")
    if not metric.inner_product:
        expected = plain_distances(queries, items, "euclidean")
    np.testing.assert_allclose(metric.distances(Q, X), expected, atol=1e-12)
    ranking = metric.rank(Q, X)
    np.testing.assert_array_equal(as_rows(ranking), orders(expected))
    assert ranking.similarity == "cosine"
    scaled = metric.rank(100 * Q, X * np.linspace(1, 50, 150)[:, None])
    np.testing.assert_array_equal(scaled.items, ranking.items)


def test_items_far_from_the_origin_are_not_shifted_before_unit_length():
    """Without the cosine, an index maps vectors around their mean; that would change lengths."""
    metric, far, queries = COSINE["linear"], X + 100, Q + 100
    items, points = (
        np.array([MAPS[0] @ (v / length(v)) for v in vs]) for vs in (far, queries)
    )
    expected = orders(plain_distances(points, items, "euclidean"))
    np.testing.assert_array_equal(as_rows(Index(far, metric).rank(queries)), expected)


def test_points_and_pairs_of_a_linear_metric_under_the_cosine():
    metric = COSINE["linear"]
    np.testing.assert_array_equal(metric.transform(X), metric.embed_items(X))
    sparse = scipy.sparse.csr_array(np.where(X > 0, X, 0))
    sparse = sparse[np.flatnonzero(sparse.sum(axis=1))]
    np.testing.assert_allclose(
        metric.transform(sparse), metric.transform(sparse.toarray())
    )
    expected = np.diag(metric.distances(X[:9], Q))
    np.testing.assert_allclose(metric.pair_distances(X[:9], Q), expected)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_of_lengths_may_leave_the_range_of_floats(scale):
    np.testing.assert_allclose(
        COSINE["linear"].transform(X * scale), COSINE["linear"].transform(X)
    )


def test_a_zero_vector_has_no_cosine():
    broken = X.copy()
    broken[[7, 9]] = 0
    message = r"must not contain zero vectors, which have no cosine: row 7 is zero"
    for call in (
        lambda: Index(broken, similarity="cosine"),
        lambda: Index(X, similarity="cosine").rank(broken),
        lambda: COSINE["linear"].transform(broken),
        lambda: COSINE["bilinear"].embed_queries(broken),
        lambda: COSINE["bilinear"].embed_items(scipy.sparse.csr_array(broken)),
        lambda: COSINE["asymmetric"].rank(broken, X),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for similarity in ("dot", "euclidean"):
        assert len(Index(broken, similarity=similarity).rank(Q, 5)) == len(Q)


@pytest.mark.parametrize("kind", COSINE)
def test_files_and_repr_have_the_similarity(kind, tmp_path):
    metric = COSINE[kind]
    plain = type(metric)(*(getattr(metric, name) for name in metric.arrays[:2]))
    for saved in (metric, plain):
        saved.save(tmp_path / "m")
        loaded = load_metric(tmp_path / "m")
        assert loaded.similarity == saved.similarity
        assert repr(loaded) == repr(saved)
        assert f"similarity={saved.similarity!r}" in repr(saved)
        with safetensors.safe_open(tmp_path / "m", "numpy") as stored:
            assert stored.metadata()["similarity"] == saved.similarity
            assert json.loads(stored.metadata()["parameters"]) == {}
        np.testing.assert_array_equal(loaded.distances(Q, X), saved.distances(Q, X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Index(X, similarity="cos"),
            "one of cosine, dot, euclidean: got 'cos'",
        ),
        (
            lambda: Index(X, COSINE["linear"], similarity="euclidean"),
            "must be that of the metric, 'cosine': got 'euclidean'",
        ),
        (
            lambda: LinearMetric(MAPS[0], similarity="dot"),
            "euclidean, cosine: got 'dot'",
        ),
        (lambda: BilinearMetric(*MAPS, similarity="euclidean"), "dot, cosine: got"),
        (lambda: unchanged_metric(3, "l2"), "cosine, dot, euclidean: got 'l2'"),
        (
            lambda: Ranking(
                np.array([0]), X[0, :0].astype(int), X[0, :0], 1, similarity="?"
            ),
            "similarity must be one of",
        ),
    ],
)
def test_what_does_not_fit_is_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_metric_and_similarity_may_agree():
    assert Index(X, COSINE["linear"], similarity="cosine").similarity == "cosine"
    assert Index(X, BilinearMetric(*MAPS)).similarity == "dot"


# ---------------------------------------------------------------------- rankings and reports


RELEVANCE = Relevance.from_lists([[q, q + 20] for q in range(len(Q))], n_items=len(X))


def test_parts_of_a_ranking_keep_the_similarity():
    ranking = Index(X, similarity="cosine").rank(Q)
    assert ranking.top(3).similarity == "cosine"
    assert Ranking.join([ranking, ranking]).similarity == "cosine"
    assert Ranking.from_distances([[1.0]]).similarity is None
    with pytest.raises(ValueError, match="same similarity: got cosine and dot"):
        Ranking.join([ranking, Index(X, similarity="dot").rank(Q)])


def test_reports_name_the_similarity_in_their_first_line():
    index = Index(X, similarity="cosine")
    report = evaluate(index.rank(Q), RELEVANCE, "map")
    blocks = evaluate(index.blocks(Q), RELEVANCE, "map")
    for made in (report, blocks, report.take([0, 2])):
        assert made.similarity == "cosine"
        assert str(made).splitlines()[0] == "similarity: cosine"
        assert made.to_markdown().startswith("similarity: cosine\n\n|")
        assert made.to_dict()["similarity"] == "cosine"
    unknown = Report(report.values)
    assert "similarity" not in str(unknown)
    other = evaluate(Index(X).rank(Q), RELEVANCE, "map")

    def first_line(before, after):
        return str(compare(before, after)).splitlines()[0]

    assert first_line(report, blocks) == "similarity: cosine"
    assert first_line(other, report) == "similarity: euclidean before, cosine after"
    assert first_line(unknown, report) == "similarity: not known before, cosine after"
    assert "similarity" not in str(compare(unknown, unknown))


def test_leave_one_out_compares_by_the_similarity():
    labels = np.arange(len(X)) % 3
    report = leave_one_out(X, labels, similarity="cosine", ks=(5,))
    assert report.similarity == "cosine"
    far = plain_distances(X, X, "cosine")
    expected = knn_error(Ranking.from_distances(far), labels, 5)
    assert report.means["knn-error@5"] == pytest.approx(expected)
    assert leave_one_out(X, labels, COSINE["linear"], ks=(5,)).similarity == "cosine"
    assert leave_one_out(X, labels, ks=(5,)).similarity == "euclidean"
