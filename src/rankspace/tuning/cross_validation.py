"""Cross-validated evaluation of tuning candidates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

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

TOP = 10  # items of each query that the report keeps


class FoldResult(NamedTuple):
    """Evaluation of one candidate on the held-out queries of one fold.

    The seconds of a part of another candidate are 0: they are counted there.
    """

    values: np.ndarray
    ranking: Ranking
    seconds: float


@dataclass(eq=False)
class CrossValidation:
    """Cross-validation: fits candidates on training queries, evaluates held-out queries.

    Parameters
    ----------
    splits : sequence of Split
        Training data and held-out queries of each fold.
    tests : sequence of ndarray
        Numbers of the held-out queries of each fold.
    relevance : Relevance
        Judgments of all queries.
    measure : str
        The evaluation measure.
    max_in_flight : int, optional
        Fits that run at the same time, for data that fill the memory; by default one per core.
    """

    splits: Sequence[Split]
    tests: Sequence[np.ndarray]
    relevance: Relevance
    measure: str
    max_in_flight: int | None = None

    def __post_init__(self) -> None:
        self._step = _FoldStep(self.splits, self.measure)
        self._results: dict[str, dict[int, FoldResult]] = {}
        self._candidates: dict[str, Candidate] = {}

    def run(
        self, candidates: Sequence[Candidate], folds: Sequence[int]
    ) -> Iterator[str]:
        """Evaluate candidates on the folds that are still missing.

        Fits run in parallel, in threads or on a cluster. Yields the name of each finished
        candidate.
        """
        tasks = []
        for number, candidate in enumerate(candidates):
            for part in candidate.with_parts:
                self._candidates[part.name] = part
                self._results.setdefault(part.name, {})
            for fold in folds:
                if fold not in self._results[candidate.name]:
                    tasks.append((number, fold))
        results = self._fold_results(tasks, candidates)
        for (number, fold), fold_results in zip(tasks, results, strict=True):
            candidate = candidates[number]
            for part, result in zip(candidate.with_parts, fold_results, strict=True):
                self._results[part.name][fold] = result
            if fold == folds[-1]:
                yield candidate.name

    def _fold_results(
        self, tasks: Sequence[tuple[int, int]], candidates: Sequence[Candidate]
    ) -> Iterator[list[FoldResult]]:
        """Run one fit per core; a last fit that would run alone uses all cores itself."""
        backend = current_backend()
        cores = min(backend.n_workers, self.max_in_flight or backend.n_workers)
        left_over = cores > 1 and len(tasks) % cores == 1 and not backend.remote
        n_parallel = len(tasks) - left_over
        yield from backend.map(
            self._step,
            tasks[:n_parallel],
            candidates,
            max_in_flight=self.max_in_flight,
        )
        # One BLAS thread, so that the last fit rounds as the parallel ones do.
        blas = single_threaded_blas if n_parallel else nullcontext
        for task in tasks[n_parallel:]:
            with blas():
                result = self._step.map_block(task, candidates)
            yield result

    def names(self, folds: Sequence[int]) -> list[str]:
        """Names of the candidates evaluated on all these folds, in the order of their trials."""
        return [
            name
            for name, results in self._results.items()
            if results.keys() >= {*folds}
        ]

    def trials(self, folds: Sequence[int]) -> list[TrialResult]:
        """Results of all candidates that were evaluated on all these folds."""
        return [self._trial(name, folds) for name in self.names(folds)]

    def _trial(self, name: str, folds: Sequence[int]) -> TrialResult:
        """The results of one candidate, with its folds put together."""
        values = np.full(self.relevance.n_queries, np.nan)
        lists = [(np.zeros(0, np.int64), np.zeros(0))] * values.size
        seconds = 0.0
        for fold in folds:
            result = self._results[name][fold]
            rows = self.splits[fold].rows
            values[self.tests[fold]] = result.values
            seconds += result.seconds
            for query, (items, distances) in zip(
                self.tests[fold], result.ranking, strict=True
            ):
                if rows is not None:
                    items = rows[items]
                lists[query] = (items, distances)
        ranking = Ranking.from_pairs(lists, self.relevance.n_items)
        return TrialResult(self._candidates[name], values, seconds, ranking)

    def max_seconds(self, folds: Sequence[int]) -> float:
        """Estimated seconds of one candidate on these folds, by the slowest fold so far."""
        slowest = max(
            result.seconds
            for results in self._results.values()
            for result in results.values()
        )
        return slowest * -(-len(folds) // current_backend().n_workers)


class _FoldStep(Step):
    """One fold of the cross-validation: fit on its training queries, evaluate its held-out ones."""

    def __init__(self, splits: Sequence[Split], measure: str) -> None:
        self.splits = splits
        self.measure = measure
        self._training_data: dict[int, tuple[Any, Relevance]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_training_data": {}}

    def map_block(
        self, task: tuple[int, int], candidates: Sequence[Candidate]
    ) -> list[FoldResult]:
        """Results of a candidate and its parts on one fold."""
        start = time.perf_counter()
        number, fold = task
        metrics = self._fitted_metrics(candidates[number], fold)
        results = [self._evaluate(metric, self.splits[fold]) for metric in metrics]
        results[0] = results[0]._replace(seconds=time.perf_counter() - start)
        return results

    def _fitted_metrics(
        self, candidate: Candidate, fold: int
    ) -> list[EmbeddingMetric | None]:
        if candidate.estimator is None:
            return [None]
        split = self.splits[fold]
        if fold not in self._training_data:
            self._training_data[fold] = with_hard_negatives(
                split.X, split.relevance, split.queries
            )
        estimator = candidate.build()
        metric = fit_metric(estimator, *self._training_data[fold], split.queries)
        return [metric, *(estimator.parts_[key] for key in candidate.parts)]

    def _evaluate(self, metric: EmbeddingMetric | None, split: Split) -> FoldResult:
        ranking = self._rank(Index(split.X, metric), split)
        values = evaluate(ranking, split.judged, self.measure).values[self.measure]
        return FoldResult(values, ranking.top(TOP), 0.0)

    def _rank(self, index: Index, split: Split) -> Ranking:
        """Rank the held-out queries to the depth of the measure."""
        if not split.judged.unlisted_is_irrelevant:
            table = split.judged.judged_lists()
            lists = np.split(table.indices, table.indptr[1:-1])
            return index.rerank(split.points, lists)
        _, depth = parse_measure(self.measure)
        if not depth:
            return index.rank(split.points)
        return index.rank(split.points, min(max(depth, TOP), len(split.X)))


def fit_metric(
    estimator: BaseRanker, X: Any, relevance: Relevance, queries: Any
) -> EmbeddingMetric:
    """Fit an estimator; returns its metric."""
    return cast(EmbeddingMetric, estimator.fit(X, relevance, queries=queries).metric_)


def seen_queries(
    splits: Sequence[Split], tests: Sequence[np.ndarray], n_queries: int
) -> np.ndarray:
    """Mask of the held-out queries with a relevant item that is also relevant in training."""
    seen = np.zeros(n_queries, dtype=bool)
    for split, test in zip(splits, tests, strict=True):
        training = split.relevance
        is_relevant = training.grades >= training.min_relevant_grade
        in_training = np.zeros(training.n_items, dtype=bool)
        in_training[training.items[is_relevant]] = True
        for number, query in enumerate(test):
            seen[query] = in_training[split.judged.relevant(number)].any()
    return seen
