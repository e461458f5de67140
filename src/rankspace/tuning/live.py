"""Tuning against a live index: what it can do, what it reads, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..evaluation.live_task import check_live_task
from ..evaluation.search_task import SearchTask
from ..learners.families import TOTAL_REGS, Family, families
from ..learners.hard_negatives import default_n_negatives, mining_depth
from ..search.live import LiveIndex, LiveSearch
from ..search.ranking import Ranking
from .parts import Corpus, Request
from .report import TuneReport

METHODS = ["query"]
N_QUESTIONS = 2  # folds of queries, and folds of queries with their documents


class LiveCorpus(Corpus):
    """Documents in a vector store, which is searched where it is."""

    search: LiveSearch

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Whether the corpus is a live index."""
        return isinstance(request.X, LiveIndex)

    def task(self) -> tuple[SearchTask, np.ndarray]:
        """The task, and a mask of its queries among all passed."""
        request = self.request
        check_live_options(
            request.methods,
            item_ids=request.item_ids,
            n_components=request.n_components,
            runs=request.runs,
        )
        task, is_judged = live_task(
            request.X,
            request.relevance,
            request.queries,
            request.similarity,
            request.measure,
            request.query_ids,
            request.seed,
        )
        index: Any = task.index()
        self.search = index
        return task, is_judged

    def families(self, task: SearchTask) -> list[Family]:
        """A map of the queries, whatever the similarity."""
        request = self.request
        return families(METHODS, task.similarity, task.measure, True, request.seed)

    def describe(self, report: TuneReport) -> TuneReport:
        """The report with names of documents, and with what the index was asked for."""
        return with_names(report, self.search)


def live_task(
    index: LiveIndex,
    judgments: Any,
    queries: Any,
    similarity: str | None,
    measure: str,
    query_ids: Any,
    seed: int,
) -> tuple[SearchTask, np.ndarray]:
    """The task of a live index, and a mask of its queries among all passed."""
    n_queries = 0 if queries is None else len(queries)
    # Folds leave fewer queries to learn from, whose lists must be longer.
    fewest = max(1, n_queries // 2)
    depth = mining_depth(default_n_negatives(fewest), fewest)
    n_lists = N_QUESTIONS * len(TOTAL_REGS)
    reach = (default_n_negatives(n_queries), depth, n_lists)
    return check_live_task(
        index, judgments, queries, similarity, measure, query_ids, reach, seed
    )


def check_live_options(methods: Sequence[str] | None, **others: Any) -> None:
    """Raise if something is asked for that takes the whole corpus."""
    if methods is not None and list(methods) != METHODS:
        raise ValueError(
            f"with a live index tune learns a map of the queries: got methods={methods!r}. Others "
            "map every document: pass all vectors in place of the index."
        )
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be used with a live index: pass all vectors in its place."
            )


def read_vectors(task: SearchTask) -> Any:
    """The vectors that stand for the corpus of a task in its card: all, or those judged."""
    if isinstance(task.X, np.ndarray):
        return task.X
    return task.X[np.unique(task.relevance.items)]


def with_names(report: TuneReport, search: LiveSearch) -> TuneReport:
    """The report with ids of the documents, and with what the index was asked for."""
    names = search.names()

    def named(ranking: Ranking) -> Ranking:
        return replace(ranking, n_items=names.size, item_ids=names)

    before, after = report.rankings
    relevance = report.relevance._with(n_items=names.size, item_ids=names)
    note = (
        f"The live index was searched {search.n_searches:,} times for mapped queries, and "
        f"{search.documents.n_read:,} vectors were read from it, beside a sample."
    )
    return replace(
        report,
        rankings=(named(before), named(after)),
        relevance=relevance,
        notes=[*report.notes, note],
        explain=None,  # takes vectors of all documents
    )
