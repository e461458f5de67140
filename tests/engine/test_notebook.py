"""What notebooks show: small tables without outside resources, and links to the documentation."""

from html.parser import HTMLParser

import numpy as np
import pytest

import rankspace
from rankspace import FRML, Index, LinearRanker, Relevance, compare, evaluate, tune
from rankspace._engine.tables import as_frame, as_html, as_latex
from rankspace.datasets import load_wine


class Cells(HTMLParser):
    """Cells of a table, and any attribute that would load something."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.loads, self.open = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.open = tag in ("td", "th")
        self.loads += [name for name, _ in attrs if name in ("src", "href")]
        self.cells += [""] if self.open else []

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def wine():
    return load_wine()


@pytest.fixture(scope="module")
def reports(wine):
    ranking = Index(wine.X).rank(k=10)
    before = evaluate(ranking, wine.relevance, "p@1 p@10")
    metric = FRML(2, n_triplets=2000, random_state=0).fit(wine.X, wine.labels).metric_
    after = evaluate(Index(wine.X, metric).rank(), wine.relevance, "p@1 p@10")
    return before, after


def views(wine, reports):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    yield Index(wine.X).rank(k=3)
    yield wine
    yield wine.relevance
    yield Relevance.from_lists([[1], [0]], n_items=3)
    yield from reports
    yield compare(*reports)
    yield tune(X, y, measure="map", random_state=0)


def test_views_are_small_tables_that_load_nothing(wine, reports):
    for thing in views(wine, reports):
        view = thing._repr_html_()
        read = Cells(view)
        assert read.cells
        assert not read.loads
        assert len(view) < 10_000
        assert "http" not in view


def test_the_view_of_a_comparison_has_the_numbers_that_it_prints(reports):
    comparison = compare(*reports)
    printed = str(comparison).split("\n")[3].split()
    assert printed == Cells(comparison._repr_html_()).cells[8:16]


def test_text_in_a_view_is_escaped():
    view = as_html(["<b>", "n"], [("<script>", 1)], before=["a & b"], after=["<i>"])
    assert Cells(view).cells == ["<b>", "n", "<script>", "1"]
    assert "<script>" not in view
    assert "<p>a &amp; b</p>" in view


def test_latex_and_frames_have_the_cells_of_the_table(reports, tmp_path):
    report = reports[0]
    frame = report.to_frame()
    assert frame.index.tolist() == ["p@1", "p@10"]
    assert frame.loc["p@1", "mean"] == report.means["p@1"]
    rows = [line for line in report.to_latex().split("\n") if line.endswith(r"\\")]
    cells = [cell.strip() for cell in rows[1].removesuffix(r"\\").split("&")]
    assert cells == str(report).split("\n")[3].split()
    assert report.write(tmp_path / "r.tex").read_text() == report.to_latex()


def test_latex_escapes_its_characters():
    table = as_latex(["a_b", "c"], [("50 %", 0.5), ("~", float("nan"))], "A & B")
    assert r"a\_b & c" in table
    assert r"50 \% & 0.5000" in table
    assert r"\textasciitilde{} & -" in table
    assert r"\caption{A \& B}" in table


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[frames\]'"):
        as_frame(["a"], [(1,)])


class Mine(LinearRanker):
    """A learner of somebody else."""


def test_estimators_link_to_their_page_once_there_is_an_address(monkeypatch):
    assert FRML()._get_doc_link() == ""
    template = "https://docs.invalid/generated/rankspace.{estimator_name}.html"
    monkeypatch.setattr(rankspace.BaseRanker, "_doc_link_template", template)
    expected = "https://docs.invalid/generated/rankspace.FRML.html"
    assert FRML()._get_doc_link() == expected
    assert expected in FRML()._repr_html_()
    assert Mine()._get_doc_link() == ""
