"""How long does BM25 take?

Short documents of 60 words from a Zipf distribution, and 1,000 queries of 8 words: tokenisation,
stemming, the index and search for 100 documents.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _table import publish

from rankspace import rank_bm25

N_WORDS = 50_000  # of the vocabulary


def random_texts(rng: np.random.Generator, n: int, length: int) -> list[str]:
    """Texts of words by Zipf's law."""
    words = np.minimum(rng.zipf(1.2, size=(n, length)), N_WORDS)
    return [" ".join(f"word{number}" for number in row) for row in words.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    options, _ = parser.parse_known_args()
    rng = np.random.default_rng(0)
    texts = random_texts(rng, options.documents, 60)
    queries = random_texts(rng, 1000, 8)
    start = time.perf_counter()
    rank_bm25(texts, queries, k=100)
    seconds = time.perf_counter() - start
    publish("BM25", ["documents", "seconds"], [[f"{options.documents:,}", seconds]])


if __name__ == "__main__":
    main()
