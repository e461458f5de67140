"""Which items tell a good metric from a bad one: those judged, and those queries come across."""

from __future__ import annotations

from typing import Any

import numpy as np

from .relevance import Relevance
from .search import Index

UNJUDGED = 2000  # items beside the judged ones
DEEPER = 10


def narrowed(X: Any, relevance: Relevance, queries: Any) -> tuple[Any, Relevance]:
    """All judged items and the nearest of the others, with the judgments of these.

    Nothing is left out if the queries are items themselves.
    """
    judged = np.unique(relevance.items)
    if queries is None or judged.size + UNJUDGED >= relevance.n_items:
        return X, relevance
    others = nearest_items(Index(X), queries, judged, UNJUDGED)
    items = np.sort(np.concatenate((judged, others)))
    return X[items], relevance._take_items(items)


def nearest_items(index: Index, queries: Any, but: np.ndarray, most: int) -> np.ndarray:
    """The nearest items of all queries, then the second of all, and so on, but for some."""
    depth = min(len(index), DEEPER + 4 * most // len(queries))  # for lists overlap
    in_turn = index.rank(queries, depth).items.reshape(-1, depth).T.ravel()
    in_turn = in_turn[~np.isin(in_turn, but)]
    return in_turn[np.sort(np.unique(in_turn, return_index=True)[1])][:most]
