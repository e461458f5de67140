"""The command line: what it answers, and how it refuses."""

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankspace import LinearMetric
from rankspace.cli import main as cli
from rankspace.cli.progress import Progress

QRELS = "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\n"
RUN = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 a 1 0.7 t\nq2 Q0 c 2 0.6 t\n"
BETTER = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 c 1 0.7 t\nq2 Q0 a 2 0.6 t\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in {"qrels": QRELS, "run": RUN, "better": BETTER}.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "text.npy").write_text("1 2 3")
    np.save("nan.npy", np.array([[np.nan]]))
    np.save("line.npy", np.arange(3.0))
    np.save("words.npy", np.array([["a"]]))
    np.save("pickle.npy", np.array([[object()]]), allow_pickle=True)
    return tmp_path


def answer(capsys, *words):
    assert cli.main(shlex.split(" ".join(words))) == 0
    return capsys.readouterr().out


def refusal(capsys, *words):
    assert cli.main(shlex.split(" ".join(words))) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.usefixtures("files")
def test_evaluate(capsys):
    table = answer(capsys, "evaluate run qrels --measures 'map p@1'")
    assert "map      0.7500" in table
    assert "p@1      0.5000" in table
    found = json.loads(answer(capsys, "evaluate run qrels --measures mrr --json"))
    assert found["measures"]["mrr"]["per_query"] == [1.0, 0.5]


@pytest.mark.usefixtures("files")
def test_rules_of_judging(capsys):
    words = "evaluate run qrels --measures 'p@1 map'"
    strict = answer(capsys, words, "--min-relevant-grade 2")
    assert "1 of 2 queries left out" in strict
    ignoring = answer(capsys, words, "--unjudged ignore")
    assert "p@1      1.0000" in ignoring


@pytest.mark.usefixtures("files")
def test_queries_without_a_list_are_counted(capsys):
    Path("short").write_text(RUN.splitlines()[0] + "\n")
    assert "1 of 2 judged queries have no list" in answer(
        capsys, "evaluate short qrels"
    )


def test_evaluate_writes_files(files, capsys):
    answer(capsys, "evaluate run qrels --output report.md")
    assert (files / "report.md").read_text().startswith("| measure | mean |")
    (files / "report.txt").write_text("old")
    refusal(
        capsys,
        "evaluate run qrels --measures nonsense --output report.txt",
    )
    assert (files / "report.txt").read_text() == "old"


@pytest.mark.usefixtures("files")
def test_compare(capsys):
    found = json.loads(answer(capsys, "compare run better qrels --json"))
    assert found["map"]["difference"] == pytest.approx(0.25)
    assert "difference" in answer(capsys, "compare run better qrels")


def test_rank_then_evaluate_a_data_set(files, capsys):
    sentence = answer(capsys, "rank wine -k 500 --output wine.trec.gz")
    assert "ranked 178 items for 178 queries" in sentence
    table = answer(capsys, "evaluate wine.trec.gz wine --measures map")
    from rankspace import Euclidean
    from rankspace.datasets import load_wine

    wine = load_wine()
    expected = Euclidean().fit(wine.X, wine.labels).score(wine.X, wine.labels)
    assert f"{expected:.4f}" in table


def test_rank_vectors_by_a_saved_metric(files, capsys):
    np.save(
        "corpus.npy", np.array([[0.0, 5.0], [1.0, 0.0], [3.0, 0.0]], dtype=np.float16)
    )
    np.save("queries.npy", np.array([[0.1, 0.0]]))
    LinearMetric([[1.0, 0.0]]).save("metric.safetensors")
    words = "rank corpus.npy --queries queries.npy -k 2 --output out"
    answer(capsys, words)
    assert [line.split()[2] for line in (files / "out").read_text().splitlines()] == [
        "1",
        "2",
    ]
    found = json.loads(answer(capsys, words, "--metric metric.safetensors --json"))
    assert found["similarity"] == "euclidean"
    assert (found["n_queries"], found["n_items"]) == (1, 3)
    assert [note.split(",")[0] for note in found["notes"]] == [
        "the items are named by row numbers",
        "the queries are named by row numbers",
    ]
    assert [line.split()[2] for line in (files / "out").read_text().splitlines()] == [
        "0",
        "1",
    ]


def test_rank_by_each_similarity_and_say_which(files, capsys):
    np.save("queries.npy", np.array([[1.0, 1.0]]))
    words = "rank corpus.npy --queries queries.npy -k 1 --output out"
    np.save("corpus.npy", np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 9.0]]))
    nearest = {"cosine": "1", "dot": "2", "euclidean": "0"}
    for similarity, item in nearest.items():
        text = answer(capsys, words, "--similarity", similarity)
        assert text.splitlines()[1] == f"similarity: {similarity}"
        assert (files / "out").read_text().split()[2] == item
    said = "similarity: euclidean (the default; --similarity chooses)"
    assert answer(capsys, words).splitlines()[1] == said
    LinearMetric(np.eye(2), similarity="cosine").save("m")
    text = answer(capsys, words, "--metric m")
    assert text.splitlines()[1] == "similarity: cosine"
    assert (files / "out").read_text().split()[2] == "1"
    message = refusal(capsys, words, "--metric m --similarity dot")
    assert "similarity must be that of the metric, 'cosine': got 'dot'" in message


def test_rank_a_folder_in_the_form_of_beir(files, capsys):
    folder = files / "beir"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{i}", "title": "", "text": f"text {i}"} for i in range(3)]
    queries = [{"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"}]
    for name, lines in {"corpus": corpus, "queries": queries}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq2\td0\t1\n"
    )
    np.save(folder / "corpus.npy", np.array([[0.0], [1.0], [2.0]]))
    np.save(folder / "queries.npy", np.array([[2.0], [0.4]]))
    sentence = answer(capsys, "rank beir --split test --output run.trec")
    assert "note: not ranked: 1 queries without a judgment" in sentence
    assert (files / "run.trec").read_text().split()[:3] == ["q2", "Q0", "d0"]
    assert "1.0000" in answer(
        capsys, "evaluate run.trec beir --split test --measures map"
    )


def test_demo_prints_what_is_true_and_writes_a_page(files, capsys, monkeypatch):
    from rankspace import Index, compare, evaluate
    from rankspace.datasets import load_scifact_sample
    from rankspace.tuning import tuner

    made = []

    def tune_once(*data, progress, **settings):
        assert settings.pop("queries").shape == (809, 384)
        assert settings == {"n_folds": 3, "random_state": 0}
        if not made:
            tuned = real_tune(*data, queries=train.queries, **settings)
            made.append(tuned)
        return made[0]

    real_tune = tuner.tune
    monkeypatch.setattr(tuner, "tune", tune_once)
    monkeypatch.setattr("rankspace.learners.families.TOTAL_REGS", (24.0, 2.4))
    train, test = (load_scifact_sample().part(name) for name in ("train", "test"))
    text = answer(capsys, "demo --output page.html")
    tuned = made[0]
    assert str(tuned) in text
    assert tuned.decision == "ship"
    before, after = (
        evaluate(
            index.rank(test.queries, 100), test.relevance, "ndcg-linear@10 map r@10 mrr"
        )
        for index in (Index(test.X, similarity="cosine"), Index(test.X, tuned.metric))
    )
    assert f"The result on 300 other claims:\n\n{compare(before, after)}\n" in text
    assert text.rstrip().endswith(f"page: {files / 'page.html'}")
    page = (files / "page.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "Most improved" in page
    assert ">score</th>" in page
    assert ">distance</th>" not in page
    _check_groups(page, train, test)
    found = json.loads(answer(capsys, "demo --output page.html --json"))
    assert set(found) == {"tuned", "comparison", "page"}
    assert found["comparison"]["ndcg-linear@10"]["difference"] > 0.05


def _check_groups(page, train, test):
    """The page counts the test queries whose relevant items were in training: all, or none."""
    taught = {
        i
        for q in range(train.relevance.n_queries)
        for i in train.relevance.relevant(q).tolist()
    }
    asked = [
        set(test.relevance.relevant(q).tolist())
        for q in range(test.relevance.n_queries)
    ]
    n_known = sum(items <= taught for items in asked)
    n_new = sum(items.isdisjoint(taught) for items in asked)
    assert n_known + n_new < len(asked)
    assert f"for known abstracts<small>{n_known}</small>" in page
    assert f"for new abstracts<small>{n_new}</small>" in page


def test_report_writes_a_page_with_texts(files, capsys):
    make_beir(files / "beir")
    words = "report run better beir --measures map --output page.html"
    text = answer(capsys, words)
    assert text.rstrip().endswith("wrote page.html")
    page = (files / "page.html").read_text()
    assert "the third text" in page
    assert "second wish" in page
    assert "map" in json.loads(answer(capsys, words, "--json"))
    answer(capsys, "report run better qrels --output page.html")
    page = (files / "page.html").read_text()
    assert "second wish" not in page
    assert "Runs: run and better. Judgments: qrels." in page
    assert "held" not in page.lower()  # nobody has said what the runs were trained on


def make_beir(folder):
    """The items and queries of QRELS, with texts."""
    folder.mkdir()
    texts = {"a": "the first text", "b": "the second text", "c": "the third text"}
    wishes = {"q1": "first wish", "q2": "second wish"}
    for name, rows in (("corpus", texts), ("queries", wishes)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    (folder / "qrels.tsv").write_text(QRELS.replace(" ", "\t"))


def test_datasets_lists_what_there_is(capsys):
    rows = json.loads(answer(capsys, "datasets --json"))
    assert {"wine", "scifact", "mq2008"} <= {row["name"] for row in rows}
    assert "wine" in answer(capsys, "datasets")


def test_every_listed_data_set_can_be_named():
    from rankspace import datasets

    for row in datasets.list_datasets():
        assert hasattr(datasets, f"load_{row.name}") or hasattr(
            datasets, f"fetch_{row.name}"
        )


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate nowhere qrels", "nowhere: no such file or directory"),
        (
            "evaluate run qrels --measures map@",
            "measure must be one of auc,",
        ),
        (
            "evaluate run qrels --measures p",
            "'p' needs a cut-off: write p@10",
        ),
        (
            "evaluate run qrels --measures auc",
            "auc needs lists of all judged items",
        ),
        (
            "evaluate run nothing",
            "'nothing' is not a folder, a file of vectors or a data set",
        ),
        ("evaluate qrels qrels", "qrels, line 1"),
        ("evaluate run wine", "0 of 3 are."),
        ("report run better qrels --output r.txt", "must end in .html: got r.txt"),
        ("demo --output r.md", "must end in .html: got r.md"),
        ("rank nan.npy --query-ids x --output y", "nan.npy must hold finite"),
        ("rank wine --ids x --output y", "--ids can only be used with a file of vec"),
        (
            "evaluate run qrels --output x.pdf",
            "must end in .json, .md",
        ),
        (
            "rank wine --output x -k -1",
            "length must not be negative: got -1",
        ),
        ("rank wine --output no/where", "does not exist: create it first"),
        ("rank wine --output x --metric run", "run must be a metric file"),
        (
            "rank wine --output x --queries q.npy",
            "--queries can only be used with a file of vectors",
        ),
        (
            "rank wine --output x --split test",
            "wine, which has none: got 'test'",
        ),
        (
            "rank x.npy --output x --split test",
            "can only be used with a folder or a data set",
        ),
        ("rank text.npy --output x", "text.npy must be a .npy file"),
        ("rank nan.npy --output x", "nan.npy must hold finite numbers"),
        ("rank line.npy --output x", "line.npy must hold a matrix"),
        ("rank words.npy --output x", "words.npy must hold a matrix of real numbers"),
        ("rank pickle.npy --output x", "pickle.npy must be a .npy file"),
        ("evaluate run qrels --split test", "a qrels file has no splits"),
        ("demo --output .", "--output must name a file: got the folder ."),
        (
            "rank twenty --output x",
            "'twenty' is not a folder, a file of vectors or a data set",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, words, message):
    assert message in refusal(capsys, words)


def test_wrong_words_are_refused_by_the_parser(capsys):
    for words in (
        ["frobnicate"],
        ["rank"],
        ["rank", "wine", "--output", "x", "-k", "many"],
        ["export", "m", "--to", "paper"],
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(words)
        assert stopped.value.code == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert told.startswith("rankspace")
        assert told.endswith("--help.\n")


@pytest.mark.parametrize(
    "verb",
    [
        "demo",
        "evaluate",
        "compare",
        "check",
        "report",
        "rank",
        "tune",
        "fit",
        "transform",
        "export",
        "datasets",
    ],
)
def test_help_teaches_by_an_example(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([verb, "--help"])
    assert stopped.value.code == 0
    assert f"example: rankspace {verb}" in " ".join(capsys.readouterr().out.split())


def test_the_installed_command_answers():
    command = Path(sys.executable).with_name("rankspace")
    found = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("rankspace 0.")


def test_a_reader_that_stops_early_is_no_error():
    command = [Path(sys.executable).with_name("rankspace"), "datasets"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_waits_two_seconds_and_needs_a_terminal(monkeypatch):
    clock = iter([0.0, 1.0, 2.5])
    monkeypatch.setattr("rankspace.cli.progress.time.monotonic", lambda: next(clock))
    terminal = Terminal()
    with Progress("work", terminal) as progress:
        progress.show(0.1)
        assert terminal.getvalue() == ""
        progress.show(0.5)
        assert "work: [###############...............]  50%" in terminal.getvalue()
    piped = io.StringIO()
    monkeypatch.undo()
    with Progress("work", piped) as progress:
        progress.say("step")
        progress.show(1.0)
    assert piped.getvalue() == ""


def test_python_runs_the_command_line_as_a_module():
    command = [sys.executable, "-m", "rankspace.cli", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("rankspace ")


def test_fit_offers_no_abstract_class(capsys):
    message = refusal(capsys, "fit wine --method linearranker --output x")
    assert "--method must be one of euclidean, frml" in message
    assert "ranker" not in message.partition("got")[0]


def test_the_report_explains_by_a_metric(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    steps = [
        "fit wine --method gmml --output m",
        "rank wine --output before",
        "rank wine --metric m --output after",
        "report before after wine --metric m --output page.html",
    ]
    for step in steps:
        assert cli.main(step.split()) == 0, capsys.readouterr().err
    page = Path("page.html").read_text()
    assert page.count("Why: the relevant item") > 2
    assert "by the metric; change" in page
    Path("qrels").write_text("0 0 1 1\n")
    words = "report before after qrels --unknown drop --metric m --output page.html"
    assert cli.main(words.split()) == 2
    assert "--metric needs vectors" in capsys.readouterr().err
