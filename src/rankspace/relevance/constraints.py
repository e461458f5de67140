"""Judgments from constraints between rows of ``X``: similar and dissimilar pairs, and triplets."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .rows import Rows, rows_from_triples


def rows_from_pairs(
    pairs: Any, y: Any, n_items: int, symmetric: bool
) -> tuple[Rows, np.ndarray]:
    """One row of judgments for each row of ``X`` in a pair, and these rows of ``X``."""
    pairs = _index_table(pairs, "pairs", 2, n_items)
    similar = _signs(y, len(pairs)) > 0
    if symmetric:
        pairs = np.concatenate((pairs, pairs[:, ::-1]))
        similar = np.concatenate((similar, similar))
    _check_consistent(pairs, similar)
    query_items, queries = np.unique(pairs[:, 0], return_inverse=True)
    rows = rows_from_triples(
        queries, pairs[:, 1], similar.astype(float), query_items.size, n_items
    )
    return rows, query_items


def rows_from_triplets(triplets: Any, n_items: int) -> tuple[Rows, np.ndarray]:
    """One row of judgments for each triplet, and the row of ``X`` that is its query."""
    triplets = _index_table(triplets, "triplets", 3, n_items)
    n = len(triplets)
    items = triplets[:, 1:].ravel()
    grades = np.tile([1.0, 0.0], n)
    rows = rows_from_triples(np.arange(n).repeat(2), items, grades, n, n_items)
    return rows, triplets[:, 0]


def _index_table(values: Any, name: str, width: int, n_items: int) -> np.ndarray:
    """Rows of ``X`` in a table of pairs or triplets, in which no row is beside itself."""
    if not isinstance(n_items, Integral):
        raise ValueError(
            f"n_items must be the number of rows of X: got {type(n_items).__name__}."
        )
    table = np.asarray(values)
    if table.ndim != 2 or table.shape[1] != width or table.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be row numbers of X in a table of {width} columns: got {table.dtype} of "
            f"shape {table.shape}."
        )
    if not len(table):
        raise ValueError(f"{name} must not be empty: got 0 rows.")
    if table.min() < 0 or table.max() >= n_items:
        raise ValueError(
            f"{name} must hold rows of X, from 0 to {n_items - 1}: got {table.min()} to "
            f"{table.max()}. Pass n_items=len(X)."
        )
    ordered = np.sort(table, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        at = np.flatnonzero(repeated)[0]
        raise ValueError(
            f"{name} must name different rows of X: got {table[at].tolist()} at row {at}."
        )
    return table.astype(np.int64)


def _signs(y: Any, n_pairs: int) -> np.ndarray:
    """The signs of pairs: 1 for similar, -1 for dissimilar."""
    signs = np.asarray(y)
    if signs.shape != (n_pairs,):
        raise ValueError(
            f"y must have one entry for each of {n_pairs} pairs: got shape {signs.shape}."
        )
    wrong = ~np.isin(signs, (-1, 1)) | (signs.dtype == bool)
    if wrong.any():
        raise ValueError(
            f"y must be 1 for similar and -1 for dissimilar pairs: got {signs[wrong][0]}. Of 0 and "
            "1 pass 2 * y - 1."
        )
    return signs


def _check_consistent(pairs: np.ndarray, similar: np.ndarray) -> None:
    """Raise if a pair is both similar and dissimilar."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    same = (np.diff(pairs[order], axis=0) == 0).all(axis=1)
    conflicts = np.flatnonzero(same & (similar[order][1:] != similar[order][:-1]))
    if conflicts.size:
        pair = pairs[order[conflicts[0]]].tolist()
        raise ValueError(
            f"a pair must have one sign: {pair} has 1 and -1. Leave out one, or count an order of "
            "its own for (a, b) and (b, a) by symmetric=False."
        )
