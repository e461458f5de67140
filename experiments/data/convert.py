"""Convert files of the origins to those of the data folder: ``python -m experiments.data.convert``.

The catalogue (``rankspace datasets --json``) says from which repository and commit each set comes.
Files that are the origin's own are downloaded by ``rankspace datasets --download``; the others are
made here from the origin's, and their content must have the SHA-256 of ours. Vectors are then made
from the texts by ``rankspace embed``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankspace._engine.files import replacing
from rankspace.datasets._folder import data_folder

# Files to write, by their paths in the data folder; those that end in .gz are packed then.
Files = Mapping[str, bytes]

# SHA-256 of the content of each file, unpacked.
SHA256 = {
    "20newsgroups/20news-bydate.tar.gz": (
        "a6274bca0488b317895a3c2261a558ba7b326a8dc66947dfb509625ca8652cb1"
    ),
    "ir-cran/corpus.jsonl.gz": (
        "629ec8168a3cb1f3a25c0f2c27685df54501b24c977e16366b8db246b91f8393"
    ),
    "ir-cran/qrels.tsv": (
        "1eea9d17af5fea31ca3a7a22c78b50fd6a8037484ab4389fe0f201b7d04a0cb5"
    ),
    "ir-cran/queries.jsonl.gz": (
        "dbf0c3b4ec4dd38bed3a2357bf2eb89886a625d9fc7558fcff9bea9f3dfb8044"
    ),
    "ir-npl/corpus.jsonl.gz": (
        "af93570e0042521b6d682ea224b6d3aeaaef54988c69bcab35fb9b4e80bf922f"
    ),
    "ir-npl/qrels.tsv": (
        "e4ce1335ba4914ea0d574e6a08264e1c2d3677d93acf2ea699cfef31d19cca88"
    ),
    "ir-npl/queries.jsonl.gz": (
        "a4b1fb21e45553d4c2036c519dd6201d4ca438fa517a64a74ee918fdc6d69860"
    ),
    "lab-clinc150/corpus.jsonl.gz": (
        "90f8e9dfafce19652be3361c31bd540266d97da5289dd39169bd8b745bc2aa40"
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": (
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
    "mnist/train-images-idx3-ubyte.gz": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "mnist/train-labels-idx1-ubyte.gz": (
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "reuters21578/r8-test.txt.gz": (
        "2ba368c42e6808bc3dc68b8f7879eb07a2810ed137f0b304e2213b689677e561"
    ),
    "reuters21578/r8-train.txt.gz": (
        "3ed60c905aaa95b96c3fc4afb6d14ad2e20106c59c5b9dda950dcb3075eecfbe"
    ),
    "uci-covertype/covtype.data.gz": (
        "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"
    ),
    "uci-isolet/isolet1+2+3+4.data.gz": (
        "f616d877699d8b24b549369689e946bff4473a06d9341160bbf32da3249e3641"
    ),
    "uci-isolet/isolet5.data.gz": (
        "d3409bb424f2bf9a68d0d07d4824b1d776b430d2e49c1207f00502a9e2f2a899"
    ),
}


def convert(name: str, origin: Path, *, check: bool = True) -> list[Path]:
    """Make the files of a data set from those of its origin, and write them to the data folder.

    Parameters
    ----------
    name : str
        One of `CONVERTERS`, a folder of the data folder.
    origin : path
        A folder with the files of the origin.
    check : bool, default=True
        Whether the content must have the SHA-256 of our files.

    Returns
    -------
    list of path
        The files that were written.
    """
    if name not in CONVERTERS:
        known = ", ".join(CONVERTERS)
        raise ValueError(f"name must be one of {known}: got {name!r}.")
    made = CONVERTERS[name](Path(origin))
    for file, content in made.items():
        found = hashlib.sha256(content).hexdigest()
        if check and found != SHA256[f"{name}/{file}"]:
            raise ValueError(
                f"{name}/{file} must have the SHA-256 {SHA256[f'{name}/{file}']} unpacked: "
                f"what was made from {origin} has {found}. It is another version of the origin."
            )
    return [
        _write(data_folder() / name / file, content) for file, content in made.items()
    ]


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with replacing(path) as out:
        out.write(content)
    return path


# ---------------------------------------------------------------------- tables


def covertype(origin: Path) -> Files:
    """``covtype.csv`` of scikit-multiflow, without its header."""
    content = (origin / "covtype.csv").read_bytes()
    return {"covtype.data.gz": content.partition(b"\n")[2]}


def isolet(origin: Path) -> Files:
    """IsoLet: ``Isolet1.mat`` to ``Isolet4.mat`` as text, and ``isolet5.data``, unpacked."""
    from scipy.io import loadmat

    parts = [loadmat(origin / f"Isolet{part}.mat") for part in range(1, 5)]
    lines: list[str] = []
    for part in parts:
        for row, label in zip(part["fea"], np.ravel(part["gnd"]), strict=True):
            values = ", ".join(f"{value:.4f}" for value in row)
            lines.append(f"{values}, {label:.0f}.\n")
    return {
        "isolet1+2+3+4.data.gz": "".join(lines).encode(),
        "isolet5.data.gz": (origin / "isolet5.data").read_bytes(),
    }


def mnist(origin: Path) -> Files:
    """The four idx files, packed."""
    names = [
        f"{part}-{what}-ubyte"
        for part in ("train", "t10k")
        for what in ("images-idx3", "labels-idx1")
    ]
    return {f"{name}.gz": (origin / name).read_bytes() for name in names}


# ---------------------------------------------------------------------- texts


def twenty_newsgroups(origin: Path) -> Files:
    """An archive of the folders ``20news-bydate-test`` and ``20news-bydate-train``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for part in ("test", "train"):
            for path in sorted((origin / f"20news-bydate-{part}").glob("*/*")):
                content = path.read_bytes()
                entry = tarfile.TarInfo(path.relative_to(origin).as_posix())
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return {"20news-bydate.tar.gz": out.getvalue()}


def reuters(origin: Path) -> Files:
    """``train.txt`` and ``test.txt`` of R8; the archive of all of Reuters is not needed here."""
    return {
        f"r8-{part}.txt.gz": (origin / f"{part}.txt").read_bytes()
        for part in ("train", "test")
    }


def clinc(origin: Path) -> Files:
    """``data_full.json`` of CLINC150, without the texts that are out of scope."""
    content = json.loads((origin / "data_full.json").read_text(encoding="utf-8"))
    records = [
        {"_id": f"{part}{i}", "label": label, "part": part, "text": text}
        for part in ("train", "val", "test")
        for i, (text, label) in enumerate(content[part])
    ]
    return {"corpus.jsonl.gz": _json_lines(records)}


def cranfield(origin: Path) -> Files:
    """``cran.tar.gz``: records of fields .I, .T and .W; relevance is 5 minus its code."""
    with tarfile.open(origin / "cran.tar.gz") as archive:
        parts = {
            name: archive.extractfile(name).read().decode()  # type: ignore[union-attr]
            for name in ("cran.all.1400", "cran.qry", "cranqrel")
        }
    documents = []
    for number, fields in _cranfield_records(parts["cran.all.1400"]):
        title, text = fields.get("T", ""), fields.get("W", "")
        text = text.removeprefix(title).strip()
        documents.append({"_id": number, "title": title, "text": text})
    queries = [
        {"_id": str(i), "text": fields["W"], "orig_id": number}
        for i, (number, fields) in enumerate(_cranfield_records(parts["cran.qry"]), 1)
    ]
    judged = [line.split() for line in parts["cranqrel"].splitlines()]
    judgments = [(q, d, 5 - int(code)) for q, d, code in judged if int(code) > 0]
    return {
        "corpus.jsonl.gz": _json_lines(documents),
        "queries.jsonl.gz": _json_lines(queries),
        "qrels.tsv": _qrels(judgments),
    }


def _cranfield_records(content: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Number and fields of each record, every field on one line; some occur twice."""
    for record in re.split(r"^\.I ", content, flags=re.MULTILINE)[1:]:
        number, *parts = re.split(r"^\.([A-Z])\s*$", record, flags=re.MULTILINE)
        fields: dict[str, list[str]] = {}
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            fields.setdefault(name, []).extend(text.split())
        yield number.strip(), {name: " ".join(words) for name, words in fields.items()}


def npl(origin: Path) -> Files:
    """``doc-text``, ``query-text`` and ``rlv-ass``: records of a number, lines, and a slash."""
    documents, queries, judged = (
        [*_npl_records(origin / name)] for name in ("doc-text", "query-text", "rlv-ass")
    )
    judgments = [
        (query, item, 1) for query, lines in judged for item in " ".join(lines).split()
    ]
    return {
        "corpus.jsonl.gz": _json_lines(
            {"_id": number, "title": "", "text": " ".join(lines)}
            for number, lines in documents
        ),
        "queries.jsonl.gz": _json_lines(
            {"_id": number, "text": " ".join(lines)} for number, lines in queries
        ),
        "qrels.tsv": _qrels(judgments),
    }


def _npl_records(path: Path) -> Iterator[tuple[str, list[str]]]:
    record: list[str] = []
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.strip() == "/":
            yield record[0], record[1:]
            record = []
        elif line.strip():
            record.append(line.strip())


def _json_lines(records: Any) -> bytes:
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return "".join(lines).encode()


def _qrels(judgments: Sequence[tuple[str, str, int]]) -> bytes:
    lines = ["query-id\tcorpus-id\tscore"]
    lines += ["\t".join(map(str, judgment)) for judgment in judgments]
    return ("\n".join(lines) + "\n").encode()


CONVERTERS: Mapping[str, Callable[[Path], Files]] = {
    "20newsgroups": twenty_newsgroups,
    "ir-cran": cranfield,
    "ir-npl": npl,
    "lab-clinc150": clinc,
    "mnist": mnist,
    "reuters21578": reuters,
    "uci-covertype": covertype,
    "uci-isolet": isolet,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the files of one data set."""
    parser = argparse.ArgumentParser(prog="python -m experiments.data.convert")
    parser.add_argument("name", choices=CONVERTERS)
    parser.add_argument("origin", type=Path, help="folder with the origin's files")
    options = parser.parse_args(arguments)
    for path in convert(options.name, options.origin):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
