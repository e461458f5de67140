"""BM25 beside its formula, written out in a loop."""

import math

import numpy as np
import pytest

from rankspace import rank_bm25

pytest.importorskip("bm25s")

WORDS = ["alpha", "beta", "gamma", "delta", "omega", "sigma"]


def slow_bm25(documents, query, k1=1.2, b=0.75):
    """Scores by Lucene's formula."""
    n = len(documents)
    mean = sum(map(len, documents)) / n
    scores = []
    for words in documents:
        total = 0.0
        for word in query:
            df = sum(word in other for other in documents)
            tf = words.count(word)
            idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + k1 * (1 - b + b * len(words) / mean))
        scores.append(total)
    return scores


def random_texts(seed, n):
    rng = np.random.default_rng(seed)
    return [list(rng.choice(WORDS, size=rng.integers(1, 9))) for _ in range(n)]


def test_scores_are_those_of_the_formula():
    documents, queries = random_texts(0, 30), random_texts(1, 10)
    ranking = rank_bm25(
        [" ".join(words) for words in documents],
        [" ".join(words) for words in queries],
        language=None,
    )
    for query, (items, distances) in zip(queries, ranking, strict=True):
        expected = np.array(slow_bm25(documents, query))
        np.testing.assert_allclose(-distances, expected[items], rtol=1e-5)
        assert set(items) == set(np.flatnonzero(expected > 0))


def test_lists_are_cut_with_ties_by_number():
    ranking = rank_bm25(["cat"] * 5 + ["cat cat"], ["cat"], k=3)
    assert ranking.items.tolist() == [5, 0, 1]


def test_words_are_stemmed_unless_told_otherwise():
    texts = ["running dogs", "a cat", "the the"]
    ranking = rank_bm25(texts, ["dog runs", "the", ""], ids=["a", "b", "c"])
    assert [ranking.ids(q) for q in range(3)] == [["a"], [], []]
    plain = rank_bm25(texts, ["dog", "the"], language=None)
    assert [len(items) for items, _ in plain] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["the", ""], ["cat"]), "texts must have words"),
        (("cat", ["cat"]), "texts must be a list of str: got str"),
        ((["cat"], [1]), "query_texts must be a list of str"),
        ((["cat"], ["cat"], 0), "k must be a whole number from 1"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        rank_bm25(*arguments)
    with pytest.raises(ValueError, match=r"language must be None or one of.*english"):
        rank_bm25(["cat"], ["cat"], language="klingon")
