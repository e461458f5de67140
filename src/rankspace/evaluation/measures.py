"""Ranking measures by name, and `evaluate`, which scores a `Ranking` against a `Relevance`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from .._engine.parallel import Step, current_backend
from ..relevance.relevance import Relevance
from ..relevance.rows import places, take_or_none
from ..search.blocks import RankingBlocks
from ..search.ranking import Ranking
from .custom import CustomMeasure, custom_name, custom_scores, is_error
from .matching import (
    by_id,
    check_items,
    check_own_items,
    check_queries,
    check_run_not_shifted,
    named_like,
    sized_like,
)
from .report import Comparison, Report, compare
from .scoring import ListScorer

__all__ = ["MEASURES", "Comparison", "Measure", "Report", "compare", "evaluate"]

LISTS_PER_BLOCK = 1024  # of a ranking that is sent to workers
LARGEST_GRADE = 900  # sums of more than 2^100 gains of this grade still fit a double
Gain = Literal["binary", "exponential", "linear"]


class Measure(NamedTuple):
    """A ranking measure.

    Parameters
    ----------
    kernel : str
        Its function in `rankspace._engine.kernels.measures`.
    label : str
        Name for display.
    meaning : str
        What it says, in a few words; ``{k}`` stands for the cut-off.
    cut : {"none", "optional", "required"}
        Whether the name takes a cut-off, as in ``p@10``.
    gain : {"binary", "exponential", "linear"}
        Gain of a grade; see `gains_of`.
    larger_is_better : bool
        False for errors.
    complete : bool
        Whether lists must hold every judged item.
    """

    kernel: str
    label: str
    meaning: str
    cut: Literal["none", "optional", "required"] = "none"
    gain: Gain = "binary"
    larger_is_better: bool = True
    complete: bool = False


MEASURES = {
    "auc": Measure(
        "auc",
        "AUC",
        "probability that a relevant item ranks before an irrelevant one",
        complete=True,
    ),
    "first-rank": Measure(
        "first_rank",
        "First rank",
        "position of the first relevant item",
        larger_is_better=False,
        complete=True,
    ),
    "knn": Measure(
        "knn",
        "k-NN",
        "share of queries with a relevant majority in the first {k}",
        cut="required",
    ),
    "map": Measure("average_precision", "MAP", "mean average precision"),
    "mrr": Measure(
        "reciprocal_rank", "MRR", "one over the position of the first relevant item"
    ),
    "ndcg": Measure(
        "ndcg",
        "NDCG",
        "graded gain, discounted by position",
        cut="optional",
        gain="exponential",
    ),
    "ndcg-linear": Measure(
        "ndcg",
        "NDCG (linear gain)",
        "graded gain, discounted by position",
        cut="optional",
        gain="linear",
    ),
    "ndcg-mlr": Measure(
        "ndcg_mlr",
        "NDCG of MLR",
        "binary gain, discounted by position",
        cut="optional",
    ),
    "p": Measure(
        "precision",
        "Precision",
        "share of relevant items in the first {k}",
        cut="required",
    ),
    "r": Measure(
        "recall",
        "Recall",
        "share of the relevant items found in the first {k}",
        cut="required",
    ),
    "ranking-error": Measure(
        "ranking_error",
        "Ranking error",
        "misordered pairs; a random order has 1",
        larger_is_better=False,
        complete=True,
    ),
}


def gains_of(grades: np.ndarray, gain: Gain = "exponential") -> np.ndarray:
    """Gain of each grade: ``2^grade - 1``, the grade itself, or 1."""
    if gain == "exponential":
        # Grades near 0 keep their gain, which 2^grade - 1 would round to 0.
        return np.expm1(grades * np.log(2.0))
    if gain == "linear":
        return grades
    return np.ones_like(grades)


def parse_measure(name: str) -> tuple[Measure, int]:
    """Split a measure name such as ``"ndcg@10"`` into its measure and cut-off, 0 for none."""
    stem, at, cut = str(name).lower().partition("@")
    measure = MEASURES.get(stem)
    if measure is None or bool(at) != bool(re.fullmatch(r"[0-9]+", cut)):
        raise ValueError(f"measure must be one of {_all_names()}: got {name!r}.")
    if measure.cut == "required" and not cut:
        raise ValueError(
            f"{name!r} needs a cut-off: write {name}@10 for the first 10 items."
        )
    if cut and not int(cut):
        raise ValueError(f"the cut-off of a measure must be at least 1: got {name!r}.")
    if measure.cut == "none" and cut:
        raise ValueError(f"{stem!r} takes no cut-off: got {name!r}.")
    return measure, min(int(cut or 0), 2**62)


def _all_names() -> str:
    suffix = {"none": "", "optional": "", "required": "@k"}
    return ", ".join(name + suffix[m.cut] for name, m in MEASURES.items())


def measure_names(measures: str | Iterable[str]) -> list[str]:
    """Measure names from ``"map ndcg@10"`` or a list of names, each checked."""
    if isinstance(measures, str):
        measures = measures.replace(",", " ").split()
    if not isinstance(measures, Iterable):
        raise ValueError(f"measures must be some of {_all_names()}: got {measures!r}.")
    names = list(dict.fromkeys(str(name).lower() for name in measures))
    if not names:
        raise ValueError(f"name at least one measure of {_all_names()}.")
    for name in names:
        parse_measure(name)
    return names


Measures = str | CustomMeasure | Sequence[str | CustomMeasure]


def named_and_custom(measures: Measures) -> tuple[list[str], list[CustomMeasure]]:
    """Names of measures, each checked, and measures that are functions."""
    if callable(measures):
        measures = [measures]
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        return measure_names(measures), []
    custom = [measure for measure in measures if callable(measure)]
    names = [measure for measure in measures if not callable(measure)]
    if names or not custom:
        names = measure_names(names)
    everything = [*names, *map(custom_name, custom)]
    if len(set(everything)) < len(everything):
        raise ValueError(
            f"measures must have different names: got {', '.join(everything)}."
        )
    return names, custom


def evaluate(
    ranking: Ranking | Iterable[Ranking],
    relevance: Relevance,
    measures: Measures = "ndcg-linear@10 map",
    *,
    empty: Literal["skip"] | float = "skip",
    ties: Literal["index", "mean"] = "index",
) -> Report:
    """Evaluate ranked lists against relevance judgments: MAP, NDCG, precision, recall, AUC ...

    List ``i`` belongs to query ``i`` unless both sides have query ids, or the ranking was read from
    a run, where row numbers stand for ids that the judgments lack. Then lists are matched by
    id: a query without a list is scored as if its list were empty and is counted in the report, and
    a list without a query is ignored. Items are matched by id in the same way. If more than a few
    ids have no match, that is an error, which names the likely cause.

    Parameters
    ----------
    ranking : Ranking or iterable of Ranking
        Lists of all queries, or blocks of them in order. Blocks are scored one at a time, so they
        need not fit in memory together.
    relevance : Relevance
        The judgments. Its ``unjudged`` says whether unjudged items count as irrelevant or are
        first removed from the lists, ``min_relevant_grade`` which grades are relevant for binary
        measures, ``weights`` how much each query counts in the means.
    measures : str, callable or sequence of them, default="ndcg-linear@10 map"
        Names separated by spaces: ``auc``, ``p@10``, ``r@100``, ``map``, ``mrr``, ``ndcg@10`` (gain
        2^grade - 1), ``ndcg-linear@10`` (gain = grade, as trec_eval and BEIR have it),
        ``ndcg-mlr@10`` (binary, with the discount of the MLR paper), ``ranking-error`` (misordered
        pairs relative to a random order), ``knn@3`` (1 if most of the first 3 are relevant),
        ``first-rank``. Of these ``auc``, ``ranking-error`` and ``first-rank`` need lists of all
        judged items. A function is called with two arrays for each query with a grade above 0: the
        grades of its list, best first, without items that do not count, and those of the ideal list
        (grades above 0 only). It returns a score, or NaN to leave the query out. If its attribute
        ``larger_is_better`` is False, it is an error.
    empty : "skip" or float, default="skip"
        Score of a query with nothing relevant. By default such queries are left out and counted.
    ties : {"index", "mean"}, default="index"
        How to score items at equal distance: in the order of their index, or by the mean over all
        orders of the tied items.

    Returns
    -------
    Report

    Notes
    -----
    If fewer than ``k`` items are listed or relevant, ``p@k`` still divides by ``k`` and the ideal
    list of NDCG is as long as there are relevant items. ``auc`` and ``ranking-error`` also leave
    out queries with nothing irrelevant. Time is O(length of the lists), working
    memory O(n_items + number of judgments).

    Examples
    --------
    >>> from rankspace import Ranking, Relevance, evaluate
    >>> ranking = Ranking.from_distances([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
    >>> relevance = Relevance.from_lists([[1], [1, 2]], n_items=3)
    >>> evaluate(ranking, relevance, "map p@1").means
    {'map': 0.75, 'p@1': 0.5}
    """
    names, custom = named_and_custom(measures)
    if ties not in ("index", "mean"):
        raise ValueError(f"ties must be 'index' or 'mean': got {ties!r}.")
    if custom and ties == "mean":
        raise ValueError(
            f"ties='mean' needs measures by name: got {custom_name(custom[0])}. Use ties='index'."
        )
    if empty != "skip" and not isinstance(empty, Real):
        raise ValueError(f"empty must be 'skip' or a number: got {empty!r}.")
    if not isinstance(relevance, Relevance):
        raise TypeError(
            f"relevance must be a Relevance: got {type(relevance).__name__}. Pass "
            "Relevance.from_labels, from_lists or from_qrels of it."
        )
    relevance = named_like(ranking, sized_like(ranking, relevance))
    if relevance.n_items_is_open:
        check_own_items(ranking, relevance)
    evaluator = _Evaluator(relevance, names, custom, mean_of_ties=ties == "mean")
    evaluator.evaluate(ranking)
    values = evaluator.values
    if empty != "skip":
        values[evaluator.nothing_relevant] = empty
    errors = [name for name in names if not parse_measure(name)[0].larger_is_better]
    errors += [custom_name(measure) for measure in custom if is_error(measure)]
    names += map(custom_name, custom)
    return Report(
        dict(zip(names, values.T.copy(), strict=True)),
        smaller_is_better=frozenset(errors),
        query_ids=relevance.query_ids,
        weights=relevance.weights,
        n_unlisted=int(np.sum(~evaluator.listed)),
        similarity=evaluator.similarity,
        teacher=relevance.teacher,
    )


def _check_gains(relevance: Relevance) -> None:
    largest = relevance.positive_grades[1].max(initial=0)
    if largest > LARGEST_GRADE:
        raise ValueError(
            f"the gain 2^grade - 1 of ndcg needs grades up to {LARGEST_GRADE}: got {largest:g}. "
            "Use ndcg-linear, or smaller grades."
        )


class _Evaluator:
    """Scores ranked lists block by block, into a table of queries by measures."""

    def __init__(
        self,
        relevance: Relevance,
        names: list[str],
        custom: list[CustomMeasure],
        *,
        mean_of_ties: bool,
    ) -> None:
        self.relevance = relevance
        self.names = names
        self.custom = custom
        self.measures = [parse_measure(name) for name in names]
        self.mean_of_ties = mean_of_ties
        n_measures = len(names) + len(custom)
        self.values = np.full((relevance.n_queries, n_measures), np.nan)
        self.states = np.zeros(relevance.n_queries, dtype=np.int64)
        self.listed = np.zeros(relevance.n_queries, dtype=bool)
        self.similarity: str | None = None
        if "exponential" in self._gains:
            _check_gains(relevance)

    @cached_property
    def _gains(self) -> list[Gain]:
        """The kinds of gain that the measures use."""
        return sorted({measure.gain for measure, _ in self.measures})

    @property
    def nothing_relevant(self) -> np.ndarray:
        """Mask of queries by measures: where there is nothing relevant to find."""
        binary = np.zeros(self.values.shape[1], dtype=bool)
        binary[: len(self.names)] = [m.gain == "binary" for m, _ in self.measures]
        n_relevant = self.relevance.n_relevant[:, None]
        n_positive = self.relevance.n_positive[:, None]
        return np.where(binary, n_relevant, n_positive) == 0

    # ------------------------------------------------------------------ blocks of queries

    def evaluate(self, ranking: Ranking | Iterable[Ranking]) -> None:
        """Score all lists, on workers if there are any."""
        remote = current_backend().remote
        if isinstance(ranking, RankingBlocks):
            check_items(ranking.search.ids, self.relevance)
        if isinstance(ranking, Ranking):
            self._check_size(ranking)
            check_items(ranking.item_ids, self.relevance, np.unique(ranking.items))
            check_run_not_shifted(ranking, self.relevance)
            self.similarity = ranking.similarity
            if remote:
                self._evaluate_remotely(None, list(_blocks_of(ranking)), None)
            else:
                self._evaluate_here([ranking])
        elif remote and isinstance(ranking, RankingBlocks) and not ranking.started:
            self.similarity = ranking.search.similarity
            self._evaluate_remotely(ranking.search, ranking.blocks, ranking.state)
        else:
            self._evaluate_here(ranking)

    def _check_size(self, ranking: Ranking) -> None:
        n_queries = self.relevance.n_queries
        if not self._by_id(ranking) and ranking.n_queries != n_queries:
            raise ValueError(
                f"ranking and relevance must have the same queries: got {ranking.n_queries} lists "
                f"and {n_queries} queries. Give both query_ids to match them by name."
            )

    def _evaluate_here(self, blocks: Iterable[Ranking]) -> None:
        n_lists = 0
        names = []
        for block in blocks:
            queries, _, _ = self.score_block(block, n_lists)
            self.listed[queries] = True
            self.similarity = block.similarity
            n_lists += block.n_queries
            if self._by_id(block):
                names.append(block.query_ids)
        self._finish(n_lists, names)

    def _evaluate_remotely(
        self, search: Any, blocks: Sequence[Any], state: Any
    ) -> None:
        """Score lists on the workers that make them, so that only scores travel."""
        bounds = np.cumsum([0, *(block.n_queries for block in blocks)]).tolist()
        numbered = list(zip(bounds[:-1], blocks, strict=True))
        step = _SearchAndScore(search, self)
        for queries, values, states in current_backend().map(step, numbered, state):
            self.listed[queries] = True
            self.values[queries] = values
            self.states[queries] = states
        self._finish(
            bounds[-1], [block.query_ids for block in blocks if self._by_id(block)]
        )

    def score_block(
        self, block: Ranking, first: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Query numbers, scores and list states of a block whose first query is ``first``."""
        queries = self._queries_of(block, first)
        known = np.flatnonzero(queries >= 0)
        queries = queries[known]
        self._score(block, queries, known)
        return queries, self.values[queries], self.states[queries]

    def _by_id(self, block: Any) -> bool:
        return by_id(block, self.relevance)

    def _queries_of(self, block: Ranking, first: int) -> np.ndarray:
        """The query of each list, -1 for none."""
        if self._by_id(block):
            return places(block.query_ids, self.relevance.query_ids)
        queries = np.arange(first, first + block.n_queries)
        return np.where(queries < self.relevance.n_queries, queries, -1)

    def _finish(self, n_lists: int, names: list[np.ndarray]) -> None:
        """Score queries without a list as if it were empty, and check the lists."""
        n_queries = self.relevance.n_queries
        if names and n_lists:
            check_queries(names, self.relevance, self.listed)
        elif n_lists != n_queries:
            raise ValueError(
                f"the blocks must hold one list for each of {n_queries} queries: got {n_lists}."
            )
        unlisted = np.flatnonzero(~self.listed)
        if unlisted.size:
            relevance = self.relevance
            empty = Ranking.from_pairs(
                [], relevance.n_items, item_ids=relevance.item_ids
            )
            self._score(empty, unlisted, np.full(unlisted.size, -1))
        self._check_lists()

    # ------------------------------------------------------------------ kernels

    def _score(self, ranking: Ranking, queries: np.ndarray, lists: np.ndarray) -> None:
        """Write the scores of some queries, whose lists have the given numbers."""
        values, states = self._scorer.score(ranking, queries, lists)
        self.values[queries, : len(self.names)] = values
        self.states[queries] = states
        if self.custom:
            scores = custom_scores(self.custom, ranking, self.relevance, queries, lists)
            self.values[queries, len(self.names) :] = scores

    @cached_property
    def _scorer(self) -> ListScorer:
        gains = {gain: partial(self._counted_gains, gain) for gain in self._gains}
        return ListScorer(self.relevance, self.measures, gains, self.mean_of_ties)

    def _counted_gains(self, gain: Gain, grades: np.ndarray) -> np.ndarray:
        """Gains of grades; 0 for what does not count."""
        counted = grades > 0
        if gain == "binary":
            counted = grades >= self.relevance.min_relevant_grade
        gains = np.zeros(grades.size)
        gains[counted] = gains_of(grades[counted], gain)
        return gains

    def _check_lists(self) -> None:
        from .._engine.kernels.evaluate import INCOMPLETE, REPEATED

        relevance = self.relevance
        repeated = np.flatnonzero(self.states == REPEATED)
        if repeated.size:
            raise ValueError(
                f"a list must not name an item twice: that of query {self._name(repeated[0])} does."
            )
        needing = [name for name in self.names if parse_measure(name)[0].complete]
        short = (self.states == INCOMPLETE) & (relevance.n_relevant > 0)
        if needing and short.any():
            query = np.flatnonzero(short)[0]
            raise ValueError(
                f"{needing[0]} needs lists of all judged items: that of query {self._name(query)} "
                f"lacks some of {relevance.n_relevant[query]} relevant and "
                f"{relevance.n_irrelevant[query]} irrelevant ones. Rank without k=..., or ask for "
                "measures of the top of the list."
            )

    def _name(self, query: int) -> str:
        ids = self.relevance.query_ids
        return str(query) if ids is None else repr(str(ids[query]))


class _SearchAndScore(Step):
    """Search and evaluation of one block of queries on a worker; only scores are returned."""

    def __init__(self, search: Any, evaluator: _Evaluator) -> None:
        self.search = search
        self.evaluator = evaluator

    def map_block(self, block: tuple[int, Any], state: Any) -> tuple[Any, ...]:
        """Query numbers, scores and list states; without a search the block is a `Ranking`."""
        first, ranking = block
        if self.search is not None:
            ranking = self.search.map_block(ranking, state)
        return self.evaluator.score_block(ranking, first)


def _blocks_of(ranking: Ranking) -> Iterator[Ranking]:
    """A ranking in blocks small enough to send to workers."""
    for first in range(0, ranking.n_queries, LISTS_PER_BLOCK):
        indptr = ranking.indptr[first : first + LISTS_PER_BLOCK + 1]
        entries = slice(indptr[0], indptr[-1])
        yield Ranking(
            indptr - indptr[0],
            ranking.items[entries],
            ranking.distances[entries],
            ranking.n_items,
            take_or_none(ranking.query_ids, slice(first, first + LISTS_PER_BLOCK)),
            ranking.item_ids,
            ranking.similarity,
        )
