"""How the command line ends: exit codes, sentences, and files that are checked before work."""

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankspace import LinearMetric
from rankspace.cli import main as cli
from rankspace.cli.main import build_parser
from rankspace.cli.options import INPUTS
from rankspace.cli.parameters import check_parameters, parse_parameter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", np.arange(12.0).reshape(6, 2) % 5)
    Path("labels").write_text("a\nb\na\nb\na\nb\n")
    Path("ids").write_text("".join(f"d{i}\n" for i in range(6)))
    Path("qrels").write_text("d0 0 d2 1\n")
    Path("run").write_text("d0 Q0 d2 1 0.9 t\nd0 Q0 d1 2 0.8 t\n")
    LinearMetric([[1.0, 0.0]]).save("m.safetensors")
    return tmp_path


def refusal(capsys, words):
    assert cli.main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def command(words, **options):
    return subprocess.run(
        [sys.executable, "-m", "rankspace.cli", *words.split()],
        stderr=subprocess.PIPE,
        check=False,
        **options,
    )


# ---------------------------------------------------------------------- defects and bad input


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "error",
    [
        TypeError("no"),
        KeyError("key"),
        RecursionError("deep"),
        RuntimeError("\n".join("lines")),
        AssertionError(),
    ],
)
def test_our_defects_say_so_and_keep_the_traceback(capsys, monkeypatch, error):
    def fail(options):
        raise error

    monkeypatch.setattr("rankspace.cli.datasets.as_json", fail)
    monkeypatch.setattr("tempfile.tempdir", str(Path.cwd()))
    assert cli.main(["datasets", "--json"]) == 70
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "sorry, this is a defect of rankspace" in captured.err
    assert "Please open an issue" in captured.err
    report = Path(re.search(r"It is in (.*)\.\n", captured.err)[1]).read_text()
    assert report.startswith("rankspace 0.")
    assert "Traceback (most recent call last)" in report
    assert type(error).__name__ in report


def test_a_traceback_that_cannot_be_kept_is_printed(capsys, monkeypatch):
    def fail(options):
        raise KeyError("postgresql://me:secret@host/x")

    monkeypatch.setattr("rankspace.cli.datasets.as_json", fail)
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    assert cli.main(["datasets", "--json"]) == 70
    told = capsys.readouterr().err
    assert "Traceback (most recent call last)" in told
    assert "secret" not in told


def test_too_little_memory_is_a_sentence(capsys, monkeypatch):
    def fail(options):
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("rankspace.cli.datasets.as_json", fail)
    message = refusal(capsys, "datasets --json")
    assert "not enough memory for this: Unable to allocate 8 TiB." in message


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", ["datasets", "--help", "--version"])
def test_a_full_standard_output_is_a_sentence(words):
    with open("/dev/full", "w") as full:
        done = command(words, stdout=full)
    assert done.returncode == 2
    expected = (
        b"rankspace: standard output cannot be written: no space left on device.\n"
    )
    assert done.stderr == expected


def test_any_text_can_be_printed_as_ascii(capsys, monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", ascii_only)
    monkeypatch.setattr("rankspace.cli.datasets.as_text", lambda *table: "naïve")
    assert cli.main(["datasets"]) == 0
    assert ascii_only.buffer.getvalue() == b"na\\xefve\n"


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors")
def test_closed_streams_are_no_defect(folder):
    verb = "evaluate run qrels"
    for words in ("datasets >&-", "datasets 2>&-", f"{verb} >&- 2>&-"):
        line = f"{sys.executable} -m rankspace.cli {words}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


# ---------------------------------------------------------------------- inputs that are damaged


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.npy", b""),
        ("labels.npy", b"PK\x03\x04"),
        ("labels.npy", b"PK\x05\x06" + bytes(18)),
        ("labels.npy", b"\x93NUMPY\x01\x00\xff\xff"),
    ],
)
def test_damaged_labels(capsys, name, content):
    Path(name).write_bytes(content)
    words = f"fit X.npy --labels {name} --method gmml --output m"
    assert "labels.npy must be a .npy file" in refusal(capsys, words)


@pytest.mark.usefixtures("folder")
def test_json_that_is_deep_or_long(capsys):
    for line in ('{"_id": ' + "[" * 100_000, '{"_id": ' + "1" * 5000 + "}"):
        for name in ("corpus", "queries"):
            Path(f"{name}.jsonl").write_text(line)
        message = refusal(capsys, "rank . --output out")
        assert "corpus.jsonl, line 1 must be a JSON object" in message


# ---------------------------------------------------------------------- parameters


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "n_components=[1]",
            "n_components of FRML must be a whole number or none: got [1]",
        ),
        (
            "n_components=1.5",
            "n_components of FRML must be a whole number or none: got 1.5",
        ),
        ("n_components=true", "must be a whole number or none: got True"),
        ("gamma=word", "gamma of FRML must be a number: got 'word'"),
        ("gamma={a=1}", "gamma of FRML must be a number: got {'a': 1}"),
        ("rank_weights=2", "rank_weights of FRML must be text: got 2"),
        ("warm_start=1", "warm_start of FRML must be true or false: got 1"),
        ("callback=print", "which has no text or none: got 'print'"),
        ("init=1979-05-27", "init of FRML must be a number, text or a list: got"),
        ("a.b=1", "FRML has no parameter 'a': it has batch_size, callback,"),
        ("gamma=" + "[" * 3000, "--set must be OPTION=VALUE"),
    ],
)
def test_set_checks_the_type_against_the_signature(capsys, change, message):
    words = f"fit X.npy --labels labels --output m --set {change}"
    assert message in refusal(capsys, words)


def test_values_of_every_type_pass():
    from rankspace import FRML, MLR, ListwiseMap

    pairs = [parse_parameter(text) for text in ("reg=[0.1, 1]", "similarity=none")]
    found = check_parameters(ListwiseMap, dict(pairs))
    assert found == {"reg": [0.1, 1], "similarity": None}
    assert check_parameters(MLR, {"C": 5, "checkpoint": "c"})["C"] == 5
    texts = ("warm_start=true", "random_state=none")
    found = check_parameters(FRML, dict(map(parse_parameter, texts)))
    assert found == {"warm_start": True, "random_state": None}


def test_the_types_of_all_estimators_are_understood():
    from rankspace.cli.fit import _methods

    for estimator in _methods().values():
        parameters = estimator().get_params()
        for name, value in parameters.items():
            # TOML has lists only.
            if isinstance(value, tuple):
                parameters[name] = list(value)
        assert check_parameters(estimator, parameters) == parameters


# ---------------------------------------------------------------------- outputs


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rank X.npy --output X.npy", "--output must not be a file that the command reads"),
        ("rank X.npy --ids ids --output ids", "must not be a file that the command reads"),
        ("rank X.npy --output ./sub/../ids --ids ids", "must not be a file that the com"),
        ("rank X.npy --metric m.safetensors --output link", "must not be a file that the"),
        ("transform m.safetensors X.npy --output X.npy", "must not be a file that the"),
        ("fit X.npy --labels labels --output labels", "must not be a file that the"),
        ("evaluate run.txt qrels --output run.txt", "must not be a file that the"),
        ("export m.safetensors --to npy --vectors X.npy --output X.npy", "must not be"),
        ("export q.queries.safetensors --to query-side --vectors X.npy --output q.npy",
         "the metric of the queries must not be a file that the command reads"),
        ("rank beir --output beir/corpus.jsonl", "must not be a file that the command"),
        ("rank beir --output beir/qrels/test.tsv", "must not be a file that the command"),
        ("tune X.npy --labels labels --output t --report t", "must be two files: got t for both"),
        ("tune wine --output t --report t.pdf", "must end in .html: got t.pdf"),
        ("tune wine --output t.html", "the file of a metric must end in .safetensors"),
        ("fit wine --output t.npy", "the file of a metric must end in .safetensors"),
        ("rank wine --output run.npy", "--output is a run file, which is text"),
        ("transform m.safetensors X.npy --output o.npz", "vectors must end in .npy"),
        ("evaluate nowhere qrels --output t.pdf", "must end in .json, .md, .csv, .tex, .txt"),
        ("rank nowhere --output " + "n" * 256, "file name too long"),
    ],
)  # fmt: skip
def test_outputs_are_checked_before_inputs_are_lost(folder, capsys, words, message):
    Path("link").symlink_to("m.safetensors")
    Path("sub").mkdir()
    Path("run.txt").write_text(Path("run").read_text())
    LinearMetric([[1.0, 0.0]]).save("q.queries.safetensors")
    (folder / "beir" / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (folder / "beir" / name).write_text("{}\n")
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    assert message in refusal(capsys, words)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.usefixtures("folder")
def test_the_longest_names_are_outputs(capsys):
    name = "n" * 255
    assert cli.main(f"evaluate run qrels --output {name[:251]}.txt".split()) == 0
    capsys.readouterr()
    message = refusal(capsys, f"evaluate run qrels --output {name}.txt")
    assert "file name too long" in message


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_folders_that_cannot_be_written_are_noticed_first(folder, capsys, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rankspace._engine.files._create_beside", refuse)
    words = "rank nowhere.npy --output out"
    assert refusal(capsys, words) == "rankspace rank: out: permission denied.\n"


def test_every_option_that_names_a_file_is_known():
    (verbs,) = (
        action for action in build_parser()._actions if isinstance(action.choices, dict)
    )
    known = {*INPUTS, "output", "place", "report"}
    for verb in verbs.choices.values():
        for action in verb._actions:
            if isinstance(action, argparse._StoreAction) and not action.choices:
                names_file = re.search(r"\bfiles?\b|folder", action.help or "")
                assert not names_file or action.dest in known, action.dest
