"""Tuning by the command line."""

import json

import numpy as np
import pytest

from planted import planted
from rankspace import ListwiseMap, load_metric, tune
from rankspace.cli.main import main
from rankspace.cli.tune import METHODS, seconds
from rankspace.tuning import candidates, tuner
from rankspace.tuning.candidates import Candidate


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Files of vectors and judgments in the current folder, and one fast candidate."""
    monkeypatch.chdir(tmp_path)
    shared = Candidate("shared", ListwiseMap(0.003, random_state=0))
    monkeypatch.setattr(tuner, "candidates", lambda *sizes: [shared])
    X, relevance, Q = planted()
    np.save("corpus.npy", X)
    np.save("queries.npy", Q)
    lines = [f"{q} 0 {i} 1\n" for q in range(60) for i in relevance.relevant(q)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    return tmp_path


def run(options=""):
    command = "tune corpus.npy --queries queries.npy --qrels qrels.txt --output m"
    return main([*command.split(), *options.split()])


def test_tune_writes_the_metric_and_prints_its_gain(capsys):
    assert run() == 0
    assert "Significantly better: shared" in capsys.readouterr().out
    X, relevance, Q = planted()
    expected = tune(X, relevance, queries=Q, random_state=0).metric
    np.testing.assert_allclose(load_metric("m").components, expected.components)


def test_tune_writes_a_page(files, capsys):
    assert run("--report page.html") == 0
    assert capsys.readouterr().out.rstrip().endswith("wrote m and page.html")
    assert "rankspace tune: corpus" in (files / "page.html").read_text()
    assert run("--report no/page.html") == 2
    assert "does not exist: create it first" in capsys.readouterr().err


def test_tune_prints_json(capsys):
    assert run("--json --measure map --budget 5m") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["measure"] == "map"
    assert content["output"] == "m"


def test_tune_trains_on_one_split_and_evaluates_another(files, capsys):
    X, relevance, Q = planted()
    folder = files / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, vectors in (("corpus", X), ("queries", Q)):
        rows = [json.dumps({"_id": f"{i}", "text": ""}) for i in range(len(vectors))]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
        np.save(folder / f"{name}.npy", vectors)
    for split, queries in (("train", range(30)), ("dev", range(30, 50))):
        rows = [f"{q}\t{i}\t1\n" for q in queries for i in relevance.relevant(q)]
        header = "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / f"{split}.tsv").write_text("".join([header, *rows]))
    options = ["--split", "train", "--dev", "dev", "--output", "m", "--json"]
    assert main(["tune", "beir", *options]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["groups"]["all"]["n_queries"] == 20
    chosen = relevance.take_queries(np.arange(50))
    expected = tune(X, chosen, queries=Q[:50], dev=np.arange(30, 50), random_state=0)
    np.testing.assert_allclose(load_metric("m").components, expected.metric.components)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("wine --qrels x", "--qrels can only be used with a file of vectors"),
        ("mq2008-like", "mq2008-like"),
        (
            "wine --dev nope",
            "--dev must be a split of wine, which has none: got 'nope'",
        ),
    ],
)
def test_bad_input_is_one_sentence(options, message, capsys):
    assert main(["tune", *options.split(), "--output", "m"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "number"), [("90", 90), ("60s", 60), ("1.5m", 90), ("2h", 7200)]
)
def test_times(text, number):
    assert seconds(text) == number


def test_a_budget_must_be_a_time(capsys):
    with pytest.raises(SystemExit):
        run("--budget soon")
    assert "must be a time such as 60s" in capsys.readouterr().err


def test_help_names_all_methods():
    assert METHODS == candidates.METHODS
