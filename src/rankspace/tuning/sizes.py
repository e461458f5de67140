"""Smaller vectors: the smallest width that is not worse than the full one, by held-out queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_scalar

from .._engine.checks import check_choice
from ..evaluation.cross_validation import (
    Evidence,
    Question,
    cross_validate,
    evaluate_on,
    measurable,
)
from ..evaluation.held_out import orientation
from ..evaluation.search_task import SearchTask
from ..evaluation.significance import ClusteredMean
from ..learners.families import Family
from ..metrics.embedding import unchanged_metric
from ..metrics.reduction import (
    check_width,
    principal_directions,
    reducing_map,
    sample_items,
)
from ..relevance.relevance import Relevance
from ..search.index import Embedding, Index
from ..search.quantised import QuantisedMetric, TooLarge, bytes_per_vector
from .parts import Learned, Part, Request
from .report import SizeRow, TuneReport
from .trials import OutOfTime, Result, Trials

SMALLEST = "smallest"
NARROWEST = 8  # dimensions; fewer tell no documents apart
LEVEL = 0.05  # one-sided, of each non-inferiority test
POWER = 0.8  # of the number of queries that is named
FULL = "float32"
STORAGES = ("float16", "int8", "binary")  # by falling size
NEW_INDEX = [
    "Vectors are smaller than before, so embed the corpus anew, and map queries too.",
    "rankspace transform METRIC CORPUS.npy --output SMALLER.npy",
    "rankspace export METRIC --to faiss --vectors CORPUS.npy --output CORPUS.faiss",
]


class Sizes(NamedTuple):
    """Held-out scores of widths, and the width to use."""

    rows: list[SizeRow]
    n_components: int  # the full width if no smaller one is safe
    is_full: bool
    notes: list[str]


class SmallerVectors(Part):
    """Mapped vectors of fewer dimensions, or with fewer bits."""

    sizes: Sizes | None = None  # None if the time was over

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Whether a number of components was passed."""
        return request.n_components is not None

    def prepare(self, task: SearchTask, is_judged: np.ndarray) -> SearchTask:
        """Check the width and the tolerance."""
        check_components(self.request.n_components, task.X.shape[1])
        tolerance = self.request.size_tolerance
        check_scalar(tolerance, "size_tolerance", Real, min_val=0, max_val=1)
        return task

    def extend(self, learned: Learned) -> Learned:
        """Choose the width, and reduce the metric to it."""
        trials, request = learned.trials, self.request
        if trials.skipped:
            return learned
        options = (request.n_components, request.size_tolerance)
        self.sizes = choose_width(trials, learned.best, *options)
        if self.sizes is None or self.sizes.is_full:
            return learned
        n_components = self.sizes.n_components
        return replace(
            learned,
            metric=learned.metric.reduce(trials.training.X, n_components),
            method=f"{learned.method}, reduced to {n_components} dimensions",
            is_reduced=True,
        )

    def describe(self, report: TuneReport) -> TuneReport:
        """The report with the scores of all widths."""
        return with_sizes(report, self.sizes, self.request.size_tolerance)


@dataclass(frozen=True)
class WidthPath:
    """The metric of one strength, at full width, at others, and with fewer bits."""

    family: Family | None  # None for unchanged vectors
    strength: int
    similarity: str
    widths: tuple[int, ...]
    storages: tuple[str, ...] = ()  # of the last width

    @property
    def strengths(self) -> tuple[str, ...]:
        """A name for each width, and for each storage of the last one."""
        return ("full", *map(str, self.widths), *self.storages)

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[Embedding]:
        """Learn the metric once, and reduce it."""
        metric = unchanged_metric(X.shape[1], self.similarity, X.dtype)
        if self.family is not None and self.strength:
            path = self.family.metrics(X, relevance, queries, index)
            metric = next(itertools.islice(path, self.strength - 1, None))
        yield metric
        reduced = metric
        directions = principal_directions(metric, X)
        # A rotation changes the scores of bits only.
        sample = sample_items(metric, X) if self.storages else None
        for width in self.widths:
            reduced = metric.project(reducing_map(directions, width, sample))
            yield reduced
        for storage in self.storages:
            yield QuantisedMetric(reduced, X, storage)


def check_components(n_components: Any, width: int) -> None:
    """Raise unless there is such a width."""
    if isinstance(n_components, str):
        check_choice(n_components, "n_components", (SMALLEST,))
    else:
        check_width(n_components, width)


def choose_width(
    trials: Trials,
    best: Result | None,
    n_components: Any,
    tolerance: float,
) -> Sizes | None:
    """Test widths from the full one downwards, up to the first that may lose.

    Each is compared with the full width on the same held-out queries: all, those for known and
    those for new documents. It is safe if none of them loses more than the tolerance, each by a
    one-sided test at 5 %. Nothing is tested after a failure, so no correction is needed. A number
    of components is tested alone. None if the time is over.
    """
    full = trials.task.X.shape[1]
    widths = (int(n_components),) if n_components != SMALLEST else _widths(full)
    family, strength = None, 0
    if best is not None and best.verdict.decision != "keep":
        family, strength = best.family, best.strength
    path = WidthPath(family, strength, trials.task.similarity, widths)
    try:
        evidence = _evidence(trials, path)
    except OutOfTime:
        trials.skipped.append("smaller vectors")
        return None
    sign = orientation(trials.task.measure)
    kinds = [(width, FULL) for width in widths]
    rows, n_safe, notes = _tested_downwards(evidence, kinds, 2, tolerance, sign)
    chosen = ([full, *widths])[n_safe]
    if n_components != SMALLEST:
        chosen = widths[0]
    rows = [_row(evidence, 1, (full, FULL), "full width", np.nan, sign), *rows]
    reduced = () if chosen == full else (chosen,)
    path = replace(path, widths=reduced, storages=STORAGES)
    try:
        quantised = _evidence(trials, path)
    except OutOfTime:
        trials.skipped.append("quantised vectors")
        return Sizes(rows, chosen, chosen == full, notes)
    except TooLarge as error:
        return Sizes(rows, chosen, chosen == full, [*notes, f"Not quantised: {error}"])
    kinds = [(chosen, storage) for storage in STORAGES]
    more, _, said = _tested_downwards(
        quantised, kinds, 2 + len(reduced), tolerance, sign
    )
    return Sizes([*rows, *more], chosen, chosen == full, [*notes, *said])


def _tested_downwards(
    evidence: Evidence,
    kinds: list[tuple[int, str]],
    first: int,
    tolerance: float,
    sign: float,
) -> tuple[list[SizeRow], int, list[str]]:
    """Rows of ever smaller vectors, how many are safe before the first that is not, and why."""
    rows = []
    notes: list[str] = []
    n_safe = 0
    failed = False
    for number, kind in enumerate(kinds, first):
        estimates = _differences(evidence, number)
        lower = min(lower_limit(e) for e in estimates.values())
        verdict = _verdict(estimates, tolerance)
        if failed:
            verdict = "not tested"
        elif verdict != "safe":
            failed = True
            notes += _about_failure(kind, estimates, tolerance)
        else:
            n_safe += 1
        rows.append(_row(evidence, number, kind, verdict, lower, sign))
    return rows, n_safe, notes


def _widths(full: int) -> tuple[int, ...]:
    """Widths below the full one: powers of two, and their halves more."""
    powers = 2 ** np.arange(3, 16)
    candidates = np.union1d(powers, 3 * powers // 2)
    below = candidates[(candidates < full) & (candidates >= NARROWEST)]
    return tuple(below[::-1].tolist())


def _evidence(trials: Trials, path: WidthPath) -> Evidence:
    """Values of held-out queries, or of dev queries, for each width."""
    check = trials.deadline.check
    if trials.on_dev.any():
        return evaluate_on(path, trials.task, trials.on_dev, check)

    def show(fraction: float) -> None:
        trials.progress("cross-validating smaller vectors", fraction)

    options = (trials.n_folds, trials.seed, check, show)
    return cross_validate(path, trials.training, *options)


def _differences(evidence: Evidence, number: int) -> dict[str, ClusteredMean]:
    """Mean differences of a width from the full one, for each question."""
    found = {}
    for name, question in measurable(evidence.questions).items():
        differences = question.differences[number] - question.differences[1]
        paired = Question(differences[None], question.clusters, question.folds)
        found[name] = paired.estimate(0)
    return found


def lower_limit(estimate: ClusteredMean, level: float = LEVEL) -> float:
    """The lower limit of a one-sided interval, of 95 % by default."""
    from scipy.stats import t

    quantile = float(t.ppf(1 - level, estimate.n_clusters - 1))
    return estimate.mean - quantile * estimate.standard_error


def _verdict(estimates: dict[str, ClusteredMean], tolerance: float) -> str:
    """Whether no question loses more than the tolerance."""
    if all(lower_limit(e) >= -tolerance for e in estimates.values()):
        return "safe"
    if any(e.mean < -tolerance for e in estimates.values()):
        return "loses"
    return "too few queries"


def _about_failure(
    kind: tuple[int, str], estimates: dict[str, ClusteredMean], tolerance: float
) -> list[str]:
    """How many queries would show that a width is safe, where too few were the reason."""
    if _verdict(estimates, tolerance) != "too few queries":
        return []
    needed = 0
    for estimate in estimates.values():
        if lower_limit(estimate) < -tolerance:
            needed = max(needed, queries_for(estimate, tolerance))
    return [
        f"Whether {_named(kind)} lose more than {tolerance:g} cannot be told with "
        f"{estimates['all'].n:,} queries; it would take about {needed:,}."
    ]


def _named(kind: tuple[int, str]) -> str:
    width, storage = kind
    return f"{width} dimensions" + ("" if storage == FULL else f" as {storage}")


def queries_for(estimate: ClusteredMean, tolerance: float) -> int:
    """Queries that show with 80 % power that a difference like this one is within the tolerance."""
    from scipy.stats import norm

    deviation = estimate.standard_error * np.sqrt(estimate.n)
    # A width that seems better than the full one is taken to be as good.
    margin = tolerance + min(estimate.mean, 0.0)
    quantiles = float(norm.ppf(1 - LEVEL) + norm.ppf(POWER))
    if margin <= 0:
        return 0
    return int(np.ceil((quantiles * deviation / margin) ** 2))


def _row(
    evidence: Evidence,
    number: int,
    kind: tuple[int, str],
    verdict: str,
    lower: float,
    sign: float,
) -> SizeRow:
    questions = measurable(evidence.questions)

    def mean(name: str) -> float:
        if name not in questions:
            return np.nan
        asked = ~np.isnan(questions[name].differences[0])
        return sign * float(evidence.values_of(name).values[number, asked].mean())

    means = (mean("all"), mean("known"), mean("new"))
    megabytes = bytes_per_vector(*kind)
    return SizeRow(*kind, *means, lower, megabytes, verdict)


# ---------------------------------------------------------------------- report


def with_sizes(report: TuneReport, sizes: Sizes | None, tolerance: float) -> TuneReport:
    """The report with the table of widths, and what it means for the metric that is returned."""
    if sizes is None:
        return report
    note = (
        "Safe: neither all queries nor those for known or new documents lose more than "
        f"{tolerance:g} against the full width, each with 95 % confidence; the lower limit is the "
        "lowest of theirs. Widths are tested downwards until one fails, and then the storages of "
        "the width that is used; binary candidates are rescored. Megabytes are those of a million "
        "vectors."
    )
    sentence = report.sentence
    steps = list(report.next_steps)
    if sizes.is_full:
        sentence += " No smaller width is safe."
    else:
        sentence += f" {_about_width(sizes)}"
        steps += NEW_INDEX
    notes = [note, *sizes.notes]
    if not sizes.is_full and len(report.weights) > 1:
        notes.append(
            "Weights of runs were learned and tested with vectors of full width."
        )
    return replace(
        report,
        sizes=sizes.rows,
        sentence=sentence,
        notes=[*report.notes, *notes],
        next_steps=steps,
    )


def _about_width(sizes: Sizes) -> str:
    full = sizes.rows[0].n_components
    row = next(r for r in sizes.rows if r.n_components == sizes.n_components)
    if row.outcome == "safe":
        return (
            f"{row.n_components} of {full} dimensions are enough: at most "
            f"{max(0.0, -row.lower_limit):.3f} is lost."
        )
    return (
        f"The {row.n_components} of {full} dimensions that were asked for are not shown to be "
        f"enough: up to {-row.lower_limit:.3f} may be lost ({row.outcome})."
    )
