"""Trials of families: cross-validation, choice of a strength, and one test of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..evaluation.held_out import Judge, Score
from ..evaluation.measures import parse_measure
from ..metrics.embedding import EmbeddingMetric
from ..relevance.splits import (
    Split,
    fold_groups,
    fold_queries,
    group_queries,
    hold_out,
    share_known,
)
from .cross_validation import (
    Deadline,
    FoldValues,
    NewItemFolds,
    OutOfTime,
    QueryFolds,
    cross_validate,
    learn_until,
)
from .data import MAX_QUERIES, TuningData
from .families import Family
from .selection import (
    MIN_GROUPS,
    Question,
    Verdict,
    choose_strength,
    cross_fit,
    decide,
    holm,
    measurable,
    tested_question,
)

# From this many queries on, two thirds of them teach enough, and three folds cost less than five.
MANY_QUERIES = 600


def default_n_folds(n_queries: int) -> int:
    """Number of folds for a number of queries."""
    return 3 if n_queries >= MANY_QUERIES else 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values of held-out queries, and the questions that they answer.

    Parameters
    ----------
    by_query : FoldValues
        Queries held out at random, of known and of new items.
    by_group : FoldValues
        Queries held out together with their relevant items.
    groups : ndarray of int
        Group of each query: queries of different groups share no relevant item.
    n_folds : int
        Number of folds.
    whole_classes : bool
        Whether queries of new items are whole classes, as dev queries may be.
    distinct : ndarray of int, optional
        Number of each query; the same query, asked again, has the same one.
    """

    by_query: FoldValues
    by_group: FoldValues
    groups: np.ndarray
    n_folds: int = 1
    whole_classes: bool = False
    distinct: np.ndarray | None = None

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Differences from the baseline for all queries, for known items and for new ones."""
        everything = self.by_query.values - self.by_query.values[0]
        known = np.where(self.by_query.known == 1, everything, np.nan)
        new = self.by_group.values - self.by_group.values[0]
        each = np.arange(self.groups.size) if self.distinct is None else self.distinct
        if self.whole_classes:
            # Queries of a class that nothing was learned about win or lose together.
            of_new_class = self.by_query.known == 0
            each = np.where(of_new_class, each.size + self.groups, each)
        return {
            "all": Question(everything, each, self.n_folds),
            "known": Question(known, each, self.n_folds),
            "new": Question(new, self.groups, self.n_folds),
        }

    def values_of(self, name: str) -> FoldValues:
        """The held-out queries that a question is about."""
        return self.by_group if name == "new" else self.by_query


@dataclass(frozen=True, eq=False)
class Result:
    """What came out for one family.

    Parameters
    ----------
    family : Family
        The family.
    path : Evidence
        Held-out values of each strength.
    strength : int
        The strength chosen by all folds, counted from 1; 0 is the baseline.
    judged : Evidence
        The values that are tested: those of the path, or of the dev queries.
    strengths : dict of str to ndarray
        The row of ``judged`` that each query of each question is judged with.
    verdict : Verdict
        The decision.
    """

    family: Family
    path: Evidence
    strength: int
    judged: Evidence
    strengths: dict[str, np.ndarray]
    verdict: Verdict

    def question(self, name: str) -> Question:
        """A question with the one row that is tested."""
        return self.judged.questions[name].at(self.strengths[name])


def best_result(results: Sequence[Result], prefer: str) -> Result | None:
    """The result to act on: of those to ship, the largest gain where preferred; else the first."""
    if not results:
        return None
    shipped = [result for result in results if result.verdict.decision != "keep"]
    return max(
        shipped or results[:1],
        key=lambda result: (
            result.verdict.estimates[
                tested_question(result.verdict.estimates, prefer)
            ].mean
        ),
    )


@dataclass(eq=False)
class Trials:
    """Trials of families on the same data, folds and time limit."""

    data: TuningData
    on_dev: np.ndarray
    prefer: str
    tolerance: float
    n_folds: int
    seed: int
    deadline: Deadline
    progress: Callable[[str, float], Any]
    skipped: list[str] = field(default_factory=list)

    @cached_property
    def nothing_to_gain(self) -> bool:
        """Whether unchanged vectors are within the tolerance of a perfect score."""
        measure, _ = parse_measure(self.data.measure)
        if not measure.larger_is_better:
            return False
        return self.data.baseline_mean() >= 1 - self.tolerance

    def run(self, families: Sequence[Family]) -> list[Result]:
        """The results of all families, tested with Holm's correction if they are several."""
        results = []
        for number, family in enumerate(families):
            try:
                results.append(self._run_one(family, number, len(families)))
            except OutOfTime:
                self.skipped.append(family.label)
        levels = holm([result.verdict.p_value for result in results])
        return [
            self._decided(result, level)
            for result, level in zip(results, levels, strict=True)
        ]

    def _run_one(self, family: Family, number: int, n: int) -> Result:
        def show(fraction: float) -> None:
            self.progress(f"cross-validating: {family.label}", (number + fraction) / n)

        show(0.0)
        path, fold_of = self._cross_validated(family, show)
        questions = path.questions
        settings = (self.prefer, self.tolerance)
        strength = choose_strength(measurable(questions), *settings)
        if self.on_dev.any():
            judged = self._on_dev(family, strength)
            row = np.full(judged.groups.size, int(strength > 0))
            strengths = dict.fromkeys(questions, row)
        else:
            judged = path
            strengths = cross_fit(questions, fold_of, *settings)
        verdict = decide(_tested(judged, strengths), *settings)
        return Result(family, path, strength, judged, strengths, verdict)

    def _decided(self, result: Result, level: float) -> Result:
        """The result with its decision at a level of significance."""
        tested = _tested(result.judged, result.strengths)
        verdict = decide(tested, self.prefer, self.tolerance, level)
        if not result.strength:
            # Some folds may choose maps where all queries together choose none.
            verdict = verdict._replace(decision="keep")
        return Result(
            result.family,
            result.path,
            result.strength,
            result.judged,
            result.strengths,
            verdict,
        )

    def _cross_validated(
        self, family: Family, show: Callable[[float], Any]
    ) -> tuple[Evidence, dict[str, np.ndarray]]:
        """Evidence from folds of queries and of groups, and the folds of each question."""
        data = self.data.without(self.on_dev)
        n = data.n_queries
        sample = np.zeros(n, dtype=bool)
        rng = np.random.default_rng(self.seed)
        sample[rng.permutation(n)[:MAX_QUERIES]] = True
        by_query = QueryFolds(data, fold_queries(n, self.n_folds, self.seed))
        by_group = NewItemFolds(
            data, fold_groups(data.relevance, self.n_folds, self.seed)
        )
        groups = by_group.folds.groups
        evidence = partial(
            Evidence,
            groups=groups,
            n_folds=self.n_folds,
            distinct=data.distinct_queries,
        )
        n_groups = np.unique(groups).size
        fold_of = dict.fromkeys(("all", "known", "new"), by_query.fold_of)
        if n_groups < MIN_GROUPS:
            values = cross_validate(family, by_query, sample, self.deadline, show)
            nothing = values._replace(values=np.full_like(values.values, np.nan))
            return evidence(values, nothing), fold_of
        if np.unique(group_queries(data.relevance)).size == n:
            # No two queries share an item, so folds of queries are folds of groups.
            values = cross_validate(family, by_query, sample, self.deadline, show)
            return evidence(values, values), fold_of
        values = cross_validate(
            family, by_query, sample, self.deadline, lambda done: show(done / 2)
        )
        new_values = cross_validate(
            family, by_group, sample, self.deadline, lambda done: show((1 + done) / 2)
        )
        fold_of["new"] = by_group.fold_of
        return evidence(values, new_values), fold_of

    def _on_dev(self, family: Family, strength: int) -> Evidence:
        """Evidence of the dev queries, judged with a metric learned from the others."""
        data = self.data
        train = np.flatnonzero(~self.on_dev)
        dev = np.flatnonzero(self.on_dev)
        split = hold_out(data.X, data.relevance, data.queries, train, dev)
        known = share_known(split.relevance, split.judged)
        metric = None
        if strength:
            learned_from = data.without(self.on_dev)
            metric = learn_until(family, learned_from, strength, self.deadline)
        values = self._judged(split, metric)
        alone = np.isnan(known)
        if data.queries is None and alone.any():
            # Rows of which only other dev rows are relevant, such as a class that is held out, are
            # new, and rank all rows.
            judged = data.relevance.take_queries(dev)
            among_all = self._judged(
                split._replace(judged=judged, corpus=data.X), metric
            )
            for whole, piece in zip(values, among_all, strict=True):
                whole[:, alone] = piece[:, alone]
            known = np.where(alone, 0.0, known)
        new_values = np.where(known == 0, values.values, np.nan)
        groups = group_queries(data.relevance)[dev]
        no_memory = np.full((1, dev.size), np.nan)
        found = FoldValues(
            values.values, no_memory, values.tops, values.distances, known
        )
        return Evidence(
            found,
            found._replace(values=new_values),
            groups,
            whole_classes=data.relevance.has_classes,
            distinct=data.take(dev).distinct_queries,
        )

    def _judged(self, split: Split, metric: EmbeddingMetric | None) -> Score:
        """Scores of the baseline and of a metric, one above the other."""
        data = self.data
        index = None if data.queries is None else data.index()
        judge = Judge(split, data.similarity, data.measure, index)
        scores = [judge.baseline()]
        if metric is not None:
            scores.append(judge.score(metric))
        return Score(*(np.array(part) for part in zip(*scores, strict=True)))


def _tested(judged: Evidence, strengths: dict[str, np.ndarray]) -> dict[str, Question]:
    """Each question with the row that is tested."""
    return {
        name: question.at(strengths[name])
        for name, question in judged.questions.items()
    }
