"""The verb ``rankspace tune``."""

from __future__ import annotations

import argparse
import re
from typing import Any

from .cluster import add_cluster, on_cluster
from .options import add_taught_data, add_verb, as_json, check_output
from .progress import Progress

METHODS = (
    "listwise",
    "diagonal",
    "frml",
    "mlr",
)  # of _candidates, which takes long to import
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def add_tune(verbs: Any) -> None:
    """The words of ``tune``."""
    parser = add_verb(
        verbs,
        tune,
        "learn a better metric from judgments, if there is one",
        "Try several learned metrics on held-out queries, say what the best is worth, and write "
        "it; if nothing is better beyond chance, say so and write the identity.",
        "rankspace tune scifact --split train --output scifact.safetensors",
    )
    add_taught_data(parser)
    parser.add_argument(
        "--dev", help="a split to judge by, in place of folds of the queries"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help=f"what to try, of {', '.join(METHODS)}; by default what suits the size",
    )
    parser.add_argument(
        "--exhaustive",
        action="store_true",
        help="try all of them on all folds, though less would do",
    )
    parser.add_argument("--measure", default="ndcg-linear@10", help="what to choose by")
    parser.add_argument(
        "--generalise",
        action="store_true",
        help="choose by queries with new relevant items only, and try a careful map at once",
    )
    parser.add_argument(
        "--budget", type=seconds, help="time to take, such as 60s, 10m or 1h"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the folds and the learners"
    )
    add_cluster(parser)
    parser.add_argument(
        "--report", help="also write an HTML page, with the texts of a BEIR folder"
    )
    parser.add_argument("--output", required=True, help="the metric file to write")


def tune(options: argparse.Namespace) -> str:
    """Learn a better metric from judgments, if there is one."""
    from ..tuning.tuner import tune as tune_metric

    check_output(options.report)
    with Progress("rankspace tune") as progress:
        progress.say("reading")
        dataset, dev = _with_dev(options)
        with on_cluster(options, progress):
            tuned = tune_metric(
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
                progress=lambda step, share: progress.say(f"{share:4.0%} {step}"),
            )
        if options.report:
            progress.say(f"writing {options.report}")
            tuned.report.write_page(
                options.report,
                title=f"rankspace tune: {dataset.name}",
                texts=dataset.texts,
                query_texts=dataset.query_texts
                if dataset.has_queries
                else dataset.texts,
            )
    tuned.metric.save(options.output)
    written = [options.output, *([options.report] if options.report else [])]
    if options.json:
        files = {"output": options.output, "report": options.report}
        return as_json({**tuned.report.to_dict(), **files})
    return f"{tuned}\nwrote {' and '.join(written)}"


def seconds(text: str) -> float:
    """A time such as ``90``, ``60s`` or ``10m``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a time such as 60s, 10m or 1h: got {text!r}"
        )
    return float(match[1]) * UNITS[match[2] or "s"]


def _with_dev(options: argparse.Namespace) -> tuple[Any, Any]:
    """The data set to tune on, and the places of the queries to judge by."""
    import numpy as np

    from .inputs import _open, taught_by

    if options.dev is None:
        return taught_by(options), None
    dataset = _open(
        options.data, None, embeddings=options.embeddings, unknown=options.unknown
    )
    for name in (options.split, options.dev):
        if name is not None and name not in dataset.splits:
            splits = ", ".join(dataset.splits) or "none"
            raise ValueError(f"splits of {options.data} are {splits}: got {name!r}.")
    dev = dataset.splits[options.dev]
    if options.split is None:
        return dataset, dev
    chosen = np.union1d(dataset.splits[options.split], dev)
    return dataset.part(chosen), np.searchsorted(chosen, dev)
