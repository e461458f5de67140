"""Ids of queries and items: any spelling, any length, and no memory for what is not there."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from rankspace import Index, LinearMetric, Ranking, Relevance, evaluate
from rankspace.datasets import read_trec_run, write_trec_run
from rankspace.evaluation.report import same_queries
from rankspace.export import to_sql

# One id of this length made fixed-width arrays of 8 kB an entry, 32 MB for these ids.
LONG = "x" * 2000
NAMES = [LONG, *(f"item {number}" for number in range(3999))]
ALLOWED = 10 * 2**20


def from_qrels(folder):
    qrels = {name: {name: 1} for name in NAMES}
    return Relevance.from_qrels(qrels, item_ids=NAMES)


def from_qrels_file(folder):
    path = folder / "qrels.txt"
    names = [name.replace(" ", "_") for name in NAMES]
    path.write_text("".join(f"{name} 0 {name} 1\n" for name in names))
    return Relevance.from_qrels(path)


def from_groups(folder):
    return Relevance.from_groups(np.ones(4000), qid=NAMES, item_ids=NAMES)


def from_labels(folder):
    return Relevance.from_labels(np.arange(4000), query_ids=NAMES, item_ids=NAMES)


def subset(folder):
    return from_labels(folder)[:3000]


def ranking_of_groups(folder):
    return Ranking.from_groups(np.arange(4000.0), NAMES, item_ids=NAMES)


def ranking_of_run(folder):
    return Ranking.from_run({name: {name: 1.0} for name in NAMES}).to_run()


def ranking_joined(folder):
    ranking = ranking_of_groups(folder)
    other = Ranking(
        ranking.indptr,
        ranking.items,
        ranking.distances,
        4000,
        [f"{name}!" for name in NAMES],
        NAMES,
    )
    return Ranking.join([ranking, other]).top(1)


def run_file(folder):
    ranking = ranking_of_groups(folder)
    safe = [name.replace(" ", "_") for name in NAMES]
    ranking = Ranking(
        ranking.indptr, ranking.items, ranking.distances, 4000, safe, safe
    )
    write_trec_run(ranking, folder / "run.txt")
    return read_trec_run(folder / "run.txt")


def index(folder):
    index = Index(np.arange(4000.0)[:, None], ids=NAMES)
    index.add(np.zeros((4000, 1)), ids=[f"{name}!" for name in NAMES])
    return index.rank(np.zeros((10, 1)), 1, query_ids=NAMES[:10])


def report(folder):
    relevance = from_groups(folder)
    shuffled = relevance.take_queries(np.arange(4000)[::-1])
    ranking = ranking_of_groups(folder)
    before = evaluate(ranking, relevance, "map")
    after = evaluate(ranking, shuffled, "map")
    return same_queries(before, after)


def sql(folder):
    X = np.ones((4000, 1))
    return to_sql(LinearMetric([[1.0]]), X, folder / "items.sql", ids=NAMES)


BUILDERS = [
    from_qrels,
    from_qrels_file,
    from_groups,
    from_labels,
    subset,
    ranking_of_groups,
    ranking_of_run,
    ranking_joined,
    run_file,
    index,
    report,
    sql,
]


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_one_long_id_does_not_widen_the_others(build, tmp_path):
    # Once for what is imported and compiled.
    build(tmp_path)
    tracemalloc.start()
    try:
        build(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < ALLOWED


@pytest.mark.parametrize(
    "ids",
    [
        ["1", "2", "3"],
        (1, 2, 3),
        range(1, 4),
        np.arange(1, 4),
        np.array(["1", "2", "3"]),
        np.array([b"1", b"2", b"3"]),
        [b"1", "2", np.int64(3)],
        pd.Series(["1", "2", "3"]),
        pd.Index([1, 2, 3]),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_ids_of_any_kind_become_text(ids):
    names = Relevance.from_labels([0, 0, 1], item_ids=ids).item_ids
    assert names.dtype == object
    assert names.tolist() == ["1", "2", "3"]
    assert set(map(type, names)) == {str}


def test_ids_are_copied():
    names = np.array(["a", "b"], dtype=object)
    relevance = Relevance.from_labels([0, 0], item_ids=names)
    names[0] = "changed"
    assert relevance.item_ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "ids", ["ab", {"a", "b"}, {"a": 1, "b": 2}, [["a"], ["b"]], np.array([["a", "b"]])]
)
def test_what_is_not_one_id_for_each_row_is_refused(ids):
    with pytest.raises(ValueError, match=r"item_ids|an id must be"):
        Relevance.from_labels([0, 0], item_ids=ids)


def test_repeated_ids_are_named():
    with pytest.raises(ValueError, match="got 'b' again, and 1 others"):
        Relevance.from_labels([0] * 5, item_ids=["c", "b", "a", "b", "c"])


def test_ids_that_differ_in_a_trailing_nul_are_different():
    # An array of fixed width drops the character.
    relevance = Relevance.from_labels([0, 0], item_ids=["a", "a\0"])
    assert relevance.item_ids.tolist() == ["a", "a\0"]
