"""Memory: what a search gains that only remembers which documents past queries found relevant."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..relevance.splits import Split
from ..search.index import Index
from ..search.memory import memory_scores
from ..search.ranking import Ranking
from .held_out import oriented_values, rank_for
from .measures import parse_measure

# Weights of the memory that are tried, in units of the similarity; 0 is the baseline.
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


def memory_values(
    index: Index, split: Split, similarity: str, measure: str
) -> np.ndarray:
    """The measure of each held-out query for each weight of the memory; NaN where there is none.

    A document's score is its similarity to the query plus the weight times the excess over 0.5 of
    the cosine between the query and the nearest training query that the document is relevant to. If
    the items are the queries, their labels are the memory, and a map of them is no more than that.
    """
    judged = split.judged
    _, cut = parse_measure(measure)
    if split.queries is None or not cut or not judged.unlisted_is_irrelevant:
        return np.full((len(WEIGHTS), judged.n_queries), np.nan)
    excess = memory_scores(split.points, split.queries, split.relevance)
    nearest = rank_for(index, split.points, judged, measure)
    lists = []
    for query in range(judged.n_queries):
        remembered = excess.indices[excess.indptr[query] : excess.indptr[query + 1]]
        listed = nearest.items[nearest.indptr[query] : nearest.indptr[query + 1]]
        lists.append(np.union1d(listed, remembered))
    candidates = index.rerank(split.points, lists)
    owners = np.repeat(np.arange(judged.n_queries), np.diff(candidates.indptr))
    unit = 1.0
    if similarity != "cosine":
        # Of a live index only a sample is at hand.
        corpus = getattr(split.X, "sample", split.X)
        unit = _mean_length(split.points) * _mean_length(corpus)
    added = unit * np.ravel(excess[owners, candidates.items])
    keys = candidates.distances.astype(float)
    if similarity == "euclidean":
        keys = keys**2 / 2
    values = []
    for weight in WEIGHTS:
        ranking = _sorted(candidates, owners, keys - weight * added)
        values.append(oriented_values(ranking, judged, measure))
    return np.array(values)


def _sorted(candidates: Ranking, owners: np.ndarray, keys: np.ndarray) -> Ranking:
    """Candidates in the order of other keys."""
    order = np.lexsort((candidates.items, keys, owners))
    return Ranking(
        candidates.indptr, candidates.items[order], keys[order], candidates.n_items
    )


def _mean_length(vectors: Any) -> float:
    """Mean length of at most a thousand vectors."""
    step = max(1, len(vectors) // 1000)
    return float(
        np.linalg.norm(np.asarray(vectors[::step], dtype=float), axis=1).mean()
    )
