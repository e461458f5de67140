"""What makes the command line pleasant: help, examples, completion, standard output, verbosity."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest

from rankspace import LinearMetric
from rankspace.cli import main as cli
from rankspace.cli.completion import SHELLS, completion
from rankspace.cli.main import build_parser

PARSERS = next(a for a in build_parser()._actions if a.dest == "name").choices
# Run by make demo, and by the test of the README.
LONG = {"demo", "tune"}


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    X = rng.standard_normal((12, 3)).astype("f4")
    np.save("corpus.npy", X)
    np.save("queries.npy", X[:2])
    metric = LinearMetric(np.eye(3))
    metric.keep_query_sample(rng.standard_normal((50, 3)))
    metric.save("my.safetensors")
    np.save("new-queries.npy", rng.standard_normal((50, 3)))
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n0\t3\t1\n1\t4\t1\n"
    )
    (tmp_path / "before.trec").write_text("0 Q0 3 1 9 a\n1 Q0 5 1 9 a\n")
    (tmp_path / "after.trec").write_text("0 Q0 3 1 9 a\n1 Q0 4 1 9 a\n")
    folder = tmp_path / "my-collection"
    folder.mkdir()
    for stem, n in (("corpus", 12), ("queries", 2)):
        records = [{"_id": str(i), "text": f"{stem} {i}"} for i in range(n)]
        (folder / f"{stem}.jsonl").write_text("\n".join(map(json.dumps, records)))
    shutil.copy("qrels.tsv", folder)
    return tmp_path


@pytest.fixture
def stand_in(monkeypatch):
    class Model:
        def __init__(self, name, device):
            self.encode_document = self.encode_query = self.encode

        def encode(self, texts, **options):
            return np.array([[len(text), 1.0] for text in texts])

    package = types.ModuleType("sentence_transformers")
    package.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)


@pytest.mark.parametrize(
    "verb", [pytest.param(v, marks=[pytest.mark.long] * (v in LONG)) for v in PARSERS]
)
def test_the_example_of_each_help_runs(verb, files, stand_in, capsys):
    (example,) = re.findall(r"example: (rankspace .*)", PARSERS[verb].epilog)
    program, *words = shlex.split(example)
    assert words[0] == verb
    if verb == "export":
        pytest.importorskip("faiss")
    if verb == "evaluate":
        rank = shlex.split(PARSERS["rank"].epilog.removeprefix("example: rankspace "))
        assert cli.main(rank) == 0
    assert cli.main(words) == 0
    with pytest.raises(SystemExit) as stopped:
        cli.main([verb, "--help"])
    assert stopped.value.code == 0
    assert program in capsys.readouterr().out


def test_alone_it_prints_its_help(capsys, monkeypatch):
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: rankspace")
    assert all(verb in text for verb in PARSERS)
    monkeypatch.setattr(sys, "argv", ["rankspace"])
    assert cli.main() == 0
    assert capsys.readouterr().out == text


# ---------------------------------------------------------------------- standard output


def test_output_to_standard_output(files, capfd):
    words = "rank corpus.npy --queries queries.npy -k 2 --output"
    assert cli.main([*words.split(), "-"]) == 0
    captured = capfd.readouterr()
    assert len(captured.out.splitlines()) == 4
    assert "ranked 12 items for 2 queries" in captured.err
    assert cli.main([*words.split(), "x"]) == 0
    assert (files / "x").read_text() == captured.out
    assert not (files / "-").exists()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("transform my.safetensors corpus.npy --output", "x.npy"),
        ("export my.safetensors --to pgvector --vectors corpus.npy --output", "x.sql"),
    ],
)
def test_binary_outputs_to_standard_output(files, capfdbinary, words, name):
    assert cli.main([*words.split(), "-"]) == 0
    captured = capfdbinary.readouterr()
    assert cli.main([*words.split(), name]) == 0
    assert captured.out == (files / name).read_bytes()
    assert captured.err.count(b"\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "export my.safetensors --to faiss --vectors corpus.npy --output -",
        "evaluate before.trec qrels.tsv --output -",
        "fit wine --method gmml --output -",
    ],
)
def test_standard_output_where_it_makes_no_sense(files, capsys, words):
    assert cli.main(words.split()) == 2
    message = "--output - can be used with rank, report, transform, and with export"
    assert message in capsys.readouterr().err
    assert not (files / "-").exists()


# ---------------------------------------------------------------------- quiet and verbose


def test_verbose_writes_each_step_on_a_line(files, capsys):
    words = "transform my.safetensors corpus.npy --output x.npy --block-size 3"
    assert cli.main([*words.split(), "--verbose"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    for line, done in zip(lines, ("25%", "50%", "75%", "100%"), strict=True):
        assert re.fullmatch(rf"rankspace transform: {done} \(\d+\.\d s\)", line)
    assert cli.main(["evaluate", "before.trec", "qrels.tsv", "--verbose"]) == 0
    assert "rankspace evaluate: reading before.trec (" in capsys.readouterr().err
    assert cli.main(words.split()) == 0
    assert capsys.readouterr().err == ""


def test_quiet_leaves_out_warnings(files, capsys, monkeypatch):
    import warnings

    def warn(*words, **options):
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return 12, 3

    monkeypatch.setattr("rankspace.export.to_npy", warn)
    words = ["transform", "my.safetensors", "corpus.npy", "--output", "x.npy"]
    assert cli.main(words) == 0
    assert "note: mind the gap" in capsys.readouterr().err
    assert cli.main([*words, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "mapped 12 vectors" in captured.out
    with pytest.raises(SystemExit):
        cli.main([*words, "--quiet", "--verbose"])


# ---------------------------------------------------------------------- completion


def script(shell, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--print-completion", shell])
    assert stopped.value.code == 0
    path = tmp_path / f"rankspace.{shell}"
    path.write_text(capsys.readouterr().out)
    assert path.read_text() == completion(build_parser(), shell)
    return path


# What is typed, and what is offered: all of it, and what is not.
TYPED = [
    (["ex"], {"export"}, {"rank"}),
    (["rank", "--sim"], {"--similarity"}, {"--to"}),
    (["rank", "--similarity", ""], {"cosine", "dot", "euclidean"}, {"--json"}),
    (["export", "m", "--to", "sq"], {"sqlite-vec"}, set()),
]


def run_shell(shell, *words):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(("words", "offered", "absent"), TYPED)
def test_bash_completes(words, offered, absent, tmp_path, capsys):
    path = script("bash", tmp_path, capsys)
    typed = shlex.join(["rankspace", *words])
    found = run_shell(
        "bash",
        "-c",
        f"source {path}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _rankspace; "
        'printf "%s\\n" "${COMPREPLY[@]}"',
    )
    assert offered <= set(found)
    assert not absent & set(found)
    assert all(word.startswith(words[-1]) for word in found)


@pytest.mark.parametrize(("words", "offered", "absent"), TYPED)
def test_zsh_completes(words, offered, absent, tmp_path, capsys):
    path = script("zsh", tmp_path, capsys)
    typed = shlex.join(["rankspace", *words])
    found = run_shell(
        "zsh",
        "-f",
        "-c",
        "compdef() {}; compadd() { shift; print -l -- $@; }; "
        f"source {path}; words=({typed}); CURRENT={len(words) + 1}; "
        f"PREFIX={shlex.quote(words[-1])}; _rankspace",
    )
    # The shell itself leaves out what does not begin as typed.
    assert offered <= set(found)


@pytest.mark.parametrize(("words", "offered", "absent"), TYPED)
def test_fish_completes(words, offered, absent, tmp_path, capsys):
    path = script("fish", tmp_path, capsys)
    typed = shlex.join(["rankspace", *words[:-1]]) + f" {words[-1]}"
    found = run_shell(
        "fish", "--no-config", "-c", f"source {path}; complete -C {shlex.quote(typed)}"
    )
    assert offered <= set(found)
    assert not absent & set(found)


def test_every_shell_knows_every_option(tmp_path, capsys):
    for shell in SHELLS:
        text = script(shell, tmp_path, capsys).read_text()
        for verb, parser in PARSERS.items():
            assert verb in text
            for action in parser._actions:
                for name in action.option_strings:
                    assert name.lstrip("-") in text
