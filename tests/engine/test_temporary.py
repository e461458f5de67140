"""Temporary files and folders: private, and swept by the next run if their process was killed."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rankspace
from rankspace._engine import temporary
from rankspace._engine.files import replacing, write_text

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="kills processes as POSIX has it"
)

HALF_A_FILE = """
import os, sys
from rankspace._engine.files import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print("written", flush=True)
    sys.stdin.readline()
"""
FOLDER = """
import sys
from rankspace._engine.files import temporary_folder
(temporary_folder() / "large").write_text("content")
print("written", flush=True)
sys.stdin.readline()
"""


def start(script, *arguments, **environment):
    """A process that has written something, and waits."""
    source = Path(rankspace.__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(source)} | environment,
    )
    assert process.stdout.readline() == "written\n"
    return process


def stop(process, number):
    process.send_signal(number)
    process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_file_of_a_killed_process_is_swept_by_the_next_run(tmp_path, number):
    path = tmp_path / "metric"
    stop(start(HALF_A_FILE, path), number)
    assert len(names(tmp_path)) == 1
    assert names(tmp_path) != ["metric"]
    write_text(path, "whole")
    assert names(tmp_path) == ["metric"]
    assert path.read_text() == "whole"


def test_file_of_a_living_process_stays(tmp_path):
    path = tmp_path / "metric"
    process = start(HALF_A_FILE, path)
    write_text(path, "whole")
    assert len(names(tmp_path)) == 2
    process.communicate("go on\n")
    assert process.returncode == 0
    assert names(tmp_path) == ["metric"]
    assert path.read_text() == "half"


def test_writers_of_one_process_leave_each_other_alone(tmp_path):
    path = tmp_path / "metric"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(tmp_path) == ["metric"]


def test_threads_that_write_one_file_all_succeed(tmp_path):
    path = tmp_path / "metric"
    failures = []

    def write():
        try:
            for _ in range(50):
                write_text(path, "content")
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(tmp_path) == ["metric"]


def test_files_of_other_hosts_stay_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary, "_host", lambda: "another")
    recent = tmp_path / f".recent{temporary.temporary_suffix()}"
    old = tmp_path / f".old{temporary.temporary_suffix()}"
    folder = tmp_path / f".folder{temporary.temporary_suffix()}"
    monkeypatch.undo()
    recent.touch()
    old.touch()
    folder.mkdir()
    two_days_ago = time.time() - 2 * 86_400
    os.utime(old, (two_days_ago, two_days_ago))
    os.utime(folder, (two_days_ago, two_days_ago))
    temporary.sweep(tmp_path)
    assert names(tmp_path) == sorted([recent.name, folder.name])


def test_what_only_looks_alike_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f".link{temporary.temporary_suffix()}").symlink_to(outside)
    (folder / f"visible{temporary.temporary_suffix()}").touch()
    (folder / ".hidden").touch()
    temporary.sweep(folder)
    assert len(names(folder)) == 3
    assert outside.read_text() == "mine"


def test_a_file_swept_before_it_was_locked_is_made_again(tmp_path):
    made = []

    def create():
        path = tmp_path / f"{len(made)}"
        made.append(path)
        if len(made) > 1:
            path.touch()
        return path

    with temporary.held(create) as path:
        assert path == made[1]


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    # It belongs to the process: files of other threads would follow the change.
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", None)
            write_text(tmp_path / "file", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o600)
    with replacing(path):
        modes = [stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()]
    assert modes == [0o600, 0o600]


@pytest.mark.parametrize("name", ["x" * 255, "\N{GRINNING FACE}" * 63])
def test_names_may_be_as_long_as_the_file_system_allows(tmp_path, name):
    write_text(tmp_path / name, "content")
    assert names(tmp_path) == [name]


def test_folder_of_a_killed_process_is_swept_by_the_next_run(tmp_path):
    stop(start(FOLDER, TMPDIR=str(tmp_path)), signal.SIGKILL)
    assert len(names(tmp_path)) == 1
    living = start(FOLDER, TMPDIR=str(tmp_path))
    (of_living,) = names(tmp_path)
    start(FOLDER, TMPDIR=str(tmp_path)).communicate("go on\n")
    assert names(tmp_path) == [of_living]
    living.communicate("go on\n")
    assert names(tmp_path) == []
