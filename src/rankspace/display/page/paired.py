"""Paired reports: two evaluations of the same queries, matched query by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...evaluation.matching import named_like
from ...evaluation.measures import evaluate
from ...evaluation.report import Comparison, Report, compare, same_queries
from ...relevance.relevance import Relevance
from ...search.ranking import Ranking
from .html import measure_label


@dataclass(frozen=True, eq=False)
class PairedReports:
    """Two reports with NaN where either has no value, and the rankings they evaluate."""

    before: Report
    after: Report
    names: tuple[str, str]
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance

    @property
    def reports(self) -> tuple[Report, Report]:
        """Both reports."""
        return self.before, self.after

    @cached_property
    def comparison(self) -> Comparison:
        """Differences with confidence intervals and p-values."""
        return compare(self.before, self.after)

    @property
    def measure(self) -> str:
        """The primary measure: the first one that both reports have."""
        return next(iter(self.before.values))

    @property
    def label(self) -> str:
        """The label of the primary measure."""
        return measure_label(self.measure)

    @property
    def smaller_is_better(self) -> bool:
        """Whether the primary measure is an error."""
        return self.measure in self.before.smaller_is_better

    @cached_property
    def gains(self) -> np.ndarray:
        """Gain of each query in the primary measure: positive is better, NaN if left out."""
        change = self.after.values[self.measure] - self.before.values[self.measure]
        # Sums in another order differ in the last bits; that is no gain.
        change = np.where(np.abs(change) < 1e-9, 0.0, change)
        return 0.0 - change if self.smaller_is_better else change

    @cached_property
    def counted(self) -> np.ndarray:
        """Queries with a value of the primary measure."""
        return np.flatnonzero(np.isfinite(self.gains))

    @cached_property
    def by_gain(self) -> np.ndarray:
        """The same queries, smallest gain first."""
        return self.counted[np.argsort(self.gains[self.counted], kind="stable")]

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of queries that got better, stayed equal and got worse."""
        gains = self.gains[self.counted]
        return {
            "better": int((gains > 0).sum()),
            "equal": int((gains == 0).sum()),
            "worse": int((gains < 0).sum()),
        }

    def ranking_error(self, side: int) -> float:
        """Misordered pairs relative to a random order; NaN if the lists are incomplete."""
        report = evaluate(self.rankings[side], self.relevance, "ranking-error")
        return report.means["ranking-error"]

    def query_name(self, query: int) -> str:
        """The id of a query, or its number."""
        if self.relevance.query_ids is None:
            return str(query)
        return str(self.relevance.query_ids[query])


def pair_reports(
    before: Report,
    after: Report,
    names: tuple[str, str],
    rankings: tuple[Ranking, Ranking],
    relevance: Relevance,
) -> PairedReports:
    """Check that reports, rankings and judgments match, and pair the reports."""
    _check_queries(before, relevance)
    for what, values in (("names", names), ("rankings", rankings)):
        if len(values) != 2:
            raise ValueError(
                f"{what} must be two, before and after: got {len(values)}."
            )
    for ranking in rankings:
        relevance = named_like(ranking, relevance)
    order = same_queries(before, after)
    before_values = {}
    after_values = {}
    for name in before.values:
        if name not in after.values:
            continue
        a = before.values[name]
        b = after.values[name][order]
        missing = np.isnan(a) | np.isnan(b)
        if not missing.all():
            before_values[name] = np.where(missing, np.nan, a)
            after_values[name] = np.where(missing, np.nan, b)
    if not before_values:
        raise ValueError(
            "the reports must share a measure with a value for some query: got "
            f"{', '.join(before.values)} and {', '.join(after.values)}."
        )
    return PairedReports(
        before=_with_values(before, before_values, before.similarity),
        after=_with_values(before, after_values, after.similarity),
        names=(str(names[0]), str(names[1])),
        rankings=rankings,
        relevance=relevance,
    )


def _check_queries(report: Report, relevance: Relevance) -> None:
    ids = report.query_ids
    expected = relevance.query_ids
    if report.n_queries != relevance.n_queries:
        problem = f"{report.n_queries} and {relevance.n_queries} queries"
    elif ids is None or expected is None or np.array_equal(ids, expected):
        return
    else:
        problem = "different query_ids"
    raise ValueError(
        f"the reports must be of the queries of relevance, in their order: got {problem}. "
        "Make them with evaluate(ranking, relevance)."
    )


def _with_values(
    report: Report, values: dict[str, np.ndarray], similarity: str | None
) -> Report:
    """Other values of the queries of a report."""
    return replace(report, values=values, similarity=similarity)
