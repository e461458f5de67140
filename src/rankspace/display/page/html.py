"""Frame and style of the report page, and how it writes numbers, measures and verdicts."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...evaluation.measures import MEASURES
from ...evaluation.report import Comparison, Report
from ..figures import COLOURS
from .svg import bar_pair

# Significance level of the words "beyond chance".
LEVEL = 0.05
_LONGEST = 140

_CHANGE_WORDS = {"equal": "may be chance", "worse": "a loss"}


def text(value: object) -> str:
    """Escape for HTML; what UTF-8 cannot hold becomes a question mark."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def number(value: float) -> str:
    """Three decimals, fewer for large numbers, a dash for NaN."""
    if value != value:
        return "–"
    return f"{value:.3f}".replace("-", "−") if abs(value) < 100 else f"{value:,.1f}"


def signed(value: float) -> str:
    """A number that always shows its sign, zero without one."""
    shown = number(value)
    return (
        "+" + shown
        if value > 0 and float(f"{value:.3f}") > 0
        else shown.replace("−0.000", "0.000")
    )


def shorten(description: str) -> str:
    """Cut a long description."""
    shown = " ".join(str(description).split())
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def p_text(p: float) -> str:
    """``p = 0.031`` or ``p < 0.001``."""
    # Hard spaces keep it on one line.
    return "p\u00a0<\u00a00.001" if p < 0.001 else f"p\u00a0=\u00a0{p:.3f}"


def count(n: int, noun: str) -> str:
    """``1 query``, ``1,200 queries``."""
    plural = (
        noun[:-1] + "ies"
        if noun.endswith("y")
        else noun + ("es" if noun[-1] == "s" else "s")
    )
    return f"{n:,} {noun if n == 1 else plural}"


def measure_label(name: str) -> str:
    """``ndcg@10`` as people write it: ``NDCG@10``. Unknown names stay as they are."""
    stem, at, cut = name.partition("@")
    label = MEASURES[stem].label if stem in MEASURES else stem
    return label + at + cut


def measure_meaning(name: str) -> str:
    """What a measure says, in a few words; empty for unknown names."""
    stem, _, cut = name.partition("@")
    if stem not in MEASURES:
        return ""
    meaning = MEASURES[stem].meaning.replace("{k}", cut)
    return f"{meaning} in the first {cut}" if cut and "ndcg" in stem else meaning


class Verdict(NamedTuple):
    """What became of a measure: a style class, a word, and a sentence in plain words."""

    kind: str
    word: str
    sentence: str


def verdict(name: str, comparison: Comparison, names: tuple[str, str]) -> Verdict:
    """Say whether a measure got better, worse, or neither beyond chance."""
    difference, p = comparison.difference[name], comparison.p_value[name]
    low, high = comparison.interval[name]
    smaller = name in comparison.smaller_is_better
    label = measure_label(name) + (", where smaller is better," if smaller else "")
    numbers = (
        f"from {number(comparison.before[name])} ({names[0]}) to {number(comparison.after[name])} "
        f"({names[1]}): {signed(difference)}, 95 % interval {signed(low)} to {signed(high)}, "
        f"{p_text(p)}, on {count(comparison.n_queries[name], 'held-out query')}."
    )
    if p >= LEVEL or difference == 0:
        sentence = f"No change beyond chance: {label} goes {numbers}"
        return Verdict("equal", "No change beyond chance", sentence)
    moves = "rises" if difference > 0 else "falls"
    if (difference < 0) == smaller:
        return Verdict("better", "Better", f"{label} {moves} {numbers}")
    sentence = f"{label} {moves} {numbers} This is a loss: {names[1]} ranks worse than {names[0]}."
    return Verdict("worse", "Worse", sentence)


def section(name: str, heading: str, body: str) -> str:
    """A part of the page under a heading of its own; ``name`` is its style class too."""
    return (
        f'<section class="{name}" aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>'
        f"{body}</section>"
    )


def table(
    caption: str, heads: Iterable[str], rows: Iterable[str], kind: str = ""
) -> str:
    """A table that scrolls by itself where the screen is narrow; heads and rows are cells."""
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def column(name: str, kind: str = "") -> str:
    """The head of a column."""
    return f'<th scope="col" class="{kind}">{text(name)}</th>'


def interval(limits: tuple[float, float], form: Callable[[float], str] = number) -> str:
    """``0.61 to 0.67``, each limit in the given form."""
    return f"{form(limits[0])} to\u00a0{form(limits[1])}"


def measures_table(
    before: Report, after: Report, comparison: Comparison, names: tuple[str, str]
) -> str:
    """Both means of each measure, their difference, its test, and a picture of the intervals."""
    heads = [
        column("measure", "left"),
        *map(column, names),
        column("change"),
        column("p-value"),
    ]
    rows = []
    for name in comparison.before:
        picture = _interval_picture(before, after, name)
        cells = measure_cells(name, before, after, comparison)
        rows.append(_measure_head(name, comparison) + cells + picture)
    key = f"Upper bar: {text(names[0])}. Lower bar: {text(names[1])}."
    caption = (
        f'Means over queries, with 95 % intervals. <span class="meaning">{key}</span>'
    )
    return table(caption, [*heads, column("from 0 to 1", "plot")], rows)


def measure_cells(
    name: str, before: Report, after: Report, comparison: Comparison
) -> str:
    """Both means of a measure, their difference and its test."""
    return "".join(
        [_mean_cell(before, name), _mean_cell(after, name), *_change(name, comparison)]
    )


def _measure_head(name: str, comparison: Comparison) -> str:
    smaller = (
        "<small>smaller is better</small>"
        if name in comparison.smaller_is_better
        else ""
    )
    meaning = f'<small class="meaning">{text(measure_meaning(name))}</small>'
    return f'<th scope="row">{text(measure_label(name))}{smaller}{meaning}</th>'


def _change(name: str, comparison: Comparison) -> tuple[str, str]:
    kind = verdict(name, comparison, ("", "")).kind
    change = f'<b class="{kind}">{signed(comparison.difference[name])}</b>'
    p = p_text(comparison.p_value[name]).removeprefix("p\u00a0").removeprefix("=\u00a0")
    word = "" if kind == "better" else f"<small>{_CHANGE_WORDS[kind]}</small>"
    return (
        f"<td>{change}<small>{interval(comparison.interval[name], signed)}</small></td>",
        f"<td>{text(p)}{word}</td>",
    )


def _mean_cell(report: Report, name: str) -> str:
    if name not in report.values:
        return "<td>–</td>"
    return f"<td>{number(report.means[name])}<small>{interval(report.intervals[name])}</small></td>"


def _interval_picture(before: Report, after: Report, name: str) -> str:
    """A cell with both intervals drawn, empty where they leave the span from 0 to 1."""
    old, new = ((r.means[name], *r.intervals[name]) for r in (before, after))
    if not all(0 <= value <= 1 for value in (*old, *new)):
        return '<td class="plot"></td>'
    told = f"{measure_label(name)}: {number(old[0])}, then {number(new[0])}"
    return f'<td class="plot">{bar_pair(old, new, told)}</td>'


def methods_table(methods: Mapping[str, Report], measures: Iterable[str]) -> str:
    """The means of several methods, one a row."""
    measures = list(measures)
    heads = [
        column("method", "left"),
        *(column(measure_label(name)) for name in measures),
    ]
    rows = (
        f'<th scope="row">{text(method)}</th>'
        + "".join(_mean_cell(report, name) for name in measures)
        for method, report in methods.items()
    )
    return table("Means over the same queries, with 95 % intervals.", heads, rows)


def tiles(shown: Iterable[tuple[str, str, str]]) -> str:
    """Large numbers: what each is, its value, and a small line below."""
    parts = (
        f"<div><dt>{text(term)}</dt><dd>{text(value)}<small>{text(more)}</small></dd></div>"
        for term, value, more in shown
    )
    return f'<dl class="tiles">{"".join(parts)}</dl>'


class ListRow(NamedTuple):
    """An item of a list; ``former`` is its place in the other list, 0 if it was not there."""

    told: str
    mark: str
    distance: float
    former: int | None


def list_table(name: str, value: str, rows: Sequence[ListRow]) -> str:
    """The top of one query's list, relevant items marked by a sign, a tint and weight."""
    heads = [
        column("rank"),
        column("", "mark"),
        column("item", "item"),
        column("distance"),
    ]
    if any(row.former is not None for row in rows):
        heads.append(column("was"))
    hits = sum(row.mark.startswith("✓") for row in rows)
    caption = f"<strong>{text(name)}</strong> {text(value)}, {hits} of the first {len(rows)} relevant"
    return table(
        caption, heads, (_list_cells(i, row) for i, row in enumerate(rows, 1)), "list"
    )


def _list_cells(place: int, row: ListRow) -> str:
    kind = "hit" if row.mark.startswith("✓") else ""
    sign, word = ("✓", row.mark[1:]) if kind else ("", row.mark)
    former = (
        "" if row.former is None else f'<td class="{kind}">{row.former or "–"}</td>'
    )
    return (
        f'<td class="{kind}">{place}</td>'
        f'<td class="{kind} mark">{sign}<span class="word">{text(word)}</span></td>'
        f'<td class="{kind} item">{text(shorten(row.told))}</td>'
        f'<td class="{kind}">{number(row.distance)}</td>{former}'
    )


def page(title: str, head: str, sections: list[str], foot: str, style: str = "") -> str:
    """One HTML document that needs nothing but itself and runs no script."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{text(title)}</title>",
            f"<style>{_STYLE}{style}</style>",
            "</head>",
            "<body>",
            f"<header>{head}</header>",
            "<main>",
            *sections,
            "</main>",
            f"<footer>{foot}</footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


_LIGHT = """
--page:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#566072;--line:#dfe3ea;--grid:#e9ecf1;
--good:#0069a8;--good-tint:#e4f1fa;--bad:#b84a00;--bad-tint:#fdeee3;--flat:#697386;
--flat-tint:#eceff3;
""" + "".join(f"--c{i}:{colour};" for i, colour in enumerate(COLOURS))
_DARK = """
--page:#11151c;--card:#1a202a;--ink:#e8ecf2;--soft:#a3adbd;--line:#303948;--grid:#29313e;
--good:#63b8f0;--good-tint:#17324a;--bad:#f59a5e;--bad-tint:#432a1a;--flat:#9aa5b6;
--flat-tint:#29313e;
--c0:#3d9fe0;--c1:#f0763a;--c2:#2bc49a;--c3:#eaa9cd;--c4:#f5b83d;--c5:#97d6fa;--c6:#cf5f93;
--c7:#c5c55a;--c8:#978eea;--c9:#aab2c0;
"""
_STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    + "".join(f".c{i}{{fill:var(--c{i})}}" for i in range(len(COLOURS)))
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main,footer{max-width:1080px;margin:0 auto;padding:0 24px}
header{padding-top:44px}
h1,h2,h3{line-height:1.2;margin:0;overflow-wrap:anywhere;text-wrap:balance}
h1{font-size:clamp(1.6rem,1.2rem + 2vw,2.3rem);letter-spacing:-.015em}
h2{font-size:1.25rem}h3{font-size:1rem}
p{margin:.5em 0;max-width:76ch;overflow-wrap:anywhere}
.soft{color:var(--soft);font-size:.9rem}
.badge{display:inline-block;margin:16px 0 2px;padding:3px 12px;border-radius:99px;
font-size:.85rem;font-weight:600}
.badge.better{color:var(--good);background:var(--good-tint)}
.badge.worse{color:var(--bad);background:var(--bad-tint)}
.badge.equal{color:var(--soft);background:var(--flat-tint)}
.lead{font-size:1.1rem;margin:.4em 0 1.3em}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin:0;padding:0}
.tiles div,section{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tiles div{padding:14px 18px;display:flex;flex-direction:column;min-width:0}
.tiles dt{color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}
.tiles dd{margin:0;font-size:1.7rem;font-weight:650;line-height:1.25;
font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.tiles small{display:block;font-weight:400;letter-spacing:0;color:var(--soft);font-size:.8rem}
section{margin:18px 0;padding:24px}
section>h2+p{margin-top:.35em}
.scroll{overflow-x:auto}
.scroll:focus-visible,label:focus-within{outline:2px solid var(--good);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);font-size:.9rem;padding:0 0 8px}
caption strong{color:var(--ink);font-size:1rem;display:block}
th,td{padding:9px 10px;text-align:right;vertical-align:top;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:0}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child>*{border-bottom:0}
thead th{font-size:.82rem;font-weight:600;color:var(--soft);vertical-align:bottom;
border-bottom:2px solid var(--line);overflow-wrap:anywhere}
th[scope=row],.left{text-align:left}
th small,td small{display:block;font-weight:400;font-size:.8rem;color:var(--soft)}
td small{white-space:nowrap}
td b.better{color:var(--good)}
td b.worse{color:var(--bad)}
.plot{width:240px;text-align:left;padding-left:24px}
.plot svg{width:218px;height:34px;display:block;margin-top:4px}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:24px;margin-top:16px}
.pair>*{min-width:0}
figure{margin:0}
figure svg{display:block;width:100%;height:auto}
.narrow{max-width:620px}
figcaption{font-size:.95rem;font-weight:600;margin-bottom:6px;overflow-wrap:anywhere}
.counts{display:flex;flex-wrap:wrap;gap:6px 22px;list-style:none;padding:0;margin:10px 0 0}
.counts li{display:flex;align-items:center;gap:7px}
.key{width:15px;height:15px;flex:none}
.grid{stroke:var(--grid)}.zero{stroke:var(--soft)}
.diagonal{stroke:var(--soft);stroke-dasharray:5 4}
.frame{fill:none;stroke:var(--line)}
.tick{fill:var(--soft);font-size:12px}
.axis{fill:var(--soft);font-size:13px}
.mid{text-anchor:middle}.end{text-anchor:end}
svg .better{fill:var(--good)}
svg .worse{fill:var(--bad)}
svg .equal{fill:var(--flat)}
.dot{fill-opacity:.62;stroke:var(--card);stroke-width:.6}
.dot:hover{fill-opacity:1;stroke:var(--ink)}
.point{fill-opacity:.78;stroke:var(--card);stroke-width:.5;transition:opacity .15s}
.bar.old{fill:var(--flat-tint);stroke:var(--flat)}
.bar.new{fill:var(--c5);stroke:var(--good)}
.reach{stroke:var(--ink);stroke-width:1.4;fill:none}
.legend{border:0;margin:14px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:6px;min-width:0}
.legend legend{padding:0 0 6px;font-size:.9rem;color:var(--soft)}
.legend label{display:flex;align-items:center;gap:6px;padding:3px 11px;font-size:.9rem;
border:1px solid var(--line);border-radius:99px;cursor:pointer;overflow-wrap:anywhere}
.legend label:has(:checked){border-color:var(--ink);background:var(--flat-tint)}
.legend input{position:absolute;opacity:0;width:1px;height:1px;margin:0}
.list td,.list th{padding:7px 8px}
.list .item{text-align:left;overflow-wrap:anywhere;width:99%}
.list thead th{overflow-wrap:normal}
.list .hit{background:var(--good-tint)}
.list td:first-child,.list th:first-child{padding-left:8px}
.list td:last-child,.list th:last-child{padding-right:8px}
.list .mark{text-align:left;white-space:nowrap;font-size:.85rem;color:var(--soft)}
.list .hit.mark{color:var(--good);font-weight:650}
.list .hit.item{font-weight:600}
footer{color:var(--soft);font-size:.88rem;padding-bottom:48px}
footer ul{padding-left:1.2em;margin:.4em 0}
footer li,footer p{max-width:90ch;overflow-wrap:anywhere}
@media print,screen and (max-width:760px){
.plot,.meaning{display:none!important}
td small{white-space:normal;font-size:.74rem}
.list .hit .word{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
}
@media screen and (max-width:760px){
header,main,footer{padding-left:14px;padding-right:14px}
header{padding-top:26px}
.tiles{grid-template-columns:1fr 1fr}
.tiles div{padding:11px 14px}
.tiles dd{font-size:1.4rem}
section{padding:18px 14px;border-radius:10px}
.pair{grid-template-columns:1fr}
th,td{padding:8px 5px;font-size:.92rem}
.measures tr{display:grid;grid-template-columns:1fr 1fr 1.15fr .95fr}
.measures tr>:first-child{grid-column:1/-1;text-align:left;border:0;padding-bottom:0}
.measures thead tr>:first-child{display:none}
.measures td:nth-child(2),.measures th:nth-child(2){padding-left:0}
.measures tr>:nth-child(5){padding-right:0}
caption{max-width:calc(100vw - 60px)}
.list td,.list th{padding:7px 5px}
}
@media (prefers-reduced-motion:reduce){*{transition:none!important}}
@media print{
@page{margin:14mm}
html{font-size:12px}
body{background:#fff;font-size:1rem;print-color-adjust:exact;-webkit-print-color-adjust:exact}
header,main,footer{max-width:none;padding:0}
section,.tiles div{border-color:#ccc}
section{padding:14px 16px}
figure,tr,.tiles,.list{break-inside:avoid}
h2{break-after:avoid}
.legend label:first-of-type{display:none}
}
"""
)
