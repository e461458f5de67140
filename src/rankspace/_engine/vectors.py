"""Matrices of vectors in files; those of .npy are mapped, not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .text import PathLike
from .vector_files import SUFFIXES, read_matrix

BLOCK = 8192  # rows


def read_vectors(path: PathLike, n_rows: int | None = None) -> Any:
    """Map or read a file that holds a finite matrix of numbers; half precision is read as single.

    Parameters
    ----------
    path : path
        A .npy file, which is mapped, or a .npz, .parquet or .safetensors file. Objects in it are
        never unpickled.
    n_rows : int, optional
        How many rows it must have.

    Returns
    -------
    ndarray
    """
    vectors = _map(path)
    if n_rows is not None and len(vectors) != n_rows:
        raise ValueError(
            f"{path} must have one row for each of {n_rows} lines of the texts: got shape "
            f"{vectors.shape}."
        )
    for start in range(0, len(vectors), BLOCK):
        _check_finite(vectors[start : start + BLOCK], path)
    return vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors


class VectorBlocks:
    """Rows of an array or of a file, a block at a time.

    A .npy file is mapped anew for each block, so that a process never holds more of it than that;
    other files are read as a whole.

    Parameters
    ----------
    vectors : path or array-like of shape (n_rows, n_features)
        A .npy file, or the vectors themselves. Half precision is read as single.
    size : int, default=8192
        Rows of a block.

    Examples
    --------
    >>> from rankspace._engine.vectors import VectorBlocks
    >>> [len(block) for block in VectorBlocks([[1.0], [2.0], [3.0]], size=2)]
    [2, 1]
    """

    def __init__(self, vectors: Any, size: int = BLOCK) -> None:
        if size < 1:
            raise ValueError(f"block_size must be at least 1 row: got {size}.")
        self.path = vectors if isinstance(vectors, str | os.PathLike) else None
        self.size = size
        streamed = self.path is not None and Path(self.path).suffix == ".npy"
        whole = vectors if self.path is None else None if streamed else _map(self.path)
        self._vectors = None if whole is None else _matrix(whole)
        shape = self._open().shape
        if 0 in shape:
            raise ValueError(
                f"{self.name} must hold at least one vector: got shape {shape}."
            )
        self.n_rows, self.n_features = shape

    @property
    def name(self) -> str:
        """What errors call it."""
        return "vectors" if self.path is None else str(self.path)

    @property
    def dtype(self) -> Any:
        """The floats that rows are read as."""
        stored = self._open().dtype
        return np.dtype(
            np.float32 if stored in (np.float16, np.float32) else np.float64
        )

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.n_rows, self.size):
            yield self._read(slice(start, start + self.size))

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """At most ``n`` rows drawn at random, in their order."""
        chosen = np.random.default_rng(seed).permutation(self.n_rows)[:n]
        return self._read(np.sort(chosen))

    def _open(self) -> np.ndarray:
        return _map(self.path) if self._vectors is None else self._vectors  # type: ignore[arg-type]

    def _read(self, rows: Any) -> np.ndarray:
        block = np.array(self._open()[rows], dtype=self.dtype, order="C")
        _check_finite(block, self.name)
        return block


def _matrix(values: Any) -> np.ndarray:
    matrix = np.asarray(values)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise ValueError(
            "vectors must be a matrix of real numbers, a row a vector: got "
            f"{matrix.dtype} of shape {matrix.shape}."
        )
    return matrix


def _check_finite(block: np.ndarray, name: Any) -> None:
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must hold finite numbers: got NaN or infinity.")


def _map(path: PathLike) -> np.ndarray:
    """The matrix of a file, mapped if it is a .npy."""
    kind = Path(path).suffix
    if kind not in SUFFIXES:
        raise ValueError(
            f"vectors must be in a file of {', '.join(SUFFIXES)}: got {path}."
        )
    vectors = _map_npy(path) if kind == ".npy" else read_matrix(path)
    if not isinstance(vectors, np.ndarray) or vectors.dtype.kind not in "fiu":
        raise ValueError(
            f"{path} must hold real numbers: got {getattr(vectors, 'dtype', 'none')}."
        )
    if vectors.ndim != 2:
        raise ValueError(
            f"{path} must hold a matrix, a row a vector: got shape {vectors.shape}."
        )
    return vectors


def _map_npy(path: PathLike) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} must be a .npy file with a matrix of numbers, and is none or is cut short. "
            "Write it with numpy.save."
        ) from error
