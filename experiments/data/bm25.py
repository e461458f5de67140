"""BM25 rankings of the collections, kept in files: ``python -m experiments.data.bm25``.

Writes the BM25 lists of all judged queries of the recipe ``signals`` to the folder ``other`` of
each collection below ``RANKSPACE_DATA``, so that the recipe runs where bm25s cannot be installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankspace import Ranking, rank_bm25
from rankspace.datasets._folder import data_folder

from ..recipe import load_recipe
from . import open_dataset
from .collections import FOLDERS

PARTS = ("indptr", "items", "distances")


def open_bm25(
    data: Mapping[str, Any], texts: Sequence[str], query_texts: Sequence[str]
) -> Ranking:
    """The stored BM25 ranking of a data set of the recipe, or else a new one.

    A stored ranking of other texts is a ValueError.
    """
    path = stored_path(data)
    if path is None or not path.is_file():
        return rank_bm25(texts, query_texts)
    with np.load(path) as stored:
        if str(stored["texts"]) != digest_of(texts, query_texts):
            raise ValueError(
                f"{path} must be a ranking of the texts of {data['label']}: they have changed "
                "since. Delete it, or run python -m experiments.data.bm25 again."
            )
        indptr, items, distances = (stored[part] for part in PARTS)
        return Ranking(indptr, items, distances, len(texts))


def stored_path(data: Mapping[str, Any]) -> Path | None:
    """The file of a data set of the recipe; None if the collection has no folder."""
    if data["name"] not in FOLDERS:
        return None
    parts = ["bm25", *map(str, data.get("options", {}).values())]
    folder = data_folder() / FOLDERS[data["name"]] / "other"
    return folder / f"{'_'.join(parts)}.npz"


def digest_of(texts: Sequence[str], query_texts: Sequence[str]) -> str:
    """What tells these texts from others."""
    digest = hashlib.sha256()
    for text in (*texts, "", *query_texts):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def store_bm25(path: Path, texts: Sequence[str], query_texts: Sequence[str]) -> None:
    """Rank texts by BM25, and write the lists to a file."""
    ranking = rank_bm25(texts, query_texts)
    content = {part: getattr(ranking, part) for part in PARTS}
    content["texts"] = np.array(digest_of(texts, query_texts))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **content)


def main() -> None:
    for data in load_recipe("signals").content["datasets"]:
        path = stored_path(data)
        dataset = open_dataset(data["name"], **data.get("options", {}))
        assert path is not None
        assert dataset.texts is not None
        assert dataset.query_texts is not None
        store_bm25(path, dataset.texts, dataset.query_texts)


if __name__ == "__main__":
    main()
