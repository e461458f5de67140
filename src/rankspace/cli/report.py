"""The command ``rankspace report``: compare two run files on an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import add_runs, add_verb
from .progress import Progress


def add_report(verbs: Any) -> None:
    """Add the verb ``report``."""
    parser = add_verb(
        verbs,
        report,
        "compare two runs on an HTML page",
        "Compare two runs query by query and write an HTML page: all measures, and the queries "
        "that gain and lose most, with their texts if the judgments come from a BEIR folder.",
        "rankspace report before.trec after.trec my-collection --output report.html",
    )
    add_runs(parser)
    parser.add_argument(
        "--metric",
        help="metric file of the run AFTER: explain what moved the queries that gain and lose "
        "most, if JUDGMENTS have vectors",
    )
    parser.add_argument("--output", required=True, help="HTML page to write")


def report(options: argparse.Namespace) -> str:
    """Compare two runs on an HTML page."""
    from ..datasets import read_trec_run
    from ..display.page.report import write_report
    from ..evaluation.measures import compare as compare_reports
    from ..evaluation.measures import evaluate
    from .inputs import read_judgments

    with Progress("rankspace report") as progress:
        progress.say("reading")
        relevance, texts, query_texts = read_judgments(options)
        rankings = read_trec_run(options.before), read_trec_run(options.after)
        progress.say("evaluating")
        before, after = [
            evaluate(ranking, relevance, options.measures, ties=options.ties)
            for ranking in rankings
        ]
        write_report(
            options.output,
            title=f"{options.before} and {options.after}",
            before=before,
            after=after,
            names=(Path(options.before).name, Path(options.after).name),
            rankings=rankings,
            relevance=relevance,
            n_extremes=5,
            notes=[_given(options)],
            describe_item=texts and texts.__getitem__,
            describe_query=query_texts and query_texts.__getitem__,
            explain=_explainer(options, relevance),
        )
    comparison = compare_reports(before, after)
    if options.json:
        return comparison.to_json()
    return f"{comparison}\nwrote {options.output}"


def _explainer(options: argparse.Namespace, relevance: Any) -> Any:
    """What moved the score of an item for a query, by the metric of the run after."""
    if options.metric is None:
        return None
    from ..display.page.explained import explanation_lines
    from ..metrics import load_metric
    from .inputs import open_data, with_ids

    if Path(options.judgments).is_file():
        raise ValueError(
            "--metric needs vectors, and a qrels file has none: name a BEIR folder or a data set."
        )
    dataset = open_data(options.judgments, options.split, unknown=options.unknown)
    metric: Any = load_metric(options.metric)
    queries = dataset.queries
    if queries is None:
        queries = dataset.X[dataset.relevance.query_items]
    named = with_ids(dataset.relevance)
    query_rows = {name: row for row, name in enumerate(named.query_ids)}
    item_rows = {name: row for row, name in enumerate(named.item_ids)}

    def explain(query: int, item: int) -> list[str]:
        q = queries[query_rows[relevance.query_ids[query]]]
        x = dataset.X[item_rows[relevance.item_ids[item]]]
        found = metric.explain(q, x, "unchanged")
        return explanation_lines(found, ("unchanged", "by the metric"))

    return explain


def _given(options: argparse.Namespace) -> str:
    """What the page compares; whether the queries were trained on is not known."""
    split = "" if options.split is None else f", split {options.split}"
    return f"Runs: {options.before} and {options.after}. Judgments: {options.judgments}{split}."
