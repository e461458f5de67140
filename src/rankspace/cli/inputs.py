"""Inputs of the commands: data sets, judgments, run files and files of vectors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from .._engine.vectors import is_vector_source, read_names, read_texts_beside
from .progress import Progress, on_cluster

ONLY_FILES = "a file of vectors; a data set or folder has its own"
ONLY_DATA_SETS = "a folder or a data set, not with a file of vectors"


class Judgments(NamedTuple):
    """Relevance judgments, and the texts of items and queries if there are any."""

    relevance: Any
    texts: Any = None
    query_texts: Any = None


class Corpus(NamedTuple):
    """Vectors and ids to rank; ``query_items`` are the item numbers of the queries, or -1."""

    X: Any
    queries: Any
    ids: Any
    query_ids: Any
    query_items: Any
    notes: list[str]


class ItemsToExport(NamedTuple):
    """Vectors of items, or the file that has them, with ids and payloads if there are any."""

    vectors: Any
    ids: Any = None
    payload: Any = None

    @property
    def is_named(self) -> bool:
        """Whether there is something to store beside the vectors."""
        return self.ids is not None or self.payload is not None


def open_data(source: str, split: str | None, **options: Any) -> Any:
    """Open a BEIR folder or a named data set, or one split of it."""
    from ..datasets import open_dataset, read_beir

    is_folder = Path(source).is_dir()
    dataset = read_beir(source, **options) if is_folder else open_dataset(source)
    if split is None:
        return dataset
    check_split("--split", split, source, dataset)
    return dataset.part(split)


def check_split(option: str, split: str, source: str, dataset: Any) -> None:
    """Raise unless the data set has this split."""
    if split not in dataset.splits:
        splits = ", ".join(dataset.splits) or "none"
        raise ValueError(
            f"{option} must be a split of {source}, which has {splits}: got {split!r}."
        )


def read_judgments(options: argparse.Namespace) -> Judgments:
    """Read the judgments that a command names, with texts if there are any."""
    from dataclasses import replace

    from ..relevance.relevance import Relevance

    rules = {
        "unjudged": options.unjudged,
        "min_relevant_grade": options.min_relevant_grade,
    }
    if Path(options.judgments).is_file():
        if options.split is not None:
            raise ValueError(
                "--split can only be used with a folder or a data set; a qrels file has no splits."
            )
        return Judgments(Relevance.from_qrels(options.judgments, **rules))
    dataset = open_data(
        options.judgments, options.split, embeddings=False, unknown=options.unknown
    )
    if dataset.relevance is None:
        raise ValueError(f"{options.judgments} has no judgments.")
    relevance = replace(with_ids(dataset.relevance), **rules)
    return Judgments(relevance, dataset.texts, query_texts_of(dataset))


def query_texts_of(dataset: Any) -> Any:
    """Texts of the queries, which may be items themselves."""
    return dataset.query_texts if dataset.has_queries else dataset.texts


def with_ids(relevance: Any) -> Any:
    """Use numbers as missing ids, because run files refer to ids."""
    from dataclasses import replace

    query_ids = relevance.query_ids
    if query_ids is None:
        query_ids = range(relevance.n_queries)
    item_ids = relevance.item_ids
    if item_ids is None:
        item_ids = range(relevance.n_items)
    return replace(
        relevance,
        query_ids=[str(name) for name in query_ids],
        item_ids=[str(name) for name in item_ids],
    )


def evaluate_run(run: str, options: argparse.Namespace) -> Any:
    """Evaluate a run file against the judgments that a command names."""
    from ..datasets import read_trec_run
    from ..evaluation.measures import evaluate

    with Progress(f"rankspace {options.name}") as progress:
        progress.say(f"reading {run}")
        ranking = read_trec_run(run)
        relevance = read_judgments(options).relevance
        progress.say("evaluating")
        with on_cluster(options, progress):
            return evaluate(ranking, relevance, options.measures, ties=options.ties)


def read_corpus(options: argparse.Namespace) -> Corpus:
    """Read the corpus and the queries to rank it for."""
    import numpy as np

    from .._engine.vectors import read_vectors

    if is_vector_source(options.corpus):
        _check_unused(options, ["split", "embeddings"], ONLY_DATA_SETS)
        X = read_vectors(options.corpus)
        ids = _given_ids(options.ids, len(X), options.corpus)
        if options.queries is None:
            _check_unused(options, ["query_ids"], "--queries")
            notes = _row_number_notes(items=ids)
            return Corpus(X, None, ids, ids, np.arange(len(X)), notes)
        queries = read_vectors(options.queries)
        query_ids = _given_ids(options.query_ids, len(queries), options.queries)
        notes = _row_number_notes(items=ids, queries=query_ids)
        return Corpus(X, queries, ids, query_ids, np.full(len(queries), -1), notes)
    _check_unused(options, ["queries", "ids", "query_ids"], ONLY_FILES)
    dataset = open_data(options.corpus, options.split, embeddings=options.embeddings)
    relevance = dataset.relevance
    if dataset.X is None or relevance is None or relevance.has_candidate_lists:
        raise ValueError(no_vectors(options.corpus))
    relevance = with_ids(relevance)
    return Corpus(
        dataset.X,
        dataset.queries,
        relevance.item_ids,
        relevance.query_ids,
        relevance.query_items,
        _unjudged_notes(dataset),
    )


def no_vectors(source: str) -> str:
    """What to do about a data set without vectors."""
    rule = f"{source} must have vectors of documents and queries: got none."
    if not Path(source).is_dir():
        return rule
    return (
        f"{rule} Put corpus.npy and queries.npy into the folder, with rows in the order of the "
        f"texts, or write them by: rankspace embed {source} --model MODEL."
    )


def _row_number_notes(**ids: Any) -> list[str]:
    """A note for each side whose rows have no ids."""
    options = {"items": "--ids", "queries": "--query-ids"}
    return [
        f"the {side} are named by row numbers, from 0; name them with {options[side]} if the "
        "judgments have other ids"
        for side, names in ids.items()
        if names is None
    ]


def _unjudged_notes(dataset: Any) -> list[str]:
    """A note on the queries that a folder has no judgments for."""
    n = dataset.n_unjudged
    if not n:
        return []
    return [f"not ranked: {n} queries without a judgment"]


def training_data(options: argparse.Namespace) -> Any:
    """Read the data set to learn from: by name, from a folder, or from files of vectors."""
    if is_vector_source(options.data):
        _check_unused(options, ["split", "embeddings"], ONLY_DATA_SETS)
        return _read_training_files(options)
    file_options = ["labels", "qrels", "queries", "ids", "query_ids"]
    _check_unused(options, file_options, ONLY_FILES)
    dataset = open_data(
        options.data,
        options.split,
        embeddings=options.embeddings,
        unknown=options.unknown,
    )
    if dataset.X is None:
        raise ValueError(no_vectors(options.data))
    if dataset.relevance is None:
        raise ValueError(
            f"{options.data} must have judgments to learn from, such as qrels/train.tsv with the "
            "columns query-id, corpus-id and score: got none."
        )
    return dataset


def split_notes(options: argparse.Namespace, dataset: Any) -> list[str]:
    """A note if all splits of a data set were learned from, because none was named."""
    if options.split is not None or len(dataset.splits) < 2:
        return []
    return [
        f"learned from all of {options.data}, whose splits are {', '.join(dataset.splits)}; "
        "--split chooses one"
    ]


def _warn_of_row_numbers(kind: str, judged: Any, rows: Any) -> None:
    """Warn if rows without ids may be numbered from 0 and judgments from 1."""
    from ..relevance.joins import Side, warn_of_numbering

    sides = Side("the judgments", judged.tolist()), Side("the file", rows.tolist())
    warn_of_numbering(kind, *sides)


def _check_not_shifted(
    X: Any, queries: Any, relevance: Any, item_ids: Any, query_ids: Any
) -> None:
    """Raise if vectors are far more alike under the judgments of the rows before those named."""
    import numpy as np

    from ..evaluation.matching import relevant_pairs
    from ..relevance.joins import check_not_shifted

    given = {"item": item_ids, "query": query_ids}
    kinds = [kind for kind, ids in given.items() if ids is None]
    pairs = relevant_pairs(relevance)
    # Where row 0 is judged, rows count from 0.
    kinds = [k for k in kinds if pairs[:, int(k == "item")].min(initial=1) > 0]
    if not kinds or not len(pairs) or X.shape[1] != queries.shape[1]:
        return

    def cosines(q: np.ndarray, x: np.ndarray) -> np.ndarray:
        left, right = queries[q].astype(float), X[x].astype(float)
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        # Zero vectors are near to nothing: other similarities than the cosine may have them.
        products = np.einsum("ij,ij->i", left, right)
        return np.divide(products, lengths, out=np.zeros(q.size), where=lengths > 0)

    check_not_shifted(kinds, pairs, cosines)


def _read_training_files(options: argparse.Namespace) -> Any:
    import numpy as np

    from .._engine.vectors import read_vectors
    from ..datasets import Dataset
    from ..relevance.joins import row_names
    from ..relevance.relevance import Relevance

    X = read_vectors(options.data)
    name = Path(options.data).stem
    if options.labels and not options.qrels:
        _check_unused(options, ["queries", "ids", "query_ids"], "--qrels")
        labels = _read_labels(options.labels, len(X))
        return Dataset(name, X, Relevance.from_labels(labels), labels=labels)
    if options.labels or not options.qrels or not options.queries:
        raise ValueError("a file of vectors needs --labels, or --qrels and --queries.")
    queries = read_vectors(options.queries)
    query_ids = _given_ids(options.query_ids, len(queries), options.queries)
    item_ids = _given_ids(options.ids, len(X), options.data)
    relevance = Relevance.from_qrels(
        options.qrels,
        query_ids=row_names(len(queries)) if query_ids is None else query_ids,
        item_ids=row_names(len(X)) if item_ids is None else item_ids,
        unknown=options.unknown,
    )
    _check_not_shifted(X, queries, relevance, item_ids, query_ids)
    if query_ids is None:
        judged = relevance.query_ids[np.diff(relevance.indptr)[relevance.rows] > 0]
        _warn_of_row_numbers("query", judged, relevance.query_ids)
    if item_ids is None:
        judged = relevance.item_ids[np.unique(relevance.items)]
        _warn_of_row_numbers("item", judged, relevance.item_ids)
    return Dataset(name, X, relevance, queries=queries)


def _check_unused(options: argparse.Namespace, names: list[str], use: str) -> None:
    for name in names:
        if vars(options)[name] is not None:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} can only be used with {use}.")


def read_items(source: str, ids_file: str | None) -> ItemsToExport:
    """Items to export: a table, a folder or a data set brings its texts as payload."""
    if is_vector_source(source):
        ids = read_names(source) if ids_file is None else _read_lines(ids_file)
        return ItemsToExport(source, ids, read_texts_beside(source))
    if ids_file is not None:
        raise ValueError(f"--ids can only be used with {ONLY_FILES}.")
    dataset = open_data(source, None)
    if dataset.X is None:
        raise ValueError(f"{source} has no vectors.")
    ids = None
    if dataset.relevance is not None:
        ids = dataset.relevance.item_ids
    return ItemsToExport(dataset.X, ids, _payload_of(source, dataset))


def _payload_of(source: str, dataset: Any) -> Any:
    """The fields of a BEIR corpus, or the texts of another data set."""
    from ..datasets import read_corpus

    if Path(source).is_dir():
        return read_corpus(source)[1]
    if dataset.texts is None:
        return None
    return [{"text": text} for text in dataset.texts]


def _given_ids(path: str | None, n_rows: int, vectors: str) -> list[str] | None:
    """Ids from a file; without one, those in the file of vectors, if any."""
    if path is None:
        return read_names(vectors)
    ids = _read_lines(path)
    if len(ids) != n_rows:
        raise ValueError(
            f"{path} must have a line for each of {n_rows} rows: got {len(ids)}."
        )
    return ids


def _read_lines(path: str) -> list[str]:
    from .._engine.files import read_lines

    return [text for _, text in read_lines(path)]


def _read_labels(path: str, n_rows: int) -> Any:
    import numpy as np

    from .._engine.vectors import map_npy

    if Path(path).suffix != ".npy":
        return np.array(_given_ids(path, n_rows, ""))
    labels = np.array(map_npy(path))
    if labels.shape != (n_rows,):
        raise ValueError(
            f"{path} must have a label for each of {n_rows} rows: got {labels.shape}."
        )
    return labels
