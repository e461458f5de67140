"""Fusion with runs: the weight of each signal, what it adds, and whether it is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..datasets import read_trec_run
from ..evaluation.cross_validation import (
    HeldOutValues,
    Question,
    Questions,
    measurable,
)
from ..evaluation.fusion import FusedEvidence, HeldOutFusion, fuse_dev, fuse_held_out
from ..evaluation.held_out import Score
from ..evaluation.runs import MEMORY, VECTORS, check_fusion, check_runs
from ..evaluation.search_task import SearchTask
from ..evaluation.significance import ClusteredMean
from ..relevance.inputs import row_ids
from ..search.ranking import Ranking
from .parts import Learned, Part, Request
from .report import SignalRow, TuneReport
from .selection import ALPHA, Verdict, choose_strength, decide, tested_question
from .trials import Result, Trials

# Weights that are tried, times the unit in which scores of a run range as widely as those of the
# vectors. From 8 on the vectors hardly matter.
STEPS = np.array([0, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8])
RESAMPLES = 200  # of the queries, for the interval of a weight
PLACES = {"keep": 0, "known only": 1, "ship": 2}  # decisions, in order
NOT_USED = "no significant gain"

QUESTIONS = ("all", "known", "new")


class Fused(NamedTuple):
    """The result with the runs that are used, and what each signal adds."""

    result: Result
    weights: dict[str, float]  # of the signals that are used, vectors first
    normalise: dict[str, str]  # of these signals
    depth: int
    rows: list[SignalRow]
    reciprocal: (
        float  # mean of the measure by reciprocal rank fusion with unchanged vectors
    )


class Runs(Part):
    """Rankings by other signals, to fuse with the vectors."""

    fused: Fused | None = None
    runs: Mapping[str, Ranking | None]

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Whether runs were passed."""
        return request.runs is not None

    def prepare(self, task: SearchTask, is_judged: np.ndarray) -> SearchTask:
        """Read and check the runs; the task with lists that are long enough to fuse."""
        request = self.request
        task = check_fusion(task, request.normalise)
        item_ids = row_ids(request.X, request.item_ids, "item")
        ids = (item_ids, row_ids(request.queries, request.query_ids, "query"))
        self.runs = check_runs(_read_runs(request.runs), task, is_judged, *ids)
        return task

    def extend(self, learned: Learned) -> Learned:
        """Learn the weights of the runs."""
        best = learned.best
        if best is None or not self.runs:
            return learned
        learned.trials.progress("weighing runs", 1.0)
        options = (self.runs, self.request.normalise)
        self.fused = fuse_runs(learned.trials, best, *options)
        fused = self.fused.result
        results = [fused if result is best else result for result in learned.results]
        return replace(learned, results=results, best=fused)

    def describe(self, report: TuneReport) -> TuneReport:
        """The report with what each signal adds."""
        if self.fused is None:
            return report
        return replace(
            report,
            signals=self.fused.rows,
            weights=self.fused.weights,
            normalise=self.fused.normalise,
            notes=[*report.notes, *fusion_notes(self.fused)],
            next_steps=[*report.next_steps, *fusion_steps(self.fused)],
        )


def _read_runs(runs: Any) -> Any:
    """Runs with TREC files read."""
    if not isinstance(runs, Mapping):
        return runs
    found = {}
    for name, run in runs.items():
        is_file = isinstance(run, os.PathLike | str) and run != MEMORY
        found[name] = read_trec_run(run) if is_file else run
    return found


def fuse_runs(
    trials: Trials,
    result: Result,
    runs: Mapping[str, Ranking | None],
    normalise: str,
) -> Fused:
    """Learn weights of runs beside the map of a result, and use those that pass the test.

    Runs are tried one after the other. For each, weights are a path from 0, and the choice of one
    and the test are those of `tune`: within one standard error, without harm, chosen for each query
    without its fold. A run is used if it significantly improves what was there before.
    """
    how = {VECTORS: normalise}
    for name, run in runs.items():
        # The memory's scores are cosines: what is far from all past queries must stay 0.
        how[name] = "none" if run is None else normalise
    study = _Study(trials, result, runs, list(how.values()))
    level = ALPHA / len(runs)
    verdicts = {name: study.add(name, level) for name in runs}
    used = [name for name in runs if verdicts[name].decision != "keep"]
    whole, verdict = study.whole()
    if PLACES[verdict.decision] <= 0 or _is_worse(verdict, result):
        used = []
    rows = [study.row(name, verdicts[name], name in used) for name in runs]
    rrf = study.reciprocal
    if not used:
        return Fused(
            result, {VECTORS: 1.0}, {VECTORS: normalise}, study.depth, rows, rrf
        )
    rows = [*study.rows_of_vectors(), *rows]
    weights = {VECTORS: 1.0}
    weights |= {name: float(study.final[study.place(name)]) for name in used}
    label = f"{study.label} + {' + '.join(used)}"
    family = replace(result.family, label=label)
    whole = replace(whole, family=family, verdict=verdict)
    chosen = {name: how[name] for name in weights}
    return Fused(whole, weights, chosen, study.depth, rows, rrf)


def _is_worse(verdict: Verdict, result: Result) -> bool:
    """Whether fusion would be used for fewer queries than the map alone."""
    return PLACES[verdict.decision] < PLACES[result.verdict.decision]


@dataclass(eq=False)
class _Study:
    """Weights of the signals: for each query without its fold, and from all folds."""

    trials: Trials
    result: Result
    runs: Mapping[str, Ranking | None]
    normalise: list[str]

    def __post_init__(self) -> None:
        n_signals = 1 + len(self.runs)
        self.final = np.zeros(n_signals)
        self.final[0] = 1.0
        self.crossed = {}
        for name in QUESTIONS:
            n = self.strengths[name].size
            self.crossed[name] = np.zeros((n_signals, n))
            self.crossed[name][0] = 1.0
        self.bootstrapped: dict[str, tuple[float, float]] = {}
        self.tried: dict[str, tuple[float, dict[str, np.ndarray]]] = {}

    # ------------------------------------------------------------------ what there is

    @property
    def is_mapped(self) -> bool:
        """Whether the vectors are mapped, not unchanged."""
        return self.result.verdict.decision != "keep"

    @property
    def label(self) -> str:
        """What the vectors are."""
        return self.result.family.label if self.is_mapped else "unchanged vectors"

    @property
    def on_dev(self) -> bool:
        """Whether dev queries judge."""
        return bool(self.trials.on_dev.any())

    @property
    def strength(self) -> int:
        """The strength of the map, chosen by all folds."""
        return self.result.strength if self.is_mapped else 0

    @cached_property
    def strengths(self) -> dict[str, np.ndarray]:
        """The strength that each query of each question is judged with."""
        found = self.result.strengths
        if self.is_mapped:
            return found
        return {name: np.zeros_like(chosen) for name, chosen in found.items()}

    @cached_property
    def path(self) -> FusedEvidence:
        """Lists of the queries that weights are chosen by."""
        trials = self.trials
        runs = {
            name: None if run is None else run.take_queries(~trials.on_dev)
            for name, run in self.runs.items()
        }
        options = (trials.n_folds, trials.seed, runs, self.normalise)
        return fuse_held_out(self.result.path, trials.training, *options)

    @cached_property
    def judged(self) -> FusedEvidence:
        """Lists of the queries that judge."""
        if not self.on_dev:
            return self.path
        trials = self.trials
        options = (trials.on_dev, self.runs, self.normalise)
        return fuse_dev(self.result.judged, trials.task, *options)

    @property
    def depth(self) -> int:
        """How many first items of each list are fused."""
        return self.path.by_query.depth

    @property
    def reciprocal(self) -> float:
        """Mean of the measure by reciprocal rank fusion of unchanged vectors and all runs."""
        return float(np.nanmean(self.judged.by_query.reciprocal_values(0)))

    def place(self, name: str) -> int:
        """The number of a run among the signals."""
        return 1 + list(self.runs).index(name)

    # ------------------------------------------------------------------ one run

    def add(self, name: str, level: float) -> Verdict:
        """Learn the weight of a run beside those before it, and test it; keep it if it passes."""
        place = self.place(name)
        before = {question: w.copy() for question, w in self.crossed.items()}
        final = self._chosen(place, self.strength, self.final, None)
        self.bootstrapped[name] = self._interval(place)
        for question in QUESTIONS:
            self._cross_fit(place, question, final)
        verdict = self._tested(before, self.crossed, level)
        self.tried[name] = (final, self.crossed)
        if not final:
            verdict = verdict._replace(decision="keep")
        if verdict.decision == "keep":
            self.crossed = before
        else:
            self.final[place] = final
        return verdict

    def _cross_fit(self, place: int, question: str, final: float) -> None:
        """Set the weight of each query that the other folds choose."""
        weights = self.crossed[question]
        folds = self.judged.evidence.questions[question].folds
        if folds is None:
            weights[place] = final
            return
        for fold in np.unique(folds):
            held_out = folds == fold
            strength = int(self.strengths[question][held_out][0])
            others = weights[:, held_out][:, 0]
            weights[place, held_out] = self._chosen(place, strength, others, held_out)

    def _chosen(
        self,
        place: int,
        strength: int,
        weights: np.ndarray,
        held_out: np.ndarray | None,
    ) -> float:
        """The weight that queries choose, all of them or those that are not held out."""
        questions = self._questions(place, strength, weights)
        if held_out is not None:
            questions = {n: q.without(held_out) for n, q in questions.items()}
        settings = (self.trials.prefer, self.trials.tolerance)
        step = choose_strength(measurable(questions), *settings)
        return float(STEPS[step] * self._unit(place, strength))

    def _unit(self, place: int, strength: int) -> float:
        return float(self.path.by_query.units(strength)[place])

    def _questions(self, place: int, strength: int, weights: np.ndarray) -> Questions:
        """Differences from weight 0 for each weight of a run, with other weights unchanged."""
        key = (place, strength, weights.tobytes())
        if key not in self._known_questions:
            candidates = np.tile(weights, (STEPS.size, 1))
            candidates[:, place] = STEPS * self._unit(place, strength)
            rows = [
                [_constant(lists, strength, row) for row in candidates]
                for lists in (self.path.by_query, self.path.by_group)
            ]
            self._known_questions[key] = self.path.rows(*rows).questions
        return self._known_questions[key]

    @cached_property
    def _known_questions(self) -> dict[tuple[int, int, bytes], Questions]:
        return {}

    def _interval(self, place: int) -> tuple[float, float]:
        """95 % interval of the chosen weight, over bootstrap samples of groups of queries."""
        questions = self._questions(place, self.strength, self.final)
        rng = np.random.default_rng(self.trials.seed)
        groups = self.path.evidence.groups
        settings = (self.trials.prefer, self.trials.tolerance)
        steps = []
        for _ in range(RESAMPLES):
            sample = _resampled(questions, groups, rng)
            steps.append(choose_strength(measurable(sample), *settings))
        low, high = np.percentile(steps, (2.5, 97.5), method="nearest").astype(int)
        unit = self._unit(place, self.strength)
        return float(STEPS[low] * unit), float(STEPS[high] * unit)

    # ------------------------------------------------------------------ tests

    def _tested(
        self,
        before: Mapping[str, np.ndarray],
        after: Mapping[str, np.ndarray],
        level: float,
        strengths: Mapping[str, np.ndarray] | None = None,
    ) -> Verdict:
        """The verdict on other weights, by the rule of `tune`."""
        questions = self._compared(before, after, strengths)
        settings = (self.trials.prefer, self.trials.tolerance)
        return decide(questions, *settings, level)

    def _compared(
        self,
        before: Mapping[str, np.ndarray],
        after: Mapping[str, np.ndarray],
        strengths: Mapping[str, np.ndarray] | None = None,
    ) -> dict[str, Question]:
        """Paired differences of two choices of weights, and perhaps of the strengths before."""
        strengths = strengths or self.strengths
        rows = []
        for question in ("all", "new"):
            lists = self.judged.lists_of(question)
            first = _values(lists, strengths[question], before[question])
            second = _values(lists, self.strengths[question], after[question])
            rows.append([first, second])
        compared = self.judged.rows(*rows).questions
        return {
            name: question._replace(differences=question.differences[1:])
            for name, question in compared.items()
        }

    def whole(self) -> tuple[Result, Verdict]:
        """The result of all runs that are used, compared with unchanged vectors."""
        evidence = self.judged.evidence
        extended = replace(
            evidence,
            by_query=self._extended("all", evidence.by_query),
            by_group=self._extended("new", evidence.by_group),
        )
        last = len(evidence.by_query.values)
        strengths = {
            name: np.full_like(chosen, last) for name, chosen in self.strengths.items()
        }
        result = replace(
            self.result,
            strength=self.strength,
            judged=extended,
            path=extended if self.judged is self.path else self.result.path,
            strengths=strengths,
        )
        tested = {name: result.question(name) for name in QUESTIONS}
        verdict = decide(tested, self.trials.prefer, self.trials.tolerance)
        return result, verdict

    def _extended(self, question: str, values: HeldOutValues) -> HeldOutValues:
        """The same values with a last row: that of fusion, each query with its own weights."""
        lists = self.judged.lists_of(question)
        weights = self.crossed[question]
        return _appended(values, lists.score(self.strengths[question], weights))

    # ------------------------------------------------------------------ rows

    def row(self, name: str, verdict: Verdict, is_used: bool) -> SignalRow:
        """What a run adds to the others: to all of them if it is used, else to those before."""
        final, after = self.tried[name]
        if is_used:
            after = self.crossed
        before = {question: w.copy() for question, w in after.items()}
        for weights in before.values():
            weights[self.place(name)] = 0.0
        estimate = self._compared(before, after)["all"].estimate(0)
        low, high = self.bootstrapped[name]
        outcome = "used" if is_used else f"not used: {self._reason(verdict)}"
        return _row(name, (final, low, high), estimate, outcome)

    def _reason(self, verdict: Verdict) -> str:
        harmed = [
            n for n, o in verdict.outcomes.items() if o == "harmed" and n != "all"
        ]
        target = tested_question(verdict.estimates, self.trials.prefer)
        if verdict.decision != "keep":
            return "together the runs harm"
        if harmed and verdict.estimates[target].p_value <= verdict.level:
            return f"{harmed[0]} documents lose"
        return NOT_USED

    def rows_of_vectors(self) -> list[SignalRow]:
        """What the vectors add to the runs, and what the map adds to the vectors."""
        without = {question: w.copy() for question, w in self.crossed.items()}
        for weights in without.values():
            weights[0] = 0.0
        estimate = self._compared(without, self.crossed)["all"].estimate(0)
        blank = (1.0, np.nan, np.nan)
        rows = [_row(VECTORS, blank, estimate, "used")]
        if self.is_mapped:
            unchanged = {n: np.zeros_like(s) for n, s in self.strengths.items()}
            compared = self._compared(self.crossed, self.crossed, unchanged)
            mapped = compared["all"].estimate(0)
            blank = (np.nan, np.nan, np.nan)
            rows.append(_row(f"their map ({self.label})", blank, mapped, "used"))
        return rows


def _row(
    name: str,
    weight: tuple[float, float, float],
    estimate: ClusteredMean,
    outcome: str,
) -> SignalRow:
    low, high = estimate.interval
    return SignalRow(name, *weight, estimate.mean, low, high, outcome)


def _constant(lists: HeldOutFusion, strength: int, weights: np.ndarray) -> np.ndarray:
    """Values of all queries with the same strength and weights."""
    each = np.broadcast_to(weights[:, None], (weights.size, lists.n_queries))
    return _values(lists, np.full(lists.n_queries, strength), each)


def _values(
    lists: HeldOutFusion, strengths: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Values of queries with strengths and weights of their own."""
    return lists.score(strengths, weights).values


def _appended(values: HeldOutValues, score: Score) -> HeldOutValues:
    """The values with a further row."""
    missing = np.isnan(values.values[0])
    last = np.where(missing, np.nan, score.values)
    return values._replace(
        values=np.concatenate([values.values, last[None]]),
        tops=np.concatenate([values.tops, score.tops[None]]),
        distances=np.concatenate([values.distances, score.distances[None]]),
    )


def _resampled(
    questions: Questions, groups: np.ndarray, rng: np.random.Generator
) -> dict[str, Question]:
    """Questions about groups of queries drawn with replacement, as often as they are drawn."""
    _, numbers = np.unique(groups, return_inverse=True)
    members = np.split(
        np.argsort(numbers, kind="stable"), np.bincount(numbers).cumsum()[:-1]
    )
    drawn = rng.integers(len(members), size=len(members))
    queries = np.concatenate([members[group] for group in drawn])
    draw = np.repeat(np.arange(drawn.size), [members[group].size for group in drawn])
    found = {}
    for name, question in questions.items():
        clusters = question.clusters[queries] + draw * (1 + question.clusters.max())
        found[name] = Question(question.differences[:, queries], clusters)
    return found


# ---------------------------------------------------------------------- sentences


def fusion_notes(fused: Fused) -> list[str]:
    """How to read the table of signals."""
    return [
        "Signals: the gain is what dropping a signal costs, or what adding it would change, with "
        "95 % intervals. Weights are for scores normalised as named, with the vectors at 1.",
        "Reciprocal rank fusion of unchanged vectors and all runs, which needs no judgments, has "
        f"{fused.reciprocal:.3f}.",
    ]


def fusion_steps(fused: Fused) -> list[str]:
    """How to fuse rankings as they were tested."""
    if len(fused.weights) == 1:
        return []
    parts = []
    for name, weight in fused.weights.items():
        parts.append(f"{weight:.4g} x {name} ({fused.normalise[name]})")
    return [
        f"Fuse the first {fused.depth} of each list by Ranking.fuse: {' + '.join(parts)}. Items "
        "that a list does not have count as its lowest score, at most 0. Hybrid queries of "
        "vector stores treat such items and equal scores differently, so there is no snippet "
        "for them."
    ]
