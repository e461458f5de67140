"""Hyperparameter tuning: learn a better metric from judgments, or keep the vectors unchanged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._engine.checks import check_choice
from ..evaluation.measures import parse_measure
from ..learners.baselines import Euclidean
from ..learners.hard_negatives import has_equal_norms, with_hard_negatives
from ..metrics.embedding import EmbeddingMetric, LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import FEWEST_QUERIES, fold_queries, hold_out
from .candidates import (
    BASELINE,
    METHODS,
    Candidate,
    candidates,
    is_large,
    suitable_methods,
)
from .cross_validation import CrossValidation, fit_metric
from .report import TuneReport
from .stages import Budget, StagedSearch, plan_stages

# With so many queries, a third of them may already show a significant gain.
MANY_QUERIES = 600
MANY_QUERIES_LARGE_DATA = 300


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of `tune`: a metric, and the report of its held-out evaluation.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The chosen candidate, refitted on all queries, or the identity.
    report : TuneReport
        What was tried, and what the chosen candidate gains on held-out queries.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import tune
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    >>> tuned = tune(X, y, measure="map", budget=0, random_state=0)
    >>> tuned.report.chosen
    'unchanged'
    """

    metric: EmbeddingMetric
    report: TuneReport

    def __str__(self) -> str:
        return str(self.report)


def tune(
    X: Any,
    relevance: Relevance | Any,
    *,
    queries: Any = None,
    measure: str = "ndcg-linear@10",
    dev: Any = None,
    n_folds: int | None = None,
    methods: Sequence[str] | None = None,
    exhaustive: bool = False,
    generalise: bool = False,
    budget: float | None = None,
    random_state: Any = None,
    progress: Callable[[str, float], Any] = lambda step, fraction: None,
) -> Tuned:
    """Select and fit a metric by cross-validation, if one ranks significantly better.

    Candidates are cross-validated over the queries. The candidate with the best mean is selected,
    unless it is significantly worse for queries with seen relevant items (relevant to a training
    query too) or for those with only new ones. A listwise map of the queries only is preferred,
    because the corpus and its index stay unchanged: other listwise maps must be two standard errors
    better. For vectors of different norms a map shared by both sides is preferred instead.

    Each fold is evaluated with the candidate that the other folds select. If that shows harm to a
    group of queries, the next best candidate is tested. The preferred map is also tested alone; if
    it is better overall but harms a group, a listwise map with a low ``unjudged_weight`` is tried.
    If nothing is significantly better, the identity is returned; otherwise the selected candidate
    is refitted on all queries.

    Listwise maps are tried first, with many queries on one fold only, and with smaller ``reg`` as
    long as the smallest is clearly the best. All folds and other methods follow if there is no
    significant improvement yet. All tests together have a false-positive rate of at most 2.5 %.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        Vectors of the corpus.
    relevance : Relevance or array-like of shape (n_items,)
        Judgments, or class labels.
    queries : array-like of shape (n_queries, n_features), optional
        Vectors of the queries, unless they are rows of ``X``.
    measure : str, default="ndcg-linear@10"
        The measure to improve; the default is what BEIR reports.
    dev : array-like of int, optional
        Numbers of the queries to evaluate, in place of folds; the others are used for training.
    n_folds : int, optional
        Number of folds, all of which are evaluated. By default 5, or 3 if the data are large or
        there are at least 600 queries. With so many queries, or 300 if the data are large, the
        first fold may be enough.
    methods : sequence of {"listwise", "diagonal", "frml", "mlr"}, optional
        Methods to try. By default those that are fast enough: only listwise maps for large data,
        and listwise maps and a diagonal for more than 128 features.
    exhaustive : bool, default=False
        Whether to try all candidates on all folds, even after a significant improvement.
    generalise : bool, default=False
        Whether to select by queries with only new relevant items, and to try a listwise map with a
        low ``unjudged_weight`` from the start.
    budget : float, optional
        Time limit in seconds; the report names the candidates that were skipped.
    random_state : int, RandomState or None, default=None
        Seed of folds and learners.
    progress : callable, optional
        Called with the step name and the fraction done.

    Returns
    -------
    Tuned
        With ``metric`` and ``report``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Relevance, tune
    >>> rng = np.random.default_rng(0)
    >>> X, Q = rng.normal(size=(300, 6)), rng.normal(size=(60, 6))
    >>> hidden = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    >>> near = np.argsort((((Q[:, None] - X) * hidden) ** 2).sum(axis=2), axis=1)[:, :5]
    >>> tuned = tune(X, Relevance.from_lists(near, n_items=300), queries=Q, random_state=0)
    >>> tuned.report.comparisons["all"].difference["ndcg-linear@10"] > 0.2
    True
    """
    time_budget = Budget(budget)
    for method in methods or ():
        check_choice(method, "methods", METHODS)
    data = _check_data(X, relevance, queries)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    todo = _candidates_for(data, measure, methods, generalise, seed)
    first_fold = data.has_many_queries and n_folds is None and dev is None
    if n_folds is None:
        n_folds = data.default_n_folds
    folds = fold_queries(data.query_numbers, dev, n_folds, seed)
    stages = plan_stages(todo, len(folds), first_fold, exhaustive)
    search = StagedSearch(
        _cross_validation(data, folds, measure), generalise, seed, time_budget, progress
    )
    with warnings.catch_warnings():
        # A learner that does not converge shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        report = search.run(stages)
        metric: EmbeddingMetric = LinearMetric.identity(data.X.shape[1])
        if report.chosen != BASELINE:
            progress("refitting on all queries", 1.0)
            found = {trial.name: trial.candidate for trial in report.trials}
            estimator = found[report.chosen].build()
            training_data = with_hard_negatives(data.X, data.relevance, data.queries)
            metric = fit_metric(estimator, *training_data, data.queries)
    seconds = time_budget.elapsed
    report = replace(report, seconds=seconds, query_numbers=data.query_numbers)
    return Tuned(metric, report)


class _TuningData(NamedTuple):
    """Checked vectors and judgments of the queries that can be evaluated."""

    X: Any
    relevance: Relevance
    queries: Any
    query_numbers: np.ndarray  # among all queries that were passed

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.relevance.n_queries, *self.X.shape

    @property
    def is_large(self) -> bool:
        return is_large(*self.sizes)

    @property
    def has_many_queries(self) -> bool:
        many = MANY_QUERIES_LARGE_DATA if self.is_large else MANY_QUERIES
        return self.relevance.n_queries >= many

    @property
    def default_n_folds(self) -> int:
        return 3 if self.is_large or self.has_many_queries else 5


def _candidates_for(
    data: _TuningData,
    measure: str,
    methods: Sequence[str] | None,
    generalise: bool,
    seed: int,
) -> list[Candidate]:
    gain = parse_measure(measure)[0].gain
    every = candidates(*data.sizes, seed, gain, has_equal_norms(data.X))
    if methods is None:
        methods = suitable_methods(*data.sizes)
    todo = [candidate for candidate in every if candidate.method in methods]
    if generalise and todo and todo[0].fallback is not None:
        todo.insert(1, todo[0].fallback)
    return todo


def _cross_validation(
    data: _TuningData, folds: Sequence[tuple[np.ndarray, np.ndarray]], measure: str
) -> CrossValidation:
    splits = []
    tests = []
    for train, test in folds:
        splits.append(hold_out(data.X, data.relevance, data.queries, train, test))
        tests.append(test)
    max_in_flight = 2 if data.is_large else None
    return CrossValidation(splits, tests, data.relevance, measure, max_in_flight)


def _check_data(X: Any, relevance: Any, queries: Any) -> _TuningData:
    """Check vectors and judgments, and keep the queries that can be evaluated."""
    checker = Euclidean()
    X = checker._check_items(X, relevance, reset=True)
    relevance = checker._as_relevance(X, relevance, None)
    queries = checker._check_queries(relevance, queries)
    _check_no_zeros("X", X)
    _check_no_zeros("queries", queries)
    numbers = np.flatnonzero(relevance.trainable)
    if numbers.size < FEWEST_QUERIES:
        raise ValueError(
            f"tune needs at least {FEWEST_QUERIES} queries with a relevant and an irrelevant item "
            f"to test for significance: got {numbers.size}. Judge more queries."
        )
    if queries is not None:
        queries = queries[numbers]
    return _TuningData(X, relevance.take_queries(numbers), queries, numbers)


def _check_no_zeros(name: str, vectors: Any) -> None:
    """Reject zero vectors among unit-length vectors, which a failed embedding leaves behind."""
    if vectors is None or hasattr(vectors, "tocsr"):
        return
    squares = np.einsum("ij,ij->i", vectors, vectors)
    zeros = np.flatnonzero(squares == 0)
    if zeros.size and np.allclose(squares[squares > 0], 1, atol=0.02):
        raise ValueError(
            f"{name} must not contain zero vectors among unit-length vectors: got {zeros.size}, "
            f"the first in row {zeros[0]}. Embed them again, or leave them out."
        )
