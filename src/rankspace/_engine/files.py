"""Reading text files with the line number in every error, and the one way to write a file."""

from __future__ import annotations

import atexit
import errno
import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from .temporary import held, sweep, temporary_suffix

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
def foreign_bytes(path: PathLike, kind: str) -> Iterator[None]:
    """Raise one ValueError for anything that a parser makes of a damaged or hostile file.

    Parsers of other packages raise errors of many types on such bytes. Nothing but the parser may
    run inside. That a file is missing or not readable, and that a package is, passes unchanged.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        yield
    except (FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"{path} must be {kind}: it is not one, or it is damaged or cut short ({reason}). "
            "Write it again."
        ) from error


# A disk or a quota is full, or the file too large.
FULL_DISK = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Write a file: a regular one whole or not at all, with the mode of the one it replaces.

    A symbolic link stays, and its target is written. A FIFO or a device is opened and written to.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} does not exist: create it first."
        )
    if is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    path = Path(os.path.realpath(path))
    sweep(path.parent)
    with held(lambda: _create_beside(path)) as temporary:
        try:
            with open(temporary, "wb") as stream:
                yield stream
            _copy_mode(path, temporary)
            os.replace(temporary, path)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            _name_full_disk(error, path)
            raise


def _name_full_disk(error: BaseException, path: Path) -> None:
    """Add the file that there is no room for; writing to a stream does not tell it."""
    if (
        isinstance(error, OSError)
        and error.errno in FULL_DISK
        and error.filename is None
    ):
        error.filename = str(path)


def _create_beside(path: Path) -> Path:
    """An empty temporary file, with the mode of a new file unless it will get that of another."""
    # Names may have 255 bytes, and characters 4.
    temporary = path.with_name(f".{path.name[:40]}{temporary_suffix()}")
    mode = 0o600 if path.exists() else 0o666
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return temporary


def check_writable(path: PathLike) -> None:
    """Raise now if `replacing` could not write this file later."""
    if is_stream(path):
        return
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        # This raises for names that are too long, too.
        os.stat(target)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    try:
        _create_beside(target).unlink()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None


def check_suffix(path: PathLike, kind: str, suffixes: Collection[str]) -> None:
    """Raise if the name of a file promises another format than is written."""
    if Path(path).suffix not in suffixes and not is_stream(path):
        endings = ", ".join(suffix for suffix in suffixes if suffix)
        raise ValueError(f"the file of {kind} must end in {endings}: got {path}.")


def is_stream(path: PathLike) -> bool:
    """Whether a path is something that is written to, not replaced: a FIFO, a device, stdout."""
    folder = os.path.realpath(os.path.dirname(path) or ".")
    if folder == "/dev" or folder.startswith("/proc/"):
        # Such as /dev/stdout: it may be a regular file that others have open.
        return True
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _copy_mode(path: Path, temporary: Path) -> None:
    """Give the temporary file the mode and owner of the file that it replaces."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # Only root can give a file away.
    with suppress(PermissionError):
        os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def write_text(path: PathLike, content: str) -> Path:
    """Write a text file as UTF-8, by `replacing`."""
    with replacing(path) as stream:
        stream.write(content.encode("utf-8"))
    return Path(path)


_until_exit = ExitStack()


@cache
def temporary_folder() -> Path:
    """A temporary folder for the whole process, removed when it exits."""
    root = Path(tempfile.gettempdir())
    sweep(root)
    # It is held until the process ends, however it ends.
    folder = _until_exit.enter_context(held(lambda: _create_folder(root)))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _create_folder(root: Path) -> Path:
    folder = root / f".rankspace{temporary_suffix()}"
    folder.mkdir(mode=0o700)
    return folder
