"""Click logs become judgments: counted as one would by hand, from every kind of table."""

from collections import defaultdict
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankspace import Index, Relevance, tune

COLUMNS = ["query", "document", "position", "clicked"]
LOG = [
    ("q1", "a", 1, 1, "2026-01-01"),
    ("q1", "b", 2, 0, "2026-01-01"),
    ("q1", "a", 1, 0, "2026-01-02"),
    ("q1", "b", 2, 1, "2026-01-02"),
    ("q2", "c", 1, 0, "2026-01-03T12:00"),
    ("q2", "a", 3, 1, "2026-01-03T12:00"),
    ("q1", "a", 1, 1, "2026-01-03T13:00+01:00"),
]


def frame_of(rows):
    return pd.DataFrame(rows, columns=[*COLUMNS, "time"])


FRAME = frame_of(LOG)


def by_hand(rows, propensities, min_impressions):
    """Clicks and impressions, one row after the other."""
    shown, clicks = defaultdict(int), defaultdict(float)
    for query, document, position, clicked, *_ in rows:
        shown[query, document] += 1
        clicks[query, document] += clicked / propensities[position - 1]
    return {pair: clicks[pair] for pair, n in shown.items() if n >= min_impressions}


def as_mapping(relevance):
    found = {}
    for number, query in enumerate(relevance.query_ids):
        for item, grade in zip(*relevance.judged(number), strict=True):
            found[query, relevance.item_ids[item]] = grade
    return found


rows = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from(["1", "2", "3", "4"]),
        st.integers(1, 3),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)


@given(rows, st.sampled_from([(1, 1, 1), (1, 0.5, 0.25)]))
def test_clicks_are_counted_as_by_hand(log, propensities):
    frame = pd.DataFrame(log, columns=COLUMNS)
    options = {} if propensities == (1, 1, 1) else {"propensities": propensities}
    relevance = Relevance.from_clicks(frame, **options)
    assert as_mapping(relevance) == pytest.approx(by_hand(log, propensities, 1))
    assert relevance.unjudged == "ignore"


def test_documents_that_were_shown_rarely_are_left_out():
    relevance = Relevance.from_clicks(FRAME, min_impressions=2)
    assert as_mapping(relevance) == by_hand(LOG, (1, 1, 1), 2)
    with pytest.raises(ValueError, match="at least 9 times for a query: got 3 times"):
        Relevance.from_clicks(FRAME, min_impressions=9)


@pytest.mark.parametrize(
    "kind", ["csv", "tsv", "csv.gz", "parquet", "feather", "polars", "pyarrow"]
)
def test_files_and_dataframes_are_the_same(kind, tmp_path):
    path = tmp_path / f"log.{kind}"
    log = path
    if kind == "polars":
        log = pl.DataFrame(FRAME.to_dict("list"))
    elif kind == "pyarrow":
        log = pytest.importorskip("pyarrow").table(FRAME.to_dict("list"))
    elif kind in ("parquet", "feather"):
        pytest.importorskip("pyarrow")
        getattr(FRAME, f"to_{kind}")(path)
    else:
        FRAME.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    relevance = Relevance.from_clicks(log, since="2026-01-02")
    assert as_mapping(relevance) == by_hand(LOG[2:], (1, 1, 1), 1)


@pytest.mark.parametrize(
    "limit",
    ["2026-01-03T12:00", datetime(2026, 1, 3, 12), np.datetime64("2026-01-03T12:00")],
)
def test_a_log_is_split_by_time(limit):
    earlier = Relevance.from_clicks(FRAME, until=limit)
    later = Relevance.from_clicks(FRAME, since=limit)
    assert as_mapping(earlier) == by_hand(LOG[:4], (1, 1, 1), 1)
    # Noon of a zone that is an hour ahead is 13:00 there.
    assert as_mapping(later) == by_hand(LOG[4:], (1, 1, 1), 1)


def test_times_are_dates_stamps_or_numbers():
    stamps = FRAME.assign(
        time=pd.to_datetime(FRAME["time"], utc=True, format="ISO8601")
    )
    numbers = FRAME.assign(time=range(7))
    wanted = by_hand(LOG[2:4], (1, 1, 1), 1)
    for frame, since, until in (
        (stamps, date(2026, 1, 2), date(2026, 1, 3)),
        (
            stamps.assign(time=stamps["time"].dt.tz_localize(None)),
            "2026-01-02",
            "2026-01-03",
        ),
        (numbers, 2, 4),
    ):
        assert (
            as_mapping(Relevance.from_clicks(frame, since=since, until=until)) == wanted
        )


def test_ids_are_those_of_the_rows():
    options = {"query_ids": ["q2", "q1"], "item_ids": ["c", "a"]}
    with pytest.raises(ValueError, match="item ids of the judgments"):
        Relevance.from_clicks(FRAME, **options)
    relevance = Relevance.from_clicks(FRAME, unknown="drop", **options)
    assert relevance.judged(0)[0].tolist() == [0, 1]
    assert relevance.relevant(1).tolist() == [1]


def test_words_and_numbers_say_whether_it_was_clicked():
    for yes, no in ((True, False), ("true", "False"), (1.0, 0.0), ("1", "0")):
        frame = FRAME.assign(clicked=[yes if row[3] else no for row in LOG])
        assert as_mapping(Relevance.from_clicks(frame)) == by_hand(LOG, (1, 1, 1), 1)


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        ({"clicked": 2}, {}, "clicked must be 0 or 1.*got 2"),
        ({"clicked": "maybe"}, {}, "got 'maybe'"),
        ({"position": 0}, {}, "whole numbers from 1: got 0"),
        ({"position": 1.5}, {}, "whole numbers from 1: got 1.5"),
        ({"position": "top"}, {}, "whole numbers from 1: got 'top'"),
        (
            {"position": np.inf},
            {"propensities": [1.0]},
            "whole numbers from 1: got inf",
        ),
        ({"position": [{}] * 7}, {}, "whole numbers from 1: got {}"),
        ({"clicked": [[1]] * 7}, {}, "clicked must be 0 or 1"),
        ({"query": None}, {}, "must have a query in each row"),
        ({"query": pd.NA}, {}, "must have a query in each row"),
        (
            {},
            {"propensities": [1.0]},
            "one for each position: got 1, and .* position 3",
        ),
        ({}, {"propensities": [0.0]}, "probabilities above 0"),
        ({}, {"propensities": [2.0]}, "probabilities above 0"),
        ({}, {"propensities": [[1.0], [1.0, 0.5]]}, "probabilities above 0"),
        ({}, {"propensities": "high"}, "probabilities above 0"),
        ({}, {"min_impressions": 0}, "min_impressions must be a whole number from 1"),
        ({}, {"since": "spring"}, "times must be dates"),
        ({}, {"since": 3}, "times must be numbers"),
        ({"time": "spring"}, {"since": "2026-01-01"}, "got 'spring'"),
        ({}, {"since": "2027-01-01"}, "widen the time"),
    ],
)
def test_a_wrong_log_stops_with_a_sentence(change, options, match):
    with pytest.raises(ValueError, match=match):
        Relevance.from_clicks(FRAME.assign(**change), **options)


def test_columns_are_named():
    with pytest.raises(
        ValueError, match="a column of the position, named one of position"
    ):
        Relevance.from_clicks(FRAME.drop(columns="position"))
    with pytest.raises(ValueError, match="a column of the time"):
        Relevance.from_clicks(FRAME.drop(columns="time"), since=1)
    renamed = FRAME.rename(
        columns={"query": "qid", "document": "doc_id", "position": "rank"}
    )
    assert as_mapping(Relevance.from_clicks(renamed)) == by_hand(LOG, (1, 1, 1), 1)


def test_a_damaged_file_names_its_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query,document,position,clicked\nq,a,1,1\nq,a,1\n")
    with pytest.raises(ValueError, match=r"line 3 must have 4 columns"):
        Relevance.from_clicks(path)
    path.write_text("query,document,position,clicked\nq,a\rb,1,1\n", newline="")
    with pytest.raises(ValueError, match=r"line 2 is not a line of a table"):
        Relevance.from_clicks(path)
    with pytest.raises(TypeError, match="a dataframe or a file: got list"):
        Relevance.from_clicks(LOG)


def test_tune_learns_from_clicks():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(300, 6)), rng.normal(size=(80, 6))
    near = np.argsort(-(Q * [2, 2, 2, 0.1, 0.1, 0.1]) @ X.T, axis=1)[:, :12]
    shown = Index(X, similarity="cosine").rank(Q, 20)
    log = []
    for query, (items, _) in enumerate(shown):
        wanted = set(near[query].tolist())
        for position, item in enumerate(items.tolist(), 1):
            log.append((query, item, position, int(item in wanted)))
    relevance = Relevance.from_clicks(
        pd.DataFrame(log, columns=COLUMNS), query_ids=range(80), item_ids=range(300)
    )
    tuned = tune(
        X, relevance, queries=Q, similarity="cosine", n_folds=2, random_state=0
    )
    assert tuned.report.question("all").difference > 0
