"""Judgments by a teacher: what they are, and that no report takes them for those of people."""

import json

import numpy as np
import pytest

from planted import hidden
from rankspace import Index, Ranking, Relevance, compare, evaluate, load_metric, tune

WORDS = "agreement with the teacher"


def teacher_of(X, Q, k=3):
    near = Index(X, similarity="dot").rank(Q * np.linspace(2, 0.1, X.shape[1]))
    return Relevance.from_ranking(near, k, teacher="a reranker")


def test_the_first_items_of_each_list_are_relevant():
    rng = np.random.default_rng(0)
    distances = rng.normal(size=(6, 9))
    distances[2] = np.inf
    taught = Relevance.from_ranking(Ranking.from_distances(distances), 4)
    for query in range(6):
        expected = np.sort(np.argsort(distances[query])[:4]) if query != 2 else []
        np.testing.assert_array_equal(taught.relevant(query), expected)
    assert taught.n_irrelevant.tolist() == [5, 5, 9, 5, 5, 5]
    assert taught.teacher == "a ranking"
    assert Relevance.from_lists([[0]], n_items=2).teacher is None


def test_rows_are_those_of_the_ids():
    ranking = Ranking.from_run({"q2": {"b": 2.0, "a": 1.0}, "q1": {"c": 1.0}})
    taught = Relevance.from_ranking(
        ranking, 1, query_ids=["q1", "q2", "q3"], item_ids=["a", "b", "c", "d"]
    )
    assert [taught.relevant(q).tolist() for q in range(3)] == [[2], [1], []]
    assert taught.query_ids.tolist() == ["q1", "q2", "q3"]
    assert taught.n_items == 4


def test_parts_keep_the_teacher():
    X, _, Q = hidden()
    taught = teacher_of(X, Q)
    assert taught.take_queries([1, 2]).teacher == "a reranker"
    assert taught._ignoring(np.arange(200) < 50).teacher == "a reranker"


def test_scores_are_called_agreement():
    X, relevance, Q = hidden()
    ranking = Index(X, similarity="cosine").rank(Q, 10)
    taught = teacher_of(X, Q)
    report = evaluate(ranking, taught, "map")
    assert WORDS in str(report)
    assert WORDS in report.to_markdown()
    assert report.to_dict()["teacher"] == "a reranker"
    assert report.take([0, 1]).teacher == "a reranker"
    assert WORDS in str(compare(report, report))
    judged = evaluate(ranking, relevance, "map")
    assert WORDS not in str(judged)
    with pytest.raises(
        ValueError, match="same judgments: got those of a reranker and of people"
    ):
        compare(report, judged)


def test_a_teacher_may_teach_and_is_not_the_judge(tmp_path):
    X, relevance, Q = hidden()
    tuned = tune(X, teacher_of(X, Q), queries=Q, similarity="cosine", random_state=0)
    assert tuned.improved
    assert WORDS in tuned.report.sentence
    assert "not relevance" in tuned.report.sentence
    assert WORDS in str(tuned).splitlines()[0]
    assert "Have people judge some queries" in str(tuned)
    tuned.report.write_page(tmp_path / "page.html")
    assert WORDS in (tmp_path / "page.html").read_text()
    tuned.metric.save(tmp_path / "m")
    assert load_metric(tmp_path / "m").card["teacher"] == "a reranker"
    assert WORDS in json.loads(tuned.report.to_json())["sentence"]
    # People's judgments of the map that was taught.
    before = evaluate(Index(X, similarity="cosine").rank(Q, 10), relevance, "map")
    after = evaluate(Index(X, tuned.metric).rank(Q, 10), relevance, "map")
    assert compare(before, after).difference["map"] > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1"),
        ({"teacher": ""}, "teacher must be a name: got ''"),
        (
            {"ranking": {"q": {"a": 1}}},
            r"must be a Ranking: got dict\. Read scores by id",
        ),
        ({"item_ids": ["x"]}, "item_ids must have all items that are listed"),
        ({"ranking": Ranking.from_distances([[np.inf]])}, "must list an item"),
    ],
)
def test_wrong_teachers_are_named(options, message):
    ranking = Ranking.from_run({"q": {"b": 2.0, "a": 1.0}})
    with pytest.raises(ValueError, match=message):
        Relevance.from_ranking(**{"ranking": ranking, **options})
