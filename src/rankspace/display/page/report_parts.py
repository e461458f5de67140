"""Parts of the report page: groups of queries, and the queries that gain and lose most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...evaluation.report import Report, compare, same_queries
from . import html as _page
from .html import measure_label, section, signed, text
from .study import PairedReports


def groups_section(study: PairedReports, groups: Mapping[str, np.ndarray]) -> str:
    """The first measure before and after, for all queries and for each group of them."""
    if not groups:
        return ""
    name, rows = study.measure, []
    everyone = np.ones(study.before.n_queries, dtype=bool)
    for label, mask in {"all queries": everyone, **groups}.items():
        mask = np.asarray(mask) & np.isfinite(study.gains)
        if mask.any():
            before, after = (report.take(mask, [name]) for report in study.reports)
            cells = _page.measure_cells(name, before, after, compare(before, after))
            size = f"<small>{int(mask.sum()):,}</small>"
            rows.append(f'<th scope="row">{text(label)}{size}</th>{cells}')
    heads = [_page.column("queries", "left"), *map(_page.column, study.names)]
    heads += [_page.column("change"), _page.column("p-value")]
    caption = f"{text(measure_label(name))}, means with 95 % intervals."
    return section("groups", "Groups of queries", _page.table(caption, heads, rows))


def methods_section(study: PairedReports, others: Mapping[str, Report]) -> str:
    """The means of all methods, the two of the page first."""
    if not others:
        return ""
    methods = dict(zip(study.names, study.reports, strict=True))
    for name, report in others.items():
        same_queries(study.before, report)
        methods[str(name)] = report
    return section(
        "methods", "All methods", _page.methods_table(methods, study.before.values)
    )


def extremes_section(lists: Any, n: int) -> str:
    """The lists of the queries that gain most and of those that lose most."""
    if not n:
        return ""
    study = lists.study
    order = study.counted[np.argsort(study.gains[study.counted], kind="stable")]
    most = [q for q in order[::-1][:n].tolist() if study.gains[q] > 0]
    least = [q for q in order[:n].tolist() if study.gains[q] < 0]
    body = "".join(
        f"<h3>{heading}</h3>"
        + ("".join(_shown(lists, q) for q in queries) or "<p>None.</p>")
        for heading, queries in (("Most improved", most), ("Most harmed", least))
    )
    return section("extremes", "The largest gains and losses", body)


def _shown(lists: Any, query: int) -> str:
    """One query, folded up: its text and gain, and both lists."""
    study = lists.study
    told = study.query_name(query)
    if lists.describe_query is not None:
        told += f": {_page.shorten(lists.describe_query(query))}"
    tables = "".join(lists.table(query, side) for side in (0, 1))
    gain = f"{measure_label(study.measure)} {signed(study.gains[query])}"
    return (
        f"<details><summary>{text(told)} <b>{text(gain)}</b></summary>"
        f'<div class="pair">{tables}</div></details>'
    )
