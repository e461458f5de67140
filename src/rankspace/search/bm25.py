"""BM25: lexical search in texts, for a signal beside vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._engine.checks import check_count
from .._engine.optional import require
from ..relevance.rows import check_ids
from .fusion import DEPTH
from .ranking import Ranking

# The parameters of Lucene, so that scores are like those of Elasticsearch and OpenSearch.
K1 = 1.2
B = 0.75


def rank_bm25(
    texts: Sequence[str],
    query_texts: Sequence[str],
    k: int = 10 * DEPTH,
    *,
    ids: Any = None,
    query_ids: Any = None,
    language: str | None = "english",
) -> Ranking:
    """BM25 ranking of texts: lexical search, by the words that query and document share.

    Documents without a word of the query are not listed. Needs the extra ``bm25``.

    Parameters
    ----------
    texts, query_texts : sequence of str
        Texts of the documents and of the queries.
    k : int, default=1000
        Length of the lists.
    ids, query_ids : array-like of str, optional
        Their names.
    language : str or None, default="english"
        Language of the Snowball stemmer; English stop words are left out. None compares whole
        words and leaves none out.

    Returns
    -------
    Ranking
        Distances are minus the BM25 scores.

    Examples
    --------
    >>> from rankspace.search import rank_bm25
    >>> ranking = rank_bm25(["black cats", "a dog barks", "cats and dogs"], ["the dogs"])
    >>> ranking.items
    array([1, 2])
    """
    check_count(k, "k")
    _check_texts(texts, "texts")
    _check_texts(query_texts, "query_texts")
    ids = check_ids(ids, len(texts), "ids")
    query_ids = check_ids(query_ids, len(query_texts), "query_ids")
    documents = _words(texts, language)
    if not any(documents):
        raise ValueError("texts must have words to search for: got none.")
    index = require("bm25s", extra="bm25").BM25(method="lucene", k1=K1, b=B)
    index.index(documents, show_progress=False)
    lists = [_best(index, words, k) for words in _words(query_texts, language)]
    return Ranking.from_pairs(lists, len(texts), query_ids=query_ids, item_ids=ids)


def _check_texts(texts: Any, name: str) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} must be a list of str: got {type(texts).__name__}.")


def _words(texts: Sequence[str], language: str | None) -> list[list[str]]:
    """The words of each text in lower case, stemmed."""
    stemmer = None
    if language is not None:
        stemmer = _stemmer(language)
    tokens: list[list[str]] = require("bm25s", extra="bm25").tokenize(
        list(texts),
        stopwords="english" if language == "english" else [],
        stemmer=stemmer,
        return_ids=False,
        show_progress=False,
    )
    return tokens


def _stemmer(language: str) -> Any:
    snowball = require("Stemmer", extra="bm25")
    if language not in snowball.algorithms():
        known = ", ".join(snowball.algorithms())
        raise ValueError(f"language must be None or one of {known}: got {language!r}.")
    return snowball.Stemmer(language)


def _best(index: Any, words: list[str], k: int) -> tuple[np.ndarray, np.ndarray]:
    """The first ``k`` documents with a score above 0, and minus the scores."""
    if not words:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    scores = index.get_scores(words)
    found = np.flatnonzero(scores > 0)
    if found.size > k:
        # Documents with the score of the last place all stay, until ties are broken by number.
        last = np.partition(scores[found], found.size - k)[found.size - k]
        found = found[scores[found] >= last]
    order = np.lexsort((found, -scores[found]))[:k]
    return found[order], -scores[found[order]].astype(float)
