"""BEIR folders: corpus, queries, relevance judgments (qrels), and embeddings of both."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._engine.files import PathLike, malformed, read_lines
from .._engine.vectors import SUFFIXES, read_vectors
from ..relevance.qrels import Judgment, read_qrels
from ..relevance.relevance import Relevance
from ._dataset import Dataset


def read_beir(
    folder: PathLike,
    *,
    split: str | None = None,
    embeddings: tuple[PathLike, PathLike] | Literal[False] | None = None,
    unknown: Literal["error", "drop"] = "error",
    name: str | None = None,
) -> Dataset:
    """Read a retrieval collection in the layout of BEIR.

    The folder holds ``corpus.jsonl`` and ``queries.jsonl``, and the judgments in
    ``qrels/<split>.tsv`` or one ``qrels.tsv``; each may be gzipped. Queries without a judgment are
    left out.

    Parameters
    ----------
    folder : path
        The collection.
    split : str, optional
        Read the judgments of this split only. By default of all splits.
    embeddings : pair of paths or False, optional
        Files with a row for each line of the corpus and of the queries, relative to the folder.
        By default ``corpus*`` and ``queries*`` that end in ``.npy``, ``.npz`` or
        ``.safetensors``, if there is exactly one of each; False reads none.
    unknown : {"error", "drop"}, default="error"
        What to do with judgments of queries or documents that are not in the folder.
    name : str, optional
        Name of the data set; by default that of the folder.

    Returns
    -------
    Dataset
        With ``texts`` (title and text), ``query_texts``, ``relevance`` with the ids of both, and
        the queries of each file in ``qrels/`` as ``splits``. ``X`` and ``queries`` are float32
        for half-precision embeddings, and None without any.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankspace.datasets import read_beir
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "A", "text": "cat"}')
    >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "pets"}')
    >>> _ = (folder / "qrels.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1")
    >>> dataset = read_beir(folder, name="pets")
    >>> dataset.texts, dataset.relevance.n_relevant
    (['A cat'], array([1]))
    """
    folder = Path(folder)
    item_ids, texts = _read_records(_one_of(folder, "corpus"))
    query_ids, query_texts = _read_records(_one_of(folder, "queries"))
    X, queries = _read_embeddings(folder, embeddings, len(texts), len(query_texts))
    judgments = _read_splits(folder, split)
    grades = _grades(judgments)
    judged = [i for i, query in enumerate(query_ids) if query in grades]
    n_unjudged = len(query_ids) - len(judged)
    query_ids = [query_ids[i] for i in judged]
    relevance = Relevance.from_qrels(
        grades, query_ids=query_ids, item_ids=item_ids, unknown=unknown
    )
    if queries is not None:
        queries = queries[judged]
    splits = {}
    if (folder / "qrels").is_dir():
        splits = _query_numbers(judgments, query_ids)
    return Dataset(
        name or folder.resolve().name,
        X,
        relevance,
        queries=queries,
        texts=texts,
        query_texts=[query_texts[i] for i in judged],
        splits=splits,
        description="Documents and queries in the layout of BEIR.",
        n_unjudged=n_unjudged,
    )


def read_beir_texts(folder: PathLike, stem: str) -> list[str]:
    """Titles and texts of the corpus or of all queries of a BEIR folder."""
    return _read_records(_one_of(Path(folder), stem))[1]


def read_corpus(folder: PathLike) -> tuple[list[str], list[dict[str, Any]]]:
    """Read the ids and fields of the documents of a BEIR folder, such as titles and metadata.

    Parameters
    ----------
    folder : path
        The collection, with ``corpus.jsonl`` or ``corpus.jsonl.gz``.

    Returns
    -------
    ids : list of str
        The id of each document, in the order of the file.
    fields : list of dict
        All other fields of each document: the payload of an export.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankspace.datasets import read_corpus
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "cat", "year": 1999}')
    >>> read_corpus(folder)
    (['d1'], [{'text': 'cat', 'year': 1999}])
    """
    records = list(_records(_one_of(Path(folder), "corpus")))
    ids = [str(record.pop("_id")) for record in records]
    return ids, records


def _one_of(folder: Path, stem: str) -> Path:
    for name in (f"{stem}.jsonl", f"{stem}.jsonl.gz"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(
        f"{folder} must hold {stem}.jsonl or {stem}.jsonl.gz: got neither."
    )


def _read_records(path: Path) -> tuple[list[str], list[str]]:
    """Ids and texts of a file with one JSON object on each line."""
    ids, texts = [], []
    for record in _records(path):
        ids.append(str(record["_id"]))
        texts.append(f"{record.get('title') or ''} {record['text']}".strip())
    return ids, texts


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one on each line, with an id and a text."""
    is_empty = True
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise malformed(path, number, f"must be a JSON object: {error}") from None
        if not isinstance(record, dict) or not {"_id", "text"} <= record.keys():
            raise malformed(
                path, number, f"must be an object with _id and text: got {line[:60]!r}"
            )
        is_empty = False
        yield record
    if is_empty:
        raise ValueError(f"{path} must have at least one line: got an empty file.")


def _read_splits(folder: Path, split: str | None) -> dict[str, list[Judgment]]:
    """Judgments by split; one file at the root is the split "all"."""
    paths = [*(folder / "qrels").glob("*.tsv"), *(folder / "qrels").glob("*.tsv.gz")]
    files = {path.name.partition(".tsv")[0]: path for path in sorted(paths)}
    for name in ("qrels.tsv", "qrels.tsv.gz"):
        if not files and (folder / name).exists():
            files = {"all": folder / name}
    if not files:
        raise FileNotFoundError(
            f"{folder} must hold qrels/<split>.tsv or qrels.tsv: got neither."
        )
    if split is not None and split not in files:
        raise ValueError(f"split must be one of {', '.join(files)}: got {split!r}.")
    return {
        name: read_qrels(path) for name, path in files.items() if split in (None, name)
    }


def _grades(judgments: dict[str, list[Judgment]]) -> dict[str, dict[str, float]]:
    """Grade of each judged document, by query."""
    grades: dict[str, dict[str, float]] = {}
    for query, item, grade in itertools.chain(*judgments.values()):
        known = grades.setdefault(query, {}).setdefault(item, grade)
        if known != grade:
            raise ValueError(
                f"a pair must have one grade: query {query} and document {item} have {known:g} "
                f"and {grade:g}. Remove one of the two judgments."
            )
    return grades


def _query_numbers(
    judgments: dict[str, list[Judgment]], query_ids: list[str]
) -> dict[str, np.ndarray]:
    """Row numbers of the queries of each split."""
    splits = {}
    for name, part in judgments.items():
        judged = {query for query, _, _ in part}
        splits[name] = np.flatnonzero([query in judged for query in query_ids])
    return splits


def _read_embeddings(
    folder: Path, chosen: Any, n_texts: int, n_queries: int
) -> tuple[Any, Any]:
    if chosen is False:
        return None, None
    if chosen is None:
        chosen = embedding_files(folder)
        if chosen is None:
            return None, None
    X = read_vectors(folder / chosen[0], n_texts)
    queries = read_vectors(folder / chosen[1], n_queries)
    if X.shape[1] != queries.shape[1]:
        raise ValueError(
            "embeddings of corpus and queries must have the same number of columns: got "
            f"{X.shape[1]} and {queries.shape[1]}. Choose files of the same model with "
            "embeddings=(..., ...)."
        )
    return X, queries


def embedding_files(folder: Path) -> tuple[str, str] | None:
    """Names of the files of corpus and queries with vectors, or None where there are none."""
    corpus = _vector_files(folder, "corpus")
    queries = _vector_files(folder, "queries")
    if not corpus and not queries:
        return None
    if (len(corpus), len(queries)) == (1, 1):
        return corpus[0], queries[0]
    way_out = (
        "Choose two of them: embeddings=(corpus, queries) in the library, --embeddings CORPUS "
        "QUERIES on the command line."
    )
    if not corpus or not queries:
        way_out = (
            f"The vectors of {'queries' if corpus else 'corpus'} are missing; rankspace embed "
            "writes both from the texts."
        )
    names = ", ".join(corpus + queries)
    raise ValueError(
        f"{folder} must hold one corpus*.npy and one queries*.npy, or .npz or .safetensors: got "
        f"{names}. {way_out}"
    )


def _vector_files(folder: Path, stem: str) -> list[str]:
    """Names of the files with vectors; not .parquet, which more often holds texts."""
    suffixes = set(SUFFIXES) - {".parquet"}
    paths = sorted(folder.glob(f"{stem}*"))
    return [path.name for path in paths if path.suffix in suffixes]
