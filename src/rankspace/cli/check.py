"""The command ``rankspace check``: is a metric still right for the queries that come now?"""

from __future__ import annotations

import argparse
from typing import Any

from .options import add_ids, add_verb, as_json
from .progress import Progress

FAILED = 1  # exit code


def add_check(verbs: Any) -> None:
    """Add the verb ``check``."""
    parser = add_verb(
        verbs,
        check,
        "check a metric against new queries",
        "Test whether new queries have drifted from those that a metric was learned from, by the "
        "sample of these in its file. With --qrels and --items, also test whether its gain over "
        "unchanged vectors has survived on new judgments. The exit code is 1 if queries have "
        "drifted or the gain is lost.",
        "rankspace check my.safetensors --queries new-queries.npy",
    )
    parser.add_argument("metric", metavar="METRIC", help="metric file")
    parser.add_argument(
        "--queries", required=True, help="file of vectors of new queries"
    )
    parser.add_argument("--qrels", help="file of new judgments (TREC or BEIR)")
    parser.add_argument("--items", help="file of vectors of the corpus, with --qrels")
    add_ids(parser)
    parser.add_argument(
        "--unknown",
        choices=("error", "drop"),
        default="error",
        help="what to do with judgments of queries or items without a vector",
    )
    parser.add_argument(
        "--level", type=float, default=0.05, help="rate of false alarms of drift"
    )
    parser.add_argument(
        "--measure", help="measure of the gain; by default that of the metric's card"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed")


def check(options: argparse.Namespace) -> str:
    """Check a metric against new queries."""
    from .._engine.vectors import read_vectors
    from ..evaluation import check_drift
    from ..metrics import load_metric

    _check_options(options)
    with Progress("rankspace check") as progress:
        progress.say(f"reading {options.queries}")
        metric: Any = load_metric(options.metric)
        queries = read_vectors(options.queries)
        found: dict[str, Any] = {}
        found["drift"] = check_drift(
            metric, queries, level=options.level, random_state=options.seed
        )
        if options.qrels is not None:
            progress.say(f"searching {options.items}")
            found["gain"] = _gain(metric, options)
    if any(tested.outcome in ("drifted", "lost") for tested in found.values()):
        options.exit_code = FAILED
    if options.json:
        return as_json({name: tested.to_dict() for name, tested in found.items()})
    return "\n".join(str(tested) for tested in found.values())


def _check_options(options: argparse.Namespace) -> None:
    if (options.qrels is None) != (options.items is None):
        raise ValueError(
            "new judgments need both --qrels and --items: without the vectors of the corpus "
            "nothing can be searched."
        )
    if options.qrels is None:
        for name in ("ids", "query_ids", "measure"):
            if vars(options)[name] is not None:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} can only be used with --qrels.")


def _gain(metric: Any, options: argparse.Namespace) -> Any:
    """Whether the gain of the metric has survived on new judgments."""
    from ..evaluation import check_gain
    from .inputs import training_data

    files = {"data": options.items, "labels": None, "split": None, "embeddings": None}
    dataset = training_data(argparse.Namespace(**{**vars(options), **files}))
    return check_gain(
        metric,
        dataset.X,
        dataset.relevance,
        dataset.queries,
        measure=options.measure,
    )
