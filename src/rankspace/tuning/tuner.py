"""From vectors and judgments to a better metric, or to the honest answer that there is none."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
from .candidates import METHODS, Candidate, candidates, is_large, suited
from .choice import ALPHA, Judged, Selection, judge, sign_of
from .report import TuneReport
from .trials import AS_IS, CrossValidation, learned, names_of, seen_queries

MANY_QUERIES, MANY_OF_LARGE = 600, 300  # whose third may tell a gain from chance
# Shares of the level that go to a first look at one fold, and to one at the listwise maps; the last
# look has the rest, so that all together sell noise no more often than one would. In looks at maps
# most goes to the preferred one by itself.
AT_ONE_FOLD, AT_MAPS, ALONE = 0.05, 0.85, 0.9


@dataclass(frozen=True, eq=False)
class Tuned:
    """A metric, and the report that speaks for it; what `tune` gives.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
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
    methods: Sequence[str] | None = None,
    exhaustive: bool = False,
    generalise: bool = False,
    budget: float | None = None,
    random_state: Any = None,
    progress: Callable[[str, float], Any] = lambda step, share: None,
) -> Tuned:
    """Learn a metric that ranks better than the vectors as they are, if there is one.

    Queries are dealt to folds; every candidate is learned without a fold and judged on it. The
    choice has the best mean of those that are not worse for queries whose relevant items training
    judgments never named, nor for the others. Of listwise maps that of the queries only is
    preferred, which leaves an index as it is, unless others are ahead by two standard errors; that
    of both sides, if vectors differ in length. What choosing is worth is told by choosing for each
    fold on the others; if that shows harm after all, the next best is taken. The preferred map is
    tested by itself too, and taken if it is better beyond chance and choosing is not; if it is, but
    harms a group, a more careful one is tried. If nothing passes, the answer is the identity. The
    choice is then fitted on all queries.

    Listwise maps come first, of many queries on one fold, with weaker pulls to the identity as long
    as the weakest is clearly ahead; other folds and methods follow only if nothing was better
    beyond chance. The looks share the level of 2.5 %, one-sided, at which noise may be sold.

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
        Folds of the queries, all of which are judged. By default 5, or 3 if the data are large or
        there are 600 queries or more. With so many, or 300 of large data, the first fold may be
        enough.
    methods : sequence of {"listwise", "diagonal", "frml", "mlr"}, optional
        What may be tried beside the vectors as they are. By default what suits the size: listwise
        maps only of large data, and a diagonal too of more than 128 features, for which steps of
        FRML and MLR take long.
    exhaustive : bool, default=False
        Try all that may be tried on all folds, though less would do; a more careful map still only
        where the preferred one does harm.
    generalise : bool, default=False
        Choose by the queries with new relevant items only, and try a more careful map from the
        start.
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
    clock = _Clock(budget)
    for method in methods or ():
        check_choice(method, "methods", METHODS)
    X, relevance, queries, kept = _checked(X, relevance, queries)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    large = is_large(relevance.n_queries, *X.shape)
    many = kept.size >= (MANY_OF_LARGE if large else MANY_QUERIES)
    usual = 3 if large or many else 5
    folds = fold_queries(kept, dev, usual if n_folds is None else n_folds, seed)
    splits = [hold_out(X, relevance, queries, train, test) for train, test in folds]
    at_once = 2 if large else None
    trial = CrossValidation(
        splits, [test for _, test in folds], relevance, measure, at_once
    )
    gain = parse_measure(measure)[0].gain
    sizes = relevance.n_queries, len(X), X.shape[1]
    every = candidates(*sizes, seed, gain, has_equal_norms(X))
    wanted = suited(*sizes) if methods is None else methods
    todo = [candidate for candidate in every if candidate.method in wanted]
    if generalise:  # which is what a careful one is for
        todo[1:1] = [candidate.careful() for candidate in todo[:1] if candidate.careful]
    early = many and n_folds is None and dev is None
    search = _Search(trial, generalise, seed, clock, progress)
    with warnings.catch_warnings():
        # A learner cut short shows in the scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        report = search.look(_looks(todo, len(folds), early, exhaustive))
        metric: EmbeddingMetric = LinearMetric.identity(X.shape[1])
        if report.chosen != AS_IS:
            progress("fitting the choice on all queries", 1.0)
            model = search.named[report.chosen].build()
            metric = learned(
                model, *with_hard_negatives(X, relevance, queries), queries
            )
    return Tuned(metric, replace(report, seconds=clock.gone, numbers=kept))


# ---------------------------------------------------------------------- looking


class _Clock:
    """How much time is gone, and whether there is some left."""

    def __init__(self, budget: float | None) -> None:
        self.begin, self.budget = time.perf_counter(), budget

    @property
    def gone(self) -> float:
        return time.perf_counter() - self.begin

    def has(self, seconds: float) -> bool:
        return self.budget is None or self.gone + seconds <= self.budget


class _Look(NamedTuple):
    """Candidates to try, the folds to judge them on, and the chance of error it may spend.

    ``alone`` is the share of that for what is preferred by itself.
    """

    candidates: Sequence[Candidate]
    folds: range
    level: float
    alone: float = 0.0


def _looks(
    todo: Sequence[Candidate], n_folds: int, early: bool, exhaustive: bool
) -> list[_Look]:
    """What to look at in turn, until something is better beyond chance."""
    maps = [candidate for candidate in todo if candidate.method == "listwise"]
    others = [candidate for candidate in todo if candidate.method != "listwise"]
    if exhaustive:
        return [_Look(todo, range(n_folds), ALPHA, ALONE if maps else 0.0)]
    looks = []
    if maps and early:
        looks.append(_Look(maps, range(1), AT_ONE_FOLD * ALPHA, ALONE))
    if maps:
        looks.append(_Look(maps, range(n_folds), AT_MAPS * ALPHA, ALONE))
    if others or not maps:
        looks.append(_Look(others, range(n_folds), 0.0))
    rest = ALPHA - sum(look.level for look in looks[:-1])
    return [*looks[:-1], looks[-1]._replace(level=rest)]


@dataclass
class _Search:
    """Looks at more and more, while there is time, until something is better beyond chance."""

    trial: CrossValidation
    generalise: bool
    seed: int
    clock: _Clock
    progress: Callable[[str, float], Any]
    built: dict[str, Candidate] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    leader: str = ""  # of the look before, which goes first if time is short

    def __post_init__(self) -> None:
        trial = self.trial
        self.seen = seen_queries(trial.splits, trial.tests, trial.relevance.n_queries)

    def look(self, looks: Sequence[_Look]) -> TuneReport:
        """The report of the first look that finds something, or of the last there is time for."""
        spent = 0.0
        for number, look in enumerate(looks):
            self._try(look, number / len(looks), (number + 1) / len(looks))
            later = looks[number + 1 :]
            if (
                number and len(self.trial.names(look.folds)) == 1
            ):  # time for nothing but the start
                look = looks[number - 1]
                spent, later = spent - look.level, ()
            ends = not later or not self._has_time(later[0].folds)
            if ends:
                look = look._replace(level=ALPHA - spent)
            report, harm = self._judge(look)
            if harm and self._more_careful(look, (number + 1) / len(looks)):
                report, _ = self._judge(look)
            if report.chosen != AS_IS:
                break
            if ends:
                self.skipped += [c.name for other in later for c in other.candidates]
                break
            spent += look.level
            self.leader = self._choice(look.folds).of_all()
        done = {tried.name for tried in report.tried}
        return replace(
            report, skipped=[n for n in dict.fromkeys(self.skipped) if n not in done]
        )

    def _try(self, look: _Look, start: float, end: float) -> None:
        """All candidates of a look and those before, then weaker pulls while they clearly help."""
        todo = list(
            {c.name: c for c in (*self.built.values(), *look.candidates)}.values()
        )
        todo.sort(key=lambda candidate: self.leader not in names_of(candidate))
        list(self.trial.run([None], look.folds))
        at_once = max(1, len(todo) if self.clock.budget is None else 1)
        for first in range(0, len(todo), at_once):
            shares = [
                start + (end - start) * n / len(todo) for n in (first, first + at_once)
            ]
            if not self._run(todo[first : first + at_once], look.folds, *shares):
                self.skipped += [c.name for c in todo[first:]]
                return
        while weaker := self._weaker(look.folds):
            if not self._run([weaker], look.folds, end, end):
                self.skipped.append(weaker.name)
                return

    def _run(
        self, some: Sequence[Candidate], folds: Sequence[int], start: float, end: float
    ) -> bool:
        """Whether there was time for them."""
        if not self._has_time(folds):
            return False
        names = [candidate.name for candidate in some]
        self.progress(names[0], start)
        for done, name in enumerate(self.trial.run(some, folds), start=1):
            following = names[names.index(name) + 1 :] or names[-1:]
            self.progress(following[0], start + (end - start) * done / (len(names) + 1))
        self.built.update((candidate.name, candidate) for candidate in some)
        return True

    @property
    def named(self) -> dict[str, Candidate]:
        """All candidates that were tried, and those that came along."""
        every = [
            c for whole in self.built.values() for c in (whole, *whole.along.values())
        ]
        return {candidate.name: candidate for candidate in every}

    def _has_time(self, folds: Sequence[int]) -> bool:
        return self.clock.budget is None or self.clock.has(
            1.5 * self.trial.longest(folds)
        )

    def _weaker(self, folds: Sequence[int]) -> Candidate | None:
        choice = self._choice(folds)
        chosen = self.named.get(choice.of_all()) if choice.is_clear() else None
        weaker = None if chosen is None or chosen.weaker is None else chosen.weaker()
        return None if weaker is None or weaker.name in self.built else weaker

    def _choice(self, folds: Sequence[int]) -> Selection:
        sign, weights = sign_of(self.trial.measure), self.trial.relevance.weights
        preferred = next((candidate.preferred for candidate in self.built.values()), "")
        return Selection(
            self.trial.tried(folds),
            self.seen,
            sign,
            self.generalise,
            weights,
            preferred,
        )

    def _judge(self, look: _Look) -> Judged:
        singles = self._singles(look)
        alone = look.alone if singles else 0.0
        return judge(
            self._choice(look.folds),
            self._parts(look),
            self.trial.relevance,
            self.trial.measure,
            level=(1 - alone) * look.level,
            alone=alone * look.level,
            singles=singles,
        )

    def _singles(self, look: _Look) -> list[str]:
        """What is tested by itself: only what was to be preferred whatever the data say.

        And a more careful one, if that was wanted.
        """
        names = self.trial.names(look.folds)
        first = look.candidates[0] if look.alone and look.candidates else None
        if first is None or names[1:2] != [first.name]:
            return []
        careful = [] if first.careful is None else [first.careful().preferred]
        return [first.preferred, *(name for name in careful if name in names)]

    def _more_careful(self, look: _Look, share: float) -> bool:
        """Try a more careful candidate, if there is one and time for it."""
        build = look.candidates[0].careful
        careful = None if build is None else build()
        if careful is None or careful.name in self.built:
            return False
        done = self._run([careful], look.folds, share, share)
        self.skipped += [] if done else [careful.name]
        return done

    def _parts(self, look: _Look) -> list[np.ndarray]:
        """The folds, or the halves of a single one."""
        parts = [self.trial.tests[fold] for fold in look.folds]
        if len(parts) > 1:
            return parts
        order = np.random.default_rng(self.seed).permutation(parts[0])
        return [order[::2], order[1::2]]


# ---------------------------------------------------------------------- checks


def _checked(
    X: Any, relevance: Any, queries: Any
) -> tuple[Any, Relevance, Any, np.ndarray]:
    """Finite vectors of one width, and only the queries that can be judged, with their numbers."""
    plain = Euclidean()
    X = plain._check_items(X, relevance, reset=True)
    relevance = plain._as_relevance(X, relevance, None)
    queries = plain._check_queries(relevance, queries)
    for name, vectors in (("X", X), ("queries", queries)):
        _check_lengths(name, vectors)
    kept = np.flatnonzero(relevance.trainable)
    if kept.size < FEWEST_QUERIES:
        raise ValueError(
            f"tune needs at least {FEWEST_QUERIES} queries with something relevant and something "
            f"irrelevant to tell a gain from chance: got {kept.size}. Judge more queries."
        )
    return (
        X,
        relevance.take_queries(kept),
        None if queries is None else queries[kept],
        kept,
    )


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
