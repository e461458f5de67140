"""How fast are the evaluation measures, compared with ir-measures?

1,000 queries x 1,000 judged items. Each tool starts from its own data structures in memory; the
conversion is timed separately. The results must be equal. The first call with an empty
compilation cache is timed in a new process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import ir_measures
import numpy as np
from _table import best_seconds, publish
from scipy.stats import permutation_test
from sklearn.metrics import roc_auc_score

from rankspace import Ranking, Relevance, evaluate
from rankspace.evaluation.significance import RESAMPLES, randomisation_p_value

N_QUERIES, N_ITEMS = 1000, 1000
PAIRS = {
    "map": ir_measures.AP,
    "mrr": ir_measures.RR,
    "ndcg-linear@10": ir_measures.nDCG @ 10,
}
FIRST_CALL = """
import time
import numpy as np
from rankspace import Ranking, Relevance, evaluate
rng = np.random.default_rng(0)
ranking = Ranking.from_distances(rng.random((50, 50)))
relevance = Relevance.from_labels(rng.integers(0, 5, 50))
start = time.perf_counter()
evaluate(ranking, relevance, "map mrr ndcg@10 auc")
print(time.perf_counter() - start)
"""


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Random distances and grades 0 to 3, most of them 0."""
    rng = np.random.default_rng(0)
    grades = rng.choice(4, size=(N_QUERIES, N_ITEMS), p=[0.9, 0.05, 0.03, 0.02])
    return rng.permuted(np.tile(np.arange(N_ITEMS), (N_QUERIES, 1)), axis=1), grades


def by_name(table: np.ndarray) -> dict[str, dict[str, Any]]:
    return {
        f"q{q}": {f"d{i}": value for i, value in enumerate(row)}
        for q, row in enumerate(table.tolist())
    }


def first_call(cache: str) -> float:
    """Seconds of the first evaluation in a new process, with this compilation cache folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_CALL]
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    return float(process.stdout)


def sign_flips() -> list[Any]:
    """A paired randomisation test of 1,000 differences."""
    differences = np.random.default_rng(0).normal(0.05, 1.0, size=N_QUERIES)
    ours = best_seconds(
        lambda: randomisation_p_value(differences, np.ones(N_QUERIES), 0)
    )

    def other() -> None:
        permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=RESAMPLES,
            vectorized=True,
            batch=1000,
        )

    theirs = best_seconds(other, 3)
    return ["paired randomisation test", ours, theirs, theirs / ours, "SciPy"]


def main() -> None:
    distances, grades = problem()
    start = time.perf_counter()
    ranking = Ranking.from_distances(distances)
    lists = [dict(enumerate(row)) for row in grades.tolist()]
    relevance = Relevance.from_lists(lists, n_items=N_ITEMS)
    ours_built = time.perf_counter() - start
    start = time.perf_counter()
    qrels, run = by_name(grades), by_name(-distances)
    theirs_built = time.perf_counter() - start

    report = evaluate(ranking, relevance, [*PAIRS, "auc"])
    evaluator = ir_measures.evaluator(list(PAIRS.values()), qrels)
    theirs = evaluator.calc_aggregate(run)
    for name, measure in PAIRS.items():
        np.testing.assert_allclose(report.means[name], theirs[measure], rtol=1e-9)
    areas = [roc_auc_score(g > 0, -d) for g, d in zip(grades, distances, strict=True)]
    np.testing.assert_allclose(report.means["auc"], np.mean(areas), rtol=1e-9)

    def sklearn_auc() -> None:
        for g, d in zip(grades, distances, strict=True):
            roc_auc_score(g > 0, -d)

    rows: list[list[Any]] = []
    for name, measure in PAIRS.items():
        single = ir_measures.evaluator([measure], qrels)
        ours = best_seconds(lambda name=name: evaluate(ranking, relevance, name))
        other = best_seconds(lambda single=single: single.calc_aggregate(run), 3)
        rows.append([name, ours, other, other / ours, "ir-measures"])
    ours = best_seconds(lambda: evaluate(ranking, relevance, "auc"))
    other = best_seconds(sklearn_auc, 2)
    rows.append(
        ["auc (ir-measures has none)", ours, other, other / ours, "scikit-learn"]
    )
    ours = best_seconds(lambda: evaluate(ranking, relevance, [*PAIRS, "auc"]))
    other = best_seconds(lambda: evaluator.calc_aggregate(run), 3)
    label = "all four; ir-measures without auc"
    rows.append([label, ours, other, other / ours, "ir-measures"])
    ratio = theirs_built / ours_built
    rows.append(["conversion", ours_built, theirs_built, ratio, "ir-measures"])
    rows.append(sign_flips())
    with tempfile.TemporaryDirectory() as cache:
        rows.append(["first call, empty cache", first_call(cache), "", "", ""])
        rows.append(["first call, filled cache", first_call(cache), "", "", ""])
    title = f"Measures of {N_QUERIES:,} queries x {N_ITEMS:,} judged items, seconds"
    publish(title, ["measure", "rankspace", "other", "ratio", "other tool"], rows)


if __name__ == "__main__":
    main()
