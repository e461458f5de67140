"""Evaluation reports: scores per query, means, confidence intervals, significance tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.files import PathLike, check_suffix, write_text
from .._engine.tables import (
    Row,
    as_csv,
    as_frame,
    as_html,
    as_latex,
    as_markdown,
    as_text,
)
from ..relevance.rows import row_numbers, take_or_none
from .significance import bootstrap_interval, randomisation_p_value, weighted_mean

TABLE_SUFFIXES = (".json", ".md", ".csv", ".tex", ".txt")


def agreement(teacher: str) -> str:
    """What is measured with the judgments of a teacher."""
    return (
        f"This is agreement with the teacher ({teacher}), not relevance: nobody judged these "
        "documents."
    )


class _Table:
    """A result that prints as a table and can be written to a file."""

    def _header(self) -> list[str]:
        raise NotImplementedError

    def _rows(self) -> list[Row]:
        raise NotImplementedError

    similarity: str | None = None  # what vectors were compared by

    def _first_lines(self) -> list[str]:
        return [] if self.similarity is None else [f"similarity: {self.similarity}"]

    def _notes(self) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def __str__(self) -> str:
        table = as_text(self._header(), self._rows())
        return "\n".join([*self._first_lines(), table, *self._notes()])

    def to_markdown(self) -> str:
        """A Markdown table."""
        first = [f"{line}\n" for line in self._first_lines()]
        notes = [f"\n{note}" for note in self._notes()]
        return "\n".join([*first, as_markdown(self._header(), self._rows()), *notes])

    def to_csv(self) -> str:
        """The table as comma-separated values."""
        return as_csv(self._header(), self._rows())

    def to_latex(self) -> str:
        """The table in LaTeX; it needs the package booktabs."""
        return as_latex(self._header(), self._rows())

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame whose index is the first column."""
        return as_frame(self._header(), self._rows())

    def _repr_html_(self) -> str:
        first, notes = self._first_lines(), self._notes()
        return as_html(self._header(), self._rows(), before=first, after=notes)

    def to_json(self) -> str:
        """All numbers as JSON; for a report this includes the scores of each query."""
        return json.dumps(self.to_dict(), indent=2)

    def write(self, path: PathLike) -> Path:
        """Write to a file; its suffix .json, .md, .csv, .tex or .txt sets the format."""
        check_suffix(path, "a table", TABLE_SUFFIXES)
        formats = (
            self.to_json,
            self.to_markdown,
            self.to_csv,
            self.to_latex,
            self.__str__,
        )
        by_suffix = dict(zip(TABLE_SUFFIXES, formats, strict=True))
        as_format = by_suffix.get(Path(path).suffix, self.__str__)
        return write_text(path, as_format().rstrip("\n") + "\n")


@dataclass(frozen=True, eq=False, repr=False)
class Report(_Table):
    """Evaluation report: the scores of each query, their means and confidence intervals.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_queries,)
        Score of each query by each measure, NaN where a query is left out.
    smaller_is_better : frozenset of str
        Measures of error, where less is better.
    query_ids : ndarray of str, optional
        Names of the queries.
    weights : ndarray of shape (n_queries,), optional
        Weight of each query in the means.
    n_unlisted : int, default=0
        Number of queries without a list in the ranking; they are scored as if it were empty.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What the ranking compared vectors by, before a metric maps them; None if it is not known.
    teacher : str, optional
        The ranker whose lists are the judgments: then scores are agreement with it.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report
    >>> print(Report({"map": np.array([0.5, 0.7, 0.6])}))
    measure    mean     low    high  queries
    ----------------------------------------
    map      0.6000  0.5000  0.7000        3
    """

    values: dict[str, np.ndarray]
    smaller_is_better: frozenset[str] = frozenset()
    query_ids: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_unlisted: int = 0
    similarity: str | None = None
    teacher: str | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, including those left out."""
        return next(iter(self.values.values())).size

    @cached_property
    def means(self) -> dict[str, float]:
        """Weighted mean of each measure over the queries not left out; NaN if there are none."""
        return {name: weighted_mean(*self._counted(name)) for name in self.values}

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % bootstrap confidence interval of each mean over queries, with a fixed seed."""
        return {name: bootstrap_interval(*self._counted(name)) for name in self.values}

    @property
    def left_out(self) -> dict[str, int]:
        """Number of queries that each measure leaves out, as they have nothing to rank."""
        return {
            name: int(np.isnan(values).sum()) for name, values in self.values.items()
        }

    def take(self, queries: Any, measures: Iterable[str] | None = None) -> Report:
        """Report of a subset of the queries.

        Parameters
        ----------
        queries : array-like of int or bool
            Which queries, in the given order.
        measures : iterable of str, optional
            Which measures; all by default.

        Returns
        -------
        Report
            Its ``n_unlisted`` is 0: which queries had no list is not stored.

        Examples
        --------
        >>> import numpy as np
        >>> from rankspace import Report
        >>> Report({"map": np.array([0.5, 0.7, 0.6])}).take([2, 0])
        Report(2 queries, map=0.5500)
        """
        queries = row_numbers(queries, self.n_queries)
        names = self.values if measures is None else measures
        return Report(
            {name: self.values[name][queries] for name in names},
            self.smaller_is_better,
            take_or_none(self.query_ids, queries),
            take_or_none(self.weights, queries),
            similarity=self.similarity,
            teacher=self.teacher,
        )

    def _query_weights(self) -> np.ndarray:
        if self.weights is None:
            return np.ones(self.n_queries)
        return self.weights

    def _counted(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Scores and weights of the queries that are not left out."""
        values = self.values[name]
        counted = ~np.isnan(values)
        return values[counted], self._query_weights()[counted]

    def to_dict(self) -> dict[str, Any]:
        """Means, intervals, counts and scores per query as plain Python objects."""
        measures = {}
        for name, mean in self.means.items():
            low, high = self.intervals[name]
            measures[name] = {
                "mean": _plain(mean),
                "low": _plain(low),
                "high": _plain(high),
                "larger_is_better": name not in self.smaller_is_better,
                "left_out": self.left_out[name],
                "per_query": [_plain(value) for value in self.values[name].tolist()],
            }
        ids = None if self.query_ids is None else self.query_ids.tolist()
        return {
            "n_queries": self.n_queries,
            "n_unlisted": self.n_unlisted,
            "similarity": self.similarity,
            "teacher": self.teacher,
            "query_ids": ids,
            "measures": measures,
        }

    def _header(self) -> list[str]:
        return ["measure", "mean", "low", "high", "queries"]

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for name, mean in self.means.items():
            n_counted = self.n_queries - self.left_out[name]
            label = _label(name, self.smaller_is_better)
            rows.append((label, mean, *self.intervals[name], n_counted))
        return rows

    def _notes(self) -> list[str]:
        notes = []
        if self.teacher is not None:
            notes.append(agreement(self.teacher))
        if self.n_unlisted:
            notes.append(
                f"{self.n_unlisted} of {self.n_queries} judged queries have no list in the ranking "
                "and are scored as if it were empty."
            )
        return notes + self._left_out_notes()

    def _left_out_notes(self) -> list[str]:
        left_out = {name: n for name, n in self.left_out.items() if n}
        if not left_out:
            return []
        why = "nothing relevant, or nothing irrelevant to compare with"
        counts = set(self.left_out.values())
        if len(counts) == 1:
            return [f"{counts.pop()} of {self.n_queries} queries left out: {why}."]
        by_measure = ", ".join(f"{n} by {name}" for name, n in left_out.items())
        return [f"Of {self.n_queries} queries left out ({why}): {by_measure}."]

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self.means.items())
        return f"Report({self.n_queries} queries, {means})"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(_Table):
    """Comparison of two reports of the same queries, with p-values, measure by measure.

    Parameters
    ----------
    before, after : dict of str to float
        Means over the queries that neither report leaves out.
    difference : dict of str to float
        ``after - before``.
    interval : dict of str to tuple of float
        95 % bootstrap confidence interval of the difference.
    p_value : dict of str to float
        Two-sided p-value of a paired randomisation test, which flips the signs of the differences
        of queries: the probability of a difference this large if the two were interchangeable.
    n_queries : dict of str to int
        Number of queries that neither report leaves out.
    smaller_is_better : frozenset of str
        Measures of error, where less is better.
    similarity : str, optional
        What vectors were compared by, or what before and what after; None if neither is known.
    teacher : str, optional
        The ranker whose lists are the judgments of both reports.
    """

    before: dict[str, float]
    after: dict[str, float]
    difference: dict[str, float]
    interval: dict[str, tuple[float, float]]
    p_value: dict[str, float]
    n_queries: dict[str, int]
    smaller_is_better: frozenset[str] = frozenset()
    similarity: str | None = None
    teacher: str | None = None

    def _notes(self) -> list[str]:
        return [] if self.teacher is None else [agreement(self.teacher)]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return {
            name: {
                "before": _plain(self.before[name]),
                "after": _plain(self.after[name]),
                "difference": _plain(self.difference[name]),
                "low": _plain(self.interval[name][0]),
                "high": _plain(self.interval[name][1]),
                "p_value": self.p_value[name],
                "n_queries": self.n_queries[name],
                "larger_is_better": name not in self.smaller_is_better,
            }
            for name in self.before
        }

    def _header(self) -> list[str]:
        numbers = ["before", "after", "difference", "low", "high", "p-value"]
        return ["measure", *numbers, "queries"]

    def _rows(self) -> list[Row]:
        return [
            (
                _label(name, self.smaller_is_better),
                self.before[name],
                self.after[name],
                self.difference[name],
                *self.interval[name],
                self.p_value[name],
                self.n_queries[name],
            )
            for name in self.before
        ]

    def __repr__(self) -> str:
        differences = [
            f"{name}: {self.difference[name]:+.4f} (p={self.p_value[name]:.4f})"
            for name in self.before
        ]
        return f"Comparison({', '.join(differences)})"


def compare(before: Report, after: Report, *, random_state: int = 0) -> Comparison:
    """Compare two reports by a paired significance test.

    Parameters
    ----------
    before, after : Report
        Reports of the same queries. Measures that only one of them has are ignored, and so are
        queries that one of them leaves out.
    random_state : int, default=0
        Seed of the bootstrap and the randomisation test.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report, compare
    >>> before = Report({"map": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])})
    >>> after = Report({"map": np.array([0.2, 0.4, 0.4, 0.5, 0.7, 0.7])})
    >>> compare(before, after).p_value
    {'map': 0.03125}
    """
    names = [name for name in before.values if name in after.values]
    if not names:
        raise ValueError(
            f"the reports must share a measure: got {', '.join(before.values)} and "
            f"{', '.join(after.values)}."
        )
    after = aligned(before, after)
    similarity = _joint_similarity(before.similarity, after.similarity)
    comparison = Comparison(
        {}, {}, {}, {}, {}, {}, before.smaller_is_better, similarity, before.teacher
    )
    for name in names:
        old, new, w = paired_values(before, after, name)
        comparison.before[name] = weighted_mean(old, w)
        comparison.after[name] = weighted_mean(new, w)
        comparison.difference[name] = weighted_mean(new - old, w)
        comparison.interval[name] = bootstrap_interval(new - old, w, random_state)
        comparison.p_value[name] = randomisation_p_value(new - old, w, random_state)
        comparison.n_queries[name] = old.size
    return comparison


def aligned(before: Report, after: Report) -> Report:
    """The second report in the order of the queries of the first."""
    after = after.take(same_queries(before, after))
    if not np.array_equal(before._query_weights(), after._query_weights()):
        raise ValueError(
            "the reports must weight the queries alike: their weights differ."
        )
    if before.teacher != after.teacher:
        raise ValueError(
            "the reports must be by the same judgments: got those of "
            f"{before.teacher or 'people'} and of {after.teacher or 'people'}."
        )
    return after


def paired_values(
    before: Report, after: Report, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the queries that neither report leaves out, and their weights."""
    counted = ~np.isnan(before.values[name]) & ~np.isnan(after.values[name])
    if not counted.any():
        raise ValueError(f"no query has a score for {name} in both reports.")
    weights = before._query_weights()[counted]
    return before.values[name][counted], after.values[name][counted], weights


def same_queries(before: Report, after: Report) -> np.ndarray:
    """Position of each query of the first report in the second, by query id if both have ids."""
    if before.n_queries != after.n_queries:
        raise ValueError(
            f"the reports must be of the same queries: got {before.n_queries} and "
            f"{after.n_queries}."
        )
    if before.query_ids is None or after.query_ids is None:
        return np.arange(before.n_queries)
    order = np.argsort(after.query_ids)
    place = np.searchsorted(after.query_ids, before.query_ids, sorter=order)
    positions = order[np.minimum(place, order.size - 1)]
    if not np.array_equal(after.query_ids[positions], before.query_ids):
        raise ValueError(
            "the reports must be of the same queries: their query ids differ."
        )
    return positions


def _joint_similarity(before: str | None, after: str | None) -> str | None:
    if before == after:
        return before
    return f"{before or 'not known'} before, {after or 'not known'} after"


def _label(name: str, smaller_is_better: frozenset[str]) -> str:
    return f"{name} (error)" if name in smaller_is_better else name


def _plain(value: float) -> float | None:
    """A float for JSON, which has no NaN: None instead."""
    return None if value != value else float(value)
