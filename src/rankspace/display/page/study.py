"""Two reports of the same queries, paired for a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...evaluation.measures import evaluate
from ...evaluation.report import Comparison, Report, compare, same_queries
from ...relevance.relevance import Relevance
from ...search.ranking import Ranking


@dataclass(frozen=True, eq=False)
class PairedReports:
    """Two reports cut to the queries that both count, and what they were made from."""

    before: Report
    after: Report
    names: tuple[str, str]
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance

    @property
    def reports(self) -> tuple[Report, Report]:
        """Both."""
        return self.before, self.after

    @cached_property
    def comparison(self) -> Comparison:
        """What changed, with intervals and tests."""
        return compare(self.before, self.after)

    @property
    def measure(self) -> str:
        """The measure that leads the page."""
        return next(iter(self.before.values))

    @property
    def smaller_is_better(self) -> bool:
        """Whether the first measure is an error."""
        return self.measure in self.before.smaller_is_better

    @cached_property
    def gains(self) -> np.ndarray:
        """Gain of each query in the first measure, above 0 for better, NaN if left out."""
        change = self.after.values[self.measure] - self.before.values[self.measure]
        # Sums in another order differ in the last bits; that is no gain.
        change = np.where(np.abs(change) < 1e-9, 0.0, change)
        return 0.0 - change if self.smaller_is_better else change

    @cached_property
    def counted(self) -> np.ndarray:
        """The queries that count for the first measure."""
        return np.flatnonzero(np.isfinite(self.gains))

    @property
    def outcomes(self) -> dict[str, int]:
        """How many queries got better, stayed equal, and got worse."""
        signs = np.sign(self.gains[self.counted])
        kinds = (("better", 1), ("equal", 0), ("worse", -1))
        return {kind: int((signs == sign).sum()) for kind, sign in kinds}

    @cached_property
    def ranking_errors(self) -> tuple[float, float]:
        """Misordered pairs before and after, over what chance gives; NaN if lists cannot say."""
        first, second = (
            evaluate(ranking, self.relevance, "ranking-error").means["ranking-error"]
            for ranking in self.rankings
        )
        return first, second

    def query_name(self, query: int) -> str:
        """How a query is called."""
        ids = self.relevance.query_ids
        return str(query if ids is None else ids[query])


def study_of(
    before: Report,
    after: Report,
    names: tuple[str, str],
    rankings: tuple[Ranking, Ranking],
    relevance: Relevance,
) -> PairedReports:
    """Check that all parts belong together, and pair the reports query by query."""
    ours, theirs = before.query_ids, relevance.query_ids
    same_ids = ours is None or theirs is None or np.array_equal(ours, theirs)
    if before.n_queries != relevance.n_queries or not same_ids:
        raise ValueError(
            f"the reports must be of the queries of relevance, in their order: got "
            f"{before.n_queries} and {relevance.n_queries} queries"
            + ("." if same_ids else " with other query_ids.")
            + " Make them with evaluate(ranking, relevance)."
        )
    for what, given in (("names", names), ("rankings", rankings)):
        if len(given) != 2:
            raise ValueError(f"{what} must be two, before and after: got {len(given)}.")
    first, second = (
        str(name).encode("utf-8", "replace").decode("utf-8") for name in names
    )
    return PairedReports(*_paired(before, after), (first, second), rankings, relevance)


def _paired(before: Report, after: Report) -> tuple[Report, Report]:
    """Both reports in the order of the first, with NaN where either leaves a query out."""
    after = after.take(same_queries(before, after))
    values: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = ({}, {})
    for name in (name for name in before.values if name in after.values):
        a, b = before.values[name], after.values[name]
        missing = np.isnan(a) | np.isnan(b)
        if not missing.all():
            values[0][name] = np.where(missing, np.nan, a)
            values[1][name] = np.where(missing, np.nan, b)
    if not values[0]:
        raise ValueError(
            "the reports must share a measure that counts a query: got "
            f"{', '.join(before.values)} and {', '.join(after.values)}."
        )
    first, second = (
        Report(v, before.smaller_is_better, before.query_ids, before.weights)
        for v in values
    )
    return first, second
