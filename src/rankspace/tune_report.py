"""What tuning tried, and what its choice is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .results import Comparison, Report, _Table, compare


@dataclass(frozen=True, eq=False)
class Tried:
    """One candidate: the measure of every held-out query, and the seconds it took."""

    name: str
    values: np.ndarray
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class TuneReport(_Table):
    """What was tried, what was chosen, and what it is worth on held-out queries.

    Parameters
    ----------
    measure : str
        What the choice was made by.
    tried : list of Tried
        All candidates, vectors as they are first.
    before, after : Report
        Held-out queries with the vectors as they are, and with the choice that the *other* folds
        make, so that no query has a say in what it is judged by.
    seen : ndarray of bool
        Queries with a relevant item that training judgments also named.
    chosen : str
        The choice of all folds together, or the vectors as they are.
    verdict : str
        Why, in a sentence.
    skipped : list of str
        Candidates that the budget left no time for.
    seconds : float
        All in all.
    """

    measure: str
    tried: list[Tried]
    before: Report
    after: Report
    seen: np.ndarray
    chosen: str
    verdict: str
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def comparisons(self) -> dict[str, Comparison]:
        """Before against after: all held-out queries, and those with seen and with new items."""
        return {
            name: compare(_part(self.before, mask), _part(self.after, mask))
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
            "groups": {name: c.to_dict()[self.measure] for name, c in self.comparisons.items()},
            "tried": [
                {"name": t.name, "mean": float(np.nanmean(t.values)), "seconds": t.seconds}
                for t in self.tried
            ],
        }

    def __str__(self) -> str:
        tried = [f"{'held-out ' + self.measure:>12}  seconds  tried"]
        tried += [f"{np.nanmean(t.values):12.4f}  {t.seconds:7.1f}  {t.name}" for t in self.tried]
        return "\n".join(["\n".join(tried), "", super().__str__()])

    def _header(self) -> list[str]:
        return ["held-out queries", "before", "after", "difference", "low", "high", "p-value",
                "queries"]  # fmt: skip

    def _rows(self) -> list[Any]:
        name = self.measure
        return [
            (group, c.before[name], c.after[name], c.difference[name], *c.interval[name],
             c.p_value[name], c.n_queries[name])
            for group, c in self.comparisons.items()
        ]  # fmt: skip

    def _notes(self) -> list[str]:
        skipped = f" No time was left for: {', '.join(self.skipped)}." if self.skipped else ""
        return ["", self.verdict + skipped]


def _groups(before: Report, measure: str, seen: np.ndarray) -> dict[str, np.ndarray]:
    counted = ~np.isnan(before.values[measure])
    groups = {"all": counted, "seen": counted & seen, "new": counted & ~seen}
    return {name: mask for name, mask in groups.items() if mask.any()}


def _part(report: Report, mask: np.ndarray) -> Report:
    values = {name: values[mask] for name, values in report.values.items()}
    weights = None if report.weights is None else report.weights[mask]
    return Report(values, report.smaller_is_better, None, weights)
