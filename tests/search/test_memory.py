"""The memory of past queries beside a plain loop."""

import numpy as np
import pytest

from rankspace import Relevance, rank_memory


def slow_memory(Q, past, relevance):
    """Scores by query and document."""
    scores = []
    for q in Q:
        row = {}
        for number, p in enumerate(past):
            cosine = q @ p / np.linalg.norm(q) / np.linalg.norm(p)
            for document in relevance.relevant(number).tolist():
                if cosine > 0.5:
                    row[document] = max(row.get(document, 0.0), cosine - 0.5)
        scores.append(row)
    return scores


def test_scores_are_those_of_the_nearest_past_query():
    rng = np.random.default_rng(0)
    Q, past = rng.normal(size=(20, 3)), rng.normal(size=(30, 3))
    grades = [
        {int(i): int(rng.integers(0, 3)) for i in rng.permutation(12)[:4]} for _ in past
    ]
    relevance = Relevance.from_lists(
        [list(row) for row in grades], n_items=12, min_relevant_grade=1
    )
    ranking = rank_memory(Q, past, relevance)
    for (items, distances), row in zip(
        ranking, slow_memory(Q, past, relevance), strict=True
    ):
        order = sorted(row, key=lambda item: (-row[item], item))
        assert items.tolist() == order
        np.testing.assert_allclose(-distances, [row[i] for i in order])
    first = rank_memory(Q, past, relevance, k=2)
    assert first.to_run() == ranking.top(2).to_run()


def test_names_are_those_of_the_judgments():
    relevance = Relevance.from_qrels(
        {"p": {"b": 1}}, item_ids=["a", "b"], query_ids=["p"]
    )
    ranking = rank_memory(
        [[1.0, 0.0], [0.0, 0.0]], [[2.0, 0.0]], relevance, query_ids=["x", "y"]
    )
    assert ranking.to_run() == {"x": {"b": 0.5}, "y": {}}


def test_judgments_and_past_queries_must_agree():
    relevance = Relevance.from_lists([[0]], n_items=2)
    with pytest.raises(
        ValueError, match=r"past_queries must have .*\(1, 2\): got \(2, 2\)"
    ):
        rank_memory(np.eye(2), np.eye(2), relevance)
    with pytest.raises(ValueError, match="k must be a whole number from 1"):
        rank_memory(np.eye(2), np.eye(2)[:1], relevance, k=0)
    by_name = Relevance.from_qrels({"q": {"a": 1}, "p": {"b": 1}}, item_ids=["a", "b"])
    with pytest.raises(ValueError, match=r"in an order of their own .*past_queries"):
        rank_memory(np.eye(2), np.eye(2), by_name)
