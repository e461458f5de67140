"""Why queries gain and lose, on the page of `tune`: by a map that was not learned from them."""

import pickle
import re

import numpy as np
import pytest

from planted import hidden, planted
from rankspace import Fields, Relevance, tune
from rankspace.display.page.explained import explanation_lines
from rankspace.learners import families
from rankspace.metrics.explanation import Explanation, Part


@pytest.fixture(autouse=True)
def few_strengths(monkeypatch):
    monkeypatch.setattr(families, "TOTAL_REGS", (24.0, 2.4, 0.24))


@pytest.fixture(scope="module")
def data():
    return hidden()


def tuned_on(data, **options):
    X, relevance, Q = data
    return tune(
        X,
        relevance,
        queries=Q,
        similarity="cosine",
        n_folds=2,
        random_state=0,
        **options,
    )


def changes(lines):
    """The change, and the numbers of each list that sum to it."""
    numbers = [re.findall(r"[+−-]\d+\.\d+", line.replace("−", "-")) for line in lines]
    return [[float(value) for value in row] for row in numbers]


def test_the_page_explains_gains_and_losses(data, tmp_path):
    report = tuned_on(data).report
    page = report.write_page(tmp_path / "page.html").read_text()
    assert 1 <= page.count("Why: the relevant item") <= 6
    assert "By what was judged: query " in page
    assert "learned without them" in page
    extreme = int(np.argmax(report.after.values[report.measure]))
    item = int(report.relevance.relevant(extreme)[0])
    change, *parts = changes(report.explain(extreme, item))
    for part in parts:
        assert sum(part) == pytest.approx(change[-1], abs=0.005)


def test_the_queries_are_left_out_of_the_map(data):
    report = tuned_on(data).report
    gains = report.after.values[report.measure] - report.before.values[report.measure]
    order = np.argsort(gains, kind="stable")
    ids = set(report.explain._data.relevance.query_ids)
    assert len(ids) == 84
    extremes = {*order[:3].tolist(), *order[-3:].tolist()}
    assert not ids & {str(report.query_numbers[query]) for query in extremes}


def test_dev_queries_are_explained_by_the_others(data):
    report = tuned_on(data, dev=np.arange(50, 90)).report
    assert report.explain._judged.tolist() == list(range(50, 90))
    assert set(report.explain._data.relevance.query_ids) == set(map(str, range(50)))
    assert report.explain(0, 3)[0].startswith("Its score: ")


def test_labelled_rows_are_explained(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + np.eye(4)[y] * [1, 1, 1, 0]
    X[:, 3] *= 4
    report = tune(X, y, measure="map", n_folds=2, random_state=0).report
    assert report.explain is not None
    change, *parts = changes(report.explain(5, 8))
    assert sum(parts[0]) == pytest.approx(change[-1], abs=0.005)
    assert "Why: " in report.write_page(tmp_path / "p.html").read_text()


def test_fields_are_shown():
    rng = np.random.default_rng(0)
    X = {"title": rng.normal(size=(80, 3)), "body": rng.normal(size=(80, 4))}
    Q = {"title": rng.normal(size=(60, 3)), "body": rng.normal(size=(60, 4))}
    near = np.argsort(-np.asarray(Fields(Q))[:, :3] @ np.asarray(Fields(X))[:, :3].T)
    relevance = Relevance.from_lists(near[:, :3].tolist(), n_items=80)
    report = tune(X, relevance, queries=Q, n_folds=2, random_state=0).report
    (line,) = [s for s in report.explain(0, 1) if s.startswith("By field: ")]
    assert re.match(r"By field: title \S+; body \S+\.$", line)


def test_nothing_learned_nothing_explained():
    X, relevance, Q = planted(informative=False)
    tuned = tune(
        X, relevance, queries=Q, similarity="dot", n_folds=2, random_state=0, budget=0
    )
    assert tuned.report.explain is None


def test_the_data_are_not_pickled(data):
    tuned = tuned_on(data)
    copy = pickle.loads(pickle.dumps(tuned))
    assert copy.report.explain is None
    assert copy.report.sentence == tuned.report.sentence


def test_lines_sum_to_the_change():
    directions = [Part(f"direction {i}", 0.1) for i in range(5)]
    judgments = [Part(f"query {i}, item 0", 0.05) for i in range(6)]
    judgments.append(Part("rest", 0.2))
    found = Explanation(1.0, 0.5, directions, [], judgments)
    lines = explanation_lines(found, ("before", "after"))
    assert lines == [
        "Its score: 0.500 before, 1.000 after; change +0.500.",
        "By direction: direction 0 +0.100; direction 1 +0.100; direction 2 +0.100; 2 others "
        "+0.200.",
        "By what was judged: query 0, item 0 +0.050; query 1, item 0 +0.050; query 2, item 0 "
        "+0.050; all else +0.350.",
    ]
