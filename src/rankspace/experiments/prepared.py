"""Data sets as the PARCA paper prepares them: rows of unit length, few images, chosen words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from ..datasets import open_dataset

LETTERS = r"[A-Za-z]{2,}"  # what counts as a word


class Prepared(NamedTuple):
    """Rows of unit length, their classes, and the words if features are words."""

    X: Any
    y: np.ndarray
    words: np.ndarray | None


@lru_cache(maxsize=4)
def prepare(
    name: str, per_class: int | None = None, n_words: int | None = None
) -> Prepared:
    """A data set by name; some rows of each class of it, or texts by their most telling words."""
    dataset = open_dataset(name) if n_words is None else open_texts(name)
    y = np.asarray(dataset.labels)
    if n_words is not None:
        return _words(np.array(dataset.texts, dtype=object), y, n_words)
    rows = np.arange(len(y))
    if per_class is not None:
        rng = np.random.default_rng(0)
        parts = [
            rng.choice(rows[y == label], per_class, replace=False)
            for label in np.unique(y)
        ]
        rows = np.sort(np.concatenate(parts))
    return Prepared(
        normalize(np.asarray(dataset.X[rows], dtype=np.float64)), y[rows], None
    )


def open_texts(name: str) -> Any:
    """A set of texts without their tf-idf vectors."""
    from .. import datasets

    return getattr(datasets, f"fetch_{name}")(vectors=False)


def _words(texts: np.ndarray, y: np.ndarray, n_words: int) -> Prepared:
    """Counts of the words of the largest information gain, without stop words and duplicates."""
    first = np.sort(np.unique(texts, return_index=True)[1])
    texts, y = texts[first], y[first]
    vectorizer = CountVectorizer(stop_words="english", min_df=3, token_pattern=LETTERS)
    counts = vectorizer.fit_transform(texts)
    best = np.sort(np.argsort(-information_gain(counts, y), kind="stable")[:n_words])
    X = scipy.sparse.csr_array(counts[:, best].astype(np.float64))
    some = np.flatnonzero(X.sum(axis=1) > 0)
    words = vectorizer.get_feature_names_out()[best]
    return Prepared(scipy.sparse.csr_array(normalize(X[some])), y[some], words)


def information_gain(counts: Any, y: np.ndarray) -> np.ndarray:
    """How much knowing whether a word is there lowers the entropy of the class, in nats."""
    codes = np.unique(y, return_inverse=True)[1]
    n = codes.size
    table = scipy.sparse.csr_array((np.ones(n), (np.arange(n), codes)))
    present = (
        scipy.sparse.csr_array(counts > 0).astype(np.float64).T @ table
    ).toarray()
    absent = np.bincount(codes) - present
    share = present.sum(axis=1) / n
    whole = _entropy(np.bincount(codes)[None].astype(float))[0]
    return whole - share * _entropy(present) - (1 - share) * _entropy(absent)


def _entropy(counts: np.ndarray) -> np.ndarray:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)
