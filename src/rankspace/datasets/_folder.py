"""Where data files lie, and what to say when they do not."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar

from ._catalogue import CATALOGUE

VARIABLE = "RANKSPACE_DATA"
TIMEOUT_SECONDS = 20.0

T = TypeVar("T")


def cache_folder() -> Path:
    """The folder for downloads, which need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rankspace"


def data_folder() -> Path:
    """The folder that RANKSPACE_DATA names, else the cache folder."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder()


def has_files(name: str) -> bool:
    """Whether all files of a data set are in the data folder."""
    return not _missing(name)


def files_of(name: str, containing: str = "") -> list[Path]:
    """Paths of the files of a data set, or of those whose path contains a text.

    Raises FileNotFoundError if one is not there.
    """
    if _missing(name, containing):
        raise not_found(name, containing)
    return [
        data_folder() / file for file in CATALOGUE[name].files if containing in file
    ]


def not_found(name: str, containing: str = "", cause: str = "") -> FileNotFoundError:
    """The error for files that are neither in the data folder nor to be had."""
    missing = ", ".join(_missing(name, containing))
    cause = f" The download failed: {cause}." if cause else ""
    return FileNotFoundError(
        f"the data set {name} needs these files under {data_folder()}: {missing}.{cause} "
        f"Put them there, or set {VARIABLE} to a folder that holds them."
    )


def download(name: str, fetch: Callable[[Path], T]) -> T:
    """Call a fetcher of scikit-learn with a folder for its files."""
    home = cache_folder() / "scikit-learn"
    try:
        with _impatient(), warnings.catch_warnings():
            # scikit-learn warns before it tries again; the error below says enough.
            warnings.simplefilter("ignore")
            return fetch(home)
    except (OSError, HTTPException) as error:
        raise not_found(name, cause=str(error)) from error


def _missing(name: str, containing: str = "") -> list[str]:
    folder = data_folder()
    files = (file for file in CATALOGUE[name].files if containing in file)
    return [file for file in files if not (folder / file).exists()]


@contextmanager
def _impatient() -> Iterator[None]:
    """Let a silent server fail after seconds, not minutes."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
