"""The data folder: where files are found, downloads, and checks of what was read."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ._origins import describe_origins, list_origins

VARIABLE = "RANKSPACE_DATA"
TIMEOUT_SECONDS = 20.0

T = TypeVar("T")


def cache_folder() -> Path:
    """The folder for downloads, which need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rankspace"


def data_folder() -> Path:
    """The folder that RANKSPACE_DATA names, or else the cache folder."""
    folder = os.environ.get(VARIABLE)
    if folder:
        return Path(folder).expanduser()
    return cache_folder()


def has_files(files: Sequence[str]) -> bool:
    """Whether all these files are in the data folder."""
    return not _missing(files)


def locate(name: str, files: Sequence[str]) -> list[Path]:
    """Paths of the files of a data set in the data folder.

    Raises FileNotFoundError if one is missing.
    """
    if _missing(files):
        raise _not_found(name, files)
    return [data_folder() / file for file in files]


def download(name: str, files: Sequence[str], fetch: Callable[[Path], T]) -> T:
    """Call a fetcher of scikit-learn with a folder for its files."""
    home = cache_folder() / "scikit-learn"
    try:
        with _short_timeout(), warnings.catch_warnings():
            # scikit-learn warns before it retries; the error below says enough.
            warnings.simplefilter("ignore")
            return fetch(home)
    except (OSError, HTTPException) as error:
        raise _not_found(name, files, f" The download failed: {error}.") from error


def _missing(files: Sequence[str]) -> list[str]:
    folder = data_folder()
    return [file for file in files if not (folder / file).exists()]


def _not_found(name: str, files: Sequence[str], cause: str = "") -> FileNotFoundError:
    missing = _missing(files)
    return FileNotFoundError(
        f"the data set {name} needs these files under {data_folder()}: "
        f"{', '.join(missing)}.{cause} "
        f"Put them there, or set {VARIABLE} to a folder that holds them. {_origins(missing)}"
    )


def _origins(missing: Sequence[str]) -> str:
    """What a download would fetch; and that there is none if a file has no address."""
    if all(file in list_origins() and list_origins()[file].address for file in missing):
        folder = missing[0].partition("/")[0]
        sentence = f"'rankspace datasets --download {folder}' would download"
    else:
        sentence = "Not all of them can be downloaded:"
    return f"{sentence} {describe_origins(missing)}."


@contextmanager
def _short_timeout() -> Iterator[None]:
    """Let a silent server fail after seconds, not minutes."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


# ---------------------------------------------------------------------- checks


def check_equal(name: str, what: str, expected: Any, got: Any) -> None:
    """Raise unless a data set has its published size."""
    if expected != got:
        raise ValueError(
            f"the {what} of {name} must be {expected}: got {got}. A file is damaged or another "
            "version of the data set: put the original in its place."
        )


def class_counts(labels: np.ndarray) -> list[int]:
    """Number of rows of each class, in the order of the sorted classes."""
    return np.unique(labels, return_counts=True)[1].tolist()
