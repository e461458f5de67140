"""The report page: structure, texts, bad input, and a check in a browser."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from rankspace._engine.tables import as_text
from rankspace.display.figures import COLOURS
from rankspace.display.page.answer import Answer, AnswerTable
from rankspace.display.page.html import count, measure_label, number, signed
from rankspace.display.page.measures import outcome, verdict
from rankspace.display.page.report import write_report
from rankspace.display.page.svg import Scale, _limits, _ticks, class_marker
from rankspace.evaluation.measures import evaluate
from rankspace.evaluation.report import Report, compare
from rankspace.metrics.embedding import LinearMetric
from rankspace.relevance.relevance import Relevance
from rankspace.search.ranking import Ranking

VOID = {"meta", "link", "br", "input"}
HOSTILE = "<script>alert('x')</script> & \"Co\""


class Outline(HTMLParser):
    """Elements of a page; fails on mismatched end tags."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


def outline(page):
    parsed = Outline()
    parsed.feed(page.read_text(encoding="utf-8"))
    parsed.close()
    assert parsed.open == []
    return parsed


def case(rng, n=40, measures="map ndcg@10 ranking-error", better=True, **ids):
    """Two rankings of n points in three classes, one of which sees the classes."""
    y = np.arange(n) % 3
    noise = rng.normal(size=(n, 4))
    seen = noise + 1.5 * np.eye(4)[y]
    rankings = []
    for points in (noise, seen) if better else (seen, noise):
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        np.fill_diagonal(distances, np.inf)
        rankings.append(Ranking.from_distances(distances, **ids))
    relevance = Relevance.from_labels(y, **ids)
    before, after = (evaluate(ranking, relevance, measures) for ranking in rankings)
    return {
        "title": "A test",
        "before": before,
        "after": after,
        "rankings": tuple(rankings),
        "relevance": relevance,
        "views": (noise[:, :2], seen[:, :2]),
        "view_labels": y,
    }


@pytest.fixture
def given(rng):
    return case(rng)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "report.html"


def test_structure(given, target):
    assert write_report(target, **given, others={"third": given["before"]}) == target
    page = outline(target)
    assert page.count("h1") == 1
    assert page.count("table") == 4
    assert page.count("caption") == 4
    assert page.count("script") == 0
    assert len(page.ids) == len(set(page.ids))
    pictures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert all(
        attrs.get("aria-label") or attrs.get("aria-hidden") for attrs in pictures
    )
    assert {"measures", "methods", "queries", "views", "example"} <= set(page.ids)


def test_optional_parts_are_absent(given, target):
    page = outline(write_report(target, **given | {"views": None, "view_labels": None}))
    assert "views" not in page.ids
    assert "methods" not in page.ids
    assert ".point" in target.read_text(encoding="utf-8")
    page = outline(write_report(target, **given | {"view_labels": None}))
    assert "views" in page.ids
    assert page.count("fieldset") == 0


def test_the_numbers_are_those_of_compare(given, target):
    comparison = compare(given["before"], given["after"])
    text = write_report(target, **given).read_text(encoding="utf-8")
    for name in comparison.before:
        for value in (comparison.before[name], comparison.after[name]):
            assert f"<td>{value:.3f}<small>" in text
        assert signed(comparison.difference[name]) in text
    assert (
        f"from {comparison.before['map']:.3f} (before) to {comparison.after['map']:.3f} (after)"
        in text
    )


def test_all_text_is_inert(rng, target):
    ids = [f"{HOSTILE}{i}" for i in range(40)]
    given = case(rng, query_ids=ids, item_ids=ids)
    given |= {
        "title": HOSTILE,
        "names": (HOSTILE, f"new {HOSTILE}"),
        "notes": [HOSTILE],
    }
    given["view_labels"] = np.array([HOSTILE, "b"])[np.arange(40) % 2]
    hostile = {"describe_item": lambda i: HOSTILE, "describe_query": lambda i: HOSTILE}
    for extra in ({}, hostile):
        page = outline(
            write_report(
                target, **given, **extra, others={f"x{HOSTILE}": given["after"]}
            )
        )
        text = target.read_text(encoding="utf-8")
        assert page.count("script") == 0
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert not re.search(r"&(?!(amp|lt|gt|quot|#x27);)", text)
    assert HOSTILE in "".join(page.text)


def test_text_that_utf8_cannot_hold(given, target):
    write_report(target, **given, notes=["lone \ud800 surrogate"])
    assert "lone ? surrogate" in target.read_text(encoding="utf-8")


def test_the_notes_name_the_similarity_of_both_rankings(given, target):
    assert "Similarity" not in write_report(target, **given).read_text("utf-8")
    for side, similarity in {"before": "euclidean", "after": "cosine"}.items():
        given[side] = replace(given[side], similarity=similarity)
    text = write_report(target, **given).read_text("utf-8")
    assert "<li>Similarity: euclidean before, cosine after.</li>" in text


def test_queries_left_out(given, target):
    for report in (given["before"], given["after"]):
        report.values["map"][:5] = np.nan
        report.values["ndcg@10"][:] = np.nan
    given["after"].values["map"][5] = np.nan
    text = write_report(target, **given).read_text(encoding="utf-8")
    outline(target)
    assert "34 queries" in text
    assert (
        "Of 40 queries, left out with nothing to find or to compare: 6 by MAP." in text
    )
    assert "no query has a value in both reports: NDCG@10" in text
    assert "nan" not in text.lower().replace("nance", "")


def test_the_shown_query_may_be_one_left_out(given, target):
    given["before"].values["map"][3] = np.nan
    text = write_report(target, **given, example=3).read_text(encoding="utf-8")
    assert "MAP –" in text
    assert "The author of this page chose this query" in text


def test_no_outside_resources(given, target):
    text = write_report(target, **given).read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    links = re.findall(r"(?:src|href)=\"([^#\"][^\"]*)\"", text)
    assert links == ["data:,"]


def test_same_input_same_bytes(target):
    first = write_report(target, **case(np.random.default_rng(3))).read_bytes()
    assert write_report(target, **case(np.random.default_rng(3))).read_bytes() == first


def test_large_input_is_thinned_and_says_so(target):
    rng = np.random.default_rng(0)
    n = 2_500
    relevance = Relevance.from_lists([[0]] * n, n_items=3)
    ranking = Ranking.from_distances(rng.random((n, 3)))
    before, after = (Report({"map": rng.random(n)}) for _ in range(2))
    views = (rng.random((n, 2)), rng.random((n, 2)))
    write_report(
        target,
        title="Large",
        before=before,
        after=after,
        rankings=(ranking, ranking),
        relevance=relevance,
        views=views,
    )
    text = target.read_text(encoding="utf-8")
    assert text.count('class="dot ') == 2_000
    assert "Shown: 2,000 of 2,500 queries" in text
    assert "Shown: 2,000 of 2,500 points" in text
    assert target.stat().st_size < 1_500_000


# ---------------------------------------------------------------------- pictures


def test_the_page_is_the_same_without_matplotlib(given, target, monkeypatch):
    given["metric"] = LinearMetric(np.diag([9.0, 1, 0.1]))
    page = write_report(target, **given).read_bytes()
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError):
        import matplotlib  # noqa: F401
    assert write_report(target, **given).read_bytes() == page


def picture(text, description):
    """The SVG picture with a description that starts like this."""
    return re.search(rf'<svg role="img" aria-label="{description}.*?</svg>', text)[0]


def corners(path):
    """The corners of the bars of a path: top and right edge of each."""
    steps = re.findall(r"V([\d.]+)H([\d.]+)", path)
    return np.array(steps, dtype=float)


def test_gains_are_drawn_in_order(given, target):
    text = write_report(target, **given).read_text(encoding="utf-8")
    gains = given["after"].values["map"] - given["before"].values["map"]
    n_better, n_worse = (gains > 1e-9).sum(), (gains < -1e-9).sum()
    chart = picture(text, "Gain in MAP of each query")
    assert (
        f"{n_better} better, {40 - n_better - n_worse} equal, {n_worse} worse" in chart
    )
    better, worse = (
        corners(re.search(rf'<path class="{kind}" d="([^"]*)"', chart)[1])
        for kind in ("better", "worse")
    )
    assert (len(better), len(worse)) == (n_better, n_worse)
    heights = np.concatenate([better, worse])[:, 0]
    assert (np.diff(heights) >= 0).all()  # SVG counts downwards
    assert worse[-1, 1] == pytest.approx(408)


def test_the_spectrum_is_drawn_as_shares_of_the_trace(given, target):
    metric = LinearMetric(np.diag([3.0, 1, 0]))
    text = write_report(target, **given, metric=metric).read_text(encoding="utf-8")
    assert "2 directions of 3 hold 95 % of the metric" in text
    chart = picture(text, "2 directions of 3")
    bars = corners(re.search(r'<path class="c0" d="([^"]*)"', chart)[1])
    np.testing.assert_allclose((352 - bars[:, 0]) / 340, [0.9, 0.1, 0], atol=1e-3)
    total = corners(re.search(r'<path class="bar old" d="([^"]*)"', chart)[1])
    np.testing.assert_allclose((352 - total[:, 0]) / 340, [0.9, 1, 1], atol=1e-3)


def test_a_zero_metric_has_a_spectrum(given, target):
    metric = LinearMetric([[0.0, 0.0]])
    text = write_report(target, **given, metric=metric).read_text(encoding="utf-8")
    assert "0 directions of 1 hold 95 %" in text
    outline(target)


def test_views_show_every_point_by_class(given, target):
    text = write_report(target, **given).read_text(encoding="utf-8")
    for name in ("before", "after"):
        view = picture(text, f"Map of 40 points, {name}")
        paths = re.findall(r'<path class="point k(\d) c(\d)" d="([^"]*)"', view)
        assert [path[:2] for path in paths] == [("0", "0"), ("1", "1"), ("2", "2")]
        assert [path[2].count("M") for path in paths] == [14, 13, 13]


def test_views_have_their_ranking_error(given, target):
    for extra in (
        {},
        {"before": evaluate(given["rankings"][0], given["relevance"], "map")},
    ):
        text = write_report(target, **given | extra).read_text(encoding="utf-8")
        for name in ("before", "after"):
            error = given[name].means.get("ranking-error")
            assert f"<figcaption>{name}: ranking error {error:.3f}</figcaption>" in text


def test_names_with_forbidden_characters(given, target):
    for report in (given["before"], given["after"]):
        report.values.update({"$\\frac\x00": report.values.pop("map")})
        report.values.pop("ndcg@10")
        report.values.pop("ranking-error")
    write_report(target, **given | {"names": ("$\\frac", "a $x$ \ud800 語")})
    outline(target)
    text = target.read_text(encoding="utf-8")
    assert ">Gain in $\\frac?</text>" in text
    assert "a $x$ ? 語" in text


def test_the_style_has_the_colours_of_the_displays(given, target):
    text = write_report(target, **given).read_text(encoding="utf-8")
    for code, colour in enumerate(COLOURS):
        assert f"--c{code}: {colour};" in text
        assert f".c{code} {{ fill: var(--c{code}) }}" in text


# ---------------------------------------------------------------------- verdicts


def verdict_on(before, after, smaller=()):
    smaller = frozenset(smaller)
    reports = [Report({"map": np.asarray(v, float)}, smaller) for v in (before, after)]
    comparison = compare(*reports)
    return outcome("map", comparison), verdict("map", comparison, ("old", "new"))


def test_verdicts():
    low, high = np.linspace(0.1, 0.4, 12), np.linspace(0.5, 0.9, 12)
    kind, sentence = verdict_on(low, high)
    assert kind == "better"
    assert "rises from 0.250 (old) to 0.700 (new)" in sentence
    kind, sentence = verdict_on(high, low)
    assert kind == "worse"
    assert "This is a loss: new ranks worse than old." in sentence
    kind, sentence = verdict_on(low, low)
    assert kind == "equal"
    assert sentence.startswith("No significant change")
    assert verdict_on([0.2, 0.4], [0.3, 0.3])[0] == "equal"


def test_verdicts_where_smaller_is_better():
    low, high = np.linspace(0.1, 0.4, 12), np.linspace(0.5, 0.9, 12)
    kind, sentence = verdict_on(high, low, ["map"])
    assert kind == "better"
    assert "where smaller is better, falls" in sentence
    assert verdict_on(low, high, ["map"])[0] == "worse"


def test_page_says_a_loss(rng, target):
    text = write_report(target, **case(rng, better=False)).read_text(encoding="utf-8")
    assert "This is a loss" in text
    assert '<p class="badge worse">' in text


def test_an_error_leads_the_page(rng, target):
    given = case(rng, measures="ranking-error first-rank")
    text = write_report(target, **given).read_text(encoding="utf-8")
    assert "Ranking error, where smaller is better, falls from" in text
    assert "Queries below the dashed line are better" in text
    fewer = (
        given["after"].values["ranking-error"]
        < given["before"].values["ranking-error"] - 1e-9
    )
    assert f"<b>{fewer.sum()}</b> better" in text


# ---------------------------------------------------------------------- the example


def hits(text):
    """Marked items of both lists."""
    return [
        re.findall(r'class="hit item">([^<]*)<', part)
        for part in text.split("<table")[2:]
    ]


def test_example_marks_the_relevant_items(given, target):
    text = write_report(target, **given, example=7, n_listed=5).read_text(
        encoding="utf-8"
    )
    relevant = set(given["relevance"].relevant(7).tolist())
    for ranking, marked in zip(given["rankings"], hits(text), strict=True):
        wanted = [str(item) for item in ranking[7][0][:5].tolist() if item in relevant]
        assert marked == wanted
    assert text.count('✓<span class="word"> relevant</span>') == sum(
        map(len, hits(text))
    )


def test_default_example_is_a_clear_gain_whose_lists_differ(given, target):
    gains = given["after"].values["map"] - given["before"].values["map"]
    near = np.argsort(gains, kind="stable")[round(0.85 * 39) : round(0.95 * 39) + 1]

    def hits(ranking, query):
        return np.isin(ranking[query][0][:10], given["relevance"].relevant(query)).sum()

    before, after = given["rankings"]
    wanted = max(near, key=lambda q: hits(after, q) - hits(before, q))
    text = write_report(target, **given).read_text(encoding="utf-8")
    assert f"<p>Query {wanted}</p>" in text
    assert "near the 90th percentile of the gain in MAP (40 queries in all)" in text


def test_no_gain_is_promised_where_there_is_none(given, target):
    text = write_report(target, **given | {"after": given["before"]}).read_text(
        encoding="utf-8"
    )
    assert "No significant change" in text
    assert "Even this query does not gain." in text


def test_lists_are_matched_by_name(target):
    relevance = Relevance.from_qrels(
        {"q": {"a": 2, "b": 0, "c": 1}},
        item_ids=["a", "b", "c", "d"],
        unjudged="ignore",
    )
    old = Ranking.from_run({"x": {"a": 1.0}, "q": {"zz": 3.0, "d": 2.0, "b": 1.0}})
    new = Ranking.from_run({"q": {"a": 3.0, "d": 2.0, "c": 1.0}})
    before, after = (evaluate(ranking, relevance) for ranking in (old, new))
    text = write_report(
        target,
        title="By name",
        before=before,
        after=after,
        rankings=(old, new),
        relevance=relevance,
        describe_item=lambda i: f"row {i}",
    ).read_text(encoding="utf-8")
    assert hits(text) == [[], ["row 0", "row 2"]]
    assert "relevant, grade 2" in text
    assert ">unjudged</span>" in text
    assert ">zz</td>" in text


def test_a_query_without_a_list(target):
    relevance = Relevance.from_qrels({"q": {"a": 1}, "r": {"b": 1}})
    old = Ranking.from_run({"q": {"a": 1.0, "b": 0.5}})
    new = Ranking.from_run({"q": {"a": 1.0, "b": 0.5}, "r": {"b": 1.0, "a": 0.0}})
    before, after = (evaluate(ranking, relevance) for ranking in (old, new))
    write_report(
        target,
        title="Missing",
        before=before,
        after=after,
        rankings=(old, new),
        relevance=relevance,
        example=1,
    )
    assert "0 of the first 0 relevant" in target.read_text(encoding="utf-8")


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"after": Report({"map": np.zeros(3)})},
            "the reports must be of the same queries",
        ),
        (
            {"before": Report({"map": np.zeros(3)})},
            "of the queries of relevance.*got 3 and 40",
        ),
        ({"after": Report({"p@1": np.zeros(40)})}, "must share a measure"),
        (
            {"others": {"x": Report({"map": np.zeros(3)})}},
            "the reports must be of the same queries",
        ),
        (
            {"views": (np.zeros((40, 2)), np.zeros((40, 3)))},
            r"\(n_points, 2\).*\(40, 3\)",
        ),
        ({"views": (np.zeros((40, 2)), np.zeros((39, 2)))}, "of the same points"),
        ({"views": (np.zeros((0, 2)), np.zeros((0, 2)))}, r"got shapes \(0, 2\)"),
        ({"views": (np.zeros((40, 2)),)}, "views must be two arrays"),
        (
            {"views": (np.zeros((40, 2)), np.full((40, 2), np.nan))},
            "views must be finite",
        ),
        ({"view_labels": np.zeros(3)}, "the class of each of 40 points"),
        ({"example": 40}, "from 0 to 39: got 40"),
        ({"example": -1}, "from 0 to 39: got -1"),
        ({"n_listed": 0}, "n_listed must be at least 1: got 0"),
        ({"names": ("one",)}, "names must be two"),
        ({"rankings": ()}, "rankings must be two"),
    ],
)
def test_bad_input(given, target, change, message):
    with pytest.raises(ValueError, match=message):
        write_report(target, **given | change)
    assert not target.exists()


# ---------------------------------------------------------------------- small parts


@pytest.mark.parametrize(
    "values",
    [[0.0, 1.0], [0.2, 0.3], [5.0, 5.0], [-0.31, 0.72], [1.0, 873.0], [-1e-5, 2e-5]],
)
def test_axis_limits_hold_the_values_and_end_on_ticks(values):
    low, high = _limits(np.array(values))
    assert low <= min(values) <= max(values) <= high
    ticks = _ticks(Scale(low, high, 0, 1))
    assert 3 <= len(ticks) <= 9
    assert ticks[0] == pytest.approx(low, abs=1e-9)


def test_markers_of_a_hundred_classes_differ():
    assert len({class_marker(code) for code in range(100)}) == 100


def test_words():
    assert [signed(0.1), signed(-0.1), signed(0.0), signed(-1e-9)] == [
        "+0.100",
        "−0.100",
        "0.000",
        "0.000",
    ]
    assert [count(1, "query"), count(2_000, "query"), count(3, "point")] == [
        "1 query",
        "2,000 queries",
        "3 points",
    ]


def test_numbers_that_round_to_zero_have_no_sign():
    values = [-1e-5, 0.0, -0.0006, -1234.5, float("nan")]
    assert [number(v) for v in values] == ["0.000", "0.000", "−0.001", "−1,234.5", "–"]
    rows = [("a", -1e-6, 1.0), ("b", -0.5, float("nan"))]
    assert as_text(["", "x", "y"], rows).splitlines()[2:] == [
        "a   0.0000  1.0000",
        "b  -0.5000       -",
    ]


def test_labels_of_measures():
    labels = {
        "ndcg@10": "NDCG@10",
        "ndcg-linear@10": "NDCG@10 (linear gain)",
        "ndcg-linear": "NDCG (linear gain)",
        "map": "MAP",
        "p@5": "Precision@5",
        "my-own@3": "my-own@3",
    }
    assert {name: measure_label(name) for name in labels} == labels


# ---------------------------------------------------------------------- the answer


def answer_of(**changes):
    parts = {
        "kind": "equal",
        "badge": "Keep what you have",
        "sentence": f"Keep it: {HOSTILE}",
        "tables": [
            AnswerTable("Values", ["of", "mean", "n"], [("all", -0.0001, 1234)]),
            AnswerTable("Nothing", ["a"], []),
        ],
        "notes": ["A note.", HOSTILE],
        "next_steps": ["Do this.", "rankspace rank CORPUS --output RUN"],
    }
    return Answer(**parts | changes)


def test_the_answer_opens_the_page(given, target):
    write_report(target, **given, answer=answer_of())
    page, text = outline(target), target.read_text(encoding="utf-8")
    assert page.count("script") == 0
    sections = [attrs["class"] for tag, attrs in page.tags if tag == "section"]
    assert sections[0] == "answer"
    assert '<p class="badge equal">' in text
    assert "Keep what you have</p>" in text
    assert HOSTILE in page.text[page.text.index("A note.") + 1]
    # Its tables, then what to do next, then how to read them, then the measures.
    places = [
        text.index(words)
        for words in (
            '<p class="lead">Keep it',
            "<caption>Values",
            "<p>Do this.</p>",
            '<pre class="command">rankspace rank CORPUS --output RUN</pre>',
            "<li>A note.</li>",
            'id="measures"',
        )
    ]
    assert places == sorted(places)
    assert "Nothing" not in text
    assert "<td>0.000</td><td>1,234</td>" in text
    assert "No significant change" not in text


def test_an_answer_may_have_no_next_steps(given, target):
    write_report(target, **given, answer=answer_of(next_steps=[]))
    assert "<h3>Next</h3>" not in target.read_text(encoding="utf-8")


def test_similarities_are_shown_as_scores(rng, target):
    """Rankings keep similarities as negative distances; the page shows what they are."""
    case_ = case(rng)
    before, after = case_["rankings"]
    by_products = replace(before, distances=before.distances - 50, similarity="dot")
    write_report(target, **case_ | {"rankings": (by_products, after)}, example=3)
    text = target.read_text(encoding="utf-8")
    lists = text[text.index('id="example"') :]
    assert lists.count(">score</th>") == 1
    assert lists.count(">distance</th>") == 1
    assert lists.index(">score</th>") < lists.index(">distance</th>")
    assert not re.search(r">−\d", lists)
    nearest = before[3][1][0]
    assert f">{50 - nearest:.3f}</td>" in lists


# ---------------------------------------------------------------------- in a browser


def console_of(page, folder):
    """Lines that Chromium's console shows for a page, and the document it made of it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update --enable-logging=stderr --v=0"
    )
    command = [
        browser,
        *flags.split(),
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*command, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [
        line for line in done.stderr.splitlines() if ":CONSOLE" in line
    ], done.stdout


def test_chromium_shows_the_page_without_complaint(given, target, tmp_path):
    console, document = console_of(write_report(target, **given), tmp_path)
    assert console == []
    assert document.count('class="dot ') == 40


def test_the_console_check_can_fail(given, target, tmp_path):
    page = write_report(target, **given)
    faulty = page.read_text(encoding="utf-8").replace(' d="M', ' d="oops')
    page.write_text(faulty, encoding="utf-8")
    console, _ = console_of(page, tmp_path)
    assert any("oops" in line for line in console)


def test_gains_and_losses_are_explained_by_their_relevant_item(rng, target):
    given = case(rng, better=False)
    asked = []

    def explain(query, item):
        asked.append((query, item))
        return ["because of <this>"]

    page = write_report(target, **given, n_extremes=2, explain=explain).read_text()
    assert page.count("Why: the relevant item") == len(asked) > 0
    assert page.count("<li>because of &lt;this&gt;</li>") == len(asked)
    relevance = given["relevance"]
    for query, item in asked:
        assert item in relevance.relevant(query)
    without = write_report(target, **given, n_extremes=2).read_text()
    assert "Why: " not in without
