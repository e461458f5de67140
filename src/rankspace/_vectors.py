"""Matrices of vectors in .npy files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._text import PathLike


def read_vectors(path: PathLike, n_rows: int | None = None) -> Any:
    """Map a .npy file that holds a finite matrix of numbers; half precision is read as single.

    Parameters
    ----------
    path : path
        The file. Objects in it are never unpickled.
    n_rows : int, optional
        How many rows it must have.

    Returns
    -------
    ndarray
    """
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} must be a .npy file with a matrix of numbers, and is none or is cut short. "
            "Write it with numpy.save."
        ) from error
    if not isinstance(vectors, np.ndarray) or vectors.dtype.kind not in "fiu":
        raise ValueError(f"{path} must hold real numbers: got {getattr(vectors, 'dtype', 'none')}.")
    if vectors.ndim != 2:
        raise ValueError(f"{path} must hold a matrix, a row a vector: got shape {vectors.shape}.")
    if n_rows is not None and len(vectors) != n_rows:
        raise ValueError(
            f"{path} must have one row for each of {n_rows} lines of the texts: got shape "
            f"{vectors.shape}."
        )
    for start in range(0, len(vectors), 8192):
        if not np.isfinite(vectors[start : start + 8192]).all():
            raise ValueError(f"{path} must hold finite numbers: got NaN or infinity.")
    return vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors
