"""The command ``rankspace evaluate``: score a run file."""

from __future__ import annotations

import argparse
from typing import Any

from .options import add_cluster, add_judgments, add_table_output, add_verb, show_table


def add_evaluate(verbs: Any) -> None:
    """Add the verb ``evaluate``."""
    parser = add_verb(
        verbs,
        evaluate,
        "evaluate a run against judgments",
        "Evaluate a run file against judgments: means over queries with 95 % confidence "
        "intervals.",
        "rankspace evaluate before.trec scifact_sample --split test --measures 'map mrr'",
    )
    parser.add_argument("run", metavar="RUN", help="TREC run file, plain or .gz")
    add_judgments(parser)
    add_cluster(parser)
    add_table_output(parser)


def evaluate(options: argparse.Namespace) -> str:
    """Evaluate a run against judgments."""
    from .inputs import evaluate_run

    return show_table(evaluate_run(options.run, options), options)
