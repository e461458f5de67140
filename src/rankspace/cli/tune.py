"""The command ``rankspace tune``: cross-validate candidates and write the best metric."""

from __future__ import annotations

import argparse
import re
from typing import Any

from .options import add_cluster, add_training_data, add_verb, as_json, check_output
from .progress import Progress, on_cluster

# Those of tuning.candidates, which takes long to import.
METHODS = ("listwise", "diagonal", "frml", "mlr")
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_tune(verbs: Any) -> None:
    """Add the verb ``tune``."""
    parser = add_verb(
        verbs,
        tune,
        "learn a better metric from judgments, if there is one",
        "Cross-validate several learned metrics, print the gain of the best one on held-out "
        "queries, and write it. If there is no significant improvement, write the identity.",
        "rankspace tune scifact --split train --output scifact.safetensors",
    )
    add_training_data(parser)
    parser.add_argument("--dev", help="split to evaluate on, in place of folds")
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help=f"methods to try, of {', '.join(METHODS)}; by default those fast enough for the data",
    )
    parser.add_argument(
        "--exhaustive",
        action="store_true",
        help="try all candidates on all folds, even after a significant improvement",
    )
    parser.add_argument(
        "--measure", default="ndcg-linear@10", help="measure to improve"
    )
    parser.add_argument(
        "--generalise",
        action="store_true",
        help="select by queries with only new relevant items",
    )
    parser.add_argument(
        "--budget", type=seconds, help="time limit, such as 60s, 10m or 1h"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    add_cluster(parser)
    parser.add_argument(
        "--report", help="also write an HTML page, with the texts of a BEIR folder"
    )
    parser.add_argument("--output", required=True, help="metric file to write")


def tune(options: argparse.Namespace) -> str:
    """Learn a better metric from judgments, if there is one."""
    check_output(options.report)
    with Progress("rankspace tune") as progress:
        progress.say(f"reading {options.data}")
        dataset, dev = _read_data(options)
        with on_cluster(options, progress):
            tuned = _tune(dataset, dev, options, progress)
        if options.report:
            progress.say(f"writing {options.report}")
            _write_page(tuned.report, dataset, options.report)
    tuned.metric.save(options.output)
    if options.json:
        files = {"output": options.output, "report": options.report}
        return as_json({**tuned.report.to_dict(), **files})
    written = options.output
    if options.report:
        written += f" and {options.report}"
    return f"{tuned}\nwrote {written}"


def _tune(
    dataset: Any, dev: Any, options: argparse.Namespace, progress: Progress
) -> Any:
    from ..tuning.tuner import tune as tune_metric

    def show(step: str, fraction: float) -> None:
        progress.say(f"{fraction:4.0%} {step}")

    return tune_metric(
        dataset.X,
        dataset.relevance,
        queries=dataset.queries,
        dev=dev,
        measure=options.measure,
        methods=options.methods,
        exhaustive=options.exhaustive,
        generalise=options.generalise,
        budget=options.budget,
        random_state=options.seed,
        progress=show,
    )


def _write_page(report: Any, dataset: Any, path: str) -> None:
    from .inputs import query_texts_of

    report.write_page(
        path,
        title=f"rankspace tune: {dataset.name}",
        texts=dataset.texts,
        query_texts=query_texts_of(dataset),
    )


def seconds(text: str) -> float:
    """Parse a time such as ``90``, ``60s`` or ``10m``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a time such as 60s, 10m or 1h: got {text!r}"
        )
    return float(match[1]) * UNITS[match[2]]


def _read_data(options: argparse.Namespace) -> tuple[Any, Any]:
    """The data set to tune on, and the numbers of its ``--dev`` queries."""
    import numpy as np

    from .inputs import check_split, open_data, training_data

    if options.dev is None:
        return training_data(options), None
    dataset = open_data(
        options.data, None, embeddings=options.embeddings, unknown=options.unknown
    )
    check_split("--dev", options.dev, options.data, dataset)
    dev = dataset.splits[options.dev]
    if options.split is None:
        return dataset, dev
    check_split("--split", options.split, options.data, dataset)
    queries = np.union1d(dataset.splits[options.split], dev)
    return dataset.part(queries), np.searchsorted(queries, dev)
