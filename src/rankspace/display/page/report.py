"""The report page: a self-contained HTML file that compares two rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ... import __version__
from ..._engine.files import PathLike, write_text
from ...evaluation.report import Report
from ...metrics.embedding import LinearMetric
from ...relevance.relevance import Relevance
from ...search.ranking import Ranking
from ..plots import n_directions
from . import svg
from .answer import Answer, answer_section
from .explained import Explain
from .html import (
    count,
    interval,
    measure_label,
    number,
    page,
    section,
    signed,
    text,
    tile,
)
from .lists import Describe, QueryLists, example_section, extremes_section
from .measures import (
    groups_section,
    measures_section,
    methods_section,
    outcome,
    verdict,
)
from .paired import PairedReports, pair_reports

Views = tuple[np.ndarray, np.ndarray]


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
    explain: Explain | None = None,
    answer: Answer | None = None,
) -> Path:
    """Write an HTML page that compares two rankings of the same queries.

    The page is one file without scripts or external resources: a verdict in plain words, all
    measures with confidence intervals and p-values, the first measure query by query, views of
    the points, the spectrum of the metric, and the lists of one query before and after. The same
    input always gives the same file.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    title : str
        Heading of the page.
    before, after : Report
        Evaluations of both rankings. The first measure that both have is the primary one.
    names : tuple of str, default=("before", "after")
        Names of the two rankings on the page.
    rankings : tuple of Ranking
        The rankings that the reports evaluate.
    relevance : Relevance
        The judgments that the reports use.
    views : tuple of ndarray of shape (n_points, 2), optional
        Points in the plane, before and after.
    view_labels : ndarray of shape (n_points,), optional
        Class of each point.
    metric : LinearMetric, optional
        The learned metric; its spectrum is shown.
    describe_item, describe_query : callable, optional
        Functions from the number of an item or query to its text, which is escaped.
    example : int, optional
        The query whose lists are shown; by default one near the 90th percentile of gains.
    n_listed : int, default=10
        Number of items shown per list.
    notes : sequence of str
        Remarks for the footer of the page.
    others : mapping of str to Report, optional
        Reports of other methods; their means are shown.
    groups : mapping of str to ndarray of bool, optional
        Boolean masks of groups of queries; each group is compared separately.
    n_extremes : int, default=0
        Number of queries shown with the largest gains, and with the largest losses.
    explain : callable, optional
        Function from the numbers of one of these queries and of a relevant item to sentences on
        what moved the score of the item, such as those of ``metric.explain``.
    answer : Answer, optional
        A decision that opens the page in place of the verdict on the primary measure.

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
    paired = pair_reports(before, after, names, rankings, relevance)
    lists = QueryLists(paired, n_listed, describe_item, describe_query)
    sections = [
        answer_section(answer),
        measures_section(paired),
        groups_section(paired, groups or {}),
        methods_section(paired, others or {}),
        _queries_section(paired),
        _views_section(paired, views, view_labels),
        _spectrum_section(metric),
        example_section(lists, example),
        extremes_section(lists, n_extremes, explain),
    ]
    remarks = [
        *notes,
        *_similarity(paired),
        _left_out(paired),
        *_not_shown(paired, before, after),
    ]
    content = page(
        title, _head(title, paired, answer), sections, _foot(remarks), svg.LEGEND_STYLE
    )
    return write_text(path, content)


# ---------------------------------------------------------------------- head


_BADGES = {
    "better": ("▲", "Better"),
    "equal": ("■", "No significant change"),
    "worse": ("▼", "Worse"),
}


def _head(title: str, paired: PairedReports, answer: Answer | None) -> str:
    """The title, the answer or the verdict on the primary measure, and the headline numbers."""
    kind = outcome(paired.measure, paired.comparison)
    sign, word = _BADGES[kind]
    sentence = verdict(paired.measure, paired.comparison, paired.names)
    if answer is not None:
        kind, word, sentence = answer.kind, answer.badge, answer.sentence
        sign = _BADGES[kind][0]
    return (
        f"<h1>{text(title)}</h1>"
        f'<p class="badge {kind}"><span aria-hidden="true">{sign} </span>{word}</p>'
        f'<p class="lead">{text(sentence)}</p>{_tiles(paired)}'
    )


def _tiles(paired: PairedReports) -> str:
    measure = paired.measure
    label = paired.label
    tiles = ""
    for name, report in zip(paired.names, paired.reports, strict=True):
        mean = number(report.means[measure])
        tiles += tile(f"{label}, {name}", mean, interval(report.intervals[measure]))
    change = signed(paired.comparison.difference[measure])
    limits = interval(paired.comparison.interval[measure], signed)
    tiles += tile(f"Change in {label}", change, limits)
    outcomes = paired.outcomes
    tiles += tile(
        f"Queries better, of {paired.counted.size:,}",
        f"{outcomes['better']:,}",
        f"{outcomes['equal']:,} equal, {outcomes['worse']:,} worse",
    )
    return f'<dl class="tiles">{tiles}</dl>'


# ---------------------------------------------------------------------- sections


def _queries_section(paired: PairedReports) -> str:
    """The primary measure query by query: a scatter plot and the sorted gains."""
    n = paired.counted.size
    side = "below" if paired.smaller_is_better else "above"
    keys = "".join(
        f"<li>{svg.outcome_key(kind)}<span><b>{size:,}</b> {kind}</span></li>"
        for kind, size in paired.outcomes.items()
    )
    body = (
        f'<p class="soft">Each mark is one query. Queries {side} the dashed line are better with '
        f"{text(paired.names[1])}.{svg.subset_note(n, 'queries')}</p>"
        f'<ul class="counts">{keys}</ul>'
        f'<div class="pair">{_scatter(paired)}{_gain_chart(paired)}</div>'
    )
    return section("queries", f"{text(paired.label)} query by query", body)


def _scatter(paired: PairedReports) -> str:
    before, after = paired.names
    title = f"{before} against {after}"
    drawn = paired.counted[svg.subset(paired.counted.size)]
    picture = svg.scatter(
        paired.before.values[paired.measure][drawn],
        paired.after.values[paired.measure][drawn],
        paired.gains[drawn],
        [paired.query_name(query) for query in drawn.tolist()],
        (f"{paired.label}, {before}", f"{paired.label}, {after}"),
        f"{paired.label} of each query, {title}",
    )
    return svg.captioned(title, picture)


def _gain_chart(paired: PairedReports) -> str:
    gain = f"Gain in {paired.label}"
    if paired.smaller_is_better:
        gain = f"Reduction of {paired.label}"
    outcomes = ", ".join(f"{size:,} {kind}" for kind, size in paired.outcomes.items())
    gains = paired.gains[paired.counted]
    description = f"{gain} of each query, sorted: {outcomes}"
    picture = svg.gain_chart(gains[svg.subset(gains.size)], gain, description)
    return svg.captioned(f"{gain}, sorted", picture)


def _views_section(
    paired: PairedReports, views: Views | None, labels: np.ndarray | None
) -> str:
    """The same points before and after, each picture with its ranking error."""
    if views is None:
        return ""
    points = _check_views(views, labels)
    n = len(points[0])
    if labels is None:
        classes = []
        codes = np.zeros(n, dtype=np.int64)
    else:
        names, codes = np.unique(np.asarray(labels), return_inverse=True)
        classes = names.tolist()
    drawn = svg.subset(n)
    figures = ""
    for side, caption in enumerate(paired.names):
        error = paired.ranking_error(side)
        if np.isfinite(error):
            caption += f": ranking error {number(error)}"
        description = f"Map of {drawn.size:,} points, {caption}"
        picture = svg.cloud(points[side][drawn], codes[drawn], description)
        figures += svg.captioned(caption, picture)
    body = (
        '<p class="soft">Both pictures show the same points, each at its own scale. The ranking '
        "error is 0 for a perfect order of all items and 1 for a random order."
        f"{svg.subset_note(n, 'points')}</p>{svg.class_legend(classes)}"
        f'<div class="pair">{figures}</div>'
    )
    return section("views", "Points before and after", body)


def _check_views(views: Views, labels: np.ndarray | None) -> list[np.ndarray]:
    points = [np.asarray(view, dtype=float) for view in views]
    shapes = [view.shape for view in points]
    n = 0
    if shapes and shapes[0]:
        n = shapes[0][0]
    if n == 0 or shapes != [(n, 2), (n, 2)]:
        raise ValueError(
            "views must be two arrays of shape (n_points, 2), of the same points before and after: "
            f"got shapes {', '.join(map(str, shapes))}. Project the points to two columns first."
        )
    if not np.isfinite(points).all():
        raise ValueError(
            "views must be finite: got NaN or infinity. Leave those points out."
        )
    if labels is not None and np.shape(labels) != (n,):
        raise ValueError(
            f"view_labels must give the class of each of {n} points: got shape {np.shape(labels)}."
        )
    return points


def _spectrum_section(metric: LinearMetric | None) -> str:
    """The eigenvalues of the metric and how many of them hold 95 % of their sum."""
    if metric is None:
        return ""
    n = n_directions(metric.spectrum)
    verb = "holds" if n == 1 else "hold"
    sentence = (
        f"{count(n, 'direction')} of {len(metric.spectrum):,} {verb} 95 % of the metric. Vectors "
        "cut to these directions rank about as well."
    )
    legend = "Dark: share of each direction. Light: running total. Dashed: 95 %."
    picture = svg.spectrum_chart(metric.spectrum, n, sentence)
    body = f'<p class="soft">{sentence} {legend}</p><figure class="narrow">{picture}</figure>'
    return section("spectrum", "Spectrum of the metric", body)


# ---------------------------------------------------------------------- foot


def _foot(remarks: Sequence[str]) -> str:
    statistics = (
        "Intervals are bootstrapped over queries. p-values come from a paired randomisation test "
        "and are not corrected for multiple measures."
    )
    items = "".join(f"<li>{text(line)}</li>" for line in (*remarks, statistics))
    return (
        f"<h2>Notes</h2><ul>{items}</ul><p>Made with rankspace {text(__version__)}.</p>"
    )


def _similarity(paired: PairedReports) -> list[str]:
    """What vectors were compared by, if it is known."""
    similarity = paired.comparison.similarity
    return [] if similarity is None else [f"Similarity: {similarity}."]


def _left_out(paired: PairedReports) -> str:
    """How many queries each measure leaves out."""
    left_out = paired.before.left_out.items()
    counts = [f"{n:,} by {measure_label(name)}" for name, n in left_out if n]
    return (
        f"Of {count(paired.relevance.n_queries, 'query')}, left out with nothing to find or to "
        f"compare: {', '.join(counts) or 'none'}."
    )


def _not_shown(paired: PairedReports, before: Report, after: Report) -> list[str]:
    """A note on the measures that the page cannot compare."""
    names = [
        name
        for name in before.values | after.values
        if name not in paired.before.values
    ]
    if not names:
        return []
    labels = ", ".join(measure_label(name) for name in names)
    return [f"Not shown, because no query has a value in both reports: {labels}."]
