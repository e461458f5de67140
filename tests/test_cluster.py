"""Learners on a real Dask cluster of processes: the same answers, whatever happens to workers."""

import warnings

import numpy as np
import pytest

import rankspace
from rankspace import GMML, MLR, PARCA, Relevance, RobustMLR
from rankspace._backends import Threads, Tree, current, shards_of, total_of
from rankspace._backends._parcel import Parcel, mapped_file

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    """Two processes, as users start them on one machine."""
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    """Three blobs in six dimensions, half of them noise."""
    rng = np.random.default_rng(0)
    y = np.arange(900) % 3
    X = rng.normal(size=(900, 6)) * [1, 1, 1, 3, 3, 3]
    X[:, :2] += np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X, y


def separate_queries(rng, n_items=300, n_queries=60):
    """Queries with a few relevant items each, and nothing else judged irrelevant but some."""
    X, Q = rng.normal(size=(n_items, 5)), rng.normal(size=(n_queries, 5))
    near = np.argsort(((Q[:, None, :2] - X[:, :2]) ** 2).sum(axis=2), axis=1)
    relevance = Relevance.from_lists(
        near[:, :4].tolist(), near[:, 100:120].tolist(), n_items=n_items, unjudged="ignore"
    )
    return X, relevance, Q


LEARNERS = {
    "gmml": lambda: GMML(),
    "mlr": lambda: MLR(measure="auc", C=100.0, max_iter=12, max_memory=1),
    "mlr sampled": lambda: MLR(
        measure="map", C=100.0, max_iter=6, batch_size=200, max_memory=1, random_state=0
    ),
    "robust": lambda: RobustMLR(measure="auc", C=100.0, max_iter=6, max_memory=1),
    "parca": lambda: PARCA(2, ridge=0.01, init="pca", max_iter=8),
}


def components(learner, X, y, where, **options):
    with warnings.catch_warnings(), rankspace.on(where, **options):
        warnings.simplefilter("ignore")
        return LEARNERS[learner]().fit(X, y).components_


# ---------------------------------------------------------------------- the order of sums


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 12, 33])
def test_shards_are_branches_of_the_tree(n, rng):
    numbers = list(rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, size=n))
    whole = total_of(numbers)
    for n_shards in (1, 2, 3, 4, 8, 50):
        shards = shards_of(numbers, n_shards)
        assert [number for shard in shards for number in shard] == numbers
        assert total_of([total_of(shard) for shard in shards]) == whole


def test_tree_adds_neighbours_first():
    tree = Tree()
    for letter in ("a", "b", "c", "d", "e"):
        tree.add(_Written(letter))
    assert tree.total().text == "(((ab)(cd))e)"


class _Written:
    def __init__(self, text):
        self.text = text

    def plus(self, other):
        return _Written(f"({self.text}{other.text})")


def test_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one block"):
        total_of([])


def test_threads_give_results_in_order():
    class Step:
        def local_step(self, block, state):
            return block + state

    assert list(Threads(3).each(Step(), range(40), 1)) == list(range(1, 41))
    assert list(Threads(3).each(Step(), range(9), 1, at_once=2)) == list(range(1, 10))


# ---------------------------------------------------------------------- choosing where


def test_on_chooses_for_a_while():
    with rankspace.on("serial") as backend:
        assert current() is backend
        assert backend.n_parts == 1
    assert current().n is None


def test_on_says_what_it_takes():
    with pytest.raises(ValueError, match="address of a scheduler"), rankspace.on("fast"):
        pass
    with pytest.raises(ValueError, match="Dask client"), rankspace.on(3):
        pass


def test_no_scheduler_at_the_address():
    with pytest.raises(ConnectionError, match="no Dask scheduler answers"):
        rankspace.on("tcp://127.0.0.1:9").__enter__()


# ---------------------------------------------------------------------- parcels


def test_mapped_arrays_travel_as_the_name_of_their_file(tmp_path, rng):
    import pickle

    X = rng.normal(size=(5000, 4))
    np.save(tmp_path / "x.npy", X)
    mapped = np.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"))
    part = mapped[100:200]
    sent = pickle.dumps(Parcel({"part": part, "own": X[:3]}), protocol=5)
    assert len(sent) < 1500
    again = pickle.loads(sent).content
    np.testing.assert_array_equal(again["part"], X[100:200])
    np.testing.assert_array_equal(again["own"], X[:3])
    assert mapped_file(again["part"]).path == mapped_file(part).path
    assert mapped_file(X) is None


# ---------------------------------------------------------------------- the same answer


@pytest.mark.parametrize("learner", LEARNERS)
def test_same_answer_in_serial_in_threads_and_on_workers(learner, data, client, monkeypatch):
    X, y = data
    expected = components(learner, X, y, "serial")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    np.testing.assert_array_equal(components(learner, X, y, "threads"), expected)
    for shards in (1, 3):
        found = components(learner, X, y, client, shards=shards)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_same_answer_from_lists_of_separate_queries(rng, client):
    X, relevance, Q = separate_queries(rng)
    for model in (GMML(), MLR(measure="auc", C=10.0, max_iter=5, max_memory=1)):
        found = []
        for where in ("serial", client):
            with rankspace.on(where):
                found.append(model.fit(X, relevance, queries=Q).components_)
        np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_same_answer_with_other_numbers_of_workers(n_workers, data, cluster, client):
    X, y = data
    cluster.scale(n_workers)
    client.wait_for_workers(n_workers)
    try:
        for learner in ("gmml", "mlr", "parca"):
            expected = components(learner, X, y, "serial")
            found = components(learner, X, y, client)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    finally:
        cluster.scale(2)
        client.wait_for_workers(2)
