"""Writing files: regular ones whole or not at all, through links, into FIFOs and devices."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from rankspace import (
    BilinearMetric,
    LinearMetric,
    Ranking,
    Relevance,
    Report,
    load_metric,
)
from rankspace._engine.files import replacing, write_text
from rankspace.cli.main import main
from rankspace.datasets import write_trec_run
from rankspace.display.page.report import write_report
from rankspace.evaluation.measures import evaluate
from rankspace.export import to_faiss, to_npy, to_onnx, to_query_side, to_sql

METRIC = LinearMetric(np.eye(2))
X = np.eye(2, dtype=np.float32)
RANKING = Ranking.from_distances([[0.1, 0.2], [0.2, 0.1]])


def page(path):
    relevance = Relevance.from_lists([[1], [0]], n_items=2)
    report = evaluate(RANKING, relevance, "map")
    write_report(
        path,
        title="t",
        before=report,
        after=report,
        rankings=(RANKING, RANKING),
        relevance=relevance,
    )


def index(path):
    pytest.importorskip("faiss")
    to_faiss(METRIC, X, path)


def model(path):
    pytest.importorskip("onnx")
    to_onnx(METRIC, path)


WRITERS = {
    "metric": METRIC.save,
    "run": lambda path: write_trec_run(RANKING, path),
    "packed.gz": lambda path: write_trec_run(RANKING, path),
    "report.json": lambda path: Report({"map": np.ones(2)}).write(path),
    "page": page,
    "npy": lambda path: to_npy(METRIC, X, path),
    "sql": lambda path: to_sql(METRIC, X, path),
    "onnx": model,
    "faiss": index,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_writes_into_a_fifo_and_leaves_it_there(name, tmp_path):
    write = WRITERS[name]
    plain, fifo = tmp_path / f"plain-{name}", tmp_path / f"fifo-{name}"
    write(plain)
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        write(fifo)
        if not stat.S_ISFIFO(fifo.stat().st_mode):
            reader.kill()  # it would wait for ever
        content = reader.communicate()[0]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    # The header of a safetensors file is a table in any order.
    assert sorted(content) == sorted(plain.read_bytes())
    assert len(list(tmp_path.iterdir())) == 2  # nothing is left over


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(there, tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if there:
        target.write_text("old")
    link.symlink_to("folder/target")
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_a_fifo_is_written_through(tmp_path):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_text()))
    reader.start()
    write_text(link, "new")
    reader.join(timeout=60)
    assert found == ["new"]
    assert link.is_symlink()


def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_text("x")
    except PermissionError:
        pytest.skip("only root makes devices")
    METRIC.save(device)
    assert stat.S_ISCHR(device.stat().st_mode)


# Not /dev/stdout, which a writer that replaces files would destroy; nothing can be made in /dev/fd.
SAVE = "import rankspace; rankspace.LinearMetric([[1.0]]).save('/dev/fd/1')"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/fd is as Linux has it")
@pytest.mark.parametrize("piped", [True, False])
def test_the_standard_output_can_be_named(piped, tmp_path):
    command = [sys.executable, "-c", SAVE]
    if piped:
        content = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    else:
        with open(tmp_path / "out", "wb") as out:
            subprocess.run(command, stdout=out, check=True)
            assert os.fstat(out.fileno()).st_nlink == 1  # not replaced
        content = (tmp_path / "out").read_bytes()
    (tmp_path / "copy").write_bytes(content)
    assert load_metric(tmp_path / "copy").components == 1


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text() == "new"


def test_a_new_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_read_only_file_is_not_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write_text(path, "new")
    assert path.read_text() == "old"


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as stream:
        stream.writelines([b"half", None])
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


def test_a_full_disk_names_the_file(tmp_path, capsys):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    np.save(tmp_path / "X.npy", np.ones((200, 3)))
    path = tmp_path / "run.trec"
    words = ["rank", str(tmp_path / "X.npy"), "--output", str(path)]
    # Kernels are compiled and cached first.
    assert main(words) == 0
    path.unlink()
    capsys.readouterr()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**12, before[1]))
    try:
        assert main(words) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err == f"rankspace rank: {path}: file too large.\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["X.npy"]


def test_items_of_the_query_side_are_read_back(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="path must be a regular file"):
        to_query_side(METRIC, X, tmp_path / "fifo")


@pytest.mark.parametrize("write", [to_npy, lambda m, X, path: to_onnx(m, path)])
def test_maps_with_two_sides_ask_which_one(write, tmp_path):
    if write is not to_npy:
        pytest.importorskip("onnx")
    metric = BilinearMetric(2 * np.eye(2), np.eye(2))
    with pytest.raises(
        ValueError, match="side must be items or queries, as the metric"
    ):
        write(metric, X, tmp_path / "out")
