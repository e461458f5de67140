"""Embed texts: vectors of a corpus and its queries by a sentence embedding model, resumable."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, check_suffix
from .._engine.optional import require
from ._beir import read_beir_texts

SIDES = ("items", "queries")
DTYPES = ("float32", "float16")
BATCHES_PER_STEP = 16  # texts are sorted by length within a step, and saved after it
PARTIAL = ".partial"
# A model that gives other vectors than these is not the one that was interrupted.
SAME_MODEL = 0.01

Progress = Callable[[float], Any]


def embed_beir(
    folder: PathLike,
    model: Any,
    *,
    suffix: str | None = None,
    dtype: str = "float32",
    batch_size: int = 32,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Embed the documents and queries of a BEIR folder by a sentence embedding model.

    A run that was interrupted is continued where it stopped, if texts and model are the same.

    Parameters
    ----------
    folder : path
        The collection, with ``corpus.jsonl`` and ``queries.jsonl``, which may be gzipped.
    model : str or SentenceTransformer
        A model of sentence-transformers: its name, its folder, or the model itself (extra
        ``text``). It embeds by ``encode_document`` and ``encode_query``, with its prompts.
    suffix : str, optional
        Ends the names of the files: ``corpus_SUFFIX.npy`` in place of ``corpus.npy``.
    dtype : {"float32", "float16"}, default="float32"
        Precision of the files.
    batch_size : int, default=32
        Texts that the model takes at a time.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    corpus, queries : Path
        The files, with a row for each line of the texts, where `read_beir` finds them.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from rankspace.datasets import embed_beir
    >>> class Lengths:  # in place of SentenceTransformer("all-MiniLM-L6-v2")
    ...     def encode_document(self, texts, **options):
    ...         return np.array([[len(text), 1.0] for text in texts])
    ...     encode_query = encode_document
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "A", "text": "cat"}')
    >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "pets"}')
    >>> corpus, queries = embed_beir(folder, Lengths())
    >>> corpus.name, np.load(corpus)
    ('corpus.npy', array([[5., 1.]], dtype=float32))
    """
    folder = Path(folder)
    ending = "" if suffix is None else f"_{_file_part(suffix)}"
    jobs = [
        _Job(
            read_beir_texts(folder, stem),
            folder / f"{stem}{ending}.npy",
            side,
            dtype,
            batch_size,
        )
        for stem, side in (("corpus", "items"), ("queries", "queries"))
    ]
    _run(jobs, model, progress)
    return jobs[0].path, jobs[1].path


def embed_texts(
    texts: Sequence[str],
    model: Any,
    path: PathLike,
    *,
    side: str = "items",
    dtype: str = "float32",
    batch_size: int = 32,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Embed texts by a sentence embedding model, into a .npy file.

    A run that was interrupted is continued where it stopped, if texts and model are the same.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    model : str or SentenceTransformer
        As for `embed_beir`.
    path : path
        The .npy file to write; it is replaced once the new one is complete.
    side : {"items", "queries"}, default="items"
        Whether the texts are documents or queries, which have prompts of their own.
    dtype : {"float32", "float16"}, default="float32"
        Precision of the file.
    batch_size : int, default=32
        Texts that the model takes at a time.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    tuple of int
        The shape of the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace.datasets import embed_texts
    >>> class Lengths:  # in place of SentenceTransformer("all-MiniLM-L6-v2")
    ...     def encode_query(self, texts, **options):
    ...         return np.array([[len(text), 1.0] for text in texts])
    >>> embed_texts(["a", "to be"], Lengths(), "queries.npy", side="queries")
    (2, 2)
    """
    job = _Job(texts, Path(path), side, dtype, batch_size)
    _run([job], model, progress)
    return job.shape


def _run(jobs: list[_Job], model: Any, progress: Progress | None) -> None:
    """Embed all texts, then give the files their names, the last one first.

    A run that is stopped in between embeds the last texts anew, which are the queries.
    """
    if isinstance(model, str | os.PathLike):
        model = load_model(model)
    total = sum(len(job.texts) for job in jobs)
    before = 0
    for job in jobs:

        def show(n_done: int, before: int = before) -> None:
            if progress is not None:
                progress((before + n_done) / total)

        job.embed(model, show)
        before += len(job.texts)
    for job in reversed(jobs):
        job.finish()


def load_model(name: PathLike, device: str | None = None) -> Any:
    """Load a model of sentence-transformers by its name or folder."""
    package = require("sentence_transformers", extra="text")
    return package.SentenceTransformer(str(name), device=device)


class _Job:
    """Texts to embed, and the file that their vectors are appended to."""

    def __init__(
        self, texts: Sequence[str], path: Path, side: str, dtype: str, batch_size: int
    ) -> None:
        check_choice(side, "side", SIDES)
        check_choice(dtype, "dtype", DTYPES)
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1 text: got {batch_size}.")
        check_suffix(path, "vectors", (".npy",))
        _check_texts(texts)
        self.texts = texts
        self.path = path
        self.side = side
        self.dtype = np.dtype(dtype)
        self.batch_size = batch_size
        self.shape = (len(texts), 0)
        self._partial = path.with_name(f".{path.name}.{self._digest()}{PARTIAL}")

    def embed(self, model: Any, show: Callable[[int], None]) -> None:
        """Append vectors until there is one for each text."""
        with _opened(self._partial) as stream:
            n_done = self._resume(model, stream)
            step = self.batch_size * BATCHES_PER_STEP
            for start in range(n_done, len(self.texts), step):
                rows = self._encode(model, self.texts[start : start + step])
                if start == 0:
                    self._start(stream, rows.shape[1])
                self._check_width(rows)
                stream.write(rows.tobytes())
                stream.flush()
                show(start + len(rows))
            os.fsync(stream.fileno())

    def finish(self) -> None:
        """Give the complete file its name, and remove those of other texts or settings."""
        os.replace(self._partial, self.path)
        for file in self.path.absolute().parent.glob(f".{self.path.name}.*{PARTIAL}"):
            file.unlink()

    def _digest(self) -> str:
        """What the file depends on, but for the model, which is compared by a vector."""
        settings = [self.side, self.dtype.str, len(self.texts)]
        digest = hashlib.sha256(json.dumps(settings).encode())
        for text in self.texts:
            digest.update(hashlib.sha256(text.encode("utf-8", "replace")).digest())
        return digest.hexdigest()[:12]

    def _encode(self, model: Any, texts: Sequence[str]) -> np.ndarray:
        is_query = self.side == "queries"
        encode = model.encode_query if is_query else model.encode_document
        options = {"batch_size": self.batch_size, "show_progress_bar": False}
        rows = np.asarray(encode(list(texts), convert_to_numpy=True, **options))
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ValueError(
                f"the model must give a vector for each text: got shape {rows.shape} for "
                f"{len(texts)}."
            )
        with np.errstate(over="ignore"):
            rows = rows.astype(self.dtype)
        if not np.isfinite(rows).all():
            raise ValueError(
                f"the model must give finite vectors: got NaN, infinity or numbers beyond "
                f"{self.dtype}."
            )
        return rows

    def _start(self, stream: IO[bytes], width: int) -> None:
        self.shape = (len(self.texts), width)
        stream.seek(0)
        stream.truncate()
        descr = np.lib.format.dtype_to_descr(self.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(stream, header)

    def _check_width(self, rows: np.ndarray) -> None:
        if rows.shape[1] != self.shape[1]:
            raise ValueError(
                f"the model must give vectors of one width: got {self.shape[1]} and "
                f"{rows.shape[1]}."
            )

    def _resume(self, model: Any, stream: IO[bytes]) -> int:
        """The number of vectors that an interrupted run left, of the same model.

        The folder may come from somebody else, and so may the file: it is used only if it is what
        `_start` writes.
        """
        stream.seek(0)
        width = _row_width(stream, len(self.texts), self.dtype)
        start = stream.tell()
        row_bytes = width * self.dtype.itemsize
        n_bytes = stream.seek(0, os.SEEK_END) - start
        n_done = min(n_bytes // row_bytes, len(self.texts)) if width else 0
        if not n_done:
            return 0
        stream.seek(start)
        first = np.frombuffer(stream.read(row_bytes), self.dtype)
        if not _is_same(first, self._encode(model, self.texts[:1])[0]):
            return 0
        self.shape = (len(self.texts), width)
        # The last row may have been cut.
        stream.seek(start + n_done * row_bytes)
        stream.truncate()
        return n_done


def _row_width(stream: IO[bytes], n_rows: int, dtype: np.dtype) -> int:
    """The width of rows that follow a header of `_Job._start`, or 0 if it is another one."""
    try:
        np.lib.format.read_magic(stream)
        shape, transposed, stored = np.lib.format.read_array_header_1_0(stream)
    except Exception:
        # NumPy raises errors of many types.
        return 0
    if len(shape) != 2 or shape[0] != n_rows or transposed or stored != dtype:
        return 0
    return int(shape[1])


def _is_same(first: np.ndarray, again: np.ndarray) -> bool:
    """Whether two vectors are equal but for rounding, which differs with the batch."""
    if first.shape != again.shape:
        return False
    one, other = first.astype(float), again.astype(float)
    return bool(np.linalg.norm(one - other) <= SAME_MODEL * np.linalg.norm(other))


def _opened(path: Path) -> IO[bytes]:
    """A file to continue, which no other process may write to meanwhile.

    A symbolic link of that name, which may come with the folder, is not followed.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    stream = os.fdopen(os.open(path, flags, 0o666), "r+b")
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # Windows has no such locks.
        pass
    except OSError:
        stream.close()
        raise ValueError(
            f"another process embeds the same texts for {path.parent}: wait for it."
        ) from None
    return stream


def _check_texts(texts: Any) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"texts must be a list of str: got {type(texts).__name__}.")
    if not len(texts):
        raise ValueError("texts must hold at least one text: got none.")


def _file_part(suffix: str) -> str:
    if not suffix or set(suffix) & set("/\\\0*?["):
        raise ValueError(
            f"suffix must be a part of a file name, such as minilm: got {suffix!r}."
        )
    return suffix
