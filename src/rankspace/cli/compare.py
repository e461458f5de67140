"""The command ``rankspace compare``: paired test of two run files."""

from __future__ import annotations

import argparse
from typing import Any

from .options import add_runs, add_table_output, add_verb, show_table


def add_compare(verbs: Any) -> None:
    """Add the verb ``compare``."""
    parser = add_verb(
        verbs,
        compare,
        "test the difference between two runs",
        "Compare two runs query by query: difference, 95 % confidence interval, and p-value of a "
        "paired randomisation test.",
        "rankspace compare before.trec after.trec qrels.tsv",
    )
    add_runs(parser)
    add_table_output(parser)


def compare(options: argparse.Namespace) -> str:
    """Test the difference between two runs."""
    from ..evaluation.measures import compare as compare_reports
    from .inputs import evaluate_run

    before = evaluate_run(options.before, options)
    after = evaluate_run(options.after, options)
    return show_table(compare_reports(before, after), options)
