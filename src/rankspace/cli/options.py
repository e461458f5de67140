"""Options that several commands share, and how values are parsed and printed."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._engine.checks import SIMILARITIES
from .._engine.files import check_suffix, check_writable
from .._engine.vectors import is_vector_file

# Options that name what a verb reads.
INPUTS = (
    *("data", "corpus", "vectors", "queries", "embeddings", "labels", "qrels", "ids"),
    *(
        "items",
        "query_ids",
        "metric",
        "run",
        "before",
        "after",
        "judgments",
        "model",
        "signals",
    ),
)
# What can be written to standard output, by --output -.
STANDARD_OUTPUT = "/dev/stdout"
STREAM_VERBS = ("rank", "report", "transform")
STREAM_TARGETS = ("npy", "onnx", "pgvector")
# Targets of an export whose --output is a folder.
BULK_TARGETS = ("elasticsearch", "opensearch", "milvus")
FOLDER_STORES = ("qdrant", "lancedb")
Verb = Callable[[argparse.Namespace], str]

JUDGMENTS = "qrels file (TREC or BEIR), BEIR folder, or name of a data set"
MEASURES = (
    "measures such as 'ndcg-linear@10 map p@5 r@100 mrr auc'; the guide lists all"
)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults of options that have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        is_flag = action.nargs == 0
        if is_flag or action.default is None or action.default == []:
            return action.help
        return super()._get_help_string(action)


def add_verb(verbs: Any, verb: Verb, summary: str, text: str, example: str) -> Any:
    """Add the parser of a verb, with its help and an example."""
    parser = verbs.add_parser(
        verb.__name__,
        help=summary,
        description=text,
        epilog=f"example: {example}",
        formatter_class=_HelpFormatter,
    )
    parser.set_defaults(verb=verb)
    parser.add_argument("--json", action="store_true", help="print JSON")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "--quiet", action="store_true", help="show neither progress nor warnings"
    )
    amount.add_argument(
        "--verbose",
        action="store_true",
        help="show each step on a line of its own, also without a terminal",
    )
    return parser


def add_training_data(parser: Any) -> None:
    """Add the options that `inputs.training_data` reads."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="name of a data set, BEIR folder, or file of vectors (.npy, .npz, .parquet, "
        ".safetensors)",
    )
    parser.add_argument("--split", help="split to learn from, such as train")
    add_embeddings(parser)
    parser.add_argument(
        "--labels", help="class label of each vector: .npy file, or one label per line"
    )
    parser.add_argument("--queries", help="file of query vectors")
    parser.add_argument("--qrels", help="file of relevance judgments (TREC or BEIR)")
    add_ids(parser)
    parser.add_argument(
        "--unknown",
        choices=("error", "drop"),
        default="error",
        help="what to do with judgments of queries or items without a vector",
    )


def add_ids(parser: Any) -> None:
    """Add the options ``--ids`` and ``--query-ids``."""
    parser.add_argument(
        "--ids",
        help="file of item ids, one per line; by default ids in the file of vectors, or row "
        "numbers from 0",
    )
    parser.add_argument(
        "--query-ids",
        help="file of query ids, one per line; the default is as for --ids",
    )


def add_embeddings(parser: Any) -> None:
    """Add the option ``--embeddings``."""
    parser.add_argument(
        "--embeddings",
        nargs=2,
        metavar=("CORPUS", "QUERIES"),
        help="files of vectors to use, if a BEIR folder has several",
    )


def add_similarity(parser: Any, default: str) -> None:
    """Add the option ``--similarity``; its default is described in words."""
    parser.add_argument(
        "--similarity",
        choices=SIMILARITIES,
        help=f"what vectors are compared by; by default {default}",
    )


def add_runs(parser: Any) -> None:
    """Add the two run files of a comparison, and their judgments."""
    parser.add_argument("before", metavar="BEFORE", help="TREC run file")
    parser.add_argument("after", metavar="AFTER", help="TREC run file")
    add_judgments(parser)


def add_judgments(parser: Any) -> None:
    """Add the options that `inputs.read_judgments` and `inputs.evaluate_run` read."""
    parser.add_argument("judgments", metavar="JUDGMENTS", help=JUDGMENTS)
    parser.add_argument("--measures", default="ndcg-linear@10 map", help=MEASURES)
    parser.add_argument("--split", help="split of the judgments, such as test")
    parser.add_argument(
        "--unjudged",
        choices=("irrelevant", "ignore"),
        default="irrelevant",
        help="count unjudged items as irrelevant, or remove them from the rankings",
    )
    parser.add_argument(
        "--min-relevant-grade",
        type=float,
        default=1.0,
        help="smallest grade that counts as relevant",
    )
    parser.add_argument(
        "--ties",
        choices=("index", "mean"),
        default="index",
        help="keep the order of items of equal score, or average over all orders",
    )
    parser.add_argument(
        "--unknown",
        choices=("error", "drop"),
        default="error",
        help="what to do with judgments of items that a BEIR folder does not have",
    )


def add_table_output(parser: Any) -> None:
    """Add the option ``--output`` of a verb that prints a table."""
    parser.add_argument(
        "--output", help="also write the table to a .json, .md, .csv, .tex or .txt file"
    )


def add_cluster(parser: Any) -> None:
    """Add the option ``--cluster``."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run heavy steps on the Dask cluster with this scheduler, such as "
        "tcp://SCHEDULER:8786 (requires the extra 'cluster')",
    )


def name_standard_output(options: argparse.Namespace) -> None:
    """Let ``--output -`` name standard output, for verbs that write one stream.

    The answer goes to standard error then.
    """
    for name in ("output", "place"):
        if vars(options).get(name) != "-":
            continue
        target = vars(options).get("to")
        if options.name not in STREAM_VERBS and target not in STREAM_TARGETS:
            raise ValueError(
                f"--output - can be used with {', '.join(STREAM_VERBS)}, and with export --to "
                f"{', '.join(STREAM_TARGETS)}: name a file."
            )
        setattr(options, name, STANDARD_OUTPUT)
        options.to_stdout = True


def check_outputs(options: argparse.Namespace) -> None:
    """Raise before any work is done if a file that the verb writes cannot be written.

    The same if the verb reads it, or writes another file of that name.
    """
    outputs = _outputs(options)
    for i, (option, path) in enumerate(outputs):
        _check_output(path, option)
        for other, earlier in outputs[:i]:
            if os.path.realpath(path) == os.path.realpath(earlier):
                raise ValueError(
                    f"{option} and {other} must be two files: got {path} for both."
                )
        for source in _inputs(options):
            if source.exists() and os.path.exists(path) and source.samefile(path):
                raise ValueError(
                    f"{option} must not be a file that the command reads: got {path}."
                )
    _check_suffixes(options)


def _check_output(output: str, option: str) -> None:
    """Raise if an output file cannot be written."""
    if Path(output).is_dir() or output.endswith(("/", os.sep)):
        raise ValueError(f"{option} must name a file: got the folder {output}.")
    if not Path(output).parent.is_dir():
        raise ValueError(
            f"the folder {Path(output).parent} does not exist: create it first."
        )
    check_writable(output)


def _check_suffixes(options: argparse.Namespace) -> None:
    """Raise if the name of an output promises another format than the verb writes."""
    output: Any = getattr(options, "output", None)
    if options.name in ("fit", "tune"):
        check_suffix(output, "a metric", ("", ".safetensors"))
    if options.name == "embed" and output is not None:
        check_suffix(output, "vectors", (".npy",))
    if options.name in ("evaluate", "compare") and output is not None:
        from ..evaluation.report import TABLE_SUFFIXES

        check_suffix(output, "a table", TABLE_SUFFIXES)
    if options.name == "rank" and is_vector_file(output):
        raise ValueError(f"--output is a run file, which is text: got {output}.")
    if options.name in ("demo", "report"):
        _check_page(output, "--output")
    if getattr(options, "report", None) is not None:
        _check_page(options.report, "--report")


def _check_page(output: str, option: str) -> None:
    """Raise if the name of an HTML page promises another format."""
    suffix = Path(output).suffix
    if suffix not in ("", ".html", ".htm"):
        raise ValueError(
            f"{option} is an HTML page and must end in .html: got {output}."
        )


def _outputs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The files that a verb writes, after the options that name them."""
    values = vars(options)
    named = [(f"--{name}", values.get(name)) for name in ("output", "report")]
    if values.get("to") not in FOLDER_STORES:
        named.append(("--output", values.get("place")))
    if values.get("to") == "query-side" and values["place"]:
        named.append(
            ("the metric of the queries", str(query_metric_file(values["place"])))
        )
    if values.get("to") in BULK_TARGETS and values["place"]:
        named.append(("the file of the index", str(index_body_file(values["place"]))))
    if options.name == "embed" and values["output"]:
        named.append(("the file of ids", str(ids_file(values["output"]))))
    return [(option, path) for option, path in named if path is not None]


def ids_file(output: str) -> Path:
    """The file of ids that ``embed`` writes beside the vectors."""
    return Path(output).with_suffix(".ids.txt")


def index_body_file(place: str) -> Path:
    """The request that creates an index, which is written beside a bulk file."""
    return Path(place).with_suffix(".index.json")


def query_metric_file(place: str) -> Path:
    """The metric file that ``export --to query-side`` writes beside the vectors."""
    return Path(place).with_suffix(".queries.safetensors")


def _inputs(options: argparse.Namespace) -> list[Path]:
    """The files that a verb reads, those of folders too."""
    sources: list[Any] = []
    for name in INPUTS:
        value = vars(options).get(name)
        sources += value if isinstance(value, list) else [value]
    paths = [Path(source) for source in sources if isinstance(source, str)]
    for folder in [path for path in paths if path.is_dir()]:
        paths += [folder / source for source in sources if isinstance(source, str)]
        for pattern in ("corpus*", "queries*", "qrels*", "qrels/*"):
            paths += folder.glob(pattern)
    return paths


@contextmanager
def warnings_as_notes() -> Iterator[list[str]]:
    """Collect warnings, each once, in a list that is filled at the end."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes.extend(dict.fromkeys(str(warning.message) for warning in caught))


def as_json(content: Any) -> str:
    """The answer as JSON."""
    return json.dumps(content, indent=2)


def show_table(table: Any, options: argparse.Namespace) -> str:
    """Write a table to ``--output``, and return it as text or JSON."""
    if options.output:
        table.write(options.output)
    if options.json:
        return str(table.to_json())
    return str(table)
