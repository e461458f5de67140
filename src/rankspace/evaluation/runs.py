"""Runs of other rankers, such as lexical search, matched to the vectors of a search task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from ..relevance.joins import Side, join_error, row_names
from ..relevance.relevance import Relevance
from ..relevance.rows import as_ids, check_ids
from ..search.fusion import DEPTH, NORMALISATIONS, fusion_table
from ..search.ranking import Ranking
from .measures import parse_measure
from .search_task import SearchTask

VECTORS = "vectors"  # the name of the ranking by vectors among the runs
MEMORY = "memory"  # the run of past queries, which is made for each fold
LONGEST = 10 * DEPTH  # first entries of each list of a run that are kept


def check_fusion(task: SearchTask, normalise: str) -> SearchTask:
    """The task with lists that are long enough to fuse, if its values can be those of fusion."""
    check_choice(normalise, "normalise", NORMALISATIONS)
    _, cut = parse_measure(task.measure)
    if task.queries is None:
        raise ValueError(
            "runs need separate queries: here the items are the queries. Pass the queries' vectors "
            "as queries=...."
        )
    if not cut:
        raise ValueError(
            "runs need a measure of the first ranks, such as ndcg@10 or r@100: got "
            f"{task.measure!r}."
        )
    if not task.relevance.unlisted_is_irrelevant:
        raise ValueError(
            "runs need judgments where unjudged items count as irrelevant: here they are ignored."
        )
    return replace(task, depth=max(DEPTH, cut))


def check_runs(
    runs: Any,
    task: SearchTask,
    is_judged: np.ndarray,
    item_ids: Any = None,
    query_ids: Any = None,
) -> dict[str, Ranking | None]:
    """The list of each query of the task in each run; None for the memory.

    ``is_judged`` is a mask of the task's queries among all that were passed.
    """
    if not isinstance(runs, Mapping) or not runs:
        raise ValueError(
            "runs must be a mapping of names to rankings, such as {'bm25': ranking}: got "
            f"{'none' if isinstance(runs, Mapping) else type(runs).__name__}."
        )
    items = _item_names(task.relevance, item_ids)
    queries = _query_names(task.relevance, is_judged, query_ids)
    checked: dict[str, Ranking | None] = {}
    for name, run in runs.items():
        if not isinstance(name, str) or name == VECTORS:
            raise ValueError(
                f"runs must have names other than {VECTORS!r}, which is the ranking by the "
                f"vectors themselves: got {name!r}."
            )
        checked[name] = None
        if not (isinstance(run, str) and run == MEMORY):
            checked[name] = _aligned(name, run, is_judged, queries, items)
    return checked


def _item_names(relevance: Relevance, item_ids: Any) -> np.ndarray:
    """Names of the items: those of the judgments, those given, or row numbers."""
    if relevance.item_ids is not None:
        return relevance.item_ids
    given = check_ids(item_ids, relevance.n_items, "item_ids")
    if given is not None:
        return given
    return as_ids(row_names(relevance.n_items))


def _query_names(
    relevance: Relevance, is_judged: np.ndarray, query_ids: Any
) -> np.ndarray:
    """Names of the task's queries: those of the judgments, those given, or row numbers."""
    if relevance.query_ids is not None:
        return relevance.query_ids
    if query_ids is not None:
        return as_ids(query_ids)[is_judged]
    return as_ids([str(row) for row in np.flatnonzero(is_judged)])


def _aligned(
    name: str, run: Any, is_judged: np.ndarray, queries: np.ndarray, items: np.ndarray
) -> Ranking:
    """The lists of a run with the numbers of the task."""
    ranking = _as_ranking(name, run)
    if ranking.query_ids is None:
        _check_size(name, "queries", ranking.n_queries, is_judged.size)
        ranking = replace(ranking.take_queries(is_judged), query_ids=queries)
    if ranking.item_ids is None:
        _check_size(name, "items", ranking.n_items, items.size)
        ranking = replace(ranking, item_ids=items)
    asked = np.isin(ranking.query_ids.astype(str), queries.astype(str))
    if not asked.any():
        ours = Side("the judged queries", queries.tolist())
        raise join_error(
            "query", ours, Side(f"the run {name!r}", _ids(ranking.query_ids))
        )
    ranking = ranking.take_queries(asked).top(LONGEST)
    if not ranking.items.size:
        raise ValueError(
            f"the run {name!r} must list an item for some judged query: all its lists are empty."
        )
    listed = Side(f"the run {name!r}", _ids(ranking.item_ids[np.unique(ranking.items)]))
    known = Side("the items", items.tolist())
    if not set(listed.ids) <= set(known.ids):
        raise join_error("item", listed, known)
    aligned = ranking.on_ids(queries, items)
    # Scores that are not finite, and items listed twice, stop here.
    fusion_table([aligned], items.size, ["none"], LONGEST)
    return aligned


def _as_ranking(name: str, run: Any) -> Ranking:
    """A run as a ranking: a file, scores by id, or a matrix of scores."""
    if isinstance(run, Ranking):
        return run
    if isinstance(run, Mapping):
        return Ranking.from_run(run)
    if isinstance(run, str | os.PathLike):
        # The room of data sets is beside this one, and reads files.
        raise TypeError(f"the run {name!r} must be read first: got the path {run}.")
    scores = np.asarray(run)
    if scores.ndim != 2 or scores.dtype.kind not in "fiu":
        raise ValueError(
            f"the run {name!r} must be a Ranking, a TREC run file, scores by query and item, or a "
            f"matrix of scores: got {type(run).__name__}."
        )
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise ValueError(
            f"scores of the run {name!r} must be finite, or -inf for items that are not listed: "
            "got NaN or infinity."
        )
    return Ranking.from_distances(-scores.astype(float))


def _check_size(name: str, what: str, got: int, expected: int) -> None:
    if got != expected:
        raise ValueError(
            f"the run {name!r} has no ids, so it must have as many {what} as were passed, "
            f"{expected}: got {got}."
        )


def _ids(ids: np.ndarray) -> list[str]:
    return [str(name) for name in ids]
