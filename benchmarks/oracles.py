"""How long does a separation oracle take compared with sorting its scores, and how does it scale?

1,000 queries, 500 relevant of 10,000 items, k = 10, one thread; then 1,000 to 100,000 items, of
which one in twenty is relevant. The exponent is the slope of log seconds over log items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import best_seconds, publish

from rankspace._engine.kernels.oracles import ORACLES, new_work
from rankspace.evaluation.measures import parse_measure
from rankspace.learners.solvers.cutting_plane.ranking_loss import discounts_of

MEASURES = (
    "auc",
    "p@10",
    "knn@10",
    "map",
    "mrr",
    "ndcg@10",
    "ndcg",
    "ndcg-mlr@10",
    "ndcg-mlr",
)


def descending(scores: np.ndarray) -> np.ndarray:
    """Each row sorted downwards."""
    return np.ascontiguousarray(np.sort(scores)[:, ::-1])


class Problem:
    """Scores of many queries: relevant items score a little higher."""

    def __init__(self, n_queries: int, n_items: int, n_pos: int) -> None:
        rng = np.random.default_rng(0)
        self.scores = rng.normal(size=(n_queries, n_items))
        self.scores[:, :n_pos] += 1
        self.pos = descending(self.scores[:, :n_pos])
        self.neg = descending(self.scores[:, n_pos:])

    def sort(self) -> None:
        np.argsort(self.scores, axis=1)

    def run(self, measure: str) -> None:
        spec, k = parse_measure(measure)
        oracle = ORACLES[spec.kernel]
        work = new_work(self.scores.shape[1])
        negs_above = np.empty(self.pos.shape[1], dtype=np.int64)
        discounts = discounts_of(spec.kernel, self.scores.shape[1])
        for pos, neg in zip(self.pos, self.neg, strict=True):
            oracle(pos, neg, k, discounts, work, negs_above)


def exponent(measure: str, problems: dict[int, Problem]) -> float:
    """Slope of log seconds over log items."""
    seconds = [best_seconds(lambda p=p: p.run(measure), 3) for p in problems.values()]
    return float(np.polyfit(np.log(list(problems)), np.log(seconds), 1)[0])


def main() -> None:
    problem = Problem(1000, 10_000, 500)
    sort = best_seconds(problem.sort, 3)
    growing = {
        n: Problem(30, n, n // 20) for n in (1000, 3000, 10_000, 30_000, 100_000)
    }
    rows: list[list[Any]] = [["the sort", sort, 1.0, ""]]
    for measure in MEASURES:
        seconds = best_seconds(lambda measure=measure: problem.run(measure), 3)
        rows.append([measure, seconds, seconds / sort, exponent(measure, growing)])
    title = "Oracles of 1,000 queries x 10,000 items, seconds"
    publish(title, ["measure", "seconds", "time / sort", "exponent in items"], rows)


if __name__ == "__main__":
    main()
