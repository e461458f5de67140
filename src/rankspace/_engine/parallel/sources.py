"""What ``X`` may be beside an array: a .npy file, a folder of them, or a dask.array."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .backend import scratch_folder

ROWS = 8192  # copied at a time


def as_rows(X: Any) -> Any:
    """A matrix as it is, or mapped from its file; what is in several parts is joined in one file.

    Parts are .npy files of a folder in the order of their names, or the chunks of a dask.array.
    """
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        return _joined_folder(path) if path.is_dir() else _mapped(path)
    if hasattr(X, "__dask_graph__") and hasattr(X, "chunks"):
        return _joined_chunks(X)
    return X


def _mapped(path: Path) -> np.ndarray:
    if path.suffix != ".npy":
        raise ValueError(
            f"X must be an array, a .npy file, a folder of .npy files or a dask.array: got {path}."
        )
    return np.load(path, mmap_mode="r", allow_pickle=False)


def shard_files(folder: Path) -> list[Path]:
    """The .npy files of a folder, by name."""
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise ValueError(
            f"{folder} must hold .npy files, a part of the rows each: it has none."
        )
    return files


def _joined_folder(folder: Path) -> np.ndarray:
    files = shard_files(folder)
    parts = [_mapped(path) for path in files]
    if len(parts) == 1:
        return parts[0]
    for path, part in zip(files, parts, strict=True):
        if (
            part.ndim != 2
            or part.shape[1] != parts[0].shape[1]
            or part.dtype != parts[0].dtype
        ):
            raise ValueError(
                f"parts of {folder} must be matrices of one width and type: {files[0].name} has "
                f"{parts[0].shape} of {parts[0].dtype}, {path.name} {part.shape} of {part.dtype}."
            )
    known = [
        (str(path.resolve()), os.stat(path).st_size, os.stat(path).st_mtime_ns)
        for path in files
    ]
    shape = (sum(map(len, parts)), parts[0].shape[1])
    name = hashlib.blake2b(repr(known).encode(), digest_size=12).hexdigest()
    rows = (part[at : at + ROWS] for part in parts for at in range(0, len(part), ROWS))
    return _written(name, rows, shape, parts[0].dtype)


def _joined_chunks(X: Any) -> np.ndarray:
    if X.ndim != 2 or any(np.isnan(size) for size in X.shape):
        raise ValueError(
            f"X must be a matrix of known shape: got a dask.array of shape {X.shape}. Call "
            "compute_chunk_sizes() first."
        )
    X = X.rechunk({1: -1})
    rows = (np.asarray(X.blocks[i, 0].compute()) for i in range(X.numblocks[0]))
    return _written(f"chunks-{X.name}", rows, X.shape, X.dtype)


def _written(
    name: str, rows: Iterator[np.ndarray], shape: Any, dtype: Any
) -> np.ndarray:
    """A matrix in the scratch folder, mapped; written unless it is there."""
    path = scratch_folder() / f"{name}.npy"
    if not path.exists():
        beside = path.with_suffix(".part")
        joined = np.lib.format.open_memmap(beside, "w+", dtype, shape)
        at = 0
        for part in rows:
            joined[at : at + len(part)] = part
            at += len(part)
        joined.flush()
        del joined
        beside.rename(path)
    return _mapped(path)
