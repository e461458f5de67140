"""Does tune use runs and fields that mean nothing?

Permuted: the documents of a run, or of a field, are shuffled, so that it should not be used.
"Cranfield" is a BM25 run of its texts, or static WordLlama vectors as a second field, shuffled anew
for each set, beside the map that tune learns from MiniLM vectors and all 225 queries. "Synthetic"
are 200 unit vectors of 6 features and 90 queries with three relevant documents each, which are
nearest under a hidden map, drawn anew for each set; the run ranks relevant documents high, but is
shuffled, and the field is another copy of the vectors, shuffled. "Used" counts the sets where a run
is used, or where leaving out the field costs something by its 95 % interval; "covers 0" those where
the interval of a run's weight does, or that of a field's gain. "Change" is the mean of held-out
NDCG@10 with the field minus without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed

from experiments.data import open_second_vectors
from experiments.data.bm25 import open_bm25
from rankspace import Ranking, Relevance, tune
from rankspace.datasets import Dataset, open_dataset
from rankspace.evaluation.runs import check_fusion, check_runs
from rankspace.evaluation.search_task import check_task
from rankspace.learners.families import families
from rankspace.tuning import Tuned
from rankspace.tuning.signals import fuse_runs
from rankspace.tuning.trials import Deadline, Trials, best_result

CRANFIELD = {"label": "Cranfield", "name": "cranfield"}


def shuffled(run: Ranking, n_items: int, seed: int) -> Ranking:
    """The same lists with other documents."""
    order = np.random.default_rng(seed).permutation(n_items)
    return replace(run, items=order[run.items])


def cranfield_runs(n_sets: int) -> list[Any]:
    """Shuffled BM25 runs beside one map."""
    data, X, Q = cranfield()
    task, is_judged = check_task(X, data.relevance, Q, "cosine", "ndcg-linear@10")
    task = check_fusion(task, "minmax")
    nobody = np.zeros(task.n_queries, dtype=bool)
    deadline = Deadline(None)
    trials = Trials(task, nobody, "both", 0.01, 5, 0, deadline, lambda *step: None)
    family = families(None, task.similarity, task.measure, True, 0)
    best = best_result(trials.run(family), "both")
    assert best is not None
    assert data.texts is not None
    assert data.query_texts is not None
    bm25 = open_bm25(CRANFIELD, data.texts, data.query_texts)
    found = []
    for seed in range(n_sets):
        runs = {"run": shuffled(bm25, len(X), seed)}
        fused = fuse_runs(trials, best, check_runs(runs, task, is_judged), "minmax")
        found.append(("run" in fused.weights, fused.rows[-1].weight_low == 0))
    return _row("permuted run, Cranfield", found)


def synthetic_runs(n_sets: int) -> list[Any]:
    """Shuffled runs, each with data and a map of its own."""
    sets = (delayed(synthetic_run)(seed) for seed in range(n_sets))
    return _row("permuted run, synthetic", Parallel(n_jobs=-1)(sets))


def synthetic_run(seed: int) -> tuple[bool, bool]:
    """Whether a shuffled run is used, and whether the interval of its weight covers 0."""
    X, Q, relevance, scores = synthetic(seed)
    run = shuffled(Ranking.from_distances(-scores).top(100), len(X), seed)
    tuned = tune(
        X,
        relevance,
        queries=Q,
        similarity="cosine",
        runs={"run": run},
        random_state=seed,
    )
    return "run" in tuned.weights, tuned.report.signals[-1].weight_low == 0


def cranfield_fields(n_sets: int) -> list[Any]:
    """Shuffled static vectors as a second field."""
    data, X, Q = cranfield()
    others = open_second_vectors("cranfield", "wordllama")
    alone = _tuned_score(tune(X, data.relevance, queries=Q, random_state=0))
    given = (X, Q, data.relevance, others, alone)
    sets = (delayed(with_shuffled)(*given, seed) for seed in range(n_sets))
    return _row("permuted field, Cranfield", Parallel(n_jobs=-1)(sets))


def synthetic_fields(n_sets: int) -> list[Any]:
    """Shuffled copies of the vectors as a second field."""
    sets = (delayed(synthetic_field)(seed) for seed in range(n_sets))
    return _row("permuted field, synthetic", Parallel(n_jobs=-1)(sets))


def synthetic_field(seed: int) -> tuple[bool, bool, float]:
    """The vectors themselves, shuffled, as a second field."""
    X, Q, relevance, _ = synthetic(seed)
    options = {"similarity": "cosine", "random_state": 0}
    alone = _tuned_score(tune(X, relevance, queries=Q, **options))
    return with_shuffled(X, Q, relevance, (X, Q), alone, seed)


def with_shuffled(
    X: np.ndarray,
    Q: np.ndarray,
    relevance: Any,
    others: tuple[np.ndarray, np.ndarray],
    alone: float,
    seed: int,
) -> tuple[bool, bool, float]:
    """Whether a shuffled field is used, whether its interval covers 0, and what it changes."""
    order = np.random.default_rng(seed).permutation(len(X))
    documents = {"own": X, "shuffled": others[0][order]}
    asked = {"own": Q, "shuffled": others[1]}
    tuned = tune(documents, relevance, queries=asked, random_state=0)
    row = tuned.report.signals[1]
    covers = row.gain_low <= 0 <= row.gain_high
    return row.gain_low > 0, covers, _tuned_score(tuned) - alone


def _tuned_score(tuned: Tuned) -> float:
    """The held-out score over all queries of what tune decides."""
    everything = tuned.report.question("all")
    assert everything is not None
    return everything.tuned if tuned.improved else everything.unchanged


def cranfield() -> tuple[Dataset, np.ndarray, np.ndarray]:
    """The collection, its vectors, and those of its queries."""
    data = open_dataset("cranfield")
    X, Q = (np.asarray(V, dtype=np.float32) for V in (data.X, data.queries))
    return data, X, Q


def synthetic(seed: int) -> tuple[np.ndarray, np.ndarray, Relevance, np.ndarray]:
    """Vectors, queries, judgments, and scores that are higher for relevant documents."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(200, 6)), rng.normal(size=(90, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Q /= np.linalg.norm(Q, axis=1, keepdims=True)
    near = np.argsort(-(Q * np.linspace(2, 0.1, 6)) @ X.T, axis=1)[:, :3]
    scores = rng.normal(size=(90, 200))
    np.put_along_axis(scores, near, 2 + rng.normal(size=near.shape), axis=1)
    return X, Q, Relevance.from_lists(near, n_items=200), scores


def _row(what: str, found: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Counts of what was found for each set."""
    n_used = sum(used for used, *_ in found)
    n_covering = sum(covers for _, covers, *_ in found)
    change: Any = ""
    if len(found[0]) > 2:
        change = float(np.mean([change for *_, change in found]))
    return [what, len(found), n_used, n_covering, change]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=50, help="permuted sets of a kind")
    options, _ = parser.parse_known_args()
    kinds = (cranfield_runs, synthetic_runs, cranfield_fields, synthetic_fields)
    rows = [kind(options.sets) for kind in kinds]
    header = ["what", "sets", "used", "covers 0", "change"]
    publish("tune: signals that mean nothing", header, rows)


if __name__ == "__main__":
    main()
