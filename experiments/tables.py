"""Tables of results: as Markdown, CSV, LaTeX and data frames, and paired tests between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from rankspace import Report
from rankspace._engine.tables import as_csv, as_frame, as_latex, as_markdown

CONFIDENCE = 0.95
PAIRED_HEADER = [
    "method",
    "mean",
    "low",
    "high",
    "difference",
    "difference low",
    "difference high",
    "p",
    "p (Holm)",
]
PAIRED_NOTE = (
    "Paired tests: means over splits with 95 % intervals, differences to the row named in the "
    "title, and p-values of the corrected resampled t-test (Nadeau & Bengio 2003), which allows "
    "for training parts that overlap. 'p (Holm)' is corrected for the number of rows compared."
)


QUERIES_NOTE = (
    "Paired tests over test queries: means with 95 % intervals, differences to the row named in "
    "the title, and p-values of paired t-tests, which speak of other queries after the same "
    "training. 'p (Holm)' is corrected for the number of rows compared."
)


@dataclass(frozen=True)
class Table:
    """A table of results: a title, a header, and rows that begin with their name."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "title": self.title,
            "header": list(self.header),
            "rows": [*map(list, self.rows)],
        }

    def to_markdown(self) -> str:
        """As Markdown, without the title."""
        return as_markdown(self.header, self.rows)

    def to_csv(self) -> str:
        """As comma-separated values with all digits, without the title."""
        return as_csv(self.header, self.rows)

    def to_latex(self) -> str:
        """As a LaTeX table, which needs the package booktabs."""
        return as_latex(self.header, self.rows, self.title)

    def to_frame(self) -> Any:
        """As a pandas DataFrame whose index is the first column."""
        return as_frame(self.header, self.rows)


# ---------------------------------------------------------------------- paired tests


class Estimate(NamedTuple):
    """A mean over splits, its confidence interval, and the p-value of a mean of 0."""

    mean: float
    low: float
    high: float
    p: float


def estimate(values: np.ndarray, overlap: float) -> Estimate:
    """Mean over splits by the corrected resampled t-test.

    Splits that share training rows are not independent, so the variance of the mean is not 1/n of
    that of the values but 1/n + ``overlap``, the number of test rows over that of training rows.
    """
    n, mean = values.size, float(values.mean())
    error = float(values.std(ddof=1)) * (1 / n + overlap) ** 0.5
    width = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    p = float(mean == 0)
    if error > 0:
        p = 2 * float(scipy.stats.t.sf(abs(mean) / error, n - 1))
    return Estimate(mean, mean - width, mean + width, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down rule."""
    order = np.argsort(p_values)
    steps = np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(steps * np.array(p_values)[order])
    return np.minimum(corrected, 1.0).tolist()


def paired_table(
    title: str, values: Mapping[str, np.ndarray], against: str, overlap: float
) -> Table:
    """Means of rows, and paired tests of each against one of them.

    Parameters
    ----------
    title : str
        What the values are.
    values : mapping of str to ndarray
        For each row, its value on each split, the same splits for all; at least two.
    against : str
        The row that the others are compared with.
    overlap : float
        Number of test rows over that of training rows; 0 for independent values.
    """
    if against not in values:
        raise ValueError(
            f"against must be the label of a method, one of {', '.join(values)}: got {against!r}."
        )
    sizes = {row.size for row in values.values()}
    if len(sizes) > 1 or min(sizes) < 2:
        raise ValueError(
            f"paired tests need the same splits for all rows, at least 2: got {sorted(sizes)}."
        )
    others = [name for name in values if name != against]
    gains = {name: estimate(values[name] - values[against], overlap) for name in others}
    corrected = dict(zip(others, holm([gains[name].p for name in others]), strict=True))
    rows: list[list[Any]] = []
    for name, row in values.items():
        tested: list[Any] = ["–"] * 5
        if name in gains:
            tested = [*gains[name], corrected[name]]
        rows.append([name, *estimate(row, overlap)[:3], *tested])
    return Table(f"{title}, against {against}", PAIRED_HEADER, rows)


def scores_of_queries(report: Report, measure: str) -> list[float]:
    """The scores of the queries that count, as JSON stores them."""
    values = report.values[measure]
    return np.round(values[~np.isnan(values)], 6).tolist()


def table_of_queries(
    title: str, scores: Mapping[str, np.ndarray], against: str
) -> list[Table]:
    """Paired tests over the test queries, if there is a row to compare with."""
    if against not in scores or len(scores) < 2:
        return []
    n = len(scores[against])
    return [paired_table(f"{title}, {n:,} queries", scores, against, 0.0)]
