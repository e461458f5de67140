"""The command ``rankspace embed``: vectors of texts by a sentence embedding model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import add_verb, as_json, ids_file
from .progress import Progress


def add_embed(verbs: Any) -> None:
    """Add the verb ``embed``."""
    parser = add_verb(
        verbs,
        embed,
        "embed texts by a sentence embedding model",
        "Embed the documents and queries of a BEIR folder, or the texts of a file, by a model of "
        "sentence-transformers with its prompts. If it is interrupted, the same command goes on.",
        "rankspace embed my-collection --model sentence-transformers/all-MiniLM-L6-v2",
    )
    parser.add_argument(
        "data",
        metavar="TEXTS",
        help="BEIR folder, or .jsonl, .csv or .parquet file with a column 'text'",
    )
    parser.add_argument("--model", required=True, help="name or folder of a model")
    parser.add_argument(
        "--suffix",
        help="ending of the names, as in corpus_SUFFIX.npy",
    )
    parser.add_argument("--output", help=".npy file to write; for a file of texts")
    parser.add_argument(
        "--side",
        choices=("items", "queries"),
        help="whether the texts of a file are documents or queries; by default items",
    )
    parser.add_argument("--column", help="column of the texts, if there are several")
    parser.add_argument(
        "--dtype", choices=("float32", "float16"), default="float32", help="precision"
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        help="texts that the model takes at a time",
    )
    parser.add_argument("--device", help="cpu, cuda, ...; by default the fastest")


def embed(options: argparse.Namespace) -> str:
    """Embed texts by a sentence embedding model."""
    _check_options(options)
    from ..datasets._embed import load_model

    with Progress("rankspace embed") as progress:
        progress.say("loading the model")
        model = load_model(options.model, options.device)
        settings = {
            "dtype": options.dtype,
            "batch_size": options.batch_size,
            "progress": progress.show,
        }
        if Path(options.data).is_dir():
            files = _embed_folder(options, model, settings)
        else:
            files = _embed_file(options, model, settings)
    if options.json:
        return as_json({"model": options.model, "files": list(map(str, files))})
    return f"embedded {options.data}: wrote {' and '.join(map(str, files))}"


def _check_options(options: argparse.Namespace) -> None:
    is_folder = Path(options.data).is_dir()
    unused = ("output", "side", "column") if is_folder else ("suffix",)
    for name in unused:
        if vars(options)[name] is not None:
            place = "a file of texts" if is_folder else "a folder"
            raise ValueError(f"--{name} can only be used with {place}.")
    if not is_folder and options.output is None:
        raise ValueError("a file of texts needs --output.")


def _embed_folder(
    options: argparse.Namespace, model: Any, settings: dict[str, Any]
) -> list[Path]:
    from ..datasets import embed_beir

    return list(embed_beir(options.data, model, suffix=options.suffix, **settings))


def _embed_file(
    options: argparse.Namespace, model: Any, settings: dict[str, Any]
) -> list[Path]:
    from .._engine.files import write_text
    from ..datasets import embed_texts, read_texts

    ids, texts = read_texts(options.data, options.column)
    for name in ids or []:
        if not name or name != name.strip() or len(name.splitlines()) != 1:
            raise ValueError(
                f"{options.data} must have ids that fit on a line each: got {name!r}."
            )
    side = options.side or "items"
    embed_texts(texts, model, options.output, side=side, **settings)
    if ids is None:
        return [Path(options.output)]
    names = write_text(ids_file(options.output), "".join(f"{i}\n" for i in ids))
    return [Path(options.output), names]
