"""Retrieval collections and intents with sentence vectors: documents asked for by several queries,
dense grades, and classes that can be held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np

from rankspace._engine.files import read_lines
from rankspace.datasets import Dataset, read_beir
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
        Whether a document is question and answer, or the answer alone.

    Returns
    -------
    Dataset
        With the splits "train" and "test" of queries. A quarter of the threads is in the test
        part only.
    """
    return _fetch("stackfaq", "minilm" if document == "both" else "answers")


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


def _fetch(name: str, vectors: str) -> Dataset:
    where = "" if vectors == "minilm" else "other/"
    pair = (f"{where}corpus_{vectors}_f16.npy", f"{where}queries_{vectors}_f16.npy")
    files = ["corpus.jsonl.gz", "queries.jsonl.gz", "qrels/train.tsv", "qrels/test.tsv"]
    paths = [f"{FOLDERS[name]}/{file}" for file in (*files, *pair)]
    folder: Path = locate(name, paths)[0].parent
    dataset = read_beir(folder, embeddings=pair, name=name)
    n_texts, n_queries = SIZES[name]
    check_equal(name, "number of texts", n_texts, dataset.X.shape[0])
    sizes = {split: len(queries) for split, queries in dataset.splits.items()}
    check_equal(name, "number of queries", n_queries, sizes)
    return dataset
