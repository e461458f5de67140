import gzip

import numpy as np
import pytest

from rankspace.datasets import read_trec_run, write_trec_run
from rankspace.search.ranking import Ranking


def named_ranking(rng, n_queries=4, n_items=30):
    distances = np.round(rng.normal(size=(n_queries, n_items)), 1)  # with ties
    distances[0, :5] = [0.0, -0.0, 1e-300, 1 / 3, 2e17]
    return Ranking.from_distances(
        distances,
        query_ids=[f"q{i}" for i in range(n_queries)],
        item_ids=[f"d{i}" for i in rng.permutation(n_items)],
    )


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
def test_round_trip(tmp_path, rng, name):
    ranking = named_ranking(rng)
    write_trec_run(ranking, tmp_path / name)
    again = read_trec_run(tmp_path / name)
    assert again.query_ids.tolist() == ranking.query_ids.tolist()
    for query in range(ranking.n_queries):
        assert again.ids(query) == ranking.ids(query)
    np.testing.assert_array_equal(again.distances, ranking.distances)


def test_equal_rankings_give_equal_files(tmp_path, rng):
    ranking = named_ranking(rng)
    for name in ("a.gz", "b.gz"):
        write_trec_run(ranking, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_score_decides_then_rank_then_line(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text(
        "q Q0 a 1 0.5 t\nq Q0 b 9 2 t\nr Q0 a 3 1 t\nq Q0 c 0 0.5 t\nq Q0 d 1 0.5 t\n"
    )
    run = read_trec_run(path)
    assert run.ids(0) == ["b", "c", "a", "d"]
    assert run.ids(1) == ["a"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("q Q0 a 1 0.5", "line 2 must have 6 columns: got 5"),
        (
            "q Q0 a x 0.5 t",
            "line 2 must have a whole rank and a score: got 'x' and '0.5'",
        ),
        ("q Q0 a 1 x t", "line 2 must have a whole rank and a score: got '1' and 'x'"),
        ("q Q0 a 1 nan t", "line 2 must have a score: got NaN"),
        ("q Q0 z 1 0.5 t", "line 2 must not list 'z' for query 'q' again"),
    ],
)
def test_malformed_line(tmp_path, line, what):
    path = tmp_path / "run.txt"
    path.write_text(f"q Q0 z 1 0.5 t\n{line}\n")
    with pytest.raises(ValueError, match=f"run.txt, {what}"):
        read_trec_run(path)


def test_empty_run(tmp_path):
    (tmp_path / "run.txt").write_text("\n")
    with pytest.raises(
        ValueError, match="must have at least one line: got an empty file"
    ):
        read_trec_run(tmp_path / "run.txt")


def test_cut_run(tmp_path):
    path = tmp_path / "run.txt.gz"
    path.write_bytes(
        gzip.compress(b"".join(b"q Q0 %d 1 0.5 t\n" % i for i in range(50)))[:-9]
    )
    with pytest.raises(ValueError, match="damaged or cut short"):
        read_trec_run(path)


@pytest.mark.parametrize("bad", ["two words", "", "tab\t"])
def test_names_with_blanks_leave_the_old_file(tmp_path, bad):
    path = tmp_path / "run.txt"
    path.write_text("old")
    ranking = Ranking.from_distances([[1.0, 2.0]], query_ids=["q"], item_ids=["a", bad])
    with pytest.raises(ValueError, match="item ids must be one word in a TREC run"):
        write_trec_run(ranking, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_tag_with_blanks(tmp_path):
    with pytest.raises(ValueError, match="tag must be one word"):
        write_trec_run(Ranking.from_distances([[1.0]]), tmp_path / "run.txt", tag="a b")
