"""The command ``rankspace show``: what a metric file holds, and what to do with it next."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._engine.tables import as_text
from .options import add_verb, as_json

# The order in which a card is read; anything else in it follows.
KEYS = (
    "method",
    "measure",
    "similarity",
    "prefer",
    "judged_on",
    "decision",
    "p_value",
    "questions",
    "n_items",
    "n_features",
    "n_queries",
    "n_judgments",
    "data_digest",
    "command",
    "rankspace",
    "date",
)
COLUMNS = (
    *(
        "label",
        "signal",
        "weight",
        "weight_low",
        "weight_high",
        "gain",
        "gain_low",
        "gain_high",
    ),
    *("unchanged", "judged_unchanged", "memory", "tuned", "judged_tuned"),
    *("difference", "low", "high", "n_queries", "n_groups"),
    *("n_components", "storage", "everything", "known", "new", "lower_limit"),
    *("megabytes", "outcome"),
)
# Numbers of which three digits are enough.
ROUNDED = ("p_value",)
MAX_WIDTH = 200  # characters of one value: texts of a file may be of any length


class Next(NamedTuple):
    """What to do with a metric: a sentence, and commands or lines of Python."""

    advice: str
    commands: list[str]


def add_show(verbs: Any) -> None:
    """Add the verb ``show``."""
    parser = add_verb(
        verbs,
        show,
        "show what a metric file holds",
        "Show the kind of a metric, where it comes from, what it was measured to do, and the next "
        "commands. What a file says of its origin is not verified.",
        "rankspace show my.safetensors",
    )
    parser.add_argument("metric", metavar="METRIC", help="metric file")


def show(options: argparse.Namespace) -> str:
    """Show what a metric file holds."""
    from ..metrics import load_metric

    metric: Any = load_metric(options.metric)
    kind = kind_of(metric)
    following = next_steps(metric, kind, options.metric)
    if options.json:
        return as_json(
            {
                "kind": kind,
                "similarity": getattr(metric, "similarity", None),
                "shapes": {n: list(getattr(metric, n).shape) for n in metric.arrays},
                "parameters": metric.parameters,
                "card": dict(metric.card),
                "next": following._asdict(),
            }
        )
    lines = [f"{kind}: {metric!r}"]
    if metric.parameters and "parameters" not in metric.card:
        lines.append(f"parameters: {_plain(metric.parameters)}")
    lines += _card_lines(metric.card)
    advice = following.advice
    weights = metric.card.get("weights")
    if isinstance(weights, Mapping) and len(weights) > 1:
        advice += (
            " Fuse the lists of all signals by Ranking.fuse, with the weights above."
        )
    lines += ["", f"Next: {advice}"]
    return "\n".join([*lines, *(f"  {command}" for command in following.commands)])


# ---------------------------------------------------------------------- kinds


def kind_of(metric: Any) -> str:
    """What a metric maps."""
    if metric.kind == "kernel":
        return "kernel metric"
    if not hasattr(metric, "item_map"):
        return "local metric"
    identity = _is_identity(metric.item_map)
    if metric.symmetric:
        return "unchanged vectors" if identity else "shared map"
    if not identity:
        return "separate maps"
    if _is_identity(metric.query_map) and not metric.query_offset.any():
        return "unchanged vectors"
    return "query map"


def _is_identity(matrix: Any) -> bool:
    import numpy as np

    n_rows, n_columns = matrix.shape
    return n_rows == n_columns and np.array_equal(matrix, np.eye(n_rows))


def next_steps(metric: Any, kind: str, path: str) -> Next:
    """What to do with a metric of this kind, with commands that run unchanged."""
    if kind == "local metric":
        return _local_steps(metric, path)
    if kind == "unchanged vectors":
        advice = (
            f"search your vectors unchanged, by {_search(metric)}; there is no map."
        )
        return Next(advice, [])
    file = shlex.quote(path)
    transform = f"rankspace transform {file}"
    if kind == "kernel metric":
        return _kernel_steps(metric, transform, path)
    queries = f"{transform} QUERIES.npy --side queries --output mapped-queries.npy"
    onnx = f"rankspace export {file} --to onnx --side queries --output query-map.onnx"
    service = f"python: rankspace.load_metric({path!r}).embed_queries(query)"
    if kind == "query map":
        advice = (
            "map each query before the search. Documents and their index stay unchanged, and "
            f"are searched by {_search(metric)}."
        )
        return Next(advice, [queries, onnx, service])
    advice = (
        "map documents and build the index anew, then map each query"
        f"{' alike' if kind == 'shared map' else ' by its own map'}. Search by {_mapped(metric)}."
    )
    items = f"{transform} CORPUS.npy --side items --output mapped-corpus.npy"
    faiss = (
        f"rankspace export {file} --to faiss --vectors CORPUS.npy --output corpus.faiss"
    )
    return Next(advice, [items, faiss, queries, onnx, service])


def search_by(metric: Any, side: str | None) -> str:
    """How to search for vectors that a metric mapped."""
    if side == "queries" and kind_of(metric) == "query map":
        return f"{_search(metric)} with unmapped items"
    return _mapped(metric)


def _kernel_steps(metric: Any, transform: str, path: str) -> Next:
    if metric.is_precomputed:
        advice = (
            "map rows of kernel values with the training points. Search by "
            f"{_mapped(metric)}."
        )
        line = f"python: rankspace.load_metric({path!r}).embed_items(kernel_values)"
        return Next(advice, [line])
    advice = f"map documents and queries alike. Search by {_mapped(metric)}."
    items = f"{transform} CORPUS.npy --output mapped-corpus.npy"
    queries = f"{transform} QUERIES.npy --output mapped-queries.npy"
    file = shlex.quote(path)
    onnx = f"rankspace export {file} --to onnx --output query-map.onnx"
    service = f"python: rankspace.load_metric({path!r}).embed_queries(query)"
    return Next(advice, [items, queries, onnx, service])


def _search(metric: Any) -> str:
    """What an index of unmapped documents compares by."""
    names = {"dot": "dot product", "euclidean": "Euclidean distance"}
    name = names.get(metric.similarity, metric.similarity)
    if metric.similarity == "cosine" and not metric.inner_product:
        return "Euclidean distance at unit length"
    return name


def _mapped(metric: Any) -> str:
    """How mapped vectors are compared."""
    from ..export.arrays import comparison

    return comparison(metric)


def _local_steps(metric: Any, path: str) -> Next:
    load = f"python: rankspace.load_metric({path!r})"
    if metric.has_anchors:
        advice = "score the candidates of each query; higher is better. There is no map to export."
        return Next(advice, [f"{load}.scores(X, qid=qid)"])
    advice = "re-rank the candidates that an index finds. There is no map to export."
    return Next(advice, [f"{load}.rerank(Q, X, candidates)"])


# ---------------------------------------------------------------------- the card


def _card_lines(card: Mapping[str, Any]) -> list[str]:
    """A card as lines and tables, whatever it holds."""
    if not card:
        return ["card: none. The file does not say what the metric was measured to do."]
    lines = []
    for name in _ordered(card, KEYS):
        value = card[name]
        if _is_table(value):
            lines += ["", *_table_lines(value), ""]
        else:
            if name in ROUNDED and isinstance(value, float):
                value = float(f"{value:.3g}")
            lines.append(f"{_plain(name.replace('_', ' '))}: {_plain(value)}")
    return lines


def _ordered(names: Mapping[str, Any], first: Sequence[str]) -> list[str]:
    known = [name for name in first if name in names]
    return [*known, *(name for name in names if name not in known)]


def _is_table(value: Any) -> bool:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return False
    columns = value[0].keys()
    alike = all(isinstance(row, dict) and row.keys() == columns for row in value)
    return alike and bool(columns)


def _table_lines(rows: list[dict[str, Any]]) -> list[str]:
    columns = _ordered(rows[0], COLUMNS)
    header = [_plain(name.replace("_", " ")) for name in columns]
    return as_text(
        header, [[_cell(row[name]) for name in columns] for row in rows]
    ).split("\n")


def _cell(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return "-" if value is None else _plain(value)


def _plain(value: Any) -> str:
    """A value of a file as text of one line, which no terminal can take for a command."""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_WIDTH:
        text = text[:MAX_WIDTH] + "..."
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
