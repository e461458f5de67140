"""What the verbs of the command line share."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Verb = Callable[[argparse.Namespace], str]


def add_verb(verbs: Any, verb: Verb, summary: str, text: str, example: str) -> Any:
    """The parser of a verb, with its help and an example."""
    parser = verbs.add_parser(
        verb.__name__,
        help=summary,
        description=text,
        epilog=f"example: {example}",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.set_defaults(verb=verb)
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    return parser


def add_taught_data(parser: Any) -> None:
    """The words that name what is learned from; `_inputs.taught_by` reads it."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="name of a data set, a BEIR folder, or vectors in a .npy, .npz, .parquet or "
        ".safetensors",
    )
    parser.add_argument(
        "--split", help="which part of the data to learn from, such as train"
    )
    parser.add_argument(
        "--embeddings",
        nargs=2,
        metavar=("CORPUS", "QUERIES"),
        help="which files of vectors in a BEIR folder, if it has several",
    )
    parser.add_argument("--labels", help="class of each vector: a .npy, or a line each")
    parser.add_argument("--queries", help="file of the queries' vectors")
    parser.add_argument("--qrels", help="judgments (TREC or BEIR) of queries and items")
    parser.add_argument(
        "--ids",
        help="names of the items, a line each; else those in the file, or numbers",
    )
    parser.add_argument("--query-ids", help="names of the queries, likewise")
    parser.add_argument(
        "--unknown",
        choices=("error", "drop"),
        default="error",
        help="refuse or leave out judgments of queries or items that have no vector",
    )


def check_output(output: str | None) -> None:
    """Refuse a place that cannot be written to before the work is done."""
    if output is None:
        return
    if Path(output).is_dir() or output.endswith(("/", os.sep)):
        raise ValueError(f"--output must name a file: got the folder {output}.")
    if not Path(output).parent.is_dir():
        raise ValueError(
            f"the folder {Path(output).parent} does not exist: create it first."
        )


def change(text: str) -> tuple[str, Any]:
    """An option and its value, as TOML writes it; a plain word needs no quotes."""
    import tomllib

    if word := re.fullmatch(r"(\w+)=(?!true$|false$|nan$|inf$)([a-z][\w@-]*)", text):
        return word[1], word[2]
    try:
        ((name, value),) = tomllib.loads(text).items()
    except ValueError as error:
        raise ValueError(
            f"--set must be OPTION=VALUE, such as n_splits=5: got {text!r}."
        ) from error
    return name, value


def as_json(content: Any) -> str:
    """An answer for machines."""
    return json.dumps(content, indent=2)
