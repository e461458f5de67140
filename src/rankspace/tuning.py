"""From vectors and judgments to a better metric, or to the honest answer that there is none."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.special import stdtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ._backends import current
from ._base import BaseRanker
from ._candidates import METHODS, Candidate, candidates, is_large
from ._choices import check_choice
from ._held_out import Split, hold_out
from .baselines import Euclidean
from .measures import evaluate, parse_measure
from .metric import EmbeddingMetric, LinearMetric
from .ranking import Ranking
from .relevance import Relevance
from .results import Report
from .search import Index
from .tune_report import Tried, TuneReport

FEWEST_QUERIES = 10
MANY_QUERIES = 300  # whose third tells a gain from chance
SIGNIFICANT = 0.05  # chance of a gain, or of harm to a group, in the end
DOUBTFUL = 0.2  # chance of harm to a group from which a candidate is passed over
AS_IS = "as they are"
LISTED = 10  # items of each query that the report keeps


@dataclass(frozen=True, eq=False)
class Tuned:
    """A metric, and the report that speaks for it; what `tune` gives.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or TwoMapMetric
        The choice fitted on all queries, or the identity.
    report : TuneReport
        What was tried, and what the choice is worth on held-out queries.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import tune
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    >>> tuned = tune(X, y, measure="map", budget=0, random_state=0)
    >>> tuned.report.chosen
    'as they are'
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
    methods: Sequence[str] = METHODS,
    generalise: bool = False,
    budget: float | None = None,
    random_state: Any = None,
    progress: Callable[[str, float], Any] = lambda step, share: None,
) -> Tuned:
    """Learn a metric that ranks better than the vectors as they are, if there is one.

    Queries are dealt to folds; every candidate is learned without a fold and judged on it. The
    choice is the first candidate, or the one of the best mean if that is ahead by more than a
    standard error; those are passed over that seem worse for queries whose relevant items training
    judgments never named, or for the others. What it is worth is told by choosing for each fold on
    the others. Unless that is better beyond chance, the answer is the identity. The choice is then
    fitted on all queries.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        Vectors of the corpus.
    relevance : Relevance or array-like of shape (n_items,)
        Judgments, or class labels.
    queries : array-like of shape (n_queries, n_features), optional
        Vectors of the queries, unless they are rows of ``X``.
    measure : str, default="ndcg-linear@10"
        What to choose by; the default is what BEIR reports.
    dev : array-like of int, optional
        Numbers of the queries to judge by, in place of folds; the others are learned from.
    n_folds : int, optional
        Folds of the queries; 5 by default. Of data so large that a fit takes long 3, or with many
        queries only one part, a third, that is held out once as ``dev`` would be.
    methods : sequence of str, default=("listwise", "diagonal", "frml", "mlr")
        What to try beside the vectors as they are.
    generalise : bool, default=False
        Choose by the queries with new relevant items only.
    budget : float, optional
        Seconds; candidates that would not fit are left out, and the report says which.
    random_state : int, RandomState or None, default=None
        Seed of folds and learners.
    progress : callable, optional
        Told the step and the share that is done.

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
    begin = time.perf_counter()
    for method in methods:
        check_choice(method, "methods", METHODS)
    X, relevance, queries, kept = _checked(X, relevance, queries)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    _, depth = parse_measure(measure)
    large = n_folds is None and is_large(relevance.n_queries, *X.shape)
    if large and dev is None and kept.size >= MANY_QUERIES:
        dev = np.random.default_rng(seed).permutation(kept)[: kept.size // 3]
    folds = _folds(kept, dev, n_folds or (3 if large else 5), seed)
    splits = [hold_out(X, relevance, queries, train, test) for train, test in folds]
    trial = _Trial(splits, [test for _, test in folds], relevance, measure, depth)
    before = trial.run(None)
    tried, skipped = [before], []
    every = candidates(relevance.n_queries, len(X), X.shape[1], seed)
    todo = [candidate for candidate in every if candidate.method in methods]
    for number, candidate in enumerate(todo):
        longest = max(t.seconds for t in tried)
        if budget is not None and time.perf_counter() - begin + 1.5 * longest > budget:
            skipped = [c.name for c in todo[number:]]
            break
        progress(candidate.name, number / len(todo))
        tried.append(trial.run(candidate))
    sign = 1.0 if parse_measure(measure)[0].larger_is_better else -1.0
    choice = _Choice(
        tried, seen_queries(splits, trial.tests, relevance.n_queries), sign, generalise
    )
    report = _judge(choice, trial, dev is not None, seed)
    metric: EmbeddingMetric = LinearMetric.identity(X.shape[1])
    if report.chosen != AS_IS:
        progress("fitting the choice on all queries", 1.0)
        chosen = next(c for c in todo if c.name == report.chosen)
        metric = _fit(chosen.build(), X, relevance, queries)
    seconds = time.perf_counter() - begin
    return Tuned(metric, replace(report, skipped=skipped, seconds=seconds, numbers=kept))


# ---------------------------------------------------------------------- trying


class _Trial:
    """Learns candidates on the training part of each split, and judges its held-out queries."""

    def __init__(
        self, splits: Sequence[Split], tests: Sequence[np.ndarray], relevance: Relevance,
        measure: str, depth: int,
    ) -> None:  # fmt: skip
        self.splits, self.tests, self.relevance = splits, tests, relevance
        self.measure = measure
        self._step = _FoldStep(dict(enumerate(splits)), measure, depth or None)

    def run(self, candidate: Candidate | None) -> Tried:
        """A candidate, or the vectors as they are, on every split."""
        begin, values = time.perf_counter(), np.full(self.relevance.n_queries, np.nan)
        lists = [(np.zeros(0, np.int64), np.zeros(0))] * values.size
        model = None if candidate is None else candidate.build()
        for number, (found, ranking) in enumerate(self._folds(model)):
            test, rows = self.tests[number], self.splits[number].rows
            values[test] = found
            for query, (items, distances) in zip(test, ranking, strict=True):
                lists[query] = (items if rows is None else rows[items], distances)
        name = AS_IS if candidate is None else candidate.name
        top = Ranking.from_pairs(lists, self.relevance.n_items)
        return Tried(name, values, time.perf_counter() - begin, top)

    def _folds(self, model: BaseRanker | None) -> Iterator[tuple[np.ndarray, Ranking]]:
        """What each fold gives, one after the other here, at once on a cluster."""
        numbers, backend = range(len(self.splits)), current()
        if backend.remote:
            return backend.each(self._step, numbers, model)
        return (self._step.local_step(number, model) for number in numbers)


class _FoldStep:
    """Learns on the training part of a split, and judges its held-out queries."""

    def __init__(self, splits: dict[int, Split], measure: str, depth: int | None) -> None:
        self.splits, self.measure, self.depth = splits, measure, depth

    def part(self, numbers: Sequence[int]) -> _FoldStep:
        """The same for some of the splits."""
        return _FoldStep({n: self.splits[n] for n in numbers}, self.measure, self.depth)

    def local_step(self, number: int, model: BaseRanker | None) -> tuple[np.ndarray, Ranking]:
        """Scores of the held-out queries, and the top of their lists."""
        split, index = self.splits[number], None
        if model is not None:
            metric = _fit(clone(model), split.X, split.relevance, split.queries)
            index = Index(split.X, metric)
        index = Index(split.X) if index is None else index
        k = None if self.depth is None else min(max(self.depth, LISTED), len(split.X))
        ranking = index.rank(split.points, k)
        values = evaluate(ranking, split.judged, self.measure).values[self.measure]
        return values, ranking.top(LISTED)


def _fit(model: BaseRanker, X: Any, relevance: Relevance, queries: Any) -> EmbeddingMetric:
    with warnings.catch_warnings():
        # A search cut short shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, relevance, queries=queries)
    return cast(EmbeddingMetric, model.metric_)


def seen_queries(
    splits: Sequence[Split], tests: Sequence[np.ndarray], n_queries: int
) -> np.ndarray:
    """Held-out queries with a relevant item that the training judgments of their split named."""
    seen = np.zeros(n_queries, dtype=bool)
    for split, test in zip(splits, tests, strict=True):
        taught = split.relevance
        named = np.zeros(taught.n_items, dtype=bool)
        named[taught.items[taught.grades >= taught.relevant_from]] = True
        seen[test] = [named[split.judged.relevant(q)].any() for q in range(len(test))]
    return seen


# ---------------------------------------------------------------------- choosing


@dataclass
class _Choice:
    """Picks a candidate by some of the queries."""

    tried: Sequence[Tried]
    seen: np.ndarray
    sign: float
    generalise: bool

    def pick(self, who: np.ndarray) -> int:
        """The best mean of those that may harm no group, unless the first is about as good.

        Differences below a standard error are chance, and the first tried is what suits most data.
        0 stands for the vectors as they are.
        """
        raw = self.tried[0].values
        counted = who & ~np.isnan(raw)
        decisive = counted & ~self.seen if self.generalise else counted
        gains = [self.sign * (t.values - raw) for t in self.tried]
        groups = (counted & self.seen, counted & ~self.seen)
        fit = [
            number
            for number, gain in enumerate(gains)
            if decisive.any() and np.mean(gain[decisive]) > 0
            and not any(_may_harm(gain[group]) for group in groups)
        ]  # fmt: skip
        if not fit:
            return 0
        best = max(fit, key=lambda number: np.mean(gains[number][decisive]))
        ahead = (gains[best] - gains[fit[0]])[decisive]
        return best if np.mean(ahead) > np.std(ahead) / np.sqrt(ahead.size) else fit[0]


def _may_harm(gains: np.ndarray) -> bool:
    """Whether the mean is below zero, by more than small groups show by chance alone."""
    if gains.size < 2 or np.mean(gains) >= 0:
        return False
    error = np.std(gains, ddof=1) / np.sqrt(gains.size)
    return bool(error == 0 or stdtr(gains.size - 1, np.mean(gains) / error) < DOUBTFUL)


def _judge(choice: _Choice, trial: _Trial, has_dev: bool, seed: int) -> TuneReport:
    """What choosing is worth: each part of the held-out queries by the choice of the others."""
    relevance, measure, parts = trial.relevance, trial.measure, list(trial.tests)
    if has_dev:
        order = np.random.default_rng(seed).permutation(trial.tests[0])
        parts = [order[::2], order[1::2]]
    everyone = np.zeros(relevance.n_queries, dtype=bool)
    everyone[np.concatenate(parts)] = True
    after, lists = np.full(relevance.n_queries, np.nan), list(choice.tried[0].lists)
    for part in parts:
        others = everyone.copy()
        others[part] = False
        picked = choice.tried[choice.pick(others)]
        after[part] = picked.values[part]
        for query in part:
            lists[query] = picked.lists[query]
    smaller = frozenset({measure}) if choice.sign < 0 else frozenset()
    before_report, after_report = (
        Report({measure: values}, smaller, relevance.query_ids, relevance.weights)
        for values in (choice.tried[0].values, after)
    )
    number = choice.pick(everyone)
    rankings = choice.tried[0].lists, Ranking.from_pairs(lists, relevance.n_items)
    draft = TuneReport(
        measure, list(choice.tried), before_report, after_report, choice.seen,
        choice.tried[number].name, "", rankings, relevance,
    )  # fmt: skip
    verdict = _verdict(draft, choice.sign)
    chosen = draft.chosen if verdict.startswith("Better") else AS_IS
    return replace(draft, chosen=chosen, verdict=verdict)


def _verdict(report: TuneReport, sign: float) -> str:
    groups, name = report.comparisons, report.measure
    if report.chosen == AS_IS:
        return "Nothing tried ranks better than the vectors as they are: keep them."
    gain, chance = sign * groups["all"].difference[name], groups["all"].p_value[name]
    if gain <= 0 or chance >= SIGNIFICANT:
        return (
            f"Nothing is better beyond chance (p = {chance:.3g}): keep the vectors as they are, or "
            "judge more queries."
        )
    for group in ("seen", "new"):
        if group not in groups:
            continue
        loss, chance = -sign * groups[group].difference[name], groups[group].p_value[name]
        if loss > 0 and chance < SIGNIFICANT:
            return (
                f"It is better on the whole, but worse for queries with {group} relevant items "
                f"(p = {chance:.3g}): keep the vectors as they are."
            )
    return f"Better beyond chance: {report.chosen}, fitted on all queries."


# ---------------------------------------------------------------------- checks


def _checked(X: Any, relevance: Any, queries: Any) -> tuple[Any, Relevance, Any, np.ndarray]:
    """Finite vectors of one width, and only the queries that can be judged, with their numbers."""
    plain = Euclidean()
    X = plain._check_items(X, relevance, reset=True)
    relevance = plain._supervision(X, relevance, None)
    queries = plain._check_queries(relevance, queries)
    for name, vectors in (("X", X), ("queries", queries)):
        _check_lengths(name, vectors)
    kept = np.flatnonzero(relevance.trainable)
    if kept.size < FEWEST_QUERIES:
        raise ValueError(
            f"tune needs at least {FEWEST_QUERIES} queries with something relevant and something "
            f"irrelevant to tell a gain from chance: got {kept.size}. Judge more queries."
        )
    return X, relevance.take_queries(kept), None if queries is None else queries[kept], kept


def _check_lengths(name: str, vectors: Any) -> None:
    """Refuse zeros among vectors of unit length, which are what a failed embedding leaves."""
    if vectors is None or hasattr(vectors, "tocsr"):
        return
    squares = np.einsum("ij,ij->i", vectors, vectors)
    zeros = np.flatnonzero(squares == 0)
    if zeros.size and np.allclose(squares[squares > 0], 1, atol=0.02):
        raise ValueError(
            f"{name} must not hold zeros among vectors of unit length, which have no direction: "
            f"got {zeros.size}, the first in row {zeros[0]}. Embed them again, or leave them out."
        )


def _folds(
    kept: np.ndarray, dev: Any, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places of the queries to learn from and to judge by, for each fold."""
    places = np.arange(kept.size)
    if dev is not None:
        held_out = np.isin(kept, np.asarray(dev, dtype=int))
        if not FEWEST_QUERIES <= held_out.sum() <= kept.size - FEWEST_QUERIES:
            raise ValueError(
                f"dev must name at least {FEWEST_QUERIES} queries with judgments and leave as many "
                f"to learn from: it names {held_out.sum()} of {kept.size}."
            )
        return [(places[~held_out], places[held_out])]
    if not 2 <= n_folds <= kept.size:
        raise ValueError(f"n_folds must lie between 2 and {kept.size}: got {n_folds}.")
    order = np.random.default_rng(seed).permutation(kept.size)
    tests = [np.sort(order[start::n_folds]) for start in range(n_folds)]
    return [(np.setdiff1d(places, test), test) for test in tests]
