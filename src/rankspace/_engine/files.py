"""Reading text files with the line number in every error, and atomic writes of whole files."""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

PathLike = str | os.PathLike[str]


def open_bytes(path: PathLike) -> Any:
    """Open a file for reading bytes, through gzip if its name ends in .gz."""
    if Path(path).suffix == ".gz":
        return gzip.open(path, "rb")
    return open(path, "rb")


def read_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield the number and the stripped text of each line that is not blank."""
    number = 0
    with open_bytes(path) as stream:
        try:
            for number, line in enumerate(stream, 1):
                text = _decode(line, number).strip()
                if text:
                    yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise cut_short(path, number, error) from error
        except UnicodeDecodeError as error:
            problem = f"is not UTF-8 text ({error.reason})"
            raise malformed(path, number, problem) from error


def _decode(line: bytes, number: int) -> str:
    # Only the first line of a file may start with a byte order mark.
    return line.decode("utf-8-sig" if number == 1 else "utf-8")


def malformed(path: PathLike, number: int, problem: str) -> ValueError:
    """The error for a line that breaks the file format."""
    return ValueError(f"{path}, line {number} {problem}.")


def cut_short(path: PathLike, number: int, error: Exception) -> ValueError:
    """The error for a truncated or damaged gzip file."""
    return ValueError(
        f"{path} is damaged or cut short after line {number} ({error}). Fetch the file again."
    )


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Write a file atomically: to a temporary file beside it, renamed at the end."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} does not exist: create it first."
        )
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        # mkstemp lets only the owner read; a plain open() would follow the umask.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_text(path: PathLike, content: str) -> Path:
    """Write a text file as UTF-8, atomically."""
    with replacing(path) as stream:
        stream.write(content.encode("utf-8"))
    return Path(path)


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


@cache
def temporary_folder() -> Path:
    """A temporary folder for the whole process, removed when it exits."""
    folder = Path(tempfile.mkdtemp(prefix="rankspace-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
