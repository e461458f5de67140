"""Checkpoints: a fit that resumes ends as if it had never been interrupted, or it is refused."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from safetensors.numpy import load, save, save_file

from rankspace import FRML, MLR, Relevance, RobustMLR
from rankspace._engine import digest as _digest
from rankspace._engine.digest import digest
from rankspace.learners.solvers import checkpoint as _checkpoint
from rankspace.learners.solvers.checkpoint import Checkpoint
from rankspace.metrics.storage import split_header

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def labelled(dtype=float):
    """Three classes in six dimensions, of which two tell them apart."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6)) * [1, 1, 1, 3, 3, 3]
    X[:, :2] += np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X.astype(dtype), y, None


def sparse():
    X, y, _ = labelled()
    return scipy.sparse.csr_array(np.where(np.abs(X) > 1, X, 0)), y, None


def separate():
    """Queries that are no items, with graded and weighted judgments of a few items each."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 5))
    Q = rng.normal(size=(40, 5))
    order = np.argsort(((Q[:, None, :2] - X[:, :2]) ** 2).sum(axis=2), axis=1)
    relevance = Relevance.from_lists(
        order[:, :4].tolist(),
        order[:, 60:80].tolist(),
        n_items=120,
        unjudged="ignore",
    )
    weights = rng.integers(1, 4, size=40).astype(float)
    return X, replace(relevance, weights=weights), Q


PRIOR = np.diag([3.0, 2.0, 1.0, 1.0, 1.0, 1.0])
SAMPLED = {"batch_size": 15, "max_iter": 9, "random_state": 0}
SHORT = {"n_triplets": 3200, "check_every": 640, "random_state": 0}
CASES = {
    "mlr": (MLR, {"measure": "auc", "C": 100.0}, labelled),
    "mlr map float32": (MLR, {"max_iter": 6}, lambda: labelled(np.float32)),
    "mlr sampled": (MLR, {"measure": "auc", "C": 100.0, **SAMPLED}, labelled),
    "mlr sampled converged": (
        MLR,
        {"C": 10.0, "tol": 0.2, **SAMPLED, "max_iter": 50},
        labelled,
    ),
    "mlr sampled without seed": (MLR, {**SAMPLED, "random_state": None}, labelled),
    "mlr diagonal": (MLR, {"constraint": "diagonal", "max_iter": 6}, labelled),
    "mlr frobenius": (MLR, {"regularizer": "frobenius", "max_iter": 6}, labelled),
    "mlr identity": (
        MLR,
        {"regularizer": "frobenius", "prior": "identity", "max_iter": 6},
        labelled,
    ),
    "mlr prior": (
        MLR,
        {"regularizer": "frobenius", "prior": PRIOR, "max_iter": 6},
        labelled,
    ),
    "mlr separate": (MLR, {"max_iter": 6, "n_components": 2}, separate),
    "mlr separate sampled": (MLR, SAMPLED, separate),
    "robust": (RobustMLR, {"measure": "auc", "C": 100.0, "max_iter": 6}, labelled),
    "robust sampled": (RobustMLR, {"measure": "auc", "C": 100.0, **SAMPLED}, labelled),
    "frml": (FRML, {**SHORT, "patience": 1}, labelled),
    "frml float32": (FRML, SHORT, lambda: labelled(np.float32)),
    "frml without seed": (FRML, {**SHORT, "random_state": None}, labelled),
    "frml random": (FRML, {"n_components": 2, "init": "random", **SHORT}, labelled),
    "frml identity": (FRML, {"init": "identity", **SHORT}, labelled),
    "frml init": (FRML, {"init": np.eye(3, 6) + 0.1, **SHORT}, labelled),
    "frml features": (FRML, {"n_components": 2, "max_memory": 1, **SHORT}, labelled),
    "frml targets": (FRML, {"n_targets": 3, **SHORT}, labelled),
    "frml shards": (FRML, {"n_components": 3, "n_shards": 3, **SHORT}, labelled),
    "frml frobenius": (FRML, {"regularizer": "frobenius", **SHORT}, labelled),
    "frml uniform": (FRML, {"rank_weights": "uniform", **SHORT}, labelled),
    "frml unvalidated": (FRML, {"validation_fraction": 0, **SHORT}, labelled),
    "frml sparse": (FRML, {"n_components": 3, **SHORT}, sparse),
    "frml separate": (FRML, {"n_components": 3, **SHORT}, separate),
}


def fit(case, **changes):
    learner, options, data = CASES[case]
    X, y, queries = data()
    return learner(**{**options, **changes}).fit(X, y, queries=queries)


def attributes(model, *, clock=False):
    """The fitted attributes, by default without the seconds that passed."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    if not clock:
        found["history_"] = [{**row, "seconds": 0} for row in model.history_]
    found["metric_"] = model.metric_.components
    return found


def assert_equal(found, expected, **options):
    found = attributes(found, **options)
    expected = attributes(expected, **options)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_equal(found[name], value, err_msg=name)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A path, and a list of copies of the file that each round and check left there."""
    path = tmp_path / "fit.safetensors"
    copies = []
    save = Checkpoint.save

    def save_and_copy(self, *arguments, **options):
        save(self, *arguments, **options)
        if self.path == path:
            copies.append(tmp_path / f"{len(copies)}.safetensors")
            shutil.copy(path, copies[-1])

    monkeypatch.setattr(_checkpoint, "REST", 0.0)
    monkeypatch.setattr(Checkpoint, "save", save_and_copy)
    return path, copies


# ---------------------------------------------------------------------- resumed


@pytest.mark.parametrize("case", CASES)
def test_resumed_after_any_round_it_ends_the_same(case, saved, caplog):
    path, copies = saved
    whole = fit(case, checkpoint=path)
    if CASES[case][1].get("random_state", 0) is not None:
        assert_equal(whole, fit(case))
    assert len(copies) >= 3
    chosen = {0, len(copies) // 3, 2 * len(copies) // 3, len(copies) - 2}
    for number in sorted(chosen):
        assert_equal(fit(case, checkpoint=copies[number]), whole)
    with caplog.at_level(logging.INFO, "rankspace"):
        assert_equal(fit(case, checkpoint=path), whole, clock=True)
    finished = whole.n_iter_ < CASES[case][1].get("max_iter", 200)
    said = "holds a finished fit" in caplog.text
    assert said == (finished or case.startswith("frml"))


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_checkpoints import fit
print("ready", flush=True)
for _ in range(50):
    fit(sys.argv[2], checkpoint=sys.argv[3])
"""


@pytest.mark.parametrize("case", ["mlr sampled", "robust", "frml shards"])
def test_killed_and_resumed_it_ends_the_same(case, tmp_path):
    path = tmp_path / "fit.safetensors"
    here = os.path.dirname(__file__)
    words = [sys.executable, "-c", SCRIPT, here, case, str(path)]
    for seconds in (0.02, 0.1):
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert_equal(fit(case, checkpoint=path), fit(case))


@pytest.mark.parametrize("case", ["mlr", "mlr sampled"])
def test_a_finished_run_goes_on_to_more_rounds(case, tmp_path):
    path = tmp_path / "fit.safetensors"
    short = fit(case, checkpoint=path, max_iter=3)
    assert_equal(fit(case, checkpoint=path, max_iter=3), short, clock=True)
    assert_equal(fit(case, checkpoint=path, max_iter=7), fit(case, max_iter=7))
    with pytest.raises(ValueError, match=r"at most max_iter=5 rounds: it holds 7\."):
        fit(case, checkpoint=path, max_iter=5)


def test_the_last_state_is_saved_however_long_writing_took(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "REST", 1e9)
    path = tmp_path / "fit.safetensors"
    for case in ("mlr sampled", "frml"):
        whole = fit(case, checkpoint=path)
        assert_equal(fit(case, checkpoint=path), whole, clock=True)
        path.unlink()


# ---------------------------------------------------------------------- refused


DATA = separate()
JUDGMENTS = DATA[1]
OTHER_WEIGHTS = np.r_[2 * JUDGMENTS.weights[:1], JUDGMENTS.weights[1:]]
OTHER_QUERIES = np.r_[DATA[2][:-1], DATA[2][-1:] + 0.01]
OTHER_ITEMS = np.r_[DATA[0][:-1], DATA[0][-1:] + 0.01]


@pytest.mark.parametrize("learner", [MLR, RobustMLR, FRML])
@pytest.mark.parametrize(
    ("data", "options", "name"),
    [
        ({"queries": OTHER_QUERIES}, {}, "queries"),
        ({"X": OTHER_ITEMS}, {}, "X"),
        ({"X": DATA[0].astype(np.float32)}, {}, "X"),
        ({"y": replace(JUDGMENTS, weights=OTHER_WEIGHTS)}, {}, "y"),
        ({"y": replace(JUDGMENTS, unjudged="irrelevant")}, {}, "y"),
        ({"y": replace(JUDGMENTS, min_relevant_grade=0.5)}, {}, "y"),
        ({}, {"measure": "p@3"}, "measure"),
        ({}, {"random_state": 1}, "random_state"),
        ({}, {"batch_size": 7, "max_memory": 3}, "batch_size, max_memory"),
    ],
)
def test_a_fit_of_other_data_or_parameters_is_refused(
    learner, data, options, name, tmp_path
):
    path = tmp_path / "fit.safetensors"
    short = {"n_triplets": 640} if learner is FRML else {"max_iter": 2}
    common = {"checkpoint": path, "batch_size": 8, "random_state": 0, **short}
    X, y, queries = DATA
    learner(**common).fit(X, y, queries=queries)
    before = path.read_bytes()
    given = {"X": X, "y": y, "queries": queries, **data}
    with pytest.raises(
        ValueError, match=rf"same data and parameters, but these differ: {name}\. Use"
    ):
        learner(**{**common, **options}).fit(**given)
    assert path.read_bytes() == before


def test_another_learner_or_prior_is_refused(tmp_path):
    X, y, _ = labelled()
    X = np.random.default_rng(0).normal(size=(90, 64)) + X[:, :1]
    path = tmp_path / "fit.safetensors"
    priors = []
    for corner in (1.0, 2.0):
        priors.append(np.eye(64))
        priors[-1][30, 30] = corner  # where the repr of a large array has dots
    common = {"regularizer": "frobenius", "max_iter": 2, "checkpoint": path}
    MLR(prior=priors[0], **common).fit(X, y)
    with pytest.raises(ValueError, match="but these differ: prior"):
        MLR(prior=priors[1], **common).fit(X, y)
    with pytest.raises(ValueError, match=r"these differ: .*method"):
        FRML(checkpoint=path).fit(X, y)


def test_a_warm_start_from_another_metric_is_refused(tmp_path):
    X, y, _ = labelled()
    model = FRML(2, warm_start=True, **SHORT).fit(X, y)
    first = model.components_
    path = tmp_path / "fit.safetensors"
    second = model.set_params(checkpoint=path).fit(X, y).components_
    with pytest.raises(ValueError, match="these differ: components_"):
        model.fit(X, y)
    model.components_ = first
    np.testing.assert_array_equal(model.fit(X, y).components_, second)


def test_a_random_generator_cannot_be_resumed(tmp_path):
    generator = np.random.RandomState(0)
    for case in ("mlr sampled", "frml"):
        with pytest.raises(ValueError, match="int or None: got RandomState"):
            fit(case, checkpoint=tmp_path / "fit", random_state=generator)


@pytest.mark.parametrize(
    "content", [b"", b"something else", b'{"checksum":"', bytes(100)]
)
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(content, tmp_path):
    path = tmp_path / "fit.safetensors"
    path.write_bytes(content)
    for case in ("mlr", "frml"):
        with pytest.raises(ValueError, match=r"Use another path, or delete the file"):
            fit(case, checkpoint=path)
    assert path.read_bytes() == content


def test_another_safetensors_file_is_refused_and_kept(tmp_path):
    path = tmp_path / "fit.safetensors"
    save_file({"F": np.eye(3)}, path, {"checksum": "0" * 32})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must be a checkpoint"):
        fit("frml", checkpoint=path)
    assert path.read_bytes() == before


def test_every_flipped_bit_and_every_cut_is_found(tmp_path):
    path = tmp_path / "fit.safetensors"
    checkpoint = Checkpoint(path, {"X": digest("X", np.eye(2))})
    checkpoint.save({"W": np.eye(2), "done": False, "history": [{"gap": np.inf}]})
    content = path.read_bytes()
    damaged = [content[:length] for length in range(0, len(content), 7)]
    damaged.append(content + b" ")
    for place in range(len(content)):
        for bit in (1 << place % 8, 0xFF):
            flipped = bytearray(content)
            flipped[place] ^= bit
            damaged.append(bytes(flipped))
    for wrong in damaged:
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="must be a checkpoint"):
            checkpoint.load()
    path.write_bytes(content)
    assert checkpoint.load()["history"] == [{"gap": np.inf}]


# ---------------------------------------------------------------------- written on purpose


def sealed(arrays, header):
    """A file with a right checksum."""
    header = {**header, "checksum": _checkpoint.NO_CHECKSUM}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return _checkpoint._seal(save(arrays, header))


def crafted_states(state):
    """States with one value that no fit writes."""
    for name, value in state.items():
        yield {key: value for key, value in state.items() if key != name}
        # These numbers are counts or may be negative; of the rest, -1 is wrong everywhere.
        signed = ("upper", "lower", "slack", "best_score", "progress", "done")
        wrong = ["x", [0], {"a": 1}, 10**30]
        wrong += [] if name in signed else [-1]
        wrong += [None] if name != "progress" else []
        wrong += [float("nan")] if isinstance(value, float) else []
        wrong += [[{}], [{"seconds": None}]] if name == "history" else []
        wrong += [{"project": 1}, {"_last_rank": 10**9}] if name == "cone" else []
        for other in wrong:
            yield {**state, name: other}


def crafted_arrays(arrays):
    """Arrays of which one has another shape or type, or no finite numbers."""
    for name, array in arrays.items():
        yield {key: value for key, value in arrays.items() if key != name}
        wrong = [array[:-1], np.concatenate([array, array]), array.ravel()[None, None]]
        wrong += [array.astype("f4"), np.array(1.0)]
        if array.dtype.kind == "f":
            wrong += [np.full_like(array, np.nan), array.astype(int)]
        for other in wrong:
            yield {**arrays, name: other}
    for name in {"problem.gram", "problem.alpha"} & arrays.keys():
        yield {**arrays, name: -1 - arrays[name]}


@pytest.mark.parametrize("case", ["mlr", "mlr sampled", "robust", "frml"])
def test_a_crafted_state_is_refused_before_it_is_used(case, saved):
    path, copies = saved
    fit(case, checkpoint=path)
    content = copies[len(copies) // 2].read_bytes()
    header = split_header(content)[0]["__metadata__"]
    arrays, state = load(content), json.loads(header["state"])
    # What is changed below is all that is wrong with the files.
    path.write_bytes(sealed(arrays, header))
    fit(case, checkpoint=path)
    files = [
        sealed(arrays, {**header, "state": json.dumps(changed)})
        for changed in crafted_states(state)
    ]
    files += [sealed(changed, header) for changed in crafted_arrays(arrays)]
    for name in ("digests", "state", "transposed"):
        for text in ("", "null", "1", '"x"', "[1]", '["no"]', "[" * 10**5):
            if (name, text) != ("transposed", '"x"'):
                files.append(sealed(arrays, {**header, name: text}))
        files.append(sealed(arrays, {k: v for k, v in header.items() if k != name}))
    for file in files:
        path.write_bytes(file)
        with pytest.raises(
            ValueError, match=r"must be (a checkpoint|of the same data)"
        ):
            fit(case, checkpoint=path)


# ---------------------------------------------------------------------- what is stored and hashed


def test_arrays_come_back_in_their_order_of_memory(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit", {})
    state = {
        "rows": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "none": np.zeros((0, 4)),
        "done": True,
    }
    checkpoint.save(state)
    found = checkpoint.load()
    for name, value in state.items():
        np.testing.assert_array_equal(found[name], value)
    for name in ("rows", "columns"):
        assert found[name].strides == state[name].strides


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 1.5, None, "a", "None", [], [[]], [1], [1, [2]], [[1], 2], [1, 2]],
        [np.zeros(4), np.zeros((2, 2)), np.zeros(4, np.float32), np.zeros(4, int)],
        [np.eye(3), scipy.sparse.csr_array(np.eye(3)), np.eye(3)[::-1], np.eye(3)[:2]],
        [scipy.sparse.csr_array(np.eye(3, k=k)) for k in (0, 1)],
        [scipy.sparse.csr_array((2, n)) for n in (3, 4)],
    ],
)
def test_digests_differ_where_values_do(values):
    assert len({digest("value", value) for value in values}) == len(values)


def test_equal_values_have_one_digest(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 3))
    expected = digest("X", X)
    monkeypatch.setattr(_digest, "BLOCK_BYTES", 100)
    assert digest("X", np.asfortranarray(X)) == expected
    assert digest("C", 10) == digest("C", 10.0) == digest("C", np.float32(10))
    with pytest.raises(ValueError, match="prior must be a number"):
        digest("prior", np.array([object()]))


def test_mapped_data_are_hashed_in_blocks(tmp_path, monkeypatch):
    mapped = np.lib.format.open_memmap(
        tmp_path / "x.npy", "w+", dtype=float, shape=(2**18, 16)
    )
    mapped[-1] = 1
    monkeypatch.setattr(_digest, "BLOCK_BYTES", 2**20)
    tracemalloc.start()
    found = digest("X", np.load(tmp_path / "x.npy", mmap_mode="r"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20
    assert found == digest("X", np.array(mapped))


def test_a_file_and_its_array_share_a_checkpoint(tmp_path):
    X, y, _ = labelled()
    np.save(tmp_path / "x.npy", X)
    model = MLR(measure="auc", C=100.0, checkpoint=tmp_path / "fit")
    expected = model.fit(tmp_path / "x.npy", y).history_
    assert model.fit(X, y).history_ == expected
