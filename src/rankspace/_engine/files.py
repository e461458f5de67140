"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .text import PathLike


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Write beside a file's place and move it there at the end, so that no one sees half of it."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} does not exist: create it first."
        )
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_text(path: PathLike, content: str) -> Path:
    """Write text as UTF-8, whole or not at all."""
    with replacing(path) as stream:
        stream.write(content.encode("utf-8"))
    return Path(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
