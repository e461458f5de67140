"""Tuning report: trials, selected candidate, confidence intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.files import PathLike
from ..display.page.report import write_report
from ..evaluation.report import Comparison, Report, _Table, compare
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .candidates import Candidate

N_EXTREMES = 3  # queries that the page shows for gains, and for losses


@dataclass(frozen=True, eq=False)
class TrialResult:
    """Cross-validation results of one tuning candidate.

    Parameters
    ----------
    candidate : Candidate
        The candidate.
    values : ndarray of shape (n_queries,)
        The measure of each held-out query, NaN for queries that were not held out.
    seconds : float
        Time of all folds; 0 for a part of another candidate, which counts it.
    ranking : Ranking
        The first items of each held-out query.
    """

    candidate: Candidate
    values: np.ndarray
    seconds: float
    ranking: Ranking

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return self.candidate.name


@dataclass(frozen=True, eq=False, repr=False)
class TuneReport(_Table):
    """Tuning report: what was tried, what was chosen, and its gain on held-out queries.

    Parameters
    ----------
    measure : str
        The measure that candidates were compared by.
    trials : list of TrialResult
        All candidates; the first is the baseline, vectors that are left unchanged.
    before, after : Report
        Held-out queries with unchanged vectors, and with the tuned metric. Either each fold is
        evaluated with the candidate that the *other* folds select, so that no query helps to
        select its own metric, or all are evaluated with one candidate fixed in advance.
    seen : ndarray of bool
        Queries with a relevant item that is also relevant to a training query.
    chosen : str
        Name of the chosen candidate, or "unchanged".
    verdict : str
        The reason, in a sentence.
    rankings : tuple of Ranking
        The first items of held-out queries, before and after.
    relevance : Relevance
        Judgments of the queries that could be used.
    skipped : list of str
        Candidates that the time budget left out.
    seconds : float
        Total time.
    query_numbers : ndarray of int, optional
        Numbers of these queries among those passed to `tune`.
    """

    measure: str
    trials: list[TrialResult]
    before: Report
    after: Report
    seen: np.ndarray
    chosen: str
    verdict: str
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    query_numbers: np.ndarray | None = None

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Before against after, for all held-out queries and for those with seen and new items."""
        return {
            name: compare(self.before.take(mask), self.after.take(mask))
            for name, mask in self._groups().items()
        }

    def _groups(self) -> dict[str, np.ndarray]:
        """Masks of the groups of queries that are not empty."""
        held_out = ~np.isnan(self.before.values[self.measure])
        groups = {
            "all": held_out,
            "seen": held_out & self.seen,
            "new": held_out & ~self.seen,
        }
        return {name: mask for name, mask in groups.items() if mask.any()}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python objects."""
        groups = {}
        for name, comparison in self.comparisons.items():
            groups[name] = comparison.to_dict()[self.measure]
        trials = []
        for trial in self.trials:
            mean = float(np.nanmean(trial.values))
            trials.append({"name": trial.name, "mean": mean, "seconds": trial.seconds})
        return {
            "measure": self.measure,
            "chosen": self.chosen,
            "verdict": self.verdict,
            "seconds": self.seconds,
            "skipped": self.skipped,
            "groups": groups,
            "trials": trials,
        }

    def write_page(
        self,
        path: PathLike,
        *,
        title: str = "rankspace tune",
        texts: Sequence[str] | None = None,
        query_texts: Sequence[str] | None = None,
    ) -> Path:
        """Write the report as an HTML page, with the queries that gain and lose most.

        Parameters
        ----------
        path : path
            The file to write.
        title : str, default="rankspace tune"
            Heading of the page.
        texts, query_texts : sequence of str, optional
            Texts of all items and of all queries that were passed to `tune`.

        Returns
        -------
        Path
        """
        numbers = self.query_numbers
        if numbers is None:
            numbers = np.arange(self.relevance.n_queries)
        relevance = self.relevance
        if relevance.query_ids is None:
            relevance = replace(relevance, query_ids=numbers.astype(str))
        describe_query = None
        if query_texts is not None:
            describe_query = [query_texts[int(n)] for n in numbers].__getitem__
        groups = self._groups()
        del groups["all"]
        return write_report(
            path,
            title=title,
            before=self.before,
            after=self.after,
            names=("before", "after"),
            rankings=self.rankings,
            relevance=relevance,
            others={trial.name: self._report_of(trial) for trial in self.trials[1:]},
            describe_item=None if texts is None else texts.__getitem__,
            describe_query=describe_query,
            groups={f"with {name} relevant items": groups[name] for name in groups},
            n_extremes=N_EXTREMES,
            notes=self._page_notes(),
        )

    def _report_of(self, trial: TrialResult) -> Report:
        return replace(self.before, values={self.measure: trial.values})

    def _page_notes(self) -> list[str]:
        notes = [
            self.verdict,
            "After: each held-out query with the candidate that the other folds select, or all "
            "with one candidate that was fixed in advance.",
            "A relevant item is seen if it is also relevant to a training query, otherwise new.",
        ]
        if self.skipped:
            notes.append(self._skipped_note())
        return notes

    def _skipped_note(self) -> str:
        return f"Skipped for lack of time: {', '.join(self.skipped)}."

    def __str__(self) -> str:
        heading = f"held-out {self.measure}"
        lines = [f"{heading}  seconds  candidate"]
        for trial in self.trials:
            mean = f"{np.nanmean(trial.values):.4f}".rjust(len(heading))
            lines.append(f"{mean}  {trial.seconds:7.1f}  {trial.name}")
        return "\n".join([*lines, "", super().__str__()])

    def _header(self) -> list[str]:
        return [
            "held-out queries",
            "before",
            "after",
            "difference",
            "low",
            "high",
            "p-value",
            "queries",
        ]

    def _rows(self) -> list[Any]:
        return [self._row(group) for group in self.comparisons]

    def _row(self, group: str) -> tuple[Any, ...]:
        comparison = self.comparisons[group]
        name = self.measure
        return (
            group,
            comparison.before[name],
            comparison.after[name],
            comparison.difference[name],
            *comparison.interval[name],
            comparison.p_value[name],
            comparison.n_queries[name],
        )

    def _notes(self) -> list[str]:
        if self.skipped:
            return ["", f"{self.verdict} {self._skipped_note()}"]
        return ["", self.verdict]
