"""The recipes `signals` and `sizes` on a small collection with texts."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.data import bm25, open_second_vectors
from experiments.protocols import signals, sizes
from experiments.recipe import load_recipe
from experiments.run import Jobs
from planted import hidden
from rankspace import Fields, Index, Ranking, evaluate, rank_bm25, tune
from rankspace.datasets import Dataset
from rankspace.learners import families

pytest.importorskip("bm25s")

HERE = {"label": "SciFact", "name": "small"}


@pytest.fixture
def small(monkeypatch):
    """Queries whose words name one of their three documents, and 40 test queries."""
    monkeypatch.setattr(families, "TOTAL_REGS", (24.0, 2.4))
    X, relevance, Q = hidden(n_queries=120)
    words = [f"word{number}" for number in range(200)]
    named = [words[relevance.relevant(query)[0]] for query in range(120)]
    data = Dataset(
        "small",
        X.astype(np.float32),
        relevance,
        queries=Q.astype(np.float32),
        texts=words,
        query_texts=named,
        splits={"train": np.arange(80), "test": np.arange(80, 120)},
    )
    rng = np.random.default_rng(0)
    others = [V[:, :4] + 0.5 * rng.normal(size=(len(V), 4)) for V in (X, Q)]
    others[0][7] = np.nan
    monkeypatch.setattr(signals, "open_dataset", lambda name: data)
    monkeypatch.setattr(signals, "open_second_vectors", lambda name, kind: others)
    signals.problem_of.cache_clear()
    yield data, others
    signals.problem_of.cache_clear()


def mean(cell):
    return float(cell.split()[0])


def test_tables_of_signals(small, tmp_path):
    recipe = load_recipe("signals").with_options({"parts": "both"})
    recipe = replace(
        recipe, content={"datasets": [{**HERE, "second": "other"}], "notes": []}
    )
    outcome = signals.run(recipe, Jobs(tmp_path, 1, lambda fraction: None))
    of_test = ["test part" in table.title for table in outcome.tables]
    assert of_test == [False, False, False, True, True, True]
    check_tables(outcome.tables[:3], "train")
    check_tables(outcome.tables[3:], "test")


def check_tables(tables, part):
    main, other, goals = tables
    rows = {row[0]: row for row in main.rows}
    assert rows.pop("number of queries")[1] == {"train": "80", "test": "40"}[part]
    names = [signals.UNCHANGED, signals.MAP, signals.WITH_BM25, signals.EVERYTHING]
    unchanged, mapped, fused, everything = (mean(rows[name][1]) for name in names)
    assert unchanged < mapped < fused
    assert everything > unchanged
    assert signals.WITH_MEMORY in rows or part == "test"
    assert {row[0] for row in other.rows} == set(rows)
    assert len(other.header) == len(other.rows[0]) == 7
    verdicts = {row[0]: row[-1] for row in goals.rows}
    assert verdicts[f"{signals.WITH_BM25}: worse than the better part"] == "held"
    assert verdicts[f"{signals.WITH_BM25}: better than the better part"] == "no"
    assert "SciFact: map + BM25 against" in " ".join(verdicts)


def test_values_of_folds_are_those_of_tune(small):
    """NDCG@10 of the map and of the fused ranking are in the report of tune."""
    data, _ = small
    train = data.part("train")
    run = rank_bm25(train.texts, train.query_texts)
    plain = {"queries": train.queries, "similarity": "cosine", "random_state": 0}
    alone = tune(train.X, train.relevance, **plain).report
    tuned = tune(train.X, train.relevance, runs={"bm25": run}, **plain).report
    rows = signals.values_of(HERE, "", "train", 0)["rows"]
    for label, report in ((signals.MAP, alone), (signals.WITH_BM25, tuned)):
        values = np.array(rows[label]["values"]["NDCG@10"][0])
        assert values.mean() == pytest.approx(report.question("all").tuned)
    unchanged = Index(train.X, similarity="cosine").rank(train.queries, 100)
    for name, measure in signals.MEASURES.items():
        expected = evaluate(unchanged, train.relevance, measure).values[measure]
        found = rows[signals.UNCHANGED]["values"][name][0]
        np.testing.assert_allclose(found, expected)
        first = run.top(100)
        expected = evaluate(first, train.relevance, measure).values[measure]
        np.testing.assert_allclose(rows[signals.LEXICAL]["values"][name][0], expected)
        both = Ranking.fuse({"vectors": unchanged, "bm25": first})
        expected = evaluate(both, train.relevance, measure).values[measure]
        found = rows[signals.RECIPROCAL]["values"][name][0]
        np.testing.assert_allclose(found, expected)


def test_two_embeddings_are_two_fields(small):
    data, others = small
    problem = signals.problem_of(json.dumps(HERE), "other")
    joined = Fields({"one": data.X, "two": others[0]})
    np.testing.assert_array_equal(problem.X, np.asarray(joined))
    assert problem.widths == (6, 4)
    assert not problem.X[7, 6:].any()


def test_tables_of_sizes(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "WIDTHS", (4, 2))
    monkeypatch.setattr(sizes, "LEARNED", (2,))
    monkeypatch.setattr(sizes, "TRIPLETS", 500)
    recipe = load_recipe("sizes").with_options({"tolerance": 1.0})
    recipe = replace(recipe, content={"datasets": [HERE], "notes": []})
    outcome = sizes.run(recipe, Jobs(tmp_path, 1, lambda fraction: None))
    table, smallest, learned = outcome.tables
    labels = [row[0] for row in table.rows]
    assert labels[:4] == ["6 float32", "6 float16", "6 int8", "6 binary"]
    assert [row[-1] for row in table.rows] == ["full"] + 11 * ["safe"]
    assert smallest.rows[0][-2:] == ["2 binary", "1"]
    assert learned.rows[0][:2] == ["SciFact", "2"]
    reduced = mean(table.rows[labels.index("2 float32")][1])
    assert mean(learned.rows[0][2]) == reduced


def test_a_failed_width_ends_the_tests_of_its_storage(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "WIDTHS", (2, 1))
    monkeypatch.setattr(sizes, "LEARNED", ())
    rows = sizes.sizes_of(HERE, 0.0, 0)["rows"]
    verdicts = {row[0]: row[-1] for row in rows}
    assert verdicts["2 float32"] == "loses"
    assert verdicts["1 float32"] == "not tested"


def test_second_vectors_follow_the_judged_queries(tmp_path, monkeypatch):
    home = tmp_path / "ir-npl"
    (home / "other").mkdir(parents=True)
    (home / "corpus.jsonl").write_text('{"_id": "d1", "text": "cat"}\n')
    lines = [json.dumps({"_id": f"q{i}", "text": "x"}) for i in range(3)]
    import gzip

    with gzip.open(home / "queries.jsonl.gz", "wt") as stream:
        stream.write("\n".join(lines))
    qrels = "query-id\tcorpus-id\tscore\nq2\td1\t1\nq0\td1\t1\n"
    (home / "qrels.tsv").write_text(qrels)
    np.save(home / "other" / "corpus_mine_f16.npy", np.ones((1, 2)))
    np.save(home / "other" / "queries_mine_f16.npy", np.arange(6).reshape(3, 2))
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path))
    X, queries = open_second_vectors("npl", "mine")
    np.testing.assert_array_equal(queries, [[0, 1], [4, 5]])
    assert X.dtype == queries.dtype == np.float32


@pytest.mark.parametrize("name", ["signals", "sizes"])
def test_recipes_load(name):
    assert load_recipe(name).protocol == name


def test_the_part_is_checked():
    recipe = load_recipe("signals").with_options({"parts": "dev"})
    with pytest.raises(
        ValueError, match="parts must be 'train', 'test' or 'both': got 'dev'"
    ):
        signals.run(recipe, None)


def test_bm25_is_read_from_a_file_of_the_same_texts(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path))
    data = {"label": "NPL", "name": "npl", "options": {"document": "answer"}}
    texts, asked = ["black cats", "a dog", "dogs and cats"], ["cat", "dogs"]
    computed = bm25.open_bm25(data, texts, asked)
    path = bm25.stored_path(data)
    assert path == tmp_path / "ir-npl" / "other" / "bm25_answer.npz"
    bm25.store_bm25(path, texts, asked)
    monkeypatch.setattr(bm25, "rank_bm25", None)
    stored = bm25.open_bm25(data, texts, asked)
    for part in bm25.PARTS:
        np.testing.assert_array_equal(getattr(stored, part), getattr(computed, part))
    with pytest.raises(ValueError, match="a ranking of the texts of NPL: they have"):
        bm25.open_bm25(data, texts, ["cat", "cats"])
