"""Temporary files and folders that the next run removes if their process was killed."""

from __future__ import annotations

import os
import platform
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

fcntl: Any
try:
    import fcntl
except ImportError:
    # Windows has no such locks, and removes no file that is open.
    fcntl = None

ENDING = ".rankspace-temporary"
# Locks of other hosts may not be seen here. What they have not touched for a day is given up.
ABANDONED_SECONDS = 86_400


def temporary_suffix() -> str:
    """The end of a name that nobody else uses, and that `sweep` knows."""
    return f".{_host()}-{uuid4().hex}{ENDING}"


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


@contextmanager
def held(create: Callable[[], Path]) -> Iterator[Path]:
    """A new file or folder, locked as long as its process lives, or until the block ends."""
    path = create()
    handle = _lock(path)
    # Another process may have swept it before it was locked.
    while not path.exists():
        _close(handle)
        path = create()
        handle = _lock(path)
    try:
        yield path
    finally:
        _close(handle)


def _lock(path: Path) -> int | None:
    """Lock a path without waiting for others than a sweep; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    # Where a file system has no locks, nothing is swept either.
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders whose process is gone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(ENDING):
                with suppress(OSError):
                    _remove_abandoned(entry)


def _remove_abandoned(entry: os.DirEntry[str]) -> None:
    if not _may_be_abandoned(entry):
        return
    if fcntl is None:
        os.unlink(entry.path)
        return
    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # This fails while the process lives.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    finally:
        os.close(handle)


def _may_be_abandoned(entry: os.DirEntry[str]) -> bool:
    """Whether it is ours, and a lock would be seen or has no process any more."""
    found = entry.stat(follow_symlinks=False)
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return False
    if f".{_host()}-" in entry.name:
        return True
    untouched = time.time() - found.st_mtime
    return untouched > ABANDONED_SECONDS and entry.is_file(follow_symlinks=False)
