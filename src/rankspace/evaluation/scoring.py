"""Scores of ranked lists: judgments and lists in the form of the kernels, and blocks of queries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from .._engine.parallel.threads import n_threads, thread_map
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .matching import new_items

ENTRIES_PER_THREAD = 1_000_000  # fewer are scored before a thread has started
HITS_PER_BLOCK = 2**15  # these fit in a core's cache


class ListScorer:
    """Scores of ranked lists under measures.

    Parameters
    ----------
    relevance : Relevance
        The judgments.
    measures : list of (Measure, int)
        Measures and their cut-offs, 0 for none.
    gains : dict of str to callable
        Gain of each grade, for each kind of gain that the measures use; 0 for what does not count.
    mean_of_ties : bool
        Whether a measure is its mean over all orders of tied items.
    """

    def __init__(
        self,
        relevance: Relevance,
        measures: list[Any],
        gains: dict[Any, Any],
        mean_of_ties: bool,
    ) -> None:
        self.relevance = relevance
        self.measures = measures
        self.gains = gains
        self.mean_of_ties = mean_of_ties

    def score(
        self, ranking: Ranking, queries: np.ndarray, lists: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores of some queries by measures, and what their lists hold; list -1 is empty."""
        values = np.empty((queries.size, len(self.measures)))
        states = np.empty(queries.size, dtype=np.int64)
        gains = self._gain_tables
        item_numbers = new_items(ranking, self.relevance)

        def score_part(part: np.ndarray) -> None:
            find_hits = self._hit_finder(ranking, item_numbers)
            for rows in self._blocks(queries, part):
                block = queries[rows]
                first_hits, counts, hits = find_hits(block, lists[rows])
                states[rows] = self._states_of(block, counts)
                for kind, table in gains.items():
                    listed = self._listed(block, table, first_hits, counts, hits)
                    self._compute(kind, listed, values[rows[0] : rows[-1] + 1])

        most = min(ranking.items.size // ENTRIES_PER_THREAD, queries.size)
        n_parts = max(1, min(n_threads(), most))
        list(thread_map(score_part, np.array_split(np.arange(queries.size), n_parts)))
        return values, states

    def _blocks(self, queries: np.ndarray, part: np.ndarray) -> Iterator[np.ndarray]:
        """The part in blocks of queries with few hits."""
        if part.size:
            ends = np.cumsum(self._n_positive[queries[part]]) // HITS_PER_BLOCK
            yield from np.split(part, np.flatnonzero(np.diff(ends)) + 1)

    def _hit_finder(self, ranking: Ranking, item_numbers: np.ndarray) -> Any:
        """A function that finds the hits of a block of queries; one for each thread."""
        from .._engine.kernels.evaluate import Rules, find_hits

        relevance = self.relevance
        slots = np.zeros(relevance.n_items, dtype=np.int32)
        last_query = np.full(relevance.n_items, -1)
        rules = Rules(
            float(relevance.min_relevant_grade),
            relevance.unlisted_is_irrelevant,
            relevance.unjudged == "irrelevant",
        )
        distances = ranking.distances if self.mean_of_ties else None
        n_columns = 4 if self.mean_of_ties else 2

        def find(queries: np.ndarray, lists: np.ndarray) -> tuple[np.ndarray, ...]:
            room = self._n_positive[queries]
            first_hits = np.cumsum(room) - room
            table = self._query_table(ranking, queries, lists, first_hits)
            hits = np.empty((room.sum(), n_columns), dtype=np.int64)
            counts = np.zeros((queries.size, 5), dtype=np.int64)
            find_hits(
                table,
                ranking.items,
                item_numbers,
                distances,
                relevance.items,
                relevance.grades,
                rules,
                slots,
                last_query,
                hits,
                counts,
            )
            return first_hits, counts, hits

        return find

    def _query_table(
        self,
        ranking: Ranking,
        queries: np.ndarray,
        lists: np.ndarray,
        first_hits: np.ndarray,
    ) -> np.ndarray:
        """What the kernel needs to know of each query."""
        relevance = self.relevance
        rows = relevance.rows[queries]
        listed = lists >= 0
        columns = (
            queries,
            relevance.query_items[queries],
            np.where(listed, ranking.indptr[lists], 0),
            np.where(listed, ranking.indptr[lists + 1], 0),
            relevance.indptr[rows],
            relevance.indptr[rows + 1],
            first_hits,
        )
        return np.column_stack(columns).astype(np.int64, copy=False)

    def _states_of(self, queries: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Whether the lists of some queries hold every item that counts, and none twice."""
        from .._engine.kernels import evaluate as kernels

        n_known = counts[:, kernels.N_IRRELEVANT] - counts[:, kernels.N_UNKNOWN]
        short = counts[:, kernels.N_RELEVANT] < self.relevance.n_relevant[queries]
        short |= n_known < self.relevance.n_irrelevant[queries]
        states = np.where(short, kernels.INCOMPLETE, kernels.COMPLETE)
        repeated = counts[:, kernels.N_REPEATED] > 0
        return np.where(repeated, kernels.REPEATED, states)

    def _listed(
        self, queries: np.ndarray, table: tuple[np.ndarray, np.ndarray], *found: Any
    ) -> Any:
        """Hits with a positive gain, in groups of ties if these count, and the ideal gains."""
        from .._engine.kernels import evaluate as kernels
        from .._engine.kernels.ties import TieGroups

        gains, best_gains = table
        counts, hits = found[1:]
        bounds = np.empty((queries.size, 2), dtype=np.int64)
        starts, sizes, numbers = np.empty((3, len(hits)), dtype=np.int64)
        content: tuple[np.ndarray, ...]
        if self.mean_of_ties:
            content = TieGroups(starts, sizes, numbers, np.empty(len(hits)))
            kernels.select_groups(*found, gains, bounds, content)
        else:
            content = numbers, np.empty(len(hits))
            kernels.select_hits(*found, gains, bounds, *content)
        return kernels.Listed(
            bounds,
            content,
            *self._ideal(queries, gains, best_gains),
            np.ascontiguousarray(counts[:, kernels.N_IRRELEVANT]),
        )

    def _ideal(
        self, queries: np.ndarray, gains: np.ndarray, best_gains: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gains of the ideal list of each query: where each begins and ends, and the gains."""
        from .._engine.kernels.evaluate import fill_ideal

        relevance = self.relevance
        rows = relevance.rows[queries]
        indptr, _ = relevance.positive_grades
        # The last gain is NaN: of the judgment -1, that is none.
        own_gains = gains[relevance._own_judgments[queries]]
        bounds = np.empty((queries.size, 2), dtype=np.int64)
        ideal = np.empty(self._n_positive[queries].sum())
        best_bounds = np.column_stack((indptr[rows], indptr[rows + 1]))
        fill_ideal(own_gains, best_bounds, best_gains, bounds, ideal)
        return bounds, ideal

    def _compute(self, kind: str, listed: Any, values: np.ndarray) -> None:
        """Write the measures of one kind of gain."""
        from .._engine.kernels.evaluate import OF_GROUPS, OF_HITS

        compute = OF_GROUPS if self.mean_of_ties else OF_HITS
        column = np.empty(len(values))
        for m, (measure, cut) in enumerate(self.measures):
            if measure.gain == kind:
                compute[measure.kernel](listed, cut, column)
                values[:, m] = column

    @cached_property
    def _n_positive(self) -> np.ndarray:
        """Number of positive grades in the row of judgments of each query."""
        indptr, _ = self.relevance.positive_grades
        return np.diff(indptr)[self.relevance.rows]

    @cached_property
    def _gain_tables(self) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """For each kind the gains of all judgments, with NaN at the end, and of the best ones."""
        _, best_grades = self.relevance.positive_grades
        grades = self.relevance.grades
        return {
            kind: (np.append(gain(grades), np.nan), gain(best_grades))
            for kind, gain in self.gains.items()
        }
