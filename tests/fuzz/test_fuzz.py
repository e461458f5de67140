"""Every reader on a few hundred mutated files: a value, a ValueError or an OSError."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fuzz.session import Findings, closing_table, run_inputs, run_session, watch
from fuzz.targets import TARGETS

N_INPUTS = 150


@pytest.fixture(params=TARGETS)
def target(request):
    found = TARGETS[request.param]
    if not found.seeds:
        pytest.skip("the package that writes such files is not installed")
    return found


def test_most_seeds_are_accepted(target):
    with target.file() as path:
        accepted = [target.try_content(path, content) for content in target.seeds]
    assert sum(accepted) >= 0.5 * len(accepted)


# NumPy warns of overflow before the result is refused, and of headers that are not its own.
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_are_read_or_refused(target):
    with target.file() as path:
        contents = map(target.content, range(N_INPUTS))
        accepted = [target.try_content(path, content) for content in contents]
    # Inputs that are refused at once try nothing.
    assert sum(accepted) >= N_INPUTS / 30


def test_the_seeds_are_small():
    sizes = [len(seed) for target in TARGETS.values() for seed in target.seeds]
    assert sum(sizes) < 2**20


def test_an_input_depends_on_its_number_only(target):
    assert target.content(7) == target.content(7)
    assert len({target.content(number) for number in range(20)}) > 10


def test_a_session_counts_what_became_of_its_inputs(tmp_path):
    found = run_inputs("qrels", 5, 20, 60, tmp_path / "number")
    assert found["next"] == 25
    assert sum(found["counts"].values()) == 20
    assert found["first_of_each_fault"] == {}
    assert (tmp_path / "number").read_text() == "24"


def test_a_session_sums_up_what_its_processes_found(monkeypatch):
    asked = []

    def watch(name, first, seconds):
        asked.append((name, first, seconds))
        found = Findings(Counter(accepted=3, refused=4), slowest_s=first / 10**8)
        if name == "ids" and first:
            found.counts["faults"] += 1
            found.faults["KeyError: 'x'"] = first + 5
            found.crashes.append("exit code -11 at input 9: ")
            found.grown_mb = 300
        return found

    monkeypatch.setattr("fuzz.session.watch", watch)
    total = run_session(["ids", "set"], 60, 2)
    assert sorted(asked) == [
        (name, first, 30) for name in ("ids", "set") for first in (0, 10**8)
    ]
    lines = closing_table(total).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["ids"] == ["15", "6", "1", "1", "1.0000", "300"]
    assert rows["all"] == ["29", "12", "1", "1", "1.0000", "300"]
    assert lines[-3:] == [
        "ids: KeyError: 'x': input 100000005",
        "ids: memory grew by 300 MB",
        "ids: exit code -11 at input 9: ",
    ]


def test_a_crash_is_counted_and_the_next_input_runs(monkeypatch):
    # The process dies at once at its third input, and is started again behind it.
    starts = []

    def run(command, **options):
        first = int(command[command.index("--first") + 1])
        starts.append(first)
        found = {"counts": {"accepted": 1}, "first_of_each_fault": {}}
        found |= {"slowest_s": 0.1, "grown_mb": 2}
        if first == 0:
            Path(command[command.index("--place") + 1]).write_text("2")
        code = -11 if first == 0 else 0
        return subprocess.CompletedProcess(command, code, json.dumps(found), "")

    monkeypatch.setattr("fuzz.session.subprocess.run", run)
    found = watch("ids", 0, 60)
    assert starts == [0, 3]
    assert found.crashes == ["exit code -11 at input 2: "]
    assert found.counts == {"accepted": 1}
