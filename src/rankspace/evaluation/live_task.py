"""Search tasks over a live index: judged documents and what searches find are read, no more."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.parallel import current_backend
from .._engine.similarity import unit_rows
from ..relevance.inputs import check_stored_ids, is_by_id, row_ids
from ..relevance.relevance import Relevance
from ..relevance.rows import as_ids
from ..search.exact import as_vectors
from ..search.live import (
    LiveIndex,
    LiveSearch,
    LiveVectors,
    SampledCorpus,
    fetched,
    in_order,
    searched,
)
from .held_out import TOP
from .measures import measure_names, parse_measure
from .search_task import (
    MAX_QUERIES,
    SearchTask,
    check_enough,
    check_judged_vectors,
)

# Queries whose lists are compared with the vectors, and the share of pairs of neighbours that may
# stand in another order: approximate indexes and quantised vectors swap some.
CHECKED = 30
SWAPPED = 0.2


def check_live_task(
    index: LiveIndex,
    judgments: Any,
    queries: Any,
    similarity: str | None,
    measure: str,
    query_ids: Any,
    reach: tuple[int, int, int],
    seed: int,
) -> tuple[SearchTask, np.ndarray]:
    """The task of the queries that can be evaluated, and a mask of them among all passed.

    ``reach`` has how many hard negatives a fit may ask for, how long the lists are that it finds
    them in, and how many mapped lists of each query will be searched for.
    """
    if queries is None:
        raise ValueError("a live index needs the vectors of queries: pass queries=....")
    if current_backend().remote:
        raise ValueError(
            "a live index is searched from this process, not from the workers of a cluster: tune "
            "it without a cluster."
        )
    if is_by_id(judgments):
        query_ids = row_ids(queries, query_ids, "query")
    if isinstance(judgments, Relevance):
        check_stored_ids(judgments, "query", queries)
    queries = as_vectors(queries, "queries")
    cut = _check_measure(measure)
    similarity = similarity or getattr(index, "similarity", None) or "cosine"
    check_choice(similarity, "similarity", ("cosine", "dot"))
    relevance = _by_name(judgments, len(queries), query_ids)
    n_negatives, depth, n_lists = reach
    judged = np.unique(relevance.items)
    sample = index.sample(judged.size + n_negatives + 1, seed)
    sample = as_vectors(sample, "the sample of the index")
    _check_width(queries, sample)
    depth = max(depth, cut, TOP)
    lists = searched(index, queries, depth, similarity)
    ids = _ids_of(relevance, judged, lists)
    X: Any = sample
    documents: LiveVectors | SampledCorpus
    known = in_order({id for row, _ in lists for id in row}.union(ids))
    if len(sample) <= judged.size + n_negatives:
        documents = SampledCorpus(index, sample)
        # In this order, so that documents of equal vectors are numbered as their rows.
        documents.numbers(known)
    else:
        documents = X = LiveVectors(index, known, sample)
        documents.reserve(_room(relevance, cut, n_lists) + n_negatives)
    search = LiveSearch(index, documents, similarity)
    search.remember(queries, lists, depth)
    relevance = _renumbered(relevance, judged, documents.numbers(ids), len(search))
    check_judged_vectors(relevance, X, queries)
    is_judged = relevance.trainable
    _check_order(search, queries, lists)
    name = measure_names(measure)[0]
    task = SearchTask(
        X, relevance, queries, similarity, name, _indexes={similarity: search}
    )
    task = task.take(np.flatnonzero(is_judged))
    check_enough(task)
    return task, is_judged


def _check_measure(measure: str) -> int:
    """How many ranks a measure looks at."""
    names = measure_names(measure)
    if len(names) != 1:
        raise ValueError(f"measure must be one measure: got {measure!r}.")
    _, cut = parse_measure(names[0])
    if not cut:
        raise ValueError(
            "a live index lists the first documents only, so it needs a measure of the first "
            f"ranks, such as ndcg-linear@10 or r@100: got {measure!r}."
        )
    return cut


def _by_name(judgments: Any, n_queries: int, query_ids: Any) -> Relevance:
    """Judgments of documents that are known by id."""
    if isinstance(judgments, Relevance):
        if judgments.background != "unjudged":
            raise ValueError(
                "a live index needs judgments of single documents, as from_qrels, from_lists and "
                f"from_clicks have them: got a background of {judgments.background!r} items."
            )
        return judgments
    if judgments is None:
        raise TypeError(
            "judgments must be a Relevance, lists of documents, or a mapping or dataframe by id: "
            "got None."
        )
    if is_by_id(judgments):
        if query_ids is None:
            raise ValueError(
                "judgments by id need query_ids, the ids of the rows of queries: got none."
            )
        return Relevance.from_qrels(judgments, query_ids=query_ids)
    if len(judgments) != n_queries:
        raise ValueError(
            f"judgments must have a list of documents for each of {n_queries} queries: got "
            f"{len(judgments)}."
        )
    by_number = {str(number): row for number, row in enumerate(judgments)}
    names = list(by_number) if query_ids is None else query_ids
    renamed = dict(zip(as_ids(names).tolist(), by_number.values(), strict=True))
    return Relevance.from_qrels(renamed, query_ids=names)


def _check_width(queries: np.ndarray, sample: np.ndarray) -> None:
    if not len(sample):
        raise ValueError("sample must give vectors of documents: it gave none.")
    if queries.shape[1] != sample.shape[1]:
        raise ValueError(
            f"queries must be as wide as the vectors of the index, {sample.shape[1]}: got "
            f"{queries.shape[1]} features."
        )


def _ids_of(relevance: Relevance, judged: np.ndarray, lists: Any) -> list[Any]:
    """Ids of judged documents, as the index has them: whole numbers, or text."""
    item_ids = relevance.item_ids
    names = judged.tolist() if item_ids is None else item_ids[judged].tolist()
    examples = {type(id) for ids, _ in lists for id in ids[:1]}
    if not examples:
        raise ValueError("search must find documents: it found none for any query.")
    if examples != {int}:
        return list(map(str, names))
    wrong = [name for name in names if not str(name).lstrip("-").isdigit()]
    if wrong:
        raise ValueError(
            f"ids of judged documents must be those of the index, which are numbers: got "
            f"{wrong[0]!r}. Pass the ids of the documents to the adapter."
        )
    return list(map(int, names))


def _room(relevance: Relevance, cut: int, n_lists: int) -> int:
    """Documents that searches of mapped queries may find at most.

    Lists of queries of about the same length are searched for together, so they may be twice as
    long as needed.
    """
    lengths = np.diff(relevance.indptr)[relevance.rows]
    longest = np.sort(2 * (max(cut, TOP) + lengths))[-MAX_QUERIES:]
    return int(n_lists * longest.sum())


def _renumbered(
    relevance: Relevance, judged: np.ndarray, numbers: np.ndarray, n_items: int
) -> Relevance:
    """The judgments with other numbers of the documents."""
    items = numbers[np.searchsorted(judged, relevance.items)]
    owners = np.repeat(np.arange(relevance.indptr.size - 1), np.diff(relevance.indptr))
    order = np.lexsort((items, owners))
    return relevance._with(
        n_items=n_items,
        items=items[order],
        grades=relevance.grades[order],
        query_items=np.full(relevance.n_queries, -1),
        item_ids=None,
        known_by_name=tuple(set(relevance.known_by_name) - {"item"}),
    )


def _check_order(search: LiveSearch, queries: np.ndarray, lists: Any) -> None:
    """Raise unless the index ranks by the similarity that a map is learned for."""
    n_pairs = n_swapped = 0
    step = max(1, len(queries) // CHECKED)
    for query, (ids, _) in list(zip(queries, lists, strict=True))[::step]:
        vectors = fetched(search.index, ids[:TOP]) if ids else queries[:0]
        if search.similarity == "cosine" and len(vectors):
            vectors = unit_rows(vectors, "vectors of the index")
        products = vectors.astype(float) @ query.astype(float)
        # Equal ones by rounding are in any order.
        rise = np.diff(products)
        n_pairs += rise.size
        n_swapped += int((rise > 1e-5 * np.abs(products[:1]).sum()).sum())
    if n_swapped > SWAPPED * n_pairs:
        raise ValueError(
            f"the index must rank documents by {search.similarity}: of {n_pairs} pairs of "
            f"neighbours in its lists, {n_swapped} are in another order. Pass the similarity that "
            "it compares vectors by, cosine or dot."
        )
