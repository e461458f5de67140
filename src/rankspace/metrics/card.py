"""Cards: what a metric file says about where the metric comes from and what it was measured to do.

A card is a mapping of JSON values. `rankspace fit` and `tune` fill it with these keys, as far as
they know them:

- ``method``, ``parameters``, ``similarity``, ``measure``: what was learned, and for what;
- ``judged_on``, ``questions``: the measure before and after, with an interval, a row for all
  queries and one each for known and for new documents;
- ``n_items``, ``n_features``, ``n_queries``, ``n_judgments``, ``data_digest``: the data;
- ``rankspace``: the version; ``command``: without paths and addresses; ``date``: only that of
  ``SOURCE_DATE_EPOCH``, so that equal runs write equal files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .. import __version__

if TYPE_CHECKING:
    from ..relevance.relevance import Relevance

# Room for the tables of a report; the card of a file from elsewhere is no larger either.
MAX_CHARACTERS = 2**16


def card_text(card: Mapping[str, Any]) -> str:
    """A card as JSON with sorted keys; raises ValueError unless it can be one."""
    if not isinstance(card, Mapping):
        raise ValueError(f"card must be a mapping: got {type(card).__name__}.")
    try:
        text = json.dumps(dict(card), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"card must hold JSON values: {error}.") from error
    _check_size(text)
    return text


def checked_card_text(text: str) -> str:
    """The card of a file, which anybody may have written, as `card_text` writes it."""
    _check_size(text)
    try:
        card = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"card must be JSON: {error}.") from error
    return card_text(card)


def _check_size(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"card must have at most {MAX_CHARACTERS} characters as JSON: got {len(text)}. Leave "
            "out what is long."
        )


def data_facts(X: Any, relevance: Relevance, queries: Any = None) -> dict[str, Any]:
    """What a card says about the data, the version and the date.

    Parameters
    ----------
    X : path or array-like of shape (n_items, n_features)
        Items; read in blocks if they are memory-mapped.
    relevance : Relevance
        Judgments or class labels.
    queries : path or array-like of shape (n_queries, n_features), optional
        Queries, unless they are items.

    Returns
    -------
    dict
    """
    import numpy as np

    from .._engine.digest import digest
    from .._engine.vectors import as_rows

    X = as_rows(X)
    if queries is not None:
        queries = as_rows(queries, "queries")
    n_items, n_features = X.shape
    return {
        "rankspace": __version__,
        "n_items": int(n_items),
        "n_features": int(n_features),
        "n_queries": int(relevance.n_queries),
        # An item without a grade is a candidate that nobody judged.
        "n_judgments": int(np.count_nonzero(~np.isnan(relevance.grades))),
        "data_digest": digest("data", [X, judgment_fields(relevance), queries]),
        **_date(),
    }


def judgment_fields(relevance: Relevance) -> list[Any]:
    """All of the judgments but how queries and items are named and were counted."""
    return [
        getattr(relevance, field.name)
        for field in fields(relevance)
        if field.name not in ("query_ids", "item_ids", "n_items_is_open")
    ]


def _date() -> dict[str, str]:
    """The date of a reproducible build, if one is set."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        return {}
    try:
        date = datetime.fromtimestamp(int(seconds), UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be seconds since 1970: got {seconds!r}. Unset it."
        ) from error
    return {"date": date.isoformat()}
