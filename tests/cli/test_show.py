"""rankspace show: what a metric is, what its file says of it, and commands that run."""

import json
import shlex

import numpy as np
import pytest

import rankspace
from rankspace import (
    LGMML,
    AsymmetricMetric,
    BilinearMetric,
    KernelMetric,
    LinearMetric,
    load_metric,
)
from rankspace.cli import main as command
from rankspace.datasets import load_wine
from rankspace.metrics import unchanged_metric

MAP = np.random.default_rng(0).standard_normal((4, 4))
METRICS = {
    "shared map": LinearMetric(MAP, similarity="cosine"),
    "query map": BilinearMetric(MAP, np.eye(4), similarity="cosine"),
    "separate maps": AsymmetricMetric(MAP, MAP[::-1]),
    "kernel metric": KernelMetric(MAP[:2], MAP[:, :2], kernels=[{"name": "rbf"}]),
}


def answer(capsys, *words):
    assert command.main(shlex.split(" ".join(words))) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    np.save("CORPUS.npy", rng.standard_normal((20, 4)))
    np.save("QUERIES.npy", rng.standard_normal((5, 4)))
    return tmp_path


@pytest.mark.parametrize("kind", METRICS)
def test_the_next_commands_run(kind, capsys):
    pytest.importorskip("faiss")
    pytest.importorskip("onnx")
    METRICS[kind].save("my metric")
    shown = answer(capsys, "show 'my metric'")
    assert shown.startswith(f"{kind}: {METRICS[kind]!r}")
    found = json.loads(answer(capsys, "show 'my metric' --json"))
    assert found["kind"] == kind
    commands = found["next"]["commands"]
    assert all(line in shown for line in commands)
    run = [line for line in commands if line.startswith("rankspace ")]
    for line in run:
        answer(capsys, line.removeprefix("rankspace "))
    maps_items = any("CORPUS" in line for line in run)
    assert maps_items == (kind != "query map")
    (python,) = [line for line in commands if line.startswith("python: ")]
    query = np.load("QUERIES.npy")[0]
    code = "import rankspace; mapped = " + python.removeprefix("python: ")
    names = {"query": query}
    exec(code, names)
    np.testing.assert_allclose(names["mapped"], np.load("mapped-queries.npy")[0])


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_unchanged_vectors_have_no_next_command(similarity, capsys):
    unchanged_metric(4, similarity).save("m")
    found = json.loads(answer(capsys, "show m --json"))
    assert found["kind"] == "unchanged vectors"
    assert found["next"]["commands"] == []
    assert "card: none" in answer(capsys, "show m")


def test_a_precomputed_kernel_maps_kernel_values(capsys):
    kernels = [{"name": "precomputed"}]
    KernelMetric(np.zeros((4, 0)), MAP, kernels=kernels).save("m")
    found = json.loads(answer(capsys, "show m --json"))
    assert found["kind"] == "kernel metric"
    (line,) = found["next"]["commands"]
    mapped = eval(
        line.removeprefix("python: "),
        {"rankspace": rankspace, "kernel_values": np.load("CORPUS.npy")},
    )
    np.testing.assert_allclose(mapped, np.load("CORPUS.npy") @ MAP.T)


def test_a_local_metric_is_scored_in_python(capsys, rng):
    X, qid = rng.standard_normal((60, 3)), np.repeat(np.arange(6), 10)
    LGMML(random_state=0).fit(X, X[:, 0] > 0, qid=qid).metric_.save("m")
    found = json.loads(answer(capsys, "show m --json"))
    assert found["kind"] == "local metric"
    (line,) = found["next"]["commands"]
    names = {"X": X, "qid": qid}
    exec("import rankspace; scores = " + line.removeprefix("python: "), names)
    assert names["scores"].shape == (60,)


def test_fit_fills_the_card_without_paths(capsys):
    np.save("secret.npy", load_wine().X)
    np.save("private.npy", load_wine().labels)
    words = "fit secret.npy --labels private.npy --method mlr -C 10 --measure auc"
    answer(capsys, words, "--set checkpoint=hidden --set tol=0.1 --output secret")
    card = load_metric("secret").card
    assert card["command"] == (
        "rankspace fit DATA --labels LABELS --unknown error --method mlr -C 10.0 "
        "--measure auc --seed 0 --set checkpoint=VALUE --set tol=0.1"
    )
    assert card["method"] == "MLR"
    assert card["parameters"]["tol"] == 0.1
    assert (card["n_items"], card["n_features"]) == (178, 13)
    text = json.dumps(dict(card))
    assert not any(word in text for word in ("secret", "private", "hidden", "/"))
    shown = answer(capsys, "show secret")
    assert f"data digest: {card['data_digest']}" in shown


def test_mapped_queries_are_searched_by_the_similarity_of_the_unmapped_items(capsys):
    METRICS["query map"].save("m")
    words = "transform m QUERIES.npy --side queries --output out.npy"
    assert "search: cosine with unmapped items" in answer(capsys, words)
    items = "transform m CORPUS.npy --side items --output out.npy"
    assert "search: inner product" in answer(capsys, items)


def test_a_p_value_is_rounded_and_a_signal_comes_first(capsys):
    metric = LinearMetric(MAP)
    signal = {"gain": 0.5, "gain_high": 0.6, "gain_low": 0.4, "signal": "bm25"}
    weights = {"bm25": 8.0, "vectors": 1.0}
    metric.card = {"p_value": 5.958466e-12, "signals": [signal], "weights": weights}
    metric.save("m")
    lines = answer(capsys, "show m").splitlines()
    assert "p value: 5.96e-12" in lines
    assert "signal    gain  gain low  gain high" in lines
    assert any("Fuse the lists of all signals" in line for line in lines)


def test_a_table_of_questions_is_shown(capsys):
    metric = LinearMetric(MAP)
    row = {"label": "new documents", "unchanged": 0.5, "tuned": 0.75, "low": None}
    # A file has them in the order of their names.
    size = {"everything": 0.5, "lower_limit": 0.0, "n_components": 8, "storage": "int8"}
    metric.card = {"measure": "map", "questions": [row], "sizes": [size]}
    metric.save("m")
    lines = answer(capsys, "show m").splitlines()
    assert ["label", "unchanged", "tuned", "low"] in [line.split() for line in lines]
    assert "new documents     0.5000  0.7500  -" in lines
    assert "n components  storage  everything  lower limit" in lines


def test_text_of_a_file_commands_no_terminal(capsys):
    metric = LinearMetric(MAP, parameters={"method": "\x1b[2J\u202e"})
    metric.card = {
        "measure\x1b]0;": "\x1b[31m\r\u202e\udcff",
        "long": "x" * 10_000,
        "odd": [{"a\x07": "\x9b"}, {"a\x07": 1}],
        "uneven": [{"a": 1}, {"b": "\x1b"}],
    }
    metric.save("m")
    for words in ("show m", "show m --json"):
        shown = answer(capsys, words)
        assert all(c.isprintable() or c == "\n" for c in shown)
    assert max(map(len, answer(capsys, "show m").splitlines())) < 300
