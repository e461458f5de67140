"""What rows of ``X`` say of queries: their weights, and the lists they are candidates of."""

from __future__ import annotations

from typing import Any

import numpy as np

from .relevance import Relevance


def query_weights(sample_weight: Any, relevance: Relevance) -> np.ndarray:
    """Weights of queries out of weights of rows."""
    weights = np.asarray(sample_weight, dtype=float)
    if relevance.has_candidate_lists or relevance.queries_are_rows:
        if weights.shape != (relevance.n_items,):
            raise ValueError(
                f"sample_weight must have one entry for each of {relevance.n_items} rows of X: got "
                f"shape {weights.shape}."
            )
        firsts = (
            relevance.items[relevance.indptr[:-1]]
            if relevance.has_candidate_lists
            else None
        )
        return weights[
            relevance.query_items if firsts is None else firsts[relevance.rows]
        ]
    return weights


def list_of_row(relevance: Relevance) -> np.ndarray:
    """The name of the list that each row of ``X`` is a candidate of."""
    name = np.empty(relevance.n_items, dtype=relevance.query_ids.dtype)
    lengths = np.diff(relevance.indptr)
    name[relevance.items] = relevance.query_ids[np.argsort(relevance.rows)].repeat(
        lengths
    )
    return name
