"""No password of an address is shown, logged, raised or stored."""

import logging
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from rankspace import LinearMetric, export
from rankspace._engine.credentials import hide_credentials
from rankspace.cli import main as command

SECRET = "s3cr3t"

ADDRESSES = [
    f"postgresql://me:{SECRET}@127.0.0.1:1/search",
    f"postgresql://me:{SECRET}@more@127.0.0.1:1/search",
    f"postgresql://me:{SECRET}/more@127.0.0.1:1/search",
    f"postgresql://me:{SECRET} more@127.0.0.1:1/search",
    f"postgresql://me:x#{SECRET}@127.0.0.1:1/search",
    f"postgresql://127.0.0.1:1/search?user=me&password={SECRET}",
    f"host=127.0.0.1 port=1 user=me password={SECRET}",
    f"host=127.0.0.1 port=1 password='{SECRET} more'",
    f"host=127.0.0.1 port=1 password={SECRET} more",
    f"host=127.0.0.1 port=1 password = '{SECRET}",
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LinearMetric(np.eye(2)).save("m")
    np.save("X.npy", np.eye(2))
    return tmp_path


@pytest.mark.parametrize("address", ADDRESSES)
def test_credentials_are_hidden_in_an_address(address):
    assert SECRET not in hide_credentials(f"connecting to {address} failed", address)


@pytest.mark.parametrize(
    "text",
    [
        "no password here",
        "https://host/path",
        "wrote out.npy",
        "mail me@host",
        "postgresql:///search",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert hide_credentials(text, "postgresql://localhost/search") == text


def test_encoded_passwords_are_hidden_decoded_too():
    address = "postgresql://me:s3%2Fcr3t@host/search"
    assert "s3" not in hide_credentials("for user me: s3/cr3t or s3%2Fcr3t", address)


def words_of(target, address):
    return ["export", "m", "--to", target, "--vectors", "X.npy", "--url", address]


@pytest.mark.parametrize("json", [[], ["--json"]])
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_export_does_not_print_them(address, json, capsys, caplog, monkeypatch):
    monkeypatch.setattr(export, "to_pgvector", lambda *args, **options: "SELECT id")
    caplog.set_level(logging.DEBUG)
    assert command.main([*words_of("pgvector", address), *json]) == 0
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    if "://" in address:
        assert "postgresql://" in captured.out


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_failed_export_does_not_print_them(address, files, capsys, caplog):
    pytest.importorskip("psycopg")
    caplog.set_level(logging.DEBUG)
    assert command.main(words_of("pgvector", address)) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert SECRET not in captured.out + captured.err + caplog.text
    for file in files.iterdir():
        assert SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_exception_carries_them(address):
    psycopg = pytest.importorskip("psycopg")
    metric = LinearMetric(np.eye(2))
    with pytest.raises(psycopg.Error) as failed:
        export.to_pgvector(metric, np.eye(2), address)
    told = "".join(traceback.format_exception(failed.value))
    assert SECRET not in told
    assert failed.value.__context__ is None


def test_an_export_to_qdrant_does_not_print_them(capsys, monkeypatch):
    qdrant = pytest.importorskip("qdrant_client")

    def refuse(url, **options):
        raise ValueError(f"cannot reach {url}: no such host as {SECRET}@more")

    monkeypatch.setattr(qdrant, "QdrantClient", refuse)
    address = f"http://me:{SECRET}@127.0.0.1:1"
    assert command.main(words_of("qdrant", address)) == 2
    assert SECRET not in capsys.readouterr().err


class _Refuses(BaseHTTPRequestHandler):
    """A server that answers with an error, and repeats all that it was sent."""

    def do_GET(self):
        body = f"{self.path} {self.headers}".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def refusing_server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("json", [[], ["--json"]])
@pytest.mark.parametrize(
    "address",
    [
        f"http://me:{SECRET}@HOST",
        f"http://{SECRET}@HOST",
        f"http://:{SECRET}@HOST/path",
        f"http://HOST/?api_key={SECRET}",
        f"http://HOST/path?token={SECRET}",
    ],
)
def test_a_server_that_repeats_them_does_not_get_them_printed(
    address, json, refusing_server, files, capfd, caplog
):
    pytest.importorskip("qdrant_client")
    caplog.set_level(logging.INFO)
    address = address.replace("HOST", refusing_server)
    assert command.main([*words_of("qdrant", address), *json]) == 2
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    for file in files.iterdir():
        assert SECRET.encode() not in file.read_bytes()


def test_errors_of_the_parser_do_not_print_them(capsys):
    with pytest.raises(SystemExit):
        command.main(["export", "m", "--to", "pgvector", "--uri", ADDRESSES[0]])
    told = capsys.readouterr().err
    assert "unrecognized arguments: --uri postgresql://***@127.0.0.1" in told
