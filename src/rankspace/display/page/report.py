"""One self-contained HTML page that shows what a change does to rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ... import __version__
from ..._engine.files import PathLike, write_text
from ...evaluation.measures import list_of, new_items
from ...evaluation.report import Report
from ...metrics.embedding import LinearMetric
from ...relevance.relevance import Relevance
from ...search.ranking import Ranking
from ..plots import SpectrumDisplay, n_directions
from ..spaces import GainsDisplay, SpaceDisplay
from . import html as _page
from . import svg as _svg
from .drawn import can_draw, inline, plain
from .html import count, measure_label, number, section, signed, text
from .report_parts import extremes_section, groups_section, methods_section
from .study import PairedReports, study_of

Describe = Callable[[int], str]


def write_report(
    path: PathLike,
    *,
    title: str,
    before: Report,
    after: Report,
    names: tuple[str, str] = ("before", "after"),
    rankings: tuple[Ranking, Ranking],
    relevance: Relevance,
    views: tuple[np.ndarray, np.ndarray] | None = None,
    view_labels: np.ndarray | None = None,
    metric: LinearMetric | None = None,
    describe_item: Describe | None = None,
    describe_query: Describe | None = None,
    example: int | None = None,
    n_listed: int = 10,
    notes: Sequence[str] = (),
    others: Mapping[str, Report] | None = None,
    groups: Mapping[str, np.ndarray] | None = None,
    n_extremes: int = 0,
) -> Path:
    """Write a page that compares two rankings of the same held-out queries.

    The page is one file without scripts or outside resources: a verdict in plain words, all
    measures with intervals and tests, the first measure query by query, views of the points, the
    spectrum of the metric, and the list of one query before and after. With matplotlib (extra
    ``plot``) the displays of `rankspace.display` draw gains, views and spectrum; without it gains and
    views are plainer, and the spectrum is a sentence. Equal input gives an equal file.

    Parameters
    ----------
    path : path
        Where to write; a file there is replaced.
    title : str
        Heading of the page.
    before, after : Report
        Measures of both rankings. The first one that both have leads the page.
    names : tuple of str, default=("before", "after")
        What to call the two.
    rankings : tuple of Ranking
        The lists that the reports judge.
    relevance : Relevance
        The judgments behind the reports.
    views : tuple of ndarray of shape (n_points, 2), optional
        Places of held-out points in the plane, before and after.
    view_labels : ndarray of shape (n_points,), optional
        Class of each point.
    metric : LinearMetric, optional
        What was learned; the shares of its directions are shown.
    describe_item, describe_query : callable, optional
        Text for a row of ``X`` and for a query, by number. It is shown as text, never as HTML.
    example : int, optional
        The query whose lists are shown; by default one near the 90th percentile of gains.
    n_listed : int, default=10
        How many items of its lists to show.
    notes : sequence of str
        Remarks for the foot of the page.
    others : mapping of str to Report, optional
        Further methods, shown by their means.
    groups : mapping of str to ndarray of bool, optional
        Masks of queries to compare by themselves.
    n_extremes : int, default=0
        How many of the queries that gain most, and of those that lose most, to show.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from rankspace import Ranking, Relevance, evaluate, write_report
    >>> relevance = Relevance.from_lists([[2], [0]], n_items=3)
    >>> old = Ranking.from_distances([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
    >>> new = Ranking.from_distances([[0.2, 0.3, 0.1], [0.1, 0.2, 0.3]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(
    ...         f"{folder}/report.html", title="Two queries",
    ...         before=evaluate(old, relevance), after=evaluate(new, relevance),
    ...         rankings=(old, new), relevance=relevance,
    ...     )
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    study = study_of(before, after, names, rankings, relevance)
    lists = _Lists(study, n_listed, describe_item, describe_query)
    measures = _page.measures_table(*study.reports, study.comparison, study.names)
    sections = [
        section("measures", "All measures", measures),
        groups_section(study, groups or {}),
        methods_section(study, others or {}),
        _queries_section(study),
    ]
    style = ""
    if views is not None:
        points = _svg.check_views(views, view_labels)
        classes, codes = _svg.class_codes(view_labels, points[0].shape[0])
        sections.append(_views_section(study, points, codes, classes))
        style = _svg.class_style(classes)
    sections += [
        _spectrum_section(metric),
        _example_section(lists, example),
        extremes_section(lists, n_extremes),
    ]
    foot = _foot(study, (before, after), notes)
    return write_text(
        path, _page.page(title, _head(title, study), sections, foot, style)
    )


def _clear_query(study: PairedReports, lists: _Lists) -> int:
    """Of the queries near the 90th percentile of gains, the one whose shown lists differ most."""
    order = study.counted[np.argsort(study.gains[study.counted], kind="stable")]
    near = order[round(0.85 * (order.size - 1)) : round(0.95 * (order.size - 1)) + 1]
    differences = [
        lists.n_relevant(q, 1) - lists.n_relevant(q, 0) for q in near.tolist()
    ]
    return int(near[int(np.argmax(differences))])


def _head(title: str, study: PairedReports) -> str:
    found = _page.verdict(study.measure, study.comparison, study.names)
    sign = {"better": "▲", "equal": "■", "worse": "▼"}[found.kind]
    return (
        f"<h1>{text(title)}</h1>"
        f'<p class="badge {found.kind}"><span aria-hidden="true">{sign} </span>{found.word}</p>'
        f'<p class="lead">{text(found.sentence)}</p>{_tiles(study)}'
    )


def _tiles(study: PairedReports) -> str:
    name, label = study.measure, measure_label(study.measure)
    numbers, outcomes = study.comparison, study.outcomes
    shown = [
        (
            f"{label}, {who}",
            number(report.means[name]),
            _page.interval(report.intervals[name]),
        )
        for who, report in zip(study.names, study.reports, strict=True)
    ]
    change = _page.interval(numbers.interval[name], signed)
    shown.append((f"Change in {label}", signed(numbers.difference[name]), change))
    rest = f"{outcomes['equal']:,} equal, {outcomes['worse']:,} worse"
    shown.append(
        (f"Queries better, of {study.counted.size:,}", f"{outcomes['better']:,}", rest)
    )
    return _page.tiles(shown)


def _queries_section(study: PairedReports) -> str:
    label, n = measure_label(study.measure), study.counted.size
    drawn = study.counted[_svg.subset(n)]
    dots = _svg.scatter(
        [report.values[study.measure][drawn] for report in study.reports],
        study.gains[drawn],
        [f"query {study.query_name(query)}" for query in drawn.tolist()],
        study.names,
        label,
        f"{label} of each query, {study.names[0]} against {study.names[1]}",
    )
    gain = f"Reduction of {label}" if study.smaller_is_better else f"Gain in {label}"
    bars = _gains(study, f"{gain} of each query, sorted: {_outcomes(study)}", gain)
    pair = (
        f'<div class="pair">{_svg.captioned(f"{study.names[0]} against {study.names[1]}", dots)}'
        f"{_svg.captioned(f'{gain}, sorted', bars)}</div>"
    )
    keys = "".join(
        f"<li>{_svg.outcome_key(kind)}<span><b>{n_so:,}</b> {kind}</span></li>"
        for kind, n_so in study.outcomes.items()
    )
    side = "below" if study.smaller_is_better else "above"
    lead = (
        f"One mark is one query. Queries {side} the dashed line are better with "
        f"{text(study.names[1])}.{_svg.subset_note(n, 'queries')}"
    )
    lead = f'<p class="soft">{lead}</p><ul class="counts">{keys}</ul>'
    return section("queries", f"{text(label)} query by query", lead + pair)


def _outcomes(study: PairedReports) -> str:
    return ", ".join(f"{n:,} {kind}" for kind, n in study.outcomes.items())


def _gains(study: PairedReports, description: str, gain: str) -> str:
    """The gains of all queries that count, in order of size."""
    gains = study.gains[study.counted]
    if not can_draw():
        return _svg.gain_chart(gains[_svg.subset(gains.size)], gain, description)
    display = GainsDisplay(gains, measure=plain(measure_label(study.measure)))
    return inline(lambda: display.plot().figure_, "gains", description)


def _views_section(
    study: PairedReports,
    points: Sequence[np.ndarray],
    codes: np.ndarray,
    classes: Sequence[object],
) -> str:
    """The same points before and after, each view with its ranking error."""
    drawn, figures = _svg.subset(codes.size), []
    sides = zip(
        ("before", "after"), study.names, points, study.ranking_errors, strict=True
    )
    for side, name, view, error in sides:
        told = f"{name}: ranking error {number(error)}" if np.isfinite(error) else name
        picture = _view(
            side, f"Map of {drawn.size:,} points, {told}", view[drawn], codes[drawn]
        )
        figures.append(_svg.captioned(told, picture))
    body = (
        '<p class="soft">The same points in both pictures; each picture has its own scale. The '
        "ranking error is 0 for a perfect order of all items and 1 for chance."
        f"{_svg.subset_note(codes.size, 'points')}</p>{_svg.class_legend(classes)}"
        f'<div class="pair">{"".join(figures)}</div>'
    )
    return section("views", "Held-out points", body)


def _view(side: str, description: str, points: np.ndarray, codes: np.ndarray) -> str:
    if not can_draw():
        return _svg.cloud(points, codes, description)
    display = SpaceDisplay({"": points}, codes)
    return inline(lambda: display.plot().figure_, side, description)


def _spectrum_section(metric: LinearMetric | None) -> str:
    if metric is None:
        return ""
    n = n_directions(metric.spectrum)
    told = (
        f"{count(n, 'direction')} of {len(metric.spectrum):,} {'holds' if n == 1 else 'hold'} 95 % "
        "of the metric: the fewer, the shorter the vectors that rank about as well."
    )
    body = f'<p class="soft">{told}</p>'
    if can_draw():
        display = SpectrumDisplay(metric.spectrum)
        picture = inline(lambda: display.plot().figure_, "spectrum", told)
        body += f'<figure class="narrow">{picture}</figure>'
    return section("spectrum", "What the metric is made of", body)


# ---------------------------------------------------------------------- one query, and the foot


@dataclass(frozen=True, eq=False)
class _Lists:
    """The lists of single queries, and the words for what stands in them."""

    study: PairedReports
    n_listed: int
    describe_item: Describe | None
    describe_query: Describe | None

    def __post_init__(self) -> None:
        if self.n_listed < 1:
            raise ValueError(f"n_listed must be at least 1: got {self.n_listed}.")

    def of(self, query: int, side: int) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Items (-1 if unknown to relevance), names and distances, as `evaluate` reads them."""
        ranking, relevance = self.study.rankings[side], self.study.relevance
        at, number = list_of(ranking, relevance, query), new_items(ranking, relevance)
        if at < 0:
            return np.zeros(0, dtype=np.int64), [], np.zeros(0)
        items, distances = ranking[at]
        names = np.array(ranking.ids(at), dtype=object)
        if ranking.item_ids is None and relevance.item_ids is not None:
            names = relevance.item_ids[items].astype(object)
        if number.size:
            items = number[items]
        kept = (items < 0) | (items != relevance.query_items[query])
        return items[kept], names[kept].tolist(), distances[kept]

    def n_relevant(self, query: int, side: int) -> int:
        """How many relevant items are shown."""
        shown = self.of(query, side)[0][: self.n_listed]
        return int(np.isin(shown, self.study.relevance.relevant(query)).sum())

    def marks(self, query: int) -> dict[int, str]:
        """The word for each judged item, with its grade where grades differ."""
        relevance = self.study.relevance
        items, grades = relevance.judged(query)
        graded = (
            np.unique(
                relevance.grades[relevance.grades >= relevance.min_relevant_grade]
            ).size
            > 1
        )
        words = (
            ("✓ relevant" + (f", grade {grade:g}" if graded else ""))
            if grade >= relevance.min_relevant_grade
            else "–"
            for grade in grades.tolist()
        )
        return dict(zip(items.tolist(), words, strict=True))

    def rows(self, query: int, side: int) -> list[_page.ListRow]:
        """The first items of a list, those of the second side with their former place."""
        marks = self.marks(query)
        relevance = self.study.relevance
        other = (
            "–"
            if "irrelevant" in (relevance.unjudged, relevance.background)
            else "unjudged"
        )
        former = {name: place for place, name in enumerate(self.of(query, 0)[1], 1)}
        listed = zip(*self.of(query, side), strict=True)
        return [
            _page.ListRow(
                self.tell(item, name),
                marks.get(item, other),
                distance,
                former.get(name, 0) if side else None,
            )
            for item, name, distance in islice(listed, self.n_listed)
        ]

    def table(self, query: int, side: int) -> str:
        """The top of one list, with the value of the first measure for it."""
        value = number(self.study.reports[side].values[self.study.measure][query])
        caption = f"{measure_label(self.study.measure)} {value}"
        return _page.list_table(self.study.names[side], caption, self.rows(query, side))

    def tell(self, item: int, name: str) -> str:
        if self.describe_item is None or item < 0:
            return name
        return self.describe_item(int(item))


def _example_section(lists: _Lists, example: int | None) -> str:
    """The lists of one query side by side, and why this query."""
    study, n_queries = lists.study, lists.study.relevance.n_queries
    if example is not None and not 0 <= example < n_queries:
        raise ValueError(
            f"example must be the number of a query, from 0 to {n_queries - 1}: got {example}."
        )
    query = _clear_query(study, lists) if example is None else int(example)
    told = (
        ""
        if lists.describe_query is None
        else f": {_page.shorten(lists.describe_query(query))}"
    )
    tables = "".join(lists.table(query, side) for side in (0, 1))
    why = _reason(study, query, chosen=example is not None)
    body = (
        f"<p>Query {text(study.query_name(query) + told)}</p>"
        f'<p class="soft">{text(why)} The column “was” holds the rank before.</p>'
        f'<div class="pair">{tables}</div>'
    )
    return section("example", "One query, before and after", body)


def _reason(study: PairedReports, query: int, chosen: bool) -> str:
    if chosen:
        return "This query was chosen by whoever made the page; it need not be typical."
    clear = "It shows a clear gain, not the average one."
    return (
        "Chosen by rule: of the queries whose gain in "
        f"{measure_label(study.measure)} stands near the 90th percentile of "
        f"{count(study.counted.size, 'query')}, the one whose first items differ most. "
    ) + (clear if study.gains[query] > 0 else "Even so it gains nothing.")


def _foot(
    study: PairedReports, given: tuple[Report, Report], notes: Sequence[str]
) -> str:
    how = (
        "Intervals are bootstrapped over queries; p-values come from a paired randomisation test, "
        "each measure on its own."
    )
    items = "".join(
        f"<li>{text(line)}</li>" for line in (*notes, *_left_out(study, given), how)
    )
    return (
        f"<h2>Notes</h2><ul>{items}</ul><p>Made with rankspace {text(__version__)}.</p>"
    )


def _left_out(study: PairedReports, given: tuple[Report, Report]) -> list[str]:
    """How many queries each measure leaves out, and which measures had to be left out."""
    of_all = f"of {count(study.relevance.n_queries, 'query')} left out"
    counts = study.before.left_out
    if len(set(counts.values())) == 1:
        parts = f"{next(iter(counts.values())):,} {of_all}"
    else:
        parts = ", ".join(
            f"{n:,} by {measure_label(name)}" for name, n in counts.items()
        )
        parts = f"{of_all[0].upper()}{of_all[1:]}: {parts}"
    lines = [
        parts
        + (", with nothing to find or to compare." if any(counts.values()) else ".")
    ]
    named = dict.fromkeys(name for report in given for name in report.values)
    if unused := [measure_label(name) for name in named if name not in counts]:
        lines.append(
            f"Not shown, as no query counts for both sides: {', '.join(unused)}."
        )
    return lines
