"""Runs to fuse with the vectors, as named on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .progress import Progress

BM25 = "bm25"
MEMORY = "memory"


def add_signals(parser: argparse.ArgumentParser) -> None:
    """Add the options about runs."""
    parser.add_argument(
        "--with",
        nargs="+",
        dest="signals",
        metavar="SIGNAL",
        help="rankings to fuse with the vectors: bm25 (of a BEIR folder with texts), memory (past "
        "queries), or TREC run files",
    )
    parser.add_argument(
        "--normalise",
        choices=("minmax", "none", "zscore"),
        help="what is done with the scores of each list; by default minmax",
    )


def runs_of(
    options: argparse.Namespace, dataset: Any, progress: Progress
) -> dict[str, Any]:
    """Options of `tune` for the signals that are named."""
    if options.signals is None:
        if options.normalise is not None:
            raise ValueError("--normalise can only be used with --with.")
        return {}
    runs: dict[str, Any] = {}
    for signal in options.signals:
        name = signal if signal in (BM25, MEMORY) else Path(signal).stem
        if name in runs:
            raise ValueError(f"--with must name each signal once: got {name} twice.")
        runs[name] = signal
        if signal == BM25:
            progress.say("ranking texts by BM25")
            runs[name] = _bm25(options.data, dataset)
        elif signal != MEMORY:
            runs[name] = Path(signal)
    return {"runs": runs, "normalise": options.normalise or "minmax"}


def _bm25(source: str, dataset: Any) -> Any:
    from ..search.bm25 import rank_bm25

    if dataset.texts is None or dataset.query_texts is None:
        raise ValueError(
            f"--with bm25 needs a BEIR folder with texts of documents and queries: {source} has "
            "none."
        )
    relevance = dataset.relevance
    return rank_bm25(
        dataset.texts,
        dataset.query_texts,
        ids=relevance.item_ids,
        query_ids=relevance.query_ids,
    )
