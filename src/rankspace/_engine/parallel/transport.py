"""Pickling objects for workers: memory-mapped arrays are sent as the name of their file."""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import numpy as np


class MappedFile(NamedTuple):
    """Path and position of a memory-mapped array in its file."""

    path: str
    dtype: Any
    shape: tuple[int, ...]
    offset: int

    def open(self) -> np.ndarray:
        """Memory-map the array."""
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.path} must exist under the same name on every worker: put it on a file "
                "system that all of them share."
            ) from error


def mapped_file(array: np.ndarray) -> MappedFile | None:
    """The file that a contiguous array is memory-mapped from, or None if it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    # Views of a memmap are memmaps too, and have its file name but not their own offset.
    while isinstance(base, np.memmap) and isinstance(base.base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None:
        return None
    if not array.flags.c_contiguous:
        return None
    offset = base.offset + array.ctypes.data - base.ctypes.data
    return MappedFile(str(base.filename), array.dtype.str, array.shape, int(offset))


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.size:
            mapped = mapped_file(obj)
            if mapped is not None:
                return mapped.open, ()
        return NotImplemented


class Payload:
    """An object to be pickled with its arrays out of band (protocol 5), mapped arrays by name."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickle, self._pickle()

    def _pickle(self) -> tuple[bytes, list[pickle.PickleBuffer]]:
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        _Pickler(stream, 5, buffer_callback=buffers.append).dump(self.content)
        return stream.getvalue(), buffers

    @property
    def nbytes(self) -> int:
        """Size of the pickled object and its arrays."""
        content, buffers = self._pickle()
        return len(content) + sum(buffer.raw().nbytes for buffer in buffers)

    def __sizeof__(self) -> int:
        return self.nbytes


def _unpickle(content: bytes, buffers: list[Any]) -> Payload:
    return Payload(pickle.loads(content, buffers=buffers))
