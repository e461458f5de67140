"""What the words of a command name: data sets, judgments, runs and vectors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .._engine.vectors import is_vector_file, read_names
from .cluster import on_cluster
from .progress import Progress


def _open(source: str, split: str | None, **options: Any) -> Any:
    """A BEIR folder or a data set by name, or a split of it."""
    from ..datasets import open_dataset, read_beir

    dataset = (
        read_beir(source, **options) if Path(source).is_dir() else open_dataset(source)
    )
    if split is not None and split not in dataset.splits:
        splits = ", ".join(dataset.splits) or "none"
        raise ValueError(
            f"--split must be one of {source}, which has {splits}: got {split!r}."
        )
    return dataset if split is None else dataset.part(split)


def judgments_with_texts(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Judgments, and texts of items and of queries where the source has them."""
    from dataclasses import replace

    from ..relevance.relevance import Relevance

    rules = {
        "unjudged": options.unjudged,
        "min_relevant_grade": options.min_relevant_grade,
    }
    if Path(options.judgments).is_file():
        if options.split is not None:
            raise ValueError(
                "--split goes with a folder or a data set; a qrels file has no splits."
            )
        return Relevance.from_qrels(options.judgments, **rules), None, None
    dataset = _open(
        options.judgments, options.split, embeddings=False, unknown=options.unknown
    )
    if dataset.relevance is None:
        raise ValueError(f"{options.judgments} has no judgments.")
    query_texts = dataset.query_texts if dataset.has_queries else dataset.texts
    return replace(_named(dataset.relevance), **rules), dataset.texts, query_texts


def _named(relevance: Any) -> Any:
    """Number what has no name, as run files have names only."""
    from dataclasses import replace

    queries = (
        range(relevance.n_queries)
        if relevance.query_ids is None
        else relevance.query_ids
    )
    items = (
        range(relevance.n_items) if relevance.item_ids is None else relevance.item_ids
    )
    return replace(
        relevance, query_ids=[str(q) for q in queries], item_ids=[str(i) for i in items]
    )


def judge(run: str, options: argparse.Namespace) -> Any:
    from ..datasets import read_trec_run
    from ..evaluation.measures import evaluate as score

    with Progress(f"rankspace {options.name}") as progress:
        progress.say(f"reading {run}")
        ranking, relevance = read_trec_run(run), judgments_with_texts(options)[0]
        progress.say("judging")
        with on_cluster(options, progress):
            return score(ranking, relevance, options.measures, ties=options.ties)


def vectors_of(options: argparse.Namespace) -> tuple[Any, Any, Any, Any, Any]:
    """Corpus, queries, names of both, and which items the queries are."""
    import numpy as np

    from .._engine.vectors import read_vectors

    if is_vector_file(options.corpus):
        _refuse(
            options,
            "split",
            "embeddings",
            why="a folder or a data set, not a file of vectors",
        )
        X, ids = read_vectors(options.corpus), read_names(options.corpus)
        if options.queries is None:
            return X, None, ids, ids, np.arange(len(X))
        queries = read_vectors(options.queries)
        return X, queries, ids, read_names(options.queries), np.full(len(queries), -1)
    _refuse(
        options,
        "queries",
        why="a corpus in a file of vectors; other data bring their own",
    )
    dataset = _open(options.corpus, options.split, embeddings=options.embeddings)
    if (
        dataset.X is None
        or dataset.relevance is None
        or dataset.relevance.has_candidate_lists
    ):
        raise ValueError(
            f"{options.corpus} has no vectors of both queries and items to rank."
        )
    relevance = _named(dataset.relevance)
    return (
        dataset.X,
        dataset.queries,
        relevance.item_ids,
        relevance.query_ids,
        relevance.query_items,
    )


def taught_by(options: argparse.Namespace) -> Any:
    """The data set to learn from: by name, in a folder, or in files of vectors."""
    if is_vector_file(options.data):
        _refuse(
            options,
            "split",
            "embeddings",
            why="a folder or a data set, not a file of vectors",
        )
        return _from_files(options)
    words = ("labels", "qrels", "queries", "ids", "query_ids")
    _refuse(options, *words, why="a file of vectors; other data bring theirs")
    rules = {"embeddings": options.embeddings, "unknown": options.unknown}
    dataset = _open(options.data, options.split, **rules)
    if dataset.X is None or dataset.relevance is None:
        raise ValueError(
            f"{options.data} has no vectors, or no judgments, to learn from."
        )
    return dataset


def _from_files(options: argparse.Namespace) -> Any:
    from .._engine.vectors import read_vectors
    from ..datasets import Dataset
    from ..relevance.relevance import Relevance

    X, name = read_vectors(options.data), Path(options.data).stem
    if options.labels and not options.qrels:
        labels = _labels(options.labels, len(X))
        return Dataset(name, X, Relevance.from_labels(labels), labels=labels)
    if options.labels or not options.qrels or not options.queries:
        raise ValueError(
            "a file of vectors needs --labels, or --qrels and --queries, to learn from."
        )
    queries = read_vectors(options.queries)
    relevance = Relevance.from_qrels(
        options.qrels,
        query_ids=_names(options.query_ids, len(queries), options.queries),
        item_ids=_names(options.ids, len(X), options.data),
        unknown=options.unknown,
    )
    return Dataset(name, X, relevance, queries=queries)


def _refuse(options: argparse.Namespace, *words: str, why: str) -> None:
    for word in words:
        if vars(options)[word] is not None:
            raise ValueError(f"--{word.replace('_', '-')} goes with {why}.")


def items_of(source: str, names: str | None) -> tuple[Any, Any]:
    """Vectors of items, or the file that has them, and their names."""
    if is_vector_file(source):
        return source, read_names(source) if names is None else _lines(names)
    if names is not None:
        raise ValueError(
            "--ids goes with a file of vectors; other data bring their own."
        )
    dataset = _open(source, None)
    if dataset.X is None:
        raise ValueError(f"{source} has no vectors.")
    return dataset.X, None if dataset.relevance is None else dataset.relevance.item_ids


def _names(path: str | None, size: int, vectors: str) -> list[str]:
    """A name a line; without a file, those beside the vectors, else row numbers."""
    if path is None:
        return read_names(vectors) or list(map(str, range(size)))
    names = _lines(path)
    if len(names) != size:
        raise ValueError(
            f"{path} must have a line for each of {size} rows: got {len(names)}."
        )
    return names


def _lines(path: str) -> list[str]:
    from .._engine.files import read_lines

    return [text for _, text in read_lines(path)]


def _labels(path: str, size: int) -> Any:
    import numpy as np

    if Path(path).suffix != ".npy":
        return np.array(_names(path, size, ""))
    labels = np.load(path, allow_pickle=False)
    if labels.shape != (size,):
        raise ValueError(
            f"{path} must have a label for each of {size} rows: got {labels.shape}."
        )
    return labels
