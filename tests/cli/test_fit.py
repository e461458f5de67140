"""Learning and applying a metric by the command line."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest

from rankspace import FRML, MLR, BilinearMetric, LinearMetric, ListwiseMap, load_metric
from rankspace.cli import main as command
from rankspace.datasets import load_wine


def answer(capsys, *words):
    assert command.main(shlex.split(" ".join(words))) == 0
    return capsys.readouterr().out


def refusal(capsys, *words):
    assert command.main(shlex.split(" ".join(words))) == 2
    return capsys.readouterr().err


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def collection(rng):
    """Vectors of items and queries whose first feature alone tells what is relevant."""
    X, Q = rng.standard_normal((60, 4)), rng.standard_normal((20, 4))
    nearest = np.abs(Q[:, :1] - X[:, 0]).argsort(axis=1)[:, :3]
    np.save("X.npy", X)
    np.save("Q.npy", Q)
    with open("qrels", "w") as rows, open("named", "w") as names:
        for q, items in enumerate(nearest.tolist()):
            rows.writelines(f"{q} 0 {x} 1\n" for x in items)
            names.writelines(f"q{q} 0 d{x} 1\n" for x in items)
    with open("ids", "w") as ids, open("query-ids", "w") as query_ids:
        ids.writelines(f"d{i}\n" for i in range(60))
        query_ids.writelines(f"q{i}\n" for i in range(20))
    return X, Q, nearest


def test_fit_a_data_set(capsys):
    words = "fit wine --method mlr -C 50 --measure auc --output m"
    assert "fitted MLR on 178 items of 13 features" in answer(capsys, words)
    wine = load_wine()
    expected = MLR(50, measure="auc", random_state=0).fit(wine.X, wine.labels).metric_
    np.testing.assert_allclose(load_metric("m").components, expected.components)
    assert load_metric("m").parameters == expected.parameters


def test_fit_passes_any_parameter(capsys):
    words = "fit wine --n-components 2 --set n_triplets=2000 --set init=random --seed 3"
    found = json.loads(answer(capsys, words, "--json --output m"))
    assert found["method"] == "FRML"
    assert found["parameters"]["n_triplets"] == 2000
    wine = load_wine()
    model = FRML(2, n_triplets=2000, init="random", random_state=3).fit(
        wine.X, wine.labels
    )
    np.testing.assert_allclose(load_metric("m").components, model.components_)


@pytest.mark.parametrize("named", [True, False])
def test_fit_vectors_and_judgments(collection, capsys, named):
    words = "fit X.npy --queries Q.npy --method listwise --set reg=0.003 --output m"
    ids = "--qrels named --ids ids --query-ids query-ids"
    answer(capsys, words, ids if named else "--qrels qrels")
    metric, (X, Q, nearest) = load_metric("m"), collection
    found = metric.rank(Q, X, 3).items.reshape(-1, 3)
    before = LinearMetric.identity(4).rank(Q, X, 3).items.reshape(-1, 3)
    shares = [
        np.mean([len({*a} & {*b}) for a, b in zip(f, nearest, strict=True)])
        for f in (found, before)
    ]
    assert shares[0] > shares[1] + 1


def test_fit_may_drop_judgments_of_unknown_items(collection, capsys):
    with open("qrels", "a") as rows:
        rows.write("0 0 1000 1\n")
    words = "fit X.npy --queries Q.npy --qrels qrels --method listwise"
    told = refusal(capsys, words, "--output m")
    assert "item ids of the judgments must be among those of the data" in told
    assert "Only in the judgments: '1000'" in told
    answer(capsys, words, "--unknown drop --output m")


def test_fit_queries_only(collection, capsys):
    answer(
        capsys,
        "fit X.npy --queries Q.npy --qrels qrels --method listwise --sides query --output m",
    )
    assert isinstance(load_metric("m"), BilinearMetric)


@pytest.mark.parametrize("form", ["npy", "txt"])
def test_fit_vectors_and_labels(wine, capsys, form):
    X, y = wine
    np.save("X.npy", X)
    np.save("y.npy", y)
    with open("y.txt", "w") as lines:
        lines.writelines(f"class {label}\n" for label in y)
    answer(
        capsys,
        "fit X.npy --labels",
        f"y.{form}",
        "--method listwise --output m",
    )
    expected = ListwiseMap().fit(X, y).metric_
    np.testing.assert_allclose(load_metric("m").components, expected.components)


def test_fit_shows_the_warnings_of_a_learner(capsys):
    text = answer(
        capsys,
        "fit wine --method listwise --set max_iter=1 --output m",
    )
    assert "note: ListwiseMap stopped after 1 steps" in text


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "wine --method magic",
            "--method must be one of euclidean, frml, gmml, ",
        ),
        (
            "wine --method lmnn -C 1",
            "LMNN has no parameter 'C': it has max_iter",
        ),
        ("wine --set x", "--set must be OPTION=VALUE"),
        ("wine --qrels q", "--qrels can only be used with a file of vectors"),
        (
            "wine --split train",
            "--split must be a split of wine, which has none",
        ),
        (
            "X.npy --split train",
            "--split can only be used with a folder or a data set",
        ),
        ("X.npy", "needs --labels, or --qrels and --queries"),
        ("X.npy --qrels qrels", "needs --labels, or --qrels and --queries"),
        ("X.npy --labels query-ids", "must have a line for each of 60 rows"),
        ("X.npy --labels Q.npy", "must have a label for each of 60 rows"),
        ("X.npy --queries Q.npy --qrels named", "'q0'"),
        (
            "X.npy --queries Q.npy --qrels named --query-ids qrels",
            "qrels must have",
        ),
        (
            "twenty_newsgroups_of_yore",
            "is not a folder, a file of vectors or a data set",
        ),
    ],
)
def test_fit_refuses(capsys, words, message):
    assert message in refusal(capsys, "fit", words, "--output m")


@pytest.mark.parametrize("side", ["items", "queries"])
def test_transform_in_blocks(rng, capsys, side):
    metric = BilinearMetric(
        rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), query_offset=[1, 2, 3]
    )
    metric.save("m")
    X = rng.normal(size=(100, 5))
    np.save("X.npy", X)
    words = f"transform m X.npy --side {side} --block-size 7 --output out.npy"
    assert "mapped 100 vectors to 3 components: wrote out.npy" in answer(capsys, words)
    expected = metric.embed_items(X) if side == "items" else metric.embed_queries(X)
    np.testing.assert_allclose(np.load("out.npy"), expected)
    found = json.loads(answer(capsys, words, "--json"))
    assert found == {"shape": [100, 3], "output": "out.npy", "search": "inner product"}


def test_transform_refuses_and_keeps_what_was_there(capsys):
    LinearMetric(np.eye(3)).save("m")
    np.save("X.npy", np.vstack((np.ones((20, 3)), np.full((1, 3), np.nan))))
    np.save("wide.npy", np.ones((2, 4)))
    with open("out.npy", "w") as old:
        old.write("old")
    words = "--block-size 10 --output out.npy"
    assert "X.npy must hold finite" in refusal(capsys, "transform m X.npy", words)
    assert "wide.npy must have 3 features" in refusal(
        capsys, "transform m wide.npy", words
    )
    assert "no such file" in refusal(capsys, "transform m none.npy", words)
    with open("out.npy") as old:
        assert old.read() == "old"


STREAM = """
import resource, sys
import numpy as np
from rankspace import LinearMetric
from rankspace.export import to_npy
metric = LinearMetric(np.ones((1, 64)))
to_npy(metric, np.zeros((10, 64), np.float32), "small.npy")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
to_npy(metric, "large.npy", "out.npy", block_size=2048)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="memory is measured as Linux reports it"
)
def test_transform_holds_a_block_of_a_large_file():
    # Zeros that are never written take no room on the disk.
    np.lib.format.open_memmap("large.npy", "w+", np.float32, (800_000, 64)).flush()
    found = subprocess.run(
        [sys.executable, "-c", STREAM], capture_output=True, text=True, check=True
    )
    assert float(found.stdout) < 20  # MiB, of a file of 195
    assert np.load("out.npy", mmap_mode="r").shape == (800_000, 1)
