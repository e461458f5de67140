"""What every vector store is filled with: ids, mapped vectors and payloads, block by block."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._engine.vectors import check_no_overflow, stored_names
from ..metrics.embedding import EmbeddingMetric
from ..relevance.rows import check_ids
from .arrays import Progress, blocks_of, open_blocks


class ItemBlock(NamedTuple):
    """Consecutive items: their ids, or row numbers, mapped vectors, and payloads if any."""

    names: Any
    vectors: np.ndarray
    payloads: list[str] | None


class Items:
    """The items of an export, checked before anything is written.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric that maps the items.
    vectors : path or array-like of shape (n_items, n_features)
        The items.
    ids : array-like of str, or None
        Names of the items; None for those that their file or table holds, or row numbers.
    payload : sequence of dict, or None
        What is stored beside each item.
    block_size : int
        Rows per block.

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export.items import Items
    >>> items = Items(LinearMetric([[2.0, 0.0]]), [[1.0, 9.0]], ["a"], [{"text": "A"}], 8192)
    >>> list(items.blocks())
    [ItemBlock(names=['a'], vectors=array([[2.]], dtype=float32), payloads=['{"text": "A"}'])]
    """

    def __init__(
        self,
        metric: EmbeddingMetric,
        vectors: Any,
        ids: Any,
        payload: Any,
        block_size: int,
    ) -> None:
        self.metric = metric
        self._rows = open_blocks(metric, vectors, block_size)
        self.n_rows = self._rows.n_rows
        self.width = len(metric.item_map)
        ids = stored_names(vectors) if ids is None else ids
        self.ids = check_ids(ids, self.n_rows, "ids")
        self.payload = check_payload(payload, self.n_rows)
        for name in [] if self.ids is None else self.ids:
            check_text(name, "ids")

    def blocks(self, progress: Progress | None = None) -> Iterator[ItemBlock]:
        """Blocks of mapped items in single precision; reports progress after each."""
        for start, block in blocks_of(self.metric, self._rows, progress):
            rows = slice(start, start + len(block))
            names: Any = range(rows.start, rows.stop)
            if self.ids is not None:
                names = self.ids[rows].tolist()
            payloads = None
            if self.payload is not None:
                payloads = list(map(as_json, self.payload[rows]))
            vectors = self.metric.embed_items(block).astype(np.float32, copy=False)
            check_no_overflow(vectors, "items under the metric")
            yield ItemBlock(names, np.ascontiguousarray(vectors), payloads)


def check_payload(payload: Any, n_rows: int) -> Sequence[Mapping[str, Any]] | None:
    """The payload, if it has a JSON object for each item."""
    if payload is None:
        return None
    if not isinstance(payload, Sequence) or isinstance(payload, str | bytes):
        raise ValueError(
            f"payload must be a list with a dict for each item: got {type(payload).__name__}."
        )
    if len(payload) != n_rows:
        raise ValueError(f"payload must have {n_rows} entries: got {len(payload)}.")
    for row, record in enumerate(payload):
        _check_record(record, row)
    return payload


def _check_record(record: Any, row: int) -> None:
    if not isinstance(record, Mapping) or any(not isinstance(k, str) for k in record):
        raise ValueError(
            f"payload must hold dicts with names as keys: got {record!r:.60} in row {row}."
        )
    try:
        check_text(as_json(record), "payload")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"payload must hold what JSON can hold, in row {row}: {str(error).rstrip('.')}."
        ) from error


def as_json(record: Mapping[str, Any]) -> str:
    """A payload as JSON on one line."""
    return json.dumps(dict(record), ensure_ascii=False, allow_nan=False)


def check_text(text: str, name: str) -> None:
    """Raise if a text cannot be written as UTF-8, or would end at a NUL."""
    if "\0" in text or (not text.isprintable() and _has_surrogate(text)):
        raise ValueError(
            f"{name} must be text without NUL characters and lone surrogates: got {text!r:.60}."
        )


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
