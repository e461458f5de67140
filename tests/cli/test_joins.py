"""Ids on the command line: from files of vectors through a run to an evaluation."""

import inspect
import json
import shlex

import numpy as np
import pytest

import rankspace
from rankspace import Index, Relevance, evaluate, tune
from rankspace.cli import main as command
from rankspace.cli.main import build_parser

N_ITEMS = 40
N_QUERIES = 30


@pytest.fixture(autouse=True)
def files(rng, tmp_path, monkeypatch):
    """Vectors without ids, and judgments by name and by numbers from 1."""
    monkeypatch.chdir(tmp_path)
    X, Q = rng.standard_normal((N_ITEMS, 2)), rng.standard_normal((N_QUERIES, 2))
    np.save("X.npy", X)
    np.save("Q.npy", Q)
    near = Index(X).rank(Q, 3).items.reshape(-1, 3)
    write_lines("named", [f"q{q} 0 d{i} 1" for q, row in enumerate(near) for i in row])
    write_lines("from-0", [f"{q} 0 {i} 1" for q, row in enumerate(near) for i in row])
    write_lines(
        "from-1", [f"{q + 1} 0 {i + 1} 1" for q, row in enumerate(near) for i in row]
    )
    write_lines("ids", [f"d{i}" for i in range(N_ITEMS)])
    write_lines("query-ids", [f"q{q}" for q in range(N_QUERIES)])
    return X, Q, near


def write_lines(name, lines):
    with open(name, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def run(words):
    return command.main(shlex.split(words))


def answer(capsys, words):
    assert run(words) == 0
    return capsys.readouterr().out


def refusal(capsys, words):
    assert run(words) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


RANK = "rank X.npy --queries Q.npy -k 5 --output run"


def test_named_ids_join(capsys):
    sentence = answer(capsys, f"{RANK} --ids ids --query-ids query-ids")
    assert "note" not in sentence
    found = json.loads(answer(capsys, "evaluate run named --json"))
    assert found["measures"]["ndcg-linear@10"]["mean"] == 1


def test_row_numbers_join_judgments_from_0(capsys):
    sentence = answer(capsys, RANK)
    assert "note: the items are named by row numbers, from 0" in sentence
    assert "note: the queries are named by row numbers, from 0" in sentence
    assert "1.0000" in answer(capsys, "evaluate run from-0")


@pytest.mark.parametrize("verb", ["evaluate run", "compare run run", "report run run"])
def test_row_numbers_do_not_join_other_ids(capsys, verb):
    answer(capsys, RANK)
    page = " --output page.html" if verb.startswith("report") else ""
    told = refusal(capsys, f"{verb} named{page}")
    assert "item ids of the judgments must be among those of the ranking: 0 of" in told
    assert "item ids of the ranking are row numbers, from 0" in told
    assert "--ids on the command line" in told
    answer(capsys, f"{RANK} --ids ids")
    told = refusal(capsys, f"{verb} named{page}")
    assert "query ids of the judgments must be among those of the ranking: 0 of" in told
    assert "--query-ids on the command line" in told


@pytest.mark.parametrize("verb", ["evaluate run", "compare run run"])
def test_row_numbers_do_not_join_ids_from_1(capsys, verb):
    answer(capsys, RANK)
    told = refusal(capsys, f"{verb} from-1")
    assert "ids of the ranking are row numbers, from 0, but those of the judgm" in told


@pytest.mark.parametrize("verb", ["fit", "tune"])
@pytest.mark.parametrize("unknown", ["", "--unknown drop"])
def test_learning_does_not_join_rows_with_numbers_from_1(capsys, verb, unknown):
    told = refusal(
        capsys, f"{verb} X.npy --queries Q.npy --qrels from-1 {unknown} --output m"
    )
    assert (
        "query ids of the judgments must be among those of the data: 29 of 30" in told
    )
    assert "from 0, but those of the judgments count from 1" in told
    assert "unknown=" not in told


@pytest.mark.parametrize("verb", ["fit", "tune", "evaluate", "report"])
def test_numbers_that_may_count_from_1_are_noted(capsys, verb):
    """Nothing tells these judgments from others of rows 1 to 38."""
    write_lines("qrels", [f"{q} 0 {7 * q % 38 + 1} 1" for q in range(1, N_QUERIES)])
    answer(capsys, RANK)
    judged = "--queries Q.npy --qrels qrels --output m"
    words = {
        "fit": f"fit X.npy {judged} --method listwise",
        "tune": f"tune X.npy {judged} --similarity cosine --folds 2",
        "evaluate": "evaluate run qrels",
        "report": "report run run qrels --output page.html",
    }
    assert run(words[verb]) == 0
    told = capsys.readouterr().err
    for kind in ("item", "query"):
        assert f"note: {kind} ids of the judgments are taken as row numbers" in told
    assert "--ids on the command line" in told


@pytest.mark.parametrize("verb", ["fit", "evaluate"])
def test_judgments_that_fit_one_row_earlier_are_refused(rng, capsys, verb):
    """Neither row 0 nor row n is judged, so all ids match; only what they say differs."""
    X = rng.standard_normal((80, 6))
    X[5] = 0  # has no cosine, but a Euclidean distance
    np.save("X.npy", X)
    np.save("Q.npy", X[:60] + 0.1)
    write_lines("query-ids", [f"q{row}" for row in range(60)])
    for first in (0, 1):
        write_lines("qrels", [f"q{row} 0 {row + first} 1" for row in range(1, 60)])
        answer(capsys, "rank X.npy --queries Q.npy --query-ids query-ids --output run")
        words = {
            "fit": "fit X.npy --queries Q.npy --query-ids query-ids --qrels qrels "
            "--method gmml --set t=0.5 --set reg=0.1 --output m",
            "evaluate": "evaluate run qrels",
        }
        assert run(words[verb]) == 2 * first
    told = capsys.readouterr().err
    assert "item ids of the judgments are taken as row numbers, from 0, but" in told
    write_lines("ids", [str(row) for row in range(80)])
    if verb == "fit":
        answer(capsys, f"{words[verb]} --ids ids")


def test_labels_join_by_row_and_take_no_ids_or_queries(capsys):
    write_lines("labels", ["a", "b"] * (N_ITEMS // 2))
    for option in ("--queries Q.npy", "--ids ids", "--query-ids ids"):
        told = refusal(capsys, f"fit X.npy --labels labels {option} --output m")
        assert f"{option.split()[0]} can only be used with --qrels" in told


def test_dropped_judgments_are_counted(capsys, caplog):
    with open("named", "a") as file:
        file.write("q0 0 d99 1\nq0 0 d98 1\n")
    words = "fit X.npy --queries Q.npy --qrels named --ids ids --query-ids query-ids"
    refusal(capsys, f"{words} --method gmml --output m")
    answer(capsys, f"{words} --method gmml --output m --unknown drop")
    assert "2 of 92 judgments are left out: 0 of the queries and 2 of" in caplog.text


def test_query_ids_need_queries(capsys):
    told = refusal(capsys, "rank X.npy --query-ids query-ids --output run")
    assert "--query-ids can only be used with --queries" in told


def test_ids_must_be_as_many_as_rows(capsys):
    told = refusal(capsys, f"{RANK} --ids query-ids")
    assert "query-ids must have a line for each of 40 rows: got 30" in told


def test_everything_measures_the_same_ndcg_by_default():
    measure = inspect.signature(tune).parameters["measure"].default
    assert measure == "ndcg-linear@10"
    measures = inspect.signature(evaluate).parameters["measures"].default
    assert measures.split()[0] == measure
    parser = build_parser()
    judged = ["run", "qrels"]
    pair = ["run", "run", "qrels", "--output", "x"]
    assert parser.parse_args(["evaluate", *judged]).measures == measures
    assert parser.parse_args(["compare", *pair]).measures == measures
    assert parser.parse_args(["report", *pair]).measures == measures
    assert parser.parse_args(["tune", "x", "--output", "m"]).measure == measure


def test_options_of_fit_have_the_names_of_parameters():
    known = set()
    for name in rankspace.__all__:
        if hasattr(getattr(rankspace, name), "fit"):
            known |= set(inspect.signature(getattr(rankspace, name)).parameters)
    from rankspace.cli.fit import PARAMETERS

    assert set(PARAMETERS.values()) <= known
    for option, parameter in PARAMETERS.items():
        assert option == parameter or parameter == "C"


def test_a_dataframe_of_judgments_is_told_apart_from_labels(files):
    X, _, _ = files
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"query": ["a"], "item": ["b"], "grade": [1]})
    with pytest.raises(ValueError, match=r"Relevance\.from_qrels"):
        Relevance.from_labels(frame)
    with pytest.raises(ValueError, match="need item_ids and query_ids"):
        tune(X, frame)
    with pytest.raises(ValueError, match=r"Relevance\.from_qrels"):
        rankspace.GMML().fit(X, frame)
