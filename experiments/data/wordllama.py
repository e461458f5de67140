"""Static word vectors for the collections: ``python -m experiments.data.wordllama ir-cran ir-npl``.

Writes the mean WordLlama vectors of documents and queries, 256 dimensions of unit length in half
precision, to the folder ``other`` of each collection below ``RANKSPACE_DATA``. With ``--answers``,
documents are their texts without titles.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rankspace.datasets import read_corpus
from rankspace.datasets._beir import read_beir_texts
from rankspace.datasets._folder import data_folder

WIDTH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args()
    model = _model()
    name = "wordllama_answers" if options.answers else "wordllama"
    for folder in options.folders:
        home = data_folder() / folder
        documents = read_beir_texts(home, "corpus")
        if options.answers:
            documents = [str(record["text"]) for record in read_corpus(home)[1]]
        parts = {"corpus": documents, "queries": read_beir_texts(home, "queries")}
        (home / "other").mkdir(exist_ok=True)
        for stem, texts in parts.items():
            vectors = model.embed(texts, norm=True).astype(np.float16)
            np.save(home / "other" / f"{stem}_{name}_f16.npy", vectors)


def _model() -> Any:
    """The model that comes with the package, without a download."""
    import wordllama

    home = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(dim=WIDTH, cache_dir=home, disable_download=True)


if __name__ == "__main__":
    main()
