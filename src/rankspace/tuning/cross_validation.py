"""Cross-validation: the values of held-out queries along the path of a family of metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._engine.parallel import Step, current_backend
from ..evaluation.held_out import TOP, Judge
from ..evaluation.memory import WEIGHTS, memory_values
from ..metrics.embedding import EmbeddingMetric
from ..relevance.splits import (
    GroupFolds,
    Split,
    hold_out,
    hold_out_group,
    only_trainable,
    share_known,
)
from .data import TuningData
from .families import Family


class OutOfTime(Exception):
    """The time budget ended."""


class Deadline:
    """A time limit; its check raises once the time is over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else time.time() + seconds

    def check(self) -> None:
        """Raise if the time is over."""
        if time.time() > self.end:
            raise OutOfTime


@dataclass(frozen=True, eq=False)
class QueryFolds:
    """Folds of queries: held-out queries may share relevant items with training queries."""

    data: TuningData
    fold_of: np.ndarray

    def split(self, fold: int) -> Split:
        """Training data and held-out queries of a fold."""
        data = self.data
        train = np.flatnonzero(self.fold_of != fold)
        held_out = np.flatnonzero(self.fold_of == fold)
        return hold_out(data.X, data.relevance, data.queries, train, held_out)


@dataclass(frozen=True, eq=False)
class NewItemFolds:
    """Folds of groups: held-out queries share no relevant item with training queries."""

    data: TuningData
    folds: GroupFolds

    @property
    def fold_of(self) -> np.ndarray:
        """The fold that holds out each query."""
        return self.folds.queries

    def split(self, fold: int) -> Split:
        """Training data and held-out queries of a fold."""
        data = self.data
        return hold_out_group(data.X, data.relevance, data.queries, self.folds, fold)


Folds = QueryFolds | NewItemFolds


class FoldValues(NamedTuple):
    """The held-out queries of one fold, or of all."""

    values: (
        np.ndarray
    )  # (1 + n_strengths, n_queries), larger is better; the baseline first
    memory: (
        np.ndarray
    )  # (n_weights, n_queries): the baseline and memory of past queries
    tops: np.ndarray  # (1 + n_strengths, n_queries, TOP): first items, -1 for none
    distances: np.ndarray  # of these items
    known: np.ndarray  # share of the relevant items that training queries made known


def cross_validate(
    family: Family,
    folds: Folds,
    sample: np.ndarray,
    deadline: Deadline,
    progress: Callable[[float], Any],
) -> FoldValues:
    """Learn the path of a family without each fold, and evaluate the fold's queries.

    Only queries of the sample, a mask, are evaluated. Others have NaN, and so have those of a fold
    that leaves nothing to learn from.
    """
    numbers = np.unique(folds.fold_of[sample])
    step = _FoldStep(family, folds, sample, deadline)
    n_paths = 1 + len(family.strengths)
    n_queries = folds.fold_of.size
    total = FoldValues(
        np.full((n_paths, n_queries), np.nan),
        np.full((len(WEIGHTS), n_queries), np.nan),
        np.full((n_paths, n_queries, TOP), -1),
        np.full((n_paths, n_queries, TOP), np.nan),
        np.full(n_queries, np.nan),
    )
    for done, (fold, part) in enumerate(
        zip(numbers, current_backend().map(step, numbers.tolist()), strict=True), 1
    ):
        if part is not None:
            _fill(total, part, np.flatnonzero((folds.fold_of == fold) & sample))
        progress(done / numbers.size)
    return total


def _fill(total: FoldValues, part: FoldValues, held_out: np.ndarray) -> None:
    """Write the values of the held-out queries of a fold."""
    for whole, piece in zip(total[:-1], part[:-1], strict=True):
        whole[:, held_out] = piece
    total.known[held_out] = part.known


class _FoldStep(Step):
    """One fold: learn the whole path on its training queries, evaluate its held-out ones."""

    def __init__(
        self, family: Family, folds: Folds, sample: np.ndarray, deadline: Deadline
    ) -> None:
        self.family = family
        self.folds = folds
        self.sample = sample
        self.deadline = deadline

    def prepare(self, state: Any) -> Any:
        """Index the corpus before threads ask for it."""
        if self.folds.data.queries is not None:
            self.folds.data.index()
        return state

    def map_block(self, fold: int, state: Any) -> FoldValues | None:
        """Values of the held-out queries of a fold; None if no query is left to learn from."""
        evaluated = self.sample[self.folds.fold_of == fold]
        split = self.folds.split(fold)
        split = split._replace(
            points=split.points[evaluated],
            judged=split.judged.take_queries(evaluated),
        )
        split = only_trainable(split)
        if not split.relevance.n_queries:
            return None
        data = self.folds.data
        index = None
        if data.queries is not None:
            index = data.index()
        judge = Judge(split, data.similarity, data.measure, index)
        scored = [judge.baseline()]
        for metric in self.family.metrics(
            split.X, split.relevance, split.queries, self.deadline.check
        ):
            scored.append(judge.score(metric))
            self.deadline.check()
        known = np.zeros(split.judged.n_queries)
        if isinstance(self.folds, QueryFolds):
            known = share_known(split.relevance, split.judged)
        return FoldValues(
            np.array([score.values for score in scored]),
            memory_values(judge.index, split, data.similarity, data.measure),
            np.array([score.tops for score in scored]),
            np.array([score.distances for score in scored]),
            known,
        )


def learn_until(
    family: Family, data: TuningData, strength: int, deadline: Deadline
) -> EmbeddingMetric:
    """The metric of one strength (counted from 1), learned along the path from the strongest."""
    metrics = family.metrics(data.X, data.relevance, data.queries, deadline.check)
    return next(
        metric for number, metric in enumerate(metrics, 1) if number == strength
    )
