"""Why the queries that gain and lose most did so, by a map that was not learned from them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..display.page.explained import explanation_lines
from ..evaluation.held_out import orientation
from ..evaluation.search_task import SearchTask
from ..metrics.embedding import EmbeddingMetric
from ..relevance.joins import row_names
from .parts import Learned
from .report import N_EXTREMES, TuneReport
from .trials import Result, Trials


@dataclass(eq=False)
class ExplainedExtremes:
    """Explains scores of held-out queries; learns one map more, when it is first called.

    Parameters
    ----------
    trials : Trials
        The data, and the queries that were judged on.
    best : Result
        The family and the strength.
    numbers : ndarray of int
        Numbers of the task's queries among those passed to `tune`.
    gains : ndarray
        Gain of each judged query.
    fields : mapping of str to int
        Fields of the vectors and their widths; empty without fields.
    n_extremes : int, default=3
        Queries to leave out of learning that gain most, and that lose most.
    """

    trials: Trials
    best: Result
    numbers: np.ndarray
    gains: np.ndarray
    fields: Mapping[str, int]
    n_extremes: int = N_EXTREMES

    def __call__(self, query: int, item: int) -> list[str]:
        """What moved the score of an item for a judged query."""
        task = self.trials.task
        place = int(self._judged[query])
        found = self._metric.explain(
            task.points[place],
            task.X[item],
            "unchanged",
            training=(self._data.X, self._data.relevance, self._data.queries),
        )
        return explanation_lines(found, ("unchanged", "tuned"))

    @cached_property
    def _judged(self) -> np.ndarray:
        """The judged queries among those of the task."""
        on_dev = self.trials.on_dev
        return np.flatnonzero(on_dev if on_dev.any() else ~on_dev)

    @cached_property
    def _data(self) -> SearchTask:
        """What the map is learned from: named, without the queries to explain."""
        task = self.trials.task
        order = np.argsort(np.nan_to_num(self.gains), kind="stable")
        extremes = np.union1d(order[: self.n_extremes], order[-self.n_extremes :])
        left_out = self.trials.on_dev.copy()
        left_out[self._judged[extremes]] = True
        relevance = task.relevance
        if relevance.query_ids is None:
            relevance = replace(relevance, query_ids=self.numbers.astype(str))
        if relevance.item_ids is None:
            relevance = replace(relevance, item_ids=row_names(relevance.n_items))
        return replace(task, relevance=relevance).without(left_out)

    @cached_property
    def _metric(self) -> EmbeddingMetric:
        data, family = self._data, self.best.family
        index = None if data.queries is None else data.index()
        training = (data.X, data.relevance, data.queries)
        with warnings.catch_warnings():
            # A learner that does not converge shows in the scores.
            warnings.simplefilter("ignore", ConvergenceWarning)
            metric = family.metric(*training, self.best.strength, index)
        if self.fields:
            metric.parameters["fields"] = dict(self.fields)
        return metric


def with_explanations(
    report: TuneReport, learned: Learned, numbers: np.ndarray
) -> TuneReport:
    """The report with explanations of its queries, if a map was learned."""
    best = learned.mapped
    if best is None or not best.strength:
        return report
    before, after = (r.values[report.measure] for r in (report.before, report.after))
    gains = orientation(report.measure) * (after - before)
    fields = learned.metric.parameters.get("fields", {})
    explain = ExplainedExtremes(learned.trials, best, numbers, gains, fields)
    return replace(report, explain=explain)
