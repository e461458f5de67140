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
        )
    comparison = compare_reports(before, after)
    if options.json:
        return comparison.to_json()
    return f"{comparison}\nwrote {options.output}"


def _given(options: argparse.Namespace) -> str:
    """What the page compares; whether the queries were trained on is not known."""
    split = "" if options.split is None else f", split {options.split}"
    return f"Runs: {options.before} and {options.after}. Judgments: {options.judgments}{split}."
