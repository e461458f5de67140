"""The command ``rankspace rank``: nearest-neighbour search, written to a run file."""

from __future__ import annotations

import argparse
from typing import Any

from .options import (
    add_cluster,
    add_embeddings,
    add_ids,
    add_similarity,
    add_verb,
    as_json,
)
from .progress import Progress, on_cluster


def add_rank(verbs: Any) -> None:
    """Add the verb ``rank``."""
    parser = add_verb(
        verbs,
        rank,
        "rank a corpus for each query",
        "Rank the items of a corpus for each query by a similarity of vectors or a saved metric, "
        "and write a TREC run file. If a data set has no separate queries, each item is a query.",
        "rankspace rank scifact_sample --split test --similarity cosine --output before.trec",
    )
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="name of a data set, BEIR folder, or file of vectors",
    )
    parser.add_argument("--queries", help="file of query vectors, with a corpus file")
    add_ids(parser)
    parser.add_argument("--split", help="split of the queries, such as test")
    parser.add_argument("--metric", help="metric file; unmapped vectors without it")
    add_similarity(parser, "that of the metric, or euclidean without one")
    parser.add_argument(
        "-k",
        "--length",
        type=int,
        default=100,
        help="items per query; 0 for all items",
    )
    add_embeddings(parser)
    parser.add_argument(
        "--backend", choices=("exact", "faiss"), default="exact", help="search engine"
    )
    add_cluster(parser)
    parser.add_argument(
        "--output", required=True, help="run file to write, plain or .gz"
    )


def rank(options: argparse.Namespace) -> str:
    """Rank a corpus for each query."""
    from ..datasets import write_trec_run
    from ..metrics import load_metric
    from ..search.index import Index
    from .inputs import read_corpus

    if options.length < 0:
        raise ValueError(f"--length must not be negative: got {options.length}.")
    corpus = read_corpus(options)
    metric: Any = load_metric(options.metric) if options.metric else None
    index = Index(
        corpus.X,
        metric,
        similarity=options.similarity,
        ids=corpus.ids,
        backend=options.backend,
    )
    n_queries = len(corpus.query_items)
    with Progress("rankspace rank") as progress:
        with on_cluster(options, progress):
            ranking = _search(index, corpus, options.length or None, progress)
        progress.say(f"writing {options.output}")
        write_trec_run(ranking, options.output)
    if options.json:
        return as_json(
            {
                "n_queries": n_queries,
                "n_items": len(index),
                "notes": corpus.notes,
                "similarity": index.similarity,
                "output": options.output,
            }
        )
    longest = max(items.size for items, _ in ranking)
    chosen = index.similarity
    if metric is None and options.similarity is None:
        chosen += " (the default; --similarity chooses)"
    sentence = (
        f"ranked {len(index)} items for {n_queries} queries: wrote the first {longest} of each to "
        f"{options.output}\nsimilarity: {chosen}"
    )
    return "\n".join([sentence, *(f"note: {note}" for note in corpus.notes)])


def _search(index: Any, corpus: Any, k: int | None, progress: Progress) -> Any:
    from ..search.ranking import Ranking

    blocks = []
    n_done = 0
    for block in index.blocks(
        corpus.queries,
        k,
        query_items=corpus.query_items,
        query_ids=corpus.query_ids,
    ):
        blocks.append(block)
        n_done += len(block)
        progress.show(n_done / len(corpus.query_items))
    return Ranking.join(blocks)
