"""Cross-validation: values of held-out queries, for known and for new items.

A metric partly remembers items, so there are two questions, each with its own folds. Queries that
are held out at random mostly ask for items that training queries made known; queries that are held
out together with their relevant items ask for new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._engine.parallel import Step, current_backend, interrupted_by
from ..relevance.relevance import Relevance
from ..relevance.splits import (
    GroupFolds,
    QueryFolds,
    Split,
    fold_groups,
    fold_queries,
    group_queries,
    only_trainable,
    share_known,
)
from ..search.index import Embedding, Index
from .held_out import TOP, Judge
from .memory import WEIGHTS, memory_values
from .search_task import MAX_QUERIES, SearchTask
from .significance import ClusteredMean, clustered_mean

# Fewer queries, or fewer groups that are independent, measure nothing.
MIN_QUERIES = 30
MIN_GROUPS = 10
# From this many queries on, two thirds of them teach enough, and three folds cost less than five.
MANY_QUERIES = 600

Folds = QueryFolds | GroupFolds
Check = Callable[[], Any]  # called now and then; may raise to end the work
Show = Callable[[float], Any]  # called with the fraction done


def default_n_folds(n_queries: int) -> int:
    """Number of folds for a number of queries."""
    return 3 if n_queries >= MANY_QUERIES else 5


class Path(Protocol):
    """Metrics that are learned one after the other from the same data."""

    @property
    def strengths(self) -> tuple[str, ...]:
        """A name for each metric."""

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None
    ) -> Iterator[Embedding]:
        """Learn the metrics; the index is one of ``X``, for hard negatives."""


class HeldOutValues(NamedTuple):
    """Values of held-out queries, and the first items of each; a row for each metric."""

    values: np.ndarray  # (1 + n_metrics, n_queries), larger is better; baseline first
    memory: np.ndarray  # (n_weights, n_queries): baseline, and memory of past queries
    tops: np.ndarray  # (1 + n_metrics, n_queries, depth): first items, -1 for none
    distances: np.ndarray  # of these items
    known: np.ndarray  # share of the relevant items that training queries made known

    @classmethod
    def empty(cls, n_metrics: int, n_queries: int, depth: int = TOP) -> HeldOutValues:
        """The values of queries that were not evaluated."""
        shape = (1 + n_metrics, n_queries)
        return cls(
            np.full(shape, np.nan),
            np.full((len(WEIGHTS), n_queries), np.nan),
            np.full((*shape, depth), -1),
            np.full((*shape, depth), np.nan),
            np.full(n_queries, np.nan),
        )

    def take(self, queries: np.ndarray) -> HeldOutValues:
        """The values of some queries."""
        return HeldOutValues(
            self.values[:, queries],
            self.memory[:, queries],
            self.tops[:, queries],
            self.distances[:, queries],
            self.known[queries],
        )

    def fill(self, queries: np.ndarray, part: HeldOutValues) -> None:
        """Write the values of some queries, given by number or as a mask."""
        for whole, piece in zip(self[:-1], part[:-1], strict=True):
            whole[:, queries] = piece
        self.known[queries] = part.known


# ---------------------------------------------------------------------- values


def held_out_values(
    path: Path,
    task: SearchTask,
    folds: Folds,
    sample: np.ndarray,
    check: Check,
    show: Show,
) -> HeldOutValues:
    """Learn a path of metrics without each fold, and evaluate the fold's queries.

    Only queries of the sample, a mask, are evaluated. Others have NaN, and so have those of a fold
    that leaves nothing to learn from. ``check`` may raise to end it.
    """
    numbers = np.unique(folds.queries[sample]).tolist()
    step = _FoldStep(path, task, folds, sample, check)
    total = HeldOutValues.empty(len(path.strengths), task.n_queries, task.depth)
    parts = current_backend().map(step, numbers)
    for done, (fold, part) in enumerate(zip(numbers, parts, strict=True), 1):
        if part is not None:
            total.fill((folds.queries == fold) & sample, part)
        show(done / len(numbers))
    return total


class _FoldStep(Step):
    """One fold: learn the whole path on its training queries, evaluate its held-out ones."""

    def __init__(
        self,
        path: Path,
        task: SearchTask,
        folds: Folds,
        sample: np.ndarray,
        check: Check,
    ) -> None:
        self.path = path
        self.task = task
        self.folds = folds
        self.sample = sample
        self.check = check

    def prepare(self, state: Any) -> Any:
        """Index the corpus before threads ask for it."""
        if self.task.queries is not None:
            self.task.index()
        return state

    def map_block(self, fold: int, state: Any) -> HeldOutValues | None:
        """Values of the held-out queries of a fold; None if no query is left to learn from."""
        with interrupted_by(self.check):
            return self._values(fold)

    def _values(self, fold: int) -> HeldOutValues | None:
        split = held_out_split(self.task, self.folds, self.sample, fold)
        if not split.relevance.n_queries:
            return None
        task = self.task
        index = None if task.queries is None else task.index()
        judge = Judge(split, task.similarity, task.measure, index, task.depth)
        scored = [judge.baseline()]
        training = (split.X, split.relevance, split.queries)
        for metric in self.path.metrics(*training, index):
            scored.append(judge.score(metric))
        known = np.zeros(split.judged.n_queries)
        if isinstance(self.folds, QueryFolds):
            known = share_known(split.relevance, split.judged)
        return HeldOutValues(
            np.array([score.values for score in scored]),
            memory_values(judge.index, split, task.similarity, task.measure),
            np.array([score.tops for score in scored]),
            np.array([score.distances for score in scored]),
            known,
        )


def held_out_split(
    task: SearchTask, folds: Folds, sample: np.ndarray, fold: int
) -> Split:
    """Training data of a fold, and its held-out queries that are evaluated."""
    split = folds.split(task.X, task.relevance, task.queries, fold)
    evaluated = sample[folds.queries == fold]
    points, judged = split.points[evaluated], split.judged.take_queries(evaluated)
    return only_trainable(split._replace(points=points, judged=judged))


# ---------------------------------------------------------------------- evidence


class Question(NamedTuple):
    """Differences from the baseline that answer one question.

    ``differences`` has a row for each strength, the baseline first, and NaN for queries that the
    question is not about; ``clusters`` are queries that depend on each other. ``folds``, the fold
    that holds out each query, is None if the metrics were not learned by cross-validation.
    """

    differences: np.ndarray
    clusters: np.ndarray
    folds: np.ndarray | None = None

    def estimate(self, strength: int) -> ClusteredMean:
        """Mean difference of a strength, with its standard error."""
        mean = clustered_mean(self.differences[strength], self.clusters)
        if self.folds is None:
            return mean
        # Metrics of different folds were learned from overlapping data, so errors are correlated.
        # With correlation r of any two folds the variance is 1 + (n_folds - 1) r times as large. On
        # 400 samples of 300 queries of NFCorpus r was .03 to .08 with 5 folds.
        factor = float(np.sqrt(1 + 1 / np.unique(self.folds).size))
        return mean._replace(standard_error=factor * mean.standard_error)

    def at(self, strengths: np.ndarray) -> Question:
        """The question with one row: the given strength for each query."""
        row = self.differences[strengths, np.arange(strengths.size)]
        return self._replace(differences=row[None])

    def without(self, queries: np.ndarray) -> Question:
        """The question without some queries, given as a mask."""
        differences = np.where(queries, np.nan, self.differences)
        return self._replace(differences=differences)

    @property
    def is_measurable(self) -> bool:
        """Whether there are enough queries and groups."""
        asked = ~np.isnan(self.differences[0])
        n_groups = np.unique(self.clusters[asked]).size
        return int(asked.sum()) >= MIN_QUERIES and n_groups >= MIN_GROUPS


Questions = Mapping[str, Question]


def measurable(questions: Questions) -> Questions:
    """The questions with enough queries; that about all queries always stays."""
    return {
        name: question
        for name, question in questions.items()
        if name == "all" or question.is_measurable
    }


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values of held-out queries, and the questions that they answer.

    Parameters
    ----------
    by_query : HeldOutValues
        Queries held out at random, of known and of new items.
    by_group : HeldOutValues
        Queries held out together with their relevant items.
    clusters, groups : ndarray of int
        Queries of ``by_query`` and of ``by_group`` that depend on each other.
    folds, group_folds : ndarray of int, optional
        The fold that holds out each query of ``by_query`` and of ``by_group``.
    """

    by_query: HeldOutValues
    by_group: HeldOutValues
    clusters: np.ndarray
    groups: np.ndarray
    folds: np.ndarray | None = None
    group_folds: np.ndarray | None = None

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Differences from the baseline for all queries, for known items and for new ones."""
        everything = self.by_query.values - self.by_query.values[0]
        known = np.where(self.by_query.known == 1, everything, np.nan)
        new = self.by_group.values - self.by_group.values[0]
        return {
            "all": Question(everything, self.clusters, self.folds),
            "known": Question(known, self.clusters, self.folds),
            "new": Question(new, self.groups, self.group_folds),
        }

    def values_of(self, name: str) -> HeldOutValues:
        """The held-out queries that a question is about."""
        return self.by_group if name == "new" else self.by_query


class FoldPlan(NamedTuple):
    """The folds that answer the questions, and a mask of the queries that are evaluated."""

    sample: np.ndarray
    by_query: QueryFolds
    by_group: Folds | None  # None: too few groups to hold any out
    groups: np.ndarray
    group_folds: np.ndarray


def plan_folds(task: SearchTask, n_folds: int, seed: int) -> FoldPlan:
    """Folds of queries, and folds of groups with their relevant items."""
    n = task.n_queries
    sample = np.zeros(n, dtype=bool)
    sample[np.random.default_rng(seed).permutation(n)[:MAX_QUERIES]] = True
    by_query = fold_queries(n, n_folds, seed)
    by_group = fold_groups(task.relevance, n_folds, seed)
    groups, group_folds = by_group.groups, by_group.queries
    # If no two queries share an item, folds of queries are folds of groups.
    if np.unique(group_queries(task.relevance)).size == n:
        return FoldPlan(sample, by_query, by_query, groups, by_query.queries)
    if np.unique(groups).size < MIN_GROUPS:
        return FoldPlan(sample, by_query, None, groups, group_folds)
    return FoldPlan(sample, by_query, by_group, groups, group_folds)


def cross_validate(
    path: Path,
    task: SearchTask,
    n_folds: int,
    seed: int,
    check: Check,
    show: Show,
) -> Evidence:
    """Evidence from folds of queries, and from folds of groups with their relevant items."""
    plan = plan_folds(task, n_folds, seed)

    def held_out(folds: Folds, show: Show) -> HeldOutValues:
        return held_out_values(path, task, folds, plan.sample, check, show)

    if plan.by_group is None:
        values = held_out(plan.by_query, show)
        n = task.n_queries
        new_values = HeldOutValues.empty(len(path.strengths), n, task.depth)
    elif plan.by_group is plan.by_query:
        values = new_values = held_out(plan.by_query, show)
    else:
        values = held_out(plan.by_query, lambda done: show(done / 2))
        new_values = held_out(plan.by_group, lambda done: show((1 + done) / 2))
    clusters, folds = task.distinct_queries, plan.by_query.queries
    return Evidence(values, new_values, clusters, plan.groups, folds, plan.group_folds)


def evaluate_on(
    path: Path, task: SearchTask, dev: np.ndarray, check: Check
) -> Evidence:
    """Evidence from dev queries, given as a mask, with metrics learned from all others."""
    groups = group_queries(task.relevance)
    folds = dev.astype(np.int64)

    def held_out(folds: Folds) -> HeldOutValues:
        values = held_out_values(path, task, folds, dev, check, _show_nothing)
        return values.take(dev)

    values = held_out(QueryFolds(folds))
    # Rows of which only other dev rows are relevant, such as a class that is held out, are new, and
    # rank all rows.
    alone = np.isnan(values.known)
    if alone.any():
        no_items = np.full(task.relevance.n_items, -1)
        among_all = held_out(GroupFolds(folds, no_items, groups))
        values.fill(alone, among_all.take(alone))
    is_new = values.known == 0
    new_values = values._replace(values=np.where(is_new, values.values, np.nan))
    groups, clusters = groups[dev], task.distinct_queries[dev]
    if task.relevance.has_classes:
        # Queries of a class that nothing was learned about win or lose together.
        clusters = np.where(is_new, clusters.size + groups, clusters)
    return Evidence(values, new_values, clusters, groups)


def _show_nothing(fraction: float) -> None:
    """No progress is shown."""
