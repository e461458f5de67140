"""Downloads, from a server on this machine: right, wrong, cut off, resumed, redirected, absent."""

import gzip
import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest

from rankspace.cli.main import main
from rankspace.datasets import _download, _folder, list_datasets
from rankspace.datasets._catalogue import CATALOGUE
from rankspace.datasets._download import download_dataset
from rankspace.datasets._origins import Origin, list_origins

pytest.importorskip("pooch")

CONTENT = np.random.default_rng(0).bytes(200_000)


class Server(BaseHTTPRequestHandler):
    """Serves `CONTENT`; the path says what goes wrong."""

    requests: ClassVar[list] = []

    def do_GET(self):
        start = self.headers.get("Range")
        self.requests.append((self.path, start))
        answers = {"/redirect": "/whole", "/elsewhere": "file:///etc/passwd"}
        if self.path == "/loop" or self.path in answers:
            self.send_response(302)
            self.send_header("Location", answers.get(self.path, "/loop"))
            self.end_headers()
        elif self.path == "/absent":
            self.send_error(404)
        else:
            self.send(start)

    def send(self, start):
        content = CONTENT[::-1] if self.path == "/other" else CONTENT
        content += b"more" if self.path == "/larger" else b""
        first = 0
        if start and self.path != "/no-ranges":
            first = int(re.fullmatch(r"bytes=(\d+)-", start)[1])
        self.send_response(206 if first else 200)
        if self.path == "/broken":
            self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        if self.path in ("/cut", "/no-ranges", "/broken") and not start:
            content = content[:70_000]
        self.wfile.write(content[first:])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def serve(address, tmp_path, monkeypatch):
    """Name the path on the server that a file of the set "toy" comes from."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path / "data"))
    Server.requests.clear()

    def name(path, file="toy/x.bin", **facts):
        digest = hashlib.sha256(CONTENT).hexdigest()
        known = {"source": "a server", "licence": "none", "size": len(CONTENT)}
        known |= {"sha256": digest, "address": f"{address}/{path}"}
        origins = {file: Origin(file, **{**known, **facts})}
        for module in (_download, _folder):
            monkeypatch.setattr(module, "list_origins", lambda: origins)
        return tmp_path / "data" / file

    return name


def files_of(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("path", ["whole", "redirect"])
def test_a_file_is_downloaded_once(serve, tmp_path, path):
    file = serve(path)
    assert download_dataset("toy") == [file]
    assert file.read_bytes() == CONTENT
    assert files_of(tmp_path) == ["x.bin"]
    n_requests = len(Server.requests)
    assert download_dataset("toy") == []
    assert len(Server.requests) == n_requests


def test_a_file_is_packed_as_the_data_folder_has_it(serve):
    file = serve("whole", "toy/x.gz", is_packed=True)
    download_dataset("toy")
    assert gzip.decompress(file.read_bytes()) == CONTENT


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("other", ValueError, "must have the SHA-256 [0-9a-f]{64}: it has another"),
        ("larger", OSError, "must have 200,000 bytes: it has more"),
        ("absent", OSError, "cannot be downloaded: 404 Client Error"),
        ("elsewhere", OSError, "must not be redirected to file:///etc/passwd"),
        ("loop", OSError, "was redirected more than 5 times"),
    ],
)
def test_what_is_not_the_file_is_not_kept(serve, tmp_path, path, error, message):
    file = serve(path)
    for _ in range(2):
        with pytest.raises(error, match=message):
            download_dataset("toy")
        assert not file.exists()
        assert files_of(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("cut", r"cut off after 70,000 of 200,000 bytes\. Try again"),
        ("no-ranges", r"cut off after 70,000 of 200,000 bytes\. Try again"),
        ("broken", "cannot be downloaded: .*130000 more expected"),
    ],
)
def test_a_download_that_was_cut_off_continues(serve, tmp_path, path, message):
    file = serve(path)
    with pytest.raises(OSError, match=message):
        download_dataset("toy")
    assert not file.exists()
    assert download_dataset("toy") == [file]
    assert file.read_bytes() == CONTENT
    # What came after the last whole block may be lost.
    (start,) = [start for _, start in Server.requests[1:]]
    assert start in ("bytes=70000-", "bytes=65536-")
    assert files_of(tmp_path) == ["x.bin"]


def test_no_network(serve):
    file = serve("", address="http://127.0.0.1:9/x.bin")
    with pytest.raises(OSError, match=r"127.0.0.1:9/x.bin cannot be downloaded: "):
        download_dataset("toy")
    assert not file.exists()


def test_the_command_downloads_or_says_why_not(serve, capsys):
    file = serve("whole")
    assert main(["datasets", "--download", "toy"]) == 0
    assert capsys.readouterr().out == f"downloaded:\n{file}\n"
    assert main(["datasets", "--download", "toy"]) == 0
    assert capsys.readouterr().out == "all files are there\n"
    assert main(["datasets", "--download", "nothing"]) == 2
    assert "name must be one of " in capsys.readouterr().err


# ---------------------------------------------------------------------- the catalogue


def test_files_that_were_made_here_have_no_download(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"ir-cran/.*, made from repository lailaglez"):
        download_dataset("cranfield")


def test_a_missing_file_says_what_a_download_would_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path))
    files = CATALOGUE["mq2008"].files
    with pytest.raises(FileNotFoundError) as caught:
        _folder.locate("mq2008", files)
    message = str(caught.value)
    assert "'rankspace datasets --download letor4-mq2008' would download" in message
    assert message.count("bytes, address not yet tried)") == len(files)


def test_every_file_of_the_catalogue_has_an_origin():
    origins = list_origins()
    for row in list_datasets():
        for file in CATALOGUE[row.name].files:
            assert origins[file].source == row.origin
            assert origins[file].licence == row.licence
    for origin in origins.values():
        assert re.fullmatch("[0-9a-f]{64}", origin.sha256)
        assert origin.size > 0
        assert origin.licence
        pinned = (
            r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{12,40}/.+"
        )
        assert origin.address is None or re.fullmatch(pinned, origin.address)


def test_the_data_folder_has_the_files_of_the_catalogue(data_folder):
    for file, origin in list_origins().items():
        if origin.size > 5_000_000 or not (data_folder / file).exists():
            continue
        content = (data_folder / file).read_bytes()
        if origin.is_packed:
            content = gzip.decompress(content)
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            origin.size,
            origin.sha256,
        )
