"""Calls of all kinds on small data, each of which has one right answer whoever makes it when."""

import tempfile
from pathlib import Path

import numpy as np

from rankspace import (
    FRML,
    GMML,
    LGMML,
    LMNN,
    MLR,
    Euclidean,
    GraphMLR,
    Index,
    KernelMLR,
    LinearMetric,
    ListwiseMap,
    Relevance,
    evaluate,
    load_metric,
)
from rankspace.datasets import read_letor, read_trec_run, write_trec_run

LEARNERS = [
    Euclidean(),
    FRML(2, n_triplets=300, random_state=0),
    GMML(),
    LGMML(4, random_state=0),
    LMNN(tol=1.0),
    ListwiseMap(tol=1.0, random_state=0),
    MLR(C=100.0, tol=0.2),
    GraphMLR(100.0, tol=0.2),
    KernelMLR(100.0, tol=0.2),
]


def call(number):
    """The arrays that call number ``number`` gives."""
    rng = np.random.default_rng(number)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4))
    X[:, 0] += 3 * y
    works = [_rank, _evaluate, _fit, _save_and_load, _read]
    return works[number % len(works)](number, X, y)


def _rank(number, X, y):
    names = [f"item {row}" for row in range(len(X))]
    ranking = Index(X, LinearMetric(X[:3]), ids=names).rank(X[:10], 5)
    return ranking.items, ranking.distances


def _evaluate(number, X, y):
    relevance = Relevance.from_labels(y)
    report = evaluate(Index(X).rank(), relevance, "map ndcg@5 auc")
    return tuple(report.values.values())


def _fit(number, X, y):
    from sklearn.base import clone

    learner = clone(LEARNERS[number // 5 % len(LEARNERS)]).fit(X, y)
    ranking = learner.rank(X[:5], X, 10)
    return ranking.items, ranking.distances


def _save_and_load(number, X, y):
    # All calls of all threads and processes write this file, and all write the same.
    shared = Path(tempfile.gettempdir()) / "rankspace-mixed-calls.safetensors"
    LinearMetric(np.eye(3)).save(shared)
    with tempfile.TemporaryDirectory() as folder:
        LinearMetric(X[:4]).save(Path(folder) / "metric")
        own = load_metric(Path(folder) / "metric").item_map
    return own, load_metric(shared).item_map


def _read(number, X, y):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.txt"
        write_trec_run(Index(X).rank(X[:5], 5), run)
        lists = Path(folder) / "lists.txt"
        values = X[:, 0].tolist()
        lines = [f"1 qid:{n // 10} 2:{value}\n" for n, value in enumerate(values)]
        lists.write_text("".join(lines))
        return read_trec_run(run).distances, read_letor(lists).X


def same(found, expected):
    """Whether two answers are equal to the last bit."""
    return len(found) == len(expected) and all(
        np.array_equal(a, b) for a, b in zip(found, expected, strict=True)
    )
