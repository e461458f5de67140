"""Hyperparameter tuning: learn a better metric from judgments, or keep the vectors unchanged."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice
from .._engine.fields import Fields
from ..datasets import read_trec_run
from ..evaluation.cross_validation import default_n_folds
from ..evaluation.runs import MEMORY, check_fusion, check_runs
from ..evaluation.search_task import SearchTask, check_dev, check_task
from ..learners.families import families
from ..metrics.card import data_facts
from ..metrics.embedding import EmbeddingMetric, unchanged_metric
from ..relevance.inputs import row_ids
from ..search.live import LiveIndex
from .explanations import with_explanations
from .fields import (
    check_field_options,
    field_families,
    field_rows,
    joined_fields,
    with_fields,
)
from .live import (
    METHODS,
    check_live_options,
    live_search,
    live_task,
    read_vectors,
    with_names,
)
from .report import TuneReport, as_agreement
from .selection import TARGETS
from .signals import fuse_runs
from .sizes import check_components, choose_width, with_sizes
from .summary import make_report
from .trials import Deadline, Result, Trials, best_result

# What the card of the metric takes from the report.
CARD = (
    "decision",
    "measure",
    "similarity",
    "prefer",
    "judged_on",
    "questions",
    "p_value",
)
UNCHANGED = "unchanged vectors"
OF_RUNS = ("signals", "weights", "normalise")


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of `tune`: a metric, and the report of its held-out evaluation.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The learned metric if the decision is to use it, else the similarity of unchanged vectors.
    report : TuneReport
        The decision, and what it rests on.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import tune
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    >>> tune(X, y, measure="map", random_state=0).decision
    'keep'
    """

    metric: EmbeddingMetric
    report: TuneReport

    @property
    def decision(self) -> str:
        """What to do: "ship", "known only" or "keep"."""
        return self.report.decision

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the vectors and of runs, for `Ranking.fuse`."""
        return self.report.weights

    @property
    def normalise(self) -> dict[str, str]:
        """The normalisation of each of these rankings, for `Ranking.fuse`."""
        return self.report.normalise

    @property
    def improved(self) -> bool:
        """Whether to change the search: to use the learned metric, or to fuse runs, or both."""
        return self.decision != "keep"

    @property
    def is_mapped(self) -> bool:
        """Whether the metric is a learned one."""
        return bool(self.metric.card["method"] != UNCHANGED)

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def tune(
    X: Any,
    relevance: Any,
    *,
    queries: Any = None,
    item_ids: Any = None,
    query_ids: Any = None,
    similarity: str | None = None,
    measure: str = "ndcg-linear@10",
    prefer: str = "both",
    tolerance: float = 0.01,
    dev: Any = None,
    refit_on_dev: bool = False,
    runs: Mapping[str, Any] | None = None,
    normalise: str = "minmax",
    n_components: str | int | None = None,
    size_tolerance: float = 0.005,
    methods: Sequence[str] | None = None,
    n_folds: int | None = None,
    budget: float | None = None,
    random_state: Any = None,
    progress: Callable[[str, float], Any] = lambda step, fraction: None,
) -> Tuned:
    """Learn a metric by cross-validation, if it ranks better for known and for new documents.

    A path of maps with ever weaker regularisation is learned without each fold and evaluated on its
    queries. Folds of queries show the gain for documents that training queries asked for too
    (known); folds that hold out queries together with their documents show it for new ones. The
    strongest regularisation within one standard error of the best is chosen, or a stronger one
    where that harms. Choosing is repeated without each fold, and the result is tested once.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features), mapping of str to array-like, or LiveIndex
        Vectors of the corpus; several of each document by field, see `Fields`; or a vector store
        that is searched where it is and never read whole, see `rankspace.search.LiveIndex`.
    relevance : Relevance, list, mapping, dataframe or array-like of shape (n_items,)
        Judgments; the relevant rows of ``X`` for each of ``queries``; judgments by id, with
        ``item_ids`` and ``query_ids``; or class labels. A live index names its documents by its
        own ids.
    queries : array-like of shape (n_queries, n_features) or mapping, optional
        Vectors of the queries, unless they are rows of ``X``; with fields, one for all or one for
        each of them.
    item_ids, query_ids : array-like of str, optional
        Ids of the rows of ``X`` and of ``queries``, for judgments by id; by default those that
        their files or tables hold.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What your search compares vectors by. By default the cosine with separate queries, and the
        Euclidean distance otherwise.
    measure : str, default="ndcg-linear@10"
        The measure to improve; the default is what BEIR reports.
    prefer : {"both", "known", "new"}, default="both"
        "both" improves the mean over all queries and harms neither those for known nor those for
        new documents; "known" improves queries for known documents, whatever happens to others;
        "new" improves queries for new documents and does not harm the others.
    tolerance : float, default=0.01
        A loss of the measure that does not matter.
    dev : array-like of int or bool, optional
        Queries to judge on, which nothing is learned from.
    refit_on_dev : bool, default=False
        Whether the returned metric is learned from the ``dev`` queries too.
    runs : mapping of str to Ranking, path, mapping or array, optional
        Rankings by other signals, to fuse with the vectors: each a `Ranking`, a TREC run file,
        ``{query: {item: score}}``, a matrix of scores, or "memory", the past queries themselves
        (`rank_memory`). They are tried in this order. A run is used if it significantly improves
        what was there before; see ``weights`` of the result.
    normalise : {"minmax", "none", "zscore"}, default="minmax"
        What is done with the scores of each list; see `Ranking.fuse`.
    n_components : "smallest" or int, optional
        Number of dimensions to reduce mapped vectors to: "smallest" is the smallest that is shown
        to be as good as the full width. Documents have to be embedded anew then.
    size_tolerance : float, default=0.005
        A loss of the measure by smaller vectors that does not matter.
    methods : sequence of str, optional
        Families to learn: "query", "shared" or "separate" listwise maps, "diagonal", "mlr" or
        "frml". By default "query" with separate queries, a map that leaves the corpus and its
        index unchanged; "shared" by Euclidean distance. Several are tested with Holm's correction.
    n_folds : int, optional
        Number of folds; by default 5, or 3 from 600 queries on.
    budget : float, optional
        Time limit in seconds.
    random_state : int, RandomState or None, default=None
        Seed of folds and learners.
    progress : callable, optional
        Called with the step name and the fraction done.

    Returns
    -------
    Tuned
        With ``metric``, ``decision`` and ``report``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import tune
    >>> rng = np.random.default_rng(0)
    >>> X, Q = rng.normal(size=(300, 6)), rng.normal(size=(90, 6))
    >>> hidden = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    >>> near = np.argsort(-(Q * hidden) @ X.T, axis=1)[:, :3]
    >>> tuned = tune(X, near, queries=Q, similarity="dot", random_state=0)
    >>> tuned.improved
    True
    """
    start = time.perf_counter()
    _check_options(prefer, tolerance, budget)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    fields = live = None
    if isinstance(X, Fields | Mapping):
        similarity = check_field_options(similarity, methods)
        fields, by_field = joined_fields(X, queries)
        item_ids = row_ids(fields, item_ids, "item")
        query_ids = row_ids(by_field, query_ids, "query")
        X, queries = np.asarray(fields), np.asarray(by_field)
    if isinstance(X, LiveIndex):
        check_live_options(
            methods, item_ids=item_ids, n_components=n_components, runs=runs
        )
        methods = METHODS
        task, is_judged = live_task(
            X, relevance, queries, similarity, measure, query_ids, seed
        )
        live = live_search(task)
    else:
        task, is_judged = check_task(
            X, relevance, queries, similarity, measure, item_ids, query_ids
        )
    on_dev = check_dev(dev, task, is_judged)
    if n_components is not None:
        check_components(n_components, task.X.shape[1])
        check_scalar(size_tolerance, "size_tolerance", Real, min_val=0, max_val=1)
    signals = None
    if runs is not None:
        task = check_fusion(task, normalise)
        ids = row_ids(X, item_ids, "item"), row_ids(queries, query_ids, "query")
        signals = check_runs(_read_runs(runs), task, is_judged, *ids)
    todo = families(methods, task.similarity, task.measure, queries is not None, seed)
    if fields is not None:
        todo = field_families(todo, fields.widths)
    n_folds = _check_folds(n_folds, int((~on_dev).sum()))
    seconds = None
    if budget is not None:
        seconds = budget * _validation_share(n_folds, queries is not None)
    deadline = Deadline(seconds)
    trials = Trials(task, on_dev, prefer, tolerance, n_folds, seed, deadline, progress)
    with warnings.catch_warnings():
        # A learner that does not converge shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = [] if trials.nothing_to_gain else trials.run(todo)
        best = best_result(results, prefer)
        metric, method = _learn(trials, best, refit_on_dev)
        rows = []
        if fields is not None and not trials.skipped:
            rows = field_rows(trials, best, metric, fields)
        sizes = fused = None
        if n_components is not None and not trials.skipped:
            sizes = choose_width(trials, best, n_components, size_tolerance)
        if sizes is not None and not sizes.is_full:
            method += f", reduced to {sizes.n_components} dimensions"
            metric = metric.reduce(trials.training.X, sizes.n_components)
        learned = best
        if best is not None and signals:
            progress("weighing runs", 1.0)
            fused = fuse_runs(trials, best, signals, normalise)
            results = [fused.result if result is best else result for result in results]
            best = fused.result
    seconds = time.perf_counter() - start
    numbers = np.flatnonzero(is_judged)
    is_reduced = sizes is not None and not sizes.is_full
    report = make_report(
        trials, results, best, numbers, seconds, refit_on_dev, fused, is_reduced
    )
    report = with_sizes(report, sizes, size_tolerance)
    if task.relevance.teacher is not None:
        report = as_agreement(report, task.relevance.teacher)
    widths = {}
    if fields is not None:
        report = with_fields(report, rows)
        widths = dict(zip(fields.names, fields.widths, strict=True))
        metric.parameters["fields"] = widths
    if live is not None:
        report = with_names(report, live)
    else:
        report = with_explanations(report, trials, learned, numbers, widths)
    metric.card = {"method": method, **_card(report, task)}
    source = task if refit_on_dev else trials.training
    metric.keep_query_sample(source.take(source.sample).points)
    return Tuned(metric, report)


def _learn(
    trials: Trials, best: Result | None, refit_on_dev: bool
) -> tuple[EmbeddingMetric, str]:
    """The metric to return, and what it is: learned from all queries, or unchanged vectors."""
    task = trials.task
    if best is None or best.verdict.decision == "keep":
        X = task.X
        return unchanged_metric(X.shape[1], task.similarity, X.dtype), UNCHANGED
    trials.progress("learning from all queries", 1.0)
    data = task if refit_on_dev else trials.training
    index = None if data.queries is None else data.index()
    training = (data.X, data.relevance, data.queries)
    return best.family.metric(*training, best.strength, index), best.family.label


def _card(report: TuneReport, task: SearchTask) -> dict[str, Any]:
    """What the file of the metric says: what was measured, and on which data.

    Times are left out, so that equal runs write equal files.
    """
    measured = report.to_dict()
    facts = data_facts(read_vectors(task), task.relevance, task.queries)
    if task.relevance.teacher is not None:
        facts = {**facts, "teacher": task.relevance.teacher}
    of_runs = OF_RUNS if report.signals else ()
    of_sizes = ("sizes",) if report.sizes else ()
    return {**{name: measured[name] for name in (*CARD, *of_runs, *of_sizes)}, **facts}


def _read_runs(runs: Any) -> Any:
    """Runs with TREC files read."""
    if not isinstance(runs, Mapping):
        return runs
    found = {}
    for name, run in runs.items():
        is_file = isinstance(run, os.PathLike | str) and run != MEMORY
        found[name] = read_trec_run(run) if is_file else run
    return found


def _validation_share(n_folds: int, separate_queries: bool) -> float:
    """Share of the budget for cross-validation; the rest is for learning from all queries.

    The cost of learning grows with the number of queries, and with its square if they are the
    items too. A search of all queries may take a quarter more steps.
    """
    power = 1 if separate_queries else 2
    of_folds = n_folds * (1 - 1 / n_folds) ** power
    return of_folds / (of_folds + 1.25)


def _check_options(prefer: str, tolerance: Any, budget: Any) -> None:
    check_choice(prefer, "prefer", TARGETS)
    check_scalar(tolerance, "tolerance", Real, min_val=0, max_val=1)
    if budget is not None:
        check_scalar(budget, "budget (seconds)", Real, min_val=0)
        if np.isnan(budget):
            raise ValueError("budget must be a number of seconds: got NaN.")


def _check_folds(n_folds: int | None, n_queries: int) -> int:
    """The number of folds, by default one that suits the number of queries to learn from."""
    if n_folds is None:
        return default_n_folds(n_queries)
    check_scalar(n_folds, "n_folds", Integral, min_val=2)
    if n_folds > n_queries:
        raise ValueError(
            f"n_folds must be at most the number of queries to learn from, {n_queries}: got "
            f"{n_folds}."
        )
    return n_folds
