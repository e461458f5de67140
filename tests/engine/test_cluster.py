"""Learners on a Dask cluster of processes: the same results, even when workers are lost."""

import ast
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import rankspace
from rankspace import FRML, GMML, LGMML, MLR, PARCA, Relevance, RobustMLR
from rankspace._engine.parallel import (
    Step,
    Threads,
    Tree,
    current_backend,
    shards_of,
    threads,
    total_of,
)
from rankspace._engine.parallel.transport import Payload, mapped_file
from rankspace.learners.solvers.warp.sharded import align

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    """Two processes, as users start them on one machine."""
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=50,
    )
    yield cluster
    with contextlib.suppress(KeyError):  # Dask may look for a worker that was killed
        cluster.close()
    cluster.status = distributed.Status.closed


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def blobs(n):
    """Three blobs in six dimensions, half of them noise."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 6)) * [1, 1, 1, 3, 3, 3]
    X[:, :2] += np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X, y


@pytest.fixture(scope="module")
def data():
    return blobs(450)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Split even small data into several blocks."""
    monkeypatch.setattr("rankspace.learners.solvers.smooth.pair_ratio.PAIRS", 2**14)
    monkeypatch.setattr("rankspace.learners.solvers.scaling.BLOCK", 64)


def separate_queries(rng, n_items=300, n_queries=60):
    """Queries with a few relevant and a few irrelevant items each; the others are unjudged."""
    X, Q = rng.normal(size=(n_items, 5)), rng.normal(size=(n_queries, 5))
    near = np.argsort(((Q[:, None, :2] - X[:, :2]) ** 2).sum(axis=2), axis=1)
    relevance = Relevance.from_lists(
        near[:, :4].tolist(),
        near[:, 100:120].tolist(),
        n_items=n_items,
        unjudged="ignore",
    )
    return X, relevance, Q


LEARNERS = {
    "gmml": lambda: GMML(),
    "mlr": lambda: MLR(measure="auc", C=100.0, max_iter=12, max_memory=1),
    "mlr sampled": lambda: MLR(
        measure="map", C=100.0, max_iter=6, batch_size=100, max_memory=1, random_state=0
    ),
    "robust": lambda: RobustMLR(measure="auc", C=100.0, max_iter=6, max_memory=1),
    "frml": lambda: FRML(
        3, n_shards=3, n_triplets=3000, check_every=1000, random_state=0
    ),
    "parca": lambda: PARCA(2, reg=0.01, init="pca", max_iter=8),
}


def components(learner, X, y, where, **options):
    with warnings.catch_warnings(), rankspace.use_backend(where, **options):
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


def test_the_tree_adds_neighbours_first():
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
    class Add(Step):
        def map_block(self, block, state):
            return block + state

    assert list(Threads(3).map(Add(), range(40), 1)) == list(range(1, 41))
    assert list(Threads(3).map(Add(), range(9), 1, max_in_flight=2)) == list(
        range(1, 10)
    )


def test_a_step_without_restrict_is_shared_by_all_blocks():
    class Restricted(Step):
        def restrict(self, blocks):
            return Restricted()

    step = Step()
    assert step.is_shared
    assert step.restrict([1]) is step
    assert step.prepare("state") == "state"
    assert not Restricted().is_shared


def test_every_class_with_map_block_is_a_step():
    without_base = []
    for path in Path(rankspace.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.bases:
                methods = [getattr(member, "name", "") for member in node.body]
                if "map_block" in methods:
                    without_base.append(node.name)
    assert without_base == ["Step"]


# ---------------------------------------------------------------------- choosing a backend


def test_use_backend_chooses_the_backend_of_its_block():
    with rankspace.use_backend("serial") as backend:
        assert current_backend() is backend
        assert backend.n_workers == 1
    assert current_backend().n is None


def test_use_backend_says_what_it_takes():
    with (
        pytest.raises(ValueError, match="address of a scheduler"),
        rankspace.use_backend("fast"),
    ):
        pass
    with pytest.raises(ValueError, match="Dask client"), rankspace.use_backend(3):
        pass


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr("rankspace._engine.parallel.dask.CONNECTING", 0.5)
    with pytest.raises(ConnectionError, match="no Dask scheduler responds"):
        rankspace.use_backend("tcp://127.0.0.1:9").__enter__()


# ---------------------------------------------------------------------- payloads


def test_mapped_arrays_are_pickled_as_the_name_of_their_file(tmp_path, rng):
    import pickle

    X = rng.normal(size=(5000, 4))
    np.save(tmp_path / "x.npy", X)
    mapped = np.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"))
    part = mapped[100:200]
    sent = pickle.dumps(Payload({"mapped": part, "in memory": X[:3]}), protocol=5)
    assert len(sent) < 1500
    received = pickle.loads(sent).content
    np.testing.assert_array_equal(received["mapped"], X[100:200])
    np.testing.assert_array_equal(received["in memory"], X[:3])
    assert mapped_file(received["mapped"]).path == mapped_file(part).path
    assert mapped_file(X) is None


# ---------------------------------------------------------------------- the same result


@pytest.mark.parametrize("learner", LEARNERS)
def test_same_result_in_serial_in_threads_and_on_workers(
    learner, data, client, monkeypatch
):
    X, y = data
    expected = components(learner, X, y, "serial")
    monkeypatch.setattr(threads, "OMP_NUM_THREADS", "2")
    np.testing.assert_array_equal(components(learner, X, y, "threads"), expected)
    for shards in (1, 3):
        found = components(learner, X, y, client, shards=shards)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_same_result_with_many_blocks_of_rows(client):
    X, y = blobs(10_000)
    model = MLR(
        measure="auc", C=100.0, max_iter=3, batch_size=40, max_memory=4, random_state=0
    )
    found = []
    for where in ("serial", client):
        with rankspace.use_backend(where):
            found.append(model.fit(X, y).components_)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12)


def test_same_result_from_lists_of_separate_queries(rng, client):
    X, relevance, Q = separate_queries(rng)
    for model in (GMML(), MLR(measure="auc", C=10.0, max_iter=5, max_memory=1)):
        found = []
        for where in ("serial", client):
            with rankspace.use_backend(where):
                found.append(model.fit(X, relevance, queries=Q).components_)
        np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12)


def lists_of_documents(rng, n_lists=40, length=12):
    X = rng.normal(size=(n_lists * length, 5))
    grades = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=len(X)) + 1), 0, 2)
    return X, grades, np.repeat(np.arange(n_lists), length)


@pytest.mark.parametrize("kind", ["lists", "queries"])
def test_same_local_metrics(kind, rng, data, client, monkeypatch):
    found = []
    for where in ("serial", "threads", client):
        n = "2" if where == "threads" else "1"
        monkeypatch.setattr(threads, "OMP_NUM_THREADS", n)
        model = LGMML(3, random_state=0)
        with rankspace.use_backend(where):
            if kind == "lists":
                X, grades, qid = lists_of_documents(np.random.default_rng(1))
                model.set_params(n_metrics=20).fit(X, grades, qid=qid)
                found.append((model.metric_.factors, model.predict(X)))
            else:
                X, y = data[0][:200], data[1][:200]
                model.fit(X, y)
                found.append((model.metric_.factors, model.rank(X[:5], X).distances))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-10, atol=1e-12)


def local_metrics(X, y, where):
    with rankspace.use_backend(where):
        return LGMML(3, random_state=0).fit(X, y).metric_.factors


@pytest.mark.long
def test_same_result_with_another_number_of_workers(data, cluster, client):
    X, y = data
    cluster.scale(3)
    client.wait_for_workers(3)
    try:
        for learner in ("gmml", "mlr", "parca"):
            expected = components(learner, X, y, "serial")
            found = components(learner, X, y, client)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        expected = local_metrics(X[:200], y[:200], "serial")
        found = local_metrics(X[:200], y[:200], client)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    finally:
        cluster.scale(2)
        client.wait_for_workers(2)


def test_tasks_are_named_by_what_they_do(data, client, monkeypatch):
    names, submit = set(), client.submit

    def listen(work, *arguments, key=None, **options):
        names.add(None if key is None else key.rsplit("-", 1)[0])
        return submit(work, *arguments, key=key, **options)

    monkeypatch.setattr(client, "submit", listen)
    components("mlr", *data, client)
    assert {"RankingLoss_tuple", "WeightedGram_ndarray"} <= names


def test_workers_in_this_process_restore_its_blas_threads(data):
    def blas_threads():
        blas = [
            library for library in threadpool_info() if library["user_api"] == "blas"
        ]
        return {library["filepath"]: library["num_threads"] for library in blas}

    cluster = distributed.LocalCluster(
        processes=False, dashboard_address=None, silence_logs=50
    )
    with threadpool_limits(2, "blas"), cluster, distributed.Client(cluster) as client:
        before = blas_threads()
        assert max(before.values()) == 2
        components("gmml", *data, client)
        assert before.items() <= blas_threads().items()


# ---------------------------------------------------------------------- lost workers and schedulers


class AfterRound(logging.Handler):
    """Calls a function once, after a given round of MLR."""

    def __init__(self, number, action):
        super().__init__(logging.INFO)
        self.number, self.action, self.seen = number, action, 0

    def emit(self, record):
        self.seen += 1
        if self.seen == self.number:
            self.action()

    def __enter__(self):
        logger = logging.getLogger("rankspace")
        self.level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *error):
        logger = logging.getLogger("rankspace")
        logger.removeHandler(self)
        logger.setLevel(self.level)


def test_a_killed_worker_costs_time_and_nothing_else(data, client):
    X, y = data
    expected = components("mlr", X, y, "serial")
    victim = next(iter(client.run(os.getpid).values()))
    with AfterRound(3, lambda: os.kill(victim, signal.SIGKILL)) as rounds:
        found = components("mlr", X, y, client)
    assert rounds.seen >= 10
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)


@pytest.mark.long
def test_all_workers_killed_at_once(data, client):
    X, y = data
    expected = components("mlr", X, y, "serial")

    def kill_all():
        for victim in client.run(os.getpid).values():
            os.kill(victim, signal.SIGKILL)

    with AfterRound(3, kill_all):
        found = components("mlr", X, y, client)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.fixture
def lone_scheduler(tmp_path):
    """A scheduler and a worker in processes of their own."""
    where = tmp_path / "scheduler.json"
    words = [sys.executable, "-m", "dask"]
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": tmp_path,
    }
    ends = ["--scheduler-file", str(where), "--no-dashboard"]
    scheduler = subprocess.Popen([*words, "scheduler", "--port", "0", *ends], **quiet)
    worker = subprocess.Popen(
        [*words, "worker", "--no-nanny", "--nthreads", "1", *ends], **quiet
    )
    while not where.exists():
        time.sleep(0.05)
    yield where, scheduler
    for process in (scheduler, worker):
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_lost_scheduler_leaves_a_checkpoint(
    data, lone_scheduler, tmp_path, monkeypatch
):
    # Every round is written, however long the last writing took.
    monkeypatch.setattr("rankspace.learners.solvers.checkpoint.REST", 0.0)
    X, y = data
    where, scheduler = lone_scheduler
    path = tmp_path / "rounds.safetensors"
    model = LEARNERS["mlr"]().set_params(checkpoint=path)
    with distributed.Client(scheduler_file=str(where), timeout=2) as client:
        client.wait_for_workers(1)
        lost = pytest.raises(
            ConnectionError, match=r"scheduler .* lost.*rounds\.safetensors"
        )
        with AfterRound(4, scheduler.kill), rankspace.use_backend(client), lost:
            model.fit(X, y)
    resumed = model.fit(X, y)
    assert resumed.n_iter_ >= 10
    with AfterRound(1, lambda: None) as rounds:
        np.testing.assert_array_equal(model.fit(X, y).components_, resumed.components_)
    assert rounds.seen < 4
    expected = components("mlr", X, y, "serial")
    np.testing.assert_allclose(resumed.components_, expected, rtol=1e-10, atol=1e-12)


def test_a_checkpoint_belongs_to_its_data_and_parameters(data, tmp_path):
    X, y = data
    path = tmp_path / "rounds.safetensors"
    model = LEARNERS["mlr"]().set_params(checkpoint=path, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        with pytest.raises(ValueError, match="same data and parameters"):
            model.fit(X + X**2, y)
        with pytest.raises(ValueError, match="same data and parameters"):
            model.set_params(C=7.0).fit(X, y)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="must be a checkpoint"):
        model.fit(X, y)


def test_sampled_rounds_resume_from_a_checkpoint(data, tmp_path):
    X, y = data
    model = LEARNERS["mlr sampled"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.fit(X, y).components_
        model.set_params(checkpoint=tmp_path / "rounds.safetensors", max_iter=3).fit(
            X, y
        )
        found = model.set_params(max_iter=6).fit(X, y).components_
    np.testing.assert_array_equal(found, expected)


def test_factors_are_turned_before_their_mean(rng):
    F = rng.normal(size=(6, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    np.testing.assert_allclose(align(F @ rotation, F), F, atol=1e-12)
    near = F + 0.01 * rng.normal(size=F.shape)
    found = align(near @ rotation, F)
    np.testing.assert_allclose(found @ found.T, near @ near.T, atol=1e-12)
    assert np.linalg.norm(found - F) <= np.linalg.norm(near - F) + 1e-12


# ---------------------------------------------------------------------- several users

RANK = """
import sys
import numpy as np
import rankspace
X = np.random.default_rng(0).normal(size=(50, 3))
with rankspace.use_backend(sys.argv[1]):
    print(rankspace.Index(X).rank(X[:4], int(sys.argv[2])).items.size)
"""


@pytest.mark.long
def test_workers_do_not_confuse_rounds_of_two_processes(lone_scheduler):
    """The first round of each process, with another number of neighbours."""
    where, _ = lone_scheduler
    with distributed.Client(scheduler_file=str(where)) as client:
        address = client.scheduler.address
    for k in (3, 5):
        found = subprocess.run(
            [sys.executable, "-c", RANK, address, str(k)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(found.stdout) == 4 * k


# ---------------------------------------------------------------------- what X may be


@pytest.fixture
def forms(data, tmp_path):
    """The same items as a file, memory-mapped, as a folder of shards, and as a dask.array."""
    import dask.array

    X, _ = data
    path, folder = tmp_path / "x.npy", tmp_path / "parts"
    np.save(path, X)
    folder.mkdir()
    for number, part in enumerate(np.array_split(X, 4)):
        np.save(folder / f"part-{number}.npy", part)
    return {
        "file": path,
        "mapped": np.load(path, mmap_mode="r"),
        "folder": folder,
        "dask": dask.array.from_array(X, chunks=(250, 3)),
    }


@pytest.mark.parametrize("learner", ["gmml", "mlr", "parca"])
def test_same_result_from_files_and_chunks(learner, data, forms, client):
    X, y = data
    expected = components(learner, X, y, "serial")
    for form, given in forms.items():
        where = "serial" if form == "folder" else client
        found = components(learner, given, y, where)
        np.testing.assert_allclose(
            found, expected, rtol=1e-10, atol=1e-12, err_msg=form
        )


def test_files_of_a_folder_must_have_the_same_width(tmp_path):
    with pytest.raises(ValueError, match="it has none"):
        GMML().fit(tmp_path, [0, 1])
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    np.save(tmp_path / "b.npy", np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"a\.npy has \(3, 2\).*b\.npy \(3, 4\)"):
        GMML().fit(tmp_path, [0, 1] * 3)
    with pytest.raises(ValueError, match="a folder or pattern of"):
        GMML().fit(tmp_path / "c.csv", [0, 1])


def test_streamed_mlr_agrees_with_the_one_in_memory(tmp_path, rng):
    """A mapped corpus above max_memory is streamed; the metric is the same."""
    y = np.arange(48_000) % 3
    X = rng.normal(size=(48_000, 6)).astype(np.float32)
    X[:, 0] += 2 * y
    np.save(tmp_path / "x.npy", X)
    relevance = Relevance.from_labels(y, query_labels=[0, 1, 2] * 4)
    Q = rng.normal(size=(12, 6)).astype(np.float32)
    Q[:, 0] += 2 * np.tile([0, 1, 2], 4)
    for measure in ("auc", "p@5"):
        model = MLR(measure=measure, C=100.0, max_iter=4, max_memory=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mapped = model.fit(
                tmp_path / "x.npy", relevance, queries=Q
            ).get_mahalanobis_matrix()
            held = model.fit(X, relevance, queries=Q).get_mahalanobis_matrix()
        np.testing.assert_allclose(mapped, held, atol=2e-2 * np.abs(held).max())


def test_mapped_vectors_far_from_the_origin_are_searched(tmp_path, rng):
    X = rng.normal(size=(3000, 4)) + 1000
    np.save(tmp_path / "x.npy", X)
    mapped = rankspace.Index(tmp_path / "x.npy").rank(X[:20], 5)
    held = rankspace.Index(X).rank(X[:20], 5)
    np.testing.assert_array_equal(mapped.items, held.items)


# ---------------------------------------------------------------------- search, evaluation, tuning


@pytest.mark.parametrize("k", [None, 5])
def test_same_lists_and_scores(k, data, client):
    X, y = data
    relevance = Relevance.from_labels(y)
    index = rankspace.Index(X, GMML().fit(X, y).metric_, max_memory=1)
    expected = index.rank(k=k)
    scores = rankspace.evaluate(index.blocks(k=k), relevance, "map ndcg@10")
    with rankspace.use_backend(client):
        found = index.rank(k=k)
        again = rankspace.evaluate(index.blocks(k=k), relevance, "map ndcg@10")
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_array_equal(found.distances, expected.distances)
    assert found.similarity == again.similarity == "euclidean"
    for measure, values in scores.values.items():
        np.testing.assert_array_equal(again.values[measure], values)


def test_scores_from_workers_are_matched_by_name(rng, client):
    X, Q = rng.normal(size=(200, 3)), rng.normal(size=(70, 3))
    names = [f"q{number}" for number in range(70)]
    qrels = {name: {str(number): 1} for number, name in enumerate(reversed(names))}
    relevance = Relevance.from_qrels(qrels, item_ids=map(str, range(200)))
    index = rankspace.Index(X, ids=list(map(str, range(200))), max_memory=1)
    with rankspace.use_backend(client):
        found = rankspace.evaluate(index.blocks(Q, query_ids=names), relevance, "mrr")
    expected = rankspace.evaluate(index.blocks(Q, query_ids=names), relevance, "mrr")
    np.testing.assert_array_equal(found.values["mrr"], expected.values["mrr"])


def test_scores_from_workers_need_lists(client):
    relevance = Relevance.from_qrels({"p": {"a": 1}}, item_ids=["a", "b"])
    nothing = rankspace.Ranking.from_pairs([], 2, query_ids=[])
    for where in ("serial", client):
        with (
            rankspace.use_backend(where),
            pytest.raises(ValueError, match="each of 1 queries: got 0"),
        ):
            rankspace.evaluate(nothing, relevance, "mrr")


def test_same_scores_of_given_lists(rng, client, monkeypatch):
    monkeypatch.setattr("rankspace.evaluation.measures.LISTS_PER_BLOCK", 16)
    ranking = rankspace.Ranking.from_distances(rng.normal(size=(60, 40)))
    relevance = Relevance.from_lists(
        [[number % 40] for number in range(60)], n_items=40
    )
    with rankspace.use_backend(client):
        found = rankspace.evaluate(ranking, relevance, "mrr ndcg@5")
    expected = rankspace.evaluate(ranking, relevance, "mrr ndcg@5")
    for measure, values in expected.values.items():
        np.testing.assert_array_equal(found.values[measure], values)


def test_same_score_of_a_model(data, client):
    X, y = data
    model = GMML().fit(X, y)
    with rankspace.use_backend(client):
        found = model.score(X, y)
    assert found == model.score(X, y)


def test_tune_selects_the_same_metric(rng, client):
    X, Q = rng.normal(size=(200, 6)), rng.normal(size=(60, 6))
    near = np.argsort(((Q[:, None, :2] - X[:, :2]) ** 2).sum(axis=2), axis=1)[:, :5]
    options = {"queries": Q, "similarity": "euclidean", "random_state": 0}
    options |= {"n_folds": 3, "budget": 3600}
    expected = rankspace.tune(X, near, **options)
    assert expected.improved
    with rankspace.use_backend(client):
        found = rankspace.tune(X, near, **options)
        skipped = rankspace.tune(X, near, **{**options, "budget": 1e-9})
    assert found.report.sentence == expected.report.sentence
    assert found.report.to_dict()["path"] == expected.report.to_dict()["path"]
    assert skipped.report.skipped == ["map shared by queries and items"]
    np.testing.assert_allclose(
        found.metric.components, expected.metric.components, rtol=1e-6
    )


def test_grid_search_through_joblib(data, client):
    import joblib
    from sklearn.model_selection import GridSearchCV

    X, y = data
    search = GridSearchCV(GMML(), {"t": [0.1, 0.5, 0.9]}, cv=3)
    expected = search.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend="dask"):
        found = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# ---------------------------------------------------------------------- commands


def test_commands_on_a_cluster(data, client, tmp_path, capsys):
    from rankspace.cli.main import main

    X, y = data
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    client.wait_for_workers(2, timeout=60)
    vectors, address = str(tmp_path / "x.npy"), client.scheduler.address
    words = ["--method", "gmml", "--labels", str(tmp_path / "y.npy"), "--output"]
    for name, where in (("here", []), ("there", ["--cluster", address])):
        metric, run = (
            str(tmp_path / f"{name}.safetensors"),
            str(tmp_path / f"{name}.trec"),
        )
        assert main(["fit", vectors, *words, metric, *where]) == 0
        ranked = ["rank", vectors, "--metric", metric, "-k", "5", "--output", run]
        assert main([*ranked, *where]) == 0
    assert "cluster of 2 workers: http" in capsys.readouterr().err
    assert (tmp_path / "here.trec").read_bytes() == (
        tmp_path / "there.trec"
    ).read_bytes()
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{n} 0 {n + 3} 1\n" for n in range(440))
    )
    judged = [
        "evaluate",
        str(tmp_path / "here.trec"),
        str(tmp_path / "qrels.txt"),
        "--json",
    ]
    answers = []
    for where in ([], ["--cluster", address]):
        assert main([*judged, *where]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_a_command_says_what_cluster_takes(capsys, tmp_path):
    from rankspace.cli.main import main

    np.save(tmp_path / "x.npy", np.eye(4))
    output = str(tmp_path / "run.trec")
    words = ["rank", str(tmp_path / "x.npy"), "--output", output, "--cluster", "home"]
    assert main(words) == 2
    assert "--cluster must be the address" in capsys.readouterr().err
