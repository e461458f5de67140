"""Retrieval collections and intents with sentence vectors: documents asked for by several queries,
dense grades, and classes that can be held out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from rankspace._engine.files import read_lines
from rankspace.datasets import Dataset, read_beir, read_corpus
from rankspace.datasets._dataset import labelled
from rankspace.datasets._folder import check_equal, locate

Vectors = Literal["minilm", "wordllama"]

# Texts, and queries by split.
SIZES = {
    "crowdflower": (9902, {"test": 104, "train": 157}),
    "checkthat": (10375, {"test": 199, "train": 997}),
    "stackfaq": (719, {"test": 497, "train": 752}),
}
FOLDERS = {
    "crowdflower": "ir-crowdflower",
    "checkthat": "ir-checkthat20",
    "stackfaq": "ir-stackfaq",
    "cranfield": "ir-cran",
    "scifact": "ir-scifact",
    "nfcorpus": "ir-nfcorpus",
    "npl": "ir-npl",
}
CLINC_SIZES = {"train": 15000, "val": 3000, "test": 4500}


def fetch_crowdflower(vectors: Vectors = "minilm") -> Dataset:
    """CrowdFlower search results relevance: 9902 products, 157 + 104 queries, grades 1 to 3.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    vectors : {"minilm", "wordllama"}, default="minilm"
        Vectors of all-MiniLM-L6-v2 (384 dimensions), or static WordLlama vectors (256).

    Returns
    -------
    Dataset
        With the splits "train" and "test" of queries; a query has about 38 judgments.
    """
    return _fetch("crowdflower", vectors)


def fetch_checkthat(vectors: Vectors = "minilm") -> Dataset:
    """CheckThat! 2020, task 2: 10375 claims that were checked, 997 + 199 tweets as queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    vectors : {"minilm", "wordllama"}, default="minilm"
        As for `fetch_crowdflower`.

    Returns
    -------
    Dataset
        With the splits "train" and "test" of queries.
    """
    return _fetch("checkthat", vectors)


def fetch_stackfaq(document: Literal["both", "answer"] = "both") -> Dataset:
    """StackFAQ: 719 answers of 125 threads, 752 + 497 rephrased questions as queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    document : {"both", "answer"}, default="both"
        Whether a document, its vector and its text, is question and answer, or the answer alone.

    Returns
    -------
    Dataset
        With the splits "train" and "test" of queries. A quarter of the threads is in the test
        part only.
    """
    if document == "both":
        return _fetch("stackfaq", "minilm")
    dataset = _fetch("stackfaq", "answers")
    _, records = read_corpus(
        locate("stackfaq", ["ir-stackfaq/corpus.jsonl.gz"])[0].parent
    )
    return replace(dataset, texts=[str(record["text"]) for record in records])


def fetch_clinc() -> Dataset:
    """CLINC150: 22500 requests of 150 intents, their class labels.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        ``X`` are vectors of all-MiniLM-L6-v2; the splits "train", "val" and "test" hold rows.
    """
    files = ["lab-clinc150/corpus.jsonl.gz", "lab-clinc150/corpus_minilm_f16.npy"]
    texts, vectors = locate("clinc", files)
    records = [json.loads(line) for _, line in read_lines(texts)]
    parts = np.array([record["part"] for record in records])
    labels = np.array([record["label"] for record in records])
    splits = {part: np.flatnonzero(parts == part) for part in CLINC_SIZES}
    sizes = {part: rows.size for part, rows in splits.items()}
    check_equal("clinc", "number of texts", CLINC_SIZES, sizes)
    check_equal("clinc", "number of classes", 150, np.unique(labels).size)
    X = np.load(vectors).astype(np.float32)
    check_equal("clinc", "shape of the vectors", (len(records), 384), X.shape)
    return labelled("clinc", X, labels, splits=splits)


def open_second_vectors(name: str, vectors: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of a second kind, of documents and of all judged queries, in their order.

    Read from the folder ``other`` of the collection. WordLlama vectors that are missing are written
    by ``python -m experiments.data.wordllama``. A text without a known word has a row of NaN.

    Parameters
    ----------
    name : {"cranfield", "scifact", "nfcorpus", "npl", "crowdflower", "checkthat", "stackfaq"}
        The collection.
    vectors : str
        The kind, as it is named in the files.

    Returns
    -------
    X, queries : ndarray
    """
    pair = _pair(vectors)
    folder = locate(name, [f"{FOLDERS[name]}/{file}" for file in pair])[0].parent.parent
    # Which queries are judged, and in which order.
    relevance = read_beir(folder, embeddings=False, name=name).relevance
    assert relevance is not None
    assert relevance.query_ids is not None
    records = (json.loads(line) for _, line in read_lines(folder / "queries.jsonl.gz"))
    rows = {str(record["_id"]): row for row, record in enumerate(records)}
    X, queries = (np.load(folder / file).astype(np.float32) for file in pair)
    return X, queries[[rows[str(query)] for query in relevance.query_ids]]


def _pair(vectors: str) -> tuple[str, str]:
    """Names of the files with vectors of documents and of queries."""
    where = "" if vectors == "minilm" else "other/"
    return f"{where}corpus_{vectors}_f16.npy", f"{where}queries_{vectors}_f16.npy"


def _fetch(name: str, vectors: str) -> Dataset:
    pair = _pair(vectors)
    files = ["corpus.jsonl.gz", "queries.jsonl.gz", "qrels/train.tsv", "qrels/test.tsv"]
    paths = [f"{FOLDERS[name]}/{file}" for file in (*files, *pair)]
    folder: Path = locate(name, paths)[0].parent
    dataset = read_beir(folder, embeddings=pair, name=name)
    n_texts, n_queries = SIZES[name]
    check_equal(name, "number of texts", n_texts, dataset.X.shape[0])
    sizes = {split: len(queries) for split, queries in dataset.splits.items()}
    check_equal(name, "number of queries", n_queries, sizes)
    return dataset
