"""Text files, plain or gzipped, whose faults are reported with file and line."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PathLike = str | os.PathLike[str]


def open_bytes(path: PathLike) -> IO[bytes]:
    """Open a file for reading, through gzip if its name ends in .gz."""
    return gzip.open(path, "rb") if Path(path).suffix == ".gz" else open(path, "rb")  # type: ignore[return-value]


def read_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank."""
    number = 0
    with open_bytes(path) as stream:
        try:
            for number, line in enumerate(stream, 1):
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise cut_short(path, number, error) from error
        except UnicodeDecodeError as error:
            raise malformed(
                path, number, f"is no UTF-8 text ({error.reason})"
            ) from error


def malformed(path: PathLike, number: int, what: str) -> ValueError:
    """The error for a line that breaks the format."""
    return ValueError(f"{path}, line {number} {what}.")


def cut_short(path: PathLike, number: int, error: Exception) -> ValueError:
    """The error for a compressed file that ends before its end."""
    return ValueError(
        f"{path} is damaged or cut short after line {number} ({error}). Fetch the file again."
    )
