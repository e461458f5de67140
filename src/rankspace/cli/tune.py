"""The command ``rankspace tune``: learn a metric, and say whether to use it."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from .card import command_of
from .options import (
    add_cluster,
    add_similarity,
    add_training_data,
    add_verb,
    as_json,
    warnings_as_notes,
)
from .progress import Progress, on_cluster
from .signals import add_signals, runs_of

# Those of tuning.families and tuning.selection, which take long to import.
METHODS = ("query", "shared", "separate", "diagonal", "mlr", "frml")
PREFERENCES = ("both", "known", "new")
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_tune(verbs: Any) -> None:
    """Add the verb ``tune``."""
    parser = add_verb(
        verbs,
        tune,
        "learn a better metric from judgments, if there is one",
        "Learn a metric by cross-validation and write it, if it ranks better and neither queries "
        "for known nor those for new documents lose. Otherwise write the similarity of unchanged "
        "vectors, and say why.",
        "rankspace tune scifact_sample --split train --output my.safetensors",
    )
    add_training_data(parser)
    add_similarity(parser, "cosine with separate queries, otherwise Euclidean distance")
    _add_goal(parser)
    add_signals(parser)
    _add_learning(parser)
    add_cluster(parser)
    parser.add_argument(
        "--report", help="also write an HTML page, with the texts of a BEIR folder"
    )
    parser.add_argument("--output", required=True, help="metric file to write")


def _add_goal(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which queries must gain, by what measure."""
    parser.add_argument(
        "--measure", default="ndcg-linear@10", help="measure to improve"
    )
    parser.add_argument(
        "--prefer",
        choices=PREFERENCES,
        default="both",
        help="documents that must gain: those with judged queries (known), others (new), or both",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.01,
        help="loss of the measure that does not matter",
    )
    parser.add_argument("--dev", help="split to judge on, in place of cross-validation")
    parser.add_argument(
        "--refit-on-dev",
        action="store_true",
        help="learn the metric that is written from the --dev queries too",
    )


def _add_learning(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is learned, and at what cost."""
    parser.add_argument(
        "--components",
        type=components,
        metavar="N",
        help='reduce vectors to N dimensions, or to the "smallest" number that is safe',
    )
    parser.add_argument(
        "--size-tolerance",
        type=float,
        help="loss by smaller vectors that does not matter; by default 0.005",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="METHOD",
        help=f"families to learn, of {', '.join(METHODS)}; by default query or shared",
    )
    parser.add_argument(
        "--folds", type=int, help="number of folds; by default 5, or 3 for many queries"
    )
    parser.add_argument(
        "--budget", type=seconds, help="time limit, such as 60s, 10m or 1h"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed")


def tune(options: argparse.Namespace) -> str:
    """Learn a better metric from judgments, if there is one."""
    with Progress("rankspace tune") as progress:
        progress.say(f"reading {options.data}")
        dataset, dev, split_notes = _read_data(options)
        with warnings_as_notes() as notes, on_cluster(options, progress):
            tuned = _tune(dataset, dev, options, progress)
        tuned.metric.card = {**tuned.metric.card, "command": command_of(options)}
        tuned.metric.save(options.output)
        tuned = _with_files(tuned, options)
        if options.report:
            progress.say(f"writing {options.report}")
            _write_page(tuned.report, dataset, options.report)
    notes = split_notes + notes
    if options.json:
        files = {"output": options.output, "report": options.report}
        return as_json({**tuned.report.to_dict(), **files, "warnings": notes})
    lines = [f"note: {note}" for note in notes]
    return "\n".join([*lines, str(tuned), "", _written(tuned, options)])


def _with_files(tuned: Any, options: argparse.Namespace) -> Any:
    """The result with the files of this command in the commands to run next."""
    items, queries = _vector_files(options)
    report = tuned.report.with_files(options.output, items, queries)
    return replace(tuned, report=report)


def _vector_files(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """The files of vectors of documents and queries, if this data set has files."""
    from .._engine.vectors import is_vector_file, is_vector_source
    from ..datasets._beir import embedding_files

    if is_vector_source(options.data):
        items = options.data if is_vector_file(options.data) else None
        return items, options.queries
    if not Path(options.data).is_dir():
        return None, None
    names = options.embeddings or embedding_files(Path(options.data))
    if names is None:
        return None, None
    corpus, queries = (str(Path(options.data) / name) for name in names)
    return corpus, queries


def _written(tuned: Any, options: argparse.Namespace) -> str:
    """The files that were written, and what is in them."""
    what = "the learned metric"
    if not tuned.is_mapped:
        what = "the similarity of unchanged vectors"
    sentence = f"wrote {what} to {options.output}"
    if options.report:
        sentence += f", and the page {options.report}"
    return sentence


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
        similarity=options.similarity,
        measure=options.measure,
        prefer=options.prefer,
        tolerance=options.tolerance,
        dev=dev,
        refit_on_dev=options.refit_on_dev,
        methods=options.methods,
        n_folds=options.folds,
        budget=options.budget,
        random_state=options.seed,
        progress=show,
        **runs_of(options, dataset, progress),
        **_sizes(options),
    )


def _sizes(options: argparse.Namespace) -> dict[str, Any]:
    """Options of `tune` for smaller vectors."""
    if options.components is None:
        if options.size_tolerance is not None:
            raise ValueError("--size-tolerance can only be used with --components.")
        return {}
    found = {"n_components": options.components}
    if options.size_tolerance is not None:
        found["size_tolerance"] = options.size_tolerance
    return found


def _write_page(report: Any, dataset: Any, path: str) -> None:
    from .inputs import query_texts_of

    report.write_page(
        path,
        title=f"rankspace tune: {dataset.name}",
        texts=dataset.texts,
        query_texts=query_texts_of(dataset),
    )


def components(text: str) -> str | int:
    """Parse a number of dimensions, or "smallest"."""
    if text == "smallest":
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"must be a whole number or smallest: got {text!r}"
        )
    return int(text)


def seconds(text: str) -> float:
    """Parse a time such as ``90``, ``60s`` or ``10m``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a time such as 60s, 10m or 1h: got {text!r}"
        )
    return float(match[1]) * UNITS[match[2]]


def _read_data(options: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """The data set to tune on, the numbers of its ``--dev`` queries, and what is used for what."""
    from .._engine.vectors import is_vector_source
    from .inputs import ONLY_DATA_SETS, check_split, split_notes, training_data

    if options.dev is None:
        if options.refit_on_dev:
            raise ValueError("--refit-on-dev can only be used with --dev.")
        dataset = training_data(options)
        return dataset, None, split_notes(options, dataset)
    if is_vector_source(options.data):
        raise ValueError(f"--dev can only be used with {ONLY_DATA_SETS}.")
    whole = argparse.Namespace(**{**vars(options), "split": None})
    dataset = training_data(whole)
    check_split("--dev", options.dev, options.data, dataset)
    split = options.split or _split_beside(options.dev, options.data, dataset)
    check_split("--split", split, options.data, dataset)
    if split == options.dev:
        raise ValueError(f"--split and --dev must be two splits: got {split!r} twice.")
    return _two_splits(dataset, split, options.dev)


def _split_beside(dev: str, source: str, dataset: Any) -> str:
    """The split to learn from if there is only one beside the ``--dev`` split."""
    others = [name for name in dataset.splits if name != dev]
    if len(others) == 1:
        return others[0]
    raise ValueError(
        f"--dev needs --split, the split to learn from, unless there is just one other: {source} "
        f"has {', '.join(others) or 'none'} beside {dev}."
    )


def _two_splits(dataset: Any, split: str, dev: str) -> tuple[Any, Any, list[str]]:
    """Both splits, the numbers of the dev queries among them, and a note."""
    import numpy as np

    learned = np.setdiff1d(dataset.splits[split], dataset.splits[dev])
    judged = np.unique(dataset.splits[dev])
    queries = np.union1d(learned, judged)
    note = (
        f"learned from {learned.size} queries of the split {split}, judged on {judged.size} of "
        f"{dev}"
    )
    n_shared = np.unique(dataset.splits[split]).size - learned.size
    if n_shared:
        note += f"; {n_shared} queries are in both, and were only judged on"
    return dataset.part(queries), np.searchsorted(queries, judged), [note]
