"""Ranked lists of single queries, before and after, with the relevant items marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from ...evaluation.matching import list_of, new_items
from .explained import Explain
from .html import column, count, number, section, shorten, signed, table, text
from .paired import PairedReports

Describe = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class QueryLists:
    """The ranked lists of each query, and the texts of queries and items."""

    paired: PairedReports
    n_listed: int
    describe_item: Describe | None
    describe_query: Describe | None

    def __post_init__(self) -> None:
        if self.n_listed < 1:
            raise ValueError(f"n_listed must be at least 1: got {self.n_listed}.")

    @cached_property
    def _item_numbers(self) -> list[np.ndarray]:
        relevance = self.paired.relevance
        return [new_items(ranking, relevance) for ranking in self.paired.rankings]

    def ranked(self, query: int, side: int) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Items (-1 if unknown to relevance), names and distances, as `evaluate` reads them."""
        ranking = self.paired.rankings[side]
        relevance = self.paired.relevance
        item_numbers = self._item_numbers[side]
        at = list_of(ranking, relevance, query)
        if at < 0:
            return np.zeros(0, dtype=np.int64), [], np.zeros(0)
        items, distances = ranking[at]
        names = np.array(ranking.ids(at), dtype=object)
        if ranking.item_ids is None and relevance.item_ids is not None:
            names = relevance.item_ids[items]
        if item_numbers.size:
            items = item_numbers[items]
        # A query that is an item itself is not in its own list.
        others = (items < 0) | (items != relevance.query_items[query])
        return items[others], names[others].tolist(), distances[others]

    def n_relevant(self, query: int, side: int) -> int:
        """Number of relevant items among those shown."""
        items, _, _ = self.ranked(query, side)
        relevant = self.paired.relevance.relevant(query)
        return int(np.isin(items[: self.n_listed], relevant).sum())

    @cached_property
    def _is_graded(self) -> bool:
        """Whether relevant items have different grades."""
        relevance = self.paired.relevance
        relevant = relevance.grades >= relevance.min_relevant_grade
        return np.unique(relevance.grades[relevant]).size > 1

    @property
    def _unjudged(self) -> str:
        """The label of items without a judgment."""
        relevance = self.paired.relevance
        if "irrelevant" in (relevance.unjudged, relevance.background):
            return "–"
        return "unjudged"

    def _judgments(self, query: int) -> dict[int, str]:
        """The label of each judged item."""
        relevance = self.paired.relevance
        labels = {}
        for item, grade in zip(*relevance.judged(query), strict=True):
            if grade < relevance.min_relevant_grade:
                labels[int(item)] = "–"
            elif self._is_graded:
                labels[int(item)] = f"relevant, grade {grade:g}"
            else:
                labels[int(item)] = "relevant"
        return labels

    def describe(self, item: int, name: str) -> str:
        """The text of an item, or its name."""
        if self.describe_item is None or item < 0:
            return name
        return self.describe_item(int(item))

    def query_title(self, query: int) -> str:
        """The id of a query and its text."""
        name = self.paired.query_name(query)
        if self.describe_query is None:
            return name
        return f"{name}: {shorten(self.describe_query(query))}"

    def tables(self, query: int) -> str:
        """Both lists of a query side by side."""
        before = self._table(query, 0)
        after = self._table(query, 1)
        return f'<div class="pair">{before}{after}</div>'

    @cached_property
    def _shows_scores(self) -> tuple[bool, bool]:
        """Whether each ranking is by similarities: these are kept as negative distances."""
        before, after = self.paired.rankings
        return bool((before.distances < 0).any()), bool((after.distances < 0).any())

    def _table(self, query: int, side: int) -> str:
        """The first items of a list, relevant ones marked by a sign, a tint and weight."""
        heads = [
            column("rank"),
            column("", "mark"),
            column("item", "item"),
            column("score" if self._shows_scores[side] else "distance"),
        ]
        if side:
            heads.append(column("was"))
        rows = self._rows(query, side)
        value = number(self.paired.reports[side].values[self.paired.measure][query])
        caption = (
            f"<strong>{text(self.paired.names[side])}</strong> "
            f"{text(self.paired.label)} {value}, "
            f"{self.n_relevant(query, side)} of the first {len(rows)} relevant"
        )
        return table(caption, heads, rows, "list")

    def _rows(self, query: int, side: int) -> list[str]:
        """The cells of each item; in the list after, also its rank before."""
        judgments = self._judgments(query)
        _, names_before, _ = self.ranked(query, 0)
        ranks_before = {name: rank for rank, name in enumerate(names_before, 1)}
        rows: list[str] = []
        listed = zip(*self.ranked(query, side), strict=True)
        for item, name, distance in islice(listed, self.n_listed):
            judgment = judgments.get(int(item), self._unjudged)
            shown = 0.0 - distance if self._shows_scores[side] else distance
            numbers = [number(shown)]
            if side:
                numbers.append(str(ranks_before.get(name, "–")))
            description = self.describe(item, name)
            rows.append(_cells(len(rows) + 1, judgment, description, numbers))
        return rows


def _cells(rank: int, judgment: str, description: str, numbers: list[str]) -> str:
    kind = ""
    sign = ""
    if judgment.startswith("relevant"):
        kind = "hit"
        sign = "✓"
        judgment = f" {judgment}"
    cells = (
        f'<td class="{kind}">{rank}</td>'
        f'<td class="{kind} mark">{sign}<span class="word">{text(judgment)}</span></td>'
        f'<td class="{kind} item">{text(shorten(description))}</td>'
    )
    return cells + "".join(f'<td class="{kind}">{value}</td>' for value in numbers)


# ---------------------------------------------------------------------- sections


def example_section(lists: QueryLists, example: int | None) -> str:
    """The lists of one example query, and the reason for this query."""
    n_queries = lists.paired.relevance.n_queries
    if example is None:
        query = _clear_gain(lists)
        reason = _reason(lists.paired, query)
    elif 0 <= example < n_queries:
        query = int(example)
        reason = "The author of this page chose this query; it may not be typical."
    else:
        raise ValueError(
            f"example must be the number of a query, from 0 to {n_queries - 1}: got {example}."
        )
    body = (
        f"<p>Query {text(lists.query_title(query))}</p>"
        f'<p class="soft">{text(reason)} The column “was” gives the rank before.</p>'
        f"{lists.tables(query)}"
    )
    return section("example", "One query, before and after", body)


def _clear_gain(lists: QueryLists) -> int:
    """Of the queries near the 90th percentile of gains, the one whose lists differ most."""
    order = lists.paired.by_gain
    last = order.size - 1
    candidates = order[round(0.85 * last) : round(0.95 * last) + 1].tolist()
    differences = [lists.n_relevant(q, 1) - lists.n_relevant(q, 0) for q in candidates]
    return candidates[int(np.argmax(differences))]


def _reason(paired: PairedReports, query: int) -> str:
    rule = (
        "Selected automatically: among the queries near the 90th percentile of the gain in "
        f"{paired.label} ({count(paired.counted.size, 'query')} in all), this "
        "one has the largest difference in its first items."
    )
    if paired.gains[query] > 0:
        return f"{rule} It shows a clear gain, not an average one."
    return f"{rule} Even this query does not gain."


def extremes_section(lists: QueryLists, n: int, explain: Explain | None = None) -> str:
    """The queries with the largest gains and losses, with their lists and what moved them."""
    if not n:
        return ""
    gains = lists.paired.gains
    order = lists.paired.by_gain
    best = [query for query in order[::-1][:n].tolist() if gains[query] > 0]
    worst = [query for query in order[:n].tolist() if gains[query] < 0]
    body = (
        f"<h3>Most improved</h3>{_folded(lists, best, explain)}"
        f"<h3>Most harmed</h3>{_folded(lists, worst, explain)}"
    )
    return section("extremes", "The largest gains and losses", body)


def _folded(lists: QueryLists, queries: list[int], explain: Explain | None) -> str:
    """Queries with their gains; each opens to show its lists."""
    if not queries:
        return "<p>None.</p>"
    return "".join(
        f"<details><summary>{text(lists.query_title(query))} "
        f"<b>{text(lists.paired.label)} {signed(lists.paired.gains[query])}</b></summary>"
        f"{lists.tables(query)}{_explained(lists, query, explain)}</details>"
        for query in queries
    )


def _explained(lists: QueryLists, query: int, explain: Explain | None) -> str:
    """What moved the score of the relevant item that went up or down."""
    item = -1 if explain is None else _moved_item(lists, query)
    if explain is None or item < 0:
        return ""
    names = lists.paired.relevance.item_ids
    name = str(item if names is None else names[item])
    described = shorten(lists.describe(item, name))
    lines = "".join(f"<li>{text(line)}</li>" for line in explain(query, item))
    return f"<p>Why: the relevant item {text(described)}</p><ul>{lines}</ul>"


def _moved_item(lists: QueryLists, query: int) -> int:
    """The first relevant item in the better of both lists, or any; -1 if there is none."""
    relevant = lists.paired.relevance.relevant(query)
    side = int(lists.paired.gains[query] > 0)
    items, _, _ = lists.ranked(query, side)
    found = [*items[np.isin(items, relevant)].tolist(), *relevant.tolist(), -1]
    return int(found[0])
