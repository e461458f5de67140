"""Tables of measures on the report page: means, confidence intervals and p-values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...evaluation.report import Comparison, Report, compare, same_queries
from .html import (
    column,
    count,
    interval,
    measure_label,
    measure_meaning,
    number,
    p_text,
    section,
    signed,
    table,
    text,
)
from .paired import PairedReports
from .svg import interval_bars

ALPHA = 0.05  # significance level of the page's verdicts

_NOTES = {"better": "", "equal": "not significant", "worse": "a loss"}


# ---------------------------------------------------------------------- verdicts


def outcome(name: str, comparison: Comparison) -> str:
    """Whether a measure got significantly "better" or "worse", else "equal"."""
    difference = comparison.difference[name]
    if comparison.p_value[name] >= ALPHA or difference == 0:
        return "equal"
    improved = (difference < 0) == (name in comparison.smaller_is_better)
    return "better" if improved else "worse"


def verdict(name: str, comparison: Comparison, names: tuple[str, str]) -> str:
    """One sentence on the change of a measure and its significance."""
    difference = comparison.difference[name]
    low, high = comparison.interval[name]
    label = measure_label(name)
    if name in comparison.smaller_is_better:
        label += ", where smaller is better,"
    numbers = (
        f"from {number(comparison.before[name])} ({names[0]}) to {number(comparison.after[name])} "
        f"({names[1]}): {signed(difference)}, 95 % interval {signed(low)} to {signed(high)}, "
        f"p\u00a0{p_text(comparison.p_value[name])}, on "
        f"{count(comparison.n_queries[name], 'query')}."
    )
    kind = outcome(name, comparison)
    if kind == "equal":
        return f"No significant change: {label} goes {numbers}"
    verb = "rises" if difference > 0 else "falls"
    if kind == "worse":
        numbers += f" This is a loss: {names[1]} ranks worse than {names[0]}."
    return f"{label} {verb} {numbers}"


# ---------------------------------------------------------------------- sections


def measures_section(paired: PairedReports) -> str:
    """All measures: both means, their difference, its p-value and a picture."""
    rows = [
        _measure_head(name, paired.before)
        + _comparison_cells(name, paired.before, paired.after, paired.comparison)
        + _interval_picture(name, paired)
        for name in paired.before.values
    ]
    heads = [*_comparison_heads("measure", paired.names), column("from 0 to 1", "plot")]
    caption = (
        'Means over queries, with 95 % intervals. <span class="meaning">'
        f"Upper bar: {text(paired.names[0])}. Lower bar: {text(paired.names[1])}.</span>"
    )
    return section("measures", "All measures", table(caption, heads, rows))


def groups_section(paired: PairedReports, groups: Mapping[str, np.ndarray]) -> str:
    """The primary measure for all queries and for each group of queries."""
    if not groups:
        return ""
    name = paired.measure
    rows = []
    everyone = np.ones(paired.before.n_queries, dtype=bool)
    for label, mask in {"all queries": everyone, **groups}.items():
        queries = np.flatnonzero(np.asarray(mask) & np.isfinite(paired.gains))
        if not queries.size:
            continue
        before = _group(paired.before, name, queries)
        after = _group(paired.after, name, queries)
        head = f'<th scope="row">{text(label)}<small>{queries.size:,}</small></th>'
        cells = _comparison_cells(name, before, after, compare(before, after))
        rows.append(head + cells)
    caption = f"{text(paired.label)}, means with 95 % intervals."
    heads = _comparison_heads("queries", paired.names)
    return section("groups", "Groups of queries", table(caption, heads, rows))


def _group(report: Report, name: str, queries: np.ndarray) -> Report:
    """One measure of some queries."""
    weights = None
    if report.weights is not None:
        weights = report.weights[queries]
    values = {name: report.values[name][queries]}
    return Report(
        values,
        report.smaller_is_better,
        weights=weights,
        similarity=report.similarity,
    )


def methods_section(paired: PairedReports, others: Mapping[str, Report]) -> str:
    """Means of all methods, one per row."""
    if not others:
        return ""
    for report in others.values():
        same_queries(paired.before, report)  # raises if the queries differ
    methods = dict(zip(paired.names, paired.reports, strict=True)) | dict(others)
    measures = list(paired.before.values)
    rows = []
    for method, report in methods.items():
        cells = "".join(_mean_cell(report, name) for name in measures)
        rows.append(f'<th scope="row">{text(method)}</th>{cells}')
    heads = [column(measure_label(name)) for name in measures]
    caption = "Means over the same queries, with 95 % intervals."
    body = table(caption, [column("method", "left"), *heads], rows)
    return section("methods", "All methods", body)


# ---------------------------------------------------------------------- cells


def _comparison_heads(first: str, names: tuple[str, str]) -> list[str]:
    others = (*names, "change", "p-value")
    return [column(first, "left"), *(column(name) for name in others)]


def _comparison_cells(
    name: str, before: Report, after: Report, comparison: Comparison
) -> str:
    """Cells with both means of a measure, their difference and its p-value."""
    kind = outcome(name, comparison)
    p = p_text(comparison.p_value[name]).removeprefix("=\u00a0")
    return (
        f"{_mean_cell(before, name)}{_mean_cell(after, name)}"
        f'<td><b class="{kind}">{signed(comparison.difference[name])}</b>'
        f"<small>{interval(comparison.interval[name], signed)}</small></td>"
        f"<td>{text(p)}<small>{_NOTES[kind]}</small></td>"
    )


def _mean_cell(report: Report, name: str) -> str:
    if name not in report.values:
        return "<td>–</td>"
    return f"<td>{number(report.means[name])}<small>{interval(report.intervals[name])}</small></td>"


def _measure_head(name: str, report: Report) -> str:
    note = ""
    if name in report.smaller_is_better:
        note = "<small>smaller is better</small>"
    meaning = f'<small class="meaning">{text(measure_meaning(name))}</small>'
    return f'<th scope="row">{text(measure_label(name))}{note}{meaning}</th>'


def _interval_picture(name: str, paired: PairedReports) -> str:
    """A cell with both intervals drawn; empty if they are not within 0 and 1."""
    before = (paired.before.means[name], *paired.before.intervals[name])
    after = (paired.after.means[name], *paired.after.intervals[name])
    if not all(0 <= value <= 1 for value in before + after):
        return '<td class="plot"></td>'
    label = f"{measure_label(name)}: {number(before[0])}, then {number(after[0])}"
    return f'<td class="plot">{interval_bars(before, after, label)}</td>'
