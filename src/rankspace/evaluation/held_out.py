"""Held-out evaluation: a metric scored on the held-out queries of a split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ..relevance.relevance import Relevance
from ..relevance.rows import gather_rows, indptr_of
from ..relevance.splits import Split
from ..search.index import Embedding, Index
from ..search.quantised import QuantisedMetric
from ..search.ranking import Ranking
from .measures import evaluate, parse_measure

TOP = 10  # first items of each query that are kept, unless more are asked for


class Score(NamedTuple):
    """Values of held-out queries, larger is better, and the first items of each with distances."""

    values: np.ndarray
    tops: np.ndarray  # (n_queries, depth), -1 for none
    distances: np.ndarray


class Judge:
    """Evaluates metrics on the held-out queries of a split."""

    def __init__(
        self,
        split: Split,
        similarity: str,
        measure: str,
        index: Index | None = None,
        depth: int = TOP,
    ) -> None:
        corpus = split.X if split.corpus is None else split.corpus
        self.split = split
        self.corpus = corpus
        self.measure = measure
        self.depth = depth
        self.index = index or Index(corpus, similarity=similarity)

    def baseline(self) -> Score:
        """Score of the unchanged vectors."""
        return self._score(self.index, self.split.points)

    def score(self, metric: Embedding) -> Score:
        """Score of a metric."""
        if _keeps_items(metric) and metric.similarity == self.index.similarity:
            queries = metric.embed_queries(self.split.points)
            score = self._score(self.index, queries)
            if metric.similarity != "cosine":
                return score
            # The index brings queries to unit length; distances are those of the metric.
            lengths = np.linalg.norm(queries, axis=1, keepdims=True)
            return score._replace(distances=score.distances * lengths)
        if isinstance(metric, QuantisedMetric):
            return self._score(metric.index(self.corpus), self.split.points)
        return self._score(Index(self.corpus, metric), self.split.points)

    def _score(self, index: Index, queries: np.ndarray) -> Score:
        judged = self.split.judged
        query_items = judged.query_items
        if not judged.unlisted_is_irrelevant:
            table = judged.judged_lists()
            lists = np.split(table.indices, table.indptr[1:-1])
            ranking = index.rerank(queries, lists, query_items=query_items)
            return self._scored(ranking, ranking)
        ranking = rank_for(index, queries, judged, self.measure, self.depth)
        _, cut = parse_measure(self.measure)
        if cut:
            return self._scored(ranking, ranking)
        return self._scored(index.blocks(queries, query_items=query_items), ranking)

    def _scored(self, lists: Any, ranking: Ranking) -> Score:
        """Score of lists of all items, with the first items of a ranking."""
        values = oriented_values(lists, self.split.judged, self.measure)
        tops = np.full((ranking.n_queries, self.depth), -1)
        distances = np.full(tops.shape, np.nan)
        first = without_ignored(ranking, self.split.judged).top(self.depth)
        owners = np.repeat(np.arange(first.n_queries), np.diff(first.indptr))
        places = np.arange(first.items.size) - first.indptr[owners]
        items = first.items
        if self.split.corpus is None and self.split.rows is not None:
            items = self.split.rows[items]
        tops[owners, places] = items
        distances[owners, places] = first.distances
        return Score(values, tops, distances)


def _keeps_items(metric: Embedding) -> bool:
    """Whether a metric leaves items unchanged, so that the index of the baseline serves it too."""
    if not metric.inner_product:
        return False
    item_map = getattr(metric, "item_map", np.zeros(0))
    return np.array_equal(item_map, np.eye(len(item_map)))


def without_ignored(ranking: Ranking, judged: Relevance) -> Ranking:
    """The lists without the items that count neither as relevant nor as irrelevant."""
    if judged.unjudged != "ignore" or not np.isnan(judged.grades).any():
        return ranking
    lengths = np.diff(judged.indptr)[judged.rows]
    _, entries = gather_rows(judged.indptr[judged.rows], lengths)
    queries = np.repeat(np.arange(judged.n_queries), lengths)
    keys = queries * judged.n_items + judged.items[entries]
    owners = np.repeat(np.arange(ranking.n_queries), np.diff(ranking.indptr))
    ignored = keys[np.isnan(judged.grades[entries])]
    kept = ~np.isin(owners * judged.n_items + ranking.items, ignored)
    return replace(
        ranking,
        indptr=indptr_of(np.bincount(owners[kept], minlength=ranking.n_queries)),
        items=ranking.items[kept],
        distances=ranking.distances[kept],
    )


def rank_for(
    index: Index,
    queries: np.ndarray,
    judged: Relevance,
    measure: str,
    depth: int = TOP,
) -> Ranking:
    """Lists that are long enough for a measure, when items that a query ignores are left out."""
    _, cut = parse_measure(measure)
    depths = np.full(judged.n_queries, max(cut, depth))
    if judged.unjudged == "ignore":
        depths += judged._count(np.isnan(judged.grades))
    # A few queries ignore many items. Those that need lists of about the same length are searched
    # for together.
    sizes = np.ceil(np.log2(depths)).astype(np.int64)
    blocks = []
    for size in np.unique(sizes):
        members = sizes == size
        longest = min(int(depths[members].max()), judged.n_items)
        query_items = judged.query_items[members]
        blocks.append(index.rank(queries[members], longest, query_items=query_items))
    places = np.argsort(np.argsort(sizes, kind="stable"))
    return Ranking.join(blocks).take_queries(places)


def oriented_values(ranking: Any, judged: Relevance, measure: str) -> np.ndarray:
    """The measure of each query, negated if it is an error, so that larger is better."""
    values = evaluate(ranking, judged, measure).values[measure]
    return orientation(measure) * values


def orientation(measure: str) -> float:
    """1 if larger values of a measure are better, else -1."""
    return 1.0 if parse_measure(measure)[0].larger_is_better else -1.0


def judged_share(tops: np.ndarray, relevance: Relevance) -> float:
    """Share of the first items of each query that its judgments name."""
    shown = tops >= 0
    if relevance.background == "irrelevant" and shown.any():
        return 1.0  # class labels judge every item
    owners = np.repeat(np.arange(len(tops)), tops.shape[1]).reshape(tops.shape)[shown]
    table = relevance.judged_lists()
    named = scipy.sparse.csr_array(
        (np.ones(table.nnz, dtype=bool), table.indices, table.indptr), table.shape
    )
    return float(np.mean(named[owners, tops[shown]])) if shown.any() else np.nan
