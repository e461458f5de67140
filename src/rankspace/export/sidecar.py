"""Ids and payloads beside an index file that holds only numbers.

The index stores keys: the row number, and in the upper half a number that names the file beside it.
So an index never meets ids that were written for another one, whatever happens between the two.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.files import PathLike, malformed, read_lines, replacing
from .items import Items, as_json

ROW_BITS = 32
ROWS = (1 << ROW_BITS) - 1


class Sidecar:
    """Ids and payloads of the items of an index file.

    Parameters
    ----------
    path : path
        The index file.
    key : int
        Any key of the index.

    Attributes
    ----------
    ids : list of str
        The ids of the items, by row.
    payload : list of dict or None
        The payloads of the items, by row.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import read_faiss, to_faiss
    >>> X = np.array([[0.0, 9.0], [1.0, 0.0], [3.0, 5.0]], dtype=np.float32)
    >>> _ = to_faiss(LinearMetric([[1.0, 0.0]]), X, "my.faiss", ids=["a", "b", "c"])
    >>> index, items = read_faiss("my.faiss")
    >>> items.names(index.search(X[:1], 3)[1])
    [['a', 'b', 'c']]
    """

    def __init__(self, path: PathLike, key: int) -> None:
        self._generation = int(key) >> ROW_BITS
        file = _file(Path(path), self._generation)
        records = [_record(file, *line) for line in read_lines(file)]
        self.ids = [record["id"] for record in records]
        self.payload = None
        if any("payload" in record for record in records):
            self.payload = [record.get("payload", {}) for record in records]

    def row(self, key: int) -> int:
        """The row of an item.

        Parameters
        ----------
        key : int
            Its key in the index.

        Returns
        -------
        int
        """
        generation, row = divmod(int(key), ROWS + 1)
        if generation != self._generation or row >= len(self.ids):
            raise ValueError(f"key must be one of this index: got {key}.")
        return row

    def names(self, keys: Any) -> list[list[str]]:
        """The ids of found items.

        Parameters
        ----------
        keys : array-like of int of shape (n_queries, k)
            What the index found; -1 for no item is left out.

        Returns
        -------
        list of list of str
        """
        return [
            [self.ids[self.row(key)] for key in found if key != -1]
            for found in np.asarray(keys).tolist()
        ]


def read_beside(read: Callable[[], tuple[Any, Sidecar]]) -> tuple[Any, Sidecar]:
    """Read an index and its ids, once more if both are replaced in between."""
    try:
        return read()
    except FileNotFoundError:
        return read()


class NamedItems:
    """Ids and payloads to be written beside an index file."""

    def __init__(self, items: Items, path: PathLike) -> None:
        self._items = items
        self._path = Path(path)
        self._generation = self._digest()
        self.first_key = self._generation << ROW_BITS

    def write(self) -> None:
        """Write the file of this index, beside that of an earlier one."""
        with replacing(_file(self._path, self._generation)) as stream:
            for line in self._lines():
                stream.write(line)

    def remove_others(self) -> None:
        """Remove the files of earlier indexes."""
        kept = _file(self._path, self._generation).name
        name = re.compile(re.escape(self._path.name) + r"\.ids-[0-9a-f]{8}\.jsonl")
        for file in self._path.absolute().parent.iterdir():
            if file.name != kept and name.fullmatch(file.name):
                file.unlink(missing_ok=True)

    def _digest(self) -> int:
        """31 bits of a checksum, as keys are signed."""
        checksum = 0
        for line in self._lines():
            checksum = zlib.crc32(line, checksum)
        return checksum & 0x7FFFFFFF

    def _lines(self) -> Iterator[bytes]:
        items = self._items
        for row in range(items.n_rows):
            record: dict[str, Any] = {"id": str(row)}
            if items.ids is not None:
                record["id"] = items.ids[row]
            if items.payload is not None:
                record["payload"] = dict(items.payload[row])
            yield f"{as_json(record)}\n".encode()


def _file(path: Path, generation: int) -> Path:
    return path.with_name(f"{path.name}.ids-{generation:08x}.jsonl")


def _record(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if isinstance(record["id"], str):
            return record
    except (ValueError, RecursionError, KeyError, TypeError):
        pass
    raise malformed(file, number, "must be an object with an id")
