"""Relevance from what users pass, and checks that it fits the vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._engine.vectors import stored_names
from .joins import check_has_rows
from .relevance import Relevance
from .rows import as_ids


def as_relevance(
    judgments: Any,
    n_items: int,
    separate_queries: bool,
    item_ids: Any = None,
    query_ids: Any = None,
) -> Relevance:
    """Relevance from a Relevance, class labels, lists of relevant rows, or judgments by id."""
    if isinstance(judgments, Relevance):
        return judgments.for_items(n_items, separate_queries)
    if judgments is None:
        raise TypeError(
            "judgments must be a Relevance, lists of relevant rows, a mapping or dataframe by id, "
            "or class labels: got None."
        )
    if is_by_id(judgments):
        missing = [
            name
            for name, ids in (("item_ids", item_ids), ("query_ids", query_ids))
            if ids is None
        ]
        if missing:
            raise ValueError(
                "judgments by id need item_ids and query_ids, the ids of the rows of X and of "
                f"queries, unless these are files or tables that hold them: {missing[0]} is "
                "missing. Judgments by row number are lists of relevant rows."
            )
        return Relevance.from_qrels(judgments, item_ids=item_ids, query_ids=query_ids)
    if not separate_queries:
        return Relevance.from_labels(judgments)
    if not all(np.ndim(row) == 1 or isinstance(row, Mapping) for row in judgments):
        raise ValueError(
            "with separate queries, relevance must be a Relevance or a list of the relevant rows "
            "of X for each query: got one value for each."
        )
    return Relevance.from_lists(judgments, n_items=n_items)


def is_by_id(judgments: Any) -> bool:
    """Whether judgments are a mapping or a dataframe, which name queries and items by ids."""
    return isinstance(judgments, Mapping) or hasattr(judgments, "columns")


def row_ids(X: Any, given: Any, kind: str) -> Any:
    """Ids of the rows of X: the given ones, which must be those that X stores, if it does."""
    stored = stored_names(X)
    if given is None or stored is None:
        return stored if given is None else given
    _check_same_order(kind, as_ids(given), stored, f"{kind}_ids")
    return given


def check_stored_ids(relevance: Relevance, kind: str, X: Any) -> None:
    """Raise if X stores other ids of its rows than the judgments have, or in another order."""
    ids = relevance.query_ids if kind == "query" else relevance.item_ids
    if ids is None or kind in relevance.known_by_name:
        return
    stored = stored_names(X)
    if stored is not None:
        _check_same_order(kind, ids, stored, f"{kind}_ids of the judgments")


def check_stored_order(relevance: Any, X: Any, queries: Any) -> None:
    """Raise if judgments have other ids of items or queries than these store beside them."""
    if isinstance(relevance, Relevance):
        check_stored_ids(relevance, "item", X)
        check_stored_ids(relevance, "query", queries)


def _check_same_order(kind: str, ids: Any, stored: list[str], name: str) -> None:
    if len(ids) != len(stored):
        # The check of shapes says so.
        return
    differ = np.flatnonzero(ids != as_ids(stored))
    if differ.size:
        row = int(differ[0])
        raise ValueError(
            f"{name} must be those that are stored beside the vectors, in their order: row {row} "
            f"is {stored[row]!r} there, and {ids[row]!r} here. Pass the {kind} ids that are stored "
            "to Relevance.from_qrels, or the vectors alone as an array."
        )


def check_items(relevance: Relevance, X: Any) -> None:
    """Raise unless the relevance has an item for each row of ``X``."""
    if relevance.n_items != X.shape[0]:
        raise ValueError(
            f"relevance must have one item for each row of X: got {relevance.n_items} items and "
            f"{X.shape[0]} rows."
        )
    way_out = "Pass item_ids, the ids of these rows, to Relevance.from_qrels."
    check_has_rows(relevance, "item", "the rows of X", way_out)


def check_queries_are_rows(relevance: Relevance, advice: str) -> None:
    """Raise unless all queries are rows of ``X``; say how to pass others."""
    if not relevance.queries_are_rows:
        raise ValueError(
            f"relevance has {relevance.n_queries} queries that are not rows of X. {advice}"
        )


def check_query_vectors(relevance: Relevance, queries: Any, n_features: int) -> None:
    """Raise unless the relevance has a query for each row of ``queries``, as wide as ``X``."""
    expected = (relevance.n_queries, n_features)
    if queries.shape != expected:
        raise ValueError(
            "queries must have one row for each query of relevance and one column for each "
            f"feature of X, so shape {expected}: got {queries.shape}."
        )
    way_out = "Pass query_ids, the ids of these rows, to Relevance.from_qrels."
    check_has_rows(relevance, "query", "the rows of queries", way_out)
