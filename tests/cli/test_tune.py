"""Tuning by the command line."""

import json
import shlex
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from planted import planted, unit_length
from rankspace import Relevance, load_metric, tune
from rankspace.cli.card import command_of
from rankspace.cli.main import build_parser, main
from rankspace.cli.tune import METHODS, PREFERENCES, seconds
from rankspace.learners import families
from rankspace.metrics import unchanged_metric
from rankspace.tuning import selection

FILES = "tune corpus.npy --queries queries.npy --qrels qrels.txt --output m"
QUICK = "--similarity euclidean --folds 2"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Files of vectors and judgments in the current folder."""
    monkeypatch.chdir(tmp_path)
    X, relevance, Q = planted()
    np.save("corpus.npy", X)
    np.save("queries.npy", Q)
    lines = [f"{q} 0 {i} 1\n" for q in range(60) for i in relevance.relevant(q)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    return tmp_path


def run(options=QUICK):
    return main([*FILES.split(), *options.split()])


def by_python(**changes):
    X, relevance, Q = planted()
    settings = {"similarity": "euclidean", "n_folds": 2, "random_state": 0} | changes
    return tune(X, relevance, queries=Q, **settings)


def test_tune_writes_the_metric_and_prints_the_report(capsys):
    assert run() == 0
    expected = by_python()
    assert expected.decision == "ship"
    printed = capsys.readouterr().out
    named = expected.report.with_files("m", "corpus.npy", "queries.npy")
    assert printed == f"{named}\n\nwrote the learned metric to m\n"
    assert "rankspace export m --to faiss --vectors corpus.npy" in printed
    found = load_metric("m")
    assert found.similarity == "euclidean"
    np.testing.assert_allclose(found.components, expected.metric.components)


def test_keep_writes_the_unchanged_similarity_and_says_so(capsys):
    _, relevance, _ = planted(informative=False)
    lines = [f"{q} 0 {i} 1\n" for q in range(60) for i in relevance.relevant(q)]
    Path("qrels.txt").write_text("".join(lines))
    assert run("--similarity dot --folds 2") == 0
    printed = capsys.readouterr().out
    assert "Keep what you have: " in printed
    assert printed.endswith("wrote the similarity of unchanged vectors to m\n")
    found, expected = load_metric("m"), unchanged_metric(6, "dot")
    Q, X = np.load("queries.npy"), np.load("corpus.npy")
    np.testing.assert_array_equal(found.distances(Q, X), expected.distances(Q, X))


def test_tune_writes_a_page_after_the_metric(files, capsys, monkeypatch):
    assert run(f"{QUICK} --report page.html") == 0
    assert capsys.readouterr().out.endswith(" to m, and the page page.html\n")
    assert "rankspace tune: corpus" in (files / "page.html").read_text()
    (files / "m").unlink()

    def full_disk(*arguments, **options):
        raise OSError("the disk is full")

    monkeypatch.setattr("rankspace.tuning.report.write_report", full_disk)
    assert run(f"{QUICK} --report page.html") == 2
    assert (files / "m").exists()


def test_tune_prints_json(capsys):
    assert run(f"{QUICK} --json --measure map --budget 5m --prefer known") == 0
    content = json.loads(capsys.readouterr().out)
    report = by_python(measure="map", prefer="known").report
    expected = report.with_files("m", "corpus.npy", "queries.npy").to_dict()
    files = {"output": "m", "report": None, "warnings": []}
    assert content.keys() == expected.keys() | files.keys()
    for name in expected.keys() - {"seconds"}:
        assert content[name] == expected[name], name
    assert files.items() <= content.items()


def test_options_reach_tune(capsys):
    options = "--tolerance 0.3 --prefer new --methods query shared --seed 3"
    assert run(f"--similarity cosine --folds 3 {options} --json") == 0
    content = json.loads(capsys.readouterr().out)
    expected = by_python(
        similarity="cosine",
        n_folds=3,
        tolerance=0.3,
        prefer="new",
        methods=["query", "shared"],
        random_state=3,
    )
    found = expected.report.to_dict()
    for name in ("similarity", "prefer", "path", "questions", "notes"):
        assert content[name] == found[name], name


def test_a_similarity_that_was_not_named_is_a_note(capsys):
    assert run("--folds 2") == 0
    captured = capsys.readouterr()
    first = captured.out.splitlines()[0]
    assert first.startswith("note: the vectors differ in length and similarity was not")
    assert captured.err == ""
    assert run("--folds 2 --json") == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [
        first.removeprefix("note: ")
    ]


def make_beir(folder):
    """A collection with the judged queries in three splits."""
    X, relevance, Q = planted()
    (folder / "qrels").mkdir(parents=True)
    for name, vectors in (("corpus", X), ("queries", Q)):
        rows = [json.dumps({"_id": f"{i}", "text": ""}) for i in range(len(vectors))]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
        np.save(folder / f"{name}.npy", vectors)
    splits = {"train": range(30), "dev": range(30, 50), "test": range(50, 60)}
    for split, queries in splits.items():
        rows = [f"{q}\t{i}\t1\n" for q in queries for i in relevance.relevant(q)]
        header = "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / f"{split}.tsv").write_text("".join([header, *rows]))


def test_a_folder_without_vectors_is_told_how_to_get_them(files, capsys):
    make_beir(files / "beir")
    (files / "beir" / "queries.npy").unlink()
    words = ["tune", "beir", "--split", "train", "--output", "m"]
    assert main(words) == 2
    assert (
        "The vectors of queries are missing; rankspace embed" in capsys.readouterr().err
    )
    (files / "beir" / "corpus.npy").unlink()
    assert main(words) == 2
    assert "rankspace embed beir --model MODEL" in capsys.readouterr().err


@pytest.mark.parametrize("refit", [False, True])
def test_tune_learns_from_one_split_and_judges_on_another(files, capsys, refit):
    make_beir(files / "beir")
    words = [
        "tune",
        "beir",
        "--split",
        "train",
        "--dev",
        "dev",
        "--output",
        "m",
        "--json",
    ]
    more = ["--refit-on-dev"] if refit else []
    assert main([*words, *QUICK.split(), *more]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["judged_on"] == "dev queries"
    assert content["questions"][0]["n_queries"] == 20
    assert any("learned from them too" in note for note in content["notes"]) == refit
    assert any("--vectors beir/corpus.npy" in step for step in content["next_steps"])
    told = "learned from 30 queries of the split train, judged on 20 of dev"
    assert content["warnings"] == [told]
    X, relevance, Q = planted()
    expected = tune(
        X,
        relevance.take_queries(np.arange(50)),
        queries=Q[:50],
        dev=np.arange(30, 50),
        refit_on_dev=refit,
        similarity="euclidean",
        n_folds=2,
        random_state=0,
    )
    assert expected.improved
    np.testing.assert_allclose(load_metric("m").components, expected.metric.components)


def test_all_splits_are_not_learned_from_without_a_word(files, capsys):
    make_beir(files / "beir")
    words = ["beir", "--output", "m", *QUICK.split()]
    for verb in ("tune", "fit"):
        assert main([verb, *words[: 3 if verb == "fit" else None], "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        (note,) = told["warnings" if verb == "tune" else "notes"]
        assert note.startswith("learned from all of beir, whose splits are dev, test, ")
    assert main(["tune", *words, "--dev", "dev"]) == 2
    assert "has test, train beside dev" in capsys.readouterr().err
    assert main(["tune", *words, "--dev", "dev", "--split", "dev"]) == 2
    assert "must be two splits: got 'dev' twice" in capsys.readouterr().err
    (files / "beir/qrels/test.tsv").unlink()
    assert main(["tune", *words, "--dev", "dev"]) == 0
    note = "note: learned from 30 queries of the split train, judged on 20 of dev\n"
    assert capsys.readouterr().out.startswith(note)


def test_queries_of_both_splits_are_only_judged_on(files, capsys):
    make_beir(files / "beir")
    folder = files / "beir/qrels"
    (folder / "test.tsv").unlink()
    shared = (folder / "dev.tsv").read_text().splitlines()[1:]
    shared = [line for line in shared if line.startswith("30\t")]
    with open(folder / "train.tsv", "a") as file:
        file.writelines(f"{line}\n" for line in shared)
    words = ["tune", "beir", "--dev", "dev", "--output", "m", *QUICK.split()]
    assert main(words) == 0
    assert "; 1 queries are in both, and were only judged on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("wine --qrels x", "--qrels can only be used with a file of vectors"),
        ("mq2008-like", "mq2008-like"),
        ("wine --dev nope", "--dev must be a split of wine, which has none"),
        ("corpus.npy --dev dev", "--dev can only be used with a folder or a data set"),
        ("wine --dev x --qrels y", "--qrels can only be used with a file of vectors"),
        ("wine --refit-on-dev", "--refit-on-dev can only be used with --dev"),
        ("wine --report page.md", "--report is an HTML page and must end in .html"),
        ("wine --report no/page.html", "does not exist: create it first"),
        ("wine --report .", "--report must name a file: got the folder ."),
        ("wine --report m", "--report and --output must be two files: got m for both"),
        ("wine --tolerance 3", "tolerance == 3.0, must be <= 1"),
        ("wine --folds 1", "n_folds == 1, must be >= 2"),
        (
            "wine --methods query --similarity dot",
            "needs separate queries: here the items are the que",
        ),
        ("wine --measure map@", "measure must be one of auc,"),
        ("wine --measure 'map mrr'", "measure must be one measure: got 'map mrr'"),
    ],
)
def test_bad_input_is_one_sentence(words, message, files, capsys):
    assert main(["tune", *shlex.split(words), "--output", "m"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (files / "m").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--budget soon", "must be a time such as 60s"),
        ("--similarity l1", "invalid choice: 'l1'"),
        ("--prefer old", "invalid choice: 'old'"),
        ("--methods listwise", "invalid choice: 'listwise'"),
        ("--exhaustive", "unrecognized arguments: --exhaustive"),
        ("--generalise", "unrecognized arguments: --generalise"),
    ],
)
def test_options_that_the_parser_refuses(option, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(option)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "number"), [("90", 90), ("60s", 60), ("1.5m", 90), ("2h", 7200)]
)
def test_times(text, number):
    assert seconds(text) == number


def test_help_names_all_methods_and_preferences():
    assert METHODS == families.METHODS
    assert tuple(selection.TARGETS) == PREFERENCES


@pytest.mark.parametrize(
    ("similarity", "method"),
    [("dot", "query"), ("cosine", "separate"), ("euclidean", "shared")],
)
def test_the_next_steps_are_commands_that_run(similarity, method, capsys):
    pytest.importorskip("faiss")
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X, Q = unit_length(rng.normal(size=(200, 6))), rng.normal(size=(50, 6))
    hidden = np.repeat([2.0, 0.1], 3)
    near = np.argsort(-(Q * hidden) @ (X * hidden).T, axis=1)[:, :4]
    judgments = Relevance.from_lists(near, n_items=200)
    settings = {"similarity": similarity, "methods": [method], "n_folds": 2}
    tuned = tune(X, judgments, queries=Q, random_state=0, **settings)
    assert tuned.improved
    tuned.metric.save("METRIC")
    np.save("CORPUS.npy", X)
    np.save("QUERIES.npy", Q)
    commands = [s for s in tuned.report.next_steps if s.startswith("rankspace ")]
    assert commands
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_the_card_says_what_was_measured(monkeypatch, capsys):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    run(QUICK + " --budget 1h --report ./page.html")
    first = Path("m").read_bytes()
    card = load_metric("m").card
    expected = by_python()
    rows = {row["label"]: row for row in card["questions"]}
    for row in expected.report.questions:
        assert rows[row.label]["n_queries"] == row.n_queries
    whole = rows["all queries"]
    row = expected.report.question("all")
    assert whole["unchanged"] == pytest.approx(row.unchanged)
    assert whole["tuned"] == pytest.approx(row.tuned)
    assert whole["low"] < whole["difference"] < whole["high"]
    assert card["method"] == "map shared by queries and items"
    assert (card["similarity"], card["measure"]) == ("euclidean", "ndcg-linear@10")
    n_judgments = len(Path("qrels.txt").read_text().splitlines())
    assert (card["n_queries"], card["n_judgments"]) == (60, n_judgments)
    assert card["data_digest"] == expected.metric.card["data_digest"]
    assert card["command"].startswith("rankspace tune DATA --queries QUERIES --qrels")
    assert "/" not in card["command"]
    assert "date" not in card
    run(QUICK + " --budget 2h")
    other = load_metric("m").card
    assert {**other, "command": ""} == {**card, "command": ""}
    run(QUICK + " --budget 1h")
    assert Path("m").read_bytes() == first
    capsys.readouterr()
    assert main(["show", "m"]) == 0
    shown = capsys.readouterr().out
    assert "decision: ship" in shown
    assert "all queries" in shown


def test_the_card_of_unchanged_vectors_says_so(tmp_path):
    X, relevance, Q = planted(informative=False)
    tuned = tune(X, relevance, queries=Q, similarity="dot", n_folds=2, random_state=0)
    tuned.metric.save(tmp_path / "m")
    card = load_metric(tmp_path / "m").card
    assert (card["decision"], card["method"]) == ("keep", "unchanged vectors")


def test_the_command_in_a_card_names_methods_and_flags():
    words = "tune scifact --methods query separate --split train --dev dev --output o"
    options = build_parser().parse_args([*words.split(), "--refit-on-dev"])
    command = command_of(options)
    assert "--methods query separate" in command
    assert "--split train" in command
    assert "--dev dev --refit-on-dev" in command


# ---------------------------------------------------------------------- other signals


@pytest.fixture
def folder(tmp_path):
    """A BEIR folder where a word of each query names its documents, and vectors mean nothing."""
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(120)]
    path = tmp_path / "texts"
    path.mkdir()
    documents = [{"_id": f"d{i}", "text": words[i]} for i in range(120)]
    queries = [{"_id": f"q{i}", "text": f"about {words[i]}"} for i in range(60)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (path / f"{name}.jsonl").write_text(lines)
        np.save(path / f"{name}.npy", unit_length(rng.normal(size=(len(rows), 4))))
    qrels = [f"q{i}\td{i}\t1\n" for i in range(60)]
    (path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels))
    return path


def test_texts_are_ranked_by_bm25(folder, capsys):
    pytest.importorskip("bm25s")
    command = f"tune {folder} --with bm25 memory --json --output m"
    assert main([*command.split(), "--folds", "2"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert list(content["weights"]) == ["vectors", "bm25"]
    assert content["questions"][0]["tuned"] > 0.9
    assert [row["signal"] for row in content["signals"]] == [
        "vectors",
        "bm25",
        "memory",
    ]
    assert load_metric("m").card["weights"] == content["weights"]
    assert main([*command.replace("--json ", "").split(), "--folds", "2"]) == 0
    assert capsys.readouterr().out.endswith(
        "wrote the similarity of unchanged vectors to m\n"
    )


def test_runs_are_read_from_files(folder, capsys):
    rows = "".join(f"q{i} Q0 d{i} 1 2.5 me\n" for i in range(60))
    Path("lucene.run").write_text(rows)
    command = f"tune {folder} --with lucene.run --normalise none --folds 2 --output m"
    assert main([*command.split(), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["normalise"] == {"vectors": "none", "lucene": "none"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--with bm25", "--with bm25 needs a BEIR folder with texts"),
        ("--with memory memory", "--with must name each signal once: got memory twice"),
        ("--normalise none", "--normalise can only be used with --with"),
        ("--with missing.run", "missing.run"),
    ],
)
def test_wrong_signals_are_named(options, message, capsys):
    assert run(f"{QUICK} {options}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_smaller_vectors_are_asked_for(capsys):
    assert run(f"{QUICK} --components 2 --size-tolerance 0.5 --json") == 0
    content = json.loads(capsys.readouterr().out)
    expected = by_python(n_components=2, size_tolerance=0.5)
    assert content["sizes"] == expected.report.to_dict()["sizes"]
    assert len(load_metric("m").components) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--components 7", "n_components must be at most 6"),
        ("--components few", "must be a whole number or smallest: got 'few'"),
        ("--size-tolerance 0.1", "can only be used with --components"),
    ],
)
def test_wrong_widths_are_named(options, message, capsys):
    with pytest.raises(SystemExit) if "few" in options else nullcontext():
        assert run(f"{QUICK} {options}") == 2
    assert message in capsys.readouterr().err
