"""How fast is exact nearest-neighbour search, compared with FAISS and scikit-learn?

Top 10 of 1,000 queries over 100,000 items of 64 single-precision features, all tools on all
cores; also the peak memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import faiss
import numpy as np
from _table import best_seconds, publish
from sklearn.neighbors import NearestNeighbors

from rankspace import Index, Relevance

N_ITEMS, N_QUERIES, N_FEATURES, K = 100_000, 1000, 64, 10
PEAK = """
import numpy as np
from rankspace import Index
rng = np.random.default_rng(0)
X = rng.standard_normal((100_000, 64), dtype=np.float32)
Q = rng.standard_normal((1000, 64), dtype=np.float32)
Index(X).rank(Q, 10)
# ru_maxrss would include the peak of the parent process.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def peak_memory() -> float:
    """Peak resident memory in MiB of a process that creates the data and searches it."""
    command = [sys.executable, "-c", PEAK]
    return float(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )


def share_equal(items: np.ndarray, others: np.ndarray) -> float:
    """Share of items that are the same, in any order within a query."""
    return float(np.mean(np.sort(items) == np.sort(others)))


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ITEMS, N_FEATURES), dtype=np.float32)
    Q = rng.standard_normal((N_QUERIES, N_FEATURES), dtype=np.float32)
    faiss.omp_set_num_threads(os.cpu_count())
    flat = faiss.IndexFlatL2(N_FEATURES)
    flat.add(X)
    neighbours = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=-1).fit(X)
    index = Index(X)
    through_faiss = Index(X, backend="faiss")

    nearest = index.rank(Q, K).items.reshape(N_QUERIES, K)
    agreement = {
        "faiss": share_equal(flat.search(Q, K)[1], nearest),
        "scikit-learn": share_equal(neighbours.kneighbors(Q)[1], nearest),
    }
    seconds = {
        "rankspace": best_seconds(lambda: index.rank(Q, K)),
        "faiss IndexFlatL2": best_seconds(lambda: flat.search(Q, K)),
        "scikit-learn brute": best_seconds(lambda: neighbours.kneighbors(Q)),
        "rankspace, faiss backend": best_seconds(lambda: through_faiss.rank(Q, K)),
        "the matrix product alone": best_seconds(lambda: Q @ X.T),
        "rankspace, all items, 100 queries": best_seconds(
            lambda: index.rank(Q[:100]), 2
        ),
    }
    ours = seconds["rankspace"]
    rows: list[list[Any]] = [[name, s, ours / s] for name, s in seconds.items()]
    labels = rng.integers(0, 1000, 1_000_000)
    built = best_seconds(lambda: Relevance.from_labels(labels))
    rows.append(["Relevance.from_labels, 1,000,000", built, ""])
    rows.append(["peak memory of a search, MiB", peak_memory(), ""])
    for name, share in agreement.items():
        rows.append([f"same top {K} as {name}, share", share, ""])
    title = f"Exact top {K} of {N_QUERIES:,} queries over {N_ITEMS:,} x {N_FEATURES}, seconds"
    publish(title, ["what", "value", "rankspace / value"], rows)


if __name__ == "__main__":
    main()
