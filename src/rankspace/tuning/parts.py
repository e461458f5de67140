"""Parts of `tune`: the kind of corpus, and extensions that an argument adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.search_task import SearchTask, check_task
from ..learners.families import Family, families
from ..metrics.embedding import EmbeddingMetric
from .report import TuneReport
from .trials import Result, Trials


@dataclass(frozen=True, eq=False)
class Request:
    """Arguments of `tune` about its data and its extensions, as they were passed."""

    X: Any
    relevance: Any
    queries: Any
    item_ids: Any
    query_ids: Any
    similarity: str | None
    measure: str
    methods: Sequence[str] | None
    runs: Mapping[str, Any] | None
    normalise: str
    n_components: str | int | None
    size_tolerance: float
    seed: int


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned, and what the report is about.

    Parameters
    ----------
    trials : Trials
        The task, and what was skipped for lack of time.
    results : list of Result
        The results of all families.
    best : Result or None
        The result to act on; None if nothing was learned.
    mapped : Result or None
        The same without what parts add to the map.
    metric : EmbeddingMetric
        The metric to return.
    method : str
        What the metric is.
    is_reduced : bool
        Whether it maps to fewer dimensions.
    """

    trials: Trials
    results: list[Result]
    best: Result | None
    mapped: Result | None
    metric: EmbeddingMetric
    method: str
    is_reduced: bool = False


class Part:
    """Something that an argument adds to `tune`: hooks that by default change nothing.

    `tune` calls ``prepare`` before trials, ``extend`` once a metric is learned, in the order of
    the parts, and ``describe`` on its report, in reverse order.
    """

    def __init__(self, request: Request) -> None:
        self.request = request

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Whether the arguments ask for this part."""
        raise NotImplementedError

    def prepare(self, task: SearchTask, is_judged: np.ndarray) -> SearchTask:
        """Check the arguments of this part; the task to learn."""
        return task

    def extend(self, learned: Learned) -> Learned:
        """What was learned, with what this part adds."""
        return learned

    def describe(self, report: TuneReport) -> TuneReport:
        """The report, with what this part adds."""
        return report


class Corpus(Part):
    """Documents: a matrix of vectors, in memory or in a file."""

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Any other kind of corpus comes first."""
        return True

    def task(self) -> tuple[SearchTask, np.ndarray]:
        """The task of the queries that can be evaluated, and a mask of them among all passed."""
        request = self.request
        return check_task(
            request.X,
            request.relevance,
            request.queries,
            request.similarity,
            request.measure,
            request.item_ids,
            request.query_ids,
        )

    def families(self, task: SearchTask) -> list[Family]:
        """The families of maps to try."""
        request = self.request
        has_queries = request.queries is not None
        return families(
            request.methods, task.similarity, task.measure, has_queries, request.seed
        )
