"""Live indexes of stores: what they find, fetch and sample, against all vectors in memory."""

import numpy as np
import pytest

from rankspace import BilinearMetric, Ranking, Relevance, tune
from rankspace.export import (
    LiveFaiss,
    LivePgvector,
    LiveQdrant,
    LiveRun,
    to_pgvector,
    to_qdrant,
)
from rankspace.search import LiveIndex

N, D = 300, 6


@pytest.fixture(scope="module")
def X():
    rows = np.random.default_rng(0).normal(size=(N, D)).astype("f4")
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def Q():
    return np.random.default_rng(1).normal(size=(60, D)).astype("f4")


def faiss_of(X, kind):
    faiss = pytest.importorskip("faiss")
    recipes = {"l2": "Flat", "ivf": "IVF4,Flat", "keys": "IDMap,Flat"}
    recipes |= {"flat": "Flat", "hnsw": "HNSW32", "keys ivf": "IDMap,IVF4,Flat"}
    metric = faiss.METRIC_L2 if kind == "l2" else faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(X.shape[1], recipes[kind], metric)
    index.train(X)
    if kind.endswith("ivf"):
        faiss.extract_index_ivf(index).nprobe = 4
    if kind.startswith("keys"):
        index.add_with_ids(X, 1000 - np.arange(N))
    else:
        index.add(X)
    return index


def unchanged():
    return BilinearMetric(np.eye(D), np.eye(D), similarity="cosine")


@pytest.fixture(
    params=[
        "flat",
        "l2",
        "hnsw",
        "ivf",
        "keys",
        "keys ivf",
        "pgvector",
        "qdrant",
        "run",
    ]
)
def live(request, X):
    """A live index of the rows, and the id of each."""
    names = [f"d{row}" for row in range(N)]
    if request.param == "pgvector":
        psycopg = pytest.importorskip("psycopg")
        server = request.getfixturevalue("server")
        with psycopg.connect(server.get_uri()) as connection:
            to_pgvector(
                unchanged(), X, connection, table="live", ids=names, replace=True
            )
            yield LivePgvector(connection, "live"), names
    elif request.param == "qdrant":
        qdrant_client = pytest.importorskip("qdrant_client")
        client = qdrant_client.QdrantClient(":memory:")
        to_qdrant(unchanged(), X, client, ids=names)
        yield LiveQdrant(client, id_field="name"), names
    elif request.param == "run":
        every = Ranking.from_run({"q": {name: -n for n, name in enumerate(names)}})
        yield LiveRun(every, X, ids=names), names
    elif request.param.startswith("keys"):
        yield LiveFaiss(faiss_of(X, request.param)), [1000 - row for row in range(N)]
    else:
        yield LiveFaiss(faiss_of(X, request.param), ids=names), names


def test_it_finds_the_nearest_in_order(live, X, Q):
    index, names = live
    assert isinstance(index, LiveIndex)
    assert index.similarity == "cosine"
    unit = Q / np.linalg.norm(Q, axis=1, keepdims=True)
    nearest = np.argsort(-(unit @ X.T), axis=1)[:, :7]
    ids, scores = index.search(unit, 7)
    assert [list(row) for row in ids] == [[names[n] for n in row] for row in nearest]
    assert (np.diff(np.array(scores), axis=1) <= 0).all()


def test_it_fetches_vectors_by_id_and_says_which_are_missing(live, X):
    index, names = live
    stranger = "stranger" if isinstance(names[0], str) else 10**6
    found = index.fetch([names[8], stranger, names[3]])
    np.testing.assert_allclose(found[[0, 2]], X[[8, 3]], atol=1e-6)
    assert np.isnan(found[1]).all()
    assert np.isnan(index.fetch([stranger])).all()


def test_it_samples_documents_without_repetition(live, X):
    index, _ = live
    drawn = index.sample(50, 0)
    assert drawn.shape == (50, D)
    assert len({tuple(row) for row in np.round(drawn, 4).tolist()}) == 50
    everything = index.sample(N + 1, 0)
    order = np.lexsort(everything.T), np.lexsort(X.T)
    np.testing.assert_allclose(everything[order[0]], X[order[1]], atol=1e-6)


@pytest.fixture(scope="module")
def near(X, Q):
    what_matters = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    return np.argsort(-(Q * what_matters) @ X.T, axis=1)[:, :3]


@pytest.fixture(scope="module")
def expected(X, Q, near):
    return tune(X, near, queries=Q, similarity="cosine", n_folds=2, random_state=0)


def test_tune_learns_from_each_what_it_learns_from_all_vectors(live, Q, near, expected):
    index, names = live
    judged = [[names[row] for row in rows] for rows in near]
    tuned = tune(index, judged, queries=Q, n_folds=2, random_state=0)
    assert tuned.decision == expected.decision == "ship"
    rows = tuned.report.question("all"), expected.report.question("all")
    assert rows[0].unchanged == pytest.approx(rows[1].unchanged, abs=1e-6)
    assert rows[0].tuned == pytest.approx(rows[1].tuned, abs=0.01)
    shown = tuned.report.rankings[1]
    assert set(shown.ids(0)) <= set(map(str, names))


def test_a_faiss_index_that_maps_vectors_is_refused(X):
    faiss = pytest.importorskip("faiss")
    mapped = faiss.IndexPreTransform(
        faiss.NormalizationTransform(D), faiss_of(X, "flat")
    )
    with pytest.raises(ValueError, match="vectors as they were embedded"):
        LiveFaiss(mapped)


def test_unequal_lengths_are_compared_as_the_index_does(X):
    longer = X * np.linspace(1, 3, N, dtype="f4")[:, None]
    assert LiveFaiss(faiss_of(longer, "flat")).similarity == "dot"
    relevance = Relevance.from_lists(np.arange(60)[:, None], n_items=N)
    with pytest.raises(ValueError, match="cosine, dot: got 'euclidean'"):
        tune(LiveFaiss(faiss_of(longer, "l2")), relevance, queries=X[:60])


def test_ids_of_an_index_name_each_document(X):
    with pytest.raises(ValueError, match="each of 300 documents: got 2"):
        LiveFaiss(faiss_of(X, "flat"), ids=["a", "b"])


def test_a_run_lists_documents_that_have_vectors(X):
    with pytest.raises(ValueError, match="some have no vector"):
        LiveRun({"q": {"stranger": 1.0}}, X)


def test_a_vector_of_qdrant_is_named():
    qdrant_client = pytest.importorskip("qdrant_client")
    models = qdrant_client.models
    client = qdrant_client.QdrantClient(":memory:")
    config = {"title": models.VectorParams(size=2, distance=models.Distance.DOT)}
    client.create_collection("several", config)
    vectors = {1: [1.0, 2.0], 2: [0.0, 1.0]}
    points = [
        models.PointStruct(id=id, vector={"title": vector})
        for id, vector in vectors.items()
    ]
    client.upsert("several", points)
    index = LiveQdrant(client, "several", vector="title")
    assert index.similarity == "dot"
    np.testing.assert_array_equal(index.fetch([1]), [[1.0, 2.0]])
    with pytest.raises(ValueError, match="one of title"):
        LiveQdrant(client, "several")
