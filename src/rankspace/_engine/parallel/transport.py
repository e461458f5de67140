"""Objects on their way to workers: arrays that are mapped from a file travel as its name."""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import numpy as np


class MappedFile(NamedTuple):
    """Where a matrix lies in a file."""

    path: str
    dtype: Any
    shape: tuple[int, ...]
    offset: int

    def open(self) -> np.ndarray:
        """Map it."""
        try:
            found = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.path} must be there under the same name on every worker: put it on a file "
                "system that all of them see."
            ) from error
        return found


def mapped_file(array: np.ndarray) -> MappedFile | None:
    """The file that a contiguous array is mapped from, or None if it lies in memory."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    # Views of a memmap are memmaps too, and have its file name but not their own offset.
    while isinstance(base, np.memmap) and isinstance(base.base, np.memmap):
        base = base.base
    if (
        not isinstance(base, np.memmap)
        or not array.flags.c_contiguous
        or base.filename is None
    ):
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
    """Something pickled with arrays out of band, and mapped arrays by name; see `pickle` 5."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _opened, self._packed()

    def _packed(self) -> tuple[bytes, list[pickle.PickleBuffer]]:
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        _Pickler(stream, 5, buffer_callback=buffers.append).dump(self.content)
        return stream.getvalue(), buffers

    @property
    def nbytes(self) -> int:
        """What it weighs on its way."""
        content, buffers = self._packed()
        return len(content) + sum(buffer.raw().nbytes for buffer in buffers)

    def __sizeof__(self) -> int:
        return self.nbytes


def _opened(content: bytes, buffers: list[Any]) -> Payload:
    return Payload(pickle.loads(content, buffers=buffers))
