"""The command ``rankspace compare``: paired test of two run files."""

from __future__ import annotations

import argparse
from typing import Any

from .options import add_runs, add_table_output, add_verb, as_json, show_table

WORSE = 1  # exit code


def add_compare(verbs: Any) -> None:
    """Add the verb ``compare``."""
    parser = add_verb(
        verbs,
        compare,
        "test the difference between two runs",
        "Compare two runs query by query: difference, 95 % confidence interval, and p-value of a "
        "paired randomisation test. With --fail-if-worse, the exit code is 1 if the first measure "
        "is worse: its drop exceeds the tolerance, and its one-sided 95 % bound is below 0.",
        "rankspace compare before.trec after.trec qrels.tsv",
    )
    add_runs(parser)
    add_table_output(parser)
    parser.add_argument(
        "--fail-if-worse",
        type=float,
        metavar="TOLERANCE",
        help="exit with 1 if the first measure drops by more than this",
    )


def compare(options: argparse.Namespace) -> str:
    """Test the difference between two runs."""
    from ..evaluation import check_regression
    from ..evaluation.measures import compare as compare_reports
    from .inputs import evaluate_run

    before = evaluate_run(options.before, options)
    after = evaluate_run(options.after, options)
    table = compare_reports(before, after)
    if options.fail_if_worse is None:
        return show_table(table, options)
    tested = check_regression(before, after, options.fail_if_worse)
    if tested.outcome == "worse":
        options.exit_code = WORSE
    shown = show_table(table, options)
    if options.json:
        return as_json({**table.to_dict(), "fail_if_worse": tested.to_dict()})
    return f"{shown}\n{tested}"
