"""The command ``rankspace datasets``: list the data sets."""

from __future__ import annotations

import argparse
from typing import Any

from .._engine.tables import as_text
from .options import add_verb, as_json


def add_datasets(verbs: Any) -> None:
    """Add the verb ``datasets``."""
    parser = add_verb(
        verbs,
        datasets,
        "list the data sets, or download one",
        "List the data sets that commands accept by name, and whether they are available without a "
        "download. Set RANKSPACE_DATA to the folder that holds their files.",
        "rankspace datasets --json",
    )
    parser.add_argument(
        "--download",
        metavar="NAME",
        help="download what is missing of a data set (needs the extra 'data')",
    )


def datasets(options: argparse.Namespace) -> str:
    """List the data sets."""
    from ..datasets import download_dataset, list_datasets

    if options.download:
        paths = [str(path) for path in download_dataset(options.download)]
        if options.json:
            return as_json({"downloaded": paths})
        return "\n".join(["downloaded:", *paths]) if paths else "all files are there"
    rows = list_datasets()
    if options.json:
        return as_json([row._asdict() for row in rows])
    table = []
    for row in rows:
        available = "yes" if row.available else "no"
        table.append((row.name, row.kind, row.size, available, row.source))
    return as_text(["name", "kind", "size", "available", "source"], table)
