"""The verb ``rankspace tune``."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._progress import Progress

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def add_tune(verbs: Any, add_verb: Callable[..., Any]) -> None:
    """The words of the verb."""
    parser = add_verb(
        verbs, tune, "learn a better metric from judgments, if there is one",
        "Try several learned metrics on held-out queries, say what the best is worth, and write "
        "it; if nothing is better beyond chance, say so and write the identity.",
        "rankspace tune scifact --split train --output scifact.safetensors",
    )  # fmt: skip
    parser.add_argument(
        "corpus", metavar="CORPUS", help="name of a data set, a BEIR folder, or vectors in a .npy"
    )
    parser.add_argument("--queries", help="vectors of queries in a .npy, for a corpus in a .npy")
    parser.add_argument(
        "--judgments", help="a qrels file that names rows by their numbers, for a corpus in a .npy"
    )
    parser.add_argument("--split", help="which queries to learn from, such as train")
    parser.add_argument("--dev", help="a split to judge by, in place of folds of the queries")
    parser.add_argument(
        "--embeddings", nargs=2, metavar=("CORPUS", "QUERIES"),
        help="which .npy files of a BEIR folder, if it has several",
    )  # fmt: skip
    parser.add_argument("--measure", default="ndcg-linear@10", help="what to choose by")
    parser.add_argument(
        "--generalise", action="store_true", help="choose by queries with new relevant items only"
    )
    parser.add_argument("--budget", type=seconds, help="time to take, such as 60s, 10m or 1h")
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds and the learners")
    parser.add_argument("--output", required=True, help="the metric file to write")


def tune(options: argparse.Namespace) -> str:
    """Learn a better metric from judgments, if there is one."""
    from .tuning import tune as tune_metric

    with Progress("rankspace tune") as progress:
        progress.say("reading")
        X, relevance, queries, dev = _taught_by(options)
        tuned = tune_metric(
            X, relevance, queries=queries, dev=dev, measure=options.measure,
            generalise=options.generalise, budget=options.budget, random_state=options.seed,
            progress=lambda step, share: progress.say(f"{share:4.0%} {step}"),
        )  # fmt: skip
    tuned.metric.save(options.output)
    if options.json:
        return json.dumps({**tuned.report.to_dict(), "output": options.output}, indent=2)
    return f"{tuned}\nwrote {options.output}"


def seconds(text: str) -> float:
    """A time such as ``90``, ``60s`` or ``10m``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a time such as 60s, 10m or 1h: got {text!r}")
    return float(match[1]) * UNITS[match[2] or "s"]


def _taught_by(options: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """Corpus, judgments, queries and the queries to judge by."""
    import numpy as np

    from ._inputs import _open
    from .relevance import Relevance

    if Path(options.corpus).suffix != ".npy":
        if options.queries is not None or options.judgments is not None:
            raise ValueError("--queries and --judgments go with a corpus in a .npy file.")
        dataset = _open(options.corpus, None, embeddings=options.embeddings)
        if dataset.X is None or dataset.relevance is None or dataset.relevance.has_lists:
            raise ValueError(f"{options.corpus} has no vectors of both queries and items.")
        learn, dev = (_split(dataset, name) for name in (options.split, options.dev))
        if learn is None:
            return dataset.X, dataset.relevance, dataset.queries, dev
        chosen = learn if dev is None else np.union1d(learn, dev)
        queries = None if dataset.queries is None else dataset.queries[chosen]
        places = None if dev is None else np.searchsorted(chosen, dev)
        return dataset.X, dataset.relevance.take_queries(chosen), queries, places
    from ._vectors import read_vectors

    if options.queries is None or options.judgments is None:
        raise ValueError("a corpus in a .npy file needs --queries and --judgments.")
    X, queries = read_vectors(options.corpus), read_vectors(options.queries)
    relevance = Relevance.from_qrels(
        options.judgments,
        query_ids=[str(number) for number in range(len(queries))],
        item_ids=[str(number) for number in range(len(X))],
    )
    return X, relevance, queries, None


def _split(dataset: Any, name: str | None) -> Any:
    if name is None:
        return None
    if name not in dataset.splits:
        raise ValueError(
            f"the split must be one of {', '.join(dataset.splits) or 'none'}: got {name!r}."
        )
    return dataset.splits[name]
