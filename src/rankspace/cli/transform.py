"""The command ``rankspace transform``: map a file of vectors by a metric."""

from __future__ import annotations

import argparse
from typing import Any

from .options import add_verb, as_json
from .progress import Progress


def add_transform(verbs: Any) -> None:
    """Add the verb ``transform``."""
    parser = add_verb(
        verbs,
        transform,
        "map vectors by a metric",
        "Map a file of vectors by a metric and write a .npy file, block by block: a .npy file may "
        "be larger than memory. Search the result by Euclidean distance, or by inner product if "
        "the metric is bilinear.",
        "rankspace transform my.safetensors corpus.npy --output mapped.npy",
    )
    parser.add_argument("metric", metavar="METRIC", help="metric file")
    parser.add_argument("vectors", metavar="VECTORS", help="file of vectors")
    parser.add_argument(
        "--side",
        choices=("items", "queries"),
        help="whether the vectors are items or queries; needed if the metric maps them differently",
    )
    parser.add_argument("--block-size", type=int, default=8192, help="rows per block")
    parser.add_argument("--output", required=True, help=".npy file to write")


def transform(options: argparse.Namespace) -> str:
    """Map vectors by a metric."""
    from ..export import to_npy
    from ..metrics import load_metric
    from .show import search_by

    metric: Any = load_metric(options.metric)
    with Progress("rankspace transform") as progress:
        n_rows, width = to_npy(
            metric,
            options.vectors,
            options.output,
            side=options.side,
            block_size=options.block_size,
            progress=progress.show,
        )
    if options.json:
        return as_json(
            {
                "shape": [n_rows, width],
                "output": options.output,
                "search": search_by(metric, options.side),
            }
        )
    return (
        f"mapped {n_rows} vectors to {width} components: wrote {options.output}; search: "
        f"{search_by(metric, options.side)}"
    )
