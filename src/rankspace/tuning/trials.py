"""Candidates learned without a fold of the queries, and judged on it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone

from .._engine.parallel import Step, current_backend
from .._engine.parallel.threads import single_threaded_blas
from ..evaluation.measures import evaluate, parse_measure
from ..learners.base import BaseRanker
from ..learners.hard_negatives import with_hard_negatives
from ..metrics.embedding import EmbeddingMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split
from ..search.index import Index
from ..search.ranking import Ranking
from .candidates import Candidate
from .report import TrialResult

AS_IS = "as they are"
LISTED = 10  # items of each query that the report keeps


class _Judged(NamedTuple):
    """What a candidate gave on a fold; what came with another's fit took no seconds of its own."""

    values: np.ndarray
    lists: Ranking
    seconds: float


class _Model(NamedTuple):
    """A learner, and the parts of it that are judged too."""

    learner: BaseRanker
    parts: list[str]

    @classmethod
    def of(cls, candidate: Candidate) -> _Model:
        return cls(candidate.build(), list(candidate.along))


class CrossValidation:
    """Learns candidates on the training part of each split, and judges its held-out queries.

    Parameters
    ----------
    splits : sequence of Split
        What to learn from and to judge by.
    tests : sequence of ndarray
        Numbers of the held-out queries of each.
    relevance : Relevance
        Judgments of all queries.
    measure : str
        What to judge by.
    max_in_flight : int, optional
        Fits at a time, of data that fill the memory; one for each core by default.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        tests: Sequence[np.ndarray],
        relevance: Relevance,
        measure: str,
        max_in_flight: int | None = None,
    ) -> None:
        self.splits, self.tests, self.relevance, self.measure = (
            splits,
            tests,
            relevance,
            measure,
        )
        self.max_in_flight = max_in_flight
        _, depth = parse_measure(measure)
        self._step = _FoldStep(splits, measure, depth or None)
        self._found: dict[str, dict[int, _Judged]] = {}
        self._candidates: dict[str, Candidate] = {}

    def run(
        self, candidates: Sequence[Candidate | None], folds: Sequence[int]
    ) -> Iterator[str]:
        """Candidates, or the vectors as they are, on the folds where they were not judged yet.

        Several at once, on a cluster or in threads. Yields the name of each when it is done.
        """
        names = [names_of(candidate) for candidate in candidates]
        models = [
            None if candidate is None else _Model.of(candidate)
            for candidate in candidates
        ]
        for candidate in filter(None, candidates):
            for each in (candidate, *candidate.along.values()):
                self._candidates[each.name] = each
        todo = [
            (number, fold)
            for number, (name, *_) in enumerate(names)
            for fold in folds
            if fold not in self._found.setdefault(name, {})
        ]
        for (number, fold), judged in zip(
            todo, self._judged(todo, models), strict=True
        ):
            for name, found in zip(names[number], judged, strict=True):
                self._found.setdefault(name, {})[fold] = found
            if fold == folds[-1]:
                yield names[number][0]

    def _judged(
        self, todo: Sequence[tuple[int, int]], models: Any
    ) -> Iterator[list[_Judged]]:
        """A fit for each core at a time; one that would be left over has all to itself."""
        cores = min(
            current_backend().n_workers,
            self.max_in_flight or current_backend().n_workers,
        )
        left_over = (
            cores > 1 and len(todo) % cores == 1 and not current_backend().remote
        )
        together = len(todo) - left_over
        yield from current_backend().map(
            self._step, todo[:together], models, max_in_flight=self.max_in_flight
        )
        for task in todo[together:]:
            with (
                single_threaded_blas() if together else nullcontext()
            ):  # to round as the others do
                found = self._step.map_block(task, models)
            yield found

    def names(self, folds: Sequence[int]) -> list[str]:
        """All that were judged on all of these folds, in the order they were first tried."""
        return [
            name
            for name, found in self._found.items()
            if all(fold in found for fold in folds)
        ]

    def tried(self, folds: Sequence[int]) -> list[TrialResult]:
        """What they gave."""
        return [self._together(name, folds) for name in self.names(folds)]

    def _together(self, name: str, folds: Sequence[int]) -> TrialResult:
        values = np.full(self.relevance.n_queries, np.nan)
        lists = [(np.zeros(0, np.int64), np.zeros(0))] * values.size
        for fold in folds:
            judged, rows = self._found[name][fold], self.splits[fold].rows
            values[self.tests[fold]] = judged.values
            for query, (items, distances) in zip(
                self.tests[fold], judged.lists, strict=True
            ):
                lists[query] = (items if rows is None else rows[items], distances)
        top = Ranking.from_pairs(lists, self.relevance.n_items)
        seconds = sum(self._found[name][fold].seconds for fold in folds)
        if name == AS_IS:
            return TrialResult(name, values, seconds, top)
        candidate = self._candidates[name]
        return TrialResult(
            name, values, seconds, top, candidate.part_of, candidate.lead
        )

    def longest(self, folds: Sequence[int]) -> float:
        """Seconds that so many folds may take, by the slowest of those tried."""
        slowest = max(
            fold.seconds for found in self._found.values() for fold in found.values()
        )
        return slowest * -(-len(folds) // current_backend().n_workers)


class _FoldStep(Step):
    """Learns on the training part of a split, and judges its held-out queries."""

    def __init__(
        self, splits: Sequence[Split], measure: str, depth: int | None
    ) -> None:
        self.splits, self.measure, self.depth = splits, measure, depth
        self._narrow: dict[int, tuple[Any, Relevance]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_narrow": {}}

    def map_block(
        self, task: tuple[int, int], models: Sequence[_Model | None]
    ) -> list[_Judged]:
        """What a model gives on a fold, and what comes along with it."""
        begin, (number, fold) = time.perf_counter(), task
        metrics: list[EmbeddingMetric | None] = [None]
        if (model := models[number]) is not None:
            split = self.splits[fold]
            if fold not in self._narrow:
                self._narrow[fold] = with_hard_negatives(
                    split.X, split.relevance, split.queries
                )
            learner = clone(model.learner)
            metrics = [learned(learner, *self._narrow[fold], split.queries)]
            metrics += [learner.parts_[name] for name in model.parts]
        found = [self._scored(metric, self.splits[fold]) for metric in metrics]
        found[0] = found[0]._replace(seconds=time.perf_counter() - begin)
        return found

    def _scored(self, metric: EmbeddingMetric | None, split: Split) -> _Judged:
        """Scores of the held-out queries under a metric, and the top of their lists."""
        ranking = self._ranked(Index(split.X, metric), split)
        values = evaluate(ranking, split.judged, self.measure).values[self.measure]
        return _Judged(values, ranking.top(LISTED), 0.0)

    def _ranked(self, index: Index, split: Split) -> Ranking:
        """The lists of the held-out queries, as deep as the measure looks; of judged items only if
        the others do not count."""
        if not split.judged.unlisted_is_irrelevant:
            table = split.judged.judged_lists()
            return index.rerank(
                split.points, np.split(table.indices, table.indptr[1:-1])
            )
        k = None if self.depth is None else min(max(self.depth, LISTED), len(split.X))
        return index.rank(split.points, k)


def names_of(candidate: Candidate | None) -> list[str]:
    """The names of a candidate and those that come along, or that of the vectors as they are."""
    if candidate is None:
        return [AS_IS]
    return [candidate.name, *(other.name for other in candidate.along.values())]


def learned(
    model: BaseRanker, X: Any, relevance: Relevance, queries: Any
) -> EmbeddingMetric:
    """The metric that a learner finds."""
    return cast(EmbeddingMetric, model.fit(X, relevance, queries=queries).metric_)


def seen_queries(
    splits: Sequence[Split], tests: Sequence[np.ndarray], n_queries: int
) -> np.ndarray:
    """Held-out queries with a relevant item that the training judgments of their split named."""
    seen = np.zeros(n_queries, dtype=bool)
    for split, test in zip(splits, tests, strict=True):
        taught = split.relevance
        named = np.zeros(taught.n_items, dtype=bool)
        named[taught.items[taught.grades >= taught.min_relevant_grade]] = True
        seen[test] = [named[split.judged.relevant(q)].any() for q in range(len(test))]
    return seen
