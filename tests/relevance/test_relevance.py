"""Judgments: how they are built, counted, indexed and refused."""

import copy
import dataclasses
import gzip
import math
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import indexable

from rankspace import Euclidean, Relevance
from rankspace.relevance.splits import hold_out
from reference.rankings import dense, whole

NAN, OUT = math.nan, -math.inf  # unjudged, no candidate of the query
GRADES = [NAN, -1.0, 0.0, 0.5, 1.0, 2.0]
QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
ARRAYS = (
    "rows",
    "indptr",
    "items",
    "grades",
    "query_items",
    "weights",
    "query_ids",
    "item_ids",
)


def assert_consistent(relevance):
    """Counts and lists say what the matrix says."""
    relevant = dense(relevance) >= relevance.min_relevant_grade
    assert relevance.n_relevant.tolist() == relevant.sum(axis=1).tolist()
    for query, row in enumerate(relevant):
        assert relevance.relevant(query).tolist() == np.flatnonzero(row).tolist()


def assert_same(relevance, other):
    """Equal in all that a user can see."""
    assert_consistent(relevance)
    np.testing.assert_equal(relevance.n_irrelevant, other.n_irrelevant)
    np.testing.assert_equal(dense(relevance), dense(other))
    for name in (
        "query_items",
        "weights",
        "query_ids",
        "item_ids",
        "unjudged",
        "min_relevant_grade",
    ):
        np.testing.assert_equal(
            getattr(relevance, name), getattr(other, name), err_msg=name
        )


# ---------------------------------------------------------------------- three states


@st.composite
def tables(draw, max_items=6, max_queries=4, square=False):
    n_items = draw(st.integers(1, max_items))
    n_queries = n_items if square else draw(st.integers(1, max_queries))
    row = st.lists(st.sampled_from(GRADES), min_size=n_items, max_size=n_items)
    return np.array(draw(st.lists(row, min_size=n_queries, max_size=n_queries)))


def lists_of(table):
    return [
        {i: grade for i, grade in enumerate(row) if grade == grade} for row in table
    ]


def of_rows(table, **options):
    """Relevance whose queries are the rows of X."""
    return Relevance.from_lists(lists_of(table), **options)


def without_own(table):
    """The table as a query that is a row sees it."""
    table = table.copy()
    np.fill_diagonal(table, OUT)
    return table


@given(
    table=tables(),
    unjudged=st.sampled_from(["irrelevant", "ignore"]),
    min_relevant_grade=st.sampled_from([0.5, 1.0, 2.0]),
    own=st.booleans(),
)
@settings(deadline=None, max_examples=100)
def test_each_item_is_relevant_irrelevant_or_left_out(
    table, unjudged, min_relevant_grade, own
):
    n_queries, n_items = table.shape
    query_items = (
        np.arange(n_queries) if own and n_queries <= n_items else np.full(n_queries, -1)
    )
    relevance = Relevance.from_lists(
        lists_of(table),
        n_items=n_items,
        query_rows=query_items,
        unjudged=unjudged,
        min_relevant_grade=min_relevant_grade,
    )
    for q, row in enumerate(table):
        others = [i for i in range(n_items) if i != query_items[q]]
        relevant = [i for i in others if row[i] >= min_relevant_grade]
        judged_irrelevant = [i for i in others if row[i] < min_relevant_grade]
        unjudged_items = [i for i in others if math.isnan(row[i])]
        irrelevant = judged_irrelevant + (
            unjudged_items if unjudged == "irrelevant" else []
        )
        assert relevance.relevant(q).tolist() == relevant
        assert relevance.irrelevant(q).tolist() == sorted(irrelevant)
        assert relevance.n_relevant[q] == len(relevant)
        assert relevance.n_irrelevant[q] == len(irrelevant)
        assert relevance.trainable[q] == bool(relevant and irrelevant)
        items, grades = relevance.judged(q)
        assert dict(zip(items.tolist(), grades.tolist(), strict=True)) == {
            i: row[i] for i in others if row[i] == row[i]
        }


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(GRADES)), min_size=1, max_size=10
    ),
    unjudged=st.sampled_from(["irrelevant", "ignore"]),
)
@settings(deadline=None, max_examples=100)
def test_candidates_of_groups(rows, unjudged):
    qid, grades = zip(*rows, strict=True)
    relevance = Relevance.from_groups(grades, qid, unjudged=unjudged)
    queries = list(dict.fromkeys(qid))
    assert relevance.query_ids.tolist() == [str(query) for query in queries]
    assert relevance.has_candidate_lists
    for q, query in enumerate(queries):
        mine = [i for i, (name, _) in enumerate(rows) if name == query]
        relevant = [i for i in mine if grades[i] >= 1]
        left_out = [i for i in mine if math.isnan(grades[i]) and unjudged == "ignore"]
        irrelevant = [i for i in mine if i not in relevant and i not in left_out]
        assert relevance.judged(q)[0].tolist() == [
            i for i in mine if grades[i] == grades[i]
        ]
        assert relevance.relevant(q).tolist() == relevant
        assert relevance.irrelevant(q).tolist() == irrelevant
        assert relevance.n_relevant[q] == len(relevant)
        assert relevance.n_irrelevant[q] == len(irrelevant)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 0, 2],
        [3.0, 1.0, 3.0, 2.0],
        [True, False, True, False],
        ["cat", "dog", "cat", "a"],
        np.array(["cat", "dog", "cat", 3], dtype=object),
        np.array([[0], [1], [0], [2]]),
        pd.Series(["x", "y", "x", "z"], index=[7, 5, 3, 1]),
        pd.Categorical(["x", "y", "x", "z"]),
        pl.Series(["x", "y", "x", "z"]),
    ],
    ids=[
        "int",
        "float",
        "bool",
        "str",
        "object",
        "column",
        "pandas",
        "categorical",
        "polars",
    ],
)
def test_labels_make_items_of_one_class_relevant(labels):
    relevance = Relevance.from_labels(labels)
    plain = np.asarray(labels).ravel().tolist()
    expected = np.array([[float(a == b) for b in plain] for a in plain])
    np.testing.assert_equal(dense(relevance), without_own(expected))
    assert relevance.queries_are_rows


@pytest.mark.parametrize(
    "labels", [[-1, 1, -1], [-1.0, 1.0], ["-1", "+1"], [-1, -1], [True, False]]
)
def test_minus_one_is_a_class_beside_one(labels):
    assert Relevance.from_labels(labels).n_queries == len(labels)


UNLABELLED = [
    ([0, -1, 1, 0, -1, 1, 2], -1),
    ([0.0, NAN, 1.0, 0.0, NAN, 1.0, 2.0], NAN),
    (["a", None, "b", "a", None, "b", "c"], NAN),
    (["a", "?", "b", "a", "?", "b", "c"], "?"),
    (pd.array([0, None, 1, 0, None, 1, 2], dtype="Int64"), NAN),
    (np.array([0, -1, 1, 0, -1, 1, 2], dtype=object), -1),
]


@pytest.mark.parametrize(("y", "marker"), UNLABELLED)
@pytest.mark.parametrize("unjudged", ["irrelevant", "ignore"])
def test_rows_without_a_label_are_unjudged_and_no_queries(y, marker, unjudged):
    relevance = Relevance.from_labels(y, unlabelled=marker, unjudged=unjudged)
    classes = np.array([0, NAN, 1, 0, NAN, 1, 2])
    queries = [0, 2, 3, 5, 6]
    expected = (classes[queries, None] == classes).astype(float)
    expected[:, [1, 4]] = NAN
    expected[range(5), queries] = OUT
    np.testing.assert_array_equal(dense(relevance), expected)
    assert relevance.query_items.tolist() == queries
    assert relevance.n_relevant.tolist() == [1, 1, 1, 1, 0]
    n_others = 4 if unjudged == "ignore" else 6
    assert (relevance.n_irrelevant + relevance.n_relevant).tolist() == [n_others] * 5
    assert_consistent(relevance)
    folds = relevance[[0, 1, 2, 3]]
    assert (folds.n_queries, folds.n_items) == (3, 4)


def test_without_unlabelled_rows_the_parameter_changes_nothing():
    assert_same(
        Relevance.from_labels([0, 1, 0], unlabelled=-1),
        Relevance.from_labels([0, 1, 0]),
    )


def test_separate_queries_without_a_label_have_nothing_relevant():
    relevance = Relevance.from_labels(
        [0, -1, 1, 0], query_labels=[-1, 0, 7], unlabelled=-1
    )
    assert [relevance.relevant(query).tolist() for query in range(3)] == [
        [],
        [0, 3],
        [],
    ]
    assert not relevance.queries_are_rows


def test_a_model_learns_beside_rows_without_a_label(wine):
    X, y = wine
    partly = np.where(np.arange(y.size) % 3, y, -1)
    relevance = Relevance.from_labels(partly, unlabelled=-1, unjudged="ignore")
    labelled = partly >= 0
    model = Euclidean().fit(X, relevance)
    # Where rows without a label leave the lists it is as if they did not exist.
    expected = Euclidean().fit(X[labelled], y[labelled]).score(X[labelled], y[labelled])
    assert model.score(X, relevance) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"from_labels\(y, unlabelled=-1\)"):
        model.fit(X, partly)


@pytest.mark.parametrize(
    ("y", "marker", "message"),
    [
        (
            [-1, -1],
            -1,
            "y must have a row with a label: got 2 rows, all of them unlabelled=-1.",
        ),
        (
            [0, 1],
            "-1",
            "y and unlabelled must both be text or both be numbers: got int64 and <U2.",
        ),
        (
            [-1, 0, NAN],
            -1,
            "y must not hold missing labels: got nan at row 2. Leave such rows out, or pass "
            "Relevance.from_labels(y, unlabelled=numpy.nan).",
        ),
    ],
)
def test_bad_unlabelled(y, marker, message):
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_labels(y, unlabelled=marker)


def test_labels_judge_every_pair_under_either_rule():
    relevance = Relevance.from_labels([0, 0, 1], unjudged="ignore")
    assert relevance.unjudged == "ignore"
    assert relevance.n_irrelevant.tolist() == [1, 1, 2]


def test_labels_of_separate_queries():
    relevance = Relevance.from_labels(
        ["b", "a", "b"], query_labels=["a", "z", "b", "0"]
    )
    np.testing.assert_equal(
        dense(relevance),
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]],
    )
    assert relevance.query_items.tolist() == [-1] * 4
    assert relevance.n_irrelevant.tolist() == [2, 3, 1, 3]


def test_query_labels_of_another_kind_are_refused():
    message = (
        "y and query_labels must both be text or both be numbers: got int64 and <U1."
    )
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_labels([0, 1], query_labels=["0"])


def test_query_labels_meet_labels_held_as_objects():
    labels = np.array([3, 4, 3], dtype=object)
    assert Relevance.from_labels(labels, query_labels=[3]).relevant(0).tolist() == [
        0,
        2,
    ]


def test_relevance_need_not_be_symmetric_or_transitive():
    follows = Relevance.from_lists([[1], [2], []])
    np.testing.assert_equal(
        dense(follows), [[OUT, 1.0, NAN], [NAN, OUT, 1.0], [NAN, NAN, OUT]]
    )


def test_a_row_is_not_its_own_candidate_but_its_copy_is():
    copies = Relevance.from_labels([5, 6])[[0, 0, 1]]
    np.testing.assert_equal(
        dense(copies), [[OUT, 1.0, 0.0], [1.0, OUT, 0.0], [0.0, 0.0, OUT]]
    )


def test_lists_of_irrelevant_items_are_judgments():
    relevance = Relevance.from_lists([[0], {1: 2.0}], [[2], [0]], n_items=4)
    np.testing.assert_equal(
        dense(relevance), [[1.0, NAN, 0.0, NAN], [0.0, 2.0, NAN, NAN]]
    )
    ignoring = dataclasses.replace(relevance, unjudged="ignore")
    assert relevance.n_irrelevant.tolist() == [3, 3]
    assert ignoring.n_irrelevant.tolist() == [1, 1]


def test_the_order_and_repetition_of_a_list_do_not_matter():
    assert_same(
        Relevance.from_lists([[3, 1, 3, 0]], n_items=4),
        Relevance.from_lists([[0, 1, 3]], n_items=4),
    )


def test_no_queries():
    relevance = Relevance.from_lists([], n_items=3)
    assert (relevance.n_queries, len(relevance)) == (0, 3)
    assert relevance.n_relevant.tolist() == relevance.n_irrelevant.tolist() == []


def test_repr_counts():
    relevance = Relevance.from_lists([[0], [1, 2]], n_items=4)
    assert (
        repr(relevance)
        == "Relevance(2 queries, 4 items, 3 judgments, unjudged='irrelevant')"
    )


def test_labels_cost_a_row_a_class_and_no_matrix():
    n = 200_000
    labels = np.arange(n) % 1000
    tracemalloc.start()
    try:
        relevance = Relevance.from_labels(labels)
        assert relevance.n_relevant[0] == n // 1000 - 1
        assert relevance.n_irrelevant[0] == n - n // 1000
        part = relevance[np.arange(0, n, 2)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert relevance.items.size == n
    assert part.n_items == n // 2
    assert peak < 300 * n  # bytes; a matrix of bits would be 25,000 a row


# ---------------------------------------------------------------------- qrels


def trec_file(folder):
    path = folder / "qrels.txt"
    path.write_text("q1 0 a 2\nq1 0 b 0\n\nq2 Q0 c 1\n")
    return path


def crlf_file(folder):
    path = folder / "windows.txt"
    path.write_bytes(b"q1\t0\ta\t2\r\nq1\t0\tb\t0\r\nq2\t0\tc\t1\r\n")
    return path


def bom_file(folder):
    path = folder / "bom.txt"
    path.write_text("q1 0 a 2\nq1 0 b 0\nq2 0 c 1\n", encoding="utf-8-sig")
    return path


def beir_file(folder):
    path = folder / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t1\n")
    return path


def gzipped_file(folder):
    path = folder / "qrels.txt.gz"
    path.write_bytes(gzip.compress(trec_file(folder).read_bytes()))
    return path


COLUMNS = {
    "query_id": ["q1", "q1", "q2"],
    "doc_id": ["a", "b", "c"],
    "relevance": [2, 0, 1],
}


@pytest.mark.parametrize(
    "form", [trec_file, crlf_file, bom_file, beir_file, gzipped_file]
)
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_qrels_files(form, kind, tmp_path):
    assert_same(Relevance.from_qrels(kind(form(tmp_path))), Relevance.from_qrels(QRELS))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "names",
    [
        ("query_id", "doc_id", "relevance"),
        ("query-id", "corpus-id", "score"),
        ("qid", "docno", "label"),
        ("query", "item", "grade"),
    ],
)
def test_qrels_dataframes(frame, names):
    columns = dict(zip(names, COLUMNS.values(), strict=True)) | {
        "iteration": ["0", "0", "0"]
    }
    assert_same(Relevance.from_qrels(frame(columns)), Relevance.from_qrels(QRELS))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_qrels_dataframe_with_numbers_as_names(frame):
    relevance = Relevance.from_qrels(
        frame({"qid": [7, 7], "docid": [10, 11], "rel": [1, 0]})
    )
    assert relevance.query_ids.tolist() == ["7"]
    assert relevance.item_ids.tolist() == ["10", "11"]


def test_qrels_mapping_to_lists_and_numbers_as_names():
    relevance = Relevance.from_qrels(
        {7: [10, 11]}, query_ids=[8, 7], item_ids=[11, 10, 12]
    )
    np.testing.assert_equal(dense(relevance), [[NAN, NAN, NAN], [1.0, 1.0, NAN]])


def test_qrels_are_laid_out_in_the_order_of_the_given_names():
    relevance = Relevance.from_qrels(
        QRELS, query_ids=["q2", "q0", "q1"], item_ids=(name for name in "cbxa")
    )
    np.testing.assert_equal(
        dense(relevance), [[1.0, NAN, NAN, NAN], [NAN] * 4, [NAN, 0.0, NAN, 2.0]]
    )
    assert relevance.query_ids.tolist() == ["q2", "q0", "q1"]
    assert relevance.item_ids.tolist() == ["c", "b", "x", "a"]


def test_qrels_whose_queries_are_rows():
    relevance = Relevance.from_qrels(
        {"a": {"a": 1, "b": 1}}, item_ids=["b", "a"], query_rows=[1]
    )
    np.testing.assert_equal(dense(relevance), [[1.0, OUT]])


def test_a_tab_separated_file_is_split_at_tabs(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\tItem 7\t1\n")
    assert Relevance.from_qrels(path).item_ids.tolist() == ["Item 7"]


def test_the_first_line_is_a_header_only_if_it_ends_in_no_grade(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("topic 0 a 1\nquery 0 a 1\n")
    assert Relevance.from_qrels(path).query_ids.tolist() == ["topic", "query"]


@pytest.mark.parametrize(
    ("names", "kind", "matched", "got"),
    [
        ({"item_ids": ["a", "b"]}, "item", "2 of 3", "c"),
        ({"query_ids": ["q2"]}, "query", "1 of 2", "q1"),
    ],
)
def test_unknown_names_in_qrels(names, kind, matched, got):
    message = (
        f"{kind} ids of the judgments must be among those of the data: {matched} are. Only in the "
        f"judgments: '{got}'. The likely cause: the ids are of another file or another version "
        "of the collection. Check where both come from."
    )
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_qrels(QRELS, **names)


@pytest.mark.parametrize("unknown", ["error", "drop"])
@pytest.mark.parametrize("rows", [range(4), ["0", "1", "2", "3"]])
def test_rows_from_0_do_not_join_ids_from_1(rows, unknown):
    """Query 1 of the judgments is row 0: all but query 4 would join the wrong row."""
    qrels = {str(query): {"x": 1} for query in (1, 2, 3, 4)}
    with pytest.raises(
        ValueError, match="but those of the judgments count from 1"
    ) as failed:
        Relevance.from_qrels(list_of(qrels), query_ids=rows, unknown=unknown)
    assert "3 of 4 are. Only in the judgments: '4'; only in the data: '0'" in str(
        failed.value
    )
    assert "--query-ids" in str(failed.value)


def list_of(qrels):
    """The same judgments as a dataframe, which says nothing of the order of queries."""
    rows = [(q, i, g) for q, items in qrels.items() for i, g in items.items()]
    return pd.DataFrame(rows, columns=["query", "item", "grade"])


@pytest.mark.parametrize(
    ("spell", "cause"),
    [
        (str.upper, "differ in case"),
        (lambda name: f"{name}.0", "floating-point"),
        (lambda name: f"{int(name[3:]):06d}", "before the number"),
        (lambda name: name.replace("c", "c00"), "pads numbers with zeros"),
        (lambda name: str(int(name[3:]) - 10), "are row numbers, from 0"),
        (lambda name: f"{name} of another kind", "another file"),
    ],
)
def test_the_likely_cause_of_ids_that_do_not_join(spell, cause):
    names = [f"doc{i}" for i in range(10, 30)]
    qrels = {"q": dict.fromkeys(names, 1)}
    item_ids = [spell(name) for name in names]
    with pytest.raises(ValueError, match=cause) as failed:
        Relevance.from_qrels(qrels, item_ids=item_ids)
    assert "0 of 20 are. Only in the judgments: 'doc10', 'doc11'" in str(failed.value)
    assert "unknown=" not in str(failed.value)
    with pytest.raises(ValueError, match=cause):  # nothing would be left
        Relevance.from_qrels(qrels, item_ids=item_ids, unknown="drop")


def test_repeated_ids_are_named():
    with pytest.raises(ValueError, match="item_ids must not repeat a name: got 'a'"):
        Relevance.from_qrels({"q": {"b": 1}}, item_ids=["a", "a"])


@pytest.mark.parametrize(
    "text",
    [
        "query-id,corpus-id,score\nq1,a,2\nq1,b,0\nq2,c,1\n",
        "Query-ID, Corpus-ID, Score\nq1, a, 2\nq1, b, 0\nq2, c, 1\n",
        'score,item,query\n2,"a",q1\n0,b,q1\n1,c,q2\n',
        "item\tquery\tgrade\tjudge\na\tq1\t2\tx\nb\tq1\t0\tx\nc\tq2\t1\ty\n",
    ],
)
def test_qrels_with_a_header_are_read_by_the_names_of_columns(text, tmp_path):
    path = tmp_path / "qrels.csv"
    path.write_text(text)
    expected = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    assert_same(Relevance.from_qrels(path), Relevance.from_qrels(expected))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("q1,a,1\n", "must start with a header, such as query-id,corpus-id,score"),
        ("query-id,passage,score\nq1,a,1\n", "line 1 is a header, and qrels must have"),
        (
            "query-id,corpus-id,score\nq1,a\n",
            "line 2 must have 3 columns, as the header",
        ),
    ],
)
def test_tables_of_qrels_that_cannot_be_read(text, fault, tmp_path):
    path = tmp_path / "qrels.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=fault):
        Relevance.from_qrels(path)


def test_unknown_names_in_qrels_can_be_dropped(caplog):
    relevance = Relevance.from_qrels(
        QRELS, query_ids=["q1", "q2"], item_ids=["a", "b"], unknown="drop"
    )
    assert "1 of 3 judgments are left out: 0 of the queries and 1 of the" in caplog.text
    np.testing.assert_equal(dense(relevance), [[2.0, 0.0], [NAN, NAN]])
    with pytest.raises(
        ValueError, match=whole("unknown must be 'error' or 'drop': got 'skip'.")
    ):
        Relevance.from_qrels(QRELS, unknown="skip")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("q1 0 a 1\nq1 0\n", "line 2 must have 3 or 4 columns: got 2."),
        ("\nq1 Q0 a 1 0.5 run\n", "line 2 must have 3 or 4 columns: got 6."),
        (
            "q1 0 a 1\nq1 0 b 1\nq1 0 c high\n",
            "line 3 must end in a grade: got 'high'.",
        ),
        (
            "q1 0 a 1\nquery-id corpus-id score\n",
            "line 2 must end in a grade: got 'score'.",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_malformed_qrels_name_file_and_line(text, fault, suffix, tmp_path):
    path = tmp_path / f"qrels.{suffix}"
    path.write_bytes(
        gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode()
    )
    with pytest.raises(ValueError, match=whole(f"{path}, {fault}")):
        Relevance.from_qrels(path)


def test_qrels_in_another_encoding_name_file_and_line(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_bytes(b"q1 0 a 1\nq1 0 \xe9 1\n")
    with pytest.raises(
        ValueError, match=r"qrels\.txt, line 2 is not UTF-8 text \(invalid"
    ):
        Relevance.from_qrels(path)


def test_cut_gzip_file_of_qrels(tmp_path, rng):
    path = tmp_path / "qrels.txt.gz"
    lines = "".join(f"q{i} 0 d{rng.integers(10**9)} 1\n" for i in range(20_000))
    path.write_bytes(gzip.compress(lines.encode())[:-2000])
    message = r"qrels\.txt\.gz is damaged or cut short after line 1\d{4} \(.+\)\. Fetch the file"
    with pytest.raises(ValueError, match=message):
        Relevance.from_qrels(path)


def test_plain_text_named_gz(tmp_path):
    path = tmp_path / "qrels.txt.gz"
    path.write_text("q1 0 a 1\n")
    with pytest.raises(ValueError, match="is damaged or cut short after line 0"):
        Relevance.from_qrels(path)


def test_missing_qrels_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        Relevance.from_qrels(tmp_path / "none.txt")


def test_qrels_of_no_known_form():
    message = "qrels must be a path, a mapping {query: {item: grade}} or a dataframe: got list."
    with pytest.raises(TypeError, match=whole(message)):
        Relevance.from_qrels([("q", "d", 1)])


def test_dataframe_without_a_column_of_grades():
    message = (
        "qrels must have a column named one of score, grade, relevance, rel, label: "
        "got qid, docid."
    )
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_qrels(pd.DataFrame({"qid": ["a"], "docid": ["b"]}))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", ["qid", "docid", "rel"])
def test_a_dataframe_must_not_lack_names_or_grades(frame, column):
    columns = {"qid": ["a", "b"], "docid": ["x", "y"], "rel": [1, 0]}
    columns[column][1] = None
    with pytest.raises(ValueError, match="must"):
        Relevance.from_qrels(frame(columns))


def test_qrels_that_contradict_themselves_name_the_pair(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("x 0 y 1\ntopic9 0 doc7 2\ntopic9 0 doc7 1\n")
    with pytest.raises(
        ValueError, match=r"a pair must have one grade: .*topic9.*doc7.* 2 and 1"
    ):
        Relevance.from_qrels(path)


def test_qrels_may_repeat_themselves(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q 0 a 1\nq 0 a 1\nq 0 b 0\n")
    assert_same(
        Relevance.from_qrels(path), Relevance.from_qrels({"q": {"a": 1, "b": 0}})
    )


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "y must be a non-empty 1-d array of labels: got shape (0,)."),
        (
            np.eye(2),
            "y must have one label for each row: got shape (2, 2). Of one-hot columns pass "
            "y.argmax(axis=1); if rows have several labels, pass Relevance.from_lists.",
        ),
        (3, "y must be a non-empty 1-d array of labels: got shape ()."),
        *[
            (
                [*labels, missing],
                f"y must not hold missing labels: got {missing} at row 2. Leave such rows out, or "
                "pass Relevance.from_labels(y, unlabelled=numpy.nan).",
            )
            for labels, missing in (([0.0, 1.0], NAN), (["a", "b"], None))
        ],
        *[
            (
                labels,
                "y must hold class labels, not continuous values: got "
                f"{labels[1]}. Pass class labels or a Relevance, or bin the values, for "
                "example by numpy.digitize; grades of candidate lists need qid.",
            )
            for labels in (
                [1.0, 0.5],
                [2.0, math.inf],
                np.array([1, 0.5], dtype=object),
            )
        ],
        ([1j, 2], "y must hold class labels: got complex numbers."),
        *[
            (
                labels,
                "y must not leave open whether -1 is a class or marks rows without a label: got "
                f"-1 beside {others}. Pass Relevance.from_labels(y, unlabelled={marker!r}) if "
                "these rows have no label, and give the class another name if it is one.",
            )
            for labels, others, marker in (
                ([0, 1, -1], "0, 1", -1),
                ([0, -1], "0", -1),
                ([4.0, 3.0, 2.0, 1.0, -1.0], "1.0, 2.0, 3.0, ...", -1),
                (["0", "-1", "1"], "0, 1", "-1"),
                ([b"a", b"-1"], "a", "-1"),
            )
        ],
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_labels(labels)


@pytest.mark.parametrize(
    "labels",
    [
        pd.array([1, None, 1], dtype="Int64"),
        pd.Series(["a", None, "a"], dtype="string"),
        pd.Series(["a", None, "a"]),
        pl.Series(["a", None, "a"]),
        pl.Series([1, None, 1]),
        np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    ],
    ids=["Int64", "string", "pandas", "polars str", "polars int", "date"],
)
def test_missing_labels_of_any_kind_are_refused(labels):
    with pytest.raises(
        ValueError, match=r"^y must not hold missing labels: got .* at row 1\."
    ):
        Relevance.from_labels(labels)


def test_missing_query_labels_are_refused():
    with pytest.raises(
        ValueError, match=r"^query_labels must not hold missing labels: got nan"
    ):
        Relevance.from_labels([0.0, 1.0], query_labels=[NAN])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ([[0]], [[1], [0]]),
            {"n_items": 2},
            "relevant and irrelevant must have one list for each query: got 1 and 2 lists.",
        ),
        (
            ([[3]],),
            {"n_items": 3},
            "items must be rows of X, from 0 to 2: got 3. Pass n_items=... when X has more rows "
            "than there are queries.",
        ),
        (
            ([[-1]],),
            {"n_items": 3},
            "items must be rows of X, from 0 to 2: got -1. Pass n_items=... when X has more rows "
            "than there are queries.",
        ),
        (
            ([[0]], [[0]]),
            {"n_items": 3},
            "a pair must have one grade: query 0 and item 0 have 1 and 0.",
        ),
        (([{0: NAN}],), {"n_items": 3}, "grades must be finite: got NaN or infinity."),
        (
            ([{0: math.inf}],),
            {"n_items": 3},
            "grades must be finite: got NaN or infinity.",
        ),
        (
            ([[0], [1]],),
            {"n_items": 2, "query_rows": [0, 2]},
            "query_rows must be between 0 and 1, or -1 for no row: got 0 to 2.",
        ),
        (
            ([[0], [1]],),
            {"n_items": 2, "query_rows": [0]},
            "query_rows must hold a row of X for each of 2 queries: got int64 of shape (1,).",
        ),
        (
            ([[0], [1]],),
            {"n_items": 2, "query_rows": [1, 1]},
            "query_rows must not name a row of X twice.",
        ),
        (
            ([[0]],),
            {"n_items": 2, "unjudged": "skip"},
            "unjudged must be 'irrelevant' or 'ignore': got 'skip'.",
        ),
        (
            ([[0]],),
            {"n_items": 2, "min_relevant_grade": 0},
            "min_relevant_grade must be a finite grade above 0: got 0. Grade 0 means judged "
            "irrelevant.",
        ),
        (
            ([[0]],),
            {"n_items": 2, "weights": [1, 2]},
            "weights must have one entry for each of 1 queries: got shape (2,).",
        ),
        (
            ([[0]],),
            {"n_items": 2, "weights": [-1]},
            "weights must be finite and not negative: got -1.0.",
        ),
        (
            ([[0]],),
            {"n_items": 2, "weights": [NAN]},
            "weights must be finite and not negative: got nan.",
        ),
        (([[0]],), {"n_items": 2, "weights": [0]}, "weights must not all be 0."),
        (
            ([[0]],),
            {"n_items": 2, "item_ids": ["a"]},
            "item_ids must have 2 entries: got shape (1,).",
        ),
        (
            ([[0]],),
            {"n_items": 2, "item_ids": ["a", "a"]},
            "item_ids must not repeat a name: got 'a' again.",
        ),
    ],
)
def test_bad_lists(arguments, options, message):
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_lists(*arguments, **options)


def test_queries_that_are_taken_twice_are_no_class():
    lists = Relevance.from_lists([[0, 1], [1, 2]], n_items=3)
    assert not lists.take_queries([0, 1, 0, 1]).has_classes
    for y in ([0, 0, 1, 1, 1], [0, 0, 1, -1, -1]):
        labels = Relevance.from_labels(y, unlabelled=-1)
        assert labels.has_classes
        assert labels.take_queries([0, 1]).has_classes


@pytest.mark.parametrize("make", [np.array, list])
def test_a_matrix_of_judgments_is_not_taken_for_lists_of_rows(make):
    matrix = [[0, 1, 1, 0], [1, 0, 0, 0]]
    with pytest.raises(ValueError, match="a column for each of 4 items"):
        Relevance.from_lists(make(matrix), n_items=4)
    lists = [np.flatnonzero(row) for row in matrix]
    assert Relevance.from_lists(lists, n_items=4).n_relevant.tolist() == [2, 1]
    assert Relevance.from_lists([[0, 1], [1, 0]], n_items=2).n_relevant.sum() == 4


@pytest.mark.parametrize(
    ("lists", "got"),
    [([[0.5]], "0.5"), ([{1.9: 1.0}], "1.9"), ([[True, False]], "True")],
)
def test_items_must_be_whole_numbers(lists, got):
    message = f"lists must hold row numbers of X: got {got}."
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_lists(lists, n_items=3)


@pytest.mark.parametrize("query_rows", [[-2], [0.5]])
def test_query_rows_must_be_rows(query_rows):
    with pytest.raises((TypeError, ValueError), match="query_rows must"):
        Relevance.from_lists([[1]], n_items=3, query_rows=query_rows)


@pytest.mark.parametrize(
    ("grades", "qid", "message"),
    [
        (
            [1, 0],
            [1],
            "grades and qid must have one entry for each row of X: got shapes (2,) and (1,).",
        ),
        (
            [[1], [0]],
            [[1], [1]],
            "grades and qid must have one entry for each row of X: got shapes (2, 1) and (2, 1).",
        ),
        ([], [], "grades must not be empty: got 0 rows."),
        ([math.inf], [1], "grades must be finite, or NaN for unjudged: got infinity."),
    ],
)
def test_bad_groups(grades, qid, message):
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_groups(grades, qid)


DIRECT = {
    "n_items": 3,
    "rows": [0, 1, 0],
    "indptr": [0, 2, 3],
    "items": [0, 2, 1],
    "grades": [1.0, 0.0, 1.0],
    "query_items": [-1, 0, 2],
    "background": "unjudged",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"items": [0, 3, 1]},
            "items must be numbers from 0 to 2: got 0 to 3. Number rows from 0.",
        ),
        (
            {"items": [-9, 2, 1]},
            "items must be numbers from 0 to 2: got -9 to 2. Number rows from 0.",
        ),
        (
            {"items": [0.5, 2, 1]},
            "items must be a 1-d array of whole numbers: got float64 of shape (3,).",
        ),
        *[
            (
                {"items": items},
                "items must ascend in each row, none twice: sort them, or build the relevance with "
                "Relevance.from_lists.",
            )
            for items in ([2, 0, 1], [2, 2, 1])
        ],
        (
            {"rows": [0, 2, 0]},
            "rows must be numbers from 0 to 1: got 0 to 2. Number rows from 0.",
        ),
        *[
            (
                {"indptr": indptr},
                f"indptr must rise from 0 to the number of items, 3: got {indptr}.",
            )
            for indptr in ([0, 4, 3], [0, 2, 9], [1, 2, 3], [])
        ],
        (
            {"grades": [1.0]},
            "grades must have one entry for each of 3 items: got shape (1,).",
        ),
        (
            {"grades": [1.0, math.inf, 0.0]},
            "grades must be finite, or NaN for unjudged: got infinity.",
        ),
        (
            {"query_items": [0]},
            "query_items must have one entry for each of 3 queries: got 1. Use -1 for queries that "
            "are not rows of X.",
        ),
        (
            {"query_items": [0, 1, 3]},
            "query_items must be numbers from -1 to 2: got 0 to 3. Number rows from 0.",
        ),
        (
            {"background": "none"},
            "background must be one of irrelevant, unjudged, absent: got 'none'.",
        ),
        ({"n_items": 2.5}, "n_items must be the number of rows of X: got 2.5."),
        (
            {"weights": [1.0, 2.0]},
            "weights must have one entry for each of 3 queries: got shape (2,).",
        ),
        (
            {"background": "absent", "items": [0, 2, 2]},
            "items must be in one candidate list each, as every row of X is a candidate of one "
            "query: got item 2 in 2. Repeat its row of X.",
        ),
    ],
)
def test_what_is_built_directly_is_checked(changes, message):
    assert Relevance(**DIRECT).n_relevant.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=whole(message)):
        Relevance(**{**DIRECT, **changes})


# ---------------------------------------------------------------------- frozen


@pytest.fixture
def named():
    return Relevance.from_qrels(QRELS, weights=[1, 2])


@pytest.mark.parametrize("name", [*ARRAYS, "n_relevant", "n_irrelevant"])
def test_arrays_are_not_writeable(named, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(named, name)[0] = getattr(named, name)[-1]


@pytest.mark.parametrize("name", [*ARRAYS, "unjudged", "n_items"])
def test_attributes_cannot_be_set(named, name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(named, name, None)


def test_arrays_of_the_caller_are_copied_and_stay_writeable():
    labels, weights, names = np.array([0, 0, 1]), np.ones(3), np.array(["a", "b", "c"])
    grades, qid = np.array([1.0, 0.0, 2.0]), np.array([1, 1, 2])
    query_rows = np.array([2, 0, 1])
    made = [
        Relevance.from_labels(labels, weights=weights, query_ids=names, item_ids=names),
        Relevance.from_groups(grades, qid, item_ids=names),
        Relevance.from_lists([[0], [1], [2]], query_rows=query_rows),
    ]
    before = [dense(relevance) for relevance in made]
    for array in (labels, weights, grades, qid, query_rows):
        array[:] = 0
    names[:] = "z"
    for relevance, table in zip(made, before, strict=True):
        np.testing.assert_equal(dense(relevance), table)
    assert made[0].weights.tolist() == [1, 1, 1]
    assert made[0].query_ids.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_copies_are_equal(named, duplicate):
    assert_same(duplicate(named), named)


def test_replace_changes_the_rule_and_the_counts(named):
    assert named.n_irrelevant.tolist() == [2, 2]
    ignoring = dataclasses.replace(named, unjudged="ignore")
    assert ignoring.n_irrelevant.tolist() == [1, 0]
    assert dataclasses.replace(named, min_relevant_grade=2).n_relevant.tolist() == [
        1,
        0,
    ]


# ---------------------------------------------------------------------- indexing


def row_picks(n, min_size=0):
    return st.lists(st.integers(0, n - 1), min_size=min_size, max_size=2 * n)


@given(table=tables(square=True), data=st.data())
@settings(deadline=None, max_examples=100)
def test_rows_restrict_the_matrix(table, data):
    n = len(table)
    rows = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n))
    weights = np.arange(1.0, n + 1)
    part = of_rows(table, weights=weights, query_ids=range(n), item_ids=range(n))[rows]
    assert_consistent(part)
    np.testing.assert_equal(dense(part), without_own(table)[np.ix_(rows, rows)])
    np.testing.assert_equal(part.weights, weights[rows])
    assert part.shape == (len(rows),)
    assert (
        part.query_ids.tolist() == part.item_ids.tolist() == [str(row) for row in rows]
    )


@given(table=tables(square=True), data=st.data())
@settings(deadline=None, max_examples=100)
def test_repeated_rows_are_copies(table, data):
    """Each copy is a query of its own, and the others are among its candidates."""
    rows = data.draw(row_picks(len(table)))
    part = of_rows(table, unjudged="ignore")[rows]
    assert_consistent(part)
    np.testing.assert_equal(dense(part), without_own(table[np.ix_(rows, rows)]))
    assert part.unjudged == "ignore"


def subsets(data, table):
    """Every kind of subset: queries, rows of X, rows of candidate lists, held-out queries."""
    n = len(table)
    ids = [f"row {i}" for i in range(n)]
    rows = np.array(data.draw(row_picks(n)), dtype=int)
    relevance = of_rows(table, query_ids=ids, item_ids=ids, weights=range(1, n + 1))
    yield relevance.take_queries(rows)
    yield relevance.take_queries(np.isin(np.arange(n), rows))
    yield relevance[rows]
    yield Relevance.from_groups(table[0], np.arange(n) % 2, item_ids=ids)[rows]
    yield hold_out(
        np.eye(n), relevance, None, np.setdiff1d(range(n), rows), rows
    ).judged


@given(table=tables(square=True), data=st.data())
@settings(deadline=None, max_examples=100)
def test_a_subset_equals_one_built_and_checked_anew(table, data):
    for subset in subsets(data, table):
        fields = {f.name: getattr(subset, f.name) for f in dataclasses.fields(subset)}
        checked = Relevance(**fields)
        assert_same(subset, checked)
        for name in ARRAYS:
            array, other = getattr(subset, name), getattr(checked, name)
            np.testing.assert_equal(array, other, err_msg=name)
            if array is not None:
                assert array.dtype == other.dtype, name
                assert not array.flags.writeable, name


def test_subsets_are_not_checked_again(monkeypatch):
    relevance = Relevance.from_labels(list("aabb"), query_ids=range(4))
    monkeypatch.setattr(Relevance, "__post_init__", None)
    assert relevance[[0, 1]].take_queries([0]).query_ids.tolist() == ["0"]


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=8), data=st.data())
@settings(deadline=None, max_examples=100)
def test_rows_of_labels_are_labels_of_rows(labels, data):
    rows = data.draw(row_picks(len(labels), min_size=1))
    assert_same(
        Relevance.from_labels(labels)[rows],
        Relevance.from_labels(np.array(labels)[rows]),
    )


@given(table=tables(square=True), data=st.data())
@settings(deadline=None, max_examples=100)
def test_indexing_twice_is_indexing_once(table, data):
    relevance = of_rows(table)
    a = np.array(data.draw(row_picks(len(table), min_size=1)))
    b = np.array(data.draw(row_picks(len(a))), dtype=int)
    assert_same(relevance[a][b], relevance[a[b]])


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(GRADES)), min_size=1, max_size=7
    ),
    data=st.data(),
)
@settings(deadline=None, max_examples=100)
def test_rows_of_groups_are_groups_of_rows(rows, data):
    """Lists shrink to the rows kept; those that lose every row go; the others keep their order."""
    qid, grades = map(np.array, zip(*rows, strict=True))
    picked = np.array(data.draw(row_picks(len(rows), min_size=1)))
    part = Relevance.from_groups(grades, qid)[picked]
    expected = Relevance.from_groups(grades[picked], qid[picked])
    order = [expected.query_ids.tolist().index(name) for name in part.query_ids]
    assert sorted(order) == list(range(expected.n_queries))
    assert order == sorted(
        order, key=lambda q: qid.tolist().index(int(expected.query_ids[q]))
    )
    assert_same(part, expected.take_queries(order))


def test_some_rows_are_queries():
    relevance = Relevance.from_lists([[0, 2], [3]], n_items=4, query_rows=[1, 0])
    part = relevance[[3, 1, 2]]
    np.testing.assert_equal(dense(part), [[NAN, OUT, 1.0]])
    assert part.query_items.tolist() == [1]


def test_indexing_twice_when_no_query_is_left():
    relevance = Relevance.from_lists([[1]], n_items=4, query_rows=[0])
    assert_same(relevance[[1, 2, 3]][[0]], relevance[[1]])


def test_a_part_may_hold_only_queries_of_zero_weight():
    relevance = Relevance.from_labels([0, 0, 1, 1], weights=[1, 1, 0, 0])
    assert relevance[[2, 3]].weights.tolist() == [0, 0]
    assert relevance.take_queries([2]).weights.tolist() == [0]


@pytest.mark.parametrize(
    "rows",
    [
        [2, 0],
        np.array([2, 0], dtype=np.int32),
        [-1, -3],
        (np.array([2, 0]), Ellipsis),
        slice(None, None, -2),
    ],
    ids=["list", "int32", "negative", "with ellipsis", "slice"],
)
def test_forms_of_an_index(rows):
    relevance = Relevance.from_labels([0, 1, 0], item_ids=["a", "b", "c"])
    assert relevance[rows].item_ids.tolist() == ["c", "a"]


@pytest.mark.parametrize("mask", [[True, False, True], np.array([1, 0, 1], dtype=bool)])
def test_masks_index(mask):
    relevance = Relevance.from_labels([0, 1, 0], item_ids=["a", "b", "c"])
    assert relevance[mask].item_ids.tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (1, TypeError, "rows must be a slice, a mask or a 1-d array of indices: got"),
        (
            [[0]],
            TypeError,
            "rows must be a slice, a mask or a 1-d array of indices: got",
        ),
        ([True], ValueError, "a mask must have 3 entries: got 1."),
        ([3], IndexError, "out of bounds"),
        ([0.5], (TypeError, IndexError), "indices|integer"),
    ],
)
def test_bad_indices(rows, error, message):
    with pytest.raises(error, match=message):
        Relevance.from_labels([0, 1, 0])[rows]


def test_separate_queries_cannot_be_split_by_rows():
    message = (
        "relevance with separate queries cannot be split by rows of X, because the queries are not "
        "rows of X. Use rankspace.tune, which splits the queries, or take_queries."
    )
    with pytest.raises(ValueError, match=whole(message)):
        Relevance.from_lists([[0]], n_items=2)[[0]]


@given(table=tables(), data=st.data())
@settings(deadline=None, max_examples=60)
def test_take_queries_takes_rows_of_the_matrix(table, data):
    n_queries, n_items = table.shape
    weights = np.arange(1.0, n_queries + 1)
    relevance = Relevance.from_lists(lists_of(table), n_items=n_items, weights=weights)
    queries = data.draw(row_picks(n_queries))
    part = relevance.take_queries(queries)
    np.testing.assert_equal(dense(part), table[queries].reshape(-1, n_items))
    np.testing.assert_equal(part.weights, weights[queries])


@pytest.mark.parametrize("queries", [[2, 0], [False, False, True], slice(1, None)])
def test_take_queries_keeps_items_own_rows_and_names(queries):
    relevance = Relevance.from_labels([0, 1, 0], query_ids=["a", "b", "c"])
    part = relevance.take_queries(queries)
    at = np.arange(3)[queries]
    np.testing.assert_equal(dense(part), dense(relevance)[at])
    assert part.query_items.tolist() == at.tolist()
    assert part.query_ids.tolist() == relevance.query_ids[at].tolist()


def test_take_queries_twice_the_same():
    part = Relevance.from_labels([0, 1, 0], query_ids=["a", "b", "c"]).take_queries(
        [0, 0]
    )
    np.testing.assert_equal(dense(part), [[OUT, 0.0, 1.0]] * 2)
    assert part.query_ids is None


# ---------------------------------------------------------------------- scikit-learn


@pytest.fixture
def split_rows():
    labels = np.arange(12) % 3
    return np.arange(12.0)[:, None], labels, Relevance.from_labels(labels)


@pytest.mark.parametrize(
    ("splitter", "groups"),
    [
        (KFold(3, shuffle=True, random_state=0), None),
        (GroupKFold(3), np.arange(12) // 2),
    ],
)
def test_splitters_take_relevance_as_y(splitter, groups, split_rows):
    X, labels, relevance = split_rows
    for train, test in splitter.split(X, relevance, groups):
        for rows in (train, test):
            part = _safe_indexing(relevance, rows)
            assert_same(part, Relevance.from_labels(labels[rows]))


def test_train_test_split_takes_relevance_as_y(split_rows):
    X, labels, relevance = split_rows
    X_train, X_test, train, test = train_test_split(X, relevance, random_state=0)
    assert_same(train, Relevance.from_labels(labels[X_train[:, 0].astype(int)]))
    assert_same(test, Relevance.from_labels(labels[X_test[:, 0].astype(int)]))


def test_relevance_is_indexable_and_checked_for_length(split_rows):
    X, _, relevance = split_rows
    assert indexable(X, relevance)[1] is relevance
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        indexable(X[:-1], relevance)


def test_group_k_fold_keeps_candidate_lists_whole():
    qid = np.repeat([4, 2, 9], 3)
    relevance = Relevance.from_groups(np.tile([2.0, 0.0, 1.0], 3), qid)
    for train, test in GroupKFold(3).split(np.zeros((9, 1)), relevance, groups=qid):
        assert relevance[train].n_queries == 2
        assert relevance[test].query_ids.tolist() == [str(qid[test[0]])]
        assert relevance[test].n_relevant.tolist() == [2]


@pytest.mark.parametrize("line", ["q1,a\rb,1", f"q1,{'a' * 200_000},1"])
def test_lines_that_no_table_has_are_named(tmp_path, line):
    path = tmp_path / "qrels.csv"
    path.write_bytes(f"query-id,corpus-id,score\nq1,a,1\n{line}\n".encode())
    with pytest.raises(
        ValueError, match=r"qrels\.csv, line 3 is not a line of a table"
    ):
        Relevance.from_qrels(path)
