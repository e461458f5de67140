"""Damaged files of the data folder: one ValueError that names the file."""

import gzip

import pytest

from rankspace import datasets
from rankspace.datasets._catalogue import CATALOGUE

WHOLE = gzip.compress(b"1.0 2.0\n1.0 2.0\n", mtime=0)
DAMAGES = {
    "empty": b"",
    "no gzip": b"\x00\xff" * 50,
    "cut short": WHOLE[:-12],
    "a damaged checksum": WHOLE[:-8] + bytes(8),
    "damaged inside": WHOLE[:12] + b"\xff\xff" + WHOLE[14:],
    "words": gzip.compress(b"a b\n"),
    "no UTF-8": gzip.compress(b"\xff\xfe\xff\n"),
    "NaN": gzip.compress(b"nan,nan\nnan,nan\n"),
    "lines of different width": gzip.compress(b"1,2\n1,2,3\n"),
    "nothing inside": gzip.compress(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["ionosphere", "isolet", "usps", "mnist", "covertype", "mq2008", "ohsumed"]
)
def test_damaged_files_are_a_value_error(tmp_path, monkeypatch, name, damage):
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path))
    for file in CATALOGUE[name].files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DAMAGES[damage])
    with pytest.raises(ValueError, match=rf"{tmp_path}|rows and columns of {name}"):
        getattr(datasets, f"fetch_{name}")()
