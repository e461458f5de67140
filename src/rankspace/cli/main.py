"""The command line: ``rankspace VERB ...``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from .._engine.tables import as_text
from .cluster import add_cluster, on_cluster
from .export import add_export
from .fit import add_fit, add_transform
from .options import add_verb, as_json, check_output
from .progress import Progress
from .tune import add_tune

JUDGMENTS = "a qrels file (TREC or BEIR), a BEIR folder, or the name of a data set"
TABLE = "also write the table to a .json, .md, .csv or .txt file"
MEASURES = "names such as 'map ndcg@10 p@5 r@100 mrr auc'; see the guide for all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name; those of the process by default.

    Returns
    -------
    int
        0, or 2 for bad input.

    Examples
    --------
    >>> from rankspace.cli.main import main
    >>> main(["evaluate", "no-such-run", "no-such-qrels"])
    2
    """
    options = build_parser().parse_args(arguments)
    try:
        check_output(getattr(options, "output", None))
        answer = options.verb(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"rankspace {options.name}: {_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rankspace: interrupted", file=sys.stderr)
        return 130
    try:
        print(answer, flush=True)
    except BrokenPipeError:
        # The reader has seen enough; Python must not complain of it when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}."
    return " ".join(str(error).split())


def build_parser() -> argparse.ArgumentParser:
    """The words that each verb takes."""
    parser = argparse.ArgumentParser(
        prog="rankspace",
        description="Learn the space in which nearest means most relevant.",
        epilog="example: rankspace demo",
    )
    parser.add_argument(
        "--version", action="version", version=f"rankspace {__version__}"
    )
    verbs = parser.add_subparsers(dest="name", required=True, metavar="VERB")
    _add_demo(verbs)
    _add_evaluate(verbs)
    _add_compare(verbs)
    _add_report(verbs)
    _add_rank(verbs)
    add_tune(verbs)
    add_fit(verbs)
    add_transform(verbs)
    add_export(verbs)
    _add_datasets(verbs)
    return parser


# ---------------------------------------------------------------------- verbs


def _add_demo(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        demo,
        "show the main job on a small collection",
        "Learn a metric from claims and the abstracts that settle them, judge it on other claims, "
        "print the tables and write an HTML page. Needs no download.",
        "rankspace demo --output demo.html",
    )
    parser.add_argument(
        "--output", default="rankspace-demo.html", help="the HTML page to write"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds")


def demo(options: argparse.Namespace) -> str:
    """Show the main job on a small collection."""
    from .demo import run_demo

    with Progress("rankspace demo") as progress:
        result = run_demo(
            options.output, random_state=options.seed, progress=progress.say
        )
    page, tuned = str(result.page.resolve()), result.tuned.report
    if options.json:
        found = {"tuned": tuned.to_dict(), "comparison": result.comparison.to_dict()}
        return as_json({**found, "page": page})
    splits = {name: len(queries) for name, queries in result.dataset.splits.items()}
    return "\n".join(
        [
            f"{result.dataset!r}: scientific claims, and abstracts that settle them.",
            f"Tuning on {splits['train']} claims, three folds:",
            "",
            str(tuned),
            "",
            f"The metric on {splits['test']} other claims:",
            "",
            str(result.comparison),
            "",
            f"page: {page}",
        ]
    )


def _add_evaluate(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        evaluate,
        "score a run against judgments",
        "Score a run file against judgments: means over queries with 95 % intervals.",
        "rankspace evaluate run.trec qrels/test.tsv --measures 'ndcg-linear@10 map'",
    )
    parser.add_argument("run", metavar="RUN", help="a TREC run file, also .gz")
    _add_judging(parser)
    add_cluster(parser)
    parser.add_argument("--output", help=TABLE)


def _add_judging(parser: Any) -> None:
    parser.add_argument("judgments", metavar="JUDGMENTS", help=JUDGMENTS)
    parser.add_argument("--measures", default="map ndcg@10", help=MEASURES)
    parser.add_argument(
        "--split", help="which judgments, if there are several, such as test"
    )
    parser.add_argument(
        "--unjudged",
        choices=("irrelevant", "ignore"),
        default="irrelevant",
        help="count unjudged items as irrelevant, or take them out of the lists",
    )
    parser.add_argument(
        "--min-relevant-grade",
        type=float,
        default=1.0,
        help="smallest grade that is relevant",
    )
    parser.add_argument(
        "--ties",
        choices=("index", "mean"),
        default="index",
        help="keep the order of items of equal score, or take the mean over all orders",
    )
    parser.add_argument(
        "--unknown",
        choices=("error", "drop"),
        default="error",
        help="refuse or leave out judgments of items that a BEIR folder does not have",
    )


def evaluate(options: argparse.Namespace) -> str:
    """Score a run against judgments."""
    from .inputs import judge

    return _show(judge(options.run, options), options)


def _add_compare(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        compare,
        "test two runs against each other",
        "Compare two runs query by query: difference, 95 % interval, and the p-value of a paired "
        "randomisation test.",
        "rankspace compare before.trec after.trec qrels.tsv",
    )
    _add_two_runs(parser)
    parser.add_argument("--output", help=TABLE)


def _add_two_runs(parser: Any) -> None:
    parser.add_argument("before", metavar="BEFORE", help="a TREC run file")
    parser.add_argument("after", metavar="AFTER", help="a TREC run file")
    _add_judging(parser)


def compare(options: argparse.Namespace) -> str:
    """Test two runs against each other."""
    from ..evaluation.measures import compare as compare_reports
    from .inputs import judge

    before, after = (judge(run, options) for run in (options.before, options.after))
    return _show(compare_reports(before, after), options)


def _add_report(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        report,
        "show two runs side by side on a page",
        "Compare two runs query by query and write an HTML page: all measures, and the queries "
        "that gain and lose most, with their texts if the judgments come from a BEIR folder.",
        "rankspace report before.trec after.trec my-collection --output report.html",
    )
    _add_two_runs(parser)
    parser.add_argument("--output", required=True, help="the HTML page to write")


def report(options: argparse.Namespace) -> str:
    """Show two runs side by side on a page."""
    from ..datasets import read_trec_run
    from ..display.page.report import write_report
    from ..evaluation.measures import compare as compare_reports
    from ..evaluation.measures import evaluate as score
    from .inputs import judgments_with_texts

    with Progress("rankspace report") as progress:
        progress.say("reading")
        relevance, texts, query_texts = judgments_with_texts(options)
        rankings = read_trec_run(options.before), read_trec_run(options.after)
        progress.say("judging")
        before, after = (
            score(ranking, relevance, options.measures, ties=options.ties)
            for ranking in rankings
        )
        write_report(
            options.output,
            title=f"{options.before} and {options.after}",
            before=before,
            after=after,
            names=(Path(options.before).name, Path(options.after).name),
            rankings=rankings,
            relevance=relevance,
            n_extremes=5,
            describe_item=texts and texts.__getitem__,
            describe_query=query_texts and query_texts.__getitem__,
        )
    found = compare_reports(before, after)
    return found.to_json() if options.json else f"{found}\nwrote {options.output}"


def _add_rank(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        rank,
        "rank a corpus for each query",
        "Rank the items of a corpus for each query by Euclidean distance or a saved metric, and "
        "write a TREC run file. Rows of a data set without separate queries rank each other.",
        "rankspace rank scifact --split test -k 100 --output run.trec",
    )
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="name of a data set, a BEIR folder, or a file of vectors",
    )
    parser.add_argument(
        "--queries", help="vectors of the queries, for a corpus in a file"
    )
    parser.add_argument("--split", help="which queries, such as test")
    parser.add_argument(
        "--metric", help="a metric file; plain Euclidean distance without it"
    )
    parser.add_argument(
        "-k",
        "--length",
        type=int,
        default=100,
        help="length of the lists; 0 for all items",
    )
    parser.add_argument(
        "--embeddings",
        nargs=2,
        metavar=("CORPUS", "QUERIES"),
        help="which files of vectors in a BEIR folder, if it has several",
    )
    parser.add_argument(
        "--backend", choices=("exact", "faiss"), default="exact", help="searcher"
    )
    add_cluster(parser)
    parser.add_argument(
        "--output", required=True, help="the run file to write, also .gz"
    )


def rank(options: argparse.Namespace) -> str:
    """Rank a corpus for each query."""
    from ..datasets import write_trec_run
    from ..metrics import load_metric
    from ..search.index import Index
    from ..search.ranking import Ranking
    from .inputs import vectors_of

    if options.length < 0:
        raise ValueError(f"--length must not be negative: got {options.length}.")
    X, queries, ids, query_ids, own = vectors_of(options)
    metric: Any = load_metric(options.metric) if options.metric else None
    index = Index(X, metric, ids=ids, backend=options.backend)
    n_queries = len(own) if queries is None else len(queries)
    blocks = []
    with Progress("rankspace rank") as progress:
        k = options.length or None
        with on_cluster(options, progress):
            for block in index.blocks(queries, k, query_items=own, query_ids=query_ids):
                blocks.append(block)
                progress.show(sum(len(b) for b in blocks) / n_queries)
        ranking = Ranking.join(blocks)
        progress.say(f"writing {options.output}")
        write_trec_run(ranking, options.output)
    if options.json:
        return as_json(
            {"n_queries": n_queries, "n_items": len(index), "output": options.output}
        )
    longest = max(items.size for items, _ in ranking)
    return (
        f"ranked {len(index)} items for {n_queries} queries: wrote the first {longest} of each to "
        f"{options.output}"
    )


def _add_datasets(verbs: Any) -> None:
    add_verb(
        verbs,
        datasets,
        "list the data sets",
        "List the data sets that can be named, and whether they can be had without a download. "
        "Set RANKSPACE_DATA to the folder that holds their files.",
        "rankspace datasets --json",
    )


def datasets(options: argparse.Namespace) -> str:
    """List the data sets."""
    from ..datasets import list_datasets

    rows = list_datasets()
    if options.json:
        return as_json([row._asdict() for row in rows])
    table = [
        (row.name, row.kind, row.size, "yes" if row.available else "no", row.source)
        for row in rows
    ]
    return as_text(["name", "kind", "size", "here", "from"], table)


# ---------------------------------------------------------------------- answers


def _show(result: Any, options: argparse.Namespace) -> str:
    if options.output:
        result.write(options.output)
    return result.to_json() if options.json else str(result)


if __name__ == "__main__":
    raise SystemExit(main())
