"""Hyperparameter tuning: learn a better metric from judgments, or keep the vectors unchanged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice
from ..evaluation.cross_validation import default_n_folds
from ..evaluation.search_task import SearchTask, check_dev
from ..learners.families import Family, check_methods
from ..metrics.card import data_facts
from ..metrics.embedding import EmbeddingMetric, unchanged_metric
from .fields import FieldCorpus
from .live import LiveCorpus, read_vectors
from .parts import Corpus, Learned, Part, Request
from .report import UNCHANGED, Tuned, TuneReport
from .selection import TARGETS
from .signals import Runs
from .sizes import SmallerVectors
from .summary import make_report
from .trials import Deadline, Result, Trials, best_result


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
    progress: Callable[[str, float], Any] | None = None,
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
    _check_options(prefer, tolerance, budget, methods)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    data = (X, relevance, queries, item_ids, query_ids, similarity, measure, methods)
    extras = (runs, normalise, n_components, size_tolerance)
    corpus, parts = _parts(Request(*data, *extras, seed))
    task, is_judged = corpus.task()
    on_dev = check_dev(dev, task, is_judged)
    for part in parts:
        task = part.prepare(task, is_judged)
    n_folds = _check_folds(n_folds, int((~on_dev).sum()))
    deadline = _deadline(budget, n_folds, queries is not None)
    settings = (prefer, tolerance, n_folds, seed, deadline, progress or _show_nothing)
    trials = Trials(task, on_dev, *settings)
    learned = _learn(trials, corpus.families(task), parts, refit_on_dev)
    report = make_report(learned, np.flatnonzero(is_judged), refit_on_dev)
    for part in reversed(parts):
        report = part.describe(report)
    report = replace(report, seconds=time.perf_counter() - start)
    return _tuned(learned, report, refit_on_dev)


# The kinds of corpus, of which the first that is requested is used, and what may be added.
CORPORA = (LiveCorpus, FieldCorpus, Corpus)
ADDED = (SmallerVectors, Runs)


def _parts(request: Request) -> tuple[Corpus, list[Part]]:
    """The corpus, and all parts that the arguments ask for, the corpus first."""
    kind = next(kind for kind in CORPORA if kind.is_requested(request))
    corpus = kind(request)
    added = [part(corpus.request) for part in ADDED if part.is_requested(request)]
    return corpus, [corpus, *added]


def _learn(
    trials: Trials, todo: list[Family], parts: list[Part], refit_on_dev: bool
) -> Learned:
    """Try the families, learn the metric to return, and let the parts extend it."""
    with warnings.catch_warnings():
        # A learner that does not converge shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = [] if trials.nothing_to_gain else trials.run(todo)
        best = best_result(results, trials.prefer)
        metric, method = _metric(trials, best, refit_on_dev)
        learned = Learned(trials, results, best, best, metric, method)
        for part in parts:
            learned = part.extend(learned)
    return learned


def _metric(
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


def _tuned(learned: Learned, report: TuneReport, refit_on_dev: bool) -> Tuned:
    """The metric, with what it is and a sample of queries on it, and the report."""
    trials, metric = learned.trials, learned.metric
    metric.card = {"method": learned.method, **_card(report, trials.task)}
    source = trials.task if refit_on_dev else trials.training
    metric.keep_query_sample(source.take(source.sample).points)
    return Tuned(metric, report)


def _card(report: TuneReport, task: SearchTask) -> dict[str, Any]:
    """What the file of the metric says: what was measured, and on which data.

    Times are left out, so that equal runs write equal files.
    """
    facts = data_facts(read_vectors(task), task.relevance, task.queries)
    if task.relevance.teacher is not None:
        facts = {**facts, "teacher": task.relevance.teacher}
    return {**report.to_card(), **facts}


def _deadline(budget: float | None, n_folds: int, separate_queries: bool) -> Deadline:
    """The end of cross-validation, which leaves time to learn from all queries."""
    if budget is None:
        return Deadline(None)
    return Deadline(budget * _validation_share(n_folds, separate_queries))


def _validation_share(n_folds: int, separate_queries: bool) -> float:
    """Share of the budget for cross-validation; the rest is for learning from all queries.

    The cost of learning grows with the number of queries, and with its square if they are the
    items too. A search of all queries may take a quarter more steps.
    """
    power = 1 if separate_queries else 2
    of_folds = n_folds * (1 - 1 / n_folds) ** power
    return of_folds / (of_folds + 1.25)


def _check_options(prefer: str, tolerance: Any, budget: Any, methods: Any) -> None:
    check_choice(prefer, "prefer", TARGETS)
    check_scalar(tolerance, "tolerance", Real, min_val=0, max_val=1)
    check_methods(methods)
    if budget is None:
        return
    if not isinstance(budget, Real):
        raise TypeError(
            f"budget must be a number of seconds, such as 60: got {budget!r}."
        )
    if not float(budget) >= 0:
        raise ValueError(
            f"budget must be a number of seconds, 0 or more: got {budget!r}."
        )


def _show_nothing(step: str, fraction: float) -> None:
    """No progress is shown."""


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
