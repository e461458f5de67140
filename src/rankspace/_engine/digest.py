"""Digests: whether two inputs are equal, without keeping either; of bounded memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from .similarity import is_sparse

BLOCK_BYTES = 2**24  # of an array are hashed at a time


def digest(name: str, value: Any) -> str:
    """A digest of a number, text, dense or sparse array, or list of these."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in _parts(name, value):
        hashed.update(part)
    return hashed.hexdigest()


def _parts(name: str, value: Any) -> Iterator[bytes]:
    """What is hashed of a value: its kind, and its content in blocks of bounded size."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        yield f"list of {len(value)};".encode()
        for item in value:
            yield from _parts(name, item)
    elif isinstance(value, Real):
        yield f"number {float(value).hex()};".encode()
    elif value is None or isinstance(value, str | os.PathLike):
        yield f"{value!r};".encode()
    elif is_sparse(value):
        rows = value.tocsr()
        yield from _parts(name, [value.shape, rows.data, rows.indices, rows.indptr])
    else:
        yield from _array_parts(name, np.asarray(value))


def _array_parts(name: str, array: np.ndarray) -> Iterator[bytes]:
    if array.dtype.hasobject:
        raise ValueError(
            f"{name} must be a number, a string or an array of numbers: got {array.dtype} of "
            f"shape {array.shape}."
        )
    yield f"array {array.dtype.str} {array.shape};".encode()
    rows = np.atleast_1d(array)
    step = max(1, BLOCK_BYTES // max(1, rows[:1].nbytes))
    for start in range(0, len(rows), step):
        yield rows[start : start + step].tobytes()
