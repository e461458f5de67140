"""LETOR files for learning to rank: svmlight lines with a query id."""

from __future__ import annotations

import gzip
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._engine.files import PathLike, cut_short, malformed, open_bytes
from .._engine.parallel.threads import n_threads, ordered_map
from ..relevance.relevance import Relevance
from ._dataset import Dataset

BLOCK_BYTES = 1 << 22
# Without n_features a mistyped index must not allocate all memory.
WIDTH_LIMIT = 10_000
FIRST_HARD = 1024  # numbers left to Python that a block has room for at first
# Without max_memory, X and unpacked text are limited where they are out of proportion: real
# collections have X of 2 times their text, more where zeros are left out, and pack to a tenth.
LARGE_BYTES = 1 << 30
X_PER_TEXT = 16
TEXT_PER_PACKED = 100
LINE_BYTES = 1 << 26  # a million numbers take half of it


class Rows(NamedTuple):
    """Features, grades, query ids and comments of a file, or of a block of one."""

    X: np.ndarray
    grades: np.ndarray
    qid: np.ndarray
    comments: list[str] | None


class _Block(NamedTuple):
    """Whole lines of a file, and how much room their features take."""

    text: bytes
    first_line: int
    n_rows: int
    width: int


def read_letor(
    path: PathLike,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    comments: bool = False,
    max_memory: int | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """Read a learning-to-rank file: ``grade qid:7 1:0.5 2:0.25 # docid = d1``.

    Lines are parsed in blocks by several threads, so that only a few megabytes are needed besides
    the result. Values are rounded as by Python's ``float``. Blank lines and lines with nothing but
    a comment are skipped.

    Parameters
    ----------
    path : path
        Plain text, or gzipped if the name ends in ``.gz``.
    n_features : int, optional
        Number of columns of ``X``; a larger index in the file is an error. By default the largest
        index, which must then be at most 10 000, because ``X`` is dense.
    dtype : dtype, default=float64
        float64 or float32, the type of ``X``.
    comments : bool, default=False
        Store the text after ``#`` of each line in ``texts``. If every line names a different
        document (by ``docid = ...``, or else by its whole comment), the names also become
        ``relevance.item_ids``.
    max_memory : int, optional
        Largest size of ``X``, and of the text that a file unpacks to, in MiB; a file that needs
        more is an error. By default 1024, and more for a file of many bytes: ``X`` may have 16
        times the size of the text, and the text 100 times that of the file.
    n_jobs : int, optional
        Number of threads. By default one for each core the process may use.

    Returns
    -------
    Dataset
        With dense ``X``, ``grades``, ``qid`` and the ``relevance`` of the candidate lists.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankspace.datasets import read_letor
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 3:0.25\\n0 qid:7 2:1\\n")
    >>> dataset = read_letor(path)
    >>> dataset.X
    array([[0.5 , 0.  , 0.25],
           [0.  , 1.  , 0.  ]])
    >>> dataset.grades, dataset.qid
    (array([2., 0.]), array([7, 7]))
    """
    rows = read_rows(
        path,
        n_features=n_features,
        dtype=dtype,
        comments=comments,
        max_memory=max_memory,
        n_jobs=n_jobs,
    )
    return candidate_lists(
        Path(path).name, rows, description=f"Candidate lists of {path}."
    )


def candidate_lists(name: str, rows: Rows, **fields: Any) -> Dataset:
    """A data set of candidate lists, with document ids if the comments name them."""
    relevance = Relevance.from_groups(
        rows.grades, rows.qid, item_ids=_document_ids(rows.comments)
    )
    return Dataset(
        name,
        rows.X,
        relevance,
        qid=rows.qid,
        grades=rows.grades,
        texts=rows.comments,
        **fields,
    )


def read_rows(
    path: PathLike,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    comments: bool = False,
    max_memory: int | None = None,
    n_jobs: int | None = None,
) -> Rows:
    """Read the arrays of a LETOR file."""
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32: got {dtype}.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1: got {n_features}.")
    if max_memory is not None and max_memory < 1:
        raise ValueError(f"max_memory must be at least 1 MiB: got {max_memory}.")
    if n_jobs is None:
        n_jobs = n_threads()
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1: got {n_jobs}.")
    parser = _Parser(path, n_features, dtype, comments)
    size = _Size(path, n_features, dtype, max_memory)
    texts = _read_blocks(path, size)
    blocks = list(ordered_map(parser, texts, n_jobs, max_in_flight=n_jobs + 2))
    if not size.n_rows:
        raise ValueError(f"{path} must have at least one line: got an empty file.")
    return _join(blocks, size.width, dtype)


class _Size:
    """Rows and columns of a file as far as it is read; too many raise before they get memory."""

    def __init__(
        self,
        path: PathLike,
        n_features: int | None,
        dtype: np.dtype,
        max_memory: int | None,
    ) -> None:
        from .._engine.kernels import letor

        self.kernels = letor
        self.path = path
        self.n_features = n_features
        self.itemsize = dtype.itemsize
        self.max_memory = max_memory
        self.n_packed = os.stat(path).st_size
        self.n_rows = self.n_text = 0
        self.width = n_features or 0
        self.widest_line = 0

    def add(self, text: bytes, line: int) -> _Block:
        """The block of some text, which starts at a line number."""
        limit = self.n_features or WIDTH_LIMIT
        array = np.frombuffer(text, dtype=np.uint8)
        marks = array == self.kernels.NEWLINE
        if b"#" in text:
            marks |= array == self.kernels.HASH
        ends = np.flatnonzero(marks)
        n_rows, width, widest = self.kernels.survey_block(array, ends, limit)
        self.n_text += len(text)
        self.n_rows += n_rows
        if width > self.width:
            self.width = width
            self.widest_line = line + widest - 1
        self._check_text()
        self._check_matrix()
        return _Block(text, line, n_rows, self.n_features or width)

    def _check_text(self) -> None:
        limit = self._limit(TEXT_PER_PACKED * self.n_packed)
        if self.n_text > limit and Path(self.path).suffix == ".gz":
            raise ValueError(
                f"{self.path} of {self.n_packed} bytes must not unpack to more than "
                f"{limit >> 20} MiB: pass a larger max_memory if it is meant to."
            )

    def _check_matrix(self) -> None:
        limit = self._limit(X_PER_TEXT * self.n_text)
        if self.n_rows * self.width * self.itemsize <= limit:
            return
        cause = f"n_features={self.n_features}"
        if self.n_features is None:
            cause = (
                f"line {self.widest_line} has the largest feature index, {self.width}"
            )
        raise ValueError(
            f"{self.path} must not make X larger than {limit >> 20} MiB: its first {self.n_rows} "
            f"rows with {self.width} columns do, and {cause}. Mend the line, or pass a larger "
            "max_memory."
        )

    def _limit(self, proportional: int) -> int:
        if self.max_memory is not None:
            return self.max_memory << 20
        return max(LARGE_BYTES, proportional)


def _read_blocks(path: PathLike, size: _Size) -> Iterator[_Block]:
    """Cut a file into blocks of whole lines; a newline is added if the last line has none."""
    line = 1
    rest = b""
    with open_bytes(path) as stream:
        while text := _next_text(path, stream, line, rest):
            end = text.rfind(b"\n") + 1
            if not end:
                text += b"\n"
                end = len(text)
            rest = text[end:]
            text = text[:end]
            yield size.add(text, line)
            line += text.count(b"\n")


def _next_text(path: PathLike, stream: Any, line: int, rest: bytes) -> bytes:
    """Read until there is a block's worth of text with a newline in it, or the end."""
    parts = [rest]
    size = len(rest)
    has_line = False
    try:
        while size < BLOCK_BYTES or not has_line:
            chunk = stream.read1(BLOCK_BYTES)
            if not chunk:
                break
            parts.append(chunk)
            size += len(chunk)
            has_line = has_line or b"\n" in chunk
            if size > LINE_BYTES and not has_line:
                raise malformed(path, line, f"must not exceed {LINE_BYTES >> 20} MiB")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        n_whole = sum(part.count(b"\n") for part in parts)
        raise cut_short(path, line - 1 + n_whole, error) from error
    return b"".join(parts)


class _Parser:
    """Parser of the blocks of one file, safe to call from several threads."""

    def __init__(
        self,
        path: PathLike,
        n_features: int | None,
        dtype: np.dtype,
        comments: bool,
    ) -> None:
        from .._engine.kernels import letor

        self.kernels = letor
        self.path = path
        self.limit = n_features or WIDTH_LIMIT
        self.dtype = dtype
        self.comments = comments

    def __call__(self, block: _Block) -> Rows:
        text = np.frombuffer(block.text, dtype=np.uint8)
        X = _zeros(block.n_rows, block.width, self.dtype)
        grades = np.zeros(block.n_rows)
        qid = np.zeros(block.n_rows, dtype=np.int64)
        spans = np.zeros((block.n_rows, 2), dtype=np.int64)
        capacity = FIRST_HARD
        while True:
            hard = np.empty((capacity, 4), dtype=np.int64)
            status, n_lines, at, n_hard = self.kernels.read_block(
                text, True, self.limit, X, grades, qid, spans, hard
            )
            values = self._round(block, hard[:n_hard])
            if status != self.kernels.FINE:
                raise self._fault(status, block, n_lines, at)
            if n_hard <= capacity:
                break
            # The block has more hard numbers than there was room for: parse it again.
            capacity = n_hard
        for row, column, value in values:
            if column < 0:
                grades[row] = value
            else:
                X[row, column] = value
        comments = None
        if self.comments:
            comments = _comments(block.text, spans)
        return Rows(X, grades, qid, comments)

    def _round(self, block: _Block, hard: np.ndarray) -> list[tuple[int, int, float]]:
        """Row, column and value of the numbers that the kernel left to Python."""
        # Any number that overflows float64 or float32 is among them.
        largest = float(np.finfo(self.dtype).max)
        values = []
        for row, column, start, end in hard.tolist():
            value = float(block.text[start:end])
            if abs(value) > largest:
                n_lines = block.text.count(b"\n", 0, start) + 1
                raise self._fault(self.kernels.BAD_NUMBER, block, n_lines, start)
            values.append((row, column, value))
        return values

    def _fault(self, status: int, block: _Block, n_lines: int, at: int) -> ValueError:
        kernels = self.kernels
        word = re.split(rb"[ \t\r\n#]", block.text[at : at + 60], maxsplit=1)[0]
        what = {
            kernels.BAD_NUMBER: f"must have finite decimal numbers that fit {self.dtype}",
            kernels.NO_QID: "must have qid:<number> after the grade",
            kernels.BAD_QID: "must have a whole number of at most 18 digits as qid",
            kernels.BAD_INDEX: "must count features from 1",
            kernels.UNORDERED: "must have ascending feature indices, each once",
            kernels.TOO_WIDE: f"must have no feature index above {self.limit}",
            kernels.GARBAGE: "must have <index>:<value> pairs after its head",
        }[status]
        way_out = ""
        if status == kernels.TOO_WIDE:
            way_out = ". Pass a larger n_features"
        got = "the end of the line"
        if word:
            got = repr(word.decode("utf-8", "replace"))
        return malformed(
            self.path, block.first_line + n_lines - 1, f"{what}: got {got}{way_out}"
        )


def _zeros(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    # Mapped, not allocated: `_join` returns the memory to the system block by block while it
    # copies; an allocator would keep it, and the peak would be twice the result.
    if not n_rows * n_columns:
        return np.zeros((n_rows, n_columns), dtype=dtype)
    private = {}
    if hasattr(mmap, "MAP_PRIVATE"):
        # Zeros that are read but never written then take no memory.
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    memory = mmap.mmap(-1, n_rows * n_columns * dtype.itemsize, **private)
    return np.frombuffer(memory, dtype=dtype).reshape(n_rows, n_columns)


def _comments(text: bytes, spans: np.ndarray) -> list[str]:
    return [
        text[start:end].decode("utf-8", "replace").strip()
        for start, end in spans.tolist()
    ]


def _document_ids(comments: list[str] | None) -> list[str] | None:
    """Document ids out of comments, or None unless each line has one and all differ."""
    if comments is None:
        return None
    ids = []
    for comment in comments:
        match = re.search(r"\bdocid\s*=\s*(\S+)", comment)
        ids.append(match[1] if match else comment)
    if not all(ids) or len(set(ids)) < len(ids):
        return None
    return ids


def _join(blocks: list[Rows], width: int, dtype: np.dtype) -> Rows:
    """Stack blocks of different widths, freeing each once it is copied."""
    if len(blocks) == 1:
        return blocks[0]
    grades = np.concatenate([block.grades for block in blocks])
    qid = np.concatenate([block.qid for block in blocks])
    comments = None
    if blocks[0].comments is not None:
        comments = [comment for block in blocks for comment in block.comments or ()]
    X = np.empty((qid.size, width), dtype=dtype)
    start = 0
    blocks.reverse()
    while blocks:
        part = blocks.pop().X
        rows = X[start : start + part.shape[0]]
        used = min(part.shape[1], width)
        rows[:, :used] = part[:, :used]
        rows[:, used:] = 0
        start += part.shape[0]
    return Rows(X, grades, qid, comments)
