"""Memory of past queries: documents that similar queries were judged to be looking for."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .._engine.checks import check_count
from .._engine.similarity import unit_rows
from ..relevance.joins import check_has_rows
from ..relevance.relevance import Relevance
from ..relevance.rows import check_ids, gather_rows, indptr_of
from .exact import as_vectors
from .fusion import DEPTH
from .ranking import Ranking

# Cosine above which a past query counts: unrelated sentences are below it.
SIMILAR = 0.5


def rank_memory(
    Q: Any,
    past_queries: Any,
    relevance: Relevance,
    k: int = DEPTH,
    *,
    query_ids: Any = None,
) -> Ranking:
    """Rank documents by the most similar past query that they are relevant to.

    The score is the excess over 0.5 of the cosine between the query and the nearest past query that
    the document was judged relevant to. Documents without such a query are not listed.

    Parameters
    ----------
    Q : array-like of shape (n_queries, n_features)
        Queries.
    past_queries : array-like of shape (n_past, n_features)
        Queries with judgments.
    relevance : Relevance
        Their judgments.
    k : int, default=100
        Length of the lists.
    query_ids : array-like of str, optional
        Names of the queries.

    Returns
    -------
    Ranking
        Distances are minus the scores. Items have the ids of the judgments.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Relevance, rank_memory
    >>> past = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> relevance = Relevance.from_lists([[7], [2, 3]], n_items=9)
    >>> rank_memory(np.array([[0.6, 0.8]]), past, relevance).items
    array([2, 3, 7])
    """
    check_count(k, "k")
    Q, past_queries = as_vectors(Q, "Q"), as_vectors(past_queries, "past_queries")
    expected = (relevance.n_queries, Q.shape[1])
    if past_queries.shape != expected:
        raise ValueError(
            f"past_queries must have a row for each query of relevance, as wide as Q, {expected}: "
            f"got {past_queries.shape}."
        )
    way_out = "Pass query_ids, the ids of these rows, to Relevance.from_qrels."
    check_has_rows(relevance, "query", "the rows of past_queries", way_out)
    query_ids = check_ids(query_ids, len(Q), "query_ids")
    ranking = memory_ranking(memory_scores(Q, past_queries, relevance), k)
    return Ranking(
        ranking.indptr,
        ranking.items,
        ranking.distances,
        ranking.n_items,
        query_ids,
        relevance.item_ids,
    )


def memory_ranking(scores: Any, k: int) -> Ranking:
    """Items with a score, the first ``k`` of each row; equal ones by number."""
    owners = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, owners))
    lengths = np.minimum(np.diff(scores.indptr), k)
    _, entries = gather_rows(scores.indptr[:-1].astype(np.int64), lengths)
    entries = order[entries]
    items = scores.indices[entries].astype(np.int64)
    return Ranking(indptr_of(lengths), items, -scores.data[entries], scores.shape[1])


def memory_scores(Q: Any, past_queries: Any, relevance: Relevance) -> Any:
    """Queries by documents: how much the best cosine of a past query exceeds 0.5, sparse."""
    cosines = _directions(Q) @ _directions(past_queries).T
    table = relevance.judged_lists()
    table.data = table.data >= relevance.min_relevant_grade
    table.eliminate_zeros()
    # For each document that is relevant to some, the past queries that it is relevant to.
    by_document = table.tocsc()
    documents = np.flatnonzero(np.diff(by_document.indptr))
    starts = by_document.indptr[documents]
    columns, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for row in cosines:
        best = np.maximum.reduceat(row[by_document.indices], starts) - SIMILAR
        columns.append(documents[best > 0])
        values.append(best[best > 0])
    indptr = indptr_of(np.array([part.size for part in columns[1:]]))
    content = (np.concatenate(values), np.concatenate(columns), indptr)
    return scipy.sparse.csr_array(content, (len(cosines), relevance.n_items))


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Vectors at unit length; zero vectors, which resemble none, stay zero."""
    found = np.zeros_like(vectors)
    others = np.any(vectors, axis=1)
    found[others] = unit_rows(vectors[others], "queries")
    return found
