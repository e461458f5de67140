"""Cards: what a metric file says of itself is kept, bounded, and equal for equal runs."""

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse
from safetensors import safe_open

from rankspace import BilinearMetric, LinearMetric, Relevance, load_metric
from rankspace.cli import main as cli
from rankspace.export import to_query_side
from rankspace.metrics.card import MAX_CHARACTERS, data_facts

CARD = {
    "similarity": "cosine",
    "measure": "ndcg-linear@10",
    "questions": [{"label": "new documents", "low": -0.1, "high": None}],
}
X = np.arange(12.0).reshape(4, 3)
Y = Relevance.from_labels([0, 0, 1, 1])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metric"


def with_card(path, text):
    arrays = {"components": np.eye(2)}
    header = {"rankspace_format": "1", "kind": "linear", "card": text}
    safetensors.numpy.save_file(arrays, path, header)
    return path


def test_a_card_is_saved_and_loaded(path):
    metric = LinearMetric(np.eye(3))
    assert metric.card == {}
    metric.card = CARD
    metric.save(path)
    assert load_metric(path).card == CARD
    assert to_query_side(metric, X).metric.card == CARD


def test_a_card_changes_by_assignment_only():
    metric = LinearMetric(np.eye(3))
    given = {"measure": "map"}
    metric.card = given
    given["measure"] = "auc"
    with pytest.raises(TypeError):
        metric.card["measure"] = "auc"
    assert metric.card == {"measure": "map"}


def test_equal_metrics_are_equal_bytes(path):
    """Also when they were given in another order, as the package writes headers in random order."""
    contents = set()
    for turn in range(8):
        parameters = {"C": 1, "measure": "map"}
        card = dict(CARD)
        if turn % 2:
            parameters = dict(reversed(parameters.items()))
            card = dict(reversed(card.items()))
        metric = BilinearMetric(np.eye(3), np.ones((3, 5)), parameters=parameters)
        metric.card = card
        metric.save(path)
        contents.add(path.read_bytes())
    assert len(contents) == 1
    content = contents.pop()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    assert list(header) == sorted(header)
    assert list(header["__metadata__"]) == sorted(header["__metadata__"])
    np.testing.assert_array_equal(load_metric(path).item_map, np.ones((3, 5)))


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ([1], "card must be a mapping: got list"),
        ({"gain": np.nan}, "card must hold JSON values"),
        ({"rows": np.ones(3)}, "card must hold JSON values"),
        ({"text": "x" * MAX_CHARACTERS}, "card must have at most 65536 characters"),
    ],
)
def test_a_card_that_cannot_be_one_is_refused(card, message):
    metric = LinearMetric(np.eye(3))
    with pytest.raises(ValueError, match=message):
        metric.card = card
    assert metric.card == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "card must be JSON"),
        ("[]", "card must be a mapping"),
        ("[" * 60_000, "card must be JSON"),
        ('{"a": NaN}', "card must hold JSON values"),
        ('{"a": 1e999}', "card must hold JSON values"),
        ('{"a": "%s"}' % ("x" * MAX_CHARACTERS), "at most 65536 characters"),
    ],
)
def test_a_strange_card_in_a_file_is_refused(path, text, message):
    with pytest.raises(ValueError, match=message):
        load_metric(with_card(path, text))


def test_a_file_without_a_card_is_loaded(path):
    header = {"rankspace_format": "1", "kind": "linear"}
    safetensors.numpy.save_file({"components": np.eye(2)}, path, header)
    assert load_metric(path).card == {}


def test_facts_count_what_there_is(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    judged = Relevance.from_lists([[0, 1], [3]], n_items=4)
    facts = data_facts(X, judged, np.ones((2, 3)))
    facts.pop("data_digest")
    facts.pop("rankspace")
    assert facts == {"n_items": 4, "n_features": 3, "n_queries": 2, "n_judgments": 3}


def test_the_digest_depends_on_all_data_and_on_no_form(path):
    np.save(path.with_suffix(".npy"), X)
    base = data_facts(X, Y)["data_digest"]
    for same in (path.with_suffix(".npy"), np.asfortranarray(X)):
        assert data_facts(same, Y)["data_digest"] == base
    changed = X.copy()
    changed[3, 2] += 1e-9
    others = [
        data_facts(changed, Y),
        data_facts(X, Relevance.from_labels([0, 1, 0, 1])),
        data_facts(X, Relevance.from_lists([[0], [1]], n_items=4), np.ones((2, 3))),
        data_facts(X, Relevance.from_lists([[0], [1]], n_items=4), np.zeros((2, 3))),
        data_facts(scipy.sparse.csr_array(X), Y),
    ]
    assert len({base, *(facts["data_digest"] for facts in others)}) == 6


def test_a_date_is_only_that_of_a_reproducible_build(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert "date" not in data_facts(X, Y)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert data_facts(X, Y)["date"] == "1970-01-02"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(
        ValueError, match="SOURCE_DATE_EPOCH must be seconds since 1970"
    ):
        data_facts(X, Y)


def test_runs_in_two_processes_write_equal_files(tmp_path, monkeypatch):
    words = ["fit", "wine", "--method", "gmml", "--output", "secret"]
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    assert cli.main(words) == 0
    command = [sys.executable, "-m", "rankspace.cli", *words]
    subprocess.run(command, cwd=tmp_path / "another", check=True, capture_output=True)
    contents = [
        (tmp_path / name / "secret").read_bytes() for name in ("one", "another")
    ]
    assert contents[0] == contents[1]
    with safe_open(tmp_path / "one" / "secret", framework="numpy") as stored:
        assert "secret" not in stored.metadata()["card"]
