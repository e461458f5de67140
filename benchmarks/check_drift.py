"""Does check keep its rate of false alarms, and does it catch drift?

Queries are the training queries of SciFact and NFCorpus, embedded by the same model. In each run
they are shuffled; the metric keeps a sample of one half, at most 500, and the new queries are drawn
from the other half. Without drift an alarm is false; 5 % are
promised. "Shifted" moves each new query by so much of its length in one random direction, and
"mixed" replaces a share of them by training queries of another collection.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _table import publish

from rankspace import LinearMetric
from rankspace.datasets import open_dataset
from rankspace.evaluation import check_drift

LEVEL = 0.05
# Each collection, and the one whose queries are mixed into its own.
COLLECTIONS = {"scifact": "nfcorpus", "nfcorpus": "scifact"}
SIZES = (100, 300)
SHIFT = 0.15
SHARE = 0.3
Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def training_queries(name: str) -> np.ndarray:
    """Vectors of the training queries at unit length, each once."""
    collection = open_dataset(name)
    rows = np.asarray(collection.queries, dtype=np.float32)
    rows = np.unique(rows[collection.splits["train"]], axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def unchanged(new: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """No drift."""
    return new


def shifted(new: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each query moved in the same random direction."""
    direction = rng.normal(size=new.shape[1])
    return new + SHIFT * direction / np.linalg.norm(direction)


def mixed(other: np.ndarray) -> Change:
    """A share of the queries replaced by those of another collection."""

    def change(new: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        n = round(SHARE * len(new))
        return np.concatenate((other[rng.permutation(len(other))[:n]], new[n:]))

    return change


def share_of_alarms(queries: np.ndarray, n_new: int, n_runs: int, by: Change) -> float:
    """How often drift is found."""
    metric = LinearMetric(np.eye(queries.shape[1]), similarity="cosine")
    half = len(queries) // 2
    alarms = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(queries))
        metric.keep_query_sample(queries[order[:half]])
        new = by(queries[order[half : half + n_new]], rng)
        tested = check_drift(metric, new, level=LEVEL, random_state=seed)
        alarms += tested.outcome == "drifted"
    return alarms / n_runs


def rows(n_false: int, n_drifted: int) -> Iterator[list[Any]]:
    """The rows of the table."""
    for name, other in COLLECTIONS.items():
        queries = training_queries(name)
        changes: dict[str, Change] = {
            "none": unchanged,
            f"shifted by {SHIFT:g} of the length": shifted,
            f"mixed, {SHARE:.0%} of {other}": mixed(training_queries(other)),
        }
        for n_new in SIZES:
            for drift, by in changes.items():
                n_runs = n_drifted
                required = "at least 0.9" if n_new == max(SIZES) else "–"
                if by is unchanged:
                    n_runs, required = n_false, "0.03 to 0.07"
                share = share_of_alarms(queries, n_new, n_runs, by)
                print(name, n_new, drift, share, file=sys.stderr, flush=True)
                yield [name, n_new, drift, n_runs, share, required]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="without drift")
    parser.add_argument("--drifted", type=int, default=300, help="with drift")
    parser.add_argument("--json")
    options = parser.parse_args()
    header = ["queries", "new queries", "drift", "runs", "alarms", "required"]
    publish(
        "check: false alarms and drift",
        header,
        list(rows(options.runs, options.drifted)),
    )


if __name__ == "__main__":
    main()
