"""Preprocessing of the PARCA paper: unit-length rows, few images, words by information gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from ..data import open_dataset
from ..methods import available

WORD = r"[A-Za-z]{2,}"


class Prepared(NamedTuple):
    """Unit-length rows, their classes, and the words if features are words."""

    X: Any
    y: np.ndarray
    words: np.ndarray | None


def source(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set that say how it is prepared."""
    return {key: data[key] for key in ("name", "per_class", "n_words") if key in data}


def available_sets(
    sets: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The data sets whose files are there, and a note on each of the others."""
    return available(sets, lambda data: prepare(**source(data)))


@lru_cache(maxsize=4)
def prepare(
    name: str, per_class: int | None = None, n_words: int | None = None
) -> Prepared:
    """A data set by name; some rows of each class, or texts as their most informative words."""
    if n_words is not None:
        dataset = open_texts(name)
        texts = np.array(dataset.texts, dtype=object)
        return _word_counts(texts, np.asarray(dataset.labels), n_words)
    dataset = open_dataset(name)
    y = np.asarray(dataset.labels)
    rows = np.arange(len(y))
    if per_class is not None:
        rows = _sample_classes(y, per_class)
    X = normalize(np.asarray(dataset.X[rows], dtype=np.float64))
    return Prepared(X, y[rows], None)


def open_texts(name: str) -> Any:
    """A data set of texts without their tf-idf vectors."""
    return open_dataset(name, vectors=False)


def _sample_classes(y: np.ndarray, per_class: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    chosen = [
        rng.choice(np.flatnonzero(y == label), per_class, replace=False)
        for label in np.unique(y)
    ]
    return np.sort(np.concatenate(chosen))


def _word_counts(texts: np.ndarray, y: np.ndarray, n_words: int) -> Prepared:
    """Counts of the words of the largest information gain, without stop words and duplicates."""
    first = np.sort(np.unique(texts, return_index=True)[1])
    texts = texts[first]
    y = y[first]
    vectorizer = CountVectorizer(stop_words="english", min_df=3, token_pattern=WORD)
    counts = vectorizer.fit_transform(texts)
    best = np.sort(np.argsort(-information_gain(counts, y), kind="stable")[:n_words])
    X = scipy.sparse.csr_array(counts[:, best].astype(np.float64))
    nonempty = np.flatnonzero(X.sum(axis=1) > 0)
    words = vectorizer.get_feature_names_out()[best]
    X = scipy.sparse.csr_array(normalize(X[nonempty]))
    return Prepared(X, y[nonempty], words)


def information_gain(counts: Any, y: np.ndarray) -> np.ndarray:
    """Information gain of each word: how far its presence lowers the class entropy, in nats."""
    codes = np.unique(y, return_inverse=True)[1]
    n = codes.size
    classes = scipy.sparse.csr_array((np.ones(n), (np.arange(n), codes)))
    occurs = scipy.sparse.csr_array(counts > 0).astype(np.float64)
    present = (occurs.T @ classes).toarray()
    absent = np.bincount(codes) - present
    share = present.sum(axis=1) / n
    whole = _entropy(np.bincount(codes)[None].astype(float))[0]
    return whole - share * _entropy(present) - (1 - share) * _entropy(absent)


def _entropy(counts: np.ndarray) -> np.ndarray:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)
