"""Held-out evaluation of fused rankings: weighted sums of a metric's scores and those of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..relevance.relevance import Relevance
from ..relevance.rows import indptr_of
from ..relevance.splits import QueryFolds
from ..search.fusion import FusionTable, fusion_table, reciprocal_ranks
from ..search.memory import memory_ranking, memory_scores
from ..search.ranking import Ranking
from .cross_validation import (
    Evidence,
    Folds,
    HeldOutValues,
    held_out_split,
    plan_folds,
)
from .held_out import Score, oriented_values, without_ignored
from .runs import LONGEST
from .search_task import SearchTask


class FoldLists(NamedTuple):
    """The lists of a fold's held-out queries in each run, without ignored items."""

    queries: np.ndarray  # their numbers
    judged: Relevance
    runs: list[Ranking]


@dataclass(eq=False)
class HeldOutFusion:
    """Fused lists of held-out queries.

    Signals are the ranking by vectors, and then the runs. Strengths and weights may be those of
    each query, so that none takes part in choosing its own.

    Parameters
    ----------
    values : HeldOutValues
        With the first items of each query under each metric.
    parts : list of FoldLists
        Lists of the same queries in the runs.
    normalise : list of str
        The normalisation of each signal.
    measure : str
        The measure.
    n_items : int
        Number of items.
    """

    values: HeldOutValues
    parts: list[FoldLists]
    normalise: list[str]
    measure: str
    n_items: int
    _tables: dict[tuple[int, bytes], FusionTable] = field(
        default_factory=dict, init=False
    )

    @property
    def depth(self) -> int:
        """How many first items of each list are fused."""
        return self.values.tops.shape[2]

    @property
    def n_queries(self) -> int:
        """Number of queries, also of those that are not evaluated."""
        return self.values.values.shape[1]

    def reciprocal_values(self, strength: int) -> np.ndarray:
        """The measure with reciprocal rank fusion, which needs no weights."""
        found = np.full(self.n_queries, np.nan)
        for part in self.parts:
            lists = self._lists(part, np.full(self.n_queries, strength))
            table = reciprocal_ranks(lists, self.n_items, self.depth)
            items, distances = table.ranked(table.sums([1.0] * len(lists)))
            ranking = Ranking(table.indptr, items, distances, self.n_items)
            found[part.queries] = oriented_values(ranking, part.judged, self.measure)
        return found

    def score(self, strengths: np.ndarray, weights: np.ndarray) -> Score:
        """The measure, and the first items of each query.

        Parameters
        ----------
        strengths : ndarray of shape (n_queries,)
            The metric that each query is ranked by.
        weights : ndarray of shape (n_signals, n_queries)
            Weights of each query.
        """
        found = Score(
            np.full(self.n_queries, np.nan),
            np.full((self.n_queries, self.depth), -1),
            np.full((self.n_queries, self.depth), np.nan),
        )
        for number, part in enumerate(self.parts):
            table = self._table(number, strengths)
            items, distances = table.ranked(table.sums(weights[:, part.queries]))
            ranking = Ranking(table.indptr, items, distances, self.n_items)
            found.values[part.queries] = oriented_values(
                ranking, part.judged, self.measure
            )
            first = ranking.top(self.depth)
            lengths = np.diff(first.indptr)
            owners = np.repeat(part.queries, lengths)
            places = np.arange(first.items.size) - np.repeat(first.indptr[:-1], lengths)
            found.tops[owners, places] = first.items
            found.distances[owners, places] = first.distances
        return found

    def units(self, strength: int) -> np.ndarray:
        """The mean range of scores by vectors over that of each run: weights of like effect."""
        strengths = np.full(self.n_queries, strength)
        ranges = []
        for number in range(len(self.parts)):
            table = self._table(number, strengths)
            starts = table.indptr[:-1][np.diff(table.indptr) > 0]
            high = np.maximum.reduceat(table.columns, starts, axis=1)
            low = np.minimum.reduceat(table.columns, starts, axis=1)
            ranges.append(high - low)
        found = np.concatenate(ranges, axis=1)
        counts = (found > 0).sum(axis=1)
        means = found.sum(axis=1) / counts.clip(min=1)
        units = np.ones(means.size)
        np.divide(means[0], means, out=units, where=(means > 0) & (means[0] > 0))
        return units

    def _table(self, number: int, strengths: np.ndarray) -> FusionTable:
        """Normalised scores of a fold's queries, each by the metric of its strength."""
        part = self.parts[number]
        key = (number, strengths[part.queries].tobytes())
        if key not in self._tables:
            lists = self._lists(part, strengths)
            self._tables[key] = fusion_table(
                lists, self.n_items, self.normalise, self.depth
            )
        return self._tables[key]

    def _lists(self, part: FoldLists, strengths: np.ndarray) -> list[Ranking]:
        """The lists of a fold's queries: by vectors, each with its metric, and in runs."""
        own = strengths[part.queries]
        tops = self.values.tops[own, part.queries]
        distances = self.values.distances[own, part.queries]
        listed = tops >= 0
        indptr = indptr_of(listed.sum(axis=1))
        mapped = Ranking(indptr, tops[listed], distances[listed], self.n_items)
        return [mapped, *part.runs]


class FusedEvidence(NamedTuple):
    """Evidence, and the fusion of its lists with those of runs."""

    evidence: Evidence
    by_query: HeldOutFusion
    by_group: HeldOutFusion

    def lists_of(self, question: str) -> HeldOutFusion:
        """The lists that a question is about."""
        return self.by_group if question == "new" else self.by_query

    def rows(self, by_query: list[np.ndarray], by_group: list[np.ndarray]) -> Evidence:
        """The same evidence with other values, the baseline first."""
        return replace(
            self.evidence,
            by_query=_with_values(self.evidence.by_query, by_query),
            by_group=_with_values(self.evidence.by_group, by_group),
        )


def _with_values(held_out: HeldOutValues, rows: list[np.ndarray]) -> HeldOutValues:
    """Other values of the same queries, and NaN where there were none."""
    values = np.where(np.isnan(held_out.values[0]), np.nan, np.array(rows))
    return held_out._replace(values=values)


def fuse_held_out(
    evidence: Evidence,
    task: SearchTask,
    n_folds: int,
    seed: int,
    runs: Mapping[str, Ranking | None],
    normalise: list[str],
) -> FusedEvidence:
    """Cross-validated evidence, and the lists of the same held-out queries in all runs."""
    plan = plan_folds(task, n_folds, seed)

    def fused(values: HeldOutValues, folds: Folds) -> HeldOutFusion:
        parts = _fold_lists(task, folds, plan.sample, runs)
        n_items = task.relevance.n_items
        return HeldOutFusion(values, parts, normalise, task.measure, n_items)

    by_query = fused(evidence.by_query, plan.by_query)
    by_group = by_query
    if plan.by_group is None:
        by_group = replace(by_query, values=evidence.by_group, parts=[])
    elif plan.by_group is not plan.by_query:
        by_group = fused(evidence.by_group, plan.by_group)
    return FusedEvidence(evidence, by_query, by_group)


def fuse_dev(
    evidence: Evidence,
    task: SearchTask,
    dev: np.ndarray,
    runs: Mapping[str, Ranking | None],
    normalise: list[str],
) -> FusedEvidence:
    """Evidence from dev queries, and the lists of these queries in all runs."""
    (part,) = _fold_lists(task, QueryFolds(dev.astype(np.int64)), dev, runs)
    part = part._replace(queries=np.arange(part.queries.size))
    n_items = task.relevance.n_items
    lists = HeldOutFusion(evidence.by_query, [part], normalise, task.measure, n_items)
    return FusedEvidence(evidence, lists, lists)


def _fold_lists(
    task: SearchTask,
    folds: Folds,
    sample: np.ndarray,
    runs: Mapping[str, Ranking | None],
) -> list[FoldLists]:
    """The lists of each fold that leaves something to learn from."""
    parts = []
    for fold in np.unique(folds.queries[sample]).tolist():
        split = held_out_split(task, folds, sample, fold)
        if not split.relevance.n_queries:
            continue
        queries = np.flatnonzero((folds.queries == fold) & sample)
        lists = []
        for run in runs.values():
            if run is None:
                scores = memory_scores(split.points, split.queries, split.relevance)
                ranking = memory_ranking(scores, LONGEST)
            else:
                ranking = run.take_queries(queries)
            plain = replace(ranking, query_ids=None, item_ids=None)
            lists.append(without_ignored(plain, split.judged))
        parts.append(FoldLists(queries, split.judged, lists))
    return parts
