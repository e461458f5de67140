"""What tuning tried, and what its choice is worth."""

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

EXTREMES = 3  # queries of each kind that the page shows


@dataclass(frozen=True, eq=False)
class TrialResult:
    """One candidate: the measure of every held-out query, the seconds of its folds, its lists.

    What comes along with another's fit has 0 seconds: they are counted there. To be picked before
    the preferred candidate it must be ahead of it by more than ``lead`` standard errors.
    """

    name: str
    values: np.ndarray
    seconds: float
    lists: Ranking
    part_of: str = ""
    lead: float = 0.0

    @property
    def fit(self) -> str:
        """Its own name, or that of the candidate it is a part of."""
        return self.part_of or self.name


@dataclass(frozen=True, eq=False, repr=False)
class TuneReport(_Table):
    """What was tried, what was chosen, and what it is worth on held-out queries.

    Parameters
    ----------
    measure : str
        What the choice was made by.
    tried : list of TrialResult
        All candidates, vectors as they are first.
    before, after : Report
        Held-out queries with the vectors as they are, and with the choice that the *other* folds
        make, so that no query has a say in what it is judged by; or with one candidate that was
        tested by itself.
    seen : ndarray of bool
        Queries with a relevant item that training judgments also named.
    chosen : str
        The choice of all folds together, or the vectors as they are.
    verdict : str
        Why, in a sentence.
    rankings : tuple of Ranking
        The first items of held-out queries, before and after.
    relevance : Relevance
        Judgments of the queries that could be used.
    skipped : list of str
        Candidates that the budget left no time for.
    seconds : float
        All in all.
    numbers : ndarray of int, optional
        Which of the queries that were given these are.
    """

    measure: str
    tried: list[TrialResult]
    before: Report
    after: Report
    seen: np.ndarray
    chosen: str
    verdict: str
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    numbers: np.ndarray | None = None

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Before against after: all held-out queries, and those with seen and with new items."""
        return {
            name: compare(self.before.take(mask), self.after.take(mask))
            for name, mask in _groups(self.before, self.measure, self.seen).items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python objects."""
        return {
            "measure": self.measure,
            "chosen": self.chosen,
            "verdict": self.verdict,
            "seconds": self.seconds,
            "skipped": self.skipped,
            "groups": {
                name: c.to_dict()[self.measure] for name, c in self.comparisons.items()
            },
            "tried": [
                {
                    "name": t.name,
                    "mean": float(np.nanmean(t.values)),
                    "seconds": t.seconds,
                }
                for t in self.tried
            ],
        }

    def write_page(
        self,
        path: PathLike,
        *,
        title: str = "rankspace tune",
        texts: Sequence[str] | None = None,
        query_texts: Sequence[str] | None = None,
    ) -> Path:
        """Write the HTML page of it, with the queries that gain and lose most.

        Parameters
        ----------
        path : path
            Where to write.
        title : str, default="rankspace tune"
            Heading of the page.
        texts, query_texts : sequence of str, optional
            Texts of all items and of all queries that `tune` was given.

        Returns
        -------
        Path
        """
        numbers = (
            np.arange(self.relevance.n_queries)
            if self.numbers is None
            else self.numbers
        )
        relevance = self.relevance
        if relevance.query_ids is None:
            relevance = replace(relevance, query_ids=numbers.astype(str))
        reports = {
            t.name: Report(
                {self.measure: t.values},
                self.before.smaller_is_better,
                self.before.query_ids,
                self.before.weights,
            )
            for t in self.tried[1:]
        }
        groups = _groups(self.before, self.measure, self.seen)
        del groups["all"]
        skipped = f"No time was left for: {', '.join(self.skipped)}."
        return write_report(
            path,
            title=title,
            before=self.before,
            after=self.after,
            names=("before", "after"),
            rankings=self.rankings,
            relevance=relevance,
            others=reports,
            describe_item=None if texts is None else lambda item: texts[item],
            describe_query=None
            if query_texts is None
            else lambda q: query_texts[numbers[q]],
            groups={f"with {name} relevant items": groups[name] for name in groups},
            n_extremes=EXTREMES,
            notes=[
                self.verdict,
                "After: each held-out query by the choice that the other folds make, or all by one "
                "candidate that was tested by itself.",
                "A relevant item is seen if training judgments named it too, else new.",
                *([skipped] if self.skipped else []),
            ],
        )

    def __str__(self) -> str:
        tried = [f"{'held-out ' + self.measure:>12}  seconds  tried"]
        tried += [
            f"{np.nanmean(t.values):12.4f}  {t.seconds:7.1f}  {t.name}"
            for t in self.tried
        ]
        return "\n".join(["\n".join(tried), "", super().__str__()])

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
        name = self.measure
        return [
            (
                group,
                c.before[name],
                c.after[name],
                c.difference[name],
                *c.interval[name],
                c.p_value[name],
                c.n_queries[name],
            )
            for group, c in self.comparisons.items()
        ]

    def _notes(self) -> list[str]:
        skipped = (
            f" No time was left for: {', '.join(self.skipped)}." if self.skipped else ""
        )
        return ["", self.verdict + skipped]


def _groups(before: Report, measure: str, seen: np.ndarray) -> dict[str, np.ndarray]:
    counted = ~np.isnan(before.values[measure])
    groups = {"all": counted, "seen": counted & seen, "new": counted & ~seen}
    return {name: mask for name, mask in groups.items() if mask.any()}
