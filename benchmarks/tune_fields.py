"""How long does tune take for documents with two fields?

Random unit vectors of 384 and of 256 features for 100,000 documents; 2,000 queries, each for one
document, whose vectors are those of the document with noise: more in the second field than in the
first. Peak memory is that of the whole process, the data included. `--items 10000 --queries 300` is
a small one.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from _table import publish

from rankspace import Relevance, tune

WIDTHS = {"title": 384, "body": 256}
NOISE = {"title": 4.0, "body": 8.0}  # length of the noise beside a unit vector


def unit(points: np.ndarray) -> np.ndarray:
    """Rows of unit length."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=2000)
    options, _ = parser.parse_known_args()
    rng = np.random.default_rng(0)
    asked = rng.choice(options.items, options.queries, replace=False)
    X, Q = {}, {}
    for name, width in WIDTHS.items():
        X[name] = unit(rng.standard_normal((options.items, width), dtype=np.float32))
        noise = unit(rng.standard_normal((asked.size, width), dtype=np.float32))
        Q[name] = X[name][asked] + NOISE[name] * noise
    relevance = Relevance.from_lists(asked[:, None], n_items=options.items)
    start, cpu = time.perf_counter(), time.process_time()
    tuned = tune(X, relevance, queries=Q, random_state=0)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(tuned, flush=True)
    everything = tuned.report.question("all")
    assert everything is not None
    weight = tuned.report.signals[0].weight
    values = [everything.unchanged, everything.tuned, weight, seconds, cpu, peak]
    what = f"{options.items:,} x (384 + 256), {options.queries:,} queries"
    header = [
        "data",
        "unchanged",
        "tuned",
        "weight of the first",
        "seconds",
        "CPU seconds",
        "peak GiB",
    ]
    publish("tune: two fields", header, [[what, *values]])


if __name__ == "__main__":
    main()
